// Matching operands with the parameters of a called function. The callee's symbols are renamed
// first, so that its `N` and the caller's `N` are different things.
#include "ir/ops/call_rules.h"

#include "ir/graph/evaluator.h"
#include "ir/graph/module.h"
#include "ir/ops/adjoint.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {
namespace {

using Substitution = std::map<std::string, Dim>;

constexpr char kCalleeMark = '@';  // no symbol of a text or a model begins with it

void collect_symbols(const Type& type, std::set<std::string>& names) {
  for (const TensorType& tensor : flatten(type)) {
    for (const Dim& dim : tensor.shape) dim.collect_symbols(names);
  }
}

Type substitute(const Type& type, const Substitution& replacement) {
  if (type.is_tensor()) {
    TensorType tensor = type.tensor();
    for (Dim& dim : tensor.shape) dim = dim.substitute(replacement);
    return tensor;
  }
  std::vector<Type> elements;
  for (const Type& element : type.elements()) elements.push_back(substitute(element, replacement));
  return Type::tuple(std::move(elements));
}

/// Solves `formal` = `actual` for the one callee symbol in which it is linear; true when it added
/// a solution.
bool solve_for_symbol(const Dim& formal, const Dim& actual, Substitution& known) {
  const Dim rest = formal.substitute(known);
  if (rest == actual) return false;
  const Dim* symbol_part = nullptr;
  std::string name;
  Dim others = actual - Dim(rest.constant_term());
  int64_t coefficient = 0;
  for (const Dim::Term& term : rest.terms()) {
    const Dim as_dim = Dim::from_terms(0, {term});
    std::set<std::string> names;
    as_dim.collect_symbols(names);
    bool open = false;
    for (const std::string& n : names) open |= n.front() == kCalleeMark;
    if (!open) {
      others = others - as_dim;
      continue;
    }
    const bool plain = term.atoms.size() == 1 && term.atoms[0]->kind == Dim::Atom::Kind::symbol;
    if (!plain || symbol_part != nullptr) return false;
    symbol_part = &formal;
    name = term.atoms[0]->name;
    coefficient = term.coefficient;
  }
  if (symbol_part == nullptr) return false;
  const Dim solution = Dim::floor_div(others, coefficient);
  if (!(solution * Dim(coefficient) == others)) return false;
  known[name] = solution;
  return true;
}

/// Pairs up the dimensions of two types; false when their structures differ.
bool pair_dimensions(const Type& formal, const Type& actual,
                     std::vector<std::pair<Dim, Dim>>& pairs) {
  if (formal.is_tensor() != actual.is_tensor()) return false;
  const std::vector<TensorType> formals = flatten(formal);
  const std::vector<TensorType> actuals = flatten(actual);
  if (formals.size() != actuals.size()) return false;
  for (size_t i = 0; i < formals.size(); ++i) {
    if (formals[i].element != actuals[i].element) return false;
    if (formals[i].rank() != actuals[i].rank()) return false;
    for (size_t d = 0; d < formals[i].shape.size(); ++d) {
      pairs.emplace_back(formals[i].shape[d], actuals[i].shape[d]);
    }
  }
  return true;
}

}  // namespace

Type infer_application(const InferContext& context, const FunctionRef& function) {
  const Function& callee = context.module.function(function.name);
  if (context.operands.size() != callee.params.size()) {
    fail("@{} takes {} operands and is given {}", function.name, callee.params.size(),
         context.operands.size());
  }
  std::set<std::string> names;
  for (const ValueId param : callee.params) collect_symbols(callee.type(param), names);
  collect_symbols(callee.result_type(), names);
  Substitution renamed, back;
  for (const std::string& name : names) {
    renamed[name] = Dim::symbol(kCalleeMark + name);
    back[kCalleeMark + name] = Dim::symbol(name);
  }

  std::vector<std::pair<Dim, Dim>> pairs;
  for (size_t i = 0; i < callee.params.size(); ++i) {
    const Type& formal = callee.type(callee.params[i]);
    if (!pair_dimensions(substitute(formal, renamed), context.operands[i], pairs)) {
      fail("operand {} of @{} must be {} and is {}", i, function.name, formal.to_string(),
           context.operands[i].to_string());
    }
  }
  Substitution known;
  bool progress = true;
  while (progress) {
    progress = false;
    for (const auto& [formal, actual] : pairs) progress |= solve_for_symbol(formal, actual, known);
  }
  for (const auto& [name, dim] : back) known.try_emplace(name, dim);
  for (size_t i = 0; i < callee.params.size(); ++i) {
    const Type& formal = callee.type(callee.params[i]);
    const Type bound = substitute(substitute(formal, renamed), known);
    if (!(bound == context.operands[i])) {
      fail("operand {} of @{} must be {}, here {}, and is {}", i, function.name, formal.to_string(),
           bound.to_string(), context.operands[i].to_string());
    }
  }
  return substitute(substitute(callee.result_type(), renamed), known);
}

Value evaluate_application(const EvalContext& context, const FunctionRef& function) {
  return backcast::evaluate(context.module, context.module.function(function.name),
                            {context.operands.begin(), context.operands.end()}, context.symbols);
}

std::vector<Adjoint> gradient_of_application(GradientContext& context,
                                             const FunctionRef& function) {
  Builder& builder = context.builder;
  const std::string vjp = context.services.vjp_function(function.name, context.wanted);
  std::vector<ValueId> operands = context.node.operands;
  for (ValueId leaf : cotangent_leaves(builder, context.cotangent, context.node.type)) {
    operands.push_back(leaf);
  }
  const ValueId adjoints = builder.emit(call, operands, CallAttrs{{vjp}});
  std::vector<Adjoint> result(context.wanted.size());
  int64_t next = 0;
  for (size_t i = 0; i < context.wanted.size(); ++i) {
    if (!context.wanted[i]) continue;
    result[i] = adjoint_of_value(builder, builder.emit(get, {adjoints}, GetAttrs{next++}));
  }
  return result;
}

}  // namespace backcast::ops
