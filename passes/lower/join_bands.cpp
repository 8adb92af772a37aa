#include "passes/lower/join_bands.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "passes/lower/moved_steps.h"
#include "passes/lower/row_steps.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Program;
using loop::Step;
using loop::StepKind;

class Joining {
 public:
  Joining(Program& program, size_t entry, TripsTogether together)
      : program_(program), entry_(entry), together_(together) {}

  bool run() {
    bool changed = false;
    for (size_t second = 1; second < steps().size(); ++second) {
      if (!is_band_loop(steps()[second])) continue;
      // The nearest one in front of it; what lies between goes first.
      size_t behind = second;
      while (behind > 0 && !is_band_loop(steps()[behind - 1])) --behind;
      if (behind == 0) continue;
      const size_t first = behind - 1;
      if (fits(first, second) && join(first, second)) {
        changed = true;
        second = first;  // whose next may follow
      }
    }
    return changed;
  }

 private:
  std::vector<Step>& steps() { return program_.entries[entry_].steps; }

  /// A loop whose trips all run and, where a band is several, do some trips of another loop each.
  bool is_band_loop(const Step& step) const {
    return loop::runs_in_full(step) &&
           (together_ == TripsTogether::one ||
            std::any_of(step.body.begin(), step.body.end(), loop::runs_in_full));
  }

  /// Whether the loops count alike, and all between them can go in front of the first.
  bool fits(size_t first, size_t second) {
    const Step &a = steps()[first], &b = steps()[second];
    if (!(a.count == b.count) || a.reverse != b.reverse) return false;
    const std::set<BufferId> read = loop::read_buffers(program_, a);
    const std::set<BufferId> written = loop::written_buffers(program_, a);
    for (size_t s = first + 1; s < second; ++s) {
      const std::set<BufferId> writes = loop::written_buffers(program_, steps()[s]);
      const bool moves = steps()[s].kind == StepKind::call || steps()[s].kind == StepKind::copy;
      if (!moves || loop::share_buffers(writes, read) || loop::share_buffers(writes, written))
        return false;
      if (loop::share_buffers(loop::read_buffers(program_, steps()[s]), written)) return false;
    }
    const std::set<BufferId> later = loop::written_buffers(program_, b);
    return !loop::share_buffers(later, read) && !loop::share_buffers(later, written);
  }

  bool join(size_t first, size_t second) {
    const Step a = steps()[first], b = steps()[second];
    const int64_t bands = a.count.constant();
    const std::map<std::string, Dim> symbols{{b.symbol, Dim::symbol(a.symbol)}};
    std::set<BufferId> handed_on;
    const std::set<BufferId> read = loop::read_buffers(program_, b);
    for (const BufferId id : loop::written_buffers(program_, a)) {
      if (read.contains(id)) handed_on.insert(id);
    }
    if (handed_on.empty()) return false;
    for (const BufferId id : handed_on) {
      if (!is_for(id, first, second) || !in_bands(id, a, bands) || !in_bands(id, b, bands)) {
        return false;
      }
    }
    Step joined = a;
    joined.body.insert(joined.body.end(), b.body.begin(), b.body.end());
    MovedSteps moved(program_, symbols);
    for (const BufferId id : handed_on) {
      const BufferId rows = add_window(id, bands);
      for (const Step* step : {&a, &b}) {
        loop::for_each_buffer(*step, [&](BufferId part) {
          if (program_.owner(part) != id || moved.replaces(part)) return;
          const Dims shape = program_.buffer(part).shape;
          const Dim bytes = in_band(id, part, step->symbol, bands);
          const Dim begin = Dim::floor_div(bytes, Dim(byte_size(program_.buffer(id).element)));
          moved.replace(part, add_part(program_, rows, shape, begin));
        });
      }
    }
    for (Step& step : joined.body) moved.move(step);
    std::vector<Step>& all = steps();
    all[second] = std::move(joined);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(first));
    forget(b.symbol);
    return true;
  }

  /// Whether only the two loops use an arena buffer.
  bool is_for(BufferId id, size_t first, size_t second) const {
    if (program_.buffer(id).kind != BufferClass::arena) return false;
    for (size_t e = 0; e < program_.entries.size(); ++e) {
      const std::vector<Step>& all = program_.entries[e].steps;
      for (size_t s = 0; s < all.size(); ++s) {
        if (e == entry_ && (s == first || s == second)) continue;
        bool uses = false;
        loop::for_each_buffer(all[s],
                              [&](BufferId part) { uses = uses || program_.owner(part) == id; });
        if (uses) return false;
      }
    }
    return true;
  }

  /// Where a part lies in the rows of its band, in bytes.
  Dim in_band(BufferId id, BufferId part, const std::string& band, int64_t bands) const {
    return loop::byte_offset(program_, part) -
           Dim::symbol(band) * Dim(program_.storage_bytes(id) / bands);
  }

  /// Whether each band uses its own share of the rows alone.
  bool in_bands(BufferId id, const Step& step, int64_t bands) const {
    const Dims& shape = program_.buffer(id).shape;
    const std::optional<size_t> rows = outermost(shape);
    if (!rows || !shape[*rows].is_constant() || shape[*rows].constant() % bands != 0) return false;
    const int64_t share = program_.storage_bytes(id) / bands;
    bool inside = true;
    loop::for_each_buffer(step, [&](BufferId part) {
      if (program_.owner(part) != id) return;
      const Dim offset = in_band(id, part, step.symbol, bands);
      const DimRange range = offset.range(program_.symbols);
      const bool varies = !(offset == offset.substitute({{step.symbol, Dim(0)}}));
      inside =
          inside && !varies && range.min >= 0 && range.max + program_.storage_bytes(part) <= share;
    });
    return inside;
  }

  BufferId add_window(BufferId id, int64_t bands) {
    Buffer window = program_.buffer(id);
    Dim& rows = window.shape[*outermost(window.shape)];
    rows = Dim(rows.constant() / bands);
    const std::string name = window.name + "_rows";
    return loop::add_buffer(program_, name, std::move(window));
  }

  /// A symbol that no loop counts by is a dimension that callers give.
  void forget(const std::string& symbol) {
    program_.symbols.erase(symbol);
    for (Buffer& buffer : program_.buffers) {
      if (buffer.view_of >= 0) {
        buffer.view_offset = buffer.view_offset.substitute({{symbol, Dim(0)}});
      }
    }
  }

  Program& program_;
  const size_t entry_;
  const TripsTogether together_;
};

}  // namespace

bool join_bands(Program& program, size_t entry, TripsTogether together) {
  return Joining(program, entry, together).run();
}

}  // namespace backcast
