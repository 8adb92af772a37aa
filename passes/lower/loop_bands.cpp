#include "passes/lower/loop_bands.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "ir/loop/text.h"
#include "passes/lower/join_bands.h"
#include "passes/lower/moved_steps.h"
#include "passes/lower/row_steps.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::EntryPoint;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::StepKind;

/// As many as register tiles have rows, or nearly, and a divisor of all where there is one.
int64_t trips_of_tiles(int64_t count) {
  for (const int64_t trips : {4, 5, 8, 6, 7, 3}) {
    if (count > trips && count % trips == 0) return trips;
  }
  return count > 4 ? 4 : 0;
}

/// A call in front of a loop that computes what its trips read, a row each.
struct Producer {
  size_t step = 0;
  BufferId tensor = -1;
  size_t written = 0;  // the parameter
  RowKernel form;
  int64_t row_elements = 0;
};

class LoopBands {
 public:
  LoopBands(Program& program, size_t entry, TripsTogether together)
      : program_(program), entry_(entry), together_(together) {}

  bool run() {
    bool changed = false;
    for (size_t s = 0; s < steps().size(); ++s) {
      const std::vector<Producer> producers = producers_of(s);
      if (producers.empty()) continue;
      const size_t behind = steps().size() - s;
      write(s, producers);
      s = steps().size() - behind;
      changed = true;
    }
    return changed;
  }

 private:
  std::vector<Step>& steps() { return program_.entries[entry_].steps; }

  /// Of `count`; 0: all stay together.
  int64_t trips_together(int64_t count) const {
    return together_ == TripsTogether::one ? (count > 1 ? 1 : 0) : trips_of_tiles(count);
  }

  std::vector<Producer> producers_of(size_t s) {
    const Step& step = steps()[s];
    std::vector<Producer> producers;
    if (!loop::runs_in_full(step) || trips_together(step.count.constant()) == 0) return producers;
    for (size_t k = 0; k < s; ++k) {
      if (std::optional<Producer> found = producer(k, s)) producers.push_back(std::move(*found));
    }
    return producers;
  }

  std::optional<Producer> producer(size_t k, size_t s) {
    const Step& call = steps()[k];
    if (call.kind != StepKind::call) return std::nullopt;
    const Kernel& kernel = program_.kernels.at(call.kernel);
    for (const RowKernel& form :
         loop::only_definition(kernel) ? match_rows(kernel) : std::vector<RowKernel>()) {
      if (form.sums || form.writes.size() != 1 || !by_rows(kernel, form, steps()[s])) continue;
      Producer found{k, call.buffers[form.writes[0].param], form.writes[0].param, form, 0};
      const Buffer& tensor = program_.buffer(found.tensor);
      if (tensor.kind != BufferClass::arena || tensor.view_of >= 0) continue;
      found.row_elements =
          program_.storage_bytes(found.tensor) / byte_size(tensor.element) / form.rows;
      if (is_for(found, s) && stays(call, k, s)) return found;
    }
    return std::nullopt;
  }

  /// Whether rows are those of the loop's trips, and lie one behind the other.
  static bool by_rows(const Kernel& kernel, const RowKernel& form, const Step& step) {
    if (form.rows != step.count.constant()) return false;
    const auto plain = [&](const RowAccess& access) {
      return access.is_identity() && access.extent == form.rows &&
             outermost(kernel.buffers[access.param].shape) == access.dimension;
    };
    return std::all_of(form.reads.begin(), form.reads.end(), plain) &&
           std::all_of(form.writes.begin(), form.writes.end(), plain);
  }

  /// Whether only the loop reads the tensor, in each trip that trip's row.
  bool is_for(const Producer& found, size_t s) const {
    const Step& around = program_.entries[entry_].steps[s];
    int views = 0, users = 0;
    for (const EntryPoint& entry : program_.entries) {
      for (const Step& step : entry.steps) {
        loop::for_each_buffer(step,
                              [&](BufferId id) { users += program_.owner(id) == found.tensor; });
      }
    }
    bool rows = true;
    loop::for_each_call(around.body, [&](const Step& call) {
      for (size_t i = 0; i < call.buffers.size(); ++i) {
        const BufferId id = call.buffers[i];
        if (program_.owner(id) != found.tensor) continue;
        ++views;
        rows = rows && in_row(found, id, around.symbol) &&
               loop::operand_mode(program_, call, i) == AccessMode::read;
      }
    });
    return rows && views > 0 && users == views + 1;
  }

  /// Whether the view is a part of the row that has the trip's number.
  bool in_row(const Producer& found, BufferId view, const std::string& symbol) const {
    const Dim offset = loop::byte_offset(program_, view);
    const Dim first = offset.substitute({{symbol, Dim(0)}});
    const int64_t row = found.row_elements * byte_size(program_.buffer(found.tensor).element);
    return first.is_constant() && offset == first + Dim::symbol(symbol) * Dim(row) &&
           first.constant() >= 0 && first.constant() + program_.storage_bytes(view) <= row;
  }

  /// Whether what the call reads is the same until the loop ends.
  bool stays(const Step& call, size_t k, size_t s) {
    const std::set<BufferId> read = loop::read_buffers(program_, call);
    for (size_t i = k + 1; i <= s; ++i) {
      for (const BufferId id : loop::written_buffers(program_, steps()[i])) {
        if (read.contains(id)) return false;
      }
    }
    return true;
  }

  // ---- writing

  void write(size_t s, const std::vector<Producer>& producers) {
    const Step whole = steps()[s];
    const int64_t count = whole.count.constant(), together = trips_together(count);
    std::vector<Step> parts = bands(whole, producers, {0, count / together, together, together});
    if (const int64_t rest = count % together; rest > 0) {
      // Some rows once more: a kernel of fewer would have constants in another order.
      const std::vector<Step> last = bands(whole, producers, {count - rest, 1, rest, together});
      parts.insert(whole.reverse ? parts.begin() : parts.end(), last.begin(), last.end());
    }
    std::vector<Step>& all = steps();
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(s));
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(s), parts.begin(), parts.end());
    for (size_t i = producers.size(); i-- > 0;) {
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(producers[i].step));
    }
  }

  /// Trips from `first` on: so many bands of so many each, whose rows are the last of some.
  struct Part {
    int64_t first = 0, bands = 0, trips = 0, rows = 0;
  };

  std::vector<Step> bands(const Step& whole, const std::vector<Producer>& producers,
                          const Part& part) {
    Step trips = whole;
    trips.count = Dim(part.trips);
    const DimRange range{0, part.trips - 1};
    if (part.first == 0) {
      program_.symbols[whole.symbol] = range;  // which no other loop counts by
    } else {
      trips.symbol = loop::add_symbol(program_, whole.symbol, range);
    }
    const Dim trip = part.trips > 1 ? Dim::symbol(trips.symbol) : Dim(0);
    const Dim before(part.rows - part.trips);
    Dim first(part.first);
    Step around = whole;
    if (part.bands > 1) {
      around.count = Dim(part.bands);
      around.symbol = loop::add_symbol(program_, "band", {0, part.bands - 1});
      first = first + Dim::symbol(around.symbol) * Dim(part.trips);
    }
    MovedSteps moved(program_, {{whole.symbol, first + trip}});
    std::vector<Step> steps;
    for (const Producer& producer : producers) {
      steps.push_back(some_rows(producer, first - before, part.rows));
      const BufferId rows = steps.back().buffers[producer.written];
      loop::for_each_buffer(whole, [&](BufferId id) {
        if (program_.owner(id) == producer.tensor && !moved.replaces(id)) {
          moved.replace(id, row_of(producer, id, rows, whole.symbol, before + trip));
        }
      });
    }
    for (Step& step : trips.body) moved.move(step);
    if (part.trips > 1) {
      steps.push_back(std::move(trips));
    } else {
      program_.symbols.erase(trips.symbol);
      steps.insert(steps.end(), trips.body.begin(), trips.body.end());
    }
    if (part.bands == 1) return steps;
    around.body = std::move(steps);
    return {std::move(around)};
  }

  /// The call for the rows of the trips from `trip` on.
  Step some_rows(const Producer& producer, const Dim& trip, int64_t count) {
    const Rows rows{0, count};
    Step call = steps()[producer.step];
    const Kernel whole = program_.kernels.at(call.kernel);
    std::map<size_t, Rows> reached;
    for (const RowAccess& access : producer.form.reads) reached[access.param] = rows;
    reached[producer.written] = rows;
    Kernel kernel = restrict_rows(whole, producer.form, rows, reached, {});
    // What it reads lives on.
    for (loop::BufferParam& param : kernel.buffers) param.over.clear();
    call.kernel = loop::add_kernel(program_, call.kernel + "_rows", std::move(kernel));
    for (const RowAccess& access : producer.form.reads) {
      const RowView part =
          window_of(whole.buffers[access.param].shape, access.dimension, {1, 1 + count});
      BufferId& id = call.buffers[access.param];
      id = add_part(program_, id, part.shape, trip * Dim(part.offset));
    }
    Buffer window = program_.buffer(producer.tensor);
    window.shape[producer.form.writes[0].dimension] = Dim(count);
    const std::string name = window.name + "_rows";
    call.buffers[producer.written] = loop::add_buffer(program_, name, std::move(window));
    return call;
  }

  /// A view of a row, or a part of one, among `rows`.
  BufferId row_of(const Producer& producer, BufferId id, BufferId rows, const std::string& symbol,
                  const Dim& row) {
    const Dim first = loop::byte_offset(program_, id).substitute({{symbol, Dim(0)}});
    const int64_t begin = first.constant() / byte_size(program_.buffer(id).element);
    const Dims shape = program_.buffer(id).shape;
    return add_part(program_, rows, shape, Dim(begin) + row * Dim(producer.row_elements));
  }

  Program& program_;
  const size_t entry_;
  const TripsTogether together_;
};

}  // namespace

std::optional<Program> loop_bands(const Program& program, TripsTogether together) {
  Program result = program;
  bool changed = false;
  for (size_t e = 0; e < result.entries.size(); ++e) {
    while (LoopBands(result, e, together).run()) {
      changed = true;
      // What such a product reads may have rows for it alone, too.
      if (together != TripsTogether::one) break;
    }
  }
  if (!changed) return std::nullopt;
  for (size_t e = 0; e < result.entries.size(); ++e) join_bands(result, e, together);
  loop::drop_uncalled(result);
  loop::separate_calls(result);  // passes before the schedule leave kernels of several calls alone
  return result;
}

}  // namespace backcast
