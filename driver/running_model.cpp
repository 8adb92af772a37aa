#include "driver/running_model.h"

#include "driver/device.h"
#include "driver/stream_feed.h"

namespace backcast {

RunningModel::RunningModel(const CompileRequest& request)
    : model_(compile_model(request)), program_(model_.result.program, model_.target) {}

std::vector<Literal> RunningModel::run(const std::vector<Literal>& inputs) const {
  if (model_.result.notes.stream.inputs.empty()) {
    return program_.run("run", inputs, sizes_for(model_.result.program, inputs));
  }
  const StreamFeed feed(model_.result.notes.stream, inputs);
  std::vector<std::vector<Literal>> outputs;
  if (model_.abi.state.bytes == 0) {
    for (int64_t i = 0; i < feed.calls(); ++i)
      outputs.push_back(program_.run("run", feed.inputs(i)));
    return feed.joined(outputs);
  }
  StateMemory state = program_.make_state();
  for (int64_t i = 0; i < feed.calls(); ++i) {
    outputs.push_back(program_.run("run", feed.inputs(i), state));
  }
  return feed.joined(outputs);
}

}  // namespace backcast
