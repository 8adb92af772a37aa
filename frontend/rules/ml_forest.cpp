// See ml_forest.h. All trees lie in one table of nodes, and all of them are walked at once: a scan
// of as many trips as the deepest tree has levels moves each tree's node on, and leaves stay where
// they are. What the leaves say is then one sum over the trees.
#include "frontend/rules/ml_forest.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Levels below the deepest root. Nodes may share what follows them.
int64_t depth_of(const NodeContext& n, const Forest& f) {
  enum class State { fresh, open, done };
  std::vector<State> states(f.value.size(), State::fresh);
  std::vector<int64_t> levels(f.value.size(), 0), todo(f.roots.rbegin(), f.roots.rend());
  int64_t deepest = 0;
  while (!todo.empty()) {
    const size_t node = static_cast<size_t>(todo.back());
    if (states[node] == State::fresh && !f.is_leaf(todo.back())) {
      states[node] = State::open;
      for (const int64_t next : {f.yes[node], f.no[node]}) {
        if (states[static_cast<size_t>(next)] == State::open) n.fail("its nodes form no tree");
        todo.push_back(next);
      }
      continue;
    }
    todo.pop_back();
    if (states[node] == State::open) {
      const auto below = [&](int64_t next) { return levels[static_cast<size_t>(next)]; };
      levels[node] = 1 + std::max(below(f.yes[node]), below(f.no[node]));
    }
    states[node] = State::done;
    deepest = std::max(deepest, levels[node]);
  }
  return deepest;
}

/// The nodes that test, as tables, and the leaves, numbered behind them.
struct Walk {
  std::vector<int64_t> tests, leaves;  // places of nodes in the forest
  Ints number;                         // of each place

  explicit Walk(const Forest& f) : number(f.value.size()) {
    for (int64_t place = 0; place < f.size(); ++place) {
      (f.is_leaf(place) ? leaves : tests).push_back(place);
    }
    int64_t next = 0;
    for (const std::vector<int64_t>* places : {&tests, &leaves}) {
      for (const int64_t place : *places) number[static_cast<size_t>(place)] = next++;
    }
  }

  Ints numbers_of(const Ints& places) const {
    Ints result;
    for (const int64_t place : places) result.push_back(number[static_cast<size_t>(place)]);
    return result;
  }
  /// What `values`, one for each place, have for the nodes that test.
  template <class T>
  std::vector<T> of_tests(const std::vector<T>& values) const {
    std::vector<T> result;
    for (const int64_t place : tests) result.push_back(values[static_cast<size_t>(place)]);
    return result;
  }
};

ValueId table(Emitter& e, const Ints& values) {
  return e.constant(Literal::from_doubles(ElementType::i32, {static_cast<int64_t>(values.size())},
                                          {values.begin(), values.end()}));
}

ValueId passes(Emitter& e, int64_t test, ValueId x, ValueId value) {
  static const Comparison directions[] = {Comparison::le, Comparison::lt, Comparison::ge,
                                          Comparison::gt, Comparison::eq, Comparison::ne};
  return e.compare(directions[test], x, value);
}

/// Whether x passes the test of its node, whose row in the tables `of_node` reads.
template <class OfNode>
ValueId passes_test(Emitter& e, const Forest& f, const Walk& walk, ValueId x,
                    const OfNode& of_node) {
  const Ints kinds = walk.of_tests(f.test), missing = walk.of_tests(f.missing);
  const std::set<int64_t> tests(kinds.begin(), kinds.end());
  const std::vector<double> values = walk.of_tests(f.value);
  const ValueId value = of_node(e.constant(
      Literal::from_doubles(e.element(x), {static_cast<int64_t>(values.size())}, values)));
  const ValueId kind = tests.size() > 1 ? of_node(table(e, kinds)) : ValueId();
  ValueId yes = passes(e, *tests.begin(), x, value);
  for (auto test = std::next(tests.begin()); test != tests.end(); ++test) {
    const ValueId is = e.compare(Comparison::eq, kind, static_cast<double>(*test));
    yes = e.select(is, passes(e, *test, x, value), yes);
  }
  if (std::ranges::none_of(missing, [](auto m) { return m != 0; })) return yes;
  const ValueId known = e.compare(Comparison::ne, of_node(table(e, missing)), 0.0);
  return e.binary(ops::bit_or, yes, e.binary(ops::bit_and, e.unary(ops::is_nan, x), known));
}

/// The leaf that each example reaches in each tree, [examples, trees], numbered from 0.
ValueId leaves_of(NodeContext& n, const Forest& f, const Walk& walk, const Ints& roots, ValueId x) {
  Emitter& e = n.e;
  const Dim features = e.extent(x, 1);
  for (const int64_t feature : f.feature) {
    if (feature >= 0 && (!features.is_constant() || feature < features.constant())) continue;
    n.fail(fmt::format("a node asks for feature {} of {}", feature, features.to_string()));
  }
  const Dim trees(static_cast<int64_t>(roots.size()));
  const int64_t inner = static_cast<int64_t>(walk.tests.size()), depth = depth_of(n, f);
  const ValueId start =
      e.broadcast_in(table(e, walk.numbers_of(roots)), {e.extent(x, 0), trees}, {1});
  if (depth == 0) return e.sub(start, static_cast<double>(inner));
  const std::vector<Type> types{e.type(start), e.type(x)};
  ScanAttrs attrs{.carries = 1, .length = Dim(depth)};
  attrs.body = n.function(n.loc().node, types, [&](Emitter& b, const std::vector<ValueId>& p) {
    const ValueId row = b.clamp(p[0], 0, static_cast<double>(inner - 1));
    const auto of_node = [&](ValueId values) { return b.take(values, row, 0); };
    const ValueId feature = of_node(table(b, walk.of_tests(f.feature)));
    const ValueId yes = passes_test(b, f, walk, take_along(b, p[1], feature, 1), of_node);
    const ValueId next = b.select(yes, of_node(table(b, walk.numbers_of(walk.of_tests(f.yes)))),
                                  of_node(table(b, walk.numbers_of(walk.of_tests(f.no)))));
    const ValueId ended = b.compare(Comparison::ge, p[0], static_cast<double>(inner));
    return b.emit(ops::tuple, {b.select(ended, p[0], next)});
  });
  const ValueId ends = e.get(e.emit(ops::scan, {e.dimension(Dim(depth)), start, x}, attrs), 0);
  return e.sub(ends, static_cast<double>(inner));
}

/// The outputs that leaves below a node have weights for.
std::set<int64_t> outputs_below(const Forest& f, int64_t root) {
  std::set<int64_t> outputs;
  std::set<int64_t> seen;
  std::vector<int64_t> todo{root};
  while (!todo.empty()) {
    const int64_t place = todo.back();
    todo.pop_back();
    if (!seen.insert(place).second) continue;
    if (!f.is_leaf(place)) {
      const size_t at = static_cast<size_t>(place);
      todo.insert(todo.end(), {f.yes[at], f.no[at]});
      continue;
    }
    for (int64_t k = 0; k < f.outputs; ++k) {
      if (f.weights[static_cast<size_t>(place * f.outputs + k)] != 0) outputs.insert(k);
    }
  }
  return outputs;
}

/// Roots in the order of the only output that each tree's leaves have weights for, where there is
/// one and all outputs have as many trees; none otherwise.
std::optional<Ints> roots_by_output(const Forest& f) {
  const size_t each = f.roots.size() / static_cast<size_t>(f.outputs);
  std::vector<Ints> trees(static_cast<size_t>(f.outputs));
  Ints any;  // trees that say nothing
  for (const int64_t root : f.roots) {
    const std::set<int64_t> outputs = outputs_below(f, root);
    if (outputs.size() > 1) return std::nullopt;
    (outputs.empty() ? any : trees[static_cast<size_t>(*outputs.begin())]).push_back(root);
  }
  Ints result;
  for (Ints& roots : trees) {
    for (; roots.size() < each && !any.empty(); any.pop_back()) roots.push_back(any.back());
    if (roots.size() != each) return std::nullopt;
    result.insert(result.end(), roots.begin(), roots.end());
  }
  return any.empty() ? std::optional(result) : std::nullopt;
}

/// What each tree says to every output: [examples, trees, outputs].
ValueId said_to_all(NodeContext& n, const Forest& f, ValueId x) {
  const Walk walk(f);
  std::vector<double> weights;
  for (const int64_t leaf : walk.leaves) {
    const auto own = f.weights.begin() + leaf * f.outputs;
    weights.insert(weights.end(), own, own + f.outputs);
  }
  const Shape shape{Dim(static_cast<int64_t>(walk.leaves.size())), Dim(f.outputs)};
  const ValueId table = n.e.reshape(ml_vector(n, weights, n.e.element(x)), shape);
  return n.e.take(table, leaves_of(n, f, walk, f.roots, x), 0);
}

/// What each tree says to its only output: [examples, outputs, trees for each].
ValueId said_to_one(NodeContext& n, const Forest& f, ValueId x, const Ints& roots) {
  const Walk walk(f);
  std::vector<double> weights;
  for (const int64_t leaf : walk.leaves) {
    const auto own = f.weights.begin() + leaf * f.outputs;
    weights.push_back(std::accumulate(own, own + f.outputs, 0.0));
  }
  const ValueId table = ml_vector(n, weights, n.e.element(x));
  const Dim each(static_cast<int64_t>(roots.size()) / f.outputs);
  return n.e.reshape(n.e.take(table, leaves_of(n, f, walk, roots, x), 0),
                     {n.e.extent(x, 0), Dim(f.outputs), each});
}

}  // namespace

int64_t Forest::add(Test kind, int64_t feature_id, double threshold, bool missing_passes) {
  const int64_t place = size();
  const bool is_leaf = kind == Test::leaf;
  feature.push_back(is_leaf ? 0 : feature_id);
  yes.push_back(place);
  no.push_back(place);
  test.push_back(static_cast<int64_t>(kind));
  missing.push_back(missing_passes);
  value.push_back(threshold);
  return place;
}

ValueId scores_of(NodeContext& n, const Forest& f, ValueId x, const std::string& aggregate) {
  Emitter& e = n.e;
  const std::optional<Ints> roots = roots_by_output(f);
  const ValueId said = roots ? said_to_one(n, f, x, *roots) : said_to_all(n, f, x);
  const Ints trees{roots ? 2 : 1};
  if (aggregate == "SUM") return e.reduce(Reduction::sum, said, trees);
  if (aggregate == "AVERAGE") {
    const double count = static_cast<double>(f.roots.size());
    return e.div(e.reduce(Reduction::sum, said, trees), count);
  }
  if ((aggregate == "MIN" || aggregate == "MAX") && f.outputs == 1) {
    return e.reduce(aggregate == "MIN" ? Reduction::min : Reduction::max, said, trees);
  }
  n.fail(fmt::format("aggregate_function {} of {} targets is not supported", aggregate, f.outputs));
}

std::vector<double> numbers_of(const Literal& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.element_count(); ++i) result.push_back(tensor.as_double(i));
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

Ints missing_of(const NodeContext& n, size_t count) {
  Ints missing = n.attr_ints("nodes_missing_value_tracks_true").value_or(Ints());
  missing.resize(count, 0);
  return missing;
}

int64_t targets_of(const NodeContext& n) {
  const int64_t targets = n.attr_int("n_targets", 1);
  if (targets < 1) n.fail("attribute \"n_targets\" has to be positive");
  return targets;
}

}  // namespace backcast
