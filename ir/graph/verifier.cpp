// The invariants of graph IR. A pass that breaks one is named in the message.
#include "ir/graph/verifier.h"

#include <algorithm>
#include <set>

#include "ir/graph/error.h"
#include "ir/graph/infer.h"

namespace backcast {
namespace {

class FunctionVerifier {
 public:
  FunctionVerifier(const Module& module, const Function& function, const std::string& prefix)
      : module_(module),
        function_(function),
        prefix_(prefix),
        measured_(measured_symbols(function)) {}

  void run() {
    for (size_t i = 0; i < function_.nodes.size(); ++i) check_node(i);
    check(function_.result.valid() && function_.result.index < function_.size(),
          "the result is not a value of the function");
    const size_t results =
        function_.result_type().is_tuple() ? function_.result_type().elements().size() : 1;
    check(function_.result_names.empty() || function_.result_names.size() == results,
          fmt::format("{} names for {} results", function_.result_names.size(), results));
  }

 private:
  void check(bool condition, const std::string& message) const {
    if (!condition) throw InternalError(prefix_ + "@" + function_.name + ": " + message);
  }

  void check_node(size_t i) const {
    const Node& node = function_.nodes[i];
    check(node.op != nullptr, fmt::format("value {} has no operator", i));
    const std::string place = fmt::format("value {} ({})", i, node.op->name);
    check(!node.loc.empty(), place + " has no location");
    const std::string who = place + ", " + node.loc.describe();
    for (const ValueId operand : node.operands) {
      check(operand.valid() && static_cast<size_t>(operand.index) < i,
            fmt::format("{} uses the value {}, which does not precede it", who, operand.index));
    }
    check(node.attrs.same_struct(node.op->default_attrs),
          who + " has attributes of another operator");
    check_symbols(node, ValueId(static_cast<int64_t>(i)), who);
    for (const std::string& callee : called_functions(node)) {
      check(module_.functions.contains(callee), who + " calls @" + callee + ", which is missing");
    }
    const bool in_params =
        i < function_.params.size() && function_.params[i] == ValueId(static_cast<int64_t>(i));
    check(is_parameter(node) == in_params, who + ": parameters come first and are listed in order");
    if (is_parameter(node)) {
      check_parameter(node, i, who);
    } else {
      check_type(node, who);
    }
  }

  void check_symbols(const Node& node, ValueId at, const std::string& who) const {
    for (const std::string& symbol : mentioned_symbols(node)) {
      check(module_.symbols.contains(symbol), who + " uses the undeclared symbol " + symbol);
      const auto measured = measured_.find(symbol);
      check(measured == measured_.end() || measured->second <= at,
            who + " uses the symbol " + symbol + " before it has a value");
    }
    const std::string own = measured_symbol(node);
    check(own.empty() || measured_.at(own) == at, who + " gives " + own + " a second value");
  }

  void check_parameter(const Node& node, size_t i, const std::string& who) const {
    check(node.operands.empty(), who + " has operands");
    for (const AttrField& field : node.attrs.fields()) {
      const int64_t* index = std::get_if<int64_t>(&field.value);
      check(field.name != "index" || (index && *index == static_cast<int64_t>(i)),
            who + " has the wrong index");
    }
  }

  void check_type(const Node& node, const std::string& who) const {
    std::vector<Type> types;
    types.reserve(node.operands.size());
    for (const ValueId operand : node.operands) types.push_back(function_.type(operand));
    try {
      const Type inferred = infer_type(module_, *node.op, types, node.attrs);
      check(inferred == node.type, fmt::format("{} has type {} where {} is inferred", who,
                                               node.type.to_string(), inferred.to_string()));
    } catch (const CompileError& error) {
      check(false, who + ": " + error.what());
    }
  }

  const Module& module_;
  const Function& function_;
  const std::string& prefix_;
  const std::map<std::string, ValueId> measured_;
};

/// States and results that an entry binds by name have the state's type; its guard is a result.
void check_entry(const Module& module, const Entry& entry, const std::string& prefix) {
  const auto check = [&](bool condition, const std::string& message) {
    if (!condition) throw InternalError(prefix + "entry " + entry.name + ": " + message);
  };
  check(module.functions.contains(entry.function), "@" + entry.function + " is missing");
  const Function& function = module.function(entry.function);
  const auto check_state = [&](const std::string& name, const Type& type) {
    const StateVariable* state = find_state(module, name);
    check(!state || type == Type(state->initial.type()),
          fmt::format("state {} is used as {}", name, type.to_string()));
  };
  for (const ValueId param : function.params) {
    check_state(parameter_name(function.node(param)), function.type(param));
  }
  const std::vector<std::string>& results = function.result_names;
  const Type& type = function.result_type();
  for (size_t i = 0; i < results.size(); ++i) {
    check_state(results[i], type.is_tuple() ? type.elements()[i] : type);
  }
  check(entry.guard.empty() ||
            std::find(results.begin(), results.end(), entry.guard) != results.end(),
        "its guard " + entry.guard + " is no result");
}

}  // namespace

void verify(const Module& module, std::string_view after) {
  const std::string prefix = after.empty() ? "" : "after " + std::string(after) + ": ";
  for (const auto& [name, range] : module.symbols) {
    if (range.min < 0 || range.min > range.max) {
      throw InternalError(
          fmt::format("{}symbol {} has the range {}..{}", prefix, name, range.min, range.max));
    }
  }
  for (const auto& [name, function] : module.functions) {
    if (name != function.name) {
      throw InternalError(prefix + "@" + function.name + " is filed under @" + name);
    }
    FunctionVerifier(module, function, prefix).run();
  }
  for (const Entry& entry : module.entries) check_entry(module, entry, prefix);
  const std::string recursive = find_recursion(module);
  if (!recursive.empty()) throw InternalError(prefix + "@" + recursive + " calls itself");
}

}  // namespace backcast
