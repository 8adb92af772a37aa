// See vector_loops.h. What does not depend on the loop's variable stays scalar until it meets a
// vector.
#include "passes/schedule/vector_loops.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph/error.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::ExprKind;
using loop::ExprNode;
using loop::Scalar;
using loop::Stmt;
using loop::StmtKind;
using loop::StmtNode;

bool is_data(Scalar scalar) { return scalar != Scalar::boolean && scalar != Scalar::index; }

/// The element type of everything a loop computes; nothing when there are several.
std::optional<Scalar> only_scalar(const Stmt& body) {
  std::set<Scalar> scalars;
  loop::visit(
      body,
      [&](const Stmt& s) {
        if (s->kind == StmtKind::alloc) scalars.insert(s->type.scalar);
      },
      [&](const Expr& e) {
        if (is_data(e.type().scalar)) scalars.insert(e.type().scalar);
      });
  return scalars.size() == 1 ? std::optional(*scalars.begin()) : std::nullopt;
}

/// One body over the lanes base … base + lanes - 1 of the loop's variable.
class Widener {
 public:
  Widener(std::string axis, Expr base, int32_t lanes)
      : axis_(std::move(axis)), base_(std::move(base)), lanes_(lanes) {}

  Stmt run(const Stmt& stmt) {
    const StmtNode& node = *stmt;
    switch (node.kind) {
      case StmtKind::let: {
        Expr value = run(node.exprs[0]);
        widths_[node.name] = value.type().lanes;
        return loop::let(node.name, value);
      }
      case StmtKind::alloc:
        registers_.insert(node.name);
        return loop::alloc(node.name, node.type.with_lanes(lanes_), node.exprs[0], node.memory);
      case StmtKind::store:
        return store(node);
      default:
        return rebuild(node);
    }
  }

 private:
  Stmt store(const StmtNode& node) {
    Expr value = widen(run(node.exprs[1]));
    if (registers_.count(node.name)) return loop::store(node.name, run(node.exprs[0]), value);
    const std::optional<int64_t> step = coefficient(node.exprs[0], axis_);
    const bool contiguous = lanes_ == 1 || (step && *step == 1);
    BC_CHECK(contiguous || !step || *step != 0, "every lane stores to the same element of {}",
             node.name);
    return loop::store(node.name, contiguous ? first(node.exprs[0]) : run(node.exprs[0]), value);
  }

  Stmt rebuild(const StmtNode& node) {
    StmtNode result = node;
    for (Expr& e : result.exprs) {
      e = run(e);
      BC_CHECK(e.type().lanes == 1, "a bound or condition depends on {}", axis_);
    }
    for (Stmt& part : result.body) {
      if (part) part = run(part);
    }
    return Stmt(std::make_shared<const StmtNode>(std::move(result)));
  }

  /// The expression for the first lane.
  Expr first(const Expr& e) const { return loop::substitute(e, {{axis_, base_}}); }

  Expr widen(const Expr& e) const {
    return lanes_ > 1 && e.type().lanes == 1 ? loop::broadcast(e, lanes_) : e;
  }

  Expr load(const ExprNode& node) {
    if (registers_.count(node.name)) {
      return loop::load(node.type.with_lanes(lanes_), node.name, run(node.args[0]));
    }
    const std::optional<int64_t> step = coefficient(node.args[0], axis_);
    if (step && *step == 0) return loop::load(node.type, node.name, node.args[0]);
    if (step && *step == 1) {
      return loop::load(node.type.with_lanes(lanes_), node.name, first(node.args[0]));
    }
    return loop::load(node.type.with_lanes(lanes_), node.name, run(node.args[0]));
  }

  Expr run(const Expr& e) {
    const ExprNode& node = *e;
    if (node.kind == ExprKind::constant) return e;
    if (node.kind == ExprKind::load) return load(node);
    if (node.kind == ExprKind::var) {
      if (node.name == axis_) return lanes_ > 1 ? loop::ramp(base_, Expr(1), lanes_) : base_;
      const auto width = widths_.find(node.name);
      return width == widths_.end() ? e : loop::var(node.name, node.type.with_lanes(width->second));
    }
    ExprNode result = node;
    int32_t widest = 1;
    for (Expr& arg : result.args) {
      arg = run(arg);
      widest = std::max(widest, arg.type().lanes);
    }
    BC_CHECK(node.kind != ExprKind::if_then_else || result.args[0].type().lanes == 1,
             "a lazy condition depends on {}", axis_);
    for (size_t i = 0; i < result.args.size() && widest > 1; ++i) {
      const bool lazy_condition = node.kind == ExprKind::if_then_else && i == 0;
      if (result.args[i].type().lanes == 1 && !lazy_condition) {
        result.args[i] = loop::broadcast(result.args[i], widest);
      }
    }
    result.type = node.type.with_lanes(widest);
    return Expr(std::make_shared<const ExprNode>(std::move(result)));
  }

  std::string axis_;
  Expr base_;
  int32_t lanes_;
  std::map<std::string, int32_t> widths_;  // of lets
  std::set<std::string> registers_;
};

class Expander {
 public:
  explicit Expander(const TargetInfo& target) : target_(target) {}

  Stmt run(const Stmt& body) {
    bool any = false;
    loop::visit(
        body, [&](const Stmt& s) { any = any || is_vectorized(s); }, nullptr);
    if (!any) return body;
    loop::visit(
        body, [&](const Stmt& s) { taken_.insert(s->name); },
        [&](const Expr& e) { taken_.insert(e->name); });
    return loop::rewrite(body, nullptr, [&](const Stmt& stmt) -> Stmt {
      return is_vectorized(stmt) ? expand(*stmt) : stmt;
    });
  }

 private:
  static bool is_vectorized(const Stmt& s) {
    return s->kind == StmtKind::for_loop && s->for_kind == loop::ForKind::vectorized;
  }

  Stmt expand(const StmtNode& node) {
    int64_t extent = 0;
    const std::optional<Scalar> scalar = only_scalar(node.body[0]);
    int32_t lanes = 1;
    if (scalar && (*scalar == Scalar::f32 || *scalar == Scalar::f64)) {
      lanes = target_.vector_lanes(*scalar == Scalar::f32 ? 4 : 8);
    }
    if (!loop::as_constant(node.exprs[1], extent) || lanes < 2) {
      return loop::for_loop(node.name, node.exprs[0], node.exprs[1], node.body[0]);
    }
    std::vector<Stmt> parts;
    int64_t begin = 0;
    while (begin < extent) {
      const int64_t count = (extent - begin) / lanes;
      if (count > 0) parts.push_back(segment(node, begin, count, lanes, parts.size()));
      begin += count * lanes;
      lanes = target_.fewer_lanes(lanes);
    }
    return loop::block(parts);
  }

  /// `count` registers of `lanes` elements from `begin` on; names of later segments bear a suffix.
  Stmt segment(const StmtNode& node, int64_t begin, int64_t count, int32_t lanes, size_t number) {
    const Expr block = loop::var(node.name);
    const Expr base = node.exprs[0] + Expr(begin) + block * Expr(lanes);
    Stmt body = Widener(node.name, base, lanes).run(node.body[0]);
    const Stmt whole = loop::for_loop(node.name, Expr(0), Expr(count), body);
    return number == 0 ? whole : loop::with_unique_names(whole, taken_);
  }

  const TargetInfo& target_;
  std::set<std::string> taken_;
};

}  // namespace

Stmt expand_vector_loops(const Stmt& body, const TargetInfo& target) {
  return Expander(target).run(body);
}

}  // namespace backcast
