// Scan, with its axes and directions, and the batched one of opset 8.
#include <algorithm>
#include <utility>

#include "frontend/graph_importer.h"
#include "frontend/onnx_tensors.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

Ints ints_of(const OnnxNode& node, std::string_view name, size_t count, const Loc& loc) {
  const OnnxAttribute* attribute = find_attribute(node, name);
  Ints values = attribute ? attribute->ints : Ints();
  if (values.empty()) values.assign(count, 0);
  if (values.size() != count) {
    throw CompileError(loc, fmt::format("attribute \"{}\" has {} entries and needs {}", name,
                                        values.size(), count));
  }
  return values;
}

/// Moves an axis to the front, or the front to an axis.
ValueId move_axis(Emitter& e, ValueId x, int64_t axis, bool to_front, const Loc& loc) {
  const int64_t rank = e.rank(x);
  if (axis < -rank || axis >= rank) {
    throw CompileError(loc, fmt::format("axis {} of a scanned value of rank {}", axis, rank));
  }
  axis = axis < 0 ? axis + rank : axis;
  if (axis == 0) return x;
  Ints order = counting(rank);
  if (to_front) {
    order.erase(order.begin() + axis);
    order.insert(order.begin(), axis);
  } else {
    order.erase(order.begin());
    order.insert(order.begin() + axis, 0);
  }
  return e.transpose(x, order);
}

Type row_of(const TensorType& whole) {
  TensorType row = whole;
  row.shape.erase(row.shape.begin());
  return row;
}

bool all_equal_to(const Ints& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}

}  // namespace

std::vector<ValueId> GraphImporter::import_scan(const OnnxNode& node, const Loc& loc,
                                                Scope& scope) {
  Emitter e(*builder_);
  const std::vector<ValueId> inputs = node_inputs(node, loc, scope);
  const OnnxAttribute* count = find_attribute(node, "num_scan_inputs");
  if (!count || count->i < 1 || count->i > static_cast<int64_t>(inputs.size())) {
    throw CompileError(loc, "attribute \"num_scan_inputs\" is missing or does not fit the inputs");
  }
  const size_t rows = static_cast<size_t>(count->i), states = inputs.size() - rows;
  const Body body = body_of(node, "body", loc, scope);
  if (body.graph->outputs.size() < states || node.outputs.size() > body.graph->outputs.size()) {
    throw CompileError(loc, "the body gives too few outputs");
  }
  const size_t stacked = body.graph->outputs.size() - states;
  const Ints input_axes = ints_of(node, "scan_input_axes", rows, loc);
  const Ints input_directions = ints_of(node, "scan_input_directions", rows, loc);
  const Ints output_axes = ints_of(node, "scan_output_axes", stacked, loc);
  const Ints output_directions = ints_of(node, "scan_output_directions", stacked, loc);
  ScanAttrs attrs;
  attrs.reverse = all_equal_to(input_directions, 1) && all_equal_to(output_directions, 1);
  const auto in_order = [&](ValueId x, int64_t direction) {
    return direction != 0 && !attrs.reverse ? e.reverse(x, {0}) : x;
  };
  builder_->set_loc(loc);
  std::vector<ValueId> operands(1);
  std::vector<Type> params;
  for (const ValueId input : inputs) require_tensor(input, loc);
  for (size_t i = 0; i < states; ++i) {
    operands.push_back(inputs[i]);
    params.push_back(builder_->type(inputs[i]));
  }
  for (size_t i = 0; i < rows; ++i) {
    const ValueId moved = move_axis(e, inputs[states + i], input_axes[i], true, loc);
    operands.push_back(in_order(moved, input_directions[i]));
    attrs.length = e.extent(operands.back(), 0);
    params.push_back(row_of(e.type(operands.back())));
  }
  operands[0] = e.dimension(attrs.length);
  attrs.carries = static_cast<int64_t>(states);
  attrs.xs = static_cast<int64_t>(rows);
  attrs.body = import_body(body, params, body.captures, loc, scope,
                           [&](const std::vector<ValueId>&, const std::vector<ValueId>& outputs) {
                             return builder_->emit(ops::tuple, outputs);
                           });
  for (const ValueId id : operands_of(body.captures, scope)) operands.push_back(id);
  const ValueId result = builder_->emit(ops::scan, operands, attrs);
  std::vector<ValueId> outputs;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    ValueId value = e.get(result, static_cast<int64_t>(k));
    if (k >= states) {
      value = in_order(value, output_directions[k - states]);
      value = move_axis(e, value, output_axes[k - states], false, loc);
    }
    outputs.push_back(value);
  }
  return outputs;
}

/// Opset 8: every operand has a batch dimension in front, and each sequence of the batch is scanned
/// for itself, over its own length.
std::vector<ValueId> GraphImporter::import_batched_scan(const OnnxNode& node, const Loc& loc,
                                                        Scope& scope) {
  Emitter e(*builder_);
  std::vector<ValueId> inputs = node_inputs(node, loc, scope);
  const OnnxAttribute* count = find_attribute(node, "num_scan_inputs");
  if (!count || count->i < 1 || count->i + 1 > static_cast<int64_t>(inputs.size())) {
    throw CompileError(loc, "attribute \"num_scan_inputs\" is missing or does not fit the inputs");
  }
  const size_t rows = static_cast<size_t>(count->i), states = inputs.size() - 1 - rows;
  const Body body = body_of(node, "body", loc, scope);
  const Ints directions = ints_of(node, "directions", rows, loc);
  if (!all_equal_to(directions, directions[0])) {
    throw CompileError(loc, "scanned operands of different directions are not supported");
  }
  builder_->set_loc(loc);
  std::vector<Type> params;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const TensorType type = e.type(inputs[i]);
    const size_t dropped = i <= states ? 1 : 2;
    if (type.shape.size() < dropped) throw CompileError(loc, "an input has too few dimensions");
    params.push_back(TensorType{
        type.element, {type.shape.begin() + static_cast<int64_t>(dropped), type.shape.end()}});
  }
  ScanAttrs inner;
  inner.carries = static_cast<int64_t>(states);
  inner.xs = static_cast<int64_t>(rows);
  inner.length = e.extent(inputs.back(), 1);
  inner.reverse = directions[0] != 0;
  inner.body = import_body(body, params, body.captures, loc, scope,
                           [&](const std::vector<ValueId>&, const std::vector<ValueId>& outputs) {
                             return builder_->emit(ops::tuple, outputs);
                           });
  ScanAttrs outer;
  outer.length = e.extent(inputs.back(), 0);
  std::vector<ValueId> operands{e.dimension(outer.length)};
  operands.push_back(inputs[0].valid() ? e.cast(inputs[0], ElementType::i64)
                                       : e.broadcast_to(e.dimension(inner.length), {outer.length}));
  operands.insert(operands.end(), inputs.begin() + 1, inputs.end());
  outer.xs = static_cast<int64_t>(operands.size()) - 1;
  for (const ValueId id : operands_of(body.captures, scope)) operands.push_back(id);
  std::vector<Type> types;
  for (size_t i = 1; i < operands.size(); ++i) {
    const bool scanned = static_cast<int64_t>(i) <= outer.xs;
    types.push_back(scanned ? row_of(e.type(operands[i])) : builder_->type(operands[i]));
  }
  outer.body = build_function(loc.node + "/sequence", [&] {
    std::vector<ValueId> values;
    for (size_t i = 0; i < types.size(); ++i) {
      builder_->set_loc(loc);
      values.push_back(builder_->parameter(fmt::format("x{}", i), types[i]));
    }
    return builder_->emit(ops::scan, values, inner);
  });
  const ValueId result = builder_->emit(ops::scan, operands, outer);
  std::vector<ValueId> outputs;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    outputs.push_back(e.get(result, static_cast<int64_t>(k)));
  }
  return outputs;
}

}  // namespace backcast
