// See scan_segments.h.
#include "ir/ops/scan_segments.h"

#include "ir/graph/error.h"
#include "ir/ops/adjoint.h"
#include "ir/ops/ops.h"

namespace backcast::ops {
namespace {

class Segments {
 public:
  Segments(Builder& b, const std::vector<ValueId>& operands, const ScanAttrs& attrs)
      : b_(b),
        operands_(operands),
        attrs_(attrs),
        length_(attrs.length.constant()),
        count_(attrs.segments),
        rows_((length_ + count_ - 1) / count_) {}

  ValueId emit(const std::function<std::string(Function)>& add) {
    ScanAttrs outer;
    outer.carries = attrs_.carries;
    outer.xs = attrs_.xs + 1;
    outer.length = count_;
    outer.reverse = attrs_.reverse;
    std::vector<ValueId> operands{b_.constant(Literal::from_ints({}, {count_}))};
    const auto first_x = operands_.begin() + 1 + attrs_.carries;
    operands.insert(operands.end(), operands_.begin() + 1, first_x);
    operands.push_back(trips_per_segment());
    for (auto x = first_x; x != first_x + attrs_.xs; ++x) operands.push_back(cut(*x));
    operands.insert(operands.end(), first_x + attrs_.xs, operands_.end());
    outer.body = {add(segment(operands))};
    const ValueId result = b_.emit(scan, operands, outer);
    std::vector<ValueId> parts;
    const size_t count = b_.type(result).elements().size();
    for (size_t i = 0; i < count; ++i) {
      const ValueId part = b_.emit(get, {result}, GetAttrs{static_cast<int64_t>(i)});
      parts.push_back(static_cast<int64_t>(i) < attrs_.carries ? part : joined(part));
    }
    return b_.emit(tuple, parts);
  }

 private:
  /// clamp(trips - s·rows, 0, rows) for segment s.
  ValueId trips_per_segment() {
    const Shape shape{Dim(count_)};
    const auto spread = [&](ValueId x) {
      return b_.emit(broadcast, {x}, BroadcastAttrs{shape, {}});
    };
    std::vector<int64_t> starts;
    for (int64_t s = 0; s < count_; ++s) starts.push_back(s * rows_);
    const ValueId start = b_.constant(Literal::from_ints({count_}, starts));
    // Above the length only as many trips as there are rows.
    const ValueId length = b_.constant(Literal::from_ints({}, {length_}));
    const ValueId trips = b_.emit(min, {operands_[0], length});
    const ValueId left = b_.emit(sub, {spread(trips), start});
    const ValueId none = spread(b_.constant(Literal::from_ints({}, {0})));
    const ValueId most = spread(b_.constant(Literal::from_ints({}, {rows_})));
    return b_.emit(min, {b_.emit(max, {left, none}), most});
  }

  /// [length, …] → [segments, rows, …], filled up with zeros.
  ValueId cut(ValueId x) {
    TensorType type = b_.tensor_type(x);
    if (count_ * rows_ != length_) {
      const size_t rank = type.shape.size();
      PadAttrs pads{Dims(rank, Dim(0)), Dims(rank, Dim(0)), Ints(rank, 0)};
      pads.high[0] = count_ * rows_ - length_;
      x = b_.emit(pad, {x, b_.scalar(type.element, 0)}, pads);
    }
    Shape shape = type.shape;
    shape[0] = rows_;
    shape.insert(shape.begin(), Dim(count_));
    return b_.emit(reshape, {x}, ReshapeAttrs{shape});
  }

  /// The inverse.
  ValueId joined(ValueId x) {
    Shape shape = b_.tensor_type(x).shape;
    shape.erase(shape.begin());
    shape[0] = count_ * rows_;
    const ValueId whole = b_.emit(reshape, {x}, ReshapeAttrs{shape});
    if (count_ * rows_ == length_) return whole;
    Dims limit = shape;
    limit[0] = length_;
    return b_.emit(slice, {whole},
                   SliceAttrs{Dims(shape.size(), Dim(0)), limit, Ints(shape.size(), 1)});
  }

  /// The function of the outer scan, whose operands are given: one segment as a scan.
  Function segment(const std::vector<ValueId>& operands) {
    Builder inner(b_.module(), attrs_.body.name + "_segment");
    inner.set_loc(b_.loc());
    std::vector<ValueId> values;
    for (size_t i = 1; i < operands.size(); ++i) {
      TensorType type = b_.tensor_type(operands[i]);
      const int64_t x = static_cast<int64_t>(i) - 1 - attrs_.carries;
      if (x >= 0 && x <= attrs_.xs) type.shape.erase(type.shape.begin());
      values.push_back(inner.parameter(fmt::format("x{}", i), type));
    }
    ScanAttrs attrs = attrs_;
    attrs.length = rows_;
    attrs.segments = 1;
    std::vector<ValueId> scanned{values[static_cast<size_t>(attrs_.carries)]};
    values.erase(values.begin() + attrs_.carries);
    scanned.insert(scanned.end(), values.begin(), values.end());
    return inner.finish(inner.emit(scan, scanned, attrs));
  }

  Builder& b_;
  const std::vector<ValueId>& operands_;
  const ScanAttrs& attrs_;
  const int64_t length_, count_, rows_;
};

}  // namespace

bool has_segments(const ScanAttrs& attrs) {
  return attrs.segments > 1 && !attrs.trajectory && attrs.length.is_constant() &&
         attrs.length.constant() > attrs.segments;
}

ValueId emit_segments(Builder& builder, const std::vector<ValueId>& operands,
                      const ScanAttrs& attrs, const std::function<std::string(Function)>& add) {
  return Segments(builder, operands, attrs).emit(add);
}

/// That of a function that computes the same in segments.
std::vector<Adjoint> gradient_of_segments(GradientContext& context) {
  Builder& builder = context.builder;
  const ScanAttrs attrs = context.node.attrs.as<ScanAttrs>();
  Builder whole(builder.module(), attrs.body.name + "_segments");
  whole.set_loc(builder.loc());
  std::vector<ValueId> params;
  for (size_t i = 0; i < context.node.operands.size(); ++i) {
    params.push_back(whole.parameter(fmt::format("x{}", i), builder.type(context.operand(i))));
  }
  const ValueId result = emit_segments(whole, params, attrs, [&](Function segment) {
    return context.services.add_function(std::move(segment));
  });
  const std::string name = context.services.add_function(whole.finish(result));
  const std::string vjp = context.services.vjp_function(name, context.wanted);
  std::vector<ValueId> operands = context.node.operands;
  for (ValueId leaf : cotangent_leaves(builder, context.cotangent, context.node.type)) {
    operands.push_back(leaf);
  }
  const ValueId adjoints = builder.emit(call, operands, CallAttrs{{vjp}});
  std::vector<Adjoint> results(context.wanted.size());
  int64_t next = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!context.wanted[i]) continue;
    results[i] = adjoint_of_value(builder, builder.emit(get, {adjoints}, GetAttrs{next++}));
  }
  return results;
}

}  // namespace backcast::ops
