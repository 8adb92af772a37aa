#include "ir/ops/val.h"

#include <algorithm>

#include "ir/ops/adjoint.h"

namespace backcast {

Val Val::like(double number) const {
  const Val scalar(*builder_, builder_->scalar(element(), number));
  return shape().empty() ? scalar : broadcast(scalar, shape());
}

Val Val::emit(const OpDef& op, std::vector<ValueId> more, Attrs attrs) const {
  more.insert(more.begin(), id_);
  return Val(*builder_, builder_->emit(op, std::move(more), std::move(attrs)));
}

Val operator+(const Val& a, const Val& b) { return a.emit(ops::add, {b}); }
Val operator-(const Val& a, const Val& b) { return a.emit(ops::sub, {b}); }
Val operator*(const Val& a, const Val& b) { return a.emit(ops::mul, {b}); }
Val operator/(const Val& a, const Val& b) { return a.emit(ops::div, {b}); }
Val operator-(const Val& a) { return a.emit(ops::neg); }

Val abs(const Val& x) { return x.emit(ops::abs); }
Val sign(const Val& x) { return x.emit(ops::sign); }
Val sqrt(const Val& x) { return x.emit(ops::sqrt); }
Val exp(const Val& x) { return x.emit(ops::exp); }
Val log(const Val& x) { return x.emit(ops::log); }
Val sin(const Val& x) { return x.emit(ops::sin); }
Val cos(const Val& x) { return x.emit(ops::cos); }
Val sinh(const Val& x) { return x.emit(ops::sinh); }
Val cosh(const Val& x) { return x.emit(ops::cosh); }
Val tanh(const Val& x) { return x.emit(ops::tanh); }
Val sigmoid(const Val& x) { return x.emit(ops::sigmoid); }
Val relu(const Val& x) { return x.emit(ops::relu); }
Val pow(const Val& x, const Val& y) { return x.emit(ops::pow, {y}); }
Val min(const Val& a, const Val& b) { return a.emit(ops::min, {b}); }
Val max(const Val& a, const Val& b) { return a.emit(ops::max, {b}); }

Val compare(const Val& a, Comparison direction, const Val& b) {
  return a.emit(ops::compare, {b}, CompareAttrs{direction});
}
Val compare(const Val& a, Comparison direction, double b) {
  return compare(a, direction, a.like(b));
}
Val select(const Val& condition, const Val& yes, const Val& no) {
  return condition.emit(ops::select, {yes, no});
}
Val cast(const Val& x, ElementType to) {
  return x.element() == to ? x : x.emit(ops::cast, {}, CastAttrs{to});
}

Val reshape(const Val& x, const Shape& shape) {
  return x.shape() == shape ? x : x.emit(ops::reshape, {}, ReshapeAttrs{shape});
}
Val transpose(const Val& x, Ints permutation) {
  if (std::is_sorted(permutation.begin(), permutation.end())) return x;
  return x.emit(ops::transpose, {}, TransposeAttrs{std::move(permutation)});
}
Val broadcast(const Val& x, const Shape& shape, Ints dims) {
  return x.emit(ops::broadcast, {}, BroadcastAttrs{shape, std::move(dims)});
}
Val broadcast_along(const Val& x, const Shape& shape, const Ints& axes) {
  if (axes.empty()) return x;
  Ints dims;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) dims.push_back(i);
  }
  return broadcast(x, shape, std::move(dims));
}

Val sum(const Val& x, Ints axes) {
  if (axes.empty()) return x;
  return x.emit(ops::reduce, {}, ReduceAttrs{Reduction::sum, std::move(axes)});
}
Val sum(const Val& x) {
  Ints axes;
  for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  return sum(x, std::move(axes));
}
Val reduce_max(const Val& x, Ints axes) {
  if (axes.empty()) return x;
  return x.emit(ops::reduce, {}, ReduceAttrs{Reduction::max, std::move(axes)});
}

Val slice(const Val& x, int64_t axis, const Dim& begin, const Dim& end) {
  SliceAttrs attrs;
  attrs.start.assign(x.shape().size(), Dim(0));
  attrs.limit = x.shape();
  attrs.stride.assign(x.shape().size(), 1);
  attrs.start[static_cast<size_t>(axis)] = begin;
  attrs.limit[static_cast<size_t>(axis)] = end;
  return x.emit(ops::slice, {}, attrs);
}

Val zeros_like(const Val& x) { return Val(x.builder(), emit_zeros(x.builder(), x.type())); }

}  // namespace backcast
