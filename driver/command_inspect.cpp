// backcast inspect MODEL.onnx | --operators | --targets
#include <fmt/format.h>

#include <memory>

#include "driver/commands.h"
#include "driver/compiler.h"
#include "frontend/operators.h"
#include "ir/ops/ops.h"
#include "passes/lower/rule.h"

namespace backcast {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> dims;
  bool operators = false, targets = false, markdown = false;
};

void print_targets(bool markdown) {
  if (markdown) fmt::print("| target | machine | registers | runs under |\n|---|---|---|---|\n");
  for (const TargetInfo& t : all_targets()) {
    std::string registers = t.vector_bits
                                ? fmt::format("{} × {} bits", t.vector_registers, t.vector_bits)
                                : std::string("scalar");
    std::string runs = t.runner == Runner::none     ? "objects only"
                       : t.runner == Runner::native ? "this machine, where it can"
                                                    : t.qemu;
    if (markdown) {
      fmt::print("| `{}` | {} | {} | {} |\n", t.name, t.summary, registers, runs);
    } else {
      fmt::print("{:<14} {:<44} {:<16} {}\n", t.name, t.summary, registers, runs);
    }
  }
}

void print_operators(bool markdown) {
  if (markdown) {
    fmt::print("| operator | opsets | import | evaluate | compile |\n|---|---|---|---|---|\n");
  }
  for (const SupportedOperator& op : supported_operators()) {
    std::string name = op.domain.empty() ? op.name : op.domain + "." + op.name;
    if (markdown) {
      fmt::print("| {} | {}–{} | yes | yes | yes |\n", name, op.since, op.until);
    } else {
      fmt::print("{:<32} opset {}–{}\n", name, op.since, op.until);
    }
  }
}

/// One row per node of the graph that is not structure, and the totals.
void print_model(const ImportedModel& model) {
  const Function& main = model.module.function("main");
  int64_t parameters = 0, parameter_bytes = 0;
  std::map<std::string, int64_t> counts;
  fmt::print("{:<32} {:<20} {}\n", "node", "operator", "result");
  std::string last;
  for (int64_t i = 0; i < main.size(); ++i) {
    const Node& node = main.node(ValueId(i));
    if (node.op == &ops::constant) {
      const Literal& value = node.attrs.as<ConstantAttrs>().value;
      if (node.loc.op_type == "initializer") {
        parameters += value.element_count();
        parameter_bytes += static_cast<int64_t>(value.bytes().size());
      }
      continue;
    }
    // An ONNX node is several nodes here: its last one has its result.
    bool more = i + 1 < main.size() && main.node(ValueId(i + 1)).loc == node.loc;
    if (more || node.op == &ops::tuple) continue;
    ++counts[node.loc.op_type];
    if (main.size() < 2000) {
      fmt::print("{:<32} {:<20} {}\n", node.loc.node, node.loc.op_type, node.type.to_string());
    }
  }
  fmt::print("\n");
  for (const auto& [name, count] : counts) fmt::print("{:>6} × {}\n", count, name);
  fmt::print("{} core nodes, {} parameters ({} bytes), opset {}\n", main.size(), parameters,
             parameter_bytes, model.opset);
  for (const auto& [name, range] : model.module.symbols) {
    fmt::print("symbol {} in {}..{}\n", name, range.min, range.max);
  }
  for (const std::string& note : model.notes) fmt::print("note: {}\n", note);
}

int run(Options& o) {
  if (o.targets) print_targets(o.markdown);
  if (o.operators) print_operators(o.markdown);
  if (o.model.empty()) {
    if (!o.targets && !o.operators)
      throw CompileError("inspect needs a model, --operators or --targets");
    return 0;
  }
  ImportOptions options;
  options.dims = parse_dims(o.dims);
  try {
    print_model(import_model(o.model, options));
  } catch (const CompileError& error) {
    throw CompileError(name_file(error.what(), o.model));
  }
  return 0;
}

}  // namespace

Action add_inspect(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("model", o->model, "ONNX model");
  app.add_option("--dim", o->dims, "size of a symbolic dimension: N=8, or a range: N=1..8");
  app.add_flag("--operators", o->operators, "list the ONNX operators that can be imported");
  app.add_flag("--targets", o->targets, "list the targets");
  app.add_flag("--markdown", o->markdown, "tables as Markdown");
  return [o] { return run(*o); };
}

}  // namespace backcast
