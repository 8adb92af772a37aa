// See kernel_emitter.h. Allocations become entry-block variables, which SROA turns into values.
#include "backend/llvm/kernel_emitter.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "ir/graph/error.h"
#include "ir/loop/byte_tables.h"
#include "ir/loop/visit.h"

namespace backcast::llvm_backend {
namespace {

using loop::Expr;
using loop::ExprKind;
using loop::ExprNode;
using loop::ForKind;
using loop::Stmt;
using loop::StmtKind;
using loop::StmtNode;

/// Names of register allocations that are only ever accessed element by element, at constant
/// indices.
std::set<std::string> elementwise_registers(const Stmt& body) {
  std::map<std::string, loop::Type> types;
  std::set<std::string> result;
  loop::visit(
      body,
      [&](const Stmt& stmt) {
        if (stmt->kind == StmtKind::alloc && stmt->memory == loop::Memory::registers) {
          types[stmt->name] = stmt->type;
          result.insert(stmt->name);
        }
      },
      [](const Expr&) {});
  const auto check = [&](const std::string& name, loop::Type type, const Expr& index) {
    int64_t i = 0;
    const auto found = types.find(name);
    if (found == types.end()) return;
    if (type != found->second || !loop::as_constant(index, i)) result.erase(name);
  };
  loop::visit(
      body,
      [&](const Stmt& stmt) {
        if (stmt->kind == StmtKind::store) {
          check(stmt->name, stmt->exprs[1].type(), stmt->exprs[0]);
        }
      },
      [&](const Expr& expr) {
        if (expr->kind == ExprKind::load) check(expr->name, expr.type(), expr->args[0]);
      });
  return result;
}

class KernelEmitter {
 public:
  KernelEmitter(const Types& types, const loop::Kernel& kernel, llvm::Function& function,
                const FunctionLookup& functions)
      : types_(types),
        kernel_(kernel),
        function_(function),
        builder_(llvm::BasicBlock::Create(function.getContext(), "entry", &function)),
        registers_(elementwise_registers(kernel.body)),
        exprs_(builder_, types, environment_, functions) {}

  void emit() {
    unsigned argument = 0;
    for (const loop::BufferParam& buffer : kernel_.buffers) {
      environment_.places[buffer.name] = {
          function_.getArg(argument++), {buffer.element, 1}, {}, loop::is_byte_table(buffer)};
    }
    for (const std::string& size : kernel_.sizes) {
      environment_.values[size] = function_.getArg(argument++);
      environment_.naturals.insert(size);
    }
    llvm::Value* const before = kernel_.flushes ? flush_subnormals() : nullptr;
    emit(kernel_.body);
    if (before) builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {before});
    builder_.CreateRetVoid();
  }

 private:
  llvm::Value* flush_subnormals();
  void emit(const Stmt& stmt);
  void emit_alloc(const StmtNode& stmt);
  void end_arrays(const StmtNode& block);
  void emit_for(const StmtNode& stmt);
  void emit_unrolled(const StmtNode& stmt, llvm::Value* begin, int64_t extent);
  void emit_while(const StmtNode& stmt);
  void emit_branch(const StmtNode& stmt);

  /// The value of an expression of a statement: shared nodes are known within it only.
  llvm::Value* value(const Expr& expr) {
    exprs_.forget();
    return exprs_.emit(expr);
  }
  llvm::BasicBlock* new_block(const char* name) {
    return llvm::BasicBlock::Create(function_.getContext(), name, &function_);
  }

  const Types& types_;
  const loop::Kernel& kernel_;
  llvm::Function& function_;
  Builder builder_;
  std::set<std::string> registers_;
  Environment environment_;
  ExprEmitter exprs_;
};

void KernelEmitter::emit(const Stmt& stmt) {
  switch (stmt->kind) {
    case StmtKind::block:
      for (const Stmt& child : stmt->body) emit(child);
      return end_arrays(*stmt);
    case StmtKind::let:
      environment_.values[stmt->name] = value(stmt->exprs[0]);
      if (is_natural(stmt->exprs[0], environment_)) environment_.naturals.insert(stmt->name);
      return;
    case StmtKind::for_loop:
      return emit_for(*stmt);
    case StmtKind::while_loop:
      return emit_while(*stmt);
    case StmtKind::if_branch:
      return emit_branch(*stmt);
    case StmtKind::store:
      exprs_.forget();
      return exprs_.emit_store(stmt->name, stmt->exprs[0], stmt->exprs[1]);
    case StmtKind::alloc:
      return emit_alloc(*stmt);
    case StmtKind::prefetch:
      return exprs_.emit_prefetch(stmt->name, stmt->exprs[0], stmt->cache);
    case StmtKind::define:
      break;
  }
  BC_CHECK(false, "kernel {}: a definition must have been lowered before code is emitted",
           kernel_.name);
}

/// Arrays of blocks that follow one another share their place on the stack.
void KernelEmitter::end_arrays(const StmtNode& block) {
  for (const Stmt& child : block.body) {
    if (child->kind != StmtKind::alloc || registers_.contains(child->name)) continue;
    builder_.CreateLifetimeEnd(environment_.places.at(child->name).pointer);
  }
}

/// From here on; returns where the control word lies as it was.
llvm::Value* KernelEmitter::flush_subnormals() {
  llvm::AllocaInst* before = builder_.CreateAlloca(builder_.getInt32Ty());
  llvm::AllocaInst* meanwhile = builder_.CreateAlloca(builder_.getInt32Ty());
  builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_stmxcsr, {}, {before});
  llvm::Value* word = builder_.CreateLoad(builder_.getInt32Ty(), before);
  builder_.CreateStore(builder_.CreateOr(word, kFlushSubnormals), meanwhile);
  builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {meanwhile});
  return before;
}

void KernelEmitter::emit_alloc(const StmtNode& stmt) {
  int64_t count = 0;
  BC_CHECK(loop::as_constant(stmt.exprs[0], count), "kernel {}: {} has no constant size",
           kernel_.name, stmt.name);
  llvm::BasicBlock& entry = function_.getEntryBlock();
  Builder at_entry(&entry, entry.begin());
  llvm::Type* type = types_.memory(stmt.type);
  Place place{nullptr, stmt.type, {}};
  if (registers_.contains(stmt.name)) {
    for (int64_t i = 0; i < count; ++i) place.variables.push_back(at_entry.CreateAlloca(type));
  } else {
    llvm::Type* array = llvm::ArrayType::get(type, static_cast<uint64_t>(count));
    llvm::AllocaInst* place_on_stack = at_entry.CreateAlloca(array);
    // Like the arena's buffers: vectors do not straddle lines.
    if (types_.target().vector_bits > 0) {
      place_on_stack->setAlignment(
          std::max(place_on_stack->getAlign(), llvm::Align(types_.target().vector_bits / 8)));
    }
    builder_.CreateLifetimeStart(place_on_stack);
    place.pointer = place_on_stack;
  }
  environment_.places[stmt.name] = std::move(place);
}

void KernelEmitter::emit_unrolled(const StmtNode& stmt, llvm::Value* begin, int64_t extent) {
  for (int64_t i = 0; i < extent; ++i) {
    llvm::Constant* step = llvm::ConstantInt::getSigned(types_.index(), i);
    environment_.values[stmt.name] = builder_.CreateAdd(begin, step);
    emit(stmt.body[0]);
  }
}

/// preheader → body → … → latch → body | exit; an empty range skips the body.
void KernelEmitter::emit_for(const StmtNode& stmt) {
  llvm::Value* begin = value(stmt.exprs[0]);
  if (is_natural(stmt.exprs[0], environment_)) environment_.naturals.insert(stmt.name);
  int64_t extent = 0;
  const bool constant = loop::as_constant(stmt.exprs[1], extent);
  if (constant && extent <= 0) return;
  if (constant && (stmt.for_kind == ForKind::unrolled || extent == 1)) {
    return emit_unrolled(stmt, begin, extent);
  }
  llvm::Value* end = builder_.CreateAdd(begin, value(stmt.exprs[1]));
  llvm::BasicBlock* preheader = new_block("preheader");
  llvm::BasicBlock* body = new_block("for");
  llvm::BasicBlock* exit = new_block("done");
  if (constant) {
    builder_.CreateBr(preheader);
  } else {
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), preheader, exit);
  }
  builder_.SetInsertPoint(preheader);
  builder_.CreateBr(body);
  builder_.SetInsertPoint(body);
  llvm::PHINode* variable = builder_.CreatePHI(types_.index(), 2);
  variable->addIncoming(begin, preheader);
  environment_.values[stmt.name] = variable;
  emit(stmt.body[0]);
  llvm::Constant* one = llvm::ConstantInt::get(types_.index(), 1);
  llvm::Value* next = builder_.CreateNSWAdd(variable, one);
  variable->addIncoming(next, builder_.GetInsertBlock());
  // A test for inequality lets the code generator count down to zero.
  builder_.CreateCondBr(builder_.CreateICmpNE(next, end), body, exit);
  // Blocks in the order of the text: the printed module reads like the kernel.
  exit->moveAfter(builder_.GetInsertBlock());
  builder_.SetInsertPoint(exit);
}

void KernelEmitter::emit_while(const StmtNode& stmt) {
  llvm::BasicBlock* header = new_block("while");
  llvm::BasicBlock* body = new_block("do");
  llvm::BasicBlock* exit = new_block("done");
  builder_.CreateBr(header);
  builder_.SetInsertPoint(header);
  builder_.CreateCondBr(value(stmt.exprs[0]), body, exit);
  builder_.SetInsertPoint(body);
  emit(stmt.body[0]);
  builder_.CreateBr(header);
  builder_.SetInsertPoint(exit);
}

void KernelEmitter::emit_branch(const StmtNode& stmt) {
  const bool has_else = stmt.body.size() > 1 && stmt.body[1];
  llvm::BasicBlock* then_block = new_block("then");
  llvm::BasicBlock* else_block = has_else ? new_block("else") : nullptr;
  llvm::BasicBlock* exit = new_block("join");
  builder_.CreateCondBr(value(stmt.exprs[0]), then_block, has_else ? else_block : exit);
  builder_.SetInsertPoint(then_block);
  emit(stmt.body[0]);
  builder_.CreateBr(exit);
  if (has_else) {
    builder_.SetInsertPoint(else_block);
    emit(stmt.body[1]);
    builder_.CreateBr(exit);
  }
  builder_.SetInsertPoint(exit);
}

}  // namespace

void emit_kernel_body(const Types& types, const loop::Kernel& kernel, llvm::Function& function,
                      const FunctionLookup& functions) {
  KernelEmitter(types, kernel, function, functions).emit();
}

void emit_math_body(const Types& types, const loop::MathFunction& math, llvm::Function& function,
                    const FunctionLookup& functions) {
  Builder builder(llvm::BasicBlock::Create(function.getContext(), "entry", &function));
  Environment environment;
  unsigned argument = 0;
  for (const loop::MathFunction::Param& param : math.params) {
    environment.values[param.name] = function.getArg(argument++);
  }
  // One emitter for all: a pure function changes nothing that is known.
  ExprEmitter exprs(builder, types, environment, functions);
  for (const auto& [name, expr] : math.lets) environment.values[name] = exprs.emit(expr);
  builder.CreateRet(exprs.emit(math.result));
}

}  // namespace backcast::llvm_backend
