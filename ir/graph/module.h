// A module: functions by name, and the ranges of the dimension symbols they use. Passes never
// change a function; they build a new one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph/ids.h"
#include "ir/graph/loc.h"
#include "ir/graph/op.h"
#include "ir/graph/state_role.h"

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

/// A variable that outlives a call: a trained parameter, a moment of the optimizer, … It has the
/// type of its initial value.
struct StateVariable {
  std::string name;
  StateRole role = StateRole::parameter;
  Literal initial;
  Loc loc;
  /// Of a tensor that is trained in part: the elements from `slice_start` on along `slice_axis`;
  /// -1: all of it.
  int64_t slice_axis = -1;
  int64_t slice_start = 0;
  friend bool operator==(const StateVariable& a, const StateVariable& b) {
    return a.name == b.name && a.role == b.role && a.initial == b.initial &&
           a.slice_axis == b.slice_axis && a.slice_start == b.slice_start;
  }
};

/// What the integers of an input may be.
struct InputRange {
  int64_t min = 0, max = 0;
  std::optional<int64_t> ignore;  // allowed too
  friend bool operator==(const InputRange&, const InputRange&) = default;
};

/// A function the library offers. Of `function`, a parameter that bears a state variable's name
/// reads it, and a result of that name is its new value; all others are inputs and outputs.
struct Entry {
  std::string name;      // "train_step"
  std::string function;  // "main"
  /// Result that must be finite: otherwise the call ends without writing any state. May be empty.
  std::string guard;
  std::map<std::string, InputRange> ranges;  // by input
  std::set<std::string> optional_outputs;    // which the caller may leave out
  friend bool operator==(const Entry&, const Entry&) = default;
};

struct Module {
  std::map<std::string, Function> functions;
  SymbolRanges symbols;
  std::vector<StateVariable> states;  // parameters first, in the file's order
  std::vector<Entry> entries;         // none: `main` is offered as `run`
  int64_t batch = 0;                  // examples of a training step; 0: not said
  int64_t accumulate = 0;             // training steps per update; 0: every step updates

  const Function& function(const std::string& name) const;  // CompileError when absent
};

/// The module's entries, or the one that stands for none.
std::vector<Entry> entries_of(const Module& module);
/// Null when there is none.
const StateVariable* find_state(const Module& module, const std::string& name);

/// How many nodes use each value (the result counts as one use).
std::vector<int> use_counts(const Function& function);

/// The symbol that gets its value from this node (a `prefix`); empty for any other.
std::string measured_symbol(const Node& node);
/// The nodes that give symbols their values, by symbol.
std::map<std::string, ValueId> measured_symbols(const Function& function);
/// What the type and the attributes of a node mention.
std::set<std::string> mentioned_symbols(const Node& node);
/// One flag per node: whether `roots` need it, be it for the value of a symbol. What is `given` (a
/// flag per node; empty: nothing) is not needed, and neither is what only it needs.
std::vector<char> needed_nodes(const Function& function, const std::vector<ValueId>& roots,
                               const std::vector<char>& given = {});

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
