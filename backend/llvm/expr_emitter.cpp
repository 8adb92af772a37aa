// See expr_emitter.h.
#include "backend/llvm/expr_emitter.h"

#include "ir/graph/error.h"
#include "ir/loop/byte_tables.h"
#include "ir/loop/words.h"

namespace backcast::llvm_backend {

using loop::Expr;
using loop::ExprKind;
using loop::ExprNode;

llvm::Value* ExprEmitter::emit(const Expr& expr) {
  const ExprNode& node = *expr;
  if (node.kind == ExprKind::constant) return emit_constant(types_, node);
  const auto found = known_.find(&node);
  if (found != known_.end()) return found->second;
  llvm::Value* value = emit_node(node);
  known_.emplace(&node, value);
  order_.push_back(&node);
  return value;
}

llvm::Value* ExprEmitter::emit_node(const ExprNode& node) {
  switch (node.kind) {
    case ExprKind::constant:
      return emit_constant(types_, node);
    case ExprKind::var: {
      const auto found = environment_.values.find(node.name);
      BC_CHECK(found != environment_.values.end(), "unbound variable {}", node.name);
      return found->second;
    }
    case ExprKind::load:
      return emit_load(node);
    case ExprKind::unary:
      return emit_unary(builder_, types_, node.op, node.args[0].type().scalar, emit(node.args[0]));
    case ExprKind::binary: {
      llvm::Value* a = emit(node.args[0]);
      llvm::Value* b = emit(node.args[1]);
      return emit_binary(builder_, types_, node.op, node.args[0].type().scalar, a, b);
    }
    case ExprKind::fma: {
      llvm::Value* a = emit(node.args[0]);
      llvm::Value* b = emit(node.args[1]);
      return emit_fma(builder_, types_, node.type.scalar, a, b, emit(node.args[2]));
    }
    case ExprKind::select: {
      llvm::Value* condition = emit(node.args[0]);
      llvm::Value* a = emit(node.args[1]);
      return builder_.CreateSelect(condition, a, emit(node.args[2]));
    }
    case ExprKind::if_then_else:
      return emit_if(node);
    case ExprKind::cast:
      return emit_cast(builder_, types_, node.args[0].type(), node.type, emit(node.args[0]));
    case ExprKind::bitcast:
      return builder_.CreateBitCast(emit(node.args[0]), types_.value(node.type));
    case ExprKind::ramp:
      return emit_ramp(node);
    case ExprKind::broadcast:
      return builder_.CreateVectorSplat(static_cast<unsigned>(node.type.lanes), emit(node.args[0]));
    case ExprKind::shuffle: {
      std::vector<llvm::Value*> args;
      for (const Expr& arg : node.args) args.push_back(emit(arg));
      return emit_shuffle(builder_, args, node.indices);
    }
    case ExprKind::reduce_lanes:
      if (loop::sums_byte_products(node) &&
          types_.target().sums_byte_products(node.args[0].type().lanes)) {
        llvm::Value* a = emit(node.args[0]->args[0]);
        return emit_summed_byte_product(builder_, a, emit(node.args[0]->args[1]));
      }
      return emit_reduce_lanes(builder_, types_, node.op, node.type.scalar, emit(node.args[0]));
    case ExprKind::call:
      return emit_call(node);
    case ExprKind::access:
      break;
  }
  BC_CHECK(false, "expression of kind {} ({}) must have been lowered before code is emitted",
           static_cast<int>(node.kind), node.name);
}

llvm::Value* ExprEmitter::emit_ramp(const ExprNode& node) {
  const auto lanes = static_cast<unsigned>(node.type.lanes);
  llvm::Value* base = builder_.CreateVectorSplat(lanes, emit(node.args[0]));
  llvm::Value* stride = builder_.CreateVectorSplat(lanes, emit(node.args[1]));
  std::vector<llvm::Constant*> steps;
  llvm::Type* scalar = types_.scalar(node.type.scalar);
  const bool is_float = loop::is_float(node.type.scalar);
  for (unsigned lane = 0; lane < lanes; ++lane) {
    steps.push_back(is_float ? llvm::ConstantFP::get(scalar, static_cast<double>(lane))
                             : llvm::ConstantInt::get(scalar, lane));
  }
  llvm::Constant* step = llvm::ConstantVector::get(steps);
  if (is_float) return builder_.CreateFAdd(base, builder_.CreateFMul(step, stride));
  return builder_.CreateAdd(base, builder_.CreateMul(step, stride));
}

llvm::Value* ExprEmitter::emit_if(const ExprNode& node) {
  llvm::Value* condition = emit(node.args[0]);
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = function->getContext();
  llvm::BasicBlock* ends[2];
  llvm::Value* results[2];
  llvm::BasicBlock* branches[2] = {llvm::BasicBlock::Create(context, "then", function),
                                   llvm::BasicBlock::Create(context, "else", function)};
  llvm::BasicBlock* join = llvm::BasicBlock::Create(context, "join", function);
  builder_.CreateCondBr(condition, branches[0], branches[1]);
  for (int side = 0; side < 2; ++side) {
    builder_.SetInsertPoint(branches[side]);
    // What a branch computes is known in that branch only.
    const size_t before = order_.size();
    results[side] = emit(node.args[static_cast<size_t>(1 + side)]);
    for (size_t i = before; i < order_.size(); ++i) known_.erase(order_[i]);
    order_.resize(before);
    ends[side] = builder_.GetInsertBlock();
    builder_.CreateBr(join);
  }
  builder_.SetInsertPoint(join);
  llvm::PHINode* result = builder_.CreatePHI(results[0]->getType(), 2);
  result->addIncoming(results[0], ends[0]);
  result->addIncoming(results[1], ends[1]);
  return result;
}

llvm::Value* ExprEmitter::emit_call(const ExprNode& node) {
  std::vector<llvm::Value*> args;
  for (const Expr& arg : node.args) args.push_back(emit(arg));
  llvm::Function* function = functions_(node.name, node.type.lanes);
  BC_CHECK(function->arg_size() == args.size(), "{} takes {} arguments, not {}", node.name,
           function->arg_size(), args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    BC_CHECK(args[i]->getType() == function->getArg(static_cast<unsigned>(i))->getType(),
             "argument {} of {} has another type than its parameter", i, node.name);
  }
  return builder_.CreateCall(function, args);
}

const Place& ExprEmitter::place(const std::string& name) const {
  const auto found = environment_.places.find(name);
  BC_CHECK(found != environment_.places.end(), "unknown buffer {}", name);
  return found->second;
}

llvm::Value* ExprEmitter::variable(const Place& place, const Expr& index) {
  int64_t i = 0;
  if (place.variables.empty()) return nullptr;
  BC_CHECK(
      loop::as_constant(index, i) && i >= 0 && i < static_cast<int64_t>(place.variables.size()),
      "index of a register allocation outside its elements");
  return place.variables[static_cast<size_t>(i)];
}

llvm::Value* ExprEmitter::address(const Place& place, loop::Type value, const Index& index) {
  BC_CHECK(place.element.lanes == 1 || place.element.lanes == value.lanes,
           "a value of type {} in an array of {}", value.to_string(), place.element.to_string());
  llvm::Type* element = types_.memory(place.element);
  using Flags = llvm::GEPNoWrapFlags;
  const Flags flags =
      index.is_natural ? Flags::inBounds() | Flags::noUnsignedWrap() : Flags::none();
  llvm::Value* start = builder_.CreateGEP(element, place.pointer, index.terms, "", flags);
  if (index.offset == 0) return start;
  llvm::Constant* offset = llvm::ConstantInt::getSigned(types_.index(), index.offset);
  return builder_.CreateGEP(element, start, offset, "", flags);
}

bool is_natural(const Expr& expr, const Environment& environment) {
  int64_t value = 0;
  if (loop::as_constant(expr, value)) return value >= 0;
  if (expr->kind == ExprKind::var) return environment.naturals.count(expr->name) > 0;
  if (expr->kind != ExprKind::binary) return false;
  switch (expr->op) {
    case loop::Op::add:
    case loop::Op::mul:
    case loop::Op::min:
    case loop::Op::floor_div:
    case loop::Op::floor_mod:
      return is_natural(expr->args[0], environment) && is_natural(expr->args[1], environment);
    default:
      return false;
  }
}

ExprEmitter::Index ExprEmitter::emit_index(const Expr& index) {
  std::vector<Expr> pending = {index};
  Index result;
  // WebAssembly's loads and stores add a constant to an address, where that does not wrap.
  result.is_natural = types_.target().architecture == Architecture::wasm32;
  while (!pending.empty()) {
    const Expr term = pending.back();
    pending.pop_back();
    int64_t value = 0;
    if (loop::as_constant(term, value)) {
      result.offset += value;
    } else if (term->kind == ExprKind::binary && term->op == loop::Op::add) {
      pending.push_back(term->args[1]);
      pending.push_back(term->args[0]);
    } else if (term->kind == ExprKind::binary && term->op == loop::Op::sub &&
               loop::as_constant(term->args[1], value)) {
      result.offset -= value;
      pending.push_back(term->args[0]);
    } else {
      llvm::Value* emitted = emit(term);
      result.terms = result.terms ? builder_.CreateAdd(result.terms, emitted) : emitted;
      result.is_natural = result.is_natural && is_natural(term, environment_);
    }
  }
  if (result.terms == nullptr) result.terms = llvm::ConstantInt::get(types_.index(), 0);
  result.is_natural = result.is_natural && result.offset >= 0;
  return result;
}

/// Vectors are aligned like their elements: nothing more is promised of a buffer.
llvm::Align ExprEmitter::alignment(loop::Type value) const {
  return llvm::Align(static_cast<uint64_t>(types_.memory_bytes(value.scalar)));
}

std::vector<llvm::Value*> ExprEmitter::lane_indices(const Expr& index) {
  std::vector<llvm::Value*> result;
  const int32_t lanes = index.type().lanes;
  if (index->kind == ExprKind::ramp) {
    llvm::Value* base = emit(index->args[0]);
    llvm::Value* stride = emit(index->args[1]);
    for (int32_t lane = 0; lane < lanes; ++lane) {
      llvm::Value* step = llvm::ConstantInt::get(stride->getType(), static_cast<uint64_t>(lane));
      result.push_back(builder_.CreateAdd(base, builder_.CreateMul(stride, step)));
    }
    return result;
  }
  // Lanes become places one by one: vectors of places are wider than what they are made of.
  const bool widens = index->kind == ExprKind::cast;
  llvm::Value* vector = emit(widens ? index->args[0] : index);
  for (int32_t lane = 0; lane < lanes; ++lane) {
    llvm::Value* place = builder_.CreateExtractElement(vector, static_cast<uint64_t>(lane));
    if (widens) {
      place = emit_cast(builder_, types_, index->args[0].type().with_lanes(1),
                        index.type().with_lanes(1), place);
    }
    result.push_back(place);
  }
  return result;
}

llvm::Value* ExprEmitter::contiguous_address(const Place& place, loop::Type value,
                                             const Expr& index) {
  const bool unit_ramp = index->kind == ExprKind::ramp && loop::is_constant(index->args[1], 1);
  if (index.type().is_vector() && !unit_ramp) return nullptr;
  return address(place, value, emit_index(unit_ramp ? index->args[0] : index));
}

llvm::Value* ExprEmitter::emit_load(const ExprNode& node) {
  const Place& from = place(node.name);
  const Expr& index = node.args[0];
  llvm::Type* type = types_.memory(node.type);
  llvm::Value* loaded = nullptr;
  if (llvm::Value* variable_of = variable(from, index)) {
    loaded = builder_.CreateLoad(type, variable_of);
  } else if (llvm::Value* first = contiguous_address(from, node.type, index)) {
    loaded = builder_.CreateAlignedLoad(type, first, alignment(node.type));
  } else if (from.is_byte_table && types_.target().byte_tables && loop::looks_up_byte(node)) {
    loaded = emit_byte_look_up(builder_, from.pointer, emit(loop::byte_place(node)));
  } else {
    const loop::Type lane_type = node.type.with_lanes(1);
    loaded = llvm::PoisonValue::get(type);
    uint64_t lane = 0;
    for (llvm::Value* lane_index : lane_indices(index)) {
      llvm::Value* element = builder_.CreateAlignedLoad(
          types_.memory(lane_type), address(from, lane_type, {lane_index}), alignment(lane_type));
      loaded = builder_.CreateInsertElement(loaded, element, lane++);
    }
  }
  return from_memory(builder_, node.type, loaded);
}

void ExprEmitter::emit_prefetch(const std::string& buffer, const Expr& index, loop::Cache cache) {
  const Place& from = place(buffer);
  llvm::Value* first = contiguous_address(from, from.element.with_lanes(1), index);
  builder_.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {first->getType()},
      {first, builder_.getInt32(0), builder_.getInt32(cache == loop::Cache::first ? 3 : 2),
       builder_.getInt32(1)});
}

void ExprEmitter::emit_store(const std::string& buffer, const Expr& index, const Expr& value) {
  const Place& to = place(buffer);
  const loop::Type type = value.type();
  llvm::Value* stored = to_memory(builder_, types_, type, emit(value));
  if (llvm::Value* variable_of = variable(to, index)) {
    builder_.CreateStore(stored, variable_of);
  } else if (llvm::Value* first = contiguous_address(to, type, index)) {
    builder_.CreateAlignedStore(stored, first, alignment(type));
  } else {
    const loop::Type lane_type = type.with_lanes(1);
    uint64_t lane = 0;
    for (llvm::Value* lane_index : lane_indices(index)) {
      llvm::Value* element = builder_.CreateExtractElement(stored, lane++);
      builder_.CreateAlignedStore(element, address(to, lane_type, {lane_index}),
                                  alignment(lane_type));
    }
  }
}

}  // namespace backcast::llvm_backend
