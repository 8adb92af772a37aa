// Scans with other carries, rows and results: what passes that move work in or out of loops share.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph/builder.h"

namespace backcast {

/// How a scan changes. Values are those of its body as it is.
struct ScanChange {
  struct Read {
    ValueId value;  // of the body
    ValueId rows;   // outside: the value of every trip, stacked
  };
  std::set<int64_t> dropped_carries;  // of a scan without a trajectory
  std::vector<ValueId> more_ys;       // are stacked, too, those that are not yet
  std::vector<Read> read;             // are scanned instead of computed
  /// Invariants, by the number of their parameter, that the body makes itself.
  std::map<int64_t, std::function<ValueId(Builder&)>> made;
};

struct RebuiltScan {
  ValueId node;
  std::vector<int64_t> results;  // where each of the old results is now; -1: nowhere
  std::vector<int64_t> more_ys;  // where those are
};

/// Emits `scan`, whose operands in `b` are given, with the change made and without rows and
/// invariants that its body then does not read. The new body goes into `module`, which `b` builds
/// on.
RebuiltScan rebuild_scan(Module& module, Builder& b, const Node& scan,
                         const std::vector<ValueId>& operands, const ScanChange& change);

/// Whether every trip runs, whatever the operands are: then every row is written.
bool runs_in_full(const Function& function, const Node& scan);

/// The numbers of the results that `get` takes of a scan; nothing when something else reads it.
std::optional<std::set<int64_t>> results_taken(const Function& function, ValueId scan);

/// The values that the body's result is made of; null when it is no tuple node.
const std::vector<ValueId>* results_of(const Function& body);

/// By value, whether the roots depend on it by a way on which none of `stops` lies.
std::vector<char> reached(const Function& body, const std::vector<ValueId>& roots,
                          const std::set<int32_t>& stops);

/// Removes those of the named functions that nothing reaches any more.
void remove_unused(Module& module, const std::set<std::string>& names);

/// Bytes of one value, whose shape has to be constant.
int64_t bytes_of(const TensorType& type);

}  // namespace backcast
