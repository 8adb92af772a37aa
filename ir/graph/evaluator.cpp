// The plain evaluator. It walks the nodes in order and drops every value after its last use.
#include "ir/graph/evaluator.h"

#include "ir/graph/dim_math.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

enum class Bound { yes, no, open };

/// Compares one dimension with an extent; solves it when it is linear in its one unknown symbol.
Bound bind_dimension(const Dim& dim, int64_t actual, SymbolValues& symbols) {
  std::set<std::string> names;
  dim.collect_symbols(names);
  std::map<std::string, Dim> known;
  std::string unknown;
  int unknowns = 0;
  for (const std::string& name : names) {
    const SymbolValues::const_iterator found = symbols.find(name);
    if (found != symbols.end()) {
      known[name] = found->second;
    } else {
      unknown = name;
      ++unknowns;
    }
  }
  if (unknowns > 1) return Bound::open;
  const Dim rest = dim.substitute(known);
  if (rest.is_constant()) return rest.constant() == actual ? Bound::yes : Bound::no;
  const std::vector<Dim::Term>& terms = rest.terms();
  if (terms.size() != 1 || terms[0].atoms.size() != 1 ||
      terms[0].atoms[0]->kind != Dim::Atom::Kind::symbol) {
    return Bound::open;
  }
  int64_t difference = 0;
  if (__builtin_sub_overflow(actual, rest.constant_term(), &difference)) return Bound::no;
  if (math::floor_mod(difference, terms[0].coefficient) != 0) return Bound::no;
  const int64_t value = math::floor_div(difference, terms[0].coefficient);
  if (value < 0) return Bound::no;
  symbols[unknown] = value;
  return Bound::yes;
}

Bound bind_type(const TensorType& type, const std::vector<int64_t>& actual, SymbolValues& symbols) {
  if (type.shape.size() != actual.size()) return Bound::no;
  // One dimension may make another solvable: go round while symbols are added.
  while (true) {
    const size_t before = symbols.size();
    bool open = false;
    for (size_t i = 0; i < actual.size(); ++i) {
      const Bound bound = bind_dimension(type.shape[i], actual[i], symbols);
      if (bound == Bound::no) return Bound::no;
      open |= bound == Bound::open;
    }
    if (!open) return Bound::yes;
    if (symbols.size() == before) return Bound::open;
  }
}

std::string shape_text(const Literal& literal) { return to_string(literal.type()); }

/// The same for nested tuples. `path` names the value in errors.
Bound bind_value(const Type& type, const Value& value, const std::string& path,
                 SymbolValues& symbols) {
  if (type.is_tuple() != value.is_tuple) {
    throw CompileError(fmt::format("{} must be {}", path, type.to_string()));
  }
  if (type.is_tensor()) {
    const TensorType& tensor = type.tensor();
    const Bound bound = tensor.element == value.tensor.element()
                            ? bind_type(tensor, value.tensor.shape(), symbols)
                            : Bound::no;
    if (bound == Bound::no) {
      std::string with;
      for (const auto& [name, v] : symbols) with += fmt::format(" {}={}", name, v);
      throw CompileError(fmt::format("{} must be {} and is {}{}{}", path, type.to_string(),
                                     shape_text(value.tensor), with.empty() ? "" : " where", with));
    }
    return bound;
  }
  const std::vector<Type>& elements = type.elements();
  if (elements.size() != value.elements.size()) {
    throw CompileError(fmt::format("{} must be {} and has {} elements", path, type.to_string(),
                                   value.elements.size()));
  }
  Bound result = Bound::yes;
  for (size_t i = 0; i < elements.size(); ++i) {
    const Bound bound =
        bind_value(elements[i], value.elements[i], fmt::format("{}.{}", path, i), symbols);
    if (bound == Bound::open) result = bound;
  }
  return result;
}

/// Binds over all arguments until nothing is added any more; true when nothing is left open.
bool bind_arguments(const Function& function, const std::vector<Value>& arguments,
                    SymbolValues& symbols) {
  while (true) {
    const size_t before = symbols.size();
    bool open = false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Node& param = function.node(function.params[i]);
      const std::string path =
          fmt::format("@{}: argument {} \"{}\"", function.name, i, parameter_name(param));
      open |= bind_value(param.type, arguments[i], path, symbols) == Bound::open;
    }
    if (!open || symbols.size() == before) return !open;
  }
}

SymbolValues bind_all(const Module& module, const Function& function,
                      const std::vector<Value>& arguments, const SymbolValues& given) {
  if (arguments.size() != function.params.size()) {
    throw CompileError(fmt::format("@{} takes {} arguments and gets {}", function.name,
                                   function.params.size(), arguments.size()));
  }
  SymbolValues symbols;
  bind_arguments(function, arguments, symbols);
  // Shapes come first: a callee's symbols may differ from those of its caller.
  symbols.insert(given.begin(), given.end());
  if (!bind_arguments(function, arguments, symbols)) {
    throw CompileError("@" + function.name +
                       ": the arguments' shapes do not determine every dimension; give the values "
                       "of the symbols");
  }
  for (const auto& [name, value] : symbols) {
    const SymbolRanges::const_iterator range = module.symbols.find(name);
    if (range == module.symbols.end()) continue;
    if (value < range->second.min || value > range->second.max) {
      throw CompileError(fmt::format("@{}: {} = {} is outside its range {}..{}", function.name,
                                     name, value, range->second.min, range->second.max));
    }
  }
  return symbols;
}

Value evaluate_checked(const Module& module, const Node& node, std::span<const Value> operands,
                       SymbolValues& symbols) {
  Value value;
  try {
    value = node.op->evaluate({module, symbols, node, operands});
  } catch (const CompileError& error) {
    throw CompileError(node.loc, error.what());
  }
  try {
    // A data-dependent extent is a symbol that first gets its value here.
    bind_value(node.type, value, "the result", symbols);
  } catch (const CompileError& error) {
    internal_error(__FILE__, __LINE__,
                   fmt::format("{} evaluates wrongly: {}: {}", node.op->name, node.loc.describe(),
                               error.what()));
  }
  return value;
}

}  // namespace

bool bind_symbols(const TensorType& type, const std::vector<int64_t>& actual,
                  SymbolValues& symbols) {
  return bind_type(type, actual, symbols) == Bound::yes;
}

Value evaluate(const Module& module, const Function& function, const std::vector<Value>& arguments,
               const SymbolValues& symbols) {
  SymbolValues bound = bind_all(module, function, arguments, symbols);
  const size_t count = function.nodes.size();
  std::vector<size_t> last_use(count, 0);
  for (size_t i = 0; i < count; ++i) {
    last_use[i] = i;
    for (const ValueId operand : function.nodes[i].operands) {
      last_use[static_cast<size_t>(operand.index)] = i;
    }
  }
  last_use[static_cast<size_t>(function.result.index)] = count;

  std::vector<Value> values(count);
  for (size_t i = 0; i < function.params.size(); ++i) {
    values[static_cast<size_t>(function.params[i].index)] = arguments[i];
  }
  for (size_t i = 0; i < count; ++i) {
    const Node& node = function.nodes[i];
    if (!is_parameter(node)) {
      std::vector<Value> operands;
      operands.reserve(node.operands.size());
      for (const ValueId operand : node.operands) {
        operands.push_back(values[static_cast<size_t>(operand.index)]);
      }
      values[i] = evaluate_checked(module, node, operands, bound);
      for (const ValueId operand : node.operands) {
        const size_t used = static_cast<size_t>(operand.index);
        if (last_use[used] == i) values[used] = {};
      }
    }
    if (last_use[i] == i) values[i] = {};
  }
  return std::move(values[static_cast<size_t>(function.result.index)]);
}

Value evaluate_node(const Module& module, const Node& node, const std::vector<Value>& operands,
                    const SymbolValues& symbols) {
  SymbolValues bound = symbols;
  return evaluate_checked(module, node, operands, bound);
}

}  // namespace backcast
