// Lowering of linear systems: elimination with partial pivoting on a copy of the matrix, in place
// in the result. A zero pivot divides by zero, which floats answer with infinities and NaNs.
#include <fmt/format.h>

#include "ir/ops/ops.h"
#include "passes/lower/rule_table.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::Op;
using loop::Stmt;

/// Two matrices (their rows of n and m elements) of one system, at offsets that are variables.
struct System {
  loop::Type type;
  Expr n, m;

  Expr a_at(const Expr& row, const Expr& column) const {
    return loop::var("a_start") + row * n + column;
  }
  Expr x_at(const Expr& row, const Expr& column) const {
    return loop::var("x_start") + row * m + column;
  }
  Expr a(const Expr& row, const Expr& column) const {
    return loop::load(type, "scratch0", a_at(row, column));
  }
  Expr x(const Expr& row, const Expr& column) const {
    return loop::load(type, "out0", x_at(row, column));
  }
};

/// for variable = begin … end-1
Stmt count(const std::string& variable, Expr begin, const Expr& end, std::vector<Stmt> body) {
  const Expr extent = end - begin;
  return loop::for_loop(variable, std::move(begin), extent, loop::block(std::move(body)));
}

Stmt swap(const std::string& buffer, loop::Type type, const Expr& one, const Expr& other,
          const std::string& name) {
  return loop::block({loop::let(name, loop::load(type, buffer, one)),
                      loop::store(buffer, one, loop::load(type, buffer, other)),
                      loop::store(buffer, other, loop::var(name, type))});
}

/// Row `pivot`, the first below k with the largest magnitude in column k, changes places with k.
std::vector<Stmt> choose_pivot(const System& s) {
  const Expr k = loop::var("k"), i = loop::var("i");
  const auto reg = [](const std::string& name, loop::Type type) {
    return loop::load(type, name, Expr(0));
  };
  const loop::Type index{};
  const Expr magnitude = loop::var("magnitude", s.type);
  const Stmt search =
      count("i", k + Expr(1), s.n,
            {loop::let("magnitude", loop::unary(Op::abs, s.a(i, k))),
             loop::if_branch(loop::binary(Op::gt, magnitude, reg("largest", s.type)),
                             loop::block({loop::store("largest", Expr(0), magnitude),
                                          loop::store("pivot_row", Expr(0), i)}))});
  const Expr pivot = loop::var("pivot");
  const Expr c = loop::var("swap_a"), d = loop::var("swap_x");
  const Stmt swaps =
      loop::block({count("swap_a", Expr(0), s.n,
                         {swap("scratch0", s.type, s.a_at(k, c), s.a_at(pivot, c), "kept_a")}),
                   count("swap_x", Expr(0), s.m,
                         {swap("out0", s.type, s.x_at(k, d), s.x_at(pivot, d), "kept_x")})});
  return {loop::alloc("largest", s.type, Expr(1), loop::Memory::registers),
          loop::alloc("pivot_row", index, Expr(1), loop::Memory::registers),
          loop::store("largest", Expr(0), loop::unary(Op::abs, s.a(k, k))),
          loop::store("pivot_row", Expr(0), k),
          search,
          loop::let("pivot", reg("pivot_row", index)),
          loop::if_branch(loop::binary(Op::ne, pivot, k), swaps)};
}

/// Subtracts row k from the rows below it, so that column k ends there.
Stmt eliminate_below(const System& s) {
  const Expr k = loop::var("k"), row = loop::var("row");
  const Expr factor = loop::var("factor", s.type);
  const Expr c = loop::var("below_a"), d = loop::var("below_x");
  return count("row", k + Expr(1), s.n,
               {loop::let("factor", loop::binary(Op::div, s.a(row, k), s.a(k, k))),
                count("below_a", k, s.n,
                      {loop::store("scratch0", s.a_at(row, c), s.a(row, c) - factor * s.a(k, c))}),
                count("below_x", Expr(0), s.m,
                      {loop::store("out0", s.x_at(row, d), s.x(row, d) - factor * s.x(k, d))})});
}

/// From the last row up: x[k] = (x[k] - Σ a[k, j] x[j]) / a[k, k].
Stmt substitute_back(const System& s) {
  const Expr k = loop::var("up"), c = loop::var("c"), j = loop::var("j");
  const Expr sum = loop::load(s.type, "sum", Expr(0));
  return count("step", Expr(0), s.n,
               {loop::let("up", s.n - Expr(1) - loop::var("step")),
                count("c", Expr(0), s.m,
                      {loop::alloc("sum", s.type, Expr(1), loop::Memory::registers),
                       loop::store("sum", Expr(0), s.x(k, c)),
                       count("j", k + Expr(1), s.n,
                             {loop::store("sum", Expr(0), sum - s.a(k, j) * s.x(j, c))}),
                       loop::store("out0", s.x_at(k, c), loop::binary(Op::div, sum, s.a(k, k)))})});
}

Stmt copy(loop::Type type, const std::string& from, const std::string& to, const Expr& elements) {
  const Expr at = loop::var("copy_" + to);
  return count("copy_" + to, Expr(0), elements, {loop::store(to, at, loop::load(type, from, at))});
}

void lower_solve(KernelBuilder& k) {
  const Shape& a = k.operand(0).shape;
  const Shape& b = k.operand(1).shape;
  const System s{compute_type(k.result().element), loop::expr_of(a.back()),
                 loop::expr_of(b.back())};
  k.add_scratch(k.operand(0));
  Dim systems = 1;
  for (size_t d = 0; d + 2 < a.size(); ++d) systems = systems * a[d];
  std::vector<Stmt> eliminate = choose_pivot(s);
  eliminate.push_back(eliminate_below(s));
  const Expr system = loop::var("system");
  k.statement(copy(s.type, "a0", "scratch0", loop::expr_of(k.operand(0).element_count())));
  k.statement(copy(s.type, "a1", "out0", loop::expr_of(k.operand(1).element_count())));
  k.statement(
      count("system", Expr(0), loop::expr_of(systems),
            {loop::let("a_start", system * s.n * s.n), loop::let("x_start", system * s.n * s.m),
             count("k", Expr(0), s.n, std::move(eliminate)), substitute_back(s)}));
}

const LowerRow kRows[] = {
    {&ops::solve, lower_solve},
};

}  // namespace

std::span<const LowerRow> solve_lowering() { return kRows; }

}  // namespace backcast
