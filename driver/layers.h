// What each ONNX node of a model costs, before anything is optimised: multiply-accumulates, bytes
// of its result, bytes of the initializers it reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/import.h"

namespace backcast {

struct Layer {
  std::string name, op_type;    // of the ONNX node
  std::string result;           // "f32[N,64]", the first where there are several
  int64_t results = 0;          // how many
  int64_t result_bytes = 0;     // of all of them, at the symbols' maxima
  int64_t parameter_bytes = 0;  // of initializers, which other layers may read as well
  int64_t macs = 0;
};

struct LayerTable {
  std::vector<Layer> layers;  // in the order in which they run
  int64_t parameters = 0;     // elements of all initializers, each counted once
  int64_t parameter_bytes = 0;
  int64_t macs = 0;
  std::string no_macs;  // why the model cannot be lowered; empty when `macs` are known
};

LayerTable layers_of(const ImportedModel& model);

}  // namespace backcast
