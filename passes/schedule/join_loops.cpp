#include "passes/schedule/join_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Stmt;
using loop::StmtKind;

bool writes_more_than(const std::vector<Stmt>& nests, const Kernel& kernel, int64_t limit) {
  bool does = false;
  for (const Stmt& nest : nests) {
    loop::visit(
        nest,
        [&](const Stmt& s) {
          const loop::BufferParam* param =
              s->kind == StmtKind::store ? kernel.find(s->name) : nullptr;
          does = does || (param && static_bytes(*param).value_or(0) > limit);
        },
        nullptr);
  }
  return does;
}

/// Bytes of the operands that each trip of the loops reads from the beginning; nothing when a
/// shape is not known.
std::optional<int64_t> read_again(const std::vector<Stmt>& loops, const Kernel& kernel) {
  std::set<std::string> again;
  for (const Stmt& loop : loops) {
    loop::visit(loop, nullptr, [&](const Expr& e) {
      if (e->kind == ExprKind::load && !mentions(e->args[0], loop->name)) again.insert(e->name);
    });
  }
  int64_t bytes = 0;
  for (const std::string& name : again) {
    const loop::BufferParam* param = kernel.find(name);
    if (param == nullptr) continue;  // the kernel's own
    const std::optional<int64_t> size = static_bytes(*param);
    if (!size) return std::nullopt;
    bytes += *size;
  }
  return bytes;
}

bool same_loops(const std::vector<Stmt>& nests) {
  return std::all_of(nests.begin(), nests.end(), [&](const Stmt& nest) {
    return nest->kind == StmtKind::for_loop && nest->for_kind == nests[0]->for_kind &&
           loop::equal(nest->exprs[0], nests[0]->exprs[0]) &&
           loop::equal(nest->exprs[1], nests[0]->exprs[1]);
  });
}

Stmt join(std::vector<Stmt> nests, const Kernel& kernel, int64_t most_again) {
  for (Stmt& nest : nests) {
    while (nest->kind == StmtKind::block && nest->body.size() == 1) nest = Stmt(nest->body[0]);
  }
  if (!same_loops(nests)) return loop::block(nests);
  const std::optional<int64_t> again = read_again(nests, kernel);
  if (!again || *again > most_again) return loop::block(nests);
  const Stmt first = nests[0];
  for (Stmt& nest : nests) {
    const std::map<std::string, Expr> renamed{{nest->name, loop::var(first->name)}};
    nest = nest->name == first->name ? nest->body[0] : loop::substitute(nest->body[0], renamed);
  }
  return loop::for_loop(first->name, first->exprs[0], first->exprs[1],
                        join(std::move(nests), kernel, most_again), first->for_kind);
}

}  // namespace

Stmt join_loops(const std::vector<Stmt>& nests, const Kernel& kernel, const TargetInfo& target) {
  const bool caches = target.l2_bytes > 0;
  if (nests.size() < 2 || !caches || !writes_more_than(nests, kernel, target.l1_bytes)) {
    return loop::block(nests);
  }
  return join(nests, kernel, target.l1_bytes / 2);
}

}  // namespace backcast
