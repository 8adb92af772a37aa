// What stands at places known beforehand: slices, turned round or repeated, one behind the other.
// A gather would look them up one by one, and its gradient would be a scatter.
#include <algorithm>

#include "frontend/rules/families.h"

namespace backcast {
namespace {

/// Places in equal steps, each `repeats` times: first, first, first + step, first + step, …
struct Run {
  int64_t first = 0, step = 1, repeats = 1, count = 1;

  int64_t places() const { return repeats * count; }
  int64_t last() const { return first + step * (count - 1); }
};

constexpr size_t kMostRuns = 3;  // reflected, wrapped and clamped edges, and what lies between

/// The longest run that places from `begin` on start with.
Run run_at(const Ints& places, size_t begin) {
  const auto equal_from = [&](size_t i) {
    size_t end = i + 1;
    while (end < places.size() && places[end] == places[i]) ++end;
    return static_cast<int64_t>(end - i);
  };
  Run run{.first = places[begin], .repeats = equal_from(begin)};
  size_t next = begin + static_cast<size_t>(run.repeats);
  while (next < places.size() && equal_from(next) >= run.repeats) {
    const int64_t step = places[next] - run.last();
    if (run.count > 1 && step != run.step) break;
    run.step = step;
    ++run.count;
    const bool more = equal_from(next) > run.repeats;
    next += static_cast<size_t>(run.repeats);
    if (more) break;
  }
  return run;
}

/// Runs that give all the places; none where there are many.
std::vector<Run> runs_of(const Ints& places) {
  std::vector<Run> runs;
  for (size_t next = 0; next < places.size();) {
    if (runs.size() == kMostRuns) return {};
    runs.push_back(run_at(places, next));
    next += static_cast<size_t>(runs.back().places());
  }
  // A place that fits both sides belongs to the longer, which may be all of the operand then.
  for (size_t i = 1; i < runs.size(); ++i) {
    Run &before = runs[i - 1], &behind = runs[i];
    const bool may = behind.repeats == 1 && behind.places() > before.places() &&
                     (before.repeats == 1 || before.count == 1);
    if (!may || before.places() < 2 || before.last() != behind.first - behind.step) continue;
    --(before.repeats == 1 ? before.count : before.repeats);
    behind.first -= behind.step;
    ++behind.count;
  }
  return runs;
}

ValueId emit_run(Emitter& e, ValueId x, int64_t axis, const Run& run) {
  const auto [low, high] = std::minmax({run.first, run.last()});
  x = e.slice_axis(x, axis, Dim(low), Dim(high + 1), std::max<int64_t>(std::abs(run.step), 1));
  if (run.step < 0) x = e.reverse(x, {axis});
  return run.repeats == 1 ? x : e.repeat(x, axis, Dim(run.repeats));
}

}  // namespace

ValueId take_known(NodeContext& n, ValueId x, ValueId indices, int64_t axis) {
  const std::optional<Ints> places = n.known_ints_of(indices);
  const Dim extent = n.e.extent(x, axis);
  const auto inside = [&](int64_t i) { return i >= 0 && i < extent.constant(); };
  // Rows of a table that may be trained are updated where they were looked up.
  const bool table = n.e.builder().node(x).op == &ops::constant;
  if (!places || !extent.is_constant() || table ||
      !std::all_of(places->begin(), places->end(), inside)) {
    return n.e.take(x, indices, axis);
  }
  const std::vector<Run> runs = runs_of(*places);
  if (runs.empty()) return n.e.take(x, indices, axis);
  std::vector<ValueId> parts;
  for (const Run& run : runs) parts.push_back(emit_run(n.e, x, axis, run));
  Shape shape = n.e.shape(x);
  const Shape own = n.e.shape(indices);
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, own.begin(), own.end());
  return n.e.reshape(n.e.concat(parts, axis), shape);
}

}  // namespace backcast
