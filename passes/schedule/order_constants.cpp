#include "passes/schedule/order_constants.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/choose.h"
#include "passes/schedule/reorder.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::Buffer;
using loop::BufferId;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Program;
using loop::Step;

// What the model of cycles cannot tell apart.
constexpr double kLeastGain = 0.1;

class Ordering {
 public:
  Ordering(const Program& program, const TargetInfo& target) : result_(program), target_(target) {}

  Program run() {
    if (target_.vector_bits == 0) return result_;
    calls_ = loop::count_calls(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      loop::for_each_call(entry.steps, [&](Step& step) {
        if (calls_[step.kernel] == 1) order(step);
      });
    }
    return std::move(result_);
  }

 private:
  void order(Step& step) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    const Definition* definition = loop::only_definition(kernel);
    if (definition == nullptr || definition->accumulators.size() != 1) return;
    if (definition->accumulators[0].combine != loop::Combine::sum) return;
    for (const loop::BufferParam& param : kernel.buffers) {
      if (!loop::passes_constant(result_, kernel, step, param.name)) continue;
      const std::optional<Expr> read = only_read(*definition, param.name);
      if (!read || !has_few_results(*definition, *read)) continue;
      const std::optional<Order> order = lanes_last(*definition, *read);
      if (!order) continue;
      Kernel turned = reordered(kernel, {{param.name, *order}});
      const double now = cycles(kernel, step), then = cycles(turned, step);
      if (then > now * (1 - kLeastGain)) continue;
      take(step, param.name, *order);
      kernel = std::move(turned);
      return;
    }
  }

  /// The only place where a definition reads a parameter, if that is in its sum.
  static std::optional<Expr> only_read(const Definition& definition, const std::string& param) {
    Expr found;
    loop::visit(definition.accumulators[0].value, [&](const Expr& e) {
      if (e->kind == ExprKind::access && e->name == param) found = e;
    });
    if (reads_of(definition, param) != 1 || !found) return std::nullopt;
    return found;
  }

  /// Whether all results that the elements of a constant take part in fill half a vector at most.
  bool has_few_results(const Definition& definition, const Expr& read) const {
    int64_t results = 1;
    for (const Axis& axis : definition.axes) {
      bool runs = false;
      for (const Expr& index : read->args) runs = runs || mentions(index, axis.name);
      if (!runs) continue;
      const std::optional<int64_t> extent = static_extent(axis);
      if (!extent) return false;
      results *= *extent;
    }
    const int64_t bytes = byte_size(loop::element_of(read.type().scalar));
    return results * 2 <= target_.vector_lanes(static_cast<int>(bytes));
  }

  /// The order with the dimension last along which everything else that is summed lies contiguous.
  static std::optional<Order> lanes_last(const Definition& definition, const Expr& read) {
    for (const Axis& axis : definition.reduce_axes) {
      std::optional<size_t> at;
      for (size_t d = 0; d < read->args.size(); ++d) {
        if (read->args[d]->kind == ExprKind::var && read->args[d]->name == axis.name) at = d;
      }
      if (!at || !lies_along(definition, axis, read->name)) continue;
      Order order;
      for (size_t d = 0; d < read->args.size(); ++d) {
        if (d != *at) order.push_back(static_cast<int32_t>(d));
      }
      order.push_back(static_cast<int32_t>(*at));
      if (*at + 1 != read->args.size()) return order;
    }
    return std::nullopt;
  }

  static bool lies_along(const Definition& definition, const Axis& axis, const std::string& but) {
    bool fits = true, along = false;
    for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
      if (!in_reduction || read.name == but || read.args.empty()) return;
      for (size_t d = 0; d + 1 < read.args.size(); ++d) {
        fits = fits && !mentions(read.args[d], axis.name);
      }
      const std::optional<int64_t> last = coefficient(read.args.back(), axis.name);
      fits = fits && last && (*last == 0 || *last == 1);
      along = along || last == 1;
    });
    return fits && along;
  }

  double cycles(const Kernel& kernel, const Step& step) const {
    const auto is_constant = [&](const std::string& param) {
      return loop::passes_constant(result_, kernel, step, param);
    };
    return schedule_cycles(*loop::only_definition(kernel), kernel, target_, is_constant, false);
  }

  void take(Step& step, const std::string& param, const Order& order) {
    const Kernel& kernel = result_.kernels.at(step.kernel);
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      if (kernel.buffers[i].name != param) continue;
      Buffer turned = result_.buffer(step.buffers[i]);
      turned.shape = permuted(turned.shape, order);
      turned.value = permuted(turned.value, order);
      turned.alignment = std::max<int64_t>(turned.alignment, target_.vector_bits / 8);
      const std::string wish = turned.name + "_turned";
      step.buffers[i] = loop::add_buffer(result_, wish, std::move(turned));
    }
  }

  Program result_;
  const TargetInfo& target_;
  std::map<std::string, int64_t> calls_;
};

}  // namespace

Program order_constants(const Program& program, const TargetInfo& target) {
  return Ordering(program, target).run();
}

}  // namespace backcast
