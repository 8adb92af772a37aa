// Math functions as C, compiled by the system's compiler and loaded: the fast evaluator of the
// tests and of the exhaustive sweep. C has the semantics the loop IR asks for (-fwrapv, no
// contraction).
#pragma once

#include <map>
#include <string>

#include "ir/loop/stmt.h"

namespace backcast::testing {

/// One C function per library function and a loop over arrays `batch_<name>(const void* const*
/// arguments, void* results, long count)` for each.
std::string translate_to_c(const std::map<std::string, loop::MathFunction>& functions);

/// A compiled library. Throws std::runtime_error when the compiler fails.
class CompiledFunctions {
 public:
  explicit CompiledFunctions(const std::map<std::string, loop::MathFunction>& functions);
  CompiledFunctions(const CompiledFunctions&) = delete;
  ~CompiledFunctions();

  using Batch = void (*)(const void* const* arguments, void* results, long count);
  Batch batch(const std::string& function) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace backcast::testing
