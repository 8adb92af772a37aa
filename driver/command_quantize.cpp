// backcast quantize MODEL.onnx --data x.npy -o OUT.onnx: floating point → 8-bit integers.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "driver/commands.h"
#include "driver/data_set.h"
#include "driver/import_flags.h"
#include "driver/input_files.h"
#include "driver/quantize.h"

namespace backcast {
namespace {

namespace fs = std::filesystem;

struct Options {
  QuantizeRequest request;
  ImportFlags import_flags;
  std::vector<std::string> data;
  std::string output, ranges = "auto", weight_bits = "8";
};

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

/// A file's rows, as many in each call as the model takes; a file of the input's own shape is one
/// call.
std::vector<Literal> calls_of(const Literal& data, const std::string& name,
                              std::vector<int64_t> shape) {
  const bool fits = data.shape().size() == shape.size() && !shape.empty() &&
                    std::equal(shape.begin() + 1, shape.end(), data.shape().begin() + 1);
  if (data.shape() == shape) return {data};
  if (!fits || shape[0] == 0 || data.shape()[0] % shape[0] != 0 || data.shape()[0] == 0) {
    throw CompileError(
        fmt::format("input \"{}\" takes {}, and its data is {}: the first extent may be a multiple",
                    name, shape_text(shape), shape_text(data.shape())));
  }
  std::vector<Literal> calls;
  const size_t count = static_cast<size_t>(data.shape()[0] / shape[0]);
  const size_t bytes = data.bytes().size() / count;
  for (size_t i = 0; i < count; ++i) {
    const std::span<const std::byte> part = data.bytes().subspan(i * bytes, bytes);
    calls.emplace_back(data.element(), shape, std::vector<std::byte>(part.begin(), part.end()));
  }
  return calls;
}

/// What the model takes of this data in its first call: all extents but the first are the data's.
std::vector<int64_t> shape_of(const Literal& data, const Type& declared) {
  std::vector<int64_t> shape = data.shape();
  const Shape& own = declared.tensor().shape;
  if (!shape.empty() && !own.empty() && own[0].is_constant()) shape[0] = own[0].constant();
  return shape;
}

Calls calls_of_files(const Options& o, ImportOptions& options) {
  const std::string& path = o.request.compile.model;
  const ImportedModel model = with_file_named(path, [&] { return import_model(path, options); });
  const std::vector<Literal> files = read_inputs("--data", o.data, model.input_names);
  std::vector<std::vector<Literal>> parts;
  size_t count = 1;
  const Function& main = model.module.function("main");
  for (size_t i = 0; i < files.size(); ++i) {
    const std::vector<int64_t> shape = shape_of(files[i], main.type(main.params[i]));
    parts.push_back(calls_of(files[i], model.input_names[i], shape));
    options.shapes[model.input_names[i]] = {shape};
    count = std::max(count, parts.back().size());
  }
  Calls calls(count);
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_same = parts[i].size() == 1;  // in all calls
    if (!is_same && parts[i].size() != count) {
      throw CompileError(fmt::format("--data gives {} calls, but {} for input \"{}\"", count,
                                     parts[i].size(), model.input_names[i]));
    }
    for (size_t k = 0; k < count; ++k) calls[k].push_back(parts[i][is_same ? 0 : k]);
  }
  return calls;
}

Calls calls_of_folder(const std::string& folder, const std::string& model, ImportOptions& options) {
  const std::vector<DataSet> sets = read_data_sets(folder);
  if (sets.empty()) throw CompileError(fmt::format("{}: no test_data_set_0 in it", folder));
  add_shapes(sets, model, options);
  Calls calls;
  for (const DataSet& set : sets) calls.push_back(set.inputs);
  return calls;
}

std::string several(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void print(const QuantizedModel& model, size_t calls) {
  if (model.weights > 0) {
    fmt::print("int8       {}\n", several(model.weights, "weight tensor"));
  } else {
    const std::string cells =
        model.cells > 0 ? " and " + several(model.cells, "recurrent layer") : "";
    fmt::print("int8       {}{} with {} in {}, ranges of {}{}\n",
               several(model.products, "product"), cells, several(model.values.size(), "value"),
               several(model.formats, "format"), several(calls, "call"),
               model.ranges == Ranges::least_error ? ", cut where that leaves less error" : "");
  }
  if (model.narrow > 0) fmt::print("int4       {}\n", several(model.narrow, "weight tensor"));
  for (const std::string& left : model.left) fmt::print("float      {}\n", left);
  for (const auto& [name, format] : model.inputs) {
    fmt::print("input      \"{}\" is int8: value = {:.9g} · (integer - {})\n", name, format.scale,
               format.zero);
  }
}

void print(const ValueError& error) {
  fmt::print("output     \"{}\": {:.1f} dB of signal to noise, largest error {:.3g}", error.name,
             error.decibels(), error.largest);
  if (error.rows > 0) {
    fmt::print("; largest element where it was in {} of {} rows", error.same, error.rows);
  }
  fmt::print("\n");
}

/// Where to look when a network has lost too much: the layers that `--float` may help.
void print_worst(std::vector<ValueError> errors) {
  std::ranges::sort(errors, {}, &ValueError::decibels);
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(errors.size(), 3); ++i) {
    text += fmt::format("{}\"{}\" {:.1f} dB", i ? ", " : "", errors[i].name, errors[i].decibels());
  }
  fmt::print("worst      {}\n", text);
}

Calls read_calls(const Options& o, ImportOptions& options) {
  if (o.data.empty() && o.request.weights_only) return {};
  if (o.data.empty()) {
    throw CompileError("--data says what the model will be given; only --weights-only needs none");
  }
  const bool is_folder = o.data.size() == 1 && fs::is_directory(o.data[0]);
  return is_folder ? calls_of_folder(o.data[0], o.request.compile.model, options)
                   : calls_of_files(o, options);
}

void print_errors(const QuantizedModel& model, const std::vector<ValueError>& errors) {
  const auto inner = errors.end() - static_cast<std::ptrdiff_t>(model.values.size());
  std::for_each(errors.begin(), inner, [](const ValueError& error) { print(error); });
  if (inner != errors.end()) print_worst({inner, errors.end()});
}

struct Candidate {
  QuantizedModel model;
  std::vector<ValueError> errors;  // of the outputs, then of the values within

  double decibels() const { return mean_decibels(errors, errors.size() - model.values.size()); }
};

void write(const std::string& file, const QuantizedModel& model) {
  const fs::path output = fs::absolute(file);
  write_files(output.parent_path().string(), {{output.filename().string(), model.bytes}});
}

std::vector<Ranges> parse_ranges(const std::string& word) {
  if (word == "auto") return {Ranges::all, Ranges::least_error};
  if (word == "all") return {Ranges::all};
  if (word == "least-error") return {Ranges::least_error};
  throw CompileError("--ranges " + word + ": choose one of auto, all, least-error");
}

/// Cutting ranges has to gain something: what was not among the data may lie outside.
constexpr double kLeastGain = 0.5;  // decibels

/// Of the files that could be written, the best; where there are calls, with how far its values are
/// from the model's.
Candidate best_of(std::vector<QuantizedModel> models, const CompileRequest& original,
                  const Calls& calls) {
  std::optional<Candidate> best;
  for (QuantizedModel& model : models) {
    Candidate made{std::move(model), {}};
    if (!calls.empty()) made.errors = compare_models(made.model, original, calls);
    if (!best || made.decibels() >= best->decibels() + kLeastGain) best = std::move(made);
  }
  return *best;
}

WeightBits parse_bits(const std::string& word) {
  if (word == "8") return WeightBits::eight;
  if (word == "4") return WeightBits::four;
  if (word == "auto") return WeightBits::fitting;
  throw CompileError("--weight-bits " + word + ": choose one of 8, 4, auto");
}

void check(const QuantizeRequest& request) {
  if (request.weight_bits != WeightBits::eight && request.weights_only) {
    throw CompileError(
        "--weights-only makes weights of 8 bits; 4 are for layers of integers, without it");
  }
  if (request.weight_bits == WeightBits::eight && !request.in_bytes.empty()) {
    throw CompileError("--byte-weights says what --weight-bits 4 leaves: give that as well");
  }
}

int run(Options& o) {
  o.request.weight_bits = parse_bits(o.weight_bits);
  check(o.request);
  o.request.ranges = parse_ranges(o.ranges);
  ImportOptions& import_options = o.request.compile.import_options;
  import_options = o.import_flags.options();
  const Calls calls = read_calls(o, import_options);
  const Candidate chosen = best_of(quantize_model(o.request, calls), o.request.compile, calls);
  write(o.output, chosen.model);
  print(chosen.model, calls.size());
  if (!calls.empty()) print_errors(chosen.model, chosen.errors);
  fmt::print("{}: {} bytes, of {}\n", o.output, chosen.model.bytes.size(),
             fs::file_size(o.request.compile.model));
  return 0;
}

}  // namespace

Action add_quantize(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("model", o->request.compile.model, "ONNX model in f32")->required();
  app.add_option("--data", o->data,
                 "what the model will be given, for the ranges of values: FILE or NAME=FILE, .npy "
                 "or .pb, with any number of examples along the first axis; or a folder with "
                 "test_data_set_0 and so on");
  app.add_option("-o,--output", o->output, "ONNX file to write")->required();
  app.add_flag(
      "--weights-only", o->request.weights_only,
      "weights become int8, and all is computed in floating point: no --data is needed, and "
      "with some it is said how much is lost");
  app.add_option("--float", o->request.in_float,
                 "layers that stay in floating point: a regular expression for names of nodes; "
                 "repeatable");
  app.add_option("--weight-bits", o->weight_bits,
                 "8, or 4: half the flash; auto: 4 where the outputs keep half of the signal to "
                 "noise that 8 bits leave (3 dB). Weights of 4 bits are rounded to where the "
                 "layer's results for the data are nearest; short sums (depthwise, the first "
                 "layer) keep 8")
      ->capture_default_str();
  app.add_option("--byte-weights", o->request.in_bytes,
                 "layers whose weights keep 8 bits: a regular expression for names of nodes; "
                 "repeatable");
  app.add_flag(
      "--integer-inputs", o->request.integer_inputs,
      "inputs that nothing but quantised layers read are int8, in a format that is printed");
  app.add_option("--ranges", o->ranges,
                 "what formats are for: all: every value that the data brought; least-error: the "
                 "part that 8 bits are best spent on, in square error; auto: the one that leaves "
                 "the outputs nearer to the model's")
      ->capture_default_str();
  o->import_flags.add_to(app);
  return [o] { return run(*o); };
}

}  // namespace backcast
