// See ml_forest.h. All trees lie in one table of nodes, and all of them are walked at once: a scan
// of as many trips as the deepest tree has levels moves each tree's node on, and leaves stay where
// they are. What the leaves say is then one sum over the trees.
#include "frontend/rules/ml_forest.h"

#include <algorithm>
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
    const bool leaf = f.test[node] == static_cast<int64_t>(Test::leaf);
    if (states[node] == State::fresh && !leaf) {
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
  const int64_t depth = depth_of(n, f);
  if (depth == 0) return start;
  std::set<int64_t> tests(f.test.begin(), f.test.end());
  tests.erase(static_cast<int64_t>(Test::leaf));
  const bool tracks = std::any_of(f.missing.begin(), f.missing.end(), [](auto m) { return m; });
  std::vector<ValueId> operands = {e.dimension(Dim(depth)),
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
  attrs.length = Dim(depth);
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
