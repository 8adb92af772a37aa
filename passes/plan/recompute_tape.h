// An entry point as recomputation sees it: operations on a tape, and who touches which storage.
// Operations can be put on the tape a second time; what that does to memory and work is known
// without touching the program. The tape becomes steps again at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

/// A storage, or the place of its contents computed again.
struct TapeValue {
  loop::BufferId storage = -1;  // of the program: the owner
  int64_t bytes = 0;            // of the arena; 0 for every other class
  loop::BufferClass kind = loop::BufferClass::arena;
  bool again = false;
};

struct TapeOp {
  size_t step = 0;                        // of the entry point
  std::vector<int> reads, writes;         // values; what is updated is in both
  std::vector<std::pair<int, int>> over;  // a written value and the read one it may take over
  int64_t work = 0;         // multiply-accumulates, or what takes about as long as one
  bool repeatable = false;  // writes the arena only, and nothing that it reads
  bool again = false;
};

/// To compute `chain` (operations, in order) once more before operation `before`. Whoever reads
/// what they write from there on reads the new values.
struct Recompute {
  size_t before = 0;
  std::vector<size_t> chain;
};

class Tape {
 public:
  Tape(const loop::Program& program, size_t entry, const TargetInfo& target);

  size_t size() const { return ops_.size(); }
  const TapeOp& op(size_t i) const { return *ops_[i]; }
  const std::vector<TapeValue>& values() const { return values_; }
  int64_t work() const;

  /// Bytes of the arena that are live during each operation, when results take the storage of
  /// dying operands where their kernels allow that.
  std::vector<int64_t> live_bytes() const;
  /// The operations that touch each value, in order.
  std::vector<std::vector<size_t>> uses() const;
  /// The operations that write each value, in order.
  std::vector<std::vector<size_t>> writers() const;

  /// Whether operation `reader` may read what `writer` writes of a value: not where several
  /// operations write parts of it, and this one reads others.
  bool meet(size_t writer, size_t reader, int value) const;

  /// Operations whose results nobody reads any more leave the tape.
  Tape with(const Recompute& recompute) const;

  /// The entry point's steps in the tape's order; values computed again get buffers `…_again`.
  void write_to(loop::Program& program, size_t entry) const;

 private:
  /// A storage, the step that writes part of it, and one that reads none of that.
  using Apart = std::set<std::tuple<loop::BufferId, size_t, size_t>>;

  Tape() = default;
  void tell_parts_apart(const loop::Program& program, size_t entry);
  void drop_unread(const std::vector<size_t>& candidates);

  // Shared among tapes: those that are tried differ in a few operations from what they come from.
  std::vector<std::shared_ptr<const TapeOp>> ops_;
  std::vector<TapeValue> values_;
  std::shared_ptr<const Apart> apart_;
};

/// What a step takes, in multiply-accumulates: those of contractions, or two per element that it
/// reads or writes (twelve where a tensor does not stay in the second cache), whichever is more;
/// eight per call of a mathematical function.
int64_t work_of(const loop::Program& program, const loop::Step& step, const TargetInfo& target);

}  // namespace backcast
