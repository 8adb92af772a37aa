// See layer.h. Only accesses and conditions are looked at, never an operator.
#include "passes/winograd/layer.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Op;

constexpr int64_t kTaps = 3;

std::vector<std::string> mentioned(const std::vector<Axis>& axes, const Expr& e) {
  std::vector<std::string> names;
  for (const Axis& axis : axes) {
    if (mentions(e, axis.name)) names.push_back(axis.name);
  }
  return names;
}

int64_t extent_of(const std::vector<Axis>& axes, const std::string& name) {
  for (const Axis& axis : axes) {
    if (axis.name == name) return static_extent(axis).value_or(0);
  }
  return 0;
}

/// c with e = axis + kernel axis + c.
std::optional<int64_t> offset(const Expr& e, const std::string& axis, const std::string& kernel) {
  if (coefficient(e, axis) != 1 || coefficient(e, kernel) != 1) return std::nullopt;
  return evaluate(e, {{axis, 0}, {kernel, 0}});
}

bool is_variable(const Expr& e) { return e->kind == ExprKind::var; }

/// How far the axis runs: part of a dimension of this size, or all of it.
std::optional<Dim> extent_within(const std::vector<Axis>& axes, const std::string& name,
                                 const Dim& size) {
  for (const Axis& axis : axes) {
    if (axis.name != name) continue;
    if (const std::optional<int64_t> extent = static_extent(axis)) return Dim(*extent);
    if (loop::equal(axis.extent, loop::expr_of(size))) return size;
  }
  return std::nullopt;
}

class Matcher {
 public:
  Matcher(const loop::Kernel& kernel, const Definition& definition,
          const std::function<bool(const std::string&)>& is_constant)
      : kernel_(kernel), definition_(definition), is_constant_(is_constant) {}

  std::optional<WinogradConv> run() {
    if (!product()) return std::nullopt;
    for (const WinogradOf of : {WinogradOf::result, WinogradOf::weights}) {
      for (size_t weights = 0; weights < 2; ++weights) {
        conv_ = {};
        conv_.of = of;
        conv_.definition = definition_;
        if (operands(weights) && input_indices() && other_indices() && guards() && epilogue()) {
          return conv_;
        }
      }
    }
    return std::nullopt;
  }

 private:
  /// The accumulator sums products, guarded or not.
  bool product() {
    if (definition_.accumulators.size() != 1) return false;
    const loop::Accumulator& acc = definition_.accumulators[0];
    if (acc.combine != loop::Combine::sum || !is_zero(acc.init)) return false;
    Expr value = acc.value;
    if (value->kind == ExprKind::if_then_else) {
      if (!is_zero(value->args[2])) return false;
      conditions_ = conjuncts(value->args[0]);
      value = value->args[1];
    }
    if (value->kind != ExprKind::binary || value->op != Op::mul) return false;
    for (size_t i = 0; i < 2; ++i) factors_[i] = read_of(value->args[i], acc.type);
    return factors_[0]->kind == ExprKind::access && factors_[1]->kind == ExprKind::access;
  }

  bool operands(size_t weights) {
    const Expr& w = factors_[weights];
    const Expr& x = factors_[1 - weights];
    if (is_constant_(x->name)) return false;
    conv_.input = x->name;
    conv_.input_access = x;
    conv_.factor = w->name;
    conv_.factor_access = w;
    conv_.constant_weights = is_constant_(w->name);
    conv_.scalar = definition_.accumulators[0].type.scalar;
    conv_.stored = x.type().scalar;
    if (!conv_.is_exact()) return of_floats(x.type(), w.type());
    return !is_gradient() && conv_.constant_weights && of_bytes(x.type(), w.type());
  }

  /// What an integer factor is converted from.
  static const Expr& read_of(const Expr& factor, loop::Type type) {
    const bool converted = factor->kind == ExprKind::cast && type == loop::Type{loop::Scalar::i32};
    return converted ? factor->args[0] : factor;
  }

  static bool of_bytes(loop::Type x, loop::Type w) {
    const bool is_byte = x.scalar == loop::Scalar::u8 || x.scalar == loop::Scalar::i8;
    return is_byte && loop::is_integer(w.scalar);
  }

  bool of_floats(loop::Type x, loop::Type w) const {
    const loop::Type type{conv_.scalar, 1};
    const bool is_float = conv_.scalar == loop::Scalar::f32 || conv_.scalar == loop::Scalar::f64;
    return is_float && kernel_.find(definition_.outputs[0].buffer)->element == conv_.scalar &&
           x == type && w == type;
  }

  static bool is_zero(const Expr& e) {
    return e->kind == ExprKind::constant && e->float_value == 0 && e->int_value == 0;
  }

  bool is_gradient() const { return conv_.of == WinogradOf::weights; }
  /// Axes of the convolution's results, and those that it sums over: a gradient sums over the
  /// former.
  const std::vector<Axis>& positions() const {
    return is_gradient() ? definition_.reduce_axes : definition_.axes;
  }
  const std::vector<Axis>& summed() const {
    return is_gradient() ? definition_.axes : definition_.reduce_axes;
  }

  bool input_indices() {
    std::vector<WinogradSide> sides;
    const Dims& shape = kernel_.find(conv_.input)->shape;
    for (size_t d = 0; d < conv_.input_access->args.size(); ++d) {
      const Expr& index = conv_.input_access->args[d];
      if (reads_memory(index)) return false;
      const std::vector<std::string> axes = mentioned(positions(), index);
      const std::vector<std::string> reduce = mentioned(summed(), index);
      if (axes.empty() && reduce.empty()) continue;
      if (axes.size() == 1 && reduce.size() == 1) {
        WinogradSide side;
        side.axis = axes[0];
        side.kernel_axis = reduce[0];
        side.dimension = d;
        const std::optional<int64_t> shift = offset(index, side.axis, side.kernel_axis);
        side.extent = extent_of(positions(), side.axis);
        if (!shift || !shape[d].is_constant() || side.extent == 0) return false;
        if (extent_of(summed(), side.kernel_axis) != kTaps) return false;
        side.shift = *shift;
        side.end = shape[d].constant();
        sides.push_back(side);
      } else if (is_variable(index) && axes.size() == 1 && conv_.batch.empty()) {
        const std::optional<Dim> batches = extent_within(positions(), axes[0], shape[d]);
        if (!batches) return false;
        conv_.batch = axes[0];
        conv_.batches = *batches;
      } else if (is_variable(index) && reduce.size() == 1 && conv_.channel.empty()) {
        conv_.channel = reduce[0];
        conv_.channels = extent_of(summed(), reduce[0]);
      } else {
        return false;
      }
    }
    if (sides.size() != 2 || sides[0].axis == sides[1].axis || conv_.channels == 0) return false;
    conv_.rows = sides[0];
    conv_.columns = sides[1];
    return conv_.rows.kernel_axis != conv_.columns.kernel_axis;
  }

  /// Every axis has its part; what is left over belongs to the features.
  bool other_indices() {
    const std::set<std::string> places{conv_.rows.axis, conv_.columns.axis, conv_.batch};
    const std::set<std::string> kernel{conv_.rows.kernel_axis, conv_.columns.kernel_axis,
                                       conv_.channel};
    for (const std::vector<Axis>* axes : {&definition_.axes, &definition_.reduce_axes}) {
      for (const Axis& axis : *axes) {
        if ((axes == &positions() ? places : kernel).count(axis.name)) continue;
        // Features are among the results of both.
        if (axes != &definition_.axes || !conv_.feature.empty() || !static_extent(axis)) {
          return false;
        }
        conv_.feature = axis.name;
        conv_.features = *static_extent(axis);
      }
    }
    const std::set<std::string>& foreign = is_gradient() ? kernel : places;
    for (const Expr& index : conv_.factor_access->args) {
      if (reads_memory(index)) return false;
      for (const std::string& axis : foreign) {
        if (!axis.empty() && mentions(index, axis)) return false;
      }
      for (const std::vector<Axis>* axes : {&definition_.axes, &definition_.reduce_axes}) {
        for (const Axis& axis : *axes) {
          if (!coefficient(index, axis.name)) return false;
        }
      }
    }
    return true;
  }

  /// Conditions say nothing but where the input ends.
  bool guards() {
    for (const Expr& part : conditions_) {
      if (part->kind != ExprKind::binary || (part->op != Op::ge && part->op != Op::lt)) {
        return false;
      }
      const Expr difference = part->args[0] - part->args[1];
      bool found = false;
      for (WinogradSide* side : {&conv_.rows, &conv_.columns}) {
        const std::optional<int64_t> at = offset(difference, side->axis, side->kernel_axis);
        if (!at) continue;
        const int64_t limit = side->shift - *at;
        if (part->op == Op::ge) side->first = std::max(side->first, limit);
        if (part->op == Op::lt) side->end = std::min(side->end, limit);
        found = true;
      }
      if (!found) return false;
    }
    return true;
  }

  /// What follows the sum can be computed for a vector of features; that of a gradient is a
  /// definition again.
  bool epilogue() {
    const auto contiguous = [&](const std::string& buffer, const std::vector<Expr>& indices,
                                const std::string& axis) {
      return axis.empty() ||
             coefficient(loop::flat_index(kernel_.find(buffer)->shape, indices), axis) == 1;
    };
    conv_.channels_last = contiguous(conv_.input, conv_.input_access->args, conv_.channel);
    if (is_gradient()) {
      conv_.channels_last =
          conv_.channels_last && contiguous(conv_.factor, conv_.factor_access->args, conv_.feature);
      return true;
    }
    if (definition_.outputs.size() != 1) return false;
    const loop::DefinitionOutput& output = definition_.outputs[0];
    bool fits = true;
    loop::visit(output.value, [&](const Expr& e) {
      if (e->kind == ExprKind::if_then_else && !conv_.feature.empty()) {
        fits = fits && !mentions(e->args[0], conv_.feature);
      }
      if (e->kind != ExprKind::access) return;
      for (const Expr& index : e->args) fits = fits && !reads_memory(index);
    });
    for (const Expr& index : output.indices) fits = fits && !reads_memory(index);
    conv_.channels_last =
        conv_.channels_last && contiguous(output.buffer, output.indices, conv_.feature);
    return fits;
  }

  const loop::Kernel& kernel_;
  const Definition& definition_;
  const std::function<bool(const std::string&)>& is_constant_;
  std::array<Expr, 2> factors_;
  std::vector<Expr> conditions_;
  WinogradConv conv_;
};

}  // namespace

std::optional<WinogradConv> match_winograd(
    const loop::Kernel& kernel, const std::function<bool(const std::string&)>& is_constant) {
  const Definition* definition = loop::only_definition(kernel);
  if (definition == nullptr) return std::nullopt;
  return Matcher(kernel, *definition, is_constant).run();
}

}  // namespace backcast
