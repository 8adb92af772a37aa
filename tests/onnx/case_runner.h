// One ONNX node case: a model and data sets with expected outputs.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/compiler.h"
#include "driver/data_set.h"
#include "ir/graph/literal.h"

namespace backcast {

struct NodeCase {
  std::string name;  // test_relu
  std::filesystem::path folder;
  std::vector<DataSet> sets;
  CompiledModel model;  // imported; lowered unless only the evaluator is asked
  std::string error;    // why it could not be read, imported or compiled
};

/// Reads and, for a target, compiles a case; never throws: see `error`.
NodeCase load_case(const std::filesystem::path& folder, const TargetInfo* target);

/// Outputs of one data set, or an error.
struct CaseResult {
  std::vector<Literal> outputs;
  std::string error;
};
CaseResult run_evaluator(const NodeCase& node_case, const DataSet& set);
CaseResult run_llvm(const NodeCase& node_case, const DataSet& set);

/// Compiles the C emission of many cases with the host's compiler into one shared object and runs
/// every data set. results[i][s] belongs to cases[i]->sets[s].
std::vector<std::vector<CaseResult>> run_c_batch(const std::vector<const NodeCase*>& cases);
/// The same as one image for a device.
std::vector<std::vector<CaseResult>> run_device_batch(const std::vector<const NodeCase*>& cases);

/// A list of cases, `name reason` a line; `#` starts a comment.
std::map<std::string, std::string> read_case_list(const std::string& path);

}  // namespace backcast
