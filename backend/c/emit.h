// Program → readable C99, with the vectors of GNU C where the target has vectors: one static
// function per kernel, constants, and the entry points of backend/library/abi.h. Decides nothing:
// the loop IR says it all, and the result computes the same bits as the interpreter and the LLVM
// emission.
#pragma once

#include <string>

#include "backend/library/header.h"
#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

struct CSource {
  std::string source;          // name.c
  std::string header;          // name.h
  std::string constants_bin;   // name.constants.bin, beside the source; empty: all in the source
  std::string constants_name;  // "name.constants.bin"
  /// Compiler command that the source's opening comment gives.
  std::string command;
  /// Bytes of local arrays and variables of the deepest call; what a compiler spills comes on top.
  int64_t stack_bytes = 0;
};

struct COptions {
  HeaderOptions header;
  /// Constants of more bytes than this in total go into a binary file.
  int64_t inline_constants = 1 << 20;
  /// Hooks get the names of the model's nodes; without, null.
  bool names = true;
  /// A compilation without the target's options ends at once; otherwise it goes as far as it can.
  bool needs_options = true;
};

/// A planned, legalised program as C. InternalError for what the target cannot do without a math
/// library (fma, sqrt and rounding it has no instruction for) and for what has not been lowered
/// (definitions, multi-dimensional accesses, arithmetic on f16).
CSource emit_c(const loop::Program& program, const TargetInfo& target,
               const COptions& options = {});

}  // namespace backcast
