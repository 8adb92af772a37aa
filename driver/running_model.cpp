#include "driver/running_model.h"

#include "driver/device.h"

namespace backcast {

RunningModel::RunningModel(const CompileRequest& request)
    : model_(compile_model(request)), program_(model_.result.program, model_.target) {}

std::vector<Literal> RunningModel::run(const std::vector<Literal>& inputs) const {
  return program_.run("run", inputs, sizes_for(model_.result.program, inputs));
}

}  // namespace backcast
