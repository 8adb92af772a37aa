// Networks in floating point become quantised ones: 8-bit integers in ONNX's own terms
// (QuantizeLinear, DequantizeLinear), so that whatever reads ONNX can run the result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "frontend/graph_edit.h"
#include "frontend/onnx_model.h"
#include "frontend/quantise_plan.h"
#include "frontend/quantised_parts.h"
#include "frontend/round_weights.h"

namespace backcast {

struct ObservedRange {
  double low = 0, high = 0;
};

/// What running the model tells about a plan: by name, the ranges of `observed()` and the values of
/// `computed`; by place, what weights of 4 bits are multiplied by.
struct Observation {
  std::map<std::string, ObservedRange> ranges;
  ComputedConstants computed;
  std::map<GraphEdit::Place, std::vector<Moments>> moments;
};

struct QuantisedGraph {
  GraphEdit edit;
  std::map<std::string, ValueFormat> inputs;  // of the graph that are integers from now on
  std::map<GraphEdit::Place, double> noise;   // of weights of 4 bits, for each (RoundedWeights)
};

/// What carries out a plan for a graph. Values are i8 with
/// one scale and zero point each, so that zero and the whole range are representable; weights are
/// i8 in -127..127 with a scale for each output channel, or in -8..7 as round_weights makes them;
/// biases i32 by the product of both scales (Jacob et al., 2018). BatchNormalization behind a
/// convolution goes into its weights. With `integer_inputs` the caller quantises those inputs of
/// the graph that are read as integers alone. Below opset 13, which knows no scale per channel, the
/// operators are ONNX Runtime's. CompileError when a range is not finite, or when data cannot be
/// read.
QuantisedGraph quantise(const OnnxModel& model, const QuantisationPlan& plan,
                        const Observation& observation, bool integer_inputs,
                        const std::filesystem::path& model_dir);

}  // namespace backcast
