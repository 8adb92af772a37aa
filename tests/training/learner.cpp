#include "tests/training/learner.h"

#include <fmt/format.h>

#include "backend/llvm/jit.h"
#include "ir/graph/error.h"

namespace backcast::training {
namespace {

class JitLearner : public Learner {
 public:
  explicit JitLearner(const CompiledModel& model)
      : model_(model),
        program_(model.result.program, model.target),
        state_(program_.make_state()) {}

  std::vector<std::vector<Literal>> run(const std::vector<Call>& calls) override {
    std::vector<std::vector<Literal>> replies;
    for (const Call& call : calls) replies.push_back(one(call));
    return replies;
  }

 private:
  std::vector<Literal> one(const Call& call) {
    if (call.function == "init") {
      state_ = program_.make_state(static_cast<uint64_t>(call.inputs.at(0).as_int(0)));
      return {};
    }
    if (call.function == "get_parameters") return {parameters()};
    return program_.run(call.function, call.inputs, state_);
  }

  Literal parameters() {
    const StateAbi& state = model_.abi.state;
    const ElementType element = state.flat_type == "double" ? ElementType::f64 : ElementType::f32;
    std::vector<std::byte> bytes(static_cast<size_t>(state.parameter_count * byte_size(element)));
    using Get = int32_t (*)(const void*, void*);
    const Get get = reinterpret_cast<Get>(program_.symbol(model_.abi.prefix + "_get_parameters"));
    const int32_t status = get(state_.data(), bytes.data());
    BC_CHECK(status == 0, "get_parameters answers {}", status);
    return Literal(element, {state.parameter_count}, std::move(bytes));
  }

  const CompiledModel& model_;
  CompiledProgram program_;
  StateMemory state_;
};

class DeviceLearner : public Learner {
 public:
  DeviceLearner(const CompiledModel& model, Emit emit) : image_({&model}, emit) {}

  std::vector<std::vector<Literal>> run(const std::vector<Call>& calls) override {
    std::vector<DeviceCall> orders;
    for (const Call& call : calls) {
      DeviceCall order;
      order.entry = call.function;
      order.inputs = call.inputs;
      orders.push_back(std::move(order));
    }
    std::vector<std::vector<Literal>> replies;
    for (DeviceReply& reply : image_.run(orders)) {
      const std::string& function = calls[replies.size()].function;
      BC_CHECK(reply.status == 0, "{} answers {}", function, reply.status);
      BC_CHECK(reply.findings.empty(), "{}: {}", function, reply.findings);
      replies.push_back(std::move(reply.outputs));
    }
    return replies;
  }

 private:
  DeviceImage image_;
};

}  // namespace

std::unique_ptr<Learner> make_jit_learner(const CompiledModel& model) {
  return std::make_unique<JitLearner>(model);
}
std::unique_ptr<Learner> make_device_learner(const CompiledModel& model, Emit emit) {
  return std::make_unique<DeviceLearner>(model, emit);
}

}  // namespace backcast::training
