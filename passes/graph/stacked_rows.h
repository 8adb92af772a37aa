// What of a loop's body is there for all of its trips at once: rows that it reads, rows that it
// writes, parts of them, and what is to be written beside them.
#pragma once

#include <optional>
#include <vector>

#include "ir/ops/op_attrs.h"
#include "passes/graph/rebuild_scan.h"

namespace backcast {

class StackedRows {
 public:
  /// `scan` has no trajectory; `body` is its body, whose result is a tuple node.
  StackedRows(const Node& scan, const Function& body);

  /// Whether a value of the body is stacked, or a product of two that are.
  bool has(ValueId value) const;
  /// From now on it is.
  void stack(ValueId value);
  /// What stack() had to add.
  const std::vector<ValueId>& stacked() const { return more_; }

  /// Once the scan is rebuilt with more_ys = stacked(): its operands, and its old results.
  void place(Builder& b, const std::vector<ValueId>& operands, const std::vector<ValueId>& results,
             const RebuiltScan& scan);
  /// Emits the rows of a stacked value.
  ValueId emit(Builder& b, ValueId value) const;

 private:
  /// A box of a row that the scan reads or writes.
  struct Source {
    bool written;
    int64_t number;  // of the operand or the result
    std::optional<Dims> start, limit;
  };

  std::optional<Source> source_of(ValueId value) const;
  bool lies_in_rows(ValueId value) const;
  /// A slice of rows as one of all of them.
  SliceAttrs behind_trips(Dims start, Dims limit, Ints stride) const;

  const Function& body_;
  const int64_t carries_, xs_, length_;
  const std::vector<ValueId>& results_;
  std::vector<ValueId> more_;
  std::vector<ValueId> operands_now_, results_now_, more_now_;
};

/// Whether every element of the value is zero.
bool is_zero_of(const Function& function, ValueId value);

}  // namespace backcast
