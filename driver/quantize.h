// A network in floating point becomes a quantised one, by what its values are for given data.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/running_model.h"
#include "frontend/quantise.h"

namespace backcast {

/// The inputs of several calls of a model, each in the model's order.
using Calls = std::vector<std::vector<Literal>>;

/// What formats are for: all that there was, or what leaves the least square error.
enum class Ranges { all, least_error };

/// Bits of weights: `fitting` are 4 wherever the outputs stay near enough to what 8 leave of them.
enum class WeightBits { eight, four, fitting };

struct QuantizeRequest {
  CompileRequest compile;             // of the model in floating point, for this machine
  std::vector<std::string> in_float;  // regular expressions for names of nodes
  WeightBits weight_bits = WeightBits::eight;
  std::vector<std::string> in_bytes;  // nodes whose weights keep 8 bits
  bool integer_inputs = false;
  bool weights_only = false;
  std::vector<Ranges> ranges = {Ranges::all};
};

struct QuantizedModel {
  std::string bytes;  // of the ONNX file
  Ranges ranges = Ranges::all;
  size_t products = 0, cells = 0, formats = 0;  // cells: recurrent layers
  size_t narrow = 0;                            // tensors of weights of 4 bits
  size_t weights = 0;                           // tensors, of weights_only
  std::vector<std::string> values;  // that are rounded, before which they have their names
  std::vector<std::string> left;    // see QuantisationPlan
  std::map<std::string, ValueFormat> inputs;     // that are i8 now
  std::shared_ptr<const RunningModel> original;  // the values, and these inputs, are results, too
};

/// Runs the model on the calls, which `compile.import_options` know the shapes of, and quantises it
/// for each kind of ranges that values have there; weights alone need no calls and have one form.
/// CompileError when nothing can be quantised.
std::vector<QuantizedModel> quantize_model(const QuantizeRequest& request, const Calls& calls);

/// How far a value is from what it should be, over all calls.
struct ValueError {
  std::string name;
  double signal = 0, noise = 0;  // sums of squares: of what was expected, of the difference
  double largest = 0;            // difference
  int64_t rows = 0, same = 0;    // along the last axis: those whose largest element is where it was
  double decibels() const;       // of signal to noise; infinite without noise
};

/// The outputs and behind them `model.values`, held against the original's for the calls, which the
/// model takes in the formats of its inputs. `request` is the original's.
std::vector<ValueError> compare_models(const QuantizedModel& model, CompileRequest request,
                                       const Calls& calls);

/// Of the first `outputs` of them, in the middle.
double mean_decibels(const std::vector<ValueError>& errors, size_t outputs);

}  // namespace backcast
