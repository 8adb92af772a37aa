// Rearranges a constant operand into the order in which a nest reads it (see NestSchedule::packed).
#include <cstring>

#include "ir/graph/error.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/nest.h"

namespace backcast {

using loop::Expr;

namespace {

/// The one flat index at which the accumulators read `name`.
Expr find_access(const loop::Definition& definition, const loop::Kernel& kernel,
                 const std::string& name) {
  Expr flat;
  for (const loop::Accumulator& acc : definition.accumulators) {
    loop::visit(acc.value, [&](const Expr& e) {
      if (e->kind == loop::ExprKind::access && e->name == name) {
        flat = loop::flat_index(kernel.find(name)->shape, e->args);
      }
    });
  }
  BC_CHECK(flat, "no access to {}", name);
  return flat;
}

/// Odometer over extents; calls f with the flat source offset of each position.
template <class F>
void for_each(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides,
              int64_t offset, const F& f) {
  std::vector<int64_t> position(extents.size(), 0);
  for (int64_t e : extents) {
    if (e == 0) return;
  }
  while (true) {
    f(offset);
    size_t d = extents.size();
    while (d > 0) {
      --d;
      offset += strides[d];
      if (++position[d] < extents[d]) break;
      offset -= strides[d] * extents[d];
      position[d] = 0;
      if (d == 0) return;
    }
    if (extents.empty()) return;
  }
}

}  // namespace

Literal pack(const loop::Definition& definition, const loop::Kernel& kernel,
             const NestSchedule& schedule, const std::string& name, const Literal& value) {
  const Packing& packing = schedule.packed.at(name);
  Expr flat = find_access(definition, kernel, name);
  std::map<std::string, int64_t> zeros;
  for (const loop::Axis& axis : definition.axes) zeros[axis.name] = 0;
  for (const loop::Axis& axis : definition.reduce_axes) zeros[axis.name] = 0;
  int64_t origin = evaluate(flat, zeros).value();

  std::vector<int64_t> outer_strides, reduce_strides;
  for (const std::string& axis : packing.outer) {
    outer_strides.push_back(coefficient(flat, axis).value());
  }
  for (const loop::Axis& axis : definition.reduce_axes) {
    reduce_strides.push_back(coefficient(flat, axis.name).value());
  }
  int64_t stride = coefficient(flat, schedule.vector_axis).value();

  size_t size = static_cast<size_t>(byte_size(value.element()));
  std::span<const std::byte> source = value.bytes();
  std::vector<std::byte> packed;
  packed.reserve(source.size());
  for (const VectorSegment& segment : schedule.vector_segments) {
    for_each(packing.outer_extents, outer_strides, origin, [&](int64_t outer) {
      for (int64_t block = 0; block < segment.count; ++block) {
        int64_t first = outer + (segment.begin + block * segment.width()) * stride;
        for_each(packing.reduce_extents, reduce_strides, first, [&](int64_t at) {
          for (int64_t j = 0; j < segment.width(); ++j) {
            size_t from = static_cast<size_t>(at + j * stride) * size;
            BC_CHECK(from + size <= source.size(), "packing {} reads outside", name);
            packed.insert(packed.end(), source.begin() + static_cast<int64_t>(from),
                          source.begin() + static_cast<int64_t>(from + size));
          }
        });
      }
    });
  }
  int64_t count = static_cast<int64_t>(packed.size() / size);
  return Literal(value.element(), {count}, std::move(packed));
}

}  // namespace backcast
