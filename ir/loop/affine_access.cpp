// See affine_access.h.
#include "ir/loop/affine_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/graph/dim_math.h"
#include "ir/loop/text.h"
#include "ir/loop/visit.h"

namespace backcast::loop {

Affine plus(Affine a, const Affine& b, int64_t scale) {
  a.constant += scale * b.constant;
  for (const auto& [name, c] : b.terms) {
    if ((a.terms[name] += scale * c) == 0) a.terms.erase(name);
  }
  return a;
}

std::optional<Places> within_period(Places places, int64_t modulus) {
  if (modulus == 0) return places;
  const int64_t period = math::floor_div(places.min, modulus);
  if (math::floor_div(places.max, modulus) != period) return std::nullopt;
  return Places{places.min - period * modulus, places.max - period * modulus};
}

AffineAccesses::AffineAccesses(const Kernel& kernel) : kernel_(kernel) {
  loop::visit(
      kernel.body,
      [&](const Stmt& s) {
        if (s->kind == StmtKind::for_loop) note_range(s->name, s->exprs[0], s->exprs[1]);
        if (s->kind != StmtKind::define) return;
        for (const Axis& axis : s->definition->axes) note_range(axis.name, 0, axis.extent);
        for (const Axis& axis : s->definition->reduce_axes) note_range(axis.name, 0, axis.extent);
      },
      nullptr);
}

void AffineAccesses::note_range(const std::string& variable, const Expr& begin,
                                const Expr& extent) {
  int64_t first = 0, count = 0;
  if (!as_constant(begin, first) || !as_constant(extent, count)) return;
  ranges_[variable] = {first, first + std::max<int64_t>(count, 1) - 1};
}

std::optional<Places> AffineAccesses::range_of(const std::string& variable) const {
  const auto found = ranges_.find(variable);
  return found == ranges_.end() ? std::nullopt : std::optional<Places>(found->second);
}

void AffineAccesses::visit(const Stmt& stmt,
                           const std::function<void(const std::string&, const AffineAccess&)>& f) {
  if (!stmt) return;
  if (stmt->kind == StmtKind::for_loop) note_range(stmt->name, stmt->exprs[0], stmt->exprs[1]);
  for (const Expr& e : stmt->exprs) visit_loads(e, f);
  if (stmt->kind == StmtKind::store && kernel_.find(stmt->name)) {
    f(stmt->name, access_to(stmt->exprs[0], stmt->exprs[1].type(), true));
  }
  if (stmt->kind == StmtKind::define) {
    const Definition& definition = *stmt->definition;
    for (const Accumulator& acc : definition.accumulators) {
      visit_loads(acc.init, f);
      visit_loads(acc.value, f);
    }
    for (const DefinitionOutput& output : definition.outputs) {
      for (const Expr& index : output.indices) visit_loads(index, f);
      visit_loads(output.value, f);
      f(output.buffer, access_to(flat(output.buffer, output.indices), output.value.type(), true));
    }
  }
  if (stmt->kind == StmtKind::let) {
    if (std::optional<Affine> value = affine(stmt->exprs[0])) values_[stmt->name] = *value;
  }
  for (const Stmt& part : stmt->body) visit(part, f);
}

void AffineAccesses::visit_loads(
    const Expr& e, const std::function<void(const std::string&, const AffineAccess&)>& f) {
  loop::visit(e, [&](const Expr& node) {
    if (node->kind != ExprKind::load && node->kind != ExprKind::access) return;
    if (!kernel_.find(node->name)) return;
    const Expr index = node->kind == ExprKind::load ? node->args[0] : flat(node->name, node->args);
    f(node->name, access_to(index, node.type(), false));
  });
}

Expr AffineAccesses::flat(const std::string& parameter, const std::vector<Expr>& indices) const {
  return flat_index(kernel_.find(parameter)->shape, indices);
}

AffineAccess AffineAccesses::access_to(const Expr& index, Type type, bool is_store) {
  AffineAccess access{is_store, std::nullopt, type.lanes};
  if (!index.type().is_vector()) access.index = affine(index);
  if (index->kind != ExprKind::ramp) return access;
  // Lanes that do not lie one behind another count like a loop.
  access.width = 1;
  access.index = affine(index->args[0]);
  int64_t stride = 0;
  if (!as_constant(index->args[1], stride)) access.index.reset();
  if (!access.index) return access;
  const std::string lane = fmt::format("lane of {}", index.type().lanes);
  ranges_[lane] = {0, index.type().lanes - 1};
  access.index = plus(*access.index, {0, {{lane, 1}}}, stride);
  return access;
}

/// Whether it is made of sizes, by more than sums: the same in all iterations of all loops.
bool AffineAccesses::is_size(const Expr& e) const {
  constexpr std::array kBeyondSums{Op::floor_div, Op::floor_mod, Op::min, Op::max};
  if (std::ranges::find(kBeyondSums, e->op) == kBeyondSums.end()) return false;
  bool varies = false;
  loop::visit(e, [&](const Expr& part) {
    const bool is_size = part->kind == ExprKind::var &&
                         std::ranges::find(kernel_.sizes, part->name) != kernel_.sizes.end();
    varies =
        varies || !(is_size || part->kind == ExprKind::binary || part->kind == ExprKind::constant);
  });
  return !varies;
}

std::optional<Affine> AffineAccesses::affine(const Expr& e) const {
  int64_t value = 0;
  if (as_constant(e, value)) return Affine{value, {}};
  if (e.type() != Type{Scalar::index, 1}) return std::nullopt;
  if (e->kind == ExprKind::var) {
    const auto known = values_.find(e->name);
    return known != values_.end() ? known->second : Affine{0, {{e->name, 1}}};
  }
  if (e->kind != ExprKind::binary) return std::nullopt;
  if (is_size(e)) return Affine{0, {{print(e), 1}}};
  const std::optional<Affine> a = affine(e->args[0]), b = affine(e->args[1]);
  if (!a || !b) return std::nullopt;
  if (e->op == Op::add) return plus(*a, *b, 1);
  if (e->op == Op::sub) return plus(*a, *b, -1);
  if (e->op != Op::mul) return std::nullopt;
  if (a->terms.empty()) return plus({}, *b, a->constant);
  if (b->terms.empty()) return plus({}, *a, b->constant);
  return std::nullopt;
}

std::optional<Places> AffineAccesses::rest(const AffineAccess& access, int64_t modulus,
                                           const std::string& skipped) const {
  Places places{access.index->constant, access.index->constant + access.width - 1};
  for (const auto& [name, c] : access.index->terms) {
    if (name == skipped || (modulus != 0 && c % modulus == 0)) continue;
    const std::optional<Places> range = range_of(name);
    if (!range) return std::nullopt;
    places.min += c * (c > 0 ? range->min : range->max);
    places.max += c * (c > 0 ? range->max : range->min);
  }
  return places;
}

}  // namespace backcast::loop
