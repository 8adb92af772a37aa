#include "passes/schedule/order_state.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/call_cycles.h"
#include "passes/schedule/reorder.h"
#include "passes/schedule/zero_skipping.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::Stmt;
using loop::StmtKind;

// What has less room for gains stays as the model has it.
constexpr int64_t kLeastElements = 256;
// Uses per element and step, below which reading the weights takes the time, in any order; those of
// dense layers at batch 1 keep a row per output, which skip_unchanged leaves out where it can. The
// transform of F(2×2, 3×3) has 64 for nine elements.
constexpr int64_t kLeastReuse = 7;
// What the model of cycles cannot tell apart.
constexpr double kLeastGain = 0.02;

/// Whether definitions alone touch the parameter.
bool only_in_definitions(const Kernel& kernel, const std::string& param) {
  bool result = true;
  loop::visit(
      kernel.body,
      [&](const Stmt& s) { result = result && (s->kind == StmtKind::define || s->name != param); },
      [&](const Expr& e) { result = result && (e->kind != ExprKind::load || e->name != param); });
  return result;
}

/// The reversals of two or three runs of dimensions; those in which bytes stay where they are left
/// out.
std::vector<Order> reversals(const Dims& shape) {
  const int32_t rank = static_cast<int32_t>(shape.size());
  std::vector<Order> result;
  std::set<Order> seen;
  for (int32_t first = 1; first < rank; ++first) {
    for (int32_t second = rank; second > first; --second) {
      Order order;
      for (int32_t i = second; i < rank; ++i) order.push_back(i);
      for (int32_t i = first; i < second; ++i) order.push_back(i);
      for (int32_t i = 0; i < first; ++i) order.push_back(i);
      Order long_ones = order;
      std::erase_if(long_ones, [&](int32_t i) { return shape[static_cast<size_t>(i)] == Dim(1); });
      if (std::is_sorted(long_ones.begin(), long_ones.end())) continue;
      if (seen.insert(long_ones).second) result.push_back(std::move(order));
    }
  }
  return result;
}

std::vector<int32_t> long_dimensions(const Dims& shape) {
  std::vector<int32_t> result;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != Dim(1)) result.push_back(static_cast<int32_t>(i));
  }
  return result;
}

/// Whether a view is of its owner's shape, but for dimensions of one element.
bool are_alike(const Dims& view, const Dims& owner) {
  const std::vector<int32_t> of_view = long_dimensions(view), of_owner = long_dimensions(owner);
  return std::equal(of_view.begin(), of_view.end(), of_owner.begin(), of_owner.end(),
                    [&](int32_t i, int32_t k) {
                      return view[static_cast<size_t>(i)] == owner[static_cast<size_t>(k)];
                    });
}

/// The order of dimensions of such a view that goes with one of its owner.
Order order_of_view(const Dims& view, const Dims& owner, const Order& order) {
  if (view == owner) return order;
  const std::vector<int32_t> of_view = long_dimensions(view), of_owner = long_dimensions(owner);
  Order result;
  for (size_t i = 0; i < view.size(); ++i) {
    if (view[i] == Dim(1)) result.push_back(static_cast<int32_t>(i));
  }
  for (const int32_t dimension : order) {
    const auto at = std::find(of_owner.begin(), of_owner.end(), dimension);
    if (at != of_owner.end()) result.push_back(of_view[static_cast<size_t>(at - of_owner.begin())]);
  }
  return result;
}

class Ordering {
 public:
  Ordering(const Program& program, const TargetInfo& target, bool skips_zeros)
      : program_(program), target_(target) {
    if (skips_zeros) skipping_.emplace(program_, target);
  }

  Program run() {
    find_calls();
    find_groups();
    for (const std::vector<BufferId>& group : groups_) choose(group);
    return std::move(program_);
  }

 private:
  struct Call {
    Step* step;
    Kernel* kernel;
    bool counts;  // in an entry point that trains
  };

  void find_calls() {
    for (loop::EntryPoint& entry : program_.entries) {
      find_calls(entry.steps, loop::writes_state(program_, entry));
    }
  }

  void find_calls(std::vector<Step>& steps, bool counts) {
    for (Step& step : steps) {
      find_calls(step.body, counts);
      find_calls(step.otherwise, counts);
      if (step.kind == loop::StepKind::call) {
        calls_.push_back({&step, &program_.kernels.at(step.kernel), counts});
        ++times_called_[step.kernel];
      } else {
        for (const BufferId id : step.buffers) {
          if (id >= 0) fixed_.insert(program_.owner(id));
        }
      }
    }
  }

  bool may_move(BufferId id) const {
    const Buffer& buffer = program_.buffer(id);
    const bool follows = buffer.role == StateRole::parameter || buffer.role == StateRole::slot ||
                         buffer.role == StateRole::gradient;
    if (!follows || fixed_.contains(id) || buffer.shape.size() < 2 || !buffer.order.empty()) {
      return false;
    }
    if (buffer.element != ElementType::f32 && buffer.element != ElementType::f64) return false;
    return TensorType{buffer.element, buffer.shape}.element_count().constant() >= kLeastElements;
  }

  /// State that is read and written together, in definitions only.
  void find_groups() {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& view = program_.buffers[i];
      if (view.view_of < 0) continue;
      const BufferId owner = program_.owner(static_cast<BufferId>(i));
      if (!are_alike(view.shape, program_.buffer(owner).shape)) fixed_.insert(owner);
    }
    for (const Call& call : calls_) {
      for (size_t i = 0; i < call.step->buffers.size(); ++i) {
        const bool clear = times_called_.at(call.step->kernel) == 1 &&
                           only_in_definitions(*call.kernel, call.kernel->buffers[i].name);
        if (!clear) fixed_.insert(program_.owner(call.step->buffers[i]));
      }
    }
    std::map<BufferId, BufferId> leader;
    const std::vector<BufferId> states = program_.states();
    for (const BufferId id : states) leader[id] = id;
    for (const Call& call : calls_) {
      for (const BufferId a : states_of(*call.step)) {
        for (const BufferId b : states_of(*call.step)) {
          if (program_.buffer(a).shape != program_.buffer(b).shape) continue;
          const BufferId from = leader[b], to = leader[a];
          for (auto& [id, first] : leader) {
            if (first == from) first = to;
          }
        }
      }
    }
    std::map<BufferId, std::vector<BufferId>> members;
    for (const BufferId id : states) members[leader[id]].push_back(id);
    for (auto& [first, group] : members) {
      const bool moves =
          std::all_of(group.begin(), group.end(), [&](BufferId id) { return may_move(id); });
      if (moves) groups_.push_back(std::move(group));
    }
  }

  std::set<BufferId> states_of(const Step& step) const {
    std::set<BufferId> result;
    for (const BufferId id : step.buffers) {
      const BufferId owner = program_.owner(id);
      if (program_.buffer(owner).kind == BufferClass::state) result.insert(owner);
    }
    return result;
  }

  /// The parameters through which a call sees what is in the group.
  std::set<std::string> params_of(const Call& call, const std::vector<BufferId>& group) const {
    std::set<std::string> names;
    for (size_t i = 0; i < call.step->buffers.size(); ++i) {
      const BufferId owner = program_.owner(call.step->buffers[i]);
      if (std::find(group.begin(), group.end(), owner) == group.end()) continue;
      names.insert(call.kernel->buffers[i].name);
    }
    return names;
  }

  /// Its kernel, when what is in the group lies in another order.
  Kernel reordered_for(const Call& call, const std::vector<BufferId>& group,
                       const Order& order) const {
    const Dims& shape = program_.buffer(group[0]).shape;
    std::map<std::string, Order> orders;
    for (const std::string& name : params_of(call, group)) {
      orders[name] = order_of_view(call.kernel->find(name)->shape, shape, order);
    }
    return reordered(*call.kernel, orders);
  }

  /// Products, or how often a kernel without products, and that is no update, reads what is in the
  /// group.
  int64_t uses_by(const Call& call, const std::vector<BufferId>& group) const {
    if (call.kernel->macs > 0) return call.kernel->macs;
    const std::set<std::string> params = params_of(call, group);
    for (const std::string& name : params) {
      if (call.kernel->find(name)->mode != loop::AccessMode::read) return 0;
    }
    int64_t reads = 0;
    loop::visit(
        call.kernel->body,
        [&](const Stmt& s) {
          if (s->kind != StmtKind::define) return;
          int64_t here = 0;
          for_each_access(*s->definition, [&](const loop::ExprNode& read, bool) {
            here += params.contains(read.name);
          });
          reads += here * points(*s->definition, program_.symbols);
        },
        nullptr);
    return reads;
  }

  void choose(const std::vector<BufferId>& group) {
    std::vector<Call> calls;
    for (const Call& call : calls_) {
      if (!params_of(call, group).empty()) calls.push_back(call);
    }
    const Buffer& state = program_.buffer(group[0]);
    int64_t uses = 0;
    for (const Call& call : calls) uses += call.counts ? uses_by(call, group) : 0;
    if (uses < kLeastReuse * TensorType{state.element, state.shape}.element_count().constant()) {
      return;
    }
    const auto cycles = [&](const Order* order) {
      double sum = 0;
      for (const Call& call : calls) {
        if (!call.counts) continue;
        sum += cycles_of(order ? reordered_for(call, group, *order) : *call.kernel, *call.step);
      }
      return sum;
    };
    double least = cycles(nullptr) * (1 - kLeastGain);
    std::optional<Order> best;
    for (const Order& order : reversals(program_.buffer(group[0]).shape)) {
      const double with_order = cycles(&order);
      if (with_order >= least) continue;
      least = with_order * (1 - kLeastGain);
      best = order;
    }
    if (!best) return;
    for (const Call& call : calls) *call.kernel = reordered_for(call, group, *best);
    const Dims shape = state.shape;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const BufferId id = static_cast<BufferId>(i);
      if (std::find(group.begin(), group.end(), program_.owner(id)) == group.end()) continue;
      Buffer& buffer = program_.buffers[i];
      buffer.shape = permuted(buffer.shape, order_of_view(buffer.shape, shape, *best));
      if (buffer.view_of >= 0) continue;
      if (!buffer.value.bytes().empty()) buffer.value = permuted(buffer.value, *best);
      buffer.order = *best;
    }
  }

  double cycles_of(const Kernel& kernel, const Step& step) const {
    return call_cycles(program_, kernel, step, target_, skipping_ ? &*skipping_ : nullptr);
  }

  Program program_;
  const TargetInfo& target_;
  std::optional<ZeroSkipping> skipping_;
  std::vector<Call> calls_;
  std::map<std::string, int64_t> times_called_;
  std::set<BufferId> fixed_;
  std::vector<std::vector<BufferId>> groups_;
};

}  // namespace

Program order_state(const Program& program, const TargetInfo& target, bool skips_zeros) {
  if (program.states().empty() || target.vector_bits == 0) return program;
  return Ordering(program, target, skips_zeros).run();
}

}  // namespace backcast
