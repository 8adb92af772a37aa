// Rearranges a constant operand into the order in which a nest reads it (see NestSchedule::packed).
#include <cstring>

#include "ir/graph/error.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/nest.h"
#include "passes/schedule/panel.h"

namespace backcast {

using loop::Expr;

namespace {

/// The one place at which the accumulators read `name`.
Expr find_access(const loop::Definition& definition, const std::string& name) {
  Expr found;
  for (const loop::Accumulator& acc : definition.accumulators) {
    loop::visit(acc.value, [&](const Expr& e) {
      if (e->kind == loop::ExprKind::access && e->name == name) found = e;
    });
  }
  BC_CHECK(found, "no access to {}", name);
  return found;
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

int64_t packed_count(const NestSchedule& schedule, const std::string& name) {
  const Packing& packing = schedule.packed.at(name);
  return packing.outer_count() * packing.reduce_count() *
         packing.rows_before(schedule.vector_segments, -1);
}

std::string main_packing(const NestSchedule& schedule) {
  std::string main;
  for (const auto& [name, packing] : schedule.packed) {
    if (packing.is_shared) continue;
    if (!main.empty()) return "";
    main = name;
  }
  return main;
}

namespace {

/// Neighbouring reduction axes that run through memory as one.
struct Run {
  int64_t extent = 1, step = 1;
};

std::vector<Run> runs_of(const Packing& packing, const Expr& flat) {
  std::vector<Run> runs;
  for (size_t i = packing.reduce.size(); i-- > 0;) {
    int64_t step = std::abs(coefficient(flat, packing.reduce[i]).value());
    if (!runs.empty() && step == runs.back().step * runs.back().extent) {
      runs.back().extent *= packing.reduce_extents[i];
    } else {
      runs.push_back({packing.reduce_extents[i], step});
    }
  }
  return {runs.rbegin(), runs.rend()};
}

}  // namespace

namespace {

/// The copy that puts one operand in order; its axes are those of the packed form, outermost first.
class Repacking {
 public:
  Repacking(const loop::Definition& definition, const loop::Kernel& kernel,
            const NestSchedule& schedule, const std::string& name)
      : schedule_(schedule), packing_(schedule.packed.at(name)), name_(name) {
    const Expr access = find_access(definition, name);
    flat_ = loop::flat_index(kernel.find(name)->shape, access->args);
    scalar_ = access.type().scalar;
    for (const loop::Axis& axis : definition.axes) place_[axis.name] = Expr(0);  // of extent 1
    for (size_t i = 0; i < packing_.reduce.size(); ++i) {
      place_[packing_.reduce[i]] = Expr(packing_.reversed[i] ? packing_.reduce_extents[i] - 1 : 0);
    }
  }

  Expr add(const std::string& axis, int64_t extent) {
    if (extent == 1) return Expr(0);
    part_.axes.push_back({axis, Expr(extent)});
    row_ = row_ * Expr(extent) + loop::var(axis);
    return loop::var(axis);
  }
  void put(const std::string& axis, const Expr& at) { place_[axis] = at; }

  /// Reduction axes and lanes of `block`; written from element `first` of `packed` on.
  loop::Stmt finish(const VectorSegment& segment, const Expr& block, int64_t first,
                    const std::string& packed, const std::string& prefix) {
    Expr along = Expr(0);
    const std::vector<Run> runs = runs_of(packing_, flat_);
    for (size_t i = 0; i < runs.size(); ++i) {
      along = along + add(prefix + "k" + std::to_string(i), runs[i].extent) * Expr(runs[i].step);
    }
    const Expr lane = loop::var(prefix + "lane");
    part_.axes.push_back({prefix + "lane", Expr(segment.width())});
    place_[schedule_.vector_axis] = Expr(segment.begin) + block * Expr(segment.width()) + lane;
    part_.outputs.push_back(
        {packed,
         {Expr(first) + row_ * Expr(segment.width()) + lane},
         loop::access(name_, scalar_, {loop::substitute(flat_, place_) + along})});
    return loop::define(std::move(part_));
  }

 private:
  const NestSchedule& schedule_;
  const Packing& packing_;
  std::string name_;
  Expr flat_;
  loop::Scalar scalar_ = loop::Scalar::f32;
  std::map<std::string, Expr> place_;
  loop::Definition part_;
  Expr row_ = Expr(0);
};

}  // namespace

loop::Stmt repack(const loop::Definition& definition, const loop::Kernel& kernel,
                  const NestSchedule& schedule, const std::string& name,
                  const std::string& packed) {
  const Packing& packing = schedule.packed.at(name);
  std::vector<loop::Stmt> parts;
  for (const VectorSegment& segment : schedule.vector_segments) {
    Repacking part(definition, kernel, schedule, name);
    for (size_t i = 0; i < packing.outer.size(); ++i) {
      part.put(packing.outer[i], part.add("o" + std::to_string(i), packing.outer_extents[i]));
    }
    const Expr block = part.add("block", segment.count);
    const int64_t first = packing.outer_count() * packing.reduce_count() * segment.begin;
    parts.push_back(part.finish(segment, block, first, packed, ""));
  }
  return loop::block(parts);
}

loop::Stmt repack_block(const loop::Definition& definition, const loop::Kernel& kernel,
                        const NestSchedule& schedule, const std::string& name,
                        const VectorSegment& segment, const Expr& block,
                        const std::map<std::string, Expr>& outer) {
  Repacking part(definition, kernel, schedule, name);
  for (const auto& [axis, at] : outer) part.put(axis, at);
  return part.finish(segment, block, 0, schedule.packed.at(name).parameter, "panel_");
}

Literal pack(const loop::Definition& definition, const loop::Kernel& kernel,
             const NestSchedule& schedule, const std::string& name, const Literal& value) {
  const Packing& packing = schedule.packed.at(name);
  Expr flat = loop::flat_index(kernel.find(name)->shape, find_access(definition, name)->args);
  std::map<std::string, int64_t> zeros;
  for (const loop::Axis& axis : definition.axes) zeros[axis.name] = 0;
  for (const loop::Axis& axis : definition.reduce_axes) zeros[axis.name] = 0;
  int64_t origin = evaluate(flat, zeros).value();

  std::vector<int64_t> outer_strides, reduce_strides;
  for (const std::string& axis : packing.outer) {
    outer_strides.push_back(coefficient(flat, axis).value());
  }
  for (const std::string& axis : packing.reduce) {
    reduce_strides.push_back(coefficient(flat, axis).value());
  }
  int64_t stride = coefficient(flat, schedule.vector_axis).value();
  const bool splits = !schedule.split_axis.empty();
  const int64_t split_stride = splits ? coefficient(flat, schedule.split_axis).value() : 0;

  const size_t size = static_cast<size_t>(byte_size(value.element()));
  std::span<const std::byte> source = value.bytes();
  std::vector<std::byte> packed;
  packed.reserve(source.size());
  for (const VectorSegment& segment : schedule.vector_segments) {
    std::vector<int64_t> extents = packing.reduce_extents, strides = reduce_strides;
    for (size_t i = 0; i < extents.size(); ++i) {
      if (packing.reduce[i] != schedule.split_axis) continue;
      extents[i] /= segment.splits;
      strides[i] *= segment.splits;
    }
    for_each(packing.outer_extents, outer_strides, origin, [&](int64_t outer) {
      for (int64_t block = 0; block < segment.count; ++block) {
        int64_t first = outer + (segment.begin + block * segment.width()) * stride;
        for_each(extents, strides, first, [&](int64_t at) {
          if (packing.halves(segment)) {
            const auto half = [&](int64_t lane) {
              const int64_t from = at + lane * stride;
              const bool outside = from < 0 || from >= static_cast<int64_t>(source.size());
              if (outside || lane >= segment.width() - segment.spare) return std::byte{0};
              return source[static_cast<size_t>(from)] & std::byte{15};
            };
            for (int64_t lane = 0; lane < packing.row(segment); ++lane) {
              packed.push_back(half(lane) | half(lane + packing.row(segment)) << 4);
            }
            return;
          }
          for (int64_t lane = 0; lane < segment.vectors * segment.lanes; ++lane) {
            const int64_t j = lane / segment.splits, step = lane % segment.splits;
            const int64_t element = at + j * stride + step * split_stride;
            const int64_t from = element * static_cast<int64_t>(size);
            const bool outside = from < 0 || from >= static_cast<int64_t>(source.size());
            if (outside || j >= segment.width() - segment.spare) {
              packed.resize(packed.size() + size);  // no result has any of it
              continue;
            }
            packed.insert(packed.end(), source.begin() + from,
                          source.begin() + from + static_cast<int64_t>(size));
          }
        });
      }
    });
  }
  int64_t count = static_cast<int64_t>(packed.size() / size);
  return Literal(value.element(), {count}, std::move(packed));
}

}  // namespace backcast
