// Words of a tile's operand that are taken apart once for all blocks of the vector axis: pairs of
// bytes wait in an array on the stack, [row][step][pair].
#include <fmt/format.h>

#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/expansion.h"

namespace backcast {

using loop::Axis;
using loop::Expr;
using loop::Stmt;

namespace {

// Stands for the array where a sum's value reads it, before rows and steps are known.
constexpr std::string_view kPrefix = "#unpacked ";
constexpr loop::Type kPair = {loop::Scalar::i32, 1};

}  // namespace

Expr Expansion::with_unpacked(const Expr& value) const {
  if (schedule_.unpacked.empty()) return value;
  return loop::rewrite(value, [&](const Expr& e) {
    for (size_t i = 0; i < schedule_.unpacked.size(); ++i) {
      if (!loop::equal(e, schedule_.unpacked[i])) continue;
      return loop::access(fmt::format("{}{}", kPrefix, i), kPair.scalar, {});
    }
    return e;
  });
}

bool Expansion::is_unpacked(const std::string& buffer) const { return buffer.starts_with(kPrefix); }

Expr Expansion::unpacked_load(const std::string& buffer, const Bindings& place) const {
  const size_t value = std::stoul(buffer.substr(kPrefix.size()));
  return loop::load(kPair, unpacked_, unpacked_index(place, value));
}

Expr Expansion::unpacked_index(const Bindings& place, size_t value) const {
  Expr index = place.at(kTileRow);
  for (const Axis& axis : reduce_axes_) {
    index = index * Expr(*static_extent(axis)) + place.at(axis.name);
  }
  return index * Expr(static_cast<int64_t>(schedule_.unpacked.size())) +
         Expr(static_cast<int64_t>(value));
}

void Expansion::unpack(const Bindings& bindings, std::vector<Stmt>& body) {
  if (schedule_.unpacked.empty()) return;
  segment_ = nullptr;  // no block of the vector axis takes part
  unpacked_ = fresh("unpacked");
  int64_t count = tile_size() * static_cast<int64_t>(schedule_.unpacked.size());
  Bindings steps;
  for (const Axis& axis : reduce_axes_) {
    count *= *static_extent(axis);
    steps[axis.name] = loop::var(fresh(axis.name));
  }
  body.push_back(loop::alloc(unpacked_, kPair, Expr(count), loop::Memory::stack));
  const Vectorizer v = vectorizer(Expr(0));
  std::vector<Stmt> stores;
  for (int64_t m = 0; m < tile_size(); ++m) {
    Bindings place = at(bindings, m);
    place.insert(steps.begin(), steps.end());
    for (size_t i = 0; i < schedule_.unpacked.size(); ++i) {
      stores.push_back(
          loop::store(unpacked_, unpacked_index(place, i), v.run(schedule_.unpacked[i], place)));
    }
  }
  Stmt fill = loop::block(stores);
  for (size_t i = reduce_axes_.size(); i-- > 0;) {
    const std::string& variable = steps.at(reduce_axes_[i].name)->name;
    fill = loop::for_loop(variable, Expr(0), reduce_axes_[i].extent, fill);
  }
  body.push_back(fill);
}

}  // namespace backcast
