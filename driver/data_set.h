// ONNX's test data: a folder with model.onnx and test_data_set_K/{input,output}_J.pb.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "frontend/import.h"
#include "ir/graph/literal.h"
#include "ir/graph/module.h"

namespace backcast {

struct DataSet {
  std::string name;  // test_data_set_0
  std::vector<Literal> inputs, outputs;
};

/// The data sets of a folder in order, none when it has none. CompileError when a tensor cannot be
/// read.
std::vector<DataSet> read_data_sets(const std::filesystem::path& folder);

/// Has the importer of a model know the inputs' shapes; a set may leave out those that
/// ImportOptions::constants name.
void add_shapes(const std::vector<DataSet>& sets, const std::string& model, ImportOptions& options);

/// What a data set gives for the inputs that ImportOptions::constants left; CompileError where it
/// has another value for one of those that were made constant.
std::vector<Literal> remaining_inputs(const DataSet& set, const ImportedModel& model);

/// The folders in `root` that hold a model.onnx, sorted by name.
std::vector<std::filesystem::path> find_cases(const std::filesystem::path& root);

/// Results of the imported function `main` under the evaluator, in the model's order.
std::vector<Literal> evaluate_main(const Module& module, const std::vector<Literal>& inputs);

}  // namespace backcast
