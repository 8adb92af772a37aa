// Ensembles of decision trees as tables of nodes, and the walk through them.
#pragma once

#include "frontend/rules/ml_classes.h"

namespace backcast {

enum class Test { le, lt, ge, gt, eq, ne, leaf };

/// Nodes of all trees; `yes` and `no` are places in the lists, a leaf's its own.
struct Forest {
  Ints feature, yes, no, test, missing;  // missing: whether no number passes the test
  std::vector<double> value;
  Ints roots;
  int64_t outputs = 0;
  std::vector<double> weights;  // [nodes, outputs], of the leaves

  int64_t size() const { return static_cast<int64_t>(value.size()); }
  bool is_leaf(int64_t place) const {
    return test[static_cast<size_t>(place)] == static_cast<int64_t>(Test::leaf);
  }
  /// Gives the place of the node. A leaf's `value` is not read.
  int64_t add(Test kind, int64_t feature_id, double threshold, bool missing_passes);
};

/// What the trees say together, [examples, outputs]: `aggregate` is SUM, AVERAGE or, of one output,
/// MIN or MAX. CompileError where a walk would not end, or asks for a feature that x lacks.
ValueId scores_of(NodeContext& n, const Forest& f, ValueId x, const std::string& aggregate);

// Attributes that both forms of ensembles have.

std::vector<double> numbers_of(const Literal& tensor);
/// A list of so many integers; CompileError for others.
Ints listed(const NodeContext& n, const std::string& name, size_t count);
/// Whether no number passes each node's test.
Ints missing_of(const NodeContext& n, size_t count);
/// n_targets.
int64_t targets_of(const NodeContext& n);

}  // namespace backcast
