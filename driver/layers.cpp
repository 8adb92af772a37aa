#include "driver/layers.h"

#include <map>
#include <set>

#include "ir/graph/error.h"
#include "ir/loop/liveness.h"
#include "ir/ops/ops.h"
#include "passes/graph/inline_calls.h"
#include "passes/lower/lower.h"

namespace backcast {
namespace {

/// INT64_MAX where the type has no bound.
int64_t largest_bytes(const TensorType& type, const SymbolRanges& symbols) {
  int64_t bytes = 0;
  const int64_t elements = type.element_count().range(symbols).max;
  if (__builtin_mul_overflow(elements, byte_size(type.element), &bytes)) return INT64_MAX;
  return bytes;
}

class LayerBuilder {
 public:
  explicit LayerBuilder(const ImportedModel& model)
      : model_(model), main_(model.module.function("main")) {}

  LayerTable run() {
    const std::vector<char> is_result = results();
    for (int64_t i = 0; i < main_.size(); ++i) {
      const Node& node = main_.node(ValueId(i));
      if (node.op == &ops::constant) {
        if (is_initializer(node)) count(node);
      } else if (node.op != &ops::tuple && !is_parameter(node)) {
        add(ValueId(i), is_result);
      }
    }
    add_macs();
    return std::move(table_);
  }

 private:
  using Key = std::pair<std::string, std::string>;  // name and operator

  static bool is_initializer(const Node& node) {
    return node.op == &ops::constant && node.loc.op_type == "initializer";
  }
  static const Literal& literal(const Node& node) { return node.attrs.as<ConstantAttrs>().value; }

  void count(const Node& constant) {
    table_.parameters += literal(constant).element_count();
    table_.parameter_bytes += static_cast<int64_t>(literal(constant).bytes().size());
  }

  size_t layer_of(const Node& node) {
    const auto [at, fresh] =
        index_.try_emplace({node.loc.node, node.loc.op_type}, table_.layers.size());
    if (fresh) table_.layers.push_back({node.loc.node, node.loc.op_type, "", 0, 0, 0, 0});
    return at->second;
  }

  /// An ONNX node is several nodes here: what others read of them are its results.
  void add(ValueId id, const std::vector<char>& is_result) {
    const Node& node = main_.node(id);
    const size_t at = layer_of(node);
    Layer& layer = table_.layers[at];
    if (is_result[static_cast<size_t>(id.index)]) {
      if (layer.results++ == 0) layer.result = node.type.to_string();
      for (const TensorType& type : flatten(node.type)) {
        layer.result_bytes += largest_bytes(type, model_.module.symbols);
      }
    }
    for (const ValueId operand_id : node.operands) {
      const Node& operand = main_.node(operand_id);
      if (!is_initializer(operand) || !read_.emplace(at, operand_id.index).second) continue;
      layer.parameter_bytes += static_cast<int64_t>(literal(operand).bytes().size());
    }
  }

  std::vector<char> results() const {
    std::vector<char> is_result(static_cast<size_t>(main_.size()), 0);
    is_result[static_cast<size_t>(main_.result.index)] = 1;
    for (const Node& node : main_.nodes) {
      for (const ValueId id : node.operands) {
        const Loc& from = main_.node(id).loc;
        const bool outside = from.node != node.loc.node || from.op_type != node.loc.op_type;
        if (outside || node.op == &ops::tuple) is_result[static_cast<size_t>(id.index)] = 1;
      }
    }
    return is_result;
  }

  /// Lowering knows them. What only compiling would refuse can still be shown.
  void add_macs() {
    try {
      const loop::Program program = lower(inline_calls(model_.module), "model");
      for (const loop::EntryPoint& entry : program.entries) {
        const std::vector<const loop::Step*> steps = loop::flat_steps(entry.steps);
        const std::vector<int64_t> runs = loop::runs_of_steps(program, entry);
        for (size_t i = 0; i < steps.size(); ++i) {
          if (steps[i]->kind == loop::StepKind::call) add_macs(program, *steps[i], runs[i]);
        }
      }
    } catch (const CompileError& error) {
      table_.no_macs = error.what();
    }
  }

  void add_macs(const loop::Program& program, const loop::Step& step, int64_t runs) {
    const loop::Kernel& kernel = program.kernels.at(step.kernel);
    if (kernel.locs.empty()) return;
    table_.macs += kernel.macs * runs;
    const auto at = index_.find({kernel.locs[0].node, kernel.locs[0].op_type});
    if (at != index_.end()) table_.layers[at->second].macs += kernel.macs * runs;
  }

  const ImportedModel& model_;
  const Function& main_;
  LayerTable table_;
  std::map<Key, size_t> index_;
  std::set<std::pair<size_t, int64_t>> read_;  // layer and initializer
};

}  // namespace

LayerTable layers_of(const ImportedModel& model) { return LayerBuilder(model).run(); }

}  // namespace backcast
