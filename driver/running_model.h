// A model that is compiled in process.
#pragma once

#include <string>
#include <vector>

#include "backend/llvm/jit.h"
#include "driver/compiler.h"

namespace backcast {

class RunningModel {
 public:
  /// CompileError as compile_model; the target has to be one that runs here.
  explicit RunningModel(const CompileRequest& request);

  const std::vector<std::string>& input_names() const { return model_.imported.input_names; }
  const std::vector<std::string>& output_names() const { return model_.imported.output_names; }
  /// One call, in the model's order, or, of a stream, as many from its beginning as the sequence
  /// takes; CompileError where the inputs' shapes do not fit.
  std::vector<Literal> run(const std::vector<Literal>& inputs) const;

 private:
  CompiledModel model_;
  CompiledProgram program_;
};

}  // namespace backcast
