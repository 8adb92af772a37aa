// Which bytes of a storage a step reads or writes, as far as its indices tell: several steps may
// write the parts of one tensor, and read some of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/loop/affine_access.h"
#include "ir/loop/program.h"

namespace backcast::loop {

/// Of one step and storage; the program must outlive it.
class TouchedBytes {
 public:
  /// What the step writes of the storage, or else what it reads. All of it where that is not known:
  /// sizes or places are symbols, or the step holds others.
  TouchedBytes(const Program& program, const Step& step, BufferId storage, bool writes);

  /// Whether no byte is in both; false also where the indices do not show that.
  bool is_apart_from(const TouchedBytes& other) const;

 private:
  struct Access {
    AffineAccess access;
    int64_t begin = 0;  // of the parameter in the storage, in bytes
    int64_t size = 1;   // of an element
  };

  void add_copied(const Program& program, BufferId id);
  void add_periods(const Dims& shape, int64_t size);
  const std::optional<std::vector<Places>>& places(int64_t period) const;
  std::optional<std::vector<Places>> find_places(int64_t period) const;

  bool is_known_ = true;
  std::optional<AffineAccesses> affine_;  // of a call
  std::vector<Access> accesses_;
  std::vector<Places> whole_;  // of copies, in bytes
  std::set<int64_t> periods_;  // bytes of rows, planes and so on; 0: all of the storage
  mutable std::map<int64_t, std::optional<std::vector<Places>>> found_;  // by period, sorted
};

}  // namespace backcast::loop
