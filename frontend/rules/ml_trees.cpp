// ai.onnx.ml: ensembles of decision trees. All trees lie in one table of nodes, and all of them are
// walked at once: a scan of as many trips as the deepest tree has levels moves each tree's node on,
// and leaves stay where they are. What the leaves say is then one sum over the trees.
#include <algorithm>
#include <map>
#include <set>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "frontend/rules/ml_classes.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

enum class Test { le, lt, ge, gt, eq, ne, leaf };

/// Nodes of all trees; `yes` and `no` are places in the lists, a leaf's its own.
struct Forest {
  Ints feature, yes, no, test, missing;
  std::vector<float> value;
  Ints roots;
  int64_t depth = 0;  // levels below the deepest root
  int64_t outputs = 0;
  std::vector<float> weights;  // [nodes, outputs], of the leaves
};

Test test_of(const NodeContext& n, const std::string& mode) {
  static const std::map<std::string, Test> tests = {
      {"BRANCH_LEQ", Test::le}, {"BRANCH_LT", Test::lt}, {"BRANCH_GTE", Test::ge},
      {"BRANCH_GT", Test::gt},  {"BRANCH_EQ", Test::eq}, {"BRANCH_NEQ", Test::ne},
      {"LEAF", Test::leaf}};
  const auto found = tests.find(mode);
  if (found == tests.end()) n.fail(fmt::format("a node has the mode \"{}\"", mode));
  return found->second;
}

/// Floats of a list or, since opset 3, of a tensor; doubles are rounded.
std::vector<float> floats_of(const NodeContext& n, const std::string& name) {
  const std::optional<Literal> tensor = n.attr_tensor(name + "_as_tensor");
  if (!tensor) return n.attr_floats(name);
  std::vector<float> result;
  for (int64_t i = 0; i < tensor->element_count(); ++i) {
    result.push_back(static_cast<float>(tensor->as_double(i)));
  }
  return result;
}

Ints listed(const NodeContext& n, const std::string& name, size_t count) {
  const Ints result = n.attr_ints(name).value_or(Ints());
  if (result.size() != count) {
    n.fail(fmt::format("attribute \"{}\" has {} values and should have {}", name, result.size(),
                       count));
  }
  return result;
}

/// Levels below each root; a node that is reached twice would be no tree.
int64_t depth_of(const NodeContext& n, const Forest& f) {
  std::set<int64_t> seen;
  std::vector<std::pair<int64_t, int64_t>> todo;
  for (const int64_t root : f.roots) todo.emplace_back(root, 0);
  int64_t deepest = 0;
  while (!todo.empty()) {
    const auto [node, level] = todo.back();
    todo.pop_back();
    const size_t at = static_cast<size_t>(node);
    if (!seen.insert(node).second) n.fail("its nodes form no tree");
    deepest = std::max(deepest, level);
    if (f.test[at] == static_cast<int64_t>(Test::leaf)) continue;
    todo.emplace_back(f.yes[at], level + 1);
    todo.emplace_back(f.no[at], level + 1);
  }
  return deepest;
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
  Forest f;
  f.feature = listed(n, "nodes_featureids", count);
  f.value = floats_of(n, "nodes_values");
  if (f.value.size() != count) n.fail("attribute \"nodes_values\" is incomplete");
  f.missing = n.attr_ints("nodes_missing_value_tracks_true").value_or(Ints());
  f.missing.resize(count, 0);
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  for (size_t i = 0; i < count; ++i) {
    const bool fresh = places.emplace(std::pair(trees[i], ids[i]), static_cast<int64_t>(i)).second;
    if (!fresh) n.fail(fmt::format("tree {} has two nodes {}", trees[i], ids[i]));
    if (i == 0 || trees[i] != trees[i - 1]) f.roots.push_back(static_cast<int64_t>(i));
  }
  const auto place = [&](int64_t tree, int64_t id) {
    const auto found = places.find({tree, id});
    if (found == places.end()) n.fail(fmt::format("tree {} has no node {}", tree, id));
    return found->second;
  };
  for (size_t i = 0; i < count; ++i) {
    const Test test = test_of(n, modes->strings[i]);
    const bool leaf = test == Test::leaf;
    f.test.push_back(static_cast<int64_t>(test));
    f.yes.push_back(leaf ? static_cast<int64_t>(i) : place(trees[i], yes[i]));
    f.no.push_back(leaf ? static_cast<int64_t>(i) : place(trees[i], no[i]));
    if (leaf) f.feature[i] = 0;
  }
  f.outputs = outputs;
  f.weights.resize(count * static_cast<size_t>(outputs), 0);
  const std::vector<float> weights = floats_of(n, kind + "_weights");
  const Ints of_tree = listed(n, kind + "_treeids", weights.size());
  const Ints of_node = listed(n, kind + "_nodeids", weights.size());
  const Ints output = listed(n, kind + "_ids", weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    if (output[i] < 0 || output[i] >= outputs) n.fail(fmt::format("no output {}", output[i]));
    f.weights[static_cast<size_t>(place(of_tree[i], of_node[i]) * outputs + output[i])] +=
        weights[i];
  }
  f.depth = depth_of(n, f);
  return f;
}

ValueId table(NodeContext& n, const Ints& values) {
  return n.e.constant(Literal::from_doubles(ElementType::i32, {static_cast<int64_t>(values.size())},
                                            {values.begin(), values.end()}));
}

ValueId passes(Emitter& e, int64_t test, ValueId x, ValueId value) {
  static const Comparison directions[] = {Comparison::le, Comparison::lt, Comparison::ge,
                                          Comparison::gt, Comparison::eq, Comparison::ne};
  return e.compare(directions[test], x, value);
}

/// The leaf that each example reaches in each tree, [examples, trees].
ValueId leaves_of(NodeContext& n, const Forest& f, ValueId x) {
  Emitter& e = n.e;
  const Dim features = e.extent(x, 1);
  for (const int64_t feature : f.feature) {
    if (feature >= 0 && (!features.is_constant() || feature < features.constant())) continue;
    n.fail(fmt::format("a node asks for feature {} of {}", feature, features.to_string()));
  }
  const Dim trees(static_cast<int64_t>(f.roots.size()));
  const ValueId start = e.broadcast_in(table(n, f.roots), {e.extent(x, 0), trees}, {1});
  if (f.depth == 0) return start;
  std::set<int64_t> tests(f.test.begin(), f.test.end());
  tests.erase(static_cast<int64_t>(Test::leaf));
  const bool tracks = std::any_of(f.missing.begin(), f.missing.end(), [](auto m) { return m; });
  std::vector<ValueId> operands = {e.dimension(Dim(f.depth)),
                                   start,
                                   x,
                                   table(n, f.feature),
                                   ml_vector(n, f.value, e.element(x)),
                                   table(n, f.yes),
                                   table(n, f.no)};
  if (tests.size() > 1) operands.push_back(table(n, f.test));
  if (tracks) operands.push_back(table(n, f.missing));
  std::vector<Type> types;
  for (size_t i = 1; i < operands.size(); ++i) types.push_back(e.type(operands[i]));
  ScanAttrs attrs;
  attrs.carries = 1;
  attrs.length = Dim(f.depth);
  attrs.body = n.function(n.loc().node, types, [&](Emitter& b, const std::vector<ValueId>& p) {
    const auto of_node = [&](size_t operand) { return b.take(p[operand], p[0], 0); };
    const ValueId seen = take_along(b, p[1], of_node(2), 1), value = of_node(3);
    ValueId yes = passes(b, *tests.begin(), seen, value);
    for (auto test = std::next(tests.begin()); test != tests.end(); ++test) {
      const ValueId is = b.compare(Comparison::eq, of_node(6), static_cast<double>(*test));
      yes = b.select(is, passes(b, *test, seen, value), yes);
    }
    if (tracks) {
      const ValueId known = b.compare(Comparison::ne, of_node(p.size() - 1), 0.0);
      yes = b.binary(ops::bit_or, yes, b.binary(ops::bit_and, b.unary(ops::is_nan, seen), known));
    }
    return b.emit(ops::tuple, {b.select(yes, of_node(4), of_node(5))});
  });
  return e.get(e.emit(ops::scan, operands, attrs), 0);
}

/// What the trees say together: [examples, outputs].
ValueId scores_of(NodeContext& n, const Forest& f, ValueId x, const std::string& aggregate) {
  Emitter& e = n.e;
  const Dim nodes(static_cast<int64_t>(f.value.size()));
  const ValueId weights = e.reshape(ml_vector(n, f.weights, e.element(x)), {nodes, Dim(f.outputs)});
  const ValueId said = e.take(weights, leaves_of(n, f, x), 0);
  ValueId scores;
  if (aggregate == "SUM") {
    scores = e.reduce(Reduction::sum, said, {1});
  } else if (aggregate == "AVERAGE") {
    scores = e.mean(said, {1});
  } else if ((aggregate == "MIN" || aggregate == "MAX") && f.outputs == 1) {
    scores = e.reduce(aggregate == "MIN" ? Reduction::min : Reduction::max, said, {1});
  } else {
    n.fail(
        fmt::format("aggregate_function {} of {} targets is not supported", aggregate, f.outputs));
  }
  return scores;
}

ValueId with_base(NodeContext& n, ValueId scores) {
  const std::vector<float> base = floats_of(n, "base_values");
  if (base.empty()) return scores;
  if (!(n.e.extent(scores, 1) == Dim(static_cast<int64_t>(base.size())))) {
    n.fail(fmt::format("attribute \"base_values\" has {} values for {}", base.size(),
                       to_string(n.e.type(scores))));
  }
  return n.e.add(scores, ml_vector(n, base, n.e.element(scores)));
}

void tree_ensemble_regressor(NodeContext& n) {
  const int64_t targets = n.attr_int("n_targets", 1);
  if (targets < 1) n.fail("attribute \"n_targets\" has to be positive");
  const Forest forest = forest_of(n, "target", targets);
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
  const std::vector<float> base = floats_of(n, "base_values");
  const bool one_sided = labels.size() == 2 && distinct.size() == 1;
  const bool of_first = one_sided && *distinct.begin() == 0;
  const std::vector<float> weights = floats_of(n, "class_weights");
  const bool positive = std::none_of(weights.begin(), weights.end(), [](float w) { return w < 0; });
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
