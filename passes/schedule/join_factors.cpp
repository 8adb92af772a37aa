#include "passes/schedule/join_factors.h"

#include <algorithm>
#include <map>

#include "ir/loop/visit.h"

namespace backcast {

using loop::Expr;
using loop::ExprKind;
using loop::Stmt;
using loop::StmtKind;
using loop::StmtNode;

namespace {

/// A load of one element that a step names at its beginning.
bool loads_scalar(const Stmt& s) {
  return s->kind == StmtKind::let && s->exprs[0]->kind == ExprKind::load &&
         s->exprs[0].type().lanes == 1;
}

/// Whether `let` loads the element of `first`'s buffer that lies `distance` behind it.
bool lies_behind(const StmtNode& let, const StmtNode& first, int64_t distance) {
  const Expr &load = let.exprs[0], &from = first.exprs[0];
  int64_t apart = 0;
  return load->name == from->name && load.type() == from.type() &&
         loop::as_constant(loop::simplify(load->args[0] - from->args[0]), apart) &&
         apart == distance;
}

/// The variable that every lane repeats, which may be converted before; null where none is.
const loop::ExprNode* repeated_variable(const Expr& e) {
  if (e->kind != ExprKind::broadcast) return nullptr;
  const Expr& of = e->args[0]->kind == ExprKind::cast ? e->args[0]->args[0] : e->args[0];
  return of->kind == ExprKind::var ? of.get() : nullptr;
}

bool is_only_repeated(const Stmt& step, const std::string& name) {
  int64_t uses = 0, repeats = 0;
  loop::visit(step, nullptr, [&](const Expr& e) {
    uses += e->kind == ExprKind::var && e->name == name;
    const loop::ExprNode* repeated = repeated_variable(e);
    repeats += repeated != nullptr && repeated->name == name;
  });
  return uses == repeats;
}

/// The names under which the steps load the elements from `first`'s on; fewer where one does not.
std::vector<std::string> neighbours_of(const StmtNode& first, const std::vector<Stmt>& steps) {
  std::vector<std::string> names;
  for (const Stmt& step : steps) {
    const auto distance = static_cast<int64_t>(names.size());
    const auto found = std::find_if(step->body.begin(), step->body.end(), [&](const Stmt& s) {
      return loads_scalar(s) && lies_behind(*s, first, distance) && is_only_repeated(step, s->name);
    });
    if (found == step->body.end()) break;
    names.push_back((*found)->name);
  }
  return names;
}

struct Lane {
  Expr vector;
  int32_t lane = 0;
};

/// The step without the loads of scalars that are lanes: what repeated them takes these.
Stmt with_lanes(const Stmt& step, const std::map<std::string, Lane>& taken) {
  std::vector<Stmt> kept;
  for (const Stmt& s : step->body) {
    if (s->kind != StmtKind::let || !taken.count(s->name)) kept.push_back(s);
  }
  const auto take = [&](const Expr& e) {
    const loop::ExprNode* repeated = repeated_variable(e);
    const auto found = repeated == nullptr ? taken.end() : taken.find(repeated->name);
    if (found == taken.end()) return e;
    const std::vector<int32_t> lanes(static_cast<size_t>(e.type().lanes), found->second.lane);
    const Expr factor = loop::shuffle({found->second.vector}, lanes);
    return factor.type() == e.type() ? factor : loop::cast(e.type(), factor);
  };
  const auto in_step = [&](const Expr& e) { return loop::rewrite(e, take); };
  return loop::rewrite(loop::block(kept), in_step, nullptr);
}

}  // namespace

std::vector<Stmt> join_factors(const std::vector<Stmt>& steps, int32_t lanes,
                               const std::function<std::string(const std::string&)>& fresh) {
  std::vector<Stmt> result;
  for (size_t at = 0; at < steps.size(); at += static_cast<size_t>(lanes)) {
    const auto begin = steps.begin() + static_cast<std::ptrdiff_t>(at);
    const std::vector<Stmt> group(begin, begin + lanes);
    std::map<std::string, Lane> taken;
    for (const Stmt& s : group[0]->body) {
      if (!loads_scalar(s)) continue;
      const std::vector<std::string> names = neighbours_of(*s, group);
      if (names.size() < group.size()) continue;
      const Expr& load = s->exprs[0];
      const loop::Type type = load.type().with_lanes(lanes);
      const std::string name = fresh(load->name + "v");
      result.push_back(loop::let(name, loop::load(type, load->name, load->args[0])));
      for (int32_t lane = 0; lane < lanes; ++lane) {
        taken[names[static_cast<size_t>(lane)]] = {loop::var(name, type), lane};
      }
    }
    for (const Stmt& step : group) result.push_back(with_lanes(step, taken));
  }
  return result;
}

}  // namespace backcast
