// Text of `name.h`: what a caller of a compiled model includes. The contract is shown by
// hand-written examples in tests/headers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backend/library/abi.h"

namespace backcast {

struct HeaderOptions {
  std::string model_file;  // "kws.onnx", without folders
  std::string target;      // "cortex-m4"
  std::string version;     // of Backcast
  int64_t stack_bytes = 0;
  /// Is `stack_bytes` what local variables take rather than a bound on the machine code?
  bool stack_is_estimate = false;
  std::string training;     // "training with cross-entropy and momentum, batch 4"; empty: not said
  std::string promise;      // "valid for inputs within ±1e+06"; empty: for all
  std::string stream = {};  // what a call takes and gives of sequences; empty: there are none
  int64_t first_call = 1;   // of a sequence, all of whose outputs hold
  bool has_section = true;  // constants lie in one of their own, .rodata.NAME
};

/// Equal input gives equal text: no date, no path.
std::string header_text(const Abi& abi, const HeaderOptions& options);

/// runtime-c/include/bc_types.h as it was when Backcast was built.
std::string_view bc_types_text();

/// `text` made harmless inside a C comment and free of control characters.
std::string comment_text(std::string_view text);

}  // namespace backcast
