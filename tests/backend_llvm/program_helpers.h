// Small programs for the tests of the LLVM backend, and the comparison with the interpreter.
#pragma once

#include <string>
#include <vector>

#include "backend/llvm/emit.h"
#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast::testing {

/// A program `t` whose entry point calls one kernel: its read buffers are the inputs, its written
/// ones the outputs, in order. Math functions that the kernel calls are taken from the library.
loop::Program single_kernel(loop::Kernel kernel, const SymbolRanges& symbols = {});

/// Machines of this host's architecture that can run here: the host, and on x86 its baseline.
std::vector<TargetInfo> runnable_targets();

/// Runs the program on every runnable target, quick and optimised, and expects what the interpreter
/// gives, bit for bit; any NaN equals any NaN.
void expect_agreement(const loop::Program& program, const std::vector<Literal>& inputs);

/// Values of the type that expose wrong arithmetic: zeros, limits, denormals, infinities, NaN, and
/// pseudo-random ones. Always `count` of them.
Literal special_values(ElementType element, int64_t count, uint64_t seed);

loop::BufferParam read_buffer(const std::string& name, loop::Scalar element, Dims shape);
loop::BufferParam write_buffer(const std::string& name, loop::Scalar element, Dims shape);

}  // namespace backcast::testing
