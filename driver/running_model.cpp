#include "driver/running_model.h"

#include <optional>

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
  std::optional<StateMemory> state;
  if (model_.abi.state.bytes > 0) state = program_.make_state();
  std::vector<std::vector<Literal>> outputs;
  for (int64_t i = 0; i < feed.calls(); ++i) {
    const std::vector<Literal> piece = feed.inputs(i);
    outputs.push_back(state ? program_.run("run", piece, *state) : program_.run("run", piece));
  }
  return feed.joined(outputs);
}

}  // namespace backcast
