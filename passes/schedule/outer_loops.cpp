// See outer_loops.h.
#include "passes/schedule/outer_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/schedule/independence.h"

namespace backcast {

using loop::Expr;
using loop::Kernel;
using loop::Stmt;
using loop::StmtKind;

bool is_counted(const Stmt& stmt) {
  int64_t begin = 0, extent = 0;
  return stmt->kind == StmtKind::for_loop && stmt->for_kind == loop::ForKind::serial &&
         loop::as_constant(stmt->exprs[0], begin) && loop::as_constant(stmt->exprs[1], extent) &&
         extent > 0;
}

int64_t extent_of(const Stmt& loop) {
  int64_t extent = 0;
  loop::as_constant(loop->exprs[1], extent);
  return extent;
}

bool is_overlaid(const loop::Program& program, const loop::Step& step) {
  const Kernel& kernel = program.kernels.at(step.kernel);
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    const loop::BufferParam& written = kernel.buffers[i];
    if (written.mode == loop::AccessMode::read) continue;
    for (size_t j = 0; j < step.buffers.size(); ++j) {
      if (i == j || program.owner(step.buffers[i]) != program.owner(step.buffers[j])) continue;
      const std::vector<std::string>& over = written.over;
      const bool same = loop::byte_offset(program, step.buffers[i]) ==
                            loop::byte_offset(program, step.buffers[j]) &&
                        std::find(over.begin(), over.end(), kernel.buffers[j].name) != over.end();
      if (!same) return true;
    }
  }
  return false;
}

std::string fresh_name(const Kernel& kernel, std::string name) {
  std::set<std::string> taken(kernel.sizes.begin(), kernel.sizes.end());
  for (const loop::BufferParam& param : kernel.buffers) taken.insert(param.name);
  loop::visit(
      kernel.body, [&](const Stmt& s) { taken.insert(s->name); },
      [&](const Expr& e) { taken.insert(e->name); });
  while (taken.contains(name)) name += "_";
  return name;
}

namespace {

/// A single iteration that does not ask for its number.
bool is_once(const Stmt& loop) {
  bool asks = false;
  loop::visit(
      loop->body[0], [](const Stmt&) {},
      [&](const Expr& e) {
        asks = asks || (e->kind == loop::ExprKind::var && e->name == loop->name);
      });
  return extent_of(loop) == 1 && !asks;
}

}  // namespace

std::vector<Stmt> outer_loops(const Kernel& kernel) {
  const Stmt& body = kernel.body;
  const std::vector<Stmt> parts =
      body->kind == StmtKind::block ? body->body : std::vector<Stmt>{body};
  std::vector<Stmt> loops;
  bool any = false;
  const auto once = [&](const Stmt& stmt) {
    const std::string name = fresh_name(kernel, fmt::format("once{}", loops.size()));
    return loop::for_loop(name, Expr(0), Expr(1), stmt);
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]->kind == StmtKind::let || parts[i]->kind == StmtKind::alloc) {
      // What follows knows the name.
      loops.push_back(once(loop::block({parts.begin() + static_cast<int64_t>(i), parts.end()})));
      break;
    }
    const bool shared = is_counted(parts[i]) && are_independent(kernel, {parts[i]});
    any = any || (shared && extent_of(parts[i]) > 1);
    loops.push_back(shared ? parts[i] : once(parts[i]));
  }
  if (any && are_independent(kernel, loops)) return loops;
  // Perhaps only what stands beside the loops meets, such as rows whose number run time tells.
  std::vector<Stmt> joined;
  bool joins = false;
  for (const Stmt& loop : loops) {
    const bool beside = !joined.empty() && is_once(loop) && is_once(joined.back());
    if (beside) {
      const std::vector<Stmt> both = {joined.back()->body[0], loop->body[0]};
      joined.back() = loop::for_loop(joined.back()->name, Expr(0), Expr(1), loop::block(both));
      joins = true;
    } else {
      joined.push_back(loop);
    }
  }
  return any && joins && are_independent(kernel, joined) ? joined : std::vector<Stmt>();
}

std::optional<Kernel> reversed(const Kernel& kernel) {
  const std::vector<Stmt> loops = outer_loops(kernel);
  if (loops.empty()) return {};
  std::vector<Stmt> parts;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    const Stmt& stmt = *loop;
    if (is_once(stmt)) {
      parts.push_back(stmt->body[0]);
      continue;
    }
    // From -last to -first: with a constant beside the counter, compilers would add it to every
    // address.
    const std::string name = fresh_name(kernel, stmt->name + "_back");
    const Expr last = stmt->exprs[0] + stmt->exprs[1] - Expr(1);
    parts.push_back(loop::for_loop(
        name, Expr(0) - last, stmt->exprs[1],
        loop::block({loop::let(stmt->name, Expr(0) - loop::var(name)), stmt->body[0]})));
  }
  Kernel result = kernel;
  result.body = loop::block(parts);
  return result;
}

}  // namespace backcast
