// See fold_loops.h.
#include "passes/schedule/fold_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
using loop::StepKind;
using loop::Stmt;
using loop::StmtKind;
using loop::Type;

/// The parameters by which a kernel reads and replaces a tensor.
struct Carry {
  std::string read, written;
};

/// Whether every load of the carry in a statement is of the element at `index`, and none of what is
/// written.
bool reads_own_element(const Stmt& stmt, const Carry& carry, const Expr& index) {
  bool own = true;
  loop::visit(stmt, nullptr, [&](const Expr& e) {
    if (e->kind != ExprKind::load) return;
    own = own && e->name != carry.written &&
          (e->name != carry.read || loop::equal(e->args[0], index));
  });
  return own;
}

/// What a trip makes of an element, and when: where it stays as it is, it does so in all later
/// trips.
struct Trip {
  std::vector<Stmt> lets;
  Expr next, moves;  // moves: empty where that is not known

  Trip(std::vector<Stmt> before, const Expr& value, const Expr& own)
      : lets(std::move(before)), next(value) {
    if (!lets.empty() || value->kind != ExprKind::select) return;
    const Expr& condition = value->args[0];
    if (loop::equal(value->args[1], own)) {
      moves = loop::binary(Op::eq, condition, loop::int_constant(condition.type(), 0));
      next = value->args[2];
    } else if (loop::equal(value->args[2], own)) {
      moves = condition;
      next = value->args[1];
    }
  }
};

/// All trips of one element: `lets`, then the store.
Stmt trips_of_element(std::vector<Stmt> lets, const Stmt& store, const Carry& carry,
                      const BufferParam& param, int64_t count) {
  const Type type{param.element, 1}, number{loop::Scalar::i32, 1};
  const Expr zero(0), value = loop::load(type, "value", zero);
  const Expr own = loop::load(type, carry.read, store->exprs[0]);
  const auto in_register = [&](const Expr& e) {
    return loop::rewrite(e, [&](const Expr& part) {
      return part->kind == ExprKind::load && part->name == carry.read ? value : part;
    });
  };
  const Trip trip(std::move(lets), store->exprs[1], own);
  std::vector<Stmt> body;
  for (const Stmt& let : trip.lets)
    body.push_back(loop::let(let->name, in_register(let->exprs[0])));
  body.push_back(loop::store("value", zero, in_register(trip.next)));
  std::vector<Stmt> all{loop::alloc("value", type, Expr(1), loop::Memory::registers),
                        loop::store("value", zero, own)};
  if (!trip.moves) {
    all.push_back(loop::for_loop("trip", zero, Expr(count), loop::block(std::move(body))));
  } else {
    const Expr none = loop::int_constant(number, 0), left = loop::load(number, "left", zero);
    body.push_back(loop::store("left", zero, left - loop::int_constant(number, 1)));
    const Expr goes_on = loop::binary(Op::ne, left, none) && in_register(trip.moves);
    all.push_back(loop::alloc("left", number, Expr(1), loop::Memory::registers));
    all.push_back(loop::store("left", zero, loop::int_constant(number, count)));
    all.push_back(loop::while_loop(goes_on, loop::block(std::move(body))));
  }
  all.push_back(loop::store(carry.written, store->exprs[0], value));
  return loop::block(std::move(all));
}

/// All trips of the element that `store` writes; null where it needs others.
Stmt with_trips(std::vector<Stmt> lets, const Stmt& store, const Carry& carry,
                const BufferParam& param, int64_t count) {
  if (store->kind != StmtKind::store || store->name != carry.written) return {};
  if (store->exprs[1].type().is_vector()) return {};
  const Expr& index = store->exprs[0];
  bool fixed = true;
  loop::visit(index, [&](const Expr& e) { fixed = fixed && e->kind != ExprKind::load; });
  for (const Stmt& let : lets) fixed = fixed && !mentions(index, let->name);
  const bool own = std::ranges::all_of(
      lets, [&](const Stmt& let) { return reads_own_element(let, carry, index); });
  if (!fixed || !own || !reads_own_element(store, carry, index)) return {};
  return trips_of_element(std::move(lets), store, carry, param, count);
}

/// The kernel's body with all trips of each element inside of its loops; null where an element
/// needs others, or several share what a trip computes.
Stmt with_trips(const Stmt& body, const Carry& carry, const BufferParam& param, int64_t count) {
  if (body->kind == StmtKind::for_loop) {
    const Stmt inner = with_trips(body->body[0], carry, param, count);
    if (!inner) return {};
    return loop::for_loop(body->name, body->exprs[0], body->exprs[1], inner, body->for_kind);
  }
  if (body->kind != StmtKind::block) return with_trips({}, body, carry, param, count);
  std::vector<Stmt> parts = body->body;
  if (parts[0]->kind == StmtKind::let) {
    const bool one = std::all_of(parts.begin(), parts.end() - 1,
                                 [](const Stmt& s) { return s->kind == StmtKind::let; });
    const Stmt store = parts.back();
    parts.pop_back();
    return one ? with_trips(std::move(parts), store, carry, param, count) : Stmt();
  }
  for (Stmt& part : parts) {
    part = with_trips(part, carry, param, count);
    if (!part) return {};
  }
  return loop::block(std::move(parts));
}

class Folding {
 public:
  explicit Folding(const Program& program) : result_(program) {}

  Program run() {
    calls_ = loop::count_calls(result_);
    for (loop::EntryPoint& entry : result_.entries) fold(entry.steps);
    for (const loop::EntryPoint& entry : result_.entries) keep_symbols(entry.steps);
    for (const std::string& symbol : folded_) result_.symbols.erase(symbol);
    return std::move(result_);
  }

 private:
  void fold(std::vector<Step>& steps) {
    for (Step& step : steps) {
      fold(step.body);
      fold(step.otherwise);
      if (step.kind != StepKind::loop || !folds(step)) continue;
      folded_.insert(step.symbol);
      Step call = std::move(step.body[0]);
      step = std::move(call);
    }
  }

  void keep_symbols(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      folded_.erase(step.symbol);
      keep_symbols(step.body);
      keep_symbols(step.otherwise);
    }
  }

  /// Whether the loop's kernel could take the trips into itself, and has.
  bool folds(const Step& step) {
    const bool counted = loop::runs_in_full(step) && step.count.constant() > 0;
    if (!counted || step.body.size() != 1 || step.body[0].kind != StepKind::call) return false;
    const Step& call = step.body[0];
    Kernel& kernel = result_.kernels.at(call.kernel);
    if (calls_[call.kernel] != 1 || !call.sizes.empty() || moves(call)) return false;
    const std::optional<Carry> carry = carry_of(kernel, call);
    if (!carry) return false;
    const Stmt body =
        with_trips(kernel.body, *carry, *kernel.find(carry->written), step.count.constant());
    if (!body) return false;
    std::set<std::string> taken;
    for (const BufferParam& param : kernel.buffers) taken.insert(param.name);
    kernel.body = loop::with_unique_names(body, taken);
    kernel.macs *= step.count.constant();
    return true;
  }

  /// Whether its places are others in other trips of a loop.
  bool moves(const Step& call) const {
    return std::ranges::any_of(call.buffers, [&](BufferId id) {
      while (id >= 0 && result_.buffer(id).view_offset.is_constant())
        id = result_.buffer(id).view_of;
      return id >= 0;
    });
  }

  /// The buffer with the storage at whose start another lies.
  BufferId whole(BufferId id) const {
    while (result_.buffer(id).view_of >= 0 && result_.buffer(id).view_offset == Dim(0)) {
      id = result_.buffer(id).view_of;
    }
    return id;
  }

  /// The only parameter that is written and the one that reads the same elements of the same place.
  std::optional<Carry> carry_of(const Kernel& kernel, const Step& call) const {
    std::optional<size_t> written;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      if (kernel.buffers[i].mode == AccessMode::read) continue;
      if (kernel.buffers[i].mode == AccessMode::update || written) return std::nullopt;
      written = i;
    }
    if (!written) return std::nullopt;
    const BufferParam& target = kernel.buffers[*written];
    std::optional<Carry> carry;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      const BufferParam& param = kernel.buffers[i];
      if (i == *written ||
          result_.owner(call.buffers[i]) != result_.owner(call.buffers[*written])) {
        continue;
      }
      const bool same = whole(call.buffers[i]) == whole(call.buffers[*written]) &&
                        param.element == target.element && param.shape == target.shape;
      if (!same || carry) return std::nullopt;
      carry = Carry{param.name, target.name};
    }
    return carry;
  }

  Program result_;
  std::map<std::string, int64_t> calls_;
  std::set<std::string> folded_;  // symbols of loops that are gone
};

}  // namespace

Program fold_loops(const Program& program, const TargetInfo& target) {
  return target.vector_bits > 0 ? program : Folding(program).run();
}

}  // namespace backcast
