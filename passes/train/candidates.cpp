// What is known about an initializer from where it is used: whether it is a bias, which
// normalisation it scales, and which layer it belongs to.
#include <algorithm>
#include <map>
#include <set>

#include "ir/graph/error.h"
#include "ir/ops/ops.h"
#include "passes/train/trainable.h"

namespace backcast {
namespace {

bool is_normalization(const std::string& op_type) {
  return op_type.find("Normalization") != std::string::npos;
}

/// Whether an operator only passes its operand on in another arrangement.
bool is_arrangement(const Node& node) {
  return node.op == &ops::reshape || node.op == &ops::broadcast || node.op == &ops::transpose ||
         node.op == &ops::cast;
}

/// Values that result number `target` depends on in a way that has a derivative.
std::vector<char> values_before(const Function& function, int64_t target) {
  const Node& result = function.node(function.result);
  const bool is_tuple = result.op == &ops::tuple;
  std::vector<char> wanted(function.nodes.size(), 0);
  const ValueId start = is_tuple ? result.operands[static_cast<size_t>(target)] : function.result;
  wanted[static_cast<size_t>(start.index)] = 1;
  for (int64_t i = function.size(); i-- > 0;) {
    const Node& node = function.node(ValueId(i));
    if (!wanted[static_cast<size_t>(i)] || node.op->gradient.is_zero()) continue;
    for (ValueId operand : node.operands) wanted[static_cast<size_t>(operand.index)] = 1;
  }
  return wanted;
}

/// The part of a name before its last component: "fc" of "fc.weight", "/block/fc" of
/// "/block/fc/MatMul".
std::string prefix_of(const std::string& name, char separator) {
  const size_t end = name.rfind(separator);
  return end == std::string::npos ? "" : name.substr(0, end);
}

/// Sets of names that mean one layer.
class Layers {
 public:
  std::string find(std::string name) {
    while (true) {
      const std::map<std::string, std::string>::const_iterator up = parent_.find(name);
      if (up == parent_.end()) return name;
      name = up->second;
    }
  }
  void join(const std::string& a, const std::string& b) {
    const std::string x = find(a), y = find(b);
    if (x != y) parent_[x] = y;
  }

 private:
  std::map<std::string, std::string> parent_;
};

class Survey {
 public:
  explicit Survey(const Function& function) : function_(function) {
    users_.resize(function.nodes.size());
    for (int64_t i = 0; i < function.size(); ++i) {
      for (ValueId operand : function.node(ValueId(i)).operands) {
        users_[static_cast<size_t>(operand.index)].push_back(ValueId(i));
      }
    }
  }

  /// Fills in all but the layer's number.
  TrainableCandidate describe(ValueId constant) {
    const Node& node = function_.node(constant);
    TrainableCandidate result;
    result.name = initializer_name(node);
    result.type = node.type.tensor();
    result.position = function_.size();
    std::vector<ValueId> todo = {constant};
    std::set<ValueId> seen;
    while (!todo.empty()) {
      const ValueId value = todo.back();
      todo.pop_back();
      for (ValueId user : users_[static_cast<size_t>(value.index)]) {
        if (!seen.insert(user).second) continue;
        const Node& use = function_.node(user);
        if (is_arrangement(use)) todo.push_back(user);
        note(result, use, user, value);
      }
    }
    const bool named_bias = std::string_view(result.name).ends_with("bias");
    result.is_bias = result.type.rank() == 1 && ((added_ && !result.is_norm) || named_bias);
    result.is_norm = result.is_norm && result.type.rank() <= 2;
    added_ = false;
    layers_.join("tensor:" + result.name, "node:" + result.user.node);
    const std::string scope = prefix_of(result.user.node, '/');
    if (!scope.empty()) layers_.join("node:" + result.user.node, "scope:" + scope);
    const std::string prefix = prefix_of(result.name, '.');
    if (!prefix.empty()) layers_.join("tensor:" + result.name, "prefix:" + prefix);
    return result;
  }

  std::string layer(const TrainableCandidate& c) { return layers_.find("tensor:" + c.name); }

 private:
  void note(TrainableCandidate& result, const Node& use, ValueId user, ValueId value) {
    if (!is_arrangement(use) && user.index < result.position) {
      result.position = user.index;
      result.user = use.loc;
    }
    result.is_norm |= is_normalization(use.loc.op_type);
    if (use.op != &ops::add) return;
    added_ = true;
    // A bias belongs to the contraction to whose result it is added.
    ValueId other = use.operands[use.operands[0] == value ? 1 : 0];
    while (is_arrangement(function_.node(other))) other = function_.node(other).operands[0];
    const Node& from = function_.node(other);
    if (from.op == &ops::dot_general || from.op == &ops::conv) {
      layers_.join("node:" + use.loc.node, "node:" + from.loc.node);
    }
  }

  const Function& function_;
  std::vector<std::vector<ValueId>> users_;
  Layers layers_;
  bool added_ = false;
};

}  // namespace

std::vector<TrainableCandidate> trainable_candidates(const Function& function, int64_t target,
                                                     const std::vector<std::string>& names) {
  const std::vector<char> wanted = values_before(function, target);
  std::map<std::string, ValueId> constants;
  for (int64_t i = 0; i < function.size(); ++i) {
    const Node& node = function.node(ValueId(i));
    const std::string name = initializer_name(node);
    if (name.empty() || !wanted[static_cast<size_t>(i)]) continue;
    if (is_float(node.type.tensor().element)) constants.emplace(name, ValueId(i));
  }
  Survey survey(function);
  std::vector<TrainableCandidate> result;
  for (const std::string& name : names) {
    const std::map<std::string, ValueId>::const_iterator found = constants.find(name);
    if (found != constants.end()) result.push_back(survey.describe(found->second));
  }
  std::map<std::string, int64_t> last;  // position of a layer's last use
  for (const TrainableCandidate& c : result) {
    if (c.is_number()) continue;
    int64_t& position = last[survey.layer(c)];
    position = std::max(position, c.position);
  }
  std::vector<int64_t> order;
  for (const auto& [name, position] : last) order.push_back(position);
  std::sort(order.begin(), order.end());
  for (TrainableCandidate& c : result) {
    c.layer = c.is_number() ? -1
                            : std::lower_bound(order.begin(), order.end(), last[survey.layer(c)]) -
                                  order.begin();
  }
  return result;
}

}  // namespace backcast
