// Expressions translated to instructions; math functions are translated in place.
#include "ir/loop/translate_expr.h"

#include <bit>
#include <cstring>

#include "ir/graph/error.h"
#include "ir/loop/integer_fold.h"
#include "ir/loop/math_library.h"
#include "ir/loop/text.h"

namespace backcast::loop::machine {
namespace {

int32_t bytes_of(Scalar scalar) { return bit_width(scalar) / 8; }

Slot constant_bits(const ExprNode& e) {
  const double value = e.float_value;
  switch (e.type.scalar) {
    case Scalar::f16:
      return f16_from_f64(value);
    case Scalar::bf16:
      return bf16_from_f64(value);
    case Scalar::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case Scalar::f64:
      return std::bit_cast<uint64_t>(value);
    default:
      return static_cast<Slot>(e.int_value);
  }
}

}  // namespace

void ExprTranslator::fail(const std::string& message) const {
  throw InternalError("kernel " + code_.name + ": " + message);
}

int32_t ExprTranslator::new_slots(int32_t count) {
  const size_t first = code_.initial.size();
  code_.initial.resize(first + static_cast<size_t>(count));
  return static_cast<int32_t>(first);
}

size_t ExprTranslator::emit(Instruction instruction) {
  if (instruction.run == nullptr) fail("an operation does not exist on its type");
  code_.instructions.push_back(instruction);
  return code_.instructions.size() - 1;
}

int32_t ExprTranslator::constant_slot(const ExprNode& e) {
  const Slot bits = constant_bits(e);
  const auto [found, fresh] = constants_.try_emplace({bits, e.type.lanes}, 0);
  if (fresh) {
    found->second = new_slots(e.type.lanes);
    for (int32_t lane = 0; lane < e.type.lanes; ++lane) {
      code_.initial[static_cast<size_t>(found->second + lane)] = bits;
    }
  }
  return found->second;
}

const ExprTranslator::Place& ExprTranslator::place(const std::string& name) const {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) fail("unknown buffer " + name);
  return found->second;
}

int32_t ExprTranslator::run(const Expr& e) {
  if (!e) fail("an expression is missing");
  if (e->kind == ExprKind::constant) return constant_slot(*e);
  if (e->kind == ExprKind::var) {
    const auto found = values_.find(e->name);
    if (found == values_.end()) fail("unbound variable " + e->name);
    if (found->second.type != e.type()) {
      fail(fmt::format("{} is used as {}, but it is {}", e->name, e.type().to_string(),
                       found->second.type.to_string()));
    }
    return found->second.slot;
  }
  const auto found = known_.find(e.get());
  if (found != known_.end()) return found->second;
  const int32_t slot = run_node(*e);
  known_[e.get()] = slot;
  known_order_.push_back(e);
  return slot;
}

int32_t ExprTranslator::run_operation(const ExprNode& e, Run run_lanes) {
  if (run_lanes == nullptr) {
    fail(fmt::format("{} does not exist on {}: {}", name_of(e.op), e.args[0].type().to_string(),
                     print(Expr(std::make_shared<const ExprNode>(e)))));
  }
  Instruction i = {.run = run_lanes, .lanes = e.type.lanes};
  i.number = e.args[0].type().lanes;
  int32_t* const operands[] = {&i.a, &i.b, &i.c};
  for (size_t k = 0; k < e.args.size(); ++k) *operands[k] = run(e.args[k]);
  i.to = new_slots(e.type.lanes);
  emit(i);
  return i.to;
}

int32_t ExprTranslator::run_node(const ExprNode& e) {
  const Scalar operand = e.args.empty() ? e.type.scalar : e.args[0].type().scalar;
  switch (e.kind) {
    case ExprKind::access: {
      const Place& from = place(e.name);
      return load_from(from, e.type, Type{}, flatten(e.name, e.args));
    }
    case ExprKind::load:
      return run_load(e);
    case ExprKind::unary:
      return run_operation(e, unary_of(e.op, operand));
    case ExprKind::binary:
      return run_operation(e, binary_of(e.op, operand));
    case ExprKind::fma:
      return run_operation(e, fma_of(operand));
    case ExprKind::select:
      return run_operation(e, run_select);
    case ExprKind::if_then_else:
      return run_if(e);
    case ExprKind::cast:
      return run_operation(e, cast_of(operand, e.type.scalar));
    case ExprKind::bitcast:
      return run_bitcast(e);
    case ExprKind::ramp:
      return run_operation(e, ramp_of(operand));
    case ExprKind::broadcast:
      return run_operation(e, run_broadcast);
    case ExprKind::shuffle:
      return run_shuffle(e);
    case ExprKind::reduce_lanes: {
      const int32_t lanes = e.args[0].type().lanes;
      const int32_t from = run(e.args[0]);
      const int32_t to = new_slots(lanes);
      emit({.run = reduction_of(e.op, operand), .to = to, .a = from, .number = lanes});
      return to;
    }
    case ExprKind::call:
      return run_call(e);
    default:
      fail("an expression of unknown kind");
  }
}

int32_t ExprTranslator::flatten(const std::string& buffer, const std::vector<Expr>& indices) {
  const Place to = place(buffer);
  const size_t rank = to.param == nullptr ? 1 : to.param->shape.size();
  // One index for any rank is a flat one; the access itself is still checked.
  if (indices.size() == 1 && rank != 1) return run(indices[0]);
  if (indices.size() != rank || to.param == nullptr) {
    fail(fmt::format("{} indices for {}", indices.size(), buffer));
  }
  int32_t flat = constant_slot(*index_constant(0));
  for (size_t d = 0; d < rank; ++d) {
    const int32_t extent = run(expr_of(to.param->shape[d]));
    const int32_t index = run(indices[d]);
    const int32_t next = new_slots(1);
    emit({.run = run_flatten,
          .to = next,
          .a = flat,
          .b = extent,
          .c = index,
          .array = to.array,
          .number = static_cast<int64_t>(d)});
    flat = next;
  }
  return flat;
}

int32_t ExprTranslator::load_from(const Place& from, Type type, Type index_type, int32_t index) {
  if (type.scalar != from.element.scalar) {
    fail(fmt::format("load {} from {}, whose elements are {}", type.to_string(),
                     code_.array_names[static_cast<size_t>(from.array)], from.element.to_string()));
  }
  const bool gather = index_type.is_vector();
  if (from.element.is_vector() && (gather || type != from.element)) {
    fail("elements of an array of vectors are loaded whole");
  }
  const int32_t to = new_slots(type.lanes);
  emit({.run = load_of(bytes_of(type.scalar), gather),
        .to = to,
        .a = index,
        .lanes = type.lanes,
        .array = from.array,
        .number = from.element.lanes});
  return to;
}

int32_t ExprTranslator::run_load(const ExprNode& e) {
  const Place from = place(e.name);
  return load_from(from, e.type, e.args[0].type(), run(e.args[0]));
}

void ExprTranslator::store(const std::string& buffer, int32_t index_slot, const Type& index_type,
                           int32_t value_slot, const Type& value_type) {
  const Place& to = place(buffer);
  if (to.param != nullptr && to.param->mode == AccessMode::read) {
    fail("a store to " + buffer + ", which is only read");
  }
  const bool scatter = index_type.is_vector();
  const bool fits = to.element.is_vector() ? !scatter && value_type == to.element
                                           : value_type.scalar == to.element.scalar;
  if (!fits) {
    fail(fmt::format("a store of {} to {}, whose elements are {}", value_type.to_string(), buffer,
                     to.element.to_string()));
  }
  emit({.run = store_of(bytes_of(value_type.scalar), scatter),
        .a = index_slot,
        .b = value_slot,
        .lanes = value_type.lanes,
        .array = to.array,
        .number = to.element.lanes});
}

int32_t ExprTranslator::run_if(const ExprNode& e) {
  const int32_t condition = run(e.args[0]);
  const int32_t to = new_slots(e.type.lanes);
  const size_t skip = emit({.run = run_jump_unless, .a = condition});
  size_t leave = 0;
  for (size_t side = 1; side <= 2; ++side) {
    // What a branch computes is known in that branch only.
    const size_t before = known_order_.size();
    const int32_t value = run(e.args[side]);
    for (size_t k = before; k < known_order_.size(); ++k) known_.erase(known_order_[k].get());
    known_order_.resize(before);
    emit({.run = run_copy, .to = to, .a = value, .lanes = e.type.lanes});
    if (side == 1) {
      leave = emit({.run = run_jump});
      jump_to(skip, position());
    }
  }
  jump_to(leave, position());
  return to;
}

int32_t ExprTranslator::run_bitcast(const ExprNode& e) {
  const Type from = e.args[0].type();
  const int32_t a = run(e.args[0]);
  // Equal widths: a slot holds the same bytes either way.
  if (from.lanes == e.type.lanes) return a;
  const int32_t to = new_slots(e.type.lanes);
  emit({.run = run_repack,
        .to = to,
        .a = a,
        .b = bytes_of(from.scalar),
        .c = bytes_of(e.type.scalar),
        .lanes = e.type.lanes});
  return to;
}

int32_t ExprTranslator::run_shuffle(const ExprNode& e) {
  std::vector<int32_t> sources;
  for (const Expr& arg : e.args) {
    const int32_t slot = run(arg);
    for (int32_t lane = 0; lane < arg.type().lanes; ++lane) sources.push_back(slot + lane);
  }
  std::vector<int32_t>& slots = code_.lane_slots.emplace_back();
  for (const int32_t lane : e.indices) slots.push_back(sources.at(static_cast<size_t>(lane)));
  const int32_t to = new_slots(e.type.lanes);
  emit({.run = machine::run_shuffle, .to = to, .lanes = e.type.lanes, .lane_slots = &slots});
  return to;
}

const MathFunction& ExprTranslator::function(const ExprNode& call) {
  const std::string name = called_name(call);
  for (const std::string& spelling : {name, call.name}) {
    const auto found = functions_.find(spelling);
    if (found != functions_.end() && !found->second.params.empty() &&
        found->second.params[0].type.lanes == call.type.lanes) {
      return found->second;
    }
  }
  const auto known = widened_.find(name);
  if (known != widened_.end()) return known->second;
  // The scalar function, of the program or of the library, stands for all widths.
  const std::string suffix = "x" + std::to_string(call.type.lanes);
  const std::string scalar = call.type.lanes > 1 && name.ends_with(suffix)
                                 ? name.substr(0, name.size() - suffix.size())
                                 : name;
  const auto own = functions_.find(scalar);
  if (own != functions_.end()) {
    return widened_.emplace(name, own->second.widen(call.type.lanes)).first->second;
  }
  const auto library = math_library(false).find(scalar);
  if (library == math_library(false).end()) fail("unknown function " + call.name);
  return widened_.emplace(name, library->second.widen(call.type.lanes)).first->second;
}

int32_t ExprTranslator::run_call(const ExprNode& e) {
  const MathFunction& callee = function(e);
  if (callee.params.size() != e.args.size()) {
    fail(fmt::format("{} takes {} arguments, not {}", e.name, callee.params.size(), e.args.size()));
  }
  if (++call_depth_ > 16) fail("calls of " + e.name + " do not end");
  std::unordered_map<std::string, Value> inner;
  for (size_t i = 0; i < e.args.size(); ++i) {
    if (e.args[i].type() != callee.params[i].type) fail("an argument's type for " + e.name);
    inner[callee.params[i].name] = {run(e.args[i]), callee.params[i].type};
  }
  // The body's nodes are shared by all calls of the function, but their values are not.
  std::unordered_map<const ExprNode*, int32_t> known;
  std::vector<Expr> order;
  inner.swap(values_);
  known.swap(known_);
  order.swap(known_order_);
  for (const auto& [name, value] : callee.lets) bind(name, run(value), value.type());
  if (callee.result.type() != e.type) fail("a result's type of " + e.name);
  const int32_t result = run(callee.result);
  inner.swap(values_);
  known.swap(known_);
  order.swap(known_order_);
  --call_depth_;
  return result;
}

}  // namespace backcast::loop::machine
