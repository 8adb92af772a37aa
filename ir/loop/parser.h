// Statements, kernels and math functions of the text form. Internal to ir/loop.
#pragma once

#include "ir/loop/parser_base.h"
#include "ir/loop/program.h"
#include "ir/loop/text.h"

namespace backcast::loop {

class KernelParser {
 public:
  explicit KernelParser(TokenReader& in) : in_(in), exprs_(in, scope_) {}

  Kernel kernel();          // after `kernel`
  MathFunction function();  // after `function`
  std::vector<std::string> names();
  /// The position of the next word among these.
  size_t one_of(const std::vector<std::string_view>& words);

 private:
  std::vector<Stmt> statements(int nesting);
  Stmt body(int nesting);
  Stmt statement(int nesting);
  Stmt let();
  Stmt for_loop(ForKind kind, int nesting);
  Stmt if_branch(int nesting);
  Stmt store();
  Stmt prefetch();
  Stmt alloc();
  Stmt definition();
  std::vector<Axis> axes();
  void declare_accumulators();
  Accumulator accumulator_head();
  Accumulator accumulator();
  DefinitionOutput output();
  BufferParam param();
  Expr index() { return expect_type(Type{}); }
  Expr condition() { return expect_type({Scalar::boolean, 1}); }
  Expr expect_type(Type type);

  TokenReader& in_;
  Scope scope_;
  ExprParser exprs_;
};

}  // namespace backcast::loop
