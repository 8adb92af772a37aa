// Leaving channels out of contractions with constants: their weights shrink, and what absent
// channels contributed is a constant.
#include <algorithm>
#include <numeric>

#include "ir/graph/evaluator.h"
#include "ir/ops/narrow_rules.h"
#include "ir/ops/ops.h"

namespace backcast::narrowing {
namespace {

/// The operator on the constants and on an operand that is zero but for the indices left out.
/// Nothing when these are zero, too.
std::optional<Literal> contribution(const NarrowContext& c, const Attrs& attrs, size_t side,
                                    const std::vector<int64_t>& shape, const KeptIndices& kept,
                                    const Literal& weights) {
  std::vector<double> values(static_cast<size_t>(std::accumulate(
      shape.begin(), shape.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; })));
  bool any = false;
  const std::vector<int64_t> strides = row_major_strides(shape);
  for (const auto& [axis, indices] : kept) {
    const int64_t extent = shape[static_cast<size_t>(axis)];
    for (int64_t index = 0; index < extent; ++index) {
      if (std::binary_search(indices.begin(), indices.end(), index)) continue;
      const std::optional<SharedValue> shared = shared_value(*c.bounds[side], axis, index);
      if (!shared || shared->value == 0) continue;
      any = true;
      for (size_t i = 0; i < values.size(); ++i) {
        const int64_t at = static_cast<int64_t>(i) / strides[static_cast<size_t>(axis)] % extent;
        if (at == index) values[i] = shared->value;
      }
    }
  }
  if (!any) return std::nullopt;
  std::vector<Value> operands(2);
  operands[side] = Literal::from_doubles(ElementType::f64, shape, values);
  operands[1 - side] = weights.converted_to(ElementType::f64);  // sums with double's precision
  std::vector<Type> types;
  for (const Value& operand : operands) types.push_back(operand.tensor.type());
  Node node{c.node.op, {}, attrs, c.node.op->infer({c.module, types, attrs}), c.node.loc};
  return evaluate_node(c.module, node, operands).tensor;
}

bool reads_nothing(const Literal& weights, int64_t axis, int64_t index) {
  const int64_t inner = row_major_strides(weights.shape())[static_cast<size_t>(axis)];
  const int64_t extent = weights.shape()[static_cast<size_t>(axis)];
  for (int64_t i = index * inner; i < weights.element_count(); i += inner * extent) {
    for (int64_t at = i; at < i + inner; ++at) {
      if (weights.as_double(at) != 0) return false;
    }
  }
  return true;
}

bool has_border(const ConvAttrs& attrs) {
  for (size_t i = 0; i < attrs.strides.size(); ++i) {
    if (!(attrs.pad_low[i] == Dim(0)) || !(attrs.pad_high[i] == Dim(0)) ||
        attrs.input_dilation[i] != 1) {
      return true;
    }
  }
  return false;
}

/// The axes of one side of a product and where they are in the result.
struct DotSide {
  Ints contract;
  std::vector<std::pair<int64_t, int64_t>> batch, free;  // own axis, result axis
};

DotSide dot_side(const NarrowContext& c, size_t side) {
  const DotGeneralAttrs& attrs = c.node.attrs.as<DotGeneralAttrs>();
  const Ints& batch = side == 0 ? attrs.lhs_batch : attrs.rhs_batch;
  DotSide result;
  result.contract = side == 0 ? attrs.lhs_contract : attrs.rhs_contract;
  const auto is_free = [](const Ints& axes, const Ints& others, int64_t axis) {
    return !std::count(axes.begin(), axes.end(), axis) &&
           !std::count(others.begin(), others.end(), axis);
  };
  for (size_t i = 0; i < batch.size(); ++i) {
    result.batch.emplace_back(batch[i], static_cast<int64_t>(i));
  }
  int64_t to = static_cast<int64_t>(batch.size());
  for (int64_t axis = 0; side == 1 && axis < c.types[0]->rank(); ++axis) {
    if (is_free(attrs.lhs_batch, attrs.lhs_contract, axis)) ++to;
  }
  for (int64_t axis = 0; axis < c.types[side]->rank(); ++axis) {
    if (is_free(batch, result.contract, axis)) result.free.emplace_back(axis, to++);
  }
  return result;
}

}  // namespace

void relate_conv(const NarrowContext& c, AxisRelations& r) {
  const ConvAttrs& attrs = c.node.attrs.as<ConvAttrs>();
  const Literal* weights = c.constants[1];
  const int64_t features = extent_of(c, 0, attrs.input_feature);
  if (weights == nullptr || c.flexible[0] || attrs.batch_groups != 1 || features <= 0) {
    for (const int value : {0, 1, kResult}) pin_all(c, value, r);
    return;
  }
  r.pin(0, attrs.input_batch);
  r.pin(kResult, attrs.output_batch);
  for (const int64_t axis : attrs.input_spatial) r.pin(0, axis);
  for (const int64_t axis : attrs.output_spatial) r.pin(kResult, axis);
  const int64_t groups = attrs.feature_groups;
  if (groups == 1) {
    const AxisRelations::Without condition =
        has_border(attrs) ? AxisRelations::Without::zero : AxisRelations::Without::any_value;
    for (int64_t i = 0; i < features; ++i) {
      r.absorb({0, attrs.input_feature, i}, reads_nothing(*weights, attrs.kernel_input, i)
                                                ? AxisRelations::Without::nothing_read
                                                : condition);
    }
    return;
  }
  // A group goes as a whole.
  const int64_t outputs = extent_of(c, kResult, attrs.output_feature) / groups;
  for (int64_t g = 0; g < groups; ++g) {
    const AxisIndex first{0, attrs.input_feature, g * (features / groups)};
    for (int64_t i = 1; i < features / groups; ++i) {
      r.link(first, {0, attrs.input_feature, first.index + i});
    }
    for (int64_t i = 0; i < outputs; ++i) {
      r.link(first, {kResult, attrs.output_feature, g * outputs + i});
    }
  }
}

void narrow_conv(const NarrowContext& c, std::span<const KeptIndices> operands,
                 const KeptIndices& result, Narrowed& narrowed) {
  ConvAttrs attrs = c.node.attrs.as<ConvAttrs>();
  narrowed.contracts = true;
  const auto outputs = result.find(attrs.output_feature);
  if (outputs != result.end()) narrowed.flexible[1][attrs.kernel_output] = outputs->second;
  const auto inputs = operands[0].find(attrs.input_feature);
  if (inputs == operands[0].end()) return;
  if (attrs.feature_groups > 1) {
    const int64_t size = extent_of(c, 0, attrs.input_feature) / attrs.feature_groups;
    attrs.feature_groups = static_cast<int64_t>(inputs->second.size()) / size;
    narrowed.attrs = attrs;
    return;
  }
  narrowed.flexible[1][attrs.kernel_input] = inputs->second;
  if (has_border(attrs)) return;  // what is absent is zero
  const Literal weights =
      keep_indices(*c.constants[1], outputs == result.end()
                                        ? KeptIndices{}
                                        : KeptIndices{{attrs.kernel_output, outputs->second}});
  std::vector<int64_t> shape(c.types[0]->shape.size(), 1);
  shape[size_t(attrs.input_feature)] = extent_of(c, 0, attrs.input_feature);
  for (size_t i = 0; i < attrs.strides.size(); ++i) {
    const int64_t kernel = weights.shape()[size_t(attrs.kernel_spatial[i])];
    shape[size_t(attrs.input_spatial[i])] = (kernel - 1) * attrs.kernel_dilation[i] + 1;
  }
  narrowed.shift =
      contribution(c, attrs, 0, shape, {{attrs.input_feature, inputs->second}}, weights);
}

void relate_dot(const NarrowContext& c, AxisRelations& r) {
  for (const size_t side : {0u, 1u}) {
    const bool made = c.flexible[side] && c.constants[side] == nullptr;
    if (!made && !(c.constants[0] != nullptr && c.constants[1] != nullptr)) continue;
    for (const int value : {0, 1, kResult}) pin_all(c, value, r);
    return;
  }
  for (const size_t side : {0u, 1u}) {
    const DotSide own = dot_side(c, side), other = dot_side(c, 1 - side);
    const int value = static_cast<int>(side);
    for (const auto& [axis, to] : own.batch) r.pin(value, axis), r.pin(kResult, to);
    if (c.constants[side] != nullptr) continue;  // its free axes follow the result's
    for (const auto& [axis, to] : own.free) link_axis(c, value, axis, to, r);
    const Literal* weights = c.constants[1 - side];
    for (size_t i = 0; i < own.contract.size(); ++i) {
      const int64_t axis = own.contract[i], extent = extent_of(c, value, axis);
      // With several contracted axes an absent element would be counted along each of them.
      if (weights == nullptr || extent <= 0 || own.contract.size() != 1) {
        r.pin(value, axis);
        continue;
      }
      for (int64_t k = 0; k < extent; ++k) {
        r.absorb({value, axis, k}, reads_nothing(*weights, other.contract[i], k)
                                       ? AxisRelations::Without::nothing_read
                                       : AxisRelations::Without::any_value);
      }
    }
  }
}

void narrow_dot(const NarrowContext& c, std::span<const KeptIndices> operands,
                const KeptIndices& result, Narrowed& narrowed) {
  if (c.constants[0] == nullptr && c.constants[1] == nullptr) return;
  const size_t side = c.constants[1] != nullptr ? 0 : 1;
  const DotSide own = dot_side(c, side), other = dot_side(c, 1 - side);
  narrowed.contracts = true;
  KeptIndices outputs;
  for (const auto& [axis, to] : other.free) {
    const auto found = result.find(to);
    if (found != result.end()) outputs[axis] = found->second;
  }
  narrowed.flexible[1 - side] = outputs;
  const auto inputs =
      own.contract.size() == 1 ? operands[side].find(own.contract[0]) : operands[side].end();
  if (inputs == operands[side].end()) return;
  narrowed.flexible[1 - side][other.contract[0]] = inputs->second;
  std::vector<int64_t> shape(c.types[side]->shape.size(), 1);
  shape[size_t(own.contract[0])] = extent_of(c, static_cast<int>(side), own.contract[0]);
  for (const auto& [axis, to] : own.batch) {
    shape[size_t(axis)] = extent_of(c, static_cast<int>(side), axis);
  }
  narrowed.shift = contribution(c, c.node.attrs, side, shape, {{own.contract[0], inputs->second}},
                                keep_indices(*c.constants[1 - side], outputs));
}

}  // namespace backcast::narrowing
