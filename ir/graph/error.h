// Two kinds of error. CompileError: the user's input is at fault (exit status 1, one clear message
// with a remedy). BC_CHECK: Backcast is at fault (exit status 2).
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "ir/graph/loc.h"

namespace backcast {

/// The user's input cannot be compiled. `what()` is the whole message: `node "conv1" (Conv): …`;
/// the driver puts the file's name in front. Several errors of one run are joined by newlines.
class CompileError : public std::runtime_error {
 public:
  explicit CompileError(const std::string& message) : std::runtime_error(message) {}
  CompileError(const Loc& loc, const std::string& message)
      : std::runtime_error(loc.node.empty() ? message : loc.describe() + ": " + message) {}
};

/// A broken invariant of Backcast itself.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void internal_error(const char* file, int line, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: {}", file, line, message));
}

}  // namespace backcast

/// BC_CHECK(condition, "format", arguments…): throws InternalError when the condition is false.
#define BC_CHECK(condition, ...)                                                                \
  do {                                                                                          \
    if (!(condition)) ::backcast::internal_error(__FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)
