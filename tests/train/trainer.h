// Runs the entries of a training module with the evaluator: keeps the state between calls and
// passes inputs and outputs by name, as a compiled library does.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/module.h"

namespace backcast {

using Tensors = std::map<std::string, Literal>;

class Trainer {
 public:
  explicit Trainer(Module module) : module_(std::move(module)) {
    for (const StateVariable& state : module_.states) state_[state.name] = state.initial;
  }

  /// Calls an entry; new values of states are kept, the other results returned.
  Tensors call(const std::string& name, const Tensors& inputs) {
    for (const Entry& entry : module_.entries) {
      if (entry.name == name) return call(module_.function(entry.function), inputs);
    }
    throw CompileError("there is no entry " + name);
  }

  Literal& state(const std::string& name) { return state_.at(name); }
  bool has_state(const std::string& name) const { return state_.contains(name); }
  const Module& module() const { return module_; }

 private:
  Tensors call(const Function& function, const Tensors& inputs) {
    std::vector<Value> arguments;
    for (ValueId param : function.params) {
      const std::string name = parameter_name(function.node(param));
      arguments.emplace_back(state_.contains(name) ? state_.at(name) : inputs.at(name));
    }
    const Value result = evaluate(module_, function, arguments);
    Tensors outputs;
    for (size_t i = 0; i < function.result_names.size(); ++i) {
      const std::string& name = function.result_names[i];
      const Literal& value = result.is_tuple ? result.elements[i].tensor : result.tensor;
      (state_.contains(name) ? state_ : outputs)[name] = value;
    }
    return outputs;
  }

  Module module_;
  Tensors state_;
};

/// Numbers in [-1, 1) that every test can repeat.
inline std::vector<double> noise(size_t count, uint64_t seed) {
  std::vector<double> values(count);
  uint64_t x = seed * 2654435769u + 88172645463325252u;
  for (double& value : values) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    value = static_cast<double>(x >> 11) / static_cast<double>(uint64_t{1} << 52) - 1;
  }
  return values;
}

inline std::vector<double> doubles(const Literal& literal) {
  std::vector<double> values;
  for (int64_t i = 0; i < literal.element_count(); ++i) values.push_back(literal.as_double(i));
  return values;
}

}  // namespace backcast
