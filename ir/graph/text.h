// The text form of graph IR: what prints also parses, to an equal module.
//
//   symbol N in 1..8
//   func @main(%x: f32[N,4]) -> f32[N,2] results("y") {
//     %0 = constant {value=f32[4,2] #8f3a… } : f32[4,2] loc("w", "initializer")
//     %1 = dot_general %x, %0 {lhs_contract=[1], rhs_contract=[0]} : f32[N,2] loc("fc1", "Gemm")
//     return %1
//   }
#pragma once

#include <string>
#include <string_view>

#include "ir/graph/module.h"

namespace backcast {

struct PrintOptions {
  bool locations = true;
  /// Constants of at most this many elements are printed in full, others as shape and hash, the
  /// data being found in the side file.
  int64_t max_inline_elements = 16;
  /// Where big constants are; printed in the first line as `constants "file"`.
  std::string side_file;
};

std::string print(const Module& module, const PrintOptions& options = {});
std::string print(const Function& function, const PrintOptions& options = {});

/// The side file's bytes: every constant that print() did not write in full.
std::string print_constants(const Module& module, const PrintOptions& options = {});

/// The name of the side file that the text's first line gives; empty when there is none.
std::string side_file_of(std::string_view text);

/// Big constants come from `constants` (contents of a side file) by hash. CompileError with line
/// and column. A node's `: type` may be left out, it is then inferred (a callee must come before
/// the call in that case), and so may `loc(…)`, which is then made from the value's name.
Module parse_module(std::string_view text, std::string_view constants = {});

}  // namespace backcast
