#include "passes/lower/write_bands.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "ir/loop/text.h"
#include "passes/lower/moved_steps.h"
#include "passes/lower/row_borders.h"
#include "passes/lower/row_sums.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferId;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::StepKind;

/// A view that a trip passes: of a buffer as it is, or of the window of a band tensor, where
/// `offset` counts back from the window's end.
struct Operand {
  BufferId id = -1;
  bool in_window = false;
  bool whole = false;
  RowView part;
};

struct Action {
  size_t step = 0;  // of the region
  bool is_copy = false;
  std::vector<Operand> operands;
  Kernel kernel;
  std::string text;  // of the kernel, without its name
  std::map<std::string, int64_t> sizes;
};
using Trip = std::vector<Action>;

class Writing {
 public:
  Writing(Program& program, const RowRegion& region, const RowTrips& trips, Borders borders)
      : program_(program), region_(region), trips_(trips) {
    for (size_t s = 0; s < region.calls.size(); ++s) {
      add_call(*region.calls[s], *region.kernels[s]);
      actions_.emplace_back();
      for (int64_t t = 0; t < trips.trips; ++t) {
        if (trips.computed(s, t).count() > 0) actions_.back().emplace(t, call(s, t));
      }
      if (borders == Borders::shared) share_kernels(s);
    }
  }

  std::vector<Step> run() {
    std::vector<Trip> all;
    for (int64_t t = 0; t < trips_.trips; ++t) {
      if (t % trips_.period == 0) all.emplace_back();
      for (Action& action : trip(t)) all.back().push_back(std::move(action));
    }
    std::vector<Step> steps;
    for (const Step* step : region_.before) steps.push_back(*step);
    for (const RowSums& sums : sums_) steps.push_back(sums.begin);
    for (size_t t = 0; t < all.size();) {
      const size_t end = alike_until(all, t);
      write(all, t, end, steps);
      t = end;
    }
    for (const RowSums& sums : sums_) steps.push_back(sums.finish);
    return steps;
  }

 private:
  /// A step of the region as trips call it.
  struct Call {
    Step step;
    Kernel kernel;
    RowKernel by;
  };

  void add_call(const Step& step, const RowKernel& by) {
    if (!by.sums) {
      calls_.push_back({step, program_.kernels.at(step.kernel), by});
      return;
    }
    sums_.push_back(split_sums(program_, step));
    Step trip = step;
    trip.buffers = sums_.back().buffers;
    const std::vector<RowKernel> forms = match_rows(sums_.back().trip);
    const auto form = std::find_if(forms.begin(), forms.end(), [&](const RowKernel& candidate) {
      return candidate.sums && candidate.axis == by.axis;
    });
    calls_.push_back({std::move(trip), sums_.back().trip, *form});
  }

  // ---- what a trip does

  Trip trip(int64_t t) const {
    Trip trip;
    for (size_t s = 0; s < region_.calls.size(); ++s) {
      if (trips_.computed(s, t).count() == 0) continue;
      const int64_t kept = trips_.kept[s][static_cast<size_t>(t)];
      for (const BandTensor& tensor : region_.tensors) {
        if (tensor.producer == s) move_along(tensor, t, kept, trip);
      }
      trip.push_back(actions_[s].at(t));
    }
    return trip;
  }

  /// Rows of a band tensor's window, `behind` rows before its end.
  static Operand rows_of(const BandTensor& tensor, const Dims& shape, size_t dimension,
                         int64_t behind, int64_t count) {
    Operand operand{tensor.id, true, false, {shape, behind * tensor.row_elements}};
    operand.part.shape[dimension] = Dim(count);
    return operand;
  }

  /// To the front of the window, piece by piece where old and new place overlap.
  void move_along(const BandTensor& tensor, int64_t t, int64_t kept, Trip& trip) const {
    const int64_t added = trips_.computed(tensor.producer, t).count();
    const Dims& shape = program_.buffer(tensor.id).shape;
    for (int64_t left = kept; left > 0; left -= added) {
      Action copy;
      copy.step = tensor.producer;
      copy.is_copy = true;
      const int64_t count = std::min(added, left);
      copy.operands = {rows_of(tensor, shape, tensor.dimension, left, count),
                       rows_of(tensor, shape, tensor.dimension, added + left, count)};
      trip.push_back(std::move(copy));
    }
  }

  Action call(size_t s, int64_t t) const {
    const auto& [step, kernel, by] = calls_[s];
    const Rows rows = trips_.computed(s, t);
    Action action;
    action.step = s;
    for (const BufferId id : step.buffers) action.operands.push_back({id, false, true, {}});
    std::map<size_t, Rows> reached;
    for (const RowAccess& access : by.accesses()) {
      reached[access.param] = access.reached(rows);
      pass_rows(s, t, access, reached[access.param], action);
    }
    call_kernel(s, restrict_rows(kernel, by, rows, reached, in_windows(s)), action);
    return action;
  }

  /// The parameters that are passed windows.
  std::set<size_t> in_windows(size_t s) const {
    std::set<size_t> params;
    for (const RowAccess& access : calls_[s].by.accesses()) {
      const BufferId owner = program_.owner(calls_[s].step.buffers[access.param]);
      if (region_.tensor(owner) != nullptr) params.insert(access.param);
    }
    return params;
  }

  /// These rows of a window, or of all there is.
  void pass_rows(size_t s, int64_t t, const RowAccess& access, const Rows& part,
                 Action& action) const {
    const Dims& shape = calls_[s].kernel.buffers[access.param].shape;
    Operand& operand = action.operands[access.param];
    const BandTensor* tensor = region_.tensor(program_.owner(operand.id));
    if (tensor == nullptr) {
      operand.whole = false;
      operand.part = window_of(shape, access.dimension, part);
      return;
    }
    const int64_t end = trips_.computed(tensor->producer, t).end;
    operand = rows_of(*tensor, shape, access.dimension, end - part.begin, part.count());
  }

  void call_kernel(size_t s, Kernel kernel, Action& action) const {
    keep_in_place(kernel, calls_[s].step);
    kernel.name = "k";
    action.text = loop::print(kernel);
    action.kernel = std::move(kernel);
  }

  // ---- one kernel for trips at borders and others

  /// Where trips that compute as many rows would call different kernels.
  void share_kernels(size_t s) {
    std::map<int64_t, std::vector<int64_t>> by_count;
    for (const auto& [t, action] : actions_[s]) {
      by_count[trips_.computed(s, t).count()].push_back(t);
    }
    for (const auto& [count, trips] : by_count) {
      const std::string& first = actions_[s].at(trips.front()).text;
      const auto same = [&](int64_t t) { return actions_[s].at(t).text == first; };
      if (!std::all_of(trips.begin(), trips.end(), same)) share_kernel(s, trips);
    }
  }

  void share_kernel(size_t s, const std::vector<int64_t>& trips) {
    const auto& [step, kernel, by] = calls_[s];
    std::vector<RowPlace> places;
    for (const int64_t t : trips) places.push_back({trips_.computed(s, t), {}});
    for (const RowAccess& access : by.accesses()) pass_as_many(access, trips, step, places);
    size_t sizes = 0;
    const auto name_size = [&](DimRange range) {
      const auto key = std::make_pair(range.max, sizes++);
      const auto [found, fresh] = size_names_.try_emplace(key);
      if (fresh) found->second = loop::add_symbol(program_, "border", range);
      return found->second;
    };
    const std::optional<PlacedKernel> placed =
        place_rows(kernel, by, places, in_windows(s), name_size);
    if (!placed) return;
    for (size_t i = 0; i < trips.size(); ++i) {
      Action& action = actions_[s].at(trips[i]);
      for (const RowAccess& access : by.accesses()) {
        pass_rows(s, trips[i], access, places[i].passed.at(access.param), action);
      }
      call_kernel(s, placed->kernel, action);
      action.sizes = placed->sizes[i];
    }
  }

  /// As many rows of a parameter in every trip as one needs at most. In a window they may begin in
  /// front of the first row: what lies there is not read.
  void pass_as_many(const RowAccess& access, const std::vector<int64_t>& trips, const Step& step,
                    std::vector<RowPlace>& places) const {
    int64_t most = 0;
    for (const RowPlace& place : places) {
      most = std::max(most, access.reached(place.rows).count());
    }
    const BandTensor* tensor = region_.tensor(program_.owner(step.buffers[access.param]));
    for (size_t i = 0; i < trips.size(); ++i) {
      int64_t lowest = 0, end = access.extent;
      if (tensor != nullptr) {
        end = trips_.computed(tensor->producer, trips[i]).end;
        lowest = end - trips_.capacity[tensor->producer];
      }
      const int64_t begin = access.reached(places[i].rows).begin;
      const int64_t first = std::max(std::min(begin, end - most), lowest);
      places[i].passed[access.param] = {first, first + most};
    }
  }

  /// Results take over operands only where they are in their place already: others live on.
  void keep_in_place(Kernel& kernel, const Step& step) const {
    const auto owner = [&](const std::string& param) {
      return program_.owner(loop::buffer_of(kernel, step, param));
    };
    for (loop::BufferParam& param : kernel.buffers) {
      std::erase_if(param.over,
                    [&](const std::string& over) { return owner(over) != owner(param.name); });
    }
  }

  // ---- trips that are alike

  /// Whether b does with parts that lie elsewhere what a does.
  static bool alike(const Trip& a, const Trip& b) {
    const auto same = [](const Operand& x, const Operand& y) {
      const bool place = !x.in_window || x.part.offset == y.part.offset;
      return x.id == y.id && x.whole == y.whole && x.part.shape == y.part.shape && place;
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](const Action& x, const Action& y) {
                        return x.step == y.step && x.is_copy == y.is_copy && x.text == y.text &&
                               x.sizes == y.sizes &&
                               std::equal(x.operands.begin(), x.operands.end(), y.operands.begin(),
                                          y.operands.end(), same);
                      });
  }

  static std::vector<int64_t> distances(const Trip& a, const Trip& b) {
    std::vector<int64_t> result;
    for (size_t i = 0; i < a.size(); ++i) {
      for (size_t k = 0; k < a[i].operands.size(); ++k) {
        result.push_back(b[i].operands[k].part.offset - a[i].operands[k].part.offset);
      }
    }
    return result;
  }

  static size_t alike_until(const std::vector<Trip>& all, size_t first) {
    size_t end = first + 1;
    while (end < all.size() && alike(all[first], all[end]) &&
           distances(all[first], all[first + 1]) == distances(all[end - 1], all[end])) {
      ++end;
    }
    return end;
  }

  // ---- steps

  void write(const std::vector<Trip>& all, size_t first, size_t end, std::vector<Step>& steps) {
    const Trip& trip = all[first];
    const bool repeats = end - first > 1;
    const std::vector<int64_t> moves =
        repeats ? distances(trip, all[first + 1]) : std::vector<int64_t>();
    Step around;
    if (repeats) {
      around.kind = StepKind::loop;
      around.symbol =
          loop::add_symbol(program_, "band", {0, static_cast<int64_t>(end - first) - 1});
      around.count = Dim(static_cast<int64_t>(end - first));
      around.buffers = {-1, -1};
      around.loc = region_.calls.back()->loc;
    }
    passing_.clear();
    std::vector<Step>& to = repeats ? around.body : steps;
    size_t next = 0;
    for (const Action& action : trip) {
      Step step = calls_[action.step].step;
      if (action.is_copy) step.kind = StepKind::copy;
      step.kernel =
          action.is_copy ? "" : loop::add_kernel(program_, step.kernel + "_rows", action.kernel);
      step.buffers.clear();
      step.sizes.clear();
      for (const auto& [name, value] : action.sizes) step.sizes.push_back(Dim(value));
      for (const Operand& operand : action.operands) {
        Dim offset(operand.part.offset);
        if (repeats) offset = offset + Dim::symbol(around.symbol) * Dim(moves[next]);
        ++next;
        step.buffers.push_back(place(operand, offset, trip));
      }
      to.push_back(std::move(step));
    }
    if (repeats) steps.push_back(std::move(around));
  }

  BufferId place(const Operand& operand, const Dim& offset, const Trip& trip) {
    if (operand.whole) return operand.id;
    if (!operand.in_window) return view(operand.id, operand.part.shape, offset);
    const BandTensor& tensor = *region_.tensor(operand.id);
    const bool stays = trips_.keeps_rows(tensor.producer);
    std::map<BufferId, BufferId>& windows = stays ? lasting_ : passing_;
    const auto [found, fresh] = windows.try_emplace(operand.id, -1);
    if (fresh) found->second = add_window(tensor, stays ? -1 : rows_in(trip, tensor));
    const BufferId window = found->second;
    const int64_t rows = program_.buffer(window).shape[tensor.dimension].constant();
    return view(window, operand.part.shape, Dim(rows * tensor.row_elements) - offset);
  }

  /// The rows that a trip reads and writes of a window that keeps none.
  int64_t rows_in(const Trip& trip, const BandTensor& tensor) const {
    int64_t elements = 0;
    for (const Action& action : trip) {
      for (const Operand& operand : action.operands) {
        if (operand.id == tensor.id) elements = std::max(elements, operand.part.offset);
      }
    }
    return elements / tensor.row_elements;
  }

  BufferId add_window(const BandTensor& tensor, int64_t rows) {
    Buffer window = program_.buffer(tensor.id);
    window.shape[tensor.dimension] = Dim(rows < 0 ? trips_.capacity[tensor.producer] : rows);
    const std::string name = window.name + "_rows";
    return loop::add_buffer(program_, name, std::move(window));
  }

  BufferId view(BufferId of, const Dims& shape, const Dim& offset) {
    if (program_.buffer(of).shape == shape && offset == Dim(0)) return of;
    for (const BufferId id : views_) {
      const Buffer& known = program_.buffer(id);
      if (known.view_of == of && known.shape == shape && known.view_offset == offset) return id;
    }
    views_.push_back(add_part(program_, of, shape, offset));
    return views_.back();
  }

  Program& program_;
  const RowRegion& region_;
  const RowTrips& trips_;
  std::vector<Call> calls_;
  std::vector<RowSums> sums_;
  std::vector<std::map<int64_t, Action>> actions_;                // by step, by trip
  std::map<std::pair<int64_t, size_t>, std::string> size_names_;  // by range and number
  std::map<BufferId, BufferId> lasting_;  // windows that keep rows, by band tensor
  std::map<BufferId, BufferId> passing_;  // windows of the trips under way
  std::vector<BufferId> views_;
};

}  // namespace

std::vector<Step> write_bands(Program& program, const RowRegion& region, const RowTrips& trips,
                              Borders borders) {
  return Writing(program, region, trips, borders).run();
}

}  // namespace backcast
