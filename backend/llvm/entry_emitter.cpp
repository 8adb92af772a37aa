// See entry_emitter.h.
#include "backend/llvm/entry_emitter.h"

#include <llvm/IR/Constants.h>

#include <utility>

#include "backend/llvm/expr_emitter.h"
#include "backend/llvm/function_attributes.h"
#include "backend/llvm/hooks.h"
#include "backend/llvm/pieces.h"
#include "ir/graph/error.h"
#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"

namespace backcast::llvm_backend {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Step;
using loop::StepKind;

enum Argument : unsigned { kState, kIn, kOut, kArena, kArenaBytes, kContext, kArgumentCount };

class EntryEmitter {
 public:
  EntryEmitter(const loop::Program& program, const loop::EntryPoint& entry, const EntryAbi& abi,
               const Types& types, const ModuleSymbols& symbols, llvm::Module& module)
      : program_(program),
        entry_(entry),
        abi_(abi),
        types_(types),
        symbols_(symbols),
        module_(module),
        context_(module.getContext()),
        pointer_(llvm::PointerType::get(context_, 0)),
        builder_(context_),
        exprs_(builder_, types_, environment_, {}) {}

  void emit() {
    create_function();
    for (const Check& check : abi_.checks) fail_if(violated(check), check.status);
    bind_arguments();
    for (size_t i = 0; i < abi_.inputs.size(); ++i) {
      if (abi_.inputs[i].range) check_range(i);
    }
    load_context();
    allocate_closure();
    emit_steps(entry_.steps);
    end_step();
    builder_.CreateRet(status(Status::ok));
  }

 private:
  void create_function();
  llvm::Value* violated(const Check& check);
  llvm::Value* misaligned(llvm::Value* pointer, int64_t alignment);
  void bind_arguments();
  void load_context();
  void check_range(size_t input);
  void check_finite(const Step& step);
  void emit_steps(const std::vector<Step>& steps);
  void emit_step(const Step& step);
  void emit_loop(const Step& step);
  void emit_branch(const Step& step);
  llvm::Value* loop_end(const Step& step);
  llvm::Value* is_true(BufferId id);
  void emit_hooked_step(const Step& step, const StepAbi& abi);
  void measure(const Step& step);
  void emit_copy(const Step& step);
  void allocate_closure();
  void begin_step(int32_t number);
  void end_step() { begin_step(kNoStep); }
  llvm::Value* address(BufferId id);

  llvm::Constant* status(Status code) {
    return llvm::ConstantInt::getSigned(llvm::Type::getInt32Ty(context_),
                                        static_cast<int32_t>(code));
  }
  /// Returns `code` when the condition holds.
  void fail_if(llvm::Value* condition, Status code) {
    llvm::BasicBlock* fail = llvm::BasicBlock::Create(context_, "fail", function_);
    llvm::BasicBlock* next = llvm::BasicBlock::Create(context_, "ok", function_);
    builder_.CreateCondBr(condition, fail, next);
    builder_.SetInsertPoint(fail);
    builder_.CreateRet(status(code));
    builder_.SetInsertPoint(next);
  }
  llvm::Value* index_value(const Dim& dim) {
    exprs_.forget();
    return exprs_.emit(loop::expr_of(dim));
  }
  llvm::Value* argument(Argument which) { return function_->getArg(positions_[which]); }
  llvm::Value* place_in_state(int64_t offset) {
    return builder_.CreateConstInBoundsGEP1_64(llvm::Type::getInt8Ty(context_), argument(kState),
                                               static_cast<uint64_t>(offset));
  }
  /// The live value of size field `i`: int64 fields come first.
  llvm::Value* size_field(size_t i) {
    return field(argument(kIn), 8 * static_cast<int64_t>(i), llvm::Type::getInt64Ty(context_));
  }
  llvm::Value* tensor_field(Argument side, size_t i) {
    const int64_t start = side == kIn ? 8 * static_cast<int64_t>(abi_.sizes.size()) : 0;
    const int64_t bytes = types_.target().pointer_bits / 8;
    return field(argument(side), start + bytes * static_cast<int64_t>(i), pointer_);
  }
  llvm::Value* field(llvm::Value* base, int64_t offset, llvm::Type* type) {
    llvm::Value* at = builder_.CreateConstInBoundsGEP1_64(llvm::Type::getInt8Ty(context_), base,
                                                          static_cast<uint64_t>(offset));
    return builder_.CreateLoad(type, at);
  }

  const loop::Program& program_;
  const loop::EntryPoint& entry_;
  const EntryAbi& abi_;
  const Types& types_;
  const ModuleSymbols& symbols_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::PointerType* pointer_;
  Builder builder_;
  Environment environment_;
  ExprEmitter exprs_;
  llvm::Function* function_ = nullptr;
  unsigned positions_[kArgumentCount] = {};  // among the function's parameters
  llvm::Value* arena_ = nullptr;
  llvm::Value* closure_ = nullptr;  // of the kernel that is shared out
  llvm::Value* user_ = nullptr;
  llvm::Value* parallel_for_ = nullptr;
  llvm::Value* hooked_ = nullptr;               // the context, or null where it has no hook
  int32_t under_way_ = kNoStep;                 // the step that the hooks do not know to be done
  std::map<BufferId, llvm::Value*> arguments_;  // inputs and outputs
  size_t next_step_ = 0;                        // number among all steps of the entry point
};

void EntryEmitter::create_function() {
  llvm::Type* index = types_.index();
  std::vector<llvm::Type*> params;
  const bool present[] = {abi_.has_state, abi_.has_structs, abi_.has_structs, true, true, true};
  for (unsigned i = 0; i < kArgumentCount; ++i) {
    positions_[i] = static_cast<unsigned>(params.size());
    if (present[i]) params.push_back(i == kArenaBytes ? index : pointer_);
  }
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context_), params, false);
  function_ =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, abi_.symbol, module_);
  set_function_attributes(*function_, types_.target());
  const char* names[] = {"state", "in", "out", "arena", "arena_bytes", "context"};
  for (unsigned i = 0; i < kArgumentCount; ++i) {
    if (present[i]) function_->getArg(positions_[i])->setName(names[i]);
  }
  arena_ = argument(kArena);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
}

llvm::Value* EntryEmitter::misaligned(llvm::Value* pointer, int64_t alignment) {
  llvm::Value* bits = builder_.CreatePtrToInt(pointer, types_.index());
  llvm::Constant* mask = llvm::ConstantInt::getSigned(types_.index(), alignment - 1);
  return builder_.CreateIsNotNull(builder_.CreateAnd(bits, mask));
}

/// The abi orders the checks so that a struct is known to be there before its fields are read.
llvm::Value* EntryEmitter::violated(const Check& check) {
  switch (check.kind) {
    case Check::Kind::in_null:
      return builder_.CreateIsNull(argument(kIn));
    case Check::Kind::out_null:
      return builder_.CreateIsNull(argument(kOut));
    case Check::Kind::input_null:
      return builder_.CreateIsNull(tensor_field(kIn, check.field));
    case Check::Kind::output_null:
      return builder_.CreateIsNull(tensor_field(kOut, check.field));
    case Check::Kind::arena_null:
      return builder_.CreateIsNull(arena_);
    case Check::Kind::arena_size:
      return builder_.CreateICmpULT(argument(kArenaBytes),
                                    llvm::ConstantInt::getSigned(types_.index(), check.value));
    case Check::Kind::arena_alignment:
      return misaligned(arena_, check.value);
    case Check::Kind::input_alignment:
      return misaligned(tensor_field(kIn, check.field), check.value);
    case Check::Kind::output_alignment:
      return misaligned(tensor_field(kOut, check.field), check.value);
    case Check::Kind::dimension: {
      const DimRange& range = abi_.sizes[check.field].range;
      llvm::Value* value = size_field(check.field);
      llvm::Type* type = value->getType();
      llvm::Value* low =
          builder_.CreateICmpSLT(value, llvm::ConstantInt::getSigned(type, range.min));
      llvm::Value* high =
          builder_.CreateICmpSGT(value, llvm::ConstantInt::getSigned(type, range.max));
      return builder_.CreateOr(low, high);
    }
    case Check::Kind::state_null:
      return builder_.CreateIsNull(argument(kState));
    case Check::Kind::state_alignment:
      return misaligned(argument(kState), check.value);
    case Check::Kind::state_header:
      return builder_.CreateIsNotNull(
          builder_.CreateCall(symbols_.state_check, {symbols_.state_layout, argument(kState)}));
    case Check::Kind::count_zero:
      return builder_.CreateIsNull(
          builder_.CreateLoad(llvm::Type::getInt32Ty(context_), place_in_state(check.value)));
  }
  BC_CHECK(false, "unknown check of entry point {}", entry_.name);
}

void EntryEmitter::bind_arguments() {
  for (size_t i = 0; i < abi_.sizes.size(); ++i) {
    environment_.values[abi_.sizes[i].symbol] =
        builder_.CreateIntCast(size_field(i), types_.index(), true);
  }
  for (size_t i = 0; i < abi_.inputs.size(); ++i) {
    arguments_[abi_.inputs[i].buffer] = tensor_field(kIn, i);
  }
  for (size_t i = 0; i < abi_.outputs.size(); ++i) {
    arguments_[abi_.outputs[i].buffer] = tensor_field(kOut, i);
  }
}

/// Ends the call when an integer of the input lies outside of its range.
void EntryEmitter::check_range(size_t input) {
  const TensorField& tensor = abi_.inputs[input];
  const loop::ValueRange& range = *tensor.range;
  Dim elements = 1;
  for (const Dim& extent : program_.buffer(tensor.buffer).shape) elements = elements * extent;
  llvm::Value* count = index_value(elements);
  llvm::Type* int64 = llvm::Type::getInt64Ty(context_);
  llvm::Type* element = types_.memory({loop::scalar_of(tensor.element), 1});
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* test = llvm::BasicBlock::Create(context_, "labels", function_);
  llvm::BasicBlock* body = llvm::BasicBlock::Create(context_, "label", function_);
  llvm::BasicBlock* next = llvm::BasicBlock::Create(context_, "labelled", function_);
  builder_.CreateBr(test);
  builder_.SetInsertPoint(test);
  llvm::PHINode* i = builder_.CreatePHI(types_.index(), 2);
  i->addIncoming(llvm::ConstantInt::get(types_.index(), 0), before);
  builder_.CreateCondBr(builder_.CreateICmpSLT(i, count), body, next);
  builder_.SetInsertPoint(body);
  llvm::Value* at = builder_.CreateGEP(element, arguments_.at(tensor.buffer), i);
  const bool is_signed = name_of(tensor.element)[0] == 'i';
  llvm::Value* value = builder_.CreateIntCast(builder_.CreateLoad(element, at), int64, is_signed);
  llvm::Value* outside = builder_.CreateOr(
      builder_.CreateICmpSLT(value, llvm::ConstantInt::getSigned(int64, range.min)),
      builder_.CreateICmpSGT(value, llvm::ConstantInt::getSigned(int64, range.max)));
  if (range.ignore) {
    llvm::Constant* ignored = llvm::ConstantInt::getSigned(int64, *range.ignore);
    outside = builder_.CreateAnd(outside, builder_.CreateICmpNE(value, ignored));
  }
  fail_if(outside, Status::index);
  i->addIncoming(builder_.CreateAdd(i, llvm::ConstantInt::get(types_.index(), 1)),
                 builder_.GetInsertBlock());
  builder_.CreateBr(test);
  builder_.SetInsertPoint(next);
}

/// An exponent of ones is infinity or NaN.
void EntryEmitter::check_finite(const Step& step) {
  end_step();
  const bool is_double = program_.buffer(step.buffers[0]).element == ElementType::f64;
  llvm::Type* type = llvm::Type::getIntNTy(context_, is_double ? 64 : 32);
  llvm::Constant* ones =
      llvm::ConstantInt::get(type, is_double ? UINT64_C(0x7ff0000000000000) : UINT64_C(0x7f800000));
  llvm::Value* bits = builder_.CreateLoad(type, address(step.buffers[0]));
  fail_if(builder_.CreateICmpEQ(builder_.CreateAnd(bits, ones), ones), Status::nonfinite);
}

/// What the caller's bc_context adds to the call, null where there is none.
void EntryEmitter::load_context() {
  const ContextLayout layout(types_.target().pointer_bits / 8);
  llvm::Value* context = argument(kContext);
  llvm::Value* null = llvm::ConstantPointerNull::get(pointer_);
  llvm::BasicBlock* start = builder_.GetInsertBlock();
  llvm::BasicBlock* check = llvm::BasicBlock::Create(context_, "context", function_);
  llvm::BasicBlock* read = llvm::BasicBlock::Create(context_, "members", function_);
  llvm::BasicBlock* join = llvm::BasicBlock::Create(context_, "run", function_);
  builder_.CreateCondBr(builder_.CreateIsNull(context), join, check);
  builder_.SetInsertPoint(check);
  llvm::Value* bytes = field(context, 0, llvm::Type::getInt32Ty(context_));
  llvm::Value* present =
      builder_.CreateICmpUGE(bytes, llvm::ConstantInt::getSigned(bytes->getType(), layout.bytes));
  builder_.CreateCondBr(present, read, join);
  builder_.SetInsertPoint(read);
  llvm::Value* before = builder_.CreateIsNotNull(field(context, layout.before_kernel, pointer_));
  llvm::Value* after = builder_.CreateIsNotNull(field(context, layout.after_kernel, pointer_));
  llvm::Value* hooked = builder_.CreateSelect(builder_.CreateOr(before, after), context, null);
  llvm::Value* loaded[3] = {field(context, layout.user, pointer_),
                            field(context, layout.parallel_for, pointer_), hooked};
  builder_.CreateBr(join);
  builder_.SetInsertPoint(join);
  llvm::Value** members[3] = {&user_, &parallel_for_, &hooked_};
  for (int i = 0; i < 3; ++i) {
    llvm::PHINode* phi = builder_.CreatePHI(pointer_, 3);
    phi->addIncoming(null, start);
    phi->addIncoming(null, check);
    phi->addIncoming(loaded[i], read);
    *members[i] = phi;
  }
}

llvm::Value* EntryEmitter::address(BufferId id) {
  const Buffer& buffer = program_.buffer(id);
  if (buffer.view_of >= 0) {
    llvm::Value* offset = index_value(buffer.view_offset);
    llvm::Type* element = types_.memory({loop::scalar_of(buffer.element), 1});
    return builder_.CreateInBoundsGEP(element, address(buffer.view_of), offset);
  }
  if (buffer.kind == BufferClass::constant) return symbols_.constants.at(id);
  if (buffer.kind == BufferClass::state) {
    BC_CHECK(buffer.offset >= 0, "state {} was not planned", buffer.name);
    return place_in_state(buffer.offset);
  }
  if (buffer.kind == BufferClass::arena) {
    BC_CHECK(buffer.offset >= 0, "buffer {} was not planned", buffer.name);
    return builder_.CreateConstInBoundsGEP1_64(llvm::Type::getInt8Ty(context_), arena_,
                                               static_cast<uint64_t>(buffer.offset));
  }
  const auto found = arguments_.find(id);
  BC_CHECK(found != arguments_.end(), "buffer {} is not an argument of {}", buffer.name,
           entry_.name);
  return found->second;
}

/// Tells the hooks that the step under way is done and that this one begins, in one call: what is
/// tested here, step after step, compilers would make two ways through all of them.
void EntryEmitter::begin_step(int32_t number) {
  const int32_t done = std::exchange(under_way_, number);
  if (done == kNoStep && number == kNoStep) return;
  llvm::Type* int32 = llvm::Type::getInt32Ty(context_);
  builder_.CreateCall(symbols_.hooks, {hooked_, llvm::ConstantInt::getSigned(int32, done),
                                       llvm::ConstantInt::getSigned(int32, number)});
}

/// A step that writes an output the caller may leave out runs only if it is there.
void EntryEmitter::emit_step(const Step& step) {
  const StepAbi& abi = abi_.steps[next_step_++];
  if (step.kind == StepKind::check_finite) return check_finite(step);
  if (step.kind == StepKind::loop) return emit_loop(step);
  if (step.kind == StepKind::branch) return emit_branch(step);
  for (const BufferId id : entry_.optional_outputs) {
    if (!loop::written_buffers(program_, step).contains(id)) continue;
    end_step();
    llvm::BasicBlock* run = llvm::BasicBlock::Create(context_, "wanted", function_);
    llvm::BasicBlock* next = llvm::BasicBlock::Create(context_, "left_out", function_);
    builder_.CreateCondBr(builder_.CreateIsNull(arguments_.at(id)), next, run);
    builder_.SetInsertPoint(run);
    emit_hooked_step(step, abi);
    end_step();
    builder_.CreateBr(next);
    builder_.SetInsertPoint(next);
    return;
  }
  emit_hooked_step(step, abi);
  measure(step);
}

/// The symbols whose values the step has written, taken into their ranges.
void EntryEmitter::measure(const Step& step) {
  if (entry_.extents.empty()) return;
  llvm::Type* int64 = llvm::Type::getInt64Ty(context_);
  for (const BufferId id : loop::written_buffers(program_, step)) {
    const auto extent = entry_.extents.find(id);
    if (extent == entry_.extents.end()) continue;
    const DimRange& range = program_.symbols.at(extent->second);
    llvm::Value* value = builder_.CreateLoad(int64, address(id));
    for (const auto& [bound, is_min] : {std::pair{range.min, true}, {range.max, false}}) {
      llvm::Constant* limit = llvm::ConstantInt::getSigned(int64, bound);
      llvm::Value* outside =
          is_min ? builder_.CreateICmpSLT(value, limit) : builder_.CreateICmpSGT(value, limit);
      value = builder_.CreateSelect(outside, limit, value);
    }
    environment_.values[extent->second] = builder_.CreateIntCast(value, types_.index(), true);
  }
}

void EntryEmitter::emit_steps(const std::vector<Step>& steps) {
  for (const Step& step : steps) emit_step(step);
}

llvm::Value* EntryEmitter::is_true(BufferId id) {
  return builder_.CreateIsNotNull(
      builder_.CreateLoad(llvm::Type::getInt8Ty(context_), address(id)));
}

/// The number of trips as an index: min(max(trips, 0), count).
llvm::Value* EntryEmitter::loop_end(const Step& step) {
  llvm::Value* count = index_value(step.count);
  if (step.buffers[0] < 0) return count;
  llvm::Type* int64 = llvm::Type::getInt64Ty(context_);
  llvm::Value* trips = builder_.CreateLoad(int64, address(step.buffers[0]));
  llvm::Constant* zero = llvm::ConstantInt::get(int64, 0);
  trips = builder_.CreateSelect(builder_.CreateICmpSLT(trips, zero), zero, trips);
  llvm::Value* wide = builder_.CreateIntCast(count, int64, true);
  llvm::Value* least = builder_.CreateSelect(builder_.CreateICmpSLT(trips, wide), trips, wide);
  return builder_.CreateIntCast(least, types_.index(), true);
}

/// Hooks are called for the steps inside, in every trip.
void EntryEmitter::emit_loop(const Step& step) {
  end_step();
  llvm::Value* end = loop_end(step);
  llvm::Constant* one = llvm::ConstantInt::get(types_.index(), 1);
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* test = llvm::BasicBlock::Create(context_, "loop", function_);
  llvm::BasicBlock* body = llvm::BasicBlock::Create(context_, "trip", function_);
  llvm::BasicBlock* next = llvm::BasicBlock::Create(context_, "looped", function_);
  builder_.CreateBr(test);
  builder_.SetInsertPoint(test);
  llvm::PHINode* trip = builder_.CreatePHI(types_.index(), 2);
  trip->addIncoming(llvm::ConstantInt::get(types_.index(), 0), before);
  llvm::Value* runs = builder_.CreateICmpSLT(trip, end);
  if (step.buffers[1] >= 0) {
    llvm::BasicBlock* asked = llvm::BasicBlock::Create(context_, "condition", function_);
    builder_.CreateCondBr(runs, asked, next);
    builder_.SetInsertPoint(asked);
    runs = is_true(step.buffers[1]);
  }
  builder_.CreateCondBr(runs, body, next);
  builder_.SetInsertPoint(body);
  environment_.values[step.symbol] =
      step.reverse ? builder_.CreateSub(builder_.CreateSub(end, trip), one) : trip;
  emit_steps(step.body);
  end_step();
  environment_.values.erase(step.symbol);
  trip->addIncoming(builder_.CreateAdd(trip, one), builder_.GetInsertBlock());
  builder_.CreateBr(test);
  builder_.SetInsertPoint(next);
}

void EntryEmitter::emit_branch(const Step& step) {
  end_step();
  llvm::BasicBlock* then = llvm::BasicBlock::Create(context_, "then", function_);
  llvm::BasicBlock* otherwise = llvm::BasicBlock::Create(context_, "else", function_);
  llvm::BasicBlock* next = llvm::BasicBlock::Create(context_, "joined", function_);
  builder_.CreateCondBr(is_true(step.buffers[0]), then, otherwise);
  builder_.SetInsertPoint(then);
  emit_steps(step.body);
  end_step();
  builder_.CreateBr(next);
  builder_.SetInsertPoint(otherwise);
  emit_steps(step.otherwise);
  end_step();
  builder_.CreateBr(next);
  builder_.SetInsertPoint(next);
}

void EntryEmitter::emit_hooked_step(const Step& step, const StepAbi& abi) {
  begin_step(abi.number);
  if (step.kind == StepKind::copy) {
    emit_copy(step);
  } else {
    std::vector<llvm::Value*> args;
    for (const BufferId id : step.buffers) args.push_back(address(id));
    for (const Dim& size : step.sizes) args.push_back(index_value(size));
    llvm::Function* kernel = symbols_.kernels.at(step.kernel);
    BC_CHECK(kernel->arg_size() == args.size(), "a call of kernel {} has {} arguments, not {}",
             step.kernel, args.size(), kernel->arg_size());
    if (step.grain > 0) {
      emit_shared_call({parallel_for_, user_, closure_, step.grain}, *kernel, args, types_.target(),
                       builder_);
    } else {
      builder_.CreateCall(kernel, args);
    }
  }
}

/// Room for the largest closure of the entry point's steps.
void EntryEmitter::allocate_closure() {
  std::vector<const llvm::Function*> kernels;
  for (const Step* step : loop::flat_steps(entry_.steps)) {
    if (step->grain > 0) kernels.push_back(symbols_.kernels.at(step->kernel));
  }
  if (!kernels.empty()) closure_ = closure_room(kernels, *function_);
}

void EntryEmitter::emit_copy(const Step& step) {
  const Buffer& from = program_.buffer(step.buffers[0]);
  Dim bytes = byte_size(from.element);
  for (const Dim& dim : from.shape) bytes = bytes * dim;
  llvm::Value* source = address(step.buffers[0]);
  llvm::Value* target = address(step.buffers[1]);
  builder_.CreateMemMove(target, llvm::Align(1), source, llvm::Align(1), index_value(bytes));
}

}  // namespace

void emit_entry(const loop::Program& program, const loop::EntryPoint& entry, const EntryAbi& abi,
                const Types& types, const ModuleSymbols& symbols, llvm::Module& module) {
  EntryEmitter(program, entry, abi, types, symbols, module).emit();
}

}  // namespace backcast::llvm_backend
