// backcast inspect MODEL.onnx [--train …] | --operators | --targets
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "driver/commands.h"
#include "driver/compiler.h"
#include "driver/import_flags.h"
#include "driver/layers.h"
#include "driver/memory_size.h"
#include "driver/training_memory.h"
#include "frontend/operators.h"
#include "ir/ops/ops.h"
#include "passes/graph/differentiate.h"
#include "passes/lower/rule.h"

namespace backcast {
namespace {

struct Options {
  std::string model, target = "native", ram;
  ImportFlags import_flags;
  TrainingOptions training;
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
      fmt::print("{:<17} {:<44} {:<16} {}\n", t.name, t.summary, registers, runs);
    }
  }
  if (!markdown) {
    fmt::print(
        "those of x86-64 and AArch64 also with -windows, -macos or (AArch64) -ios behind the "
        "name\n");
  }
}

void print_operators(bool markdown) {
  if (markdown) {
    fmt::print(
        "| operator | opsets | import | evaluate | compile | gradient "
        "|\n|---|---|---|---|---|---|\n");
  }
  for (const SupportedOperator& op : supported_operators()) {
    std::string name = op.domain.empty() ? op.name : op.domain + "." + op.name;
    if (markdown) {
      fmt::print("| {} | {}–{} | yes | yes | yes | of its core operators |\n", name, op.since,
                 op.until);
    } else {
      fmt::print("{:<32} opset {}–{}\n", name, op.since, op.until);
    }
  }
}

/// How compilation deals with a core operator.
std::string compile_text(const OpDef& op) {
  if (find_lower_rule(op) != nullptr) return "kernel or view";
  if (&op == &ops::call || &op == &ops::composite) return "inlined";
  if (&op == &ops::scan || &op == &ops::if_else) return "control flow";
  const bool is_plain =
      &op == &ops::parameter || &op == &ops::constant || &op == &ops::tuple || &op == &ops::get;
  return is_plain ? "no code" : "no";
}

std::string gradient_text(const OpDef& op) {
  if (op.gradient.rule() != nullptr) return "rule";
  return fmt::format("{}: {}", op.gradient.is_zero() ? "zero" : "none", op.gradient.reason());
}

/// What ONNX operators are made of, and with it whether they can be differentiated.
void print_core_operators(bool markdown) {
  if (markdown) {
    fmt::print(
        "\n| core operator | import | evaluate | compile | gradient |\n|---|---|---|---|---|\n");
  } else {
    fmt::print("\n{:<16}  {:<8}  {:<14}  {}\n", "core operator", "evaluate", "compile", "gradient");
  }
  for (const OpDef* op : all_ops()) {
    const std::string evaluate = op->evaluate != nullptr ? "yes" : "no";
    if (markdown) {
      fmt::print("| `{}` | | {} | {} | {} |\n", op->name, evaluate, compile_text(*op),
                 gradient_text(*op));
    } else {
      fmt::print("{:<16}  {:<8}  {:<14}  {}\n", op->name, evaluate, compile_text(*op),
                 gradient_text(*op));
    }
  }
}

std::string result_text(const Layer& layer) {
  return layer.results < 2 ? layer.result
                           : fmt::format("{} + {} more", layer.result, layer.results - 1);
}

/// One row per ONNX node, columns as wide as they need to be.
void print_layers(const LayerTable& table) {
  size_t name = 5, op = 8, result = 6;
  for (const Layer& layer : table.layers) {
    name = std::max(name, layer.name.size());
    op = std::max(op, layer.op_type.size());
    result = std::max(result, result_text(layer).size());
  }
  constexpr const char* kRow = "{:<{}}  {:<{}}  {:<{}}  {:>12}  {:>12}  {:>15}\n";
  fmt::print(kRow, "layer", name, "operator", op, "result", result, "MACs", "result bytes",
             "parameter bytes");
  for (const Layer& layer : table.layers) {
    const std::string macs = table.no_macs.empty() ? std::to_string(layer.macs) : "?";
    fmt::print(kRow, layer.name, name, layer.op_type, op, result_text(layer), result, macs,
               layer.result_bytes, layer.parameter_bytes);
  }
}

/// What compiling for the target gives, or why it cannot.
void print_memory(const ImportedModel& model, const Options& o) {
  const TargetInfo target = resolve_target(o.target);
  PipelineOptions options;
  options.verify = false;
  options.passes.ram = parse_ram(o.ram);
  try {
    const PipelineResult result = run_pipeline(model.module, target, options);
    const Abi abi = abi_of(result.program);
    fmt::print("{}: {} bytes of arena (lower bound {}), {} bytes of constants\n", target.name,
               abi.arena_bytes, result.program.arena_bound, abi.weight_bytes);
  } catch (const CompileError& error) {
    fmt::print("{}: cannot be compiled: {}\n", target.name, error.what());
  }
}

void print_model(const ImportedModel& model, const Options& o) {
  const LayerTable table = layers_of(model);
  print_layers(table);
  std::map<std::string, int64_t> counts;
  for (const Layer& layer : table.layers) ++counts[layer.op_type];
  fmt::print("\n");
  for (const auto& [name, count] : counts) fmt::print("{:>6} × {}\n", count, name);
  fmt::print("{} core nodes, {} parameters ({} bytes), opset {}\n",
             model.module.function("main").size(), table.parameters, table.parameter_bytes,
             model.opset);
  if (table.no_macs.empty()) fmt::print("{} multiply-accumulates\n", table.macs);
  print_memory(model, o);
  for (const auto& [name, range] : model.module.symbols) {
    fmt::print("symbol {} in {}..{}\n", name, range.min, range.max);
  }
  for (const std::string& note : model.notes) fmt::print("note: {}\n", note);
}

int run(Options& o) {
  if (o.targets) print_targets(o.markdown);
  if (o.operators) {
    print_operators(o.markdown);
    print_core_operators(o.markdown);
  }
  if (o.model.empty()) {
    if (!o.targets && !o.operators)
      throw CompileError("inspect needs a model, --operators or --targets");
    return 0;
  }
  CompileRequest request;
  request.training = o.training.request();
  if (request.training) {
    request.model = o.model;
    request.target = o.target;
    request.import_options = o.import_flags.options();
    request.pipeline.passes.ram = parse_ram(o.ram);
    fmt::print("{}", training_memory(request));
    return 0;
  }
  ImportOptions options = o.import_flags.options();
  options.differentiator = add_vjp;
  with_file_named(o.model, [&] { print_model(import_model(o.model, options), o); });
  return 0;
}

}  // namespace

Action add_inspect(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("model", o->model, "ONNX model");
  app.add_option("--target", o->target, "the arena is this target's")->capture_default_str();
  o->import_flags.add_to(app);
  app.add_flag("--operators", o->operators,
               "list the ONNX operators that can be imported and the core operators");
  app.add_flag("--targets", o->targets, "list the targets");
  app.add_flag("--markdown", o->markdown, "tables as Markdown");
  add_ram_option(app, o->ram);
  o->training.add(app);
  return [o] { return run(*o); };
}

}  // namespace backcast
