// See vector_parts.h.
#include "backend/c/vector_parts.h"

#include <fmt/format.h>

namespace backcast::c_backend {

using loop::Type;

namespace {

std::string lanes_from(int32_t first, int32_t lanes) {
  std::string list;
  for (int32_t lane = 0; lane < lanes; ++lane) list += fmt::format(", {}", first + lane);
  return list;
}

std::string shuffled(const std::string& a, const std::string& b, const std::string& list) {
  return fmt::format("__builtin_shufflevector({}, {}{})", a, b, list);
}

}  // namespace

std::string by_registers(Prelude& prelude, Type type, Type result,
                         const std::vector<std::string>& operands,
                         const VectorOperation& operation) {
  const int32_t lanes = type.lanes;
  const auto on = [&](Type part, const std::string& list) {
    std::vector<std::string> parts;
    for (const std::string& name : operands) parts.push_back(shuffled(name, name, list));
    return operation(prelude, part, parts);
  };
  if (lanes < 4) {
    std::string list;
    for (int32_t lane = 0; lane < 4; ++lane) list += fmt::format(", {}", lane % lanes);
    const Type whole = type.with_lanes(4);
    return fmt::format("  const {} r = {};\n  return {};\n", prelude.type(result.with_lanes(4)),
                       on(whole, list), shuffled("r", "r", lanes_from(0, lanes)));
  }
  const Type half = type.with_lanes(lanes / 2);
  const std::string low = on(half, lanes_from(0, half.lanes));
  const std::string high = on(half, lanes_from(half.lanes, half.lanes));
  return fmt::format("  const {0} low = {1};\n  const {0} high = {2};\n  return {3};\n",
                     prelude.type(result.with_lanes(half.lanes)), low, high,
                     shuffled("low", "high", lanes_from(0, lanes)));
}

std::string by_lanes(Type type, const std::string& scalar_form) {
  return fmt::format("  for (int lane = 0; lane < {}; ++lane) r[lane] = {};\n", type.lanes,
                     scalar_form);
}

}  // namespace backcast::c_backend
