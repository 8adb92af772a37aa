// See derivatives.h. What differentiate.h makes gives nested tuples; an entry point needs them
// flat, with names.
#include "driver/derivatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ir/graph/builder.h"
#include "ir/graph/error.h"
#include "ir/ops/op_attrs.h"
#include "ir/ops/ops.h"
#include "passes/graph/differentiate.h"
#include "passes/train/copy_nodes.h"

namespace backcast {
namespace {

bool is_float_tensor(const Type& type) {
  return type.is_tensor() && is_float(type.tensor().element);
}

/// The chosen inputs in the order of the function's parameters.
std::vector<std::string> chosen_inputs(const Function& function,
                                       const std::vector<std::string>& wish) {
  std::vector<std::string> result, possible;
  for (ValueId param : function.params) {
    if (is_float_tensor(function.type(param))) {
      possible.push_back(parameter_name(function.node(param)));
    }
  }
  const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::string listing;
  for (const std::string& name : possible) {
    listing += (listing.empty() ? "" : ", ") + name;
    if (wish.empty() || is_in(wish, name)) result.push_back(name);
  }
  for (const std::string& name : wish) {
    if (is_in(possible, name)) continue;
    throw CompileError(fmt::format("--wrt {}: the floating-point inputs are {}", name, listing));
  }
  if (result.empty()) throw CompileError("--derivative: the model has no floating-point input");
  return result;
}

/// The tensors that a value is nested of, as deep as its type is.
void add_tensors(Builder& builder, ValueId value, std::vector<ValueId>& tensors) {
  if (builder.type(value).is_tensor()) {
    tensors.push_back(value);
    return;
  }
  const int64_t count = static_cast<int64_t>(builder.type(value).elements().size());
  for (int64_t i = 0; i < count; ++i) {
    add_tensors(builder, builder.emit(ops::get, {value}, GetAttrs{i}), tensors);
  }
}

std::vector<std::string> result_names(DerivativeKind kind, const Function& function,
                                      const std::vector<std::string>& wrt) {
  std::vector<std::string> names;
  if (kind == DerivativeKind::jvp) {
    const std::vector<std::string> outputs = output_names(function);
    const std::vector<TensorType> types = flatten(function.result_type());
    names = outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (is_float(types[i].element)) names.push_back("tangent_" + outputs[i]);
    }
    return names;
  }
  for (const std::string& name : wrt) names.push_back("gradient_" + name);
  if (kind == DerivativeKind::hvp) {
    for (const std::string& name : wrt) names.push_back("product_" + name);
  }
  return names;
}

/// A function of this name that calls `called` and gives its tensors as one flat tuple.
Function flat_call(const Module& module, const std::string& called, const std::string& name,
                   const std::vector<std::string>& names) {
  const Function& function = module.function(called);
  Builder builder(module, name);
  const std::vector<ValueId> arguments = copy_parameters(builder, function);
  builder.set_loc({name, "", Origin::made});
  const ValueId nested = builder.emit(ops::call, arguments, CallAttrs{{called}});
  std::vector<ValueId> tensors;
  add_tensors(builder, nested, tensors);
  BC_CHECK(tensors.size() == names.size(), "@{} gives {} tensors", called, tensors.size());
  if (tensors.size() == 1) return builder.finish(tensors[0], names);
  return builder.finish(builder.emit(ops::tuple, tensors), names);
}

DerivativeKind kind_of(const std::string& word) {
  for (size_t i = 0; i < std::size(EnumNames<DerivativeKind>::names); ++i) {
    if (EnumNames<DerivativeKind>::names[i] == word) return static_cast<DerivativeKind>(i);
  }
  throw CompileError(fmt::format("--derivative {}: choose among vjp, jvp, hvp", word));
}

}  // namespace

Module add_derivatives(Module module, const DerivativeRequest& request) {
  const Function main = module.function("main");
  const std::vector<std::string> wrt = chosen_inputs(main, request.wrt);
  std::vector<std::string> taken;
  for (const auto& [name, function] : module.functions) taken.push_back(name);
  module.entries = entries_of(module);
  for (const std::string& word : request.kinds) {
    const DerivativeKind kind = kind_of(word);
    for (const Entry& entry : module.entries) {
      if (entry.name == word) {
        throw CompileError(fmt::format("--derivative {}: asked for twice", word));
      }
    }
    const std::vector<Entry> entries = module.entries;
    module = kind == DerivativeKind::vjp   ? add_vjp(module, "main", wrt)
             : kind == DerivativeKind::jvp ? add_jvp(module, "main", wrt)
                                           : add_hvp(module, "main", wrt);
    const std::string name = fresh_name(taken, word);
    module.functions[name] = flat_call(module, "main_" + word, name, result_names(kind, main, wrt));
    module.entries = entries;
    module.entries.push_back({word, name, "", {}, {}});
  }
  return module;
}

}  // namespace backcast
