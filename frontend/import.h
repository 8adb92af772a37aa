// ONNX in, graph IR out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/literal.h"
#include "ir/graph/module.h"

namespace backcast {

/// What nodes mean that behave differently in training (BatchNormalization, Dropout).
enum class ImportMode {
  as_written,  // what their attribute or input training_mode says
  inference,   // running statistics, nothing dropped
  training     // statistics of the batch, which update the running ones; dropout
};

/// Adds `<function>_vjp` to a module: the parameters of the function, then one cotangent per
/// result, to the tuple of the adjoints of the named parameters. `add_vjp` of passes/graph is one.
using Differentiator = std::function<Module(const Module& module, const std::string& function,
                                            const std::vector<std::string>& by)>;

/// Positions of a sequence that has no length of its own: many, and divisible by what strides and
/// joined positions are likely to be.
inline constexpr int64_t kEndlessSequence = 5040;

struct ImportOptions {
  ImportMode mode = ImportMode::as_written;
  /// Values of symbolic dimensions by name: {8, 8} binds one to 8, {1, 8} keeps it symbolic within
  /// that range. A dimension that is not named here is what `shapes` say, or else 1, with a note.
  std::map<std::string, DimRange> dims;
  /// Shapes that inputs have in calls that are known already, by the inputs' names: a dimension
  /// ranges over its extents in them.
  std::map<std::string, std::vector<std::vector<int64_t>>> shapes;
  /// Axes along which inputs are sequences, by their names: a length that nothing says is
  /// kEndlessSequence, and ImportedModel::endless.
  std::map<std::string, int64_t> sequences;
  /// Inputs that are constants, by name: a value for all elements, or one for each in row-major
  /// order. CompileError when there is no such input, or when its type cannot hold a value.
  std::map<std::string, std::vector<double>> constants;
  /// Extent of the first dimension of the first input, whatever `dims` says of it; CompileError
  /// when the model fixes another.
  std::optional<int64_t> batch;
  /// How often a Loop runs at most whose number of trips only run time knows. What it stacks has
  /// that many rows; rows of trips that are not executed are zero.
  std::optional<int64_t> max_trips;
  /// Initializers that learn: quantised ones (ImportedModel::quantised_weights) are floating-point
  /// numbers, those that DequantizeLinear makes of them. Behind either nothing is rounded;
  /// rectifiers that a quantiser left to the format stay (frontend/unquantise.h).
  std::set<std::string> unquantised;
  /// Names for outputs that nodes of the graph leave out; `observed` may list them.
  struct NamedOutput {
    size_t node = 0, output = 0;
    std::string name;
  };
  std::vector<NamedOutput> named_outputs;
  /// Values of the graph that are results as well, behind its outputs, in this order.
  std::vector<std::string> observed;
  /// What the operator Gradient is imported with, for this folder knows no passes; without one it
  /// is an error.
  Differentiator differentiator;
};

/// An input that ImportOptions::constants names, and its place among the model's inputs.
struct ConstantInput {
  std::string name;
  size_t position = 0;
  Literal value;
};

struct ImportedModel {
  /// Entry function "main": the graph's inputs that are neither initializers nor
  /// `constant_inputs`, in the file's order, and behind them, where random numbers are drawn and
  /// the mode is not training, a seed, u32[]; its result is a tuple when the model has several
  /// outputs (or none).
  Module module;
  std::string name;  // of the graph
  std::vector<std::string> input_names, output_names;
  std::vector<ConstantInput> constant_inputs;
  int64_t opset = 0;
  /// The floating-point initializers of the graph in the file's order, as the constants' locations
  /// name them, without scales of quantised tensors. Those that BatchNormalization keeps as running
  /// statistics are listed apart.
  std::vector<std::string> parameter_names, running_statistics;
  /// Integer initializers of the file that ImportOptions::unquantised may name.
  std::vector<std::string> quantised_weights;
  bool endless = false;  // a sequence has kEndlessSequence positions because nobody knows how many
  bool quantises = false;  // in ImportMode::training: some node does
  /// Of ImportMode::training. `main` gives the new values of `updated_statistics` after the
  /// outputs, as results of the initializers' names. Where something is dropped or drawn, it has
  /// two parameters more: the key of the random generator, u32[2], and the i32 number of the step.
  /// Empty: it has not.
  std::vector<std::string> updated_statistics;
  std::string generator, step;
  /// What the user should know: dimensions that were chosen for them, ignored declarations.
  std::vector<std::string> notes;
};

/// ImportedModel::input_names of a model, without importing it.
std::vector<std::string> input_names(const std::string& path, const ImportOptions& options = {});

/// Reads a model. CompileError with every unsupported or invalid node of it, one per line; external
/// data is looked for in the model's own directory.
ImportedModel import_model(const std::string& path, const ImportOptions& options = {});

/// The same from memory; an empty `model_dir` refuses external data.
ImportedModel import_model_bytes(std::string_view bytes, const std::string& model_dir,
                                 const ImportOptions& options = {});

}  // namespace backcast
