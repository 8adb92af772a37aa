#include "ir/loop/code_size.h"

#include <functional>

#include "ir/loop/visit.h"

namespace backcast::loop {
namespace {

constexpr int64_t kLoop = 4;  // counter, comparison, jump, a pointer
constexpr int64_t kCall = 8;  // arguments

int64_t size_of(const Expr& e) {
  switch (e->kind) {
    case ExprKind::constant:
    case ExprKind::var:
      return 0;
    case ExprKind::load:
      return 1;  // addresses are kept or folded
    default:
      break;
  }
  int64_t sum = e->type.scalar == Scalar::index ? 0 : 1;
  for (const Expr& arg : e->args) sum += size_of(arg);
  return sum;
}

int64_t size_of(const Stmt& stmt) {
  int64_t sum = 0;
  for (const Stmt& s : stmt->body) sum += size_of(s);
  switch (stmt->kind) {
    case StmtKind::for_loop: {
      const Expr& extent = stmt->exprs[1];
      const bool repeats =
          stmt->for_kind == ForKind::unrolled && extent->kind == ExprKind::constant;
      return repeats ? sum * extent->int_value : sum + kLoop;
    }
    case StmtKind::store:
      return sum + 1 + size_of(stmt->exprs[1]);
    case StmtKind::let:
      return sum + size_of(stmt->exprs[0]);
    case StmtKind::if_branch:
    case StmtKind::while_loop:
      return sum + 1 + size_of(stmt->exprs[0]);
    default:
      return sum;
  }
}

}  // namespace

int64_t code_size(const Program& program) {
  int64_t sum = 0;
  for (const auto& [name, kernel] : program.kernels) sum += kCall + size_of(kernel.body);
  return sum;
}

}  // namespace backcast::loop
