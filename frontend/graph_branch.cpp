// If: a choice between two functions. Branches whose results differ in their extents, or that hold
// as much as the data has it, are both computed, and one is selected.
#include <algorithm>

#include "frontend/graph_importer.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Whether two branches may be those of an `if_else`.
bool have_same_types(const Module& module, const IfElseAttrs& attrs) {
  return module.function(attrs.then.name).result_type() ==
         module.function(attrs.otherwise.name).result_type();
}

Dim larger(const Dim& a, const Dim& b, const SymbolRanges& symbols) {
  if ((a - b).range(symbols).min >= 0) return a;
  if ((b - a).range(symbols).min >= 0) return b;
  return Dim::max(a, b);
}

/// `then` or `otherwise`; axes along which they differ get a symbol named after `name`.
ValueId select_result(Module& module, Emitter& e, ValueId condition, ValueId then,
                      ValueId otherwise, const std::string& name) {
  const Type a = e.builder().type(then), b = e.builder().type(otherwise);
  if (!a.is_tensor() || !b.is_tensor() || a.tensor().element != b.tensor().element ||
      a.tensor().rank() != b.tensor().rank()) {
    throw CompileError(fmt::format(
        "the output \"{}\" is {} in one branch and {} in the other; both have to be tensors of one "
        "element type and one rank",
        name, a.to_string(), b.to_string()));
  }
  const Shape &left = a.tensor().shape, &right = b.tensor().shape;
  Shape both;
  for (size_t d = 0; d < left.size(); ++d) {
    both.push_back(larger(left[d], right[d], module.symbols));
  }
  const auto padded = [&](ValueId x, const Shape& shape) {
    if (shape == both) return x;
    Dims high;
    for (size_t d = 0; d < shape.size(); ++d) high.push_back(both[d] - shape[d]);
    return e.pad(x, e.scalar(e.element(x), 0), Dims(shape.size(), 0), high);
  };
  ValueId result =
      e.select(e.broadcast_to(condition, both), padded(then, left), padded(otherwise, right));
  for (size_t d = 0; d < both.size(); ++d) {
    if (left[d] == right[d]) continue;
    const ValueId count = e.select(condition, e.dimension(left[d]), e.dimension(right[d]));
    result = measured_prefix(module, e, name, result, count, static_cast<int64_t>(d));
  }
  return result;
}

}  // namespace

std::vector<ValueId> GraphImporter::inline_branch(const OnnxNode& node, const char* name,
                                                  const Loc& loc, Scope& scope) {
  const OnnxGraph& branch = graph_of(node, name, loc);
  Scope around = scope_around(branch, loc, scope);
  return inline_graph(branch, {}, node.outputs.size(), loc, around);
}

/// Both branches, where nothing in them has to be left undone: operators have no effects.
std::vector<ValueId> GraphImporter::select_branch(const OnnxNode& node, ValueId condition,
                                                  const Loc& loc, Scope& scope) {
  const std::vector<ValueId> then = inline_branch(node, "then_branch", loc, scope);
  const std::vector<ValueId> otherwise = inline_branch(node, "else_branch", loc, scope);
  Emitter e(*builder_);
  builder_->set_loc(loc);
  std::vector<ValueId> outputs;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    outputs.push_back(
        select_result(result_.module, e, condition, then[k], otherwise[k], node.outputs[k]));
  }
  return outputs;
}

std::vector<ValueId> GraphImporter::import_if(const OnnxNode& node, const Loc& loc, Scope& scope) {
  const std::vector<ValueId> inputs = node_inputs(node, loc, scope);
  if (inputs.size() != 1) throw CompileError(loc, "takes one input, the condition");
  for (const char* name : {"then_branch", "else_branch"}) {
    const OnnxGraph& branch = graph_of(node, name, loc);
    if (branch.outputs.size() < node.outputs.size()) {
      throw CompileError(loc, fmt::format("attribute \"{}\" has {} outputs and needs {}", name,
                                          branch.outputs.size(), node.outputs.size()));
    }
  }
  require_tensor(inputs[0], loc);
  const std::optional<Literal> known = known_->literal(inputs[0]);
  if (known && known->element_count() == 1) {
    return inline_branch(node, known->as_int(0) != 0 ? "then_branch" : "else_branch", loc, scope);
  }
  Emitter e(*builder_);
  builder_->set_loc(loc);
  const ValueId condition = as_scalar(e, inputs[0], ElementType::boolean, "condition", loc);
  const Body then = body_of(node, "then_branch", loc, scope);
  const Body otherwise = body_of(node, "else_branch", loc, scope);
  std::vector<std::string> captures = then.captures;
  for (const std::string& name : otherwise.captures) {
    if (std::find(captures.begin(), captures.end(), name) == captures.end()) {
      captures.push_back(name);
    }
  }
  const auto wrap = [&](const std::vector<ValueId>&, const std::vector<ValueId>& outputs) {
    return builder_->emit(
        ops::tuple, {outputs.begin(), outputs.begin() + static_cast<int64_t>(node.outputs.size())});
  };
  Module& module = result_.module;
  const SymbolRanges symbols = module.symbols;
  const std::map<std::string, std::string> composites = composites_;
  std::set<std::string> functions;
  for (const auto& [name, function] : module.functions) functions.insert(name);
  IfElseAttrs attrs;
  try {
    attrs.then = import_body(then, {}, captures, loc, scope, wrap);
    attrs.otherwise = import_body(otherwise, {}, captures, loc, scope, wrap);
  } catch (const Poisoned&) {
    if (scope.depth == 0) {
      hints_.push_back(
          loc.describe() +
          ": only run time knows which branch it takes, so that both have to be valid; "
          "--constant NAME=VALUE makes an input constant that decides");
    }
    throw;
  }
  const bool measures = module.symbols.size() > symbols.size();
  if (measures || !have_same_types(module, attrs)) {
    std::erase_if(module.functions,
                  [&](const auto& named) { return functions.count(named.first) == 0; });
    module.symbols = symbols;
    composites_ = composites;
    return select_branch(node, condition, loc, scope);
  }
  std::vector<ValueId> operands{condition};
  for (const ValueId id : operands_of(captures, scope)) operands.push_back(id);
  return e.elements(builder_->emit(ops::if_else, operands, attrs));
}

}  // namespace backcast
