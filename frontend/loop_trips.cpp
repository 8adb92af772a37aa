#include "frontend/loop_trips.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "ir/ops/ops.h"

namespace backcast {
namespace {

constexpr int64_t kMaxTrips = 65536;
/// Counters are scalars; one more carry that is large would be run for nothing.
constexpr int64_t kMaxElements = 64;

bool is_small(const Type& type) {
  if (!type.is_tensor()) return false;
  const Dim count = type.tensor().element_count();
  return count.is_constant() && count.constant() <= kMaxElements;
}

/// What the condition depends on: parameters, and nodes in order.
struct Slice {
  std::set<size_t> params;
  std::set<int32_t> nodes;
};

class Slicer {
 public:
  Slicer(const Function& body, const KnownLoop& loop) : body_(body), loop_(loop) {
    for (size_t i = 0; i < body.params.size(); ++i) number_[body.params[i].index] = i;
  }

  /// None when the condition depends on something unknown or large.
  std::optional<Slice> run() {
    reach_param(loop_.condition);
    for (size_t i = 0; i < pending_.size(); ++i) {
      if (!visit(pending_[i])) return std::nullopt;
    }
    return slice_;
  }

 private:
  void reach(ValueId id) {
    if (slice_.nodes.insert(id.index).second) pending_.push_back(id);
  }

  void reach_param(size_t param) {
    slice_.params.insert(param);
    reach(body_.params[param]);
    if (loop_.next[param]) reach(body_.node(body_.result).operands[*loop_.next[param]]);
  }

  bool visit(ValueId id) {
    const Node& node = body_.node(id);
    if (!is_small(node.type) || !called_functions(node).empty()) return false;
    if (is_parameter(node)) {
      const size_t param = number_.at(id.index);
      if (!loop_.start[param]) return false;
      reach_param(param);
    }
    for (const ValueId operand : node.operands) reach(operand);
    return true;
  }

  const Function& body_;
  const KnownLoop& loop_;
  std::map<int32_t, size_t> number_;  // of parameters, by value
  Slice slice_;
  std::vector<ValueId> pending_;
};

}  // namespace

std::optional<int64_t> count_trips(const Module& module, const Function& body,
                                   const KnownLoop& loop, std::optional<int64_t> limit) {
  const std::optional<Slice> slice = Slicer(body, loop).run();
  if (!slice) return std::nullopt;
  std::map<int32_t, Value> values;
  for (const size_t param : slice->params) {
    values[body.params[param].index] = *loop.start[param];
  }
  const int64_t most = std::min(limit.value_or(kMaxTrips), kMaxTrips);
  const Value& goes_on = values.at(body.params[loop.condition].index);
  try {
    for (int64_t trips = 0; trips < most; ++trips) {
      if (goes_on.tensor.as_int(0) == 0) return trips;
      for (const int32_t index : slice->nodes) {
        const Node& node = body.node(ValueId(index));
        if (is_parameter(node)) continue;
        std::vector<Value> operands;
        for (const ValueId operand : node.operands) operands.push_back(values.at(operand.index));
        values[index] = evaluate_node(module, node, operands);
      }
      std::vector<std::pair<int32_t, Value>> next;
      for (const size_t param : slice->params) {
        if (!loop.next[param]) continue;
        const ValueId result = body.node(body.result).operands[*loop.next[param]];
        next.emplace_back(body.params[param].index, values.at(result.index));
      }
      for (const auto& [index, value] : next) values[index] = value;
    }
  } catch (const CompileError&) {  // a dimension that is a symbol
    return std::nullopt;
  }
  if (limit && most == *limit) return most;
  return goes_on.tensor.as_int(0) == 0 ? std::optional(most) : std::nullopt;
}

}  // namespace backcast
