#include "passes/schedule/join_loops.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/graph/type.h"
#include "ir/loop/visit.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Stmt;
using loop::StmtKind;

int64_t bytes_of(const Kernel& kernel, const std::string& name) {
  const loop::BufferParam* param = kernel.find(name);
  if (param == nullptr) return 0;
  const ElementType element = loop::element_of(param->element);
  return TensorType{element, param->shape}.element_count().range({}).max * byte_size(element);
}

int64_t written_bytes(const std::vector<Stmt>& nests, const Kernel& kernel) {
  int64_t most = 0;
  for (const Stmt& nest : nests) {
    loop::visit(
        nest,
        [&](const Stmt& s) {
          if (s->kind == StmtKind::store) most = std::max(most, bytes_of(kernel, s->name));
        },
        nullptr);
  }
  return most;
}

/// Bytes of the operands that each trip of the loops reads from the beginning.
int64_t read_again(const std::vector<Stmt>& loops, const Kernel& kernel) {
  std::set<std::string> again;
  for (const Stmt& loop : loops) {
    loop::visit(loop, nullptr, [&](const Expr& e) {
      if (e->kind != ExprKind::load) return;
      bool moves = false;
      loop::visit(e->args[0], [&](const Expr& part) {
        moves = moves || (part->kind == ExprKind::var && part->name == loop->name);
      });
      if (!moves) again.insert(e->name);
    });
  }
  int64_t bytes = 0;
  for (const std::string& name : again) bytes += bytes_of(kernel, name);
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
  if (!same_loops(nests) || read_again(nests, kernel) > most_again) return loop::block(nests);
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
  if (nests.size() < 2 || !caches || written_bytes(nests, kernel) <= target.l1_bytes) {
    return loop::block(nests);
  }
  return join(nests, kernel, target.l1_bytes / 2);
}

}  // namespace backcast
