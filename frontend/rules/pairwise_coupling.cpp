// See pairwise_coupling.h. The iteration is a scan that ends when all examples have stopped; each
// of its trips is a scan over the classes, which moves one probability at a time.
#include "frontend/rules/pairwise_coupling.h"

#include <algorithm>

namespace backcast {
namespace {

constexpr int64_t kLeastTrips = 100;
constexpr double kError = 0.005;

/// How probable class i is beside class j, [examples, i, j]; zero where i = j.
ValueId full_matrix(Emitter& e, ValueId pairs, int64_t classes) {
  const int64_t cells = classes * classes;
  Ints columns(static_cast<size_t>(cells), 0), above = columns, below = columns;
  int64_t column = 0;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j, ++column) {
      const size_t upper = static_cast<size_t>(i * classes + j);
      const size_t lower = static_cast<size_t>(j * classes + i);
      columns[upper] = columns[lower] = column;
      above[upper] = below[lower] = 1;
    }
  }
  const auto mask = [&](const Ints& of) {
    const ValueId ints = e.constant(Literal::from_ints({cells}, of));
    return e.cast(ints, e.element(pairs));
  };
  const ValueId each = e.take(pairs, e.constant(Literal::from_ints({cells}, columns)), 1);
  const ValueId other = e.sub(e.like(each, 1), each);
  const ValueId cell = e.add(e.mul(each, mask(above)), e.mul(other, mask(below)));
  return e.reshape(cell, {e.extent(pairs, 0), Dim(classes), Dim(classes)});
}

/// x [examples, classes] times m [examples, classes, classes], which is symmetric.
ValueId times(Emitter& e, ValueId m, ValueId x) {
  return e.reduce(Reduction::sum, e.mul(m, e.unsqueeze(x, 1)), {2});
}

/// One trip over the classes: p with each class's probability moved to where its equation holds
/// given the others', and scaled to a sum of 1 again. `q` is [classes, examples, classes], `unit`
/// [classes, classes].
ValueId moved(NodeContext& n, Emitter& e, ValueId q, ValueId unit, ValueId p, ValueId qp,
              ValueId pqp, int64_t classes) {
  const TensorType row = e.type(p);
  const std::vector<Type> types{row, e.type(qp), e.type(pqp), row,
                                TensorType{row.element, {Dim(classes)}}};
  ScanAttrs attrs{.carries = 3, .xs = 2, .length = Dim(classes)};
  attrs.body = n.function(n.loc().node, types, [](Emitter& b, const std::vector<ValueId>& v) {
    const ValueId p = v[0], qp = v[1], pqp = v[2], row = v[3], unit = v[4];
    const auto own = [&](ValueId x) { return b.reduce(Reduction::sum, b.mul(x, unit), {1}, true); };
    const ValueId q_own = own(row), qp_own = own(qp);
    const ValueId step = b.div(b.sub(pqp, qp_own), q_own);
    const ValueId sum = b.add(step, 1);
    const ValueId grown = b.mul(step, b.add(b.mul(step, q_own), b.mul(qp_own, 2)));
    return b.emit(ops::tuple,
                  {b.div(b.add(p, b.mul(step, unit)), sum), b.div(b.add(qp, b.mul(step, row)), sum),
                   b.div(b.div(b.add(pqp, grown), sum), sum)});
  });
  const ValueId trips = e.dimension(Dim(classes));
  return e.get(e.emit(ops::scan, {trips, p, qp, pqp, q, unit}, attrs), 0);
}

}  // namespace

ValueId coupled_probabilities(NodeContext& n, ValueId pairs, int64_t classes) {
  Emitter& e = n.e;
  const ElementType element = e.element(pairs);
  const ValueId r = full_matrix(e, pairs, classes);
  const ValueId turned = e.transpose(r, {0, 2, 1});
  const ValueId unit =
      e.cast(e.compare(Comparison::eq, e.iota(ElementType::i64, {classes, classes}, 0),
                       e.iota(ElementType::i64, {classes, classes}, 1)),
             element);
  const ValueId on = e.reduce(Reduction::sum, e.mul(r, r), {1});
  const ValueId q = e.sub(e.mul(unit, e.unsqueeze(on, 1)), e.mul(r, turned));
  const ValueId rows = e.transpose(q, {1, 0, 2});
  const ValueId start =
      e.filled({element, {e.extent(pairs, 0), Dim(classes)}}, 1.0 / static_cast<double>(classes));
  const std::vector<Type> types{TensorType{ElementType::boolean, {}}, e.type(start), e.type(q),
                                e.type(rows), e.type(unit)};
  const int64_t most = std::max(kLeastTrips, classes);
  ScanAttrs attrs{.carries = 2, .length = Dim(most), .conditional = true};
  attrs.body = n.function(n.loc().node, types, [&](Emitter& b, const std::vector<ValueId>& v) {
    const ValueId p = v[1], q = v[2], rows = v[3], unit = v[4];
    const ValueId qp = times(b, q, p);
    const ValueId pqp = b.reduce(Reduction::sum, b.mul(p, qp), {1}, true);
    const ValueId error = b.reduce(Reduction::max, b.unary(ops::abs, b.sub(qp, pqp)), {1}, true);
    const ValueId going = b.compare(Comparison::ge, error, kError / static_cast<double>(classes));
    const ValueId next = moved(n, b, rows, unit, p, qp, pqp, classes);
    const ValueId any = b.reduce(Reduction::max, b.cast(going, ElementType::i32), {0, 1});
    return b.emit(ops::tuple, {b.compare(Comparison::gt, any, 0.0),
                               b.select(b.broadcast_to(going, b.shape(p)), next, p)});
  });
  const ValueId go = e.scalar(ElementType::boolean, 1);
  const ValueId trips = e.dimension(Dim(most));
  return e.get(e.emit(ops::scan, {trips, go, start, q, rows, unit}, attrs), 1);
}

}  // namespace backcast
