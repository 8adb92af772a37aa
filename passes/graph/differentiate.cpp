// What is asked for is checked first; then one reverse sweep per function writes the adjoint.
#include "passes/graph/differentiate.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "ir/graph/error.h"
#include "ir/ops/adjoint.h"
#include "ir/ops/ops.h"
#include "passes/graph/reverse_sweep.h"

namespace backcast {
namespace {

std::string unused_name(const Module& module, const std::string& wish) {
  std::string name = wish;
  for (int i = 2; module.functions.contains(name); ++i) name = fmt::format("{}_{}", wish, i);
  return name;
}

/// `wish`, or with underscores where a parameter's name begins like that.
std::string parameter_wish(const Function& function, std::string wish) {
  const auto taken = [&](const std::string& start) {
    return std::any_of(function.params.begin(), function.params.end(), [&](ValueId id) {
      return parameter_name(function.node(id)).starts_with(start);
    });
  };
  while (taken(wish)) wish += "_";
  return wish;
}

/// What comes from outside has extents that the function's inputs tell.
void require_known_extents(const Function& function, const TensorType& type) {
  const std::map<std::string, ValueId> measured = measured_symbols(function);
  std::set<std::string> symbols;
  for (const Dim& extent : type.shape) extent.collect_symbols(symbols);
  for (const std::string& symbol : symbols) {
    if (!measured.contains(symbol)) continue;
    throw CompileError(
        fmt::format("@{}: a cotangent of {} cannot be given, since {} depends on "
                    "data; differentiate what it is reduced to",
                    function.name, to_string(type), symbol));
  }
}

/// Writes functions into a module of its own copy; keeps track of what it made.
class Differentiation : public GradientServices {
 public:
  explicit Differentiation(const Module& module) : module_(module) {}

  Module finish() { return std::move(module_); }

  std::string vjp_function(const std::string& callee, const std::vector<bool>& wanted) override {
    std::string& name = made_[{callee, wanted}];
    if (name.empty()) name = add_vjp(callee, wanted, callee + "_vjp");
    return name;
  }

  std::string add_vjp(const std::string& callee, const std::vector<bool>& wanted,
                      const std::string& wish) {
    const Function& function = module_.function(callee);
    Builder builder(module_, unused_name(module_, wish));
    const std::vector<ValueId> arguments = copy_parameters(builder, function);
    std::vector<ValueId> cotangents;
    const std::string prefix = parameter_wish(function, "cotangent");
    for (const TensorType& type : flatten(function.result_type())) {
      if (!is_float(type.element)) continue;
      require_known_extents(function, type);
      builder.set_loc({function.name + " cotangent", "", Origin::made});
      const std::string name = fmt::format("{}{}", prefix, cotangents.size());
      cotangents.push_back(builder.parameter(name, type));
    }
    ReverseSweep sweep(builder, function, *this, arguments);
    sweep.copy_forward({function.result});
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i]) sweep.differentiate_by(function.params[i]);
    }
    size_t next = 0;
    builder.set_loc({function.name, "", Origin::adjoint_of});
    sweep.seed(function.result, adjoint_of_leaves(function.result_type(), cotangents, next));
    sweep.run();
    std::vector<ValueId> adjoints;
    builder.set_loc({function.name, "", Origin::adjoint_of});
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) continue;
      const ValueId param = function.params[i];
      adjoints.push_back(materialize(builder, sweep.adjoint(param), function.type(param)));
    }
    return add(builder.finish(builder.emit(ops::tuple, adjoints)));
  }

  /// Without what its result does not need.
  std::string add(const Function& function) {
    module_.functions.emplace(function.name, Rewriter(module_, function).finish());
    return function.name;
  }

  std::string add_function(Function function) override {
    function.name = unused_name(module_, function.name);
    return add(function);
  }

  const Module& module() const { return module_; }

 private:
  Module module_;
  std::map<std::pair<std::string, std::vector<bool>>, std::string> made_;
};

void require_float(const Function& function, const std::string& name, const Type& type) {
  for (const TensorType& tensor : flatten(type)) {
    if (is_float(tensor.element)) continue;
    throw CompileError(
        fmt::format("@{}: \"{}\" is {}; only floating-point tensors and tuples of "
                    "them can be differentiated by; name others",
                    function.name, name, type.to_string()));
  }
}

/// The value that `name` means: a parameter, `%number`, or the last node of that location.
ValueId find_value(const Function& function, const std::string& name) {
  for (ValueId param : function.params) {
    if (parameter_name(function.node(param)) == name) return param;
  }
  int64_t number = -1;
  if (name.starts_with('%')) {
    std::from_chars(name.data() + 1, name.data() + name.size(), number);
  }
  ValueId found;
  for (int64_t i = 0, next = 0; i < function.size(); ++i) {
    const Node& node = function.node(ValueId(i));
    if (is_parameter(node)) continue;
    if (node.loc.node == name || next == number) found = ValueId(i);
    ++next;
  }
  if (found.valid()) return found;
  throw CompileError(fmt::format("@{} has no parameter or value \"{}\"", function.name, name));
}

std::vector<ValueId> wrt_values(const Function& function, const std::vector<std::string>& names) {
  std::vector<ValueId> values;
  if (names.empty()) {
    for (ValueId param : function.params) {
      require_float(function, parameter_name(function.node(param)), function.type(param));
    }
    return function.params;
  }
  for (const std::string& name : names) {
    const ValueId value = find_value(function, name);
    require_float(function, name, function.type(value));
    if (std::find(values.begin(), values.end(), value) != values.end()) {
      throw CompileError(fmt::format("@{}: \"{}\" is named twice", function.name, name));
    }
    values.push_back(value);
  }
  return values;
}

/// The parameters to differentiate by as a mask; without names the floating-point ones.
std::vector<bool> wrt_mask(const Function& function, const std::vector<std::string>& names) {
  std::vector<bool> mask(function.params.size(), false);
  for (size_t i = 0; i < mask.size(); ++i) {
    mask[i] = names.empty() && has_float(function.type(function.params[i]));
  }
  if (names.empty()) return mask;
  for (ValueId value : wrt_values(function, names)) {
    if (!is_parameter(function.node(value))) {
      throw CompileError(fmt::format("@{}: value %{} is no parameter", function.name, value.index));
    }
    mask[static_cast<size_t>(value.index)] = true;
  }
  return mask;
}

/// The target: the result, or an element of it and how to get there.
struct Target {
  Type type;
  int64_t element = -1;
};

Target find_target(const Function& function, const DifferentiateOptions& options) {
  Target target{function.result_type(), -1};
  const int64_t count =
      target.type.is_tuple() ? static_cast<int64_t>(target.type.elements().size()) : 1;
  if (options.target_index < 0 || options.target_index >= count) {
    throw CompileError(fmt::format("@{} has {} result{}; there is no target number {}",
                                   function.name, count, count == 1 ? "" : "s",
                                   options.target_index));
  }
  if (target.type.is_tuple()) {
    const Type element = target.type.elements()[static_cast<size_t>(options.target_index)];
    target = {element, options.target_index};
  }
  const std::string what =
      fmt::format("@{}: the target is {}", function.name, target.type.to_string());
  if (target.type.is_tuple()) throw CompileError(what + "; it must be one tensor");
  if (!is_float(target.type.tensor().element)) {
    throw CompileError(what + "; only a floating-point tensor can be differentiated");
  }
  if (!options.seeded && !target.type.tensor().shape.empty()) {
    throw CompileError(what + "; it must be a scalar, unless its cotangent is given");
  }
  return target;
}

}  // namespace

Module differentiate(const Module& module, const std::string& name,
                     const DifferentiateOptions& options) {
  const Function& function = module.function(name);
  const Target target = find_target(function, options);
  const std::vector<ValueId> wrt = wrt_values(function, options.wrt);
  Differentiation work(module);
  const std::string wish = options.name.empty() ? name + "_adjoint" : options.name;
  Builder builder(work.module(), unused_name(module, wish));
  const std::vector<ValueId> arguments = copy_parameters(builder, function);
  const Loc loc{function.name, "", Origin::adjoint_of};
  ValueId cotangent;
  if (options.seeded) {
    require_known_extents(function, target.type.tensor());
    builder.set_loc({"cotangent", "", Origin::made});
    cotangent = builder.parameter(parameter_wish(function, "cotangent"), target.type);
  }
  ReverseSweep sweep(builder, function, work, arguments);
  std::vector<ValueId> needed{function.result};
  needed.insert(needed.end(), wrt.begin(), wrt.end());
  sweep.copy_forward(needed);
  for (ValueId value : wrt) sweep.differentiate_by(value);
  builder.set_loc(loc);
  if (!options.seeded) {
    const TensorType& type = target.type.tensor();
    cotangent = builder.scalar(type.element, 1);
  }
  Adjoint seed = cotangent;
  if (target.element >= 0) {
    std::vector<Adjoint> parts(function.result_type().elements().size());
    parts[static_cast<size_t>(target.element)] = cotangent;
    seed = Adjoint::tuple(std::move(parts));
  }
  sweep.seed(function.result, seed);
  sweep.run();
  std::vector<ValueId> adjoints;
  for (size_t i = 0; i < wrt.size(); ++i) {
    const Node& node = function.node(wrt[i]);
    const std::string& called = is_parameter(node) ? parameter_name(node) : node.loc.node;
    if (options.strict && sweep.adjoint(wrt[i]).is_zero()) {
      throw CompileError(fmt::format("@{}: the target does not depend on \"{}\"", name, called));
    }
    builder.set_loc({called, node.loc.op_type, Origin::adjoint_of});
    adjoints.push_back(materialize(builder, sweep.adjoint(wrt[i]), node.type));
  }
  builder.set_loc(loc);
  ValueId result = builder.emit(ops::tuple, adjoints);
  if (options.keep_result) {
    result = builder.emit(ops::tuple, {sweep.copy_of(function.result), result});
  }
  work.add(builder.finish(result));
  return work.finish();
}

Module add_vjp(const Module& module, const std::string& function,
               const std::vector<std::string>& wrt) {
  Differentiation work(module);
  work.add_vjp(function, wrt_mask(module.function(function), wrt), function + "_vjp");
  return work.finish();
}

namespace {

/// Forward mode of `name` as a function (params…, tangents…) → (result, tangents of the result).
std::string add_tangents(Differentiation& work, const std::string& name,
                         const std::vector<bool>& mask, const std::string& wish) {
  const std::string vjp = work.vjp_function(name, mask);
  // The cotangents are its last parameters; it is linear in them.
  const size_t params = work.module().function(name).params.size();
  std::vector<bool> cotangents(work.module().function(vjp).params.size(), false);
  std::fill(cotangents.begin() + static_cast<int64_t>(params), cotangents.end(), true);
  const std::string transposed = work.vjp_function(vjp, cotangents);

  const Function& function = work.module().function(name);
  Builder builder(work.module(), unused_name(work.module(), wish));
  std::vector<ValueId> operands = copy_parameters(builder, function);
  const size_t count = operands.size();
  const std::string prefix = parameter_wish(function, "tangent");
  std::vector<ValueId> tangents;
  for (const TensorType& type : flatten(work.module().function(vjp).result_type())) {
    if (!is_float(type.element)) continue;
    builder.set_loc({"tangent", "", Origin::made});
    tangents.push_back(builder.parameter(fmt::format("{}{}", prefix, tangents.size()), type));
  }
  builder.set_loc({name, "", Origin::made});
  const std::vector<ValueId> arguments(operands.begin(),
                                       operands.begin() + static_cast<int64_t>(count));
  const ValueId result = builder.emit(ops::call, arguments, CallAttrs{{name}});
  for (const TensorType& type : flatten(function.result_type())) {
    if (is_float(type.element)) operands.push_back(emit_zeros(builder, type));
  }
  operands.insert(operands.end(), tangents.begin(), tangents.end());
  const ValueId forward = builder.emit(ops::call, operands, CallAttrs{{transposed}});
  return work.add(builder.finish(builder.emit(ops::tuple, {result, forward})));
}

}  // namespace

Module add_jvp(const Module& module, const std::string& function,
               const std::vector<std::string>& wrt) {
  Differentiation work(module);
  add_tangents(work, function, wrt_mask(module.function(function), wrt), function + "_jvp");
  return work.finish();
}

Module add_hvp(const Module& module, const std::string& function,
               const std::vector<std::string>& wrt) {
  DifferentiateOptions options;
  options.wrt = wrt;
  if (wrt.empty()) {
    const Function& original = module.function(function);
    for (ValueId param : original.params) {
      if (has_float(original.type(param))) {
        options.wrt.push_back(parameter_name(original.node(param)));
      }
    }
  }
  options.keep_result = false;
  options.name = unused_name(module, function + "_gradient");
  Differentiation work(differentiate(module, function, options));
  const std::vector<bool> mask = wrt_mask(module.function(function), options.wrt);
  add_tangents(work, options.name, mask, function + "_hvp");
  return work.finish();
}

}  // namespace backcast
