// Of overlap.h: results that several steps write while others read the operand.
#include <algorithm>
#include <set>

#include "ir/loop/overlap.h"
#include "ir/loop/step_access.h"

namespace backcast::loop {
namespace {

// Calls and copies gone through.
constexpr size_t kMostEvents = 100'000;

/// Bytes [begin, end) of a storage.
struct Bytes {
  int64_t begin = INT64_MAX, end = INT64_MIN;
  void add(const Bytes& other) {
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
  }
};

struct Event {
  Bytes reads, writes;  // of the operand, of the result
};

class StepWalk {
 public:
  StepWalk(const Program& program, int64_t first, int64_t last, BufferId read, BufferId written)
      : program_(program), first_(first), last_(last), read_(read), written_(written) {}

  std::optional<OverlapDistance> run(const EntryPoint& entry) {
    walk(entry.steps, 0);
    if (failed_) return {};
    OverlapDistance distance{INT64_MIN / 2, INT64_MIN / 2};
    Bytes later;
    for (size_t i = events_.size(); i-- > 0;) {
      later.add(events_[i].reads);
      const Bytes& writes = events_[i].writes;
      if (later.begin > later.end || writes.begin > writes.end) continue;
      distance.read_above = std::max(distance.read_above, writes.end - later.begin);
      distance.written_above = std::max(distance.written_above, later.end - writes.begin);
    }
    return OverlapDistance{std::min(distance.read_above, program_.storage_bytes(written_)),
                           std::min(distance.written_above, program_.storage_bytes(read_))};
  }

 private:
  /// Steps of which the first has this number.
  void walk(const std::vector<Step>& steps, int64_t number) {
    for (const Step& step : steps) {
      const int64_t end = number + count_steps(step);
      if (end > first_ && number <= last_ && !failed_) visit(step, number, end);
      number = end;
    }
  }

  void visit(const Step& step, int64_t number, int64_t end) {
    if (step.kind == StepKind::call || step.kind == StepKind::copy) return add_event(step);
    // Within one trip of a loop around these steps, whatever trip that is.
    if (step.kind == StepKind::loop && number < first_ && end > last_ + 1) {
      return walk(step.body, number + 1);
    }
    const bool is_known = runs_in_full(step) && !step.reverse;
    if (!is_known || number < first_ || end > last_ + 1) {
      failed_ = true;
      return;
    }
    for (int64_t trip = 0; trip < step.count.constant() && !failed_; ++trip) {
      symbols_[step.symbol] = trip;
      walk(step.body, number + 1);
    }
    symbols_.erase(step.symbol);
  }

  void add_event(const Step& step) {
    Event event;
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      const BufferId owner = program_.owner(step.buffers[i]);
      if (owner != read_ && owner != written_) continue;
      const bool copied = step.kind == StepKind::copy;
      const AccessMode mode = copied ? (i == 0 ? AccessMode::read : AccessMode::write)
                                     : program_.kernels.at(step.kernel).buffers[i].mode;
      if (owner == written_ && mode == AccessMode::read) continue;
      failed_ = failed_ || (owner == read_ && mode != AccessMode::read);
      (owner == read_ ? event.reads : event.writes).add(bytes_of(step.buffers[i]));
    }
    events_.push_back(event);
    failed_ = failed_ || events_.size() > kMostEvents;
  }

  /// Where a view lies in its storage in this trip.
  Bytes bytes_of(BufferId id) {
    const Dim begin = byte_offset(program_, id);
    std::set<std::string> symbols;
    begin.collect_symbols(symbols);
    for (const Dim& extent : program_.buffer(id).shape) extent.collect_symbols(symbols);
    const bool is_known = std::all_of(symbols.begin(), symbols.end(), [&](const std::string& name) {
      return symbols_.contains(name);
    });
    if (!is_known) {
      failed_ = true;
      return {};
    }
    const int64_t at = begin.evaluate(symbols_);
    return {at, at + program_.storage_bytes(id)};
  }

  const Program& program_;
  const int64_t first_, last_;
  const BufferId read_, written_;
  SymbolValues symbols_;
  std::vector<Event> events_;
  bool failed_ = false;
};

}  // namespace

std::optional<OverlapDistance> overlap_distance(const Program& program, const EntryPoint& entry,
                                                int64_t first, int64_t last, BufferId read,
                                                BufferId written) {
  return StepWalk(program, first, last, read, written).run(entry);
}

}  // namespace backcast::loop
