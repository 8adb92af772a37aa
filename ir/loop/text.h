// Text form of loop IR. What prints also parses, to an equal program.
//
//   program @net
//   symbol N in 1..8
//   buffer %x : f32[N,64] input
//   buffer %w : f32[64,32] constant #1f3c… align 64
//   buffer %t0 : f32[N,32] arena offset 0
//   kernel @fc1(x: f32[N,64] read, w: f32[64,32] read, y: f32[N,32] write) sizes(N) {
//     for i in 0 .. N {
//       alloc acc : f32x8[4] registers
//       store y[i*32] = load f32x8 acc[0]
//     }
//   }
//   entry @run(%x) -> (%y) {
//     call @fc1(%x, %w, %t0) sizes(N)
//   }
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ir/loop/program.h"

namespace backcast::loop {

std::string print(const Expr& expr);
std::string print(const Stmt& stmt, int indent = 0);
std::string print(const Kernel& kernel);
/// Without its name and the nodes it computes: the same for kernels that do the same.
std::string print_anonymous(Kernel kernel);
std::string print(const MathFunction& function);
/// Constants of more than 16 elements print as shape and hash; print_constants() is their side file
/// (same format as graph IR's).
std::string print(const Program& program);
std::string print_constants(const Program& program);

/// CompileError with line and column; never crashes, whatever the bytes.
Program parse_program(std::string_view text, std::string_view constants = {});
Kernel parse_kernel(std::string_view text);
std::map<std::string, MathFunction> parse_functions(std::string_view text);

bool equal(const Stmt& a, const Stmt& b);
bool equal(const Kernel& a, const Kernel& b);
bool equal(const Program& a, const Program& b);

}  // namespace backcast::loop
