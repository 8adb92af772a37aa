// The state's part of the ABI (abi.h): table of variables, functions.
#include <algorithm>
#include <set>

#include "backend/library/abi.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

bool is_all_zero(const Literal& value) {
  const std::span<const std::byte> bytes = value.bytes();
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// 16·kind + bytes; kinds: 0 bool, 1 unsigned, 2 signed, 3 float, 4 bfloat.
uint8_t checkpoint_element(ElementType element) {
  int kind = 1;
  if (element == ElementType::boolean) kind = 0;
  if (is_integer(element) && name_of(element)[0] == 'i') kind = 2;
  if (is_float(element)) kind = element == ElementType::bf16 ? 4 : 3;
  return static_cast<uint8_t>(16 * kind + byte_size(element));
}

/// What a state's order makes of the model's axes: up to three runs that change places.
std::array<int64_t, 3> runs_of(const loop::Buffer& buffer) {
  std::vector<int64_t> extents;  // of the runs in the order of the state
  for (size_t i = 0; i < buffer.order.size(); ++i) {
    const bool goes_on = i > 0 && buffer.order[i] == buffer.order[i - 1] + 1;
    const int64_t extent = buffer.shape[i].constant();
    if (goes_on) {
      extents.back() *= extent;
    } else {
      BC_CHECK(i == 0 || buffer.order[i] < buffer.order[i - 1], "{} is no reversal", buffer.name);
      extents.push_back(extent);
    }
  }
  BC_CHECK(extents.size() <= 3, "state {} has more than three runs", buffer.name);
  if (extents.size() < 2) return {0, 0, 0};
  return {extents.back(), extents.size() == 3 ? extents[1] : 1, extents[0]};
}

StateVariableAbi variable_of(const loop::Program& program, loop::BufferId id) {
  const loop::Buffer& buffer = program.buffer(id);
  StateVariableAbi variable;
  variable.buffer = id;
  variable.name_hash = name_hash(buffer.loc.node.empty() ? buffer.name : buffer.loc.node);
  variable.offset = buffer.offset;
  variable.bytes = program.storage_bytes(id);
  variable.slice_axis = buffer.slice_axis;
  variable.slice_start = buffer.slice_start;
  variable.role = static_cast<uint8_t>(buffer.role);
  variable.element = checkpoint_element(buffer.element);
  variable.runs = runs_of(buffer);
  return variable;
}

void add_variable(const loop::Program& program, loop::BufferId id, StateAbi& state) {
  const loop::Buffer& buffer = program.buffer(id);
  state.variables.push_back(variable_of(program, id));
  if (buffer.role != StateRole::generator && !is_all_zero(buffer.value)) {
    const int64_t unit = byte_size(buffer.element);
    state.variables.back().initial = (state.initial_bytes + unit - 1) / unit * unit;
    state.initial_bytes = state.variables.back().initial + state.variables.back().bytes;
  }
  const bool is_parameter =
      buffer.role == StateRole::parameter || buffer.role == StateRole::statistic;
  const bool is_gradient = buffer.role == StateRole::gradient;
  if (is_parameter)
    state.parameter_count += state.variables.back().bytes / byte_size(buffer.element);
  if (is_parameter || is_gradient) {
    const std::string_view type = c_type_of(buffer.element);
    BC_CHECK(state.flat_type.empty() || state.flat_type == type,
             "parameters of two element types in one state");
    state.flat_type = type;
  }
  state.has_gradients = state.has_gradients || is_gradient;
  if (buffer.role != StateRole::rate) return;
  BC_CHECK(!state.has_rate || state.rate == buffer.element, "rates of two element types");
  state.has_rate = true;
  state.rate = buffer.element;
}

}  // namespace

uint64_t name_hash(std::string_view name) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (const char byte : name) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * UINT64_C(0x100000001b3);
  }
  return hash;
}

StateAbi state_of(const loop::Program& program) {
  StateAbi state;
  const std::vector<loop::BufferId> ids = program.states();
  if (ids.empty()) return state;
  if (program.state_bytes > UINT32_MAX) {
    throw CompileError(fmt::format("a state of {} bytes exceeds 4 GiB", program.state_bytes));
  }
  state.bytes = program.state_bytes;
  state.alignment = program.state_alignment;
  state.batch = program.batch;
  state.accumulate = program.accumulate;
  for (const loop::BufferId id : ids) add_variable(program, id, state);
  if (state.flat_type.empty()) state.flat_type = "float";
  return state;
}

std::vector<StateFunction> state_functions(const Abi& abi) {
  using Kind = StateFunction::Kind;
  if (abi.state.bytes == 0) return {};
  const std::string start = abi.prefix + "_";
  std::vector<StateFunction> functions = {{Kind::init, start + "init", "bc_state_init", 0}};
  if (abi.state.has_rate) {
    functions.push_back(
        {Kind::set_learning_rate, start + "set_learning_rate", "bc_state_set_rate", 0});
  }
  if (abi.state.parameter_count > 0) {
    functions.push_back({Kind::get, start + "get_parameters", "bc_state_get", kParameterRoles});
    functions.push_back({Kind::set, start + "set_parameters", "bc_state_set", kParameterRoles});
  }
  if (abi.state.has_gradients) {
    functions.push_back({Kind::get, start + "get_gradients", "bc_state_get", kGradientRoles});
    functions.push_back({Kind::set, start + "set_gradients", "bc_state_set", kGradientRoles});
  }
  functions.push_back({Kind::save, start + "save", "bc_state_save", 0});
  functions.push_back({Kind::load, start + "load", "bc_state_load", 0});
  for (const StateFunction& function : functions) {
    for (const EntryAbi& entry : abi.entries) {
      BC_CHECK(entry.symbol != function.symbol, "an entry point bears the name {}", entry.symbol);
    }
  }
  return functions;
}

}  // namespace backcast
