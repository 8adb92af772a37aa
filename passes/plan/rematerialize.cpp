#include "passes/plan/rematerialize.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "passes/plan/recompute_tape.h"

namespace backcast {
namespace {

using loop::BufferClass;
using loop::Program;

// Without a goal, recomputation may add this share of the work …
constexpr double kCheap = 0.035;
// … as long as the peak falls by one of these shares, the larger ones first.
constexpr double kFalls[] = {0.2, 0.15, 0.1, 0.05, 0.02, 0.01};
constexpr double kLeastFall = *std::rbegin(kFalls);
// A fall, as a share of all RAM, is worth the work that is this many times smaller a share.
constexpr double kWorth = 3;
// An operand that is gone stays alive for longer rather than being computed again, too, when it is
// this many times smaller than what that saves.
constexpr int64_t kSmall = 16;
constexpr size_t kLongestChain = 48;
// Values that are this many times smaller than the goal stay.
constexpr int64_t kTiny = 1024;
// Candidates that are weighed exactly, after an estimate.
constexpr size_t kWeighed = 40;
constexpr int kMaxRounds = 400;

struct Candidate {
  Recompute recompute;
  int64_t work = 0;
  double estimate = 0;  // bytes off the steps above the goal, per operation
};

/// Lowers the live bytes of one tape towards a goal.
class Lowering {
 public:
  Lowering(Tape& tape, int64_t goal, int64_t most_work)
      : tape_(tape), goal_(goal), work_left_(most_work) {}

  /// Whether the goal is reached; the tape has what was chosen on the way in any case.
  bool run() {
    for (int round = 0; round < kMaxRounds; ++round) {
      const std::vector<int64_t> live = tape_.live_bytes();
      const int64_t excess = excess_of(live);
      if (excess == 0) return true;
      std::optional<Tape> best;
      double best_score = 0;
      for (const Candidate& candidate : candidates(live)) {
        Tape tried = tape_.with(candidate.recompute);
        const int64_t gain = excess - excess_of(tried.live_bytes());
        const int64_t work = tried.work() - tape_.work();
        if (gain <= 0 || work > work_left_) continue;
        const double score =
            static_cast<double>(gain) / static_cast<double>(std::max<int64_t>(work, 1));
        if (score > best_score) {
          best_score = score;
          best = std::move(tried);
        }
      }
      if (!best) return false;
      work_left_ -= best->work() - tape_.work();
      tape_ = std::move(*best);
    }
    return false;
  }

 private:
  int64_t excess_of(const std::vector<int64_t>& live) const {
    int64_t sum = 0;
    for (int64_t bytes : live) sum += std::max<int64_t>(bytes - goal_, 0);
    return sum;
  }

  /// What may be computed again, most promising first.
  std::vector<Candidate> candidates(const std::vector<int64_t>& live) {
    uses_ = tape_.uses();
    writers_ = tape_.writers();
    std::vector<Candidate> found;
    for (size_t v = 0; v < uses_.size(); ++v) {
      if (tape_.values()[v].bytes <= goal_ / kTiny || writers_[v].empty()) continue;
      for (size_t u = 0; u + 1 < uses_[v].size(); ++u) {
        const int64_t gain = gain_between(live, uses_[v][u], uses_[v][u + 1], v);
        if (gain > 0) add_candidates(v, uses_[v][u + 1], gain, found);
      }
    }
    std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
      return a.estimate > b.estimate;
    });
    if (found.size() > kWeighed) found.resize(kWeighed);
    return found;
  }

  int64_t gain_between(const std::vector<int64_t>& live, size_t first, size_t last,
                       size_t value) const {
    int64_t gain = 0;
    for (size_t i = first + 1; i < last; ++i) {
      gain += std::clamp<int64_t>(live[i] - goal_, 0, tape_.values()[value].bytes);
    }
    return gain;
  }

  void add_candidates(size_t value, size_t before, int64_t gain, std::vector<Candidate>& found) {
    std::set<std::vector<size_t>> seen;
    // Operands that are gone: all computed again, only what is cheap, or none.
    for (const bool contractions : {true, false}) {
      for (const int64_t small : {kSmall, int64_t{1}}) {
        std::optional<std::vector<size_t>> chain = chain_for(value, before, small, contractions);
        if (!chain || !seen.insert(*chain).second) continue;
        Candidate candidate{{before, std::move(*chain)}, 0, 0};
        for (size_t op : candidate.recompute.chain) candidate.work += tape_.op(op).work;
        if (candidate.work > work_left_) continue;
        candidate.estimate =
            static_cast<double>(gain) / static_cast<double>(std::max<int64_t>(candidate.work, 1));
        found.push_back(std::move(candidate));
      }
    }
  }

  /// The operations that give `value` again before operation `before`. Operands that are gone by
  /// then and `small` times smaller than the value stay instead, as do those that cannot be had
  /// again and, unless `contractions`, those that take more than a few operations per byte.
  std::optional<std::vector<size_t>> chain_for(size_t value, size_t before, int64_t small,
                                               bool contractions) const {
    std::set<size_t, std::greater<>> open;
    for (const size_t user : uses_[value]) {
      if (user < before) continue;
      for (const size_t w : writers_met(value, user)) open.insert(w);
    }
    std::set<size_t> chain;
    while (!open.empty()) {
      const size_t at = *open.begin();
      open.erase(open.begin());
      const TapeOp& op = tape_.op(at);
      if (!op.repeatable || at >= before || chain.size() == kLongestChain) return std::nullopt;
      chain.insert(at);
      for (int id : op.reads) {
        const size_t r = static_cast<size_t>(id);
        const TapeValue& read = tape_.values()[r];
        if (read.kind == BufferClass::output || written_between(r, at, before)) return std::nullopt;
        if (read.bytes == 0 || uses_[r].back() >= before) continue;
        const bool kept = read.bytes * small <= tape_.values()[value].bytes;
        const std::vector<size_t> givers = writers_met(r, at);
        if (kept || !std::all_of(givers.begin(), givers.end(), [&](size_t giver) {
              return giver < at && may_repeat(giver, contractions);
            })) {
          continue;
        }
        open.insert(givers.begin(), givers.end());
      }
    }
    if (!gives_all(chain, before)) return std::nullopt;
    return std::vector<size_t>(chain.begin(), chain.end());
  }

  /// The operations whose results another one may read in a value.
  std::vector<size_t> writers_met(size_t value, size_t reader) const {
    const std::vector<int>& reads = tape_.op(reader).reads;
    std::vector<size_t> result;
    if (std::find(reads.begin(), reads.end(), static_cast<int>(value)) == reads.end()) return {};
    std::copy_if(writers_[value].begin(), writers_[value].end(), std::back_inserter(result),
                 [&](size_t w) { return tape_.meet(w, reader, static_cast<int>(value)); });
    return result;
  }

  /// Whether the chain writes all parts that are read of what it writes: by itself, and by what
  /// comes behind it, which writes none.
  bool gives_all(const std::set<size_t>& chain, size_t before) const {
    std::set<size_t> written;
    const auto has_parts_for = [&](size_t reader) {
      return std::all_of(written.begin(), written.end(), [&](size_t value) {
        const std::vector<size_t> met = writers_met(value, reader);
        return std::all_of(met.begin(), met.end(), [&](size_t w) { return chain.contains(w); });
      });
    };
    for (const size_t op : chain) {
      if (!has_parts_for(op)) return false;
      for (int id : tape_.op(op).writes) written.insert(static_cast<size_t>(id));
    }
    for (const size_t value : written) {
      if (writers_[value].back() >= before) return false;
      for (const size_t user : uses_[value]) {
        if (user >= before && !has_parts_for(user)) return false;
      }
    }
    return true;
  }

  bool may_repeat(size_t op, bool contractions) const {
    constexpr int64_t kFew = 4;
    int64_t bytes = 0;
    for (int v : tape_.op(op).writes) bytes += tape_.values()[static_cast<size_t>(v)].bytes;
    return tape_.op(op).repeatable && (contractions || tape_.op(op).work <= kFew * bytes);
  }

  /// Whether an operation after `first` and before `last` writes what `first` reads of the value.
  bool written_between(size_t value, size_t first, size_t last) const {
    return std::any_of(writers_[value].begin(), writers_[value].end(), [&](size_t w) {
      return w > first && w < last && tape_.meet(w, first, static_cast<int>(value));
    });
  }

  Tape& tape_;
  int64_t goal_, work_left_;
  std::vector<std::vector<size_t>> uses_, writers_;
};

int64_t peak_of(const Tape& tape) {
  const std::vector<int64_t> live = tape.live_bytes();
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

/// Lower and lower, each time by a share of the peak, while the work lasts. `kept`: the bytes of
/// state beside the arena.
void lower_cheaply(Tape& tape, int64_t kept) {
  const Tape original = tape;
  const int64_t limit =
      original.work() + static_cast<int64_t>(kCheap * static_cast<double>(original.work()));
  const auto lowered = [&](const Tape& from, double share) -> std::optional<Tape> {
    const int64_t peak = peak_of(tape);
    const int64_t goal = static_cast<int64_t>((1 - share) * static_cast<double>(peak));
    Tape tried = from;
    // Close to the goal is a fall, too.
    Lowering(tried, goal, limit - from.work()).run();
    if (peak_of(tried) > static_cast<int64_t>((1 - kLeastFall) * static_cast<double>(peak))) {
      return std::nullopt;
    }
    const double less =
        static_cast<double>(peak - peak_of(tried)) / static_cast<double>(peak + kept);
    const double more =
        static_cast<double>(tried.work() - tape.work()) / static_cast<double>(tape.work());
    return less < kWorth * more ? std::nullopt : std::optional<Tape>(std::move(tried));
  };
  for (bool fell = peak_of(tape) > 0; fell;) {
    fell = false;
    for (const double share : kFalls) {
      std::optional<Tape> better = lowered(tape, share);
      // What was chosen for smaller falls may stand in the way of a larger one.
      if (!better && tape.work() > original.work()) better = lowered(original, share);
      if (!better) continue;
      tape = std::move(*better);
      fell = peak_of(tape) > 0;
      break;
    }
  }
}

int64_t values_again(const Tape& tape) {
  int64_t count = 0;
  for (size_t i = 0; i < tape.size(); ++i) count += tape.op(i).again;
  return count;
}

}  // namespace

void Recomputation::add(const Recomputation& other) {
  values += other.values;
  operations += other.operations;
  before += other.before;
}

std::string Recomputation::to_string() const {
  const double share =
      before == 0 ? 0 : static_cast<double>(operations) / static_cast<double>(before);
  return fmt::format("recomputes {} value{}, +{:.2f} M operations (+{:.1f} %)", values,
                     values == 1 ? "" : "s", static_cast<double>(operations) / 1e6, 100 * share);
}

Program rematerialize(const Program& program, const TargetInfo& target, Recomputation* done) {
  Program result = program;
  int64_t kept = 0;
  for (const loop::BufferId id : result.states()) kept += result.storage_bytes(id);
  if (kept == 0) return result;
  for (size_t entry = 0; entry < result.entries.size(); ++entry) {
    Tape tape(result, entry, target);
    const int64_t before = tape.work();
    lower_cheaply(tape, kept);
    if (done != nullptr) done->add({values_again(tape), tape.work() - before, before});
    if (values_again(tape) > 0) tape.write_to(result, entry);
  }
  return result;
}

Program rematerialize(const Program& program, const TargetInfo& target, const RecomputeGoal& goal,
                      Recomputation* done) {
  Program result = program;
  for (size_t entry = 0; entry < result.entries.size(); ++entry) {
    Tape tape(result, entry, target);
    const int64_t before = tape.work();
    const int64_t most = static_cast<int64_t>(goal.most_work * static_cast<double>(before));
    Lowering(tape, goal.live_bytes, most).run();
    if (done != nullptr) done->add({values_again(tape), tape.work() - before, before});
    if (values_again(tape) > 0) tape.write_to(result, entry);
  }
  return result;
}

}  // namespace backcast
