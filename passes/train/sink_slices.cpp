#include "passes/train/sink_slices.h"

#include <algorithm>

#include "ir/graph/builder.h"
#include "ir/graph/error.h"
#include "ir/ops/ops.h"

namespace backcast {
namespace {

constexpr int kMaxDepth = 32;

/// Elements start … limit-1 of every dimension.
struct Box {
  Dims start, limit;

  static Box whole(const Shape& shape) { return {Dims(shape.size(), Dim(0)), shape}; }
  void take(size_t to, const Box& from, size_t dim) {
    start[to] = from.start[dim];
    limit[to] = from.limit[dim];
  }
  bool is_whole(const Shape& shape) const {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (!keeps(i, shape)) return false;
    }
    return true;
  }
  bool keeps(size_t dim, const Shape& shape) const {
    return start[dim] == Dim(0) && limit[dim] == shape[dim];
  }
};

bool is_elementwise(const Node& node, const Function& function) {
  static const OpDef* const kOps[] = {
      &ops::add, &ops::sub,  &ops::mul,  &ops::div,     &ops::min,    &ops::max,
      &ops::neg, &ops::relu, &ops::cast, &ops::compare, &ops::select, &ops::sigmoid,
      &ops::exp, &ops::log,  &ops::tanh, &ops::sqrt,    &ops::abs,    &ops::sign};
  if (std::find(std::begin(kOps), std::end(kOps), node.op) == std::end(kOps)) return false;
  const Shape& shape = node.type.tensor().shape;
  return std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
    return function.type(operand).tensor().shape == shape;
  });
}

class Sinking {
 public:
  Sinking(const Module& module, const Function& from)
      : from_(from), builder_(module, from.name), uses_(use_counts(from)) {}

  Function run() {
    now_.resize(from_.nodes.size());
    for (int64_t i = 0; i < from_.size(); ++i) {
      const Node& node = from_.node(ValueId(i));
      builder_.set_loc(node.loc);
      if (is_parameter(node)) {
        at(ValueId(i)) = builder_.parameter(parameter_name(node), node.type);
        continue;
      }
      const SliceAttrs* slice = node.attrs.get_if<SliceAttrs>();
      const bool is_plain = slice && std::all_of(slice->stride.begin(), slice->stride.end(),
                                                 [](int64_t stride) { return stride == 1; });
      at(ValueId(i)) = is_plain ? sliced(node.operands[0], {slice->start, slice->limit}, 0)
                                : builder_.emit(*node.op, operands(node), node.attrs);
    }
    return builder_.finish(at(from_.result), from_.result_names);
  }

 private:
  ValueId& at(ValueId old) { return now_[static_cast<size_t>(old.index)]; }

  std::vector<ValueId> operands(const Node& node) {
    std::vector<ValueId> result;
    for (ValueId operand : node.operands) result.push_back(at(operand));
    return result;
  }

  /// The box of an old value, which is copied already. Recursion stops at kMaxDepth.
  ValueId sliced(ValueId old, const Box& box, int depth) {
    const Node& node = from_.node(old);
    const Shape& shape = node.type.tensor().shape;
    if (box.is_whole(shape)) return at(old);
    const bool is_shared = uses_[static_cast<size_t>(old.index)] > 1 && node.op != &ops::broadcast;
    ValueId result;
    if (depth < kMaxDepth && !is_shared) result = sunk(node, box, depth + 1);
    if (result.valid()) return result;
    return builder_.emit(ops::slice, {at(old)},
                         SliceAttrs{box.start, box.limit, Ints(shape.size(), 1)});
  }

  /// The same computed from sliced operands; invalid where that is not possible.
  ValueId sunk(const Node& node, const Box& box, int depth) {
    if (node.op == &ops::transpose) return sunk_transpose(node, box, depth);
    if (node.op == &ops::dot_general) return sunk_dot(node, box, depth);
    if (node.op == &ops::conv) return sunk_conv(node, box, depth);
    if (node.op == &ops::reduce) return sunk_reduce(node, box, depth);
    if (node.op == &ops::broadcast) return sunk_broadcast(node, box, depth);
    if (!is_elementwise(node, from_)) return {};
    std::vector<ValueId> parts;
    for (ValueId operand : node.operands) parts.push_back(sliced(operand, box, depth));
    builder_.set_loc(node.loc);
    return builder_.emit(*node.op, parts, node.attrs);
  }

  Box whole_of(ValueId old) const { return Box::whole(from_.type(old).tensor().shape); }

  ValueId sunk_transpose(const Node& node, const Box& box, int depth) {
    const Ints& permutation = node.attrs.as<TransposeAttrs>().permutation;
    Box inner = whole_of(node.operands[0]);
    for (size_t i = 0; i < permutation.size(); ++i) {
      inner.take(static_cast<size_t>(permutation[i]), box, i);
    }
    const ValueId part = sliced(node.operands[0], inner, depth);
    builder_.set_loc(node.loc);
    return builder_.emit(ops::transpose, {part}, node.attrs);
  }

  /// Result dimensions are the batch dimensions, then the free ones of either side.
  ValueId sunk_dot(const Node& node, const Box& box, int depth) {
    const DotGeneralAttrs& attrs = node.attrs.as<DotGeneralAttrs>();
    Box sides[] = {whole_of(node.operands[0]), whole_of(node.operands[1])};
    const Ints* batch[] = {&attrs.lhs_batch, &attrs.rhs_batch};
    const Ints* contracted[] = {&attrs.lhs_contract, &attrs.rhs_contract};
    size_t next = attrs.lhs_batch.size();
    for (size_t side = 0; side < 2; ++side) {
      for (size_t i = 0; i < batch[side]->size(); ++i) {
        sides[side].take(static_cast<size_t>((*batch[side])[i]), box, i);
      }
      for (size_t dim = 0; dim < sides[side].start.size(); ++dim) {
        const int64_t axis = static_cast<int64_t>(dim);
        if (std::count(batch[side]->begin(), batch[side]->end(), axis) > 0) continue;
        if (std::count(contracted[side]->begin(), contracted[side]->end(), axis) > 0) continue;
        sides[side].take(dim, box, next++);
      }
    }
    const ValueId a = sliced(node.operands[0], sides[0], depth);
    const ValueId b = sliced(node.operands[1], sides[1], depth);
    builder_.set_loc(node.loc);
    return builder_.emit(ops::dot_general, {a, b}, node.attrs);
  }

  /// Along the batch and the features; groups and positions stay whole.
  ValueId sunk_conv(const Node& node, const Box& box, int depth) {
    const ConvAttrs& attrs = node.attrs.as<ConvAttrs>();
    if (attrs.feature_groups != 1 || attrs.batch_groups != 1) return {};
    for (int64_t dim : attrs.output_spatial) {
      if (!box.keeps(static_cast<size_t>(dim), node.type.tensor().shape)) return {};
    }
    Box x = whole_of(node.operands[0]), w = whole_of(node.operands[1]);
    x.take(static_cast<size_t>(attrs.input_batch), box, static_cast<size_t>(attrs.output_batch));
    w.take(static_cast<size_t>(attrs.kernel_output), box,
           static_cast<size_t>(attrs.output_feature));
    const ValueId a = sliced(node.operands[0], x, depth);
    const ValueId b = sliced(node.operands[1], w, depth);
    builder_.set_loc(node.loc);
    return builder_.emit(ops::conv, {a, b}, node.attrs);
  }

  ValueId sunk_reduce(const Node& node, const Box& box, int depth) {
    const Ints& axes = node.attrs.as<ReduceAttrs>().axes;
    Box inner = whole_of(node.operands[0]);
    size_t next = 0;
    for (size_t dim = 0; dim < inner.start.size(); ++dim) {
      const bool is_reduced = std::count(axes.begin(), axes.end(), static_cast<int64_t>(dim)) > 0;
      if (!is_reduced) inner.take(dim, box, next++);
    }
    const ValueId part = sliced(node.operands[0], inner, depth);
    builder_.set_loc(node.loc);
    return builder_.emit(ops::reduce, {part}, node.attrs);
  }

  ValueId sunk_broadcast(const Node& node, const Box& box, int depth) {
    const BroadcastAttrs& attrs = node.attrs.as<BroadcastAttrs>();
    Box inner = whole_of(node.operands[0]);
    const Shape& shape = from_.type(node.operands[0]).tensor().shape;
    for (size_t i = 0; i < attrs.dims.size(); ++i) {
      const size_t dim = static_cast<size_t>(attrs.dims[i]);
      if (shape[i] == attrs.shape[dim]) inner.take(i, box, dim);
    }
    BroadcastAttrs smaller = attrs;
    for (size_t i = 0; i < smaller.shape.size(); ++i) {
      smaller.shape[i] = box.limit[i] - box.start[i];
    }
    const ValueId part = sliced(node.operands[0], inner, depth);
    builder_.set_loc(node.loc);
    return builder_.emit(ops::broadcast, {part}, smaller);
  }

  const Function& from_;
  Builder builder_;
  std::vector<int> uses_;
  std::vector<ValueId> now_;
};

}  // namespace

Function sink_slices(const Module& module, const Function& function) {
  const Function sunk = Sinking(module, function).run();
  return Rewriter(module, sunk).finish();
}

}  // namespace backcast
