// Questions about modules and functions that several passes ask.
#include "ir/graph/module.h"

#include <set>

#include "ir/graph/error.h"

namespace backcast {
namespace {

bool equal_nodes(const Node& a, const Node& b) {
  return a.op == b.op && a.operands == b.operands && a.type == b.type && a.attrs == b.attrs;
}

std::set<std::string> callees(const Function& function) {
  std::set<std::string> names;
  for (const Node& node : function.nodes) {
    for (std::string& name : called_functions(node)) names.insert(std::move(name));
  }
  return names;
}

}  // namespace

const Function& Module::function(const std::string& name) const {
  const std::map<std::string, Function>::const_iterator found = functions.find(name);
  if (found == functions.end()) {
    throw CompileError("the module has no function @" + name);
  }
  return found->second;
}

std::vector<Entry> entries_of(const Module& module) {
  if (!module.entries.empty()) return module.entries;
  return {{"run", "main", "", {}, {}}};
}

const StateVariable* find_state(const Module& module, const std::string& name) {
  for (const StateVariable& state : module.states) {
    if (state.name == name) return &state;
  }
  return nullptr;
}

std::vector<int> use_counts(const Function& function) {
  std::vector<int> counts(function.nodes.size(), 0);
  for (const Node& node : function.nodes) {
    for (const ValueId operand : node.operands) ++counts[static_cast<size_t>(operand.index)];
  }
  if (function.result.valid()) ++counts[static_cast<size_t>(function.result.index)];
  return counts;
}

std::string measured_symbol(const Node& node) {
  if (node.op == nullptr || node.op->name != "prefix") return {};
  std::set<std::string> symbols;
  for (const AttrField& field : node.attrs.fields()) {
    if (const Dim* dim = std::get_if<Dim>(&field.value)) dim->collect_symbols(symbols);
  }
  return symbols.empty() ? std::string() : *symbols.begin();
}

std::map<std::string, ValueId> measured_symbols(const Function& function) {
  std::map<std::string, ValueId> found;
  for (int64_t i = 0; i < function.size(); ++i) {
    const std::string symbol = measured_symbol(function.node(ValueId(i)));
    if (!symbol.empty()) found.emplace(symbol, ValueId(i));
  }
  return found;
}

std::set<std::string> mentioned_symbols(const Node& node) {
  std::set<std::string> symbols;
  for (const TensorType& tensor : flatten(node.type)) {
    for (const Dim& extent : tensor.shape) extent.collect_symbols(symbols);
  }
  if (node.attrs.empty() || node.op->name == "constant") return symbols;
  for (const AttrField& field : node.attrs.fields()) {
    if (const Dim* dim = std::get_if<Dim>(&field.value)) dim->collect_symbols(symbols);
    const Dims* dims = std::get_if<Dims>(&field.value);
    if (dims == nullptr) continue;
    for (const Dim& dim : *dims) dim.collect_symbols(symbols);
  }
  return symbols;
}

std::vector<char> needed_nodes(const Function& function, const std::vector<ValueId>& roots,
                               const std::vector<char>& given) {
  const std::map<std::string, ValueId> measured = measured_symbols(function);
  std::vector<char> needed(function.nodes.size(), 0);
  for (const ValueId id : roots) needed[static_cast<size_t>(id.index)] = 1;
  for (size_t i = needed.size(); i-- > 0;) {
    if (!given.empty() && given[i]) needed[i] = 0;
    if (!needed[i]) continue;
    const Node& node = function.nodes[i];
    for (const ValueId operand : node.operands) needed[static_cast<size_t>(operand.index)] = 1;
    if (measured.empty()) continue;
    for (const std::string& symbol : mentioned_symbols(node)) {
      const auto found = measured.find(symbol);
      if (found != measured.end()) needed[static_cast<size_t>(found->second.index)] = 1;
    }
  }
  return needed;
}

bool is_parameter(const Node& node) { return node.op->name == "parameter"; }

std::string parameter_name(const Node& node) {
  if (!is_parameter(node)) return {};
  for (const AttrField& field : node.attrs.fields()) {
    const std::string* name = std::get_if<std::string>(&field.value);
    if (field.name == "name" && name) return *name;
  }
  return {};
}

Loc parameter_loc(const std::string& name, int64_t index) {
  return {name.empty() ? fmt::format("input {}", index) : name, "", Origin::imported};
}

std::vector<std::string> called_functions(const Node& node) {
  std::vector<std::string> names;
  // Constants are many and big; only structs with a function are looked into.
  if (node.attrs.empty() || node.op->name == "constant" || node.op->name == "parameter") {
    return names;
  }
  for (const AttrField& field : node.attrs.fields()) {
    const FunctionRef* ref = std::get_if<FunctionRef>(&field.value);
    if (ref && !ref->name.empty()) names.push_back(ref->name);
  }
  return names;
}

std::string find_recursion(const Module& module) {
  // Functions whose callees are all done are done; what is left over contains a cycle.
  std::map<std::string, std::set<std::string>> waiting;
  std::map<std::string, std::vector<std::string>> callers;
  std::vector<std::string> ready;
  for (const auto& [name, function] : module.functions) {
    std::set<std::string>& pending = waiting[name];
    for (const std::string& callee : callees(function)) {
      if (!module.functions.contains(callee)) continue;
      pending.insert(callee);
      callers[callee].push_back(name);
    }
    if (pending.empty()) ready.push_back(name);
  }
  while (!ready.empty()) {
    const std::string done = ready.back();
    ready.pop_back();
    waiting.erase(done);
    for (const std::string& caller : callers[done]) {
      std::set<std::string>& pending = waiting.at(caller);
      pending.erase(done);
      if (pending.empty()) ready.push_back(caller);
    }
  }
  if (waiting.empty()) return {};
  // Every function left over waits for one left over: following them runs into the cycle.
  std::set<std::string> seen;
  std::string name = waiting.begin()->first;
  while (seen.insert(name).second) name = *waiting.at(name).begin();
  return name;
}

bool equal(const Function& a, const Function& b) {
  if (a.name != b.name || a.params != b.params || a.result != b.result ||
      a.result_names != b.result_names || a.nodes.size() != b.nodes.size()) {
    return false;
  }
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    if (!equal_nodes(a.nodes[i], b.nodes[i])) return false;
  }
  return true;
}

bool equal(const Module& a, const Module& b) {
  if (a.states != b.states || a.entries != b.entries || a.batch != b.batch ||
      a.accumulate != b.accumulate) {
    return false;
  }
  if (a.symbols != b.symbols || a.functions.size() != b.functions.size()) return false;
  for (const auto& [name, function] : a.functions) {
    const std::map<std::string, Function>::const_iterator other = b.functions.find(name);
    if (other == b.functions.end() || !equal(function, other->second)) return false;
  }
  return true;
}

}  // namespace backcast
