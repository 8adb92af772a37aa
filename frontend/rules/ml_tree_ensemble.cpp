// ai.onnx.ml: ensembles of decision trees in the form of opset 5, which has a list of leaves.
#include <cmath>

#include "frontend/operators.h"
#include "frontend/rules/ml_forest.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// The sets of MEMBER tests, one after the other, with no number behind each.
std::vector<std::vector<double>> sets_of(const NodeContext& n) {
  std::vector<std::vector<double>> sets(1);
  const std::optional<Literal> values = n.attr_tensor("membership_values");
  if (!values) return {};
  for (const double value : numbers_of(*values)) {
    if (std::isnan(value)) {
      sets.emplace_back();
    } else {
      sets.back().push_back(value);
    }
  }
  return sets;
}

std::vector<double> tensor_of(const NodeContext& n, const std::string& name) {
  const std::optional<Literal> tensor = n.attr_tensor(name);
  if (!tensor) n.fail(fmt::format("attribute \"{}\" is missing", name));
  return numbers_of(*tensor);
}

/// Reads nodes_*, then leaf_*, of which places come behind those of the nodes. A test for a set
/// becomes one for each of its members.
Forest forest_with_leaves(const NodeContext& n, int64_t outputs) {
  static constexpr Test kTests[] = {Test::le, Test::lt, Test::ge, Test::gt, Test::eq, Test::ne};
  constexpr double kMember = 6;
  const std::vector<double> modes = tensor_of(n, "nodes_modes");
  const std::vector<double> splits = tensor_of(n, "nodes_splits");
  const std::vector<double> weights = tensor_of(n, "leaf_weights");
  const size_t count = modes.size(), leaves = weights.size();
  if (splits.size() != count) n.fail("attribute \"nodes_splits\" is incomplete");
  const Ints features = listed(n, "nodes_featureids", count), missing = missing_of(n, count);
  const std::vector<std::vector<double>> sets = sets_of(n);
  Forest f;
  std::vector<const std::vector<double>*> members(count, nullptr);
  size_t sets_read = 0;
  for (size_t i = 0; i < count; ++i) {
    if (modes[i] < 0 || modes[i] > kMember) n.fail(fmt::format("a node has the mode {}", modes[i]));
    double split = splits[i];
    Test test = Test::eq;
    if (modes[i] == kMember) {
      if (sets_read == sets.size() || sets[sets_read].empty()) {
        n.fail("attribute \"membership_values\" has fewer sets than there are tests for one");
      }
      members[i] = &sets[sets_read++];
      split = members[i]->front();
    } else {
      test = kTests[static_cast<size_t>(modes[i])];
    }
    f.add(test, features[i], split, missing[i] != 0);
  }
  const Ints targets = listed(n, "leaf_targetids", leaves);
  for (size_t i = 0; i < leaves; ++i) f.add(Test::leaf, 0, 0, false);
  const auto branches = [&](const std::string& which) {
    Ints places = listed(n, "nodes_" + which + "nodeids", count);
    const Ints to_leaf = listed(n, "nodes_" + which + "leafs", count);
    for (size_t i = 0; i < count; ++i) {
      const size_t known = to_leaf[i] != 0 ? leaves : count;
      if (places[i] < 0 || static_cast<size_t>(places[i]) >= known) {
        n.fail(fmt::format("attribute \"nodes_{}nodeids\" has {} of {}", which, places[i], known));
      }
      if (to_leaf[i] != 0) places[i] += static_cast<int64_t>(count);
    }
    return places;
  };
  const Ints yes = branches("true"), no = branches("false");
  for (size_t i = 0; i < count; ++i) {
    size_t at = i;
    for (size_t m = 1; members[i] && m < members[i]->size(); ++m) {
      const int64_t next = f.add(Test::eq, features[i], (*members[i])[m], false);
      f.yes[at] = yes[i];
      f.no[at] = next;
      at = static_cast<size_t>(next);
    }
    f.yes[at] = yes[i];
    f.no[at] = no[i];
  }
  f.roots = n.attr_ints("tree_roots").value_or(Ints());
  for (const int64_t root : f.roots) {
    if (root < 0 || static_cast<size_t>(root) >= count) n.fail(fmt::format("has no node {}", root));
  }
  if (f.roots.empty()) n.fail("attribute \"tree_roots\" is missing");
  f.outputs = outputs;
  f.weights.resize(static_cast<size_t>(f.size() * outputs), 0);
  for (size_t i = 0; i < leaves; ++i) {
    if (targets[i] < 0 || targets[i] >= outputs) n.fail(fmt::format("no output {}", targets[i]));
    f.weights[(count + i) * static_cast<size_t>(outputs) + static_cast<size_t>(targets[i])] =
        weights[i];
  }
  return f;
}

/// The name that stands for a number.
std::string named(const NodeContext& n, const std::string& attribute, int64_t fallback,
                  std::initializer_list<const char*> names) {
  const int64_t number = n.attr_int(attribute, fallback);
  if (number < 0 || number >= static_cast<int64_t>(names.size())) {
    n.fail(fmt::format("attribute \"{}\" is {}", attribute, number));
  }
  return names.begin()[number];
}

void tree_ensemble(NodeContext& n) {
  const Forest forest = forest_with_leaves(n, targets_of(n));
  const std::string aggregate = named(n, "aggregate_function", 1, {"AVERAGE", "SUM", "MIN", "MAX"});
  const std::string transform =
      named(n, "post_transform", 0, {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"});
  const ValueId scores = scores_of(n, forest, ml_features(n), aggregate);
  n.result(n.e.cast(transformed(n, scores, transform), n.element(0)));
}

const OperatorRule kRules[] = {
    {"TreeEnsemble", 5, kNewestMlOpset, 1, 1, tree_ensemble,
     "aggregate_function:i leaf_targetids:I leaf_weights:t membership_values:t n_targets:i "
     "nodes_falseleafs:I nodes_falsenodeids:I nodes_featureids:I nodes_hitrates:t "
     "nodes_missing_value_tracks_true:I nodes_modes:t nodes_splits:t nodes_trueleafs:I "
     "nodes_truenodeids:I post_transform:i tree_roots:I",
     kMlDomain},
};

}  // namespace

std::span<const OperatorRule> ml_ensemble_rules() { return kRules; }

}  // namespace backcast
