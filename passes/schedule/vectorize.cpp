#include "passes/schedule/vectorize.h"

#include "ir/graph/error.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {

using loop::Expr;
using loop::ExprKind;
using loop::ExprNode;

Expr Vectorizer::index(const Expr& flat) const {
  // An index that depends on the axis in another way than +1 per lane: one index per lane.
  return loop::rewrite(flat, [&](const Expr& e) -> Expr {
    if (e->kind == ExprKind::var && e->name == axis) return loop::ramp(base, Expr(1), lanes);
    return e;
  });
}

Expr Vectorizer::read(const Expr& flat, const std::string& buffer, loop::Type type) const {
  if (axis.empty() || lanes == 1) {
    return loop::load(type, buffer, axis.empty() ? flat : loop::substitute(flat, {{axis, base}}));
  }
  std::optional<int64_t> step = coefficient(flat, axis);
  if (step && *step == 0) return loop::load(type, buffer, flat);
  if (step && *step == 1) {
    return loop::load(type.with_lanes(lanes), buffer, loop::substitute(flat, {{axis, base}}));
  }
  return loop::load(type.with_lanes(lanes), buffer, index(flat));
}

/// One value for each of the splits, again and again.
Expr Vectorizer::read_splits(const Expr& flat, const std::string& buffer, loop::Type type) const {
  std::vector<int32_t> taken;
  for (int32_t lane = 0; lane < lanes; ++lane) taken.push_back(lane % splits);
  return loop::shuffle({loop::load(type.with_lanes(splits), buffer, flat)}, taken);
}

bool Vectorizer::depends_on_sum(const Expr& e) const {
  bool found = false;
  loop::visit(e, [&](const Expr& part) {
    found = found || (part->kind == ExprKind::var && static_cast<bool>(accumulator(part->name)));
  });
  return found;
}

Expr Vectorizer::read_indirect(const Expr& flat, const std::string& buffer, loop::Type type,
                               const Bindings& place) const {
  // Running an index binds the axis as well: what comes back is final.
  Vectorizer first_lane = *this;
  first_lane.lanes = 1;
  std::optional<int64_t> step = axis.empty() ? 0 : coefficient(flat, axis);
  if (depends_on_sum(flat)) step.reset();  // each lane has its own
  if (lanes == 1 || (step && *step == 0)) {
    return loop::load(type, buffer, first_lane.run(flat, place));
  }
  bool contiguous = step && *step == 1;
  return loop::load(type.with_lanes(lanes), buffer,
                    contiguous ? first_lane.run(flat, place) : run(flat, place));
}

Expr Vectorizer::store_index(const Expr& flat) const {
  if (axis.empty() || lanes == 1)
    return axis.empty() ? flat : loop::substitute(flat, {{axis, base}});
  std::optional<int64_t> step = coefficient(flat, axis);
  if (step && *step == 1) return loop::substitute(flat, {{axis, base}});
  return index(flat);
}

Expr Vectorizer::run(const Expr& e, const Bindings& place) const {
  const ExprNode& node = *e;
  switch (node.kind) {
    case ExprKind::constant:
      return e;
    case ExprKind::var: {
      if (Expr acc = accumulator(node.name)) return acc;
      if (!axis.empty() && node.name == axis) {
        return lanes > 1 ? loop::ramp(base, Expr(1), lanes) : base;
      }
      auto bound = place.find(node.name);
      return bound == place.end() ? e : bound->second;
    }
    case ExprKind::access: {
      if (is_packed(node.name)) return packed_load(node.name, node.type, place);
      const loop::BufferParam* param = kernel->find(node.name);
      BC_CHECK(param, "no buffer {}", node.name);
      Expr flat = loop::flat_index(param->shape, node.args);
      if (reads_memory(flat) || depends_on_sum(flat))
        return read_indirect(flat, node.name, node.type, place);
      if (splits > 1 && !mentions(flat, axis) && coefficient(flat, split_axis) == 1) {
        return read_splits(loop::substitute(flat, place), node.name, node.type);
      }
      if (turned_load) {
        if (Expr turned = turned_load(node.name, node.type, flat)) return turned;
      }
      return read(loop::substitute(flat, place), node.name, node.type);
    }
    default:
      break;
  }
  std::vector<Expr> args;
  int32_t widest = 1;
  for (const Expr& arg : node.args) {
    args.push_back(run(arg, place));
    widest = std::max(widest, args.back().type().lanes);
  }
  BC_CHECK(node.kind != ExprKind::if_then_else || args[0].type().lanes == 1,
           "a lazy condition depends on the vector axis {}", axis);
  if (widest > 1) {
    for (size_t i = 0; i < args.size(); ++i) {
      bool lazy_condition = node.kind == ExprKind::if_then_else && i == 0;
      if (args[i].type().lanes == 1 && !lazy_condition) args[i] = loop::broadcast(args[i], widest);
    }
  }
  switch (node.kind) {
    case ExprKind::unary:
      return loop::unary(node.op, args[0]);
    case ExprKind::binary:
      return loop::binary(node.op, args[0], args[1]);
    case ExprKind::fma:
      return loop::fma(args[0], args[1], args[2]);
    case ExprKind::select:
      return loop::select(args[0], args[1], args[2]);
    case ExprKind::if_then_else:
      return loop::if_then_else(args[0], args[1], args[2]);
    case ExprKind::cast:
      return loop::cast(node.type.with_lanes(widest), args[0]);
    case ExprKind::bitcast:
      return loop::bitcast(node.type.with_lanes(widest), args[0]);
    case ExprKind::call:
      return loop::call(node.name, node.type.with_lanes(widest), args);
    default:
      break;
  }
  BC_CHECK(false, "expression kind {} cannot stand in a definition", static_cast<int>(node.kind));
}

Expr Vectorizer::widen(const Expr& e, loop::Type scalar_type) const {
  BC_CHECK(e.type().scalar == scalar_type.scalar, "expected {}, found {}", scalar_type.to_string(),
           e.type().to_string());
  return lanes > 1 && e.type().lanes == 1 ? loop::broadcast(e, lanes) : e;
}

Expr LetCache::bind(const std::string& base, const Expr& value) {
  for (const auto& [known, name] : known_) {
    if (loop::equal(known, value)) return name;
  }
  std::string name = fresh_(base);
  body_.push_back(loop::let(name, value));
  known_.emplace_back(value, loop::var(name, value.type()));
  return known_.back().second;
}

namespace {

/// A register of small integers of which wider ones are made right after they are loaded.
bool is_widened_load(const Expr& e) {
  if (e->kind != ExprKind::cast || e->args[0]->kind != ExprKind::load) return false;
  const loop::Scalar from = e->args[0].type().scalar, to = e.type().scalar;
  const auto bytes = [](loop::Scalar s) { return byte_size(loop::element_of(s)); };
  return e.type().is_vector() && loop::is_integer(from) && loop::is_integer(to) &&
         bytes(from) < bytes(to);
}

}  // namespace

Expr LetCache::hoist_loads(const Expr& e) {
  if (e->kind == ExprKind::if_then_else) return e;
  if (e->kind == ExprKind::load) return bind(e->name + "v", e);
  if (widens_ && is_widened_load(e)) return bind(e->args[0]->name + "v", e);
  if (e->args.empty()) return e;
  std::vector<Expr> args;
  bool changed = false;
  for (const Expr& arg : e->args) {
    args.push_back(hoist_loads(arg));
    changed = changed || args.back().get() != arg.get();
  }
  if (!changed) return e;
  ExprNode copy = *e;
  copy.args = std::move(args);
  return Expr(std::make_shared<ExprNode>(std::move(copy)));
}

}  // namespace backcast
