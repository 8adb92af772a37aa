// Reads ONNX's test data and compares results by ONNX's rule.
#include "tests/support/onnx_case.h"

#include <algorithm>
#include <cmath>

#include "frontend/onnx_tensors.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

namespace fs = std::filesystem;

std::vector<Literal> load_tensors(const fs::path& folder, const char* kind) {
  std::vector<Literal> result;
  while (true) {
    const fs::path file = folder / fmt::format("{}_{}.pb", kind, result.size());
    if (!fs::exists(file)) return result;
    result.push_back(read_tensor_pb(file.string()));
  }
}

bool is_close(double actual, double expected, double rtol, double atol) {
  if (std::isnan(actual) || std::isnan(expected)) return std::isnan(actual) && std::isnan(expected);
  if (std::isinf(actual) || std::isinf(expected)) return actual == expected;
  return std::abs(actual - expected) <= atol + rtol * std::abs(expected);
}

}  // namespace

std::vector<OnnxDataSet> load_data_sets(const fs::path& folder) {
  std::vector<OnnxDataSet> result;
  while (true) {
    const std::string name = fmt::format("test_data_set_{}", result.size());
    if (!fs::is_directory(folder / name)) return result;
    result.push_back(
        {name, load_tensors(folder / name, "input"), load_tensors(folder / name, "output")});
  }
}

std::vector<fs::path> find_onnx_cases(const fs::path& root) {
  std::vector<fs::path> result;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "model.onnx")) result.push_back(entry.path());
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::string first_difference(const Literal& actual, const Literal& expected, double rtol,
                             double atol) {
  if (actual.element() != expected.element() || actual.shape() != expected.shape()) {
    return fmt::format("is {}, expected {}", to_string(actual.type()), to_string(expected.type()));
  }
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    const bool close = is_float(actual.element())
                           ? is_close(actual.as_double(i), expected.as_double(i), rtol, atol)
                           : actual.as_int(i) == expected.as_int(i);
    if (!close) {
      return fmt::format("element {} is {}, expected {}", i, actual.as_double(i),
                         expected.as_double(i));
    }
  }
  return {};
}

}  // namespace backcast
