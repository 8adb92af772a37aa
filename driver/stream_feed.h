// Whole sequences for a model that takes them piece by piece.
#pragma once

#include <vector>

#include "ir/graph/literal.h"
#include "passes/graph/stream.h"

namespace backcast {

class StreamFeed {
 public:
  /// `inputs` of the whole model. CompileError where no call is about just that stretch.
  StreamFeed(const StreamNotes& notes, std::vector<Literal> inputs);

  int64_t calls() const { return calls_; }
  std::vector<Literal> inputs(int64_t call) const;

  /// Of the outputs of all calls, in order: along the sequence joined, without what the first calls
  /// give for nothing; others the last call's.
  std::vector<Literal> joined(const std::vector<std::vector<Literal>>& outputs) const;
  /// Of the outputs of the whole model what `joined` gives of them.
  std::vector<Literal> given(const std::vector<Literal>& whole) const;

 private:
  /// Positions of an output that all calls together give of the model's.
  int64_t given_of(const StreamNotes::Tensor& output) const;

  const StreamNotes& notes_;
  std::vector<Literal> inputs_;
  int64_t calls_ = 0;
  int64_t lead_ = 0;  // positions of the first input in front of the sequence
};

}  // namespace backcast
