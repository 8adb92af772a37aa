// ONNX's test data: a folder with model.onnx and test_data_set_K/{input,output}_J.pb.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ir/graph/literal.h"

namespace backcast {

struct OnnxDataSet {
  std::string name;  // test_data_set_0
  std::vector<Literal> inputs, outputs;
};

/// The data sets of a case, in order. CompileError when a tensor cannot be read.
std::vector<OnnxDataSet> load_data_sets(const std::filesystem::path& folder);

/// The folders below `root` that hold a model.onnx, sorted by name.
std::vector<std::filesystem::path> find_onnx_cases(const std::filesystem::path& root);

/// The first difference by ONNX's rule: equal element types and shapes, and values within
/// `rtol * |expected| + atol`, integers exactly, NaN equal to NaN. Empty when there is none.
std::string first_difference(const Literal& actual, const Literal& expected, double rtol = 1e-3,
                             double atol = 1e-7);

}  // namespace backcast
