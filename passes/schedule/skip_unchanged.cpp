// See skip_unchanged.h. The rule is algebra on what is stored: the factor is replaced by zero, and
// what is left must be a load of the element that the store would write.
#include "passes/schedule/skip_unchanged.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::BufferId;
using loop::BufferParam;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Op;
using loop::Program;
using loop::Step;
using loop::Stmt;
using loop::StmtKind;

// Stores that outweigh a branch that is predicted every other time.
constexpr int64_t kLeastStores = 16;

bool is_zero(const Expr& e) {
  if (e->kind == ExprKind::broadcast) return is_zero(e->args[0]);
  return e->kind == ExprKind::constant && loop::is_float(e.type().scalar) && e->float_value == 0;
}

/// One node whose operands are simplified already, under 0·x = 0 and x ± 0 = x.
Expr without_zero(const Expr& e) {
  const auto zero = [&](size_t i) { return is_zero(e->args[i]); };
  const Expr none = loop::is_float(e.type().scalar) ? loop::float_constant(e.type(), 0) : e;
  switch (e->kind) {
    case ExprKind::unary:
      return e->op == Op::neg && zero(0) ? none : e;
    case ExprKind::binary:
      if (e->op == Op::mul && (zero(0) || zero(1))) return none;
      if ((e->op == Op::add || e->op == Op::sub) && zero(1)) return e->args[0];
      if (e->op == Op::add && zero(0)) return e->args[1];
      if ((e->op == Op::min || e->op == Op::max) && zero(0)) {
        // A clipped gradient: zero lies between the bounds.
        const Expr& bound =
            e->args[1]->kind == ExprKind::broadcast ? e->args[1]->args[0] : e->args[1];
        if (bound->kind != ExprKind::constant) return e;
        return (e->op == Op::min ? bound->float_value >= 0 : bound->float_value <= 0) ? none : e;
      }
      return e;
    case ExprKind::fma:
      return zero(0) || zero(1) ? e->args[2] : e;
    case ExprKind::select:
      return zero(1) && zero(2) ? none : e;
    case ExprKind::broadcast:
      return zero(0) ? none : e;
    default:
      return e;
  }
}

/// The body of a loop, seen from outside.
class Body {
 public:
  Body(const Stmt& body, const std::string& variable) : body_(body), variable_(variable) {
    loop::visit(
        body,
        [&](const Stmt& s) {
          if (s->kind == StmtKind::store) written_.insert(s->name);
          if (s->kind != StmtKind::store && !s->name.empty()) bound_.insert(s->name);
        },
        nullptr);
  }

  /// The largest expression whose being zero makes the body, which writes a buffer of the kernel,
  /// do nothing; empty when there is none.
  Expr factor(const Kernel& kernel) const {
    const bool writes = std::any_of(written_.begin(), written_.end(), [&](const std::string& name) {
      return kernel.find(name) != nullptr;
    });
    if (!writes) return {};
    std::vector<Expr> candidates;
    loop::visit(
        body_,
        [&](const Stmt& s) {
          if (s->kind == StmtKind::let) collect(s->exprs[0], candidates);
          if (s->kind == StmtKind::store) collect(s->exprs[1], candidates);
        },
        nullptr);
    for (const Expr& candidate : candidates) {
      std::map<std::string, Expr> lets;
      if (does_nothing(body_, candidate, lets)) return candidate;
    }
    return {};
  }

  /// Whether it stores nothing but what is there already, whatever the factors are.
  bool is_idle() const {
    std::map<std::string, Expr> lets;
    return !written_.empty() && does_nothing(body_, loop::var(""), lets);
  }

 private:
  /// Numbers that are the same throughout the body, but not around the loop; large ones first.
  void collect(const Expr& e, std::vector<Expr>& candidates) const {
    const bool is_number = !e.type().is_vector() && loop::is_float(e.type().scalar);
    if (is_number && mentions(e, variable_) && is_invariant(e)) {
      const bool known = std::any_of(candidates.begin(), candidates.end(),
                                     [&](const Expr& other) { return loop::equal(e, other); });
      if (!known) candidates.push_back(e);
    }
    // A load's index is no factor, and a branch that is not taken has no value.
    if (e->kind == ExprKind::load || e->kind == ExprKind::if_then_else) return;
    for (const Expr& part : e->args) collect(part, candidates);
  }

  bool is_invariant(const Expr& e) const {
    bool holds = true;
    loop::visit(e, [&](const Expr& part) {
      if (part->kind == ExprKind::var) holds = holds && !bound_.count(part->name);
      if (part->kind == ExprKind::load) {
        holds = holds && !bound_.count(part->name) && !written_.count(part->name);
      }
    });
    return holds;
  }

  /// `lets`: what is left of the values around, by name.
  bool does_nothing(const Stmt& stmt, const Expr& factor, std::map<std::string, Expr>& lets) const {
    switch (stmt->kind) {
      case StmtKind::block: {
        std::map<std::string, Expr> inner = lets;
        return std::all_of(stmt->body.begin(), stmt->body.end(),
                           [&](const Stmt& part) { return does_nothing(part, factor, inner); });
      }
      case StmtKind::for_loop:
        return does_nothing(stmt->body[0], factor, lets);
      case StmtKind::let:
        lets[stmt->name] = left_of(stmt->exprs[0], factor, lets);
        return true;
      case StmtKind::store: {
        const Expr left = left_of(stmt->exprs[1], factor, lets);
        return left->kind == ExprKind::load && left->name == stmt->name &&
               loop::equal(left->args[0], stmt->exprs[0]);
      }
      default:
        return false;
    }
  }

  static Expr left_of(const Expr& value, const Expr& factor,
                      const std::map<std::string, Expr>& lets) {
    return loop::rewrite(value, [&](const Expr& e) -> Expr {
      if (loop::equal(e, factor)) return loop::float_constant(e.type(), 0);
      if (e->kind == ExprKind::var) {
        const auto found = lets.find(e->name);
        return found == lets.end() ? e : found->second;
      }
      return without_zero(e);
    });
  }

  const Stmt& body_;
  const std::string& variable_;
  std::set<std::string> written_, bound_;
};

/// Stores, registers included; nothing where their number is not known.
std::optional<int64_t> stores(const Stmt& stmt) {
  if (stmt->kind == StmtKind::store) return 1;
  int64_t count = 0, trips = 1;
  for (const Stmt& part : stmt->body) {
    const std::optional<int64_t> inside = stores(part);
    if (!inside) return std::nullopt;
    count += *inside;
  }
  if (stmt->kind == StmtKind::for_loop && !loop::as_constant(stmt->exprs[1], trips)) {
    return std::nullopt;
  }
  return count * trips;
}

/// A body of loop `variable` with a guard around it; null when there is none.
Stmt under_guard(const Stmt& body, const std::string& variable, const Kernel& kernel) {
  if (stores(body).value_or(0) < kLeastStores) return {};
  const Expr factor = Body(body, variable).factor(kernel);
  if (!factor) return {};
  return loop::if_branch(loop::binary(Op::ne, factor, loop::float_constant(factor.type(), 0)),
                         body);
}

/// The steps of an unrolled loop: blocks, and what stands behind the last one.
std::vector<Stmt> steps_of(const Stmt& body) {
  if (body->kind != StmtKind::block) return {body};
  const auto is_block = [](const Stmt& s) { return s->kind == StmtKind::block; };
  const auto last = std::find_if(body->body.rbegin(), body->body.rend(), is_block).base();
  std::vector<Stmt> steps(body->body.begin(), last);
  if (last == body->body.begin() || last == body->body.end()) return body->body;
  steps.push_back(loop::block({last, body->body.end()}));
  return steps;
}

/// The loops of a kernel with guards in them, around bodies of the outermost that can have one or
/// around their unrolled steps; the same statement where there are none.
Stmt guarded(const Stmt& stmt, const std::string& variable, const Kernel& kernel) {
  if (stmt->kind == StmtKind::for_loop) {
    const Stmt& body = stmt->body[0];
    Stmt inner = under_guard(body, stmt->name, kernel);
    if (!inner) inner = guarded(body, stmt->name, kernel);
    if (inner.get() == body.get()) return stmt;
    return loop::for_loop(stmt->name, stmt->exprs[0], stmt->exprs[1], inner, stmt->for_kind);
  }
  if (stmt->kind != StmtKind::block) return stmt;
  bool changed = false;
  std::vector<Stmt> parts;
  for (const Stmt& part : steps_of(stmt)) {
    const bool is_step = part->kind == StmtKind::block && !variable.empty();
    const Stmt whole = is_step ? under_guard(part, variable, kernel) : Stmt();
    parts.push_back(whole ? whole : guarded(part, variable, kernel));
    changed = changed || parts.back().get() != part.get();
  }
  return changed ? loop::block(std::move(parts)) : stmt;
}

/// Without the loops that store what is there already, such as a copy of what is updated in place.
Stmt without_idle(const Stmt& body) {
  if (body->kind != StmtKind::block) return body;
  std::vector<Stmt> parts;
  for (const Stmt& part : body->body) {
    if (part->kind == StmtKind::for_loop && Body(part, part->name).is_idle()) continue;
    parts.push_back(without_idle(part));
  }
  return parts.size() == body->body.size() ? body : loop::block(std::move(parts));
}

class Skipping {
 public:
  explicit Skipping(const Program& program) : result_(program) {}

  Program run() {
    for (loop::EntryPoint& entry : result_.entries) {
      loop::for_each_call(entry.steps, [&](Step& step) { guard(step); });
    }
    return std::move(result_);
  }

 private:
  void guard(Step& step) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    const std::map<std::string, std::string> names = updated_in_place(kernel, step);
    if (names.empty()) return;
    const Stmt body = loop::rename_buffers(kernel.body, names);
    const Stmt with_guards = guarded(without_idle(body), "", kernel);
    if (with_guards.get() == body.get()) return;
    kernel.body = with_guards;
    for (size_t i = kernel.buffers.size(); i-- > 0;) {
      if (!names.count(kernel.buffers[i].name)) continue;
      kernel.buffers.erase(kernel.buffers.begin() + static_cast<int64_t>(i));
      step.buffers.erase(step.buffers.begin() + static_cast<int64_t>(i));
    }
    for (const auto& [read, written] : names) {
      for (BufferParam& param : kernel.buffers) {
        std::erase(param.over, read);
        if (param.name == written) param.mode = AccessMode::update;
      }
    }
  }

  /// Parameters that are read, by name, with those that write the same state.
  std::map<std::string, std::string> updated_in_place(const Kernel& kernel,
                                                      const Step& step) const {
    std::map<std::string, std::string> names;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      const loop::Buffer& written = result_.buffer(step.buffers[i]);
      if (kernel.buffers[i].mode != AccessMode::write) continue;
      if (written.kind != loop::BufferClass::state) continue;
      for (const size_t j : loop::taken_over_by(kernel, i)) {
        const bool same = written.view_of == step.buffers[j] && written.view_offset == Dim(0) &&
                          result_.buffer(step.buffers[j]).view_of < 0 &&
                          kernel.buffers[i].shape == kernel.buffers[j].shape &&
                          kernel.buffers[i].element == kernel.buffers[j].element;
        if (same) names[kernel.buffers[j].name] = kernel.buffers[i].name;
      }
    }
    return names;
  }

  Program result_;
};

}  // namespace

Program skip_unchanged(const Program& program) { return Skipping(program).run(); }

}  // namespace backcast
