// A module: functions by name, and the ranges of the dimension symbols they use. Passes never
// change a function; they build a new one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph/ids.h"
#include "ir/graph/loc.h"
#include "ir/graph/op.h"

namespace backcast {

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> operands;
  Attrs attrs;
  Type type;
  Loc loc;
};

/// Topologically ordered nodes; value i is the result of nodes[i]. Parameters are `parameter`
/// nodes and come first, in order.
struct Function {
  std::string name;
  std::vector<Node> nodes;
  std::vector<ValueId> params;
  ValueId result;
  /// Names of the results for the caller (ONNX output names), one per element of a tuple result;
  /// may be empty.
  std::vector<std::string> result_names;

  const Node& node(ValueId id) const { return nodes[static_cast<size_t>(id.index)]; }
  const Type& type(ValueId id) const { return node(id).type; }
  const Type& result_type() const { return type(result); }
  int64_t size() const { return static_cast<int64_t>(nodes.size()); }
};

struct Module {
  std::map<std::string, Function> functions;
  SymbolRanges symbols;

  const Function& function(const std::string& name) const;  // CompileError when absent
};

/// How many nodes use each value (the result counts as one use).
std::vector<int> use_counts(const Function& function);

/// Whether the node is a parameter of its function.
bool is_parameter(const Node& node);
/// The name of a parameter node; empty for any other.
std::string parameter_name(const Node& node);
/// Where parameter number `index` comes from when nothing else is said; text leaves it out.
Loc parameter_loc(const std::string& name, int64_t index);

/// The functions that a node names (call, composite, control flow).
std::vector<std::string> called_functions(const Node& node);

/// The name of a function that calls itself, directly or through others; empty when none does.
std::string find_recursion(const Module& module);

/// Structural equality of everything but locations.
bool equal(const Function& a, const Function& b);
bool equal(const Module& a, const Module& b);

}  // namespace backcast
