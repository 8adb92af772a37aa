#include "passes/graph/stacked_rows.h"

#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/scan_layout.h"
#include "passes/graph/algebra.h"

namespace backcast {
namespace {

struct Box {
  std::vector<int64_t> start, limit;
};

Box whole(const TensorType& type) {
  Box box;
  for (const Dim& dim : type.shape) {
    box.start.push_back(0);
    box.limit.push_back(dim.constant());
  }
  return box;
}

/// Where a padding with zeros puts its operand; nothing for paddings of another kind.
std::optional<Box> placed_by(const Function& function, const Node& node) {
  if (node.op != &ops::pad || !is_zero_of(function, node.operands[1])) return std::nullopt;
  const PadAttrs& attrs = node.attrs.as<PadAttrs>();
  Box box = whole(function.type(node.operands[0]).tensor());
  for (size_t d = 0; d < box.start.size(); ++d) {
    if (attrs.interior[d] != 0 || !attrs.low[d].is_constant() || !attrs.high[d].is_constant() ||
        attrs.low[d].constant() < 0 || attrs.high[d].constant() < 0) {
      return std::nullopt;
    }
    box.start[d] += attrs.low[d].constant();
    box.limit[d] += attrs.low[d].constant();
  }
  return box;
}

bool zero_within(const Function& function, ValueId value, const Box& box) {
  const Node& node = function.node(value);
  if (node.op == &ops::add) {
    return zero_within(function, node.operands[0], box) &&
           zero_within(function, node.operands[1], box);
  }
  const std::optional<Box> placed = placed_by(function, node);
  if (!placed) return false;
  for (size_t d = 0; d < box.start.size(); ++d) {
    if (box.limit[d] <= placed->start[d] || box.start[d] >= placed->limit[d]) return true;
  }
  return false;
}

/// Where `part` lies in a sum of what is put together without overlapping.
std::optional<Box> box_of(const Function& function, ValueId value, ValueId part) {
  if (value == part) return whole(function.type(part).tensor());
  const Node& node = function.node(value);
  if (node.op == &ops::add) {
    for (size_t i : {0u, 1u}) {
      const std::optional<Box> box = box_of(function, node.operands[i], part);
      if (box && zero_within(function, node.operands[1 - i], *box)) return box;
    }
    return std::nullopt;
  }
  const std::optional<Box> placed = placed_by(function, node);
  std::optional<Box> box = placed ? box_of(function, node.operands[0], part) : std::nullopt;
  for (size_t d = 0; box && d < box->start.size(); ++d) {
    box->start[d] += placed->start[d];
    box->limit[d] += placed->start[d];
  }
  return box;
}

Dims dims_of(const std::vector<int64_t>& values) { return {values.begin(), values.end()}; }

}  // namespace

bool is_zero_of(const Function& function, ValueId value) {
  return splat_of(function, value) == std::optional<double>(0);
}

StackedRows::StackedRows(const Node& scan, const Function& body)
    : body_(body),
      carries_(scan.attrs.as<ScanAttrs>().carries),
      xs_(scan.attrs.as<ScanAttrs>().xs),
      length_(scan.attrs.as<ScanAttrs>().length.constant()),
      results_(*results_of(body)) {}

std::optional<StackedRows::Source> StackedRows::source_of(ValueId value) const {
  for (int64_t p = carries_; p < carries_ + xs_; ++p) {
    if (body_.params[static_cast<size_t>(p)] == value) return Source{false, p + 1, {}, {}};
  }
  if (!body_.type(value).is_tensor() || !body_.type(value).tensor().is_static()) {
    return std::nullopt;
  }
  for (size_t y = static_cast<size_t>(carries_); y < results_.size(); ++y) {
    const int64_t number = static_cast<int64_t>(y);
    if (results_[y] == value) return Source{true, number, {}, {}};
    if (!body_.type(results_[y]).tensor().is_static()) continue;
    if (const std::optional<Box> box = box_of(body_, results_[y], value)) {
      return Source{true, number, dims_of(box->start), dims_of(box->limit)};
    }
  }
  return std::nullopt;
}

bool StackedRows::lies_in_rows(ValueId value) const {
  if (source_of(value)) return true;
  if (std::find(more_.begin(), more_.end(), value) != more_.end()) return true;
  const Node& node = body_.node(value);
  return (node.op == &ops::reshape || node.op == &ops::slice) && lies_in_rows(node.operands[0]);
}

bool StackedRows::has(ValueId value) const {
  if (lies_in_rows(value)) return true;
  const Node& node = body_.node(value);
  return node.op == &ops::mul && lies_in_rows(node.operands[0]) && lies_in_rows(node.operands[1]);
}

void StackedRows::stack(ValueId value) {
  if (!has(value)) more_.push_back(value);
}

void StackedRows::place(Builder& b, const std::vector<ValueId>& operands,
                        const std::vector<ValueId>& results, const RebuiltScan& scan) {
  operands_now_ = operands;
  results_now_ = results;
  for (int64_t number : scan.more_ys) {
    more_now_.push_back(b.emit(ops::get, {scan.node}, GetAttrs{number}));
  }
}

SliceAttrs StackedRows::behind_trips(Dims start, Dims limit, Ints stride) const {
  start.insert(start.begin(), 0);
  limit.insert(limit.begin(), length_);
  stride.insert(stride.begin(), 1);
  return {start, limit, stride};
}

ValueId StackedRows::emit(Builder& b, ValueId value) const {
  if (const std::optional<Source> source = source_of(value)) {
    const std::vector<ValueId>& all = source->written ? results_now_ : operands_now_;
    const ValueId rows = all[static_cast<size_t>(source->number)];
    if (!source->start) return rows;
    const Ints stride(source->start->size(), 1);
    return b.emit(ops::slice, {rows}, behind_trips(*source->start, *source->limit, stride));
  }
  const auto added = std::find(more_.begin(), more_.end(), value);
  if (added != more_.end()) return more_now_[static_cast<size_t>(added - more_.begin())];
  const Node& node = body_.node(value);
  std::vector<ValueId> operands;
  for (ValueId operand : node.operands) operands.push_back(emit(b, operand));
  if (node.op == &ops::mul) return b.emit(ops::mul, operands);
  if (node.op == &ops::slice) {
    const SliceAttrs& attrs = node.attrs.as<SliceAttrs>();
    return b.emit(ops::slice, operands, behind_trips(attrs.start, attrs.limit, attrs.stride));
  }
  ReshapeAttrs shape = node.attrs.as<ReshapeAttrs>();
  shape.shape.insert(shape.shape.begin(), length_);
  return b.emit(ops::reshape, operands, shape);
}

}  // namespace backcast
