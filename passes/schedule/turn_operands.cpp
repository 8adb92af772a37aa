// See turn_operands.h.
#include "passes/schedule/turn_operands.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/call_cycles.h"
#include "passes/schedule/reorder.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::Axis;
using loop::Buffer;
using loop::BufferId;
using loop::BufferParam;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Program;
using loop::Step;

// Cycles that turning an element takes, of tensors that no near cache holds.
constexpr double kTurn = 1;
// What the model of cycles cannot tell apart.
constexpr double kLeastGain = 0.25;

class Turning {
 public:
  Turning(const Program& program, const TargetInfo& target) : result_(program), target_(target) {}

  Program run() {
    // Microcontrollers have no room for copies.
    if (target_.vector_bits == 0 || target_.is_microcontroller()) return result_;
    calls_ = loop::count_calls(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      optional_ = &entry.optional_outputs;
      visit(entry.steps);
    }
    return std::move(result_);
  }

 private:
  void visit(std::vector<Step>& given) {
    std::vector<Step> steps;
    for (Step& step : given) {
      visit(step.body);
      visit(step.otherwise);
      const bool alone = step.kind == loop::StepKind::call && calls_[step.kernel] == 1;
      if (!alone || !turn(step, steps)) steps.push_back(std::move(step));
    }
    given = std::move(steps);
  }

  using Orders = std::map<std::string, Order>;

  /// Appends the step among those that turn what it reads and writes, if that is faster.
  bool turn(const Step& step, std::vector<Step>& steps) {
    const Kernel& kernel = result_.kernels.at(step.kernel);
    const Definition* definition = loop::only_definition(kernel);
    if (definition == nullptr || definition->reduce_axes.empty() || !is_static(kernel)) {
      return false;
    }
    std::optional<double> least;
    Orders best;
    for (const Axis& axis : definition->axes) {
      const Orders orders = innermost(*definition, kernel, step, axis.name);
      if (orders.empty()) continue;
      if (!least) least = call_cycles(result_, kernel, step, target_) * (1 - kLeastGain);
      const double then = call_cycles(result_, reordered(kernel, orders), step, target_) +
                          turning_cycles(kernel, orders);
      if (then < *least) {
        least = then;
        best = orders;
      }
    }
    if (best.empty()) return false;
    write(step, best, steps);
    return true;
  }

  static bool is_static(const Kernel& kernel) {
    return kernel.sizes.empty() &&
           std::ranges::all_of(kernel.buffers, [](const BufferParam& param) {
             const bool reads = param.mode == AccessMode::read;
             return static_bytes(param) && param.mode != AccessMode::update &&
                    (!reads || param.element == loop::Scalar::f32);
           });
  }

  /// The orders in which the axis is the last dimension of all that it runs through; empty where
  /// it is already, or lies among others in a dimension.
  Orders innermost(const Definition& definition, const Kernel& kernel, const Step& step,
                   const std::string& axis) const {
    Orders orders;
    bool fits = true, gains = has_order(definition);
    const auto add = [&](const std::string& param, const std::vector<Expr>& indices) {
      if (loop::passes_constant(result_, kernel, step, param)) return;
      std::optional<size_t> at;
      for (size_t d = 0; d < indices.size(); ++d) {
        if (!mentions(indices[d], axis)) continue;
        fits = fits && !at && indices[d]->kind == ExprKind::var;
        at = d;
      }
      if (!fits || !at) return;
      const Order order = last(indices.size(), *at);
      const auto [known, fresh] = orders.emplace(param, order);
      fits = fits && known->second == order;
    };
    for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
      add(read.name, read.args);
      gains = gains || (in_reduction && is_window(definition, read));
    });
    for (const loop::DefinitionOutput& output : definition.outputs) {
      add(output.buffer, output.indices);
      const BufferId id = result_.owner(loop::buffer_of(kernel, step, output.buffer));
      fits = fits && !optional_->contains(id) && is_all_of(*kernel.find(output.buffer), definition);
    }
    if (!fits || !gains) return {};
    std::erase_if(orders, [](const auto& entry) { return std::ranges::is_sorted(entry.second); });
    return orders;
  }

  /// Whether each element is a result: none lies beside them that is written elsewhere.
  static bool is_all_of(const BufferParam& param, const Definition& definition) {
    int64_t results = 1;
    for (const Axis& axis : definition.axes) results *= static_extent(axis).value_or(0);
    return results == count_of(param);
  }

  static Order last(size_t dimensions, size_t moved) {
    Order order;
    for (size_t d = 0; d < dimensions; ++d) {
      if (d != moved) order.push_back(static_cast<int32_t>(d));
    }
    order.push_back(static_cast<int32_t>(moved));
    return order;
  }

  /// Whether no lanes can lie along the sum.
  static bool has_order(const Definition& definition) {
    return std::ranges::any_of(definition.accumulators, [](const loop::Accumulator& acc) {
      return acc.combine == loop::Combine::general;
    });
  }

  /// Whether results read what their neighbours read, too: an index goes along with both.
  static bool is_window(const Definition& definition, const loop::ExprNode& read) {
    const auto runs = [](const std::vector<Axis>& axes, const Expr& index) {
      return std::ranges::any_of(axes,
                                 [&](const Axis& axis) { return mentions(index, axis.name); });
    };
    return std::ranges::any_of(read.args, [&](const Expr& index) {
      return runs(definition.axes, index) && runs(definition.reduce_axes, index);
    });
  }

  static int64_t count_of(const BufferParam& param) {
    return *static_bytes(param) / byte_size(loop::element_of(param.element));
  }

  static double turning_cycles(const Kernel& kernel, const Orders& orders) {
    double sum = 0;
    for (const auto& [param, order] : orders) {
      sum += kTurn * static_cast<double>(count_of(*kernel.find(param)));
    }
    return sum;
  }

  void write(const Step& from, const Orders& orders, std::vector<Step>& steps) {
    Step step = from;
    const Kernel original = result_.kernels.at(step.kernel);
    std::vector<Step> behind;
    for (size_t i = 0; i < original.buffers.size(); ++i) {
      const BufferParam& param = original.buffers[i];
      const auto found = orders.find(param.name);
      if (found == orders.end()) continue;
      const BufferId whole = step.buffers[i];
      Buffer copy;
      copy.element = result_.buffer(whole).element;
      copy.shape = permuted(param.shape, found->second);
      copy.alignment = target_.vector_bits / 8;
      copy.loc = from.loc;
      step.buffers[i] =
          loop::add_buffer(result_, result_.buffer(whole).name + "_turned", std::move(copy));
      const bool reads = param.mode == AccessMode::read;
      Step turning = from;
      turning.buffers = {reads ? whole : step.buffers[i], reads ? step.buffers[i] : whole};
      turning.kernel = add_turn(original, param, found->second, reads);
      (reads ? steps : behind).push_back(std::move(turning));
    }
    result_.kernels.at(step.kernel) = reordered(original, orders);
    steps.push_back(std::move(step));
    for (Step& turning : behind) steps.push_back(std::move(turning));
  }

  /// A kernel that copies the parameter into the order, or what lies in that order back.
  std::string add_turn(const Kernel& original, const BufferParam& param, const Order& order,
                       bool into) {
    Definition definition;
    std::vector<Expr> place;
    for (const Dim& extent : param.shape) {
      const std::string name = "i" + std::to_string(place.size());
      place.push_back(loop::var(name));
      definition.axes.push_back({name, loop::expr_of(extent)});
    }
    const Dims turned_shape = permuted(param.shape, order);
    const std::vector<Expr> turned = permuted(place, order);
    if (into) definition.axes = permuted(definition.axes, order);
    definition.outputs.push_back(
        {"out0", into ? turned : place, loop::access("a0", param.element, into ? place : turned)});
    Kernel kernel;
    kernel.locs = original.locs;
    kernel.buffers = {
        {"a0", param.element, into ? param.shape : turned_shape, AccessMode::read, {}},
        {"out0", param.element, into ? turned_shape : param.shape, AccessMode::write, {}}};
    kernel.body = loop::define(std::move(definition));
    return loop::add_kernel(result_, original.name + (into ? "_turned" : "_back"),
                            std::move(kernel));
  }

  Program result_;
  const TargetInfo& target_;
  const std::set<BufferId>* optional_ = nullptr;
  std::map<std::string, int64_t> calls_;
};

}  // namespace

Program turn_operands(const Program& program, const TargetInfo& target) {
  return Turning(program, target).run();
}

}  // namespace backcast
