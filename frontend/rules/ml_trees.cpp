// ai.onnx.ml: ensembles of decision trees, in the form of opset 1 to 4, whose leaves are nodes, and
// in that of opset 5.
#include <algorithm>
#include <map>
#include <set>

#include "frontend/operators.h"
#include "frontend/rules/ml_forest.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

Test test_of(const NodeContext& n, const std::string& mode) {
  static const std::map<std::string, Test> tests = {
      {"BRANCH_LEQ", Test::le}, {"BRANCH_LT", Test::lt}, {"BRANCH_GTE", Test::ge},
      {"BRANCH_GT", Test::gt},  {"BRANCH_EQ", Test::eq}, {"BRANCH_NEQ", Test::ne},
      {"LEAF", Test::leaf}};
  const auto found = tests.find(mode);
  if (found == tests.end()) n.fail(fmt::format("a node has the mode \"{}\"", mode));
  return found->second;
}

/// Floats of a list or, since opset 3, of a tensor.
std::vector<double> numbers_of(const NodeContext& n, const std::string& name) {
  const std::optional<Literal> tensor = n.attr_tensor(name + "_as_tensor");
  if (tensor) return numbers_of(*tensor);
  const std::vector<float> list = n.attr_floats(name);
  return {list.begin(), list.end()};
}

/// Reads nodes_*; a tree's root is its first node. `kind` is "class" or "target".
Forest forest_of(const NodeContext& n, const std::string& kind, int64_t outputs) {
  const Ints trees = n.attr_ints("nodes_treeids").value_or(Ints());
  const size_t count = trees.size();
  if (count == 0) n.fail("has no nodes");
  const Ints ids = listed(n, "nodes_nodeids", count);
  const Ints yes = listed(n, "nodes_truenodeids", count);
  const Ints no = listed(n, "nodes_falsenodeids", count);
  const OnnxAttribute* modes = n.find("nodes_modes");
  if (!modes || modes->strings.size() != count) n.fail("attribute \"nodes_modes\" is incomplete");
  const Ints features = listed(n, "nodes_featureids", count), missing = missing_of(n, count);
  const std::vector<double> values = numbers_of(n, "nodes_values");
  if (values.size() != count) n.fail("attribute \"nodes_values\" is incomplete");
  Forest f;
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  for (size_t i = 0; i < count; ++i) {
    const int64_t place =
        f.add(test_of(n, modes->strings[i]), features[i], values[i], missing[i] != 0);
    const bool fresh = places.emplace(std::pair(trees[i], ids[i]), place).second;
    if (!fresh) n.fail(fmt::format("tree {} has two nodes {}", trees[i], ids[i]));
    if (i == 0 || trees[i] != trees[i - 1]) f.roots.push_back(place);
  }
  const auto place = [&](int64_t tree, int64_t id) {
    const auto found = places.find({tree, id});
    if (found == places.end()) n.fail(fmt::format("tree {} has no node {}", tree, id));
    return found->second;
  };
  for (size_t i = 0; i < count; ++i) {
    if (f.is_leaf(static_cast<int64_t>(i))) continue;
    f.yes[i] = place(trees[i], yes[i]);
    f.no[i] = place(trees[i], no[i]);
  }
  f.outputs = outputs;
  f.weights.resize(count * static_cast<size_t>(outputs), 0);
  const std::vector<double> weights = numbers_of(n, kind + "_weights");
  const Ints of_tree = listed(n, kind + "_treeids", weights.size());
  const Ints of_node = listed(n, kind + "_nodeids", weights.size());
  const Ints output = listed(n, kind + "_ids", weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    if (output[i] < 0 || output[i] >= outputs) n.fail(fmt::format("no output {}", output[i]));
    f.weights[static_cast<size_t>(place(of_tree[i], of_node[i]) * outputs + output[i])] +=
        weights[i];
  }
  return f;
}

ValueId with_base(NodeContext& n, ValueId scores) {
  const std::vector<double> base = numbers_of(n, "base_values");
  if (base.empty()) return scores;
  if (!(n.e.extent(scores, 1) == Dim(static_cast<int64_t>(base.size())))) {
    n.fail(fmt::format("attribute \"base_values\" has {} values for {}", base.size(),
                       to_string(n.e.type(scores))));
  }
  return n.e.add(scores, ml_vector(n, base, n.e.element(scores)));
}

void tree_ensemble_regressor(NodeContext& n) {
  const Forest forest = forest_of(n, "target", targets_of(n));
  const ValueId scores =
      scores_of(n, forest, ml_features(n), n.attr_string("aggregate_function", "SUM"));
  n.result(n.e.cast(post_transform(n, with_base(n, scores)), ElementType::f32));
}

void tree_ensemble_classifier(NodeContext& n) {
  Emitter& e = n.e;
  const Ints labels = class_labels(n, "classlabels_int64s", "classlabels_strings");
  const Forest forest = forest_of(n, "class", static_cast<int64_t>(labels.size()));
  const ValueId scores = scores_of(n, forest, ml_features(n), "SUM");
  const Ints classes = n.attr_ints("class_ids").value_or(Ints());
  const std::set<int64_t> distinct(classes.begin(), classes.end());
  const std::vector<double> base = numbers_of(n, "base_values");
  const bool one_sided = labels.size() == 2 && distinct.size() == 1;
  const bool of_first = one_sided && *distinct.begin() == 0;
  const std::vector<double> weights = numbers_of(n, "class_weights");
  const bool positive =
      std::none_of(weights.begin(), weights.end(), [](double w) { return w < 0; });
  const double threshold = positive ? 0.5 : 0;
  if (of_first && base.size() <= 1) {
    // The first class's score stands for the second's, and the other one follows from it.
    ValueId score = e.slice_axis(scores, 1, 0, 1);
    if (!base.empty()) score = e.add(score, base[0]);
    return set_two_classes(n, score, labels, threshold, positive);
  }
  set_classes(n, with_base(n, scores), labels);
  if (one_sided && base.empty()) {
    set_two_labels(n, e.slice_axis(scores, 1, 1, 2), labels, threshold);
  }
}

#define NODES                                                                                   \
  "nodes_falsenodeids:I nodes_featureids:I nodes_hitrates:F nodes_missing_value_tracks_true:I " \
  "nodes_modes:S nodes_nodeids:I nodes_treeids:I nodes_truenodeids:I nodes_values:F "           \
  "base_values:F post_transform:s"
#define NODE_TENSORS " nodes_hitrates_as_tensor:t nodes_values_as_tensor:t base_values_as_tensor:t"
#define TARGETS                                                                       \
  " aggregate_function:s n_targets:i target_ids:I target_nodeids:I target_treeids:I " \
  "target_weights:F"
#define CLASSES                                                                        \
  " class_ids:I class_nodeids:I class_treeids:I class_weights:F classlabels_int64s:I " \
  "classlabels_strings:S"

const OperatorRule kRules[] = {
    {"TreeEnsembleRegressor", 1, 2, 1, 1, tree_ensemble_regressor, NODES TARGETS, kMlDomain},
    {"TreeEnsembleRegressor", 3, kNewestMlOpset, 1, 1, tree_ensemble_regressor,
     NODES TARGETS NODE_TENSORS " target_weights_as_tensor:t", kMlDomain},
    {"TreeEnsembleClassifier", 1, 2, 1, 1, tree_ensemble_classifier, NODES CLASSES, kMlDomain},
    {"TreeEnsembleClassifier", 3, kNewestMlOpset, 1, 1, tree_ensemble_classifier,
     NODES CLASSES NODE_TENSORS " class_weights_as_tensor:t", kMlDomain},
};

}  // namespace

std::span<const OperatorRule> ml_tree_rules() { return kRules; }

}  // namespace backcast
