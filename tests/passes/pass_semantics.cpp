// Runs the passes one by one on whole models (or on the inputs of golden files) and, after each,
// prints and parses the text back and compares the results with those before it: evaluator for
// graph IR, interpreter for loop IR.
//
//   pass_semantics --models FOLDER | --golden FOLDER | --reference   (BACKCAST_MODELS)
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>

#include "driver/compare.h"
#include "driver/compiler.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "passes/pipeline.h"

namespace backcast {
namespace {

namespace fs = std::filesystem;

// Passes may round differently (folded scales, fused multiply-adds): a few hundred units in the
// last place of f32 over a network, far below what an error in a pass makes.
constexpr double kRelative = 2e-4;
constexpr double kAbsolute = 2e-5;

Literal random_tensor(const TensorType& type, const SymbolValues& sizes, std::mt19937& random) {
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (const Dim& dim : type.shape) {
    shape.push_back(dim.evaluate(sizes));
    count *= shape.back();
  }
  std::vector<double> values;
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int> small(0, 3);
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(is_float(type.element) ? real(random) : small(random));
  }
  return Literal::from_doubles(type.element, shape, values);
}

/// A tensor, or a tuple of those that follow in `inputs`.
Value argument(const Type& type, const std::vector<Literal>& inputs, size_t& next) {
  if (type.is_tensor()) return inputs.at(next++);
  std::vector<Value> elements;
  for (const Type& element : type.elements()) elements.push_back(argument(element, inputs, next));
  return Value::make_tuple(std::move(elements));
}

void flatten_into(const Value& value, std::vector<Literal>& tensors) {
  if (!value.is_tuple) tensors.push_back(value.tensor);
  for (const Value& element : value.elements) flatten_into(element, tensors);
}

std::vector<Literal> results(const PipelineResult& state, const std::vector<Literal>& inputs) {
  if (state.lowered) return loop::interpret(state.program, "run", inputs);
  const Function& main = state.module.function("main");
  std::vector<Value> arguments;
  size_t next = 0;
  for (ValueId id : main.params) arguments.push_back(argument(main.type(id), inputs, next));
  std::vector<Literal> tensors;
  flatten_into(evaluate(state.module, main, arguments), tensors);
  return tensors;
}

std::vector<TensorType> input_types(const PipelineResult& state) {
  std::vector<TensorType> types;
  if (state.lowered) {
    for (loop::BufferId id : state.program.entries.front().inputs) {
      const loop::Buffer& buffer = state.program.buffer(id);
      types.push_back({buffer.element, buffer.shape});
    }
    return types;
  }
  const Function& main = state.module.function("main");
  for (ValueId id : main.params) {
    for (const TensorType& type : flatten(main.type(id))) types.push_back(type);
  }
  return types;
}

std::vector<Literal> random_inputs(const PipelineResult& state, std::mt19937& random) {
  // Long enough for whole strips and tiles, and for what they leave.
  constexpr int64_t kMost = 60;
  const SymbolRanges& symbols = state.lowered ? state.program.symbols : state.module.symbols;
  SymbolValues sizes;
  std::mt19937 lengths = random;
  for (const auto& [name, range] : symbols) {
    const int64_t most = std::min(range.max, range.min + kMost);
    sizes[name] = std::uniform_int_distribution<int64_t>(range.min, most)(lengths);
  }
  std::vector<Literal> inputs;
  for (const TensorType& type : input_types(state)) {
    inputs.push_back(random_tensor(type, sizes, random));
  }
  return inputs;
}

/// Empty when the text parses to an equal thing.
std::string round_trip(const PipelineResult& state) {
  if (state.lowered) {
    loop::Program parsed =
        loop::parse_program(loop::print(state.program), loop::print_constants(state.program));
    return loop::equal(parsed, state.program) ? "" : "the text parses to another program";
  }
  Module parsed = parse_module(print(state.module), print_constants(state.module));
  return equal(parsed, state.module) ? "" : "the text parses to another module";
}

void verify(const PipelineResult& state, const std::string& after) {
  if (state.lowered) {
    loop::verify(state.program, after);
  } else {
    backcast::verify(state.module, after);
  }
}

/// Runs the passes from a state on; the first thing that is wrong, or nothing.
std::string check_once(PipelineResult state, const std::vector<std::string>& passes,
                       const TargetInfo& target, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Literal> inputs = random_inputs(state, random);
  std::string wrong = round_trip(state);
  if (!wrong.empty()) return "before any pass: " + wrong;
  std::vector<Literal> before = results(state, inputs);
  for (const std::string& pass : passes) {
    if (pass == "parse") continue;
    try {
      run_pass(state, pass, target, "model");
      verify(state, pass);
      wrong = round_trip(state);
      if (!wrong.empty()) return fmt::format("after {}: {}", pass, wrong);
      std::vector<Literal> after = results(state, inputs);
      const ComparedOutput c = compare(after, before, {kRelative, kAbsolute});
      if (!c.passed) return fmt::format("after {}: {}", pass, c.message);
      before = std::move(after);
    } catch (const std::exception& error) {
      return fmt::format("after {}: {}", pass, error.what());
    }
  }
  return {};
}

/// The same, for inputs of several sizes.
std::string check(const PipelineResult& state, const std::vector<std::string>& passes,
                  const TargetInfo& target) {
  // Data may count, too: then only the inputs' shapes tell whether sizes can be chosen.
  const bool symbolic = std::ranges::any_of(
      input_types(state), [](const TensorType& type) { return !is_static(type.shape); });
  const unsigned rounds = symbolic ? 5 : 1;
  std::string wrong;
  for (unsigned seed = 7; seed < 7 + rounds && wrong.empty(); ++seed) {
    wrong = check_once(state, passes, target, seed);
  }
  return wrong;
}

class Tally {
 public:
  void add(const std::string& name, const std::string& wrong) {
    (wrong.empty() ? passed_ : failed_)++;
    fmt::print("{} {}{}{}\n", wrong.empty() ? "ok  " : "FAIL", name, wrong.empty() ? "" : ": ",
               wrong);
  }
  int finish() const {
    fmt::print("{} passed, {} failed\n", passed_, failed_);
    return failed_ || !passed_ ? 1 : 0;
  }

 private:
  int passed_ = 0, failed_ = 0;
};

void check_model(const fs::path& folder, Tally& tally) {
  for (const char* target : {"x86-64-v3", "cortex-m4"}) {
    std::string name = fmt::format("{} for {}", folder.filename().string(), target);
    try {
      // A model's name tells that an extent is the symbol N.
      ImportOptions options;
      std::string model = folder.filename().string();
      bool symbolic = model.find("dynN") != std::string::npos || model == "shape_arithmetic" ||
                      model == "fused_decoder" || model == "packed_weights" ||
                      model.starts_with("any_");
      if (symbolic) options.dims["N"] = {1, 4};
      PipelineResult state;
      state.module = import_model((folder / "model.onnx").string(), options).module;
      tally.add(name, check(state, pass_names(), resolve_target(target)));
    } catch (const std::exception& error) {
      tally.add(name, error.what());
    }
  }
}

void check_golden(const fs::path& path, Tally& tally) {
  std::string text = read_file(path.string());
  std::istringstream words(text.substr(
      text.find("// RUN:") + 7, text.find('\n', text.find("// RUN:")) - text.find("// RUN:") - 7));
  std::vector<std::string> passes;
  std::string target = "x86-64-v3";
  for (std::string word; words >> word;) {
    if (word.rfind("target=", 0) == 0) {
      target = word.substr(7);
    } else {
      passes.push_back(word);
    }
  }
  try {
    std::string input = text.substr(0, text.find("// ----\n"));
    PipelineResult state;
    state.lowered = input.find("\nprogram ") != std::string::npos;
    if (state.lowered) {
      state.program = loop::parse_program(input);
    } else {
      state.module = parse_module(input);
      if (!state.module.functions.count("main")) return;
    }
    tally.add(path.string(), check(state, passes, resolve_target(target)));
  } catch (const std::exception& error) {
    tally.add(path.string(), error.what());
  }
}

int run(const std::vector<std::string>& words) {
  Tally tally;
  if (words.size() == 2 && words[0] == "--golden") {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(words[1])) {
      bool fails = entry.path().filename().string().rfind("fail_", 0) == 0;
      if (entry.path().extension() == ".ir" && !fails) check_golden(entry.path(), tally);
    }
    return tally.finish();
  }
  fs::path root;
  if (words.size() == 2 && words[0] == "--models") root = words[1];
  if (words.size() == 1 && words[0] == "--reference") {
    const char* folder = std::getenv("BACKCAST_MODELS");
    if (!folder) {
      fmt::print("BACKCAST_MODELS is not set: no reference models to check\n1 passed, 0 failed\n");
      return 0;
    }
    root = folder;
  }
  if (root.empty()) return 2;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    std::string name = entry.path().filename().string();
    bool is_integer_model = name.find("int8") != std::string::npos;
    if (fs::exists(entry.path() / "model.onnx") && !is_integer_model)
      check_model(entry.path(), tally);
  }
  return tally.finish();
}

}  // namespace
}  // namespace backcast

int main(int argc, char** argv) {
  return backcast::run(std::vector<std::string>(argv + 1, argv + argc));
}
