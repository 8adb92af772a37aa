// The interpreter's machine: instructions on typed slots of a frame. Internal to ir/loop.
//
// A value of n lanes takes n slots of 8 bytes; a lane lies in the low bytes of its slot as its own
// type (bool as 0 or 1, index as i64, f16 and bf16 as bit patterns). Names are resolved to slots
// when a kernel is translated, so that a run touches no strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/loop/expr.h"

namespace backcast::loop::machine {

using Slot = uint64_t;

/// An array that loads and stores go to, with its live number of elements.
struct Array {
  std::byte* data = nullptr;
  int64_t count = 0;
};

struct Frame {
  Slot* slots = nullptr;
  Array* arrays = nullptr;
  std::vector<std::vector<std::byte>>* locals = nullptr;  // of allocations, by array
  const std::string* kernel = nullptr;
  const std::vector<std::string>* array_names = nullptr;
};

struct Instruction;
/// Executes one instruction and returns the next one; null at the end.
using Run = const Instruction* (*)(Frame&, const Instruction*);

struct Instruction {
  Run run = nullptr;
  int32_t to = 0;               // first slot of the result
  int32_t a = 0, b = 0, c = 0;  // first slots of the operands
  int32_t lanes = 1;
  int32_t array = 0;                                 // of loads, stores and allocations
  int64_t number = 0;                                // jump distance, element size, dimension
  const std::vector<int32_t>* lane_slots = nullptr;  // shuffle: source slots
};

/// These give null when the type does not have the operation.
Run unary_of(Op op, Scalar scalar);
Run binary_of(Op op, Scalar scalar);
Run reduction_of(Op op, Scalar scalar);  // a: `number` lanes, halved within the slots at `to`
Run fma_of(Scalar scalar);
Run cast_of(Scalar from, Scalar to);
Run ramp_of(Scalar scalar);

/// to[lane] = array[a + lane], array[a[lane]]; the index counts scalars, times `number`.
Run load_of(int64_t bytes, bool gather);
/// array[a + lane] = b[lane], array[a[lane]] = b[lane].
Run store_of(int64_t bytes, bool scatter);

const Instruction* run_select(Frame& f, const Instruction* i);
const Instruction* run_copy(Frame& f, const Instruction* i);
const Instruction* run_broadcast(Frame& f, const Instruction* i);
const Instruction* run_shuffle(Frame& f, const Instruction* i);
/// Bits of a, in elements of b bytes, as elements of c bytes; `lanes` of the result.
const Instruction* run_repack(Frame& f, const Instruction* i);
/// to = a * b + c after 0 <= c < b: flat indices, dimension after dimension.
const Instruction* run_flatten(Frame& f, const Instruction* i);
/// a counts elements of `number` bytes; fills the local array with garbage.
const Instruction* run_allocate(Frame& f, const Instruction* i);
const Instruction* run_jump(Frame& f, const Instruction* i);
const Instruction* run_jump_unless(Frame& f, const Instruction* i);  // a is false
/// to = a, b = a + extent c; jumps when there is no trip. run_next: ++to, jumps back until b.
const Instruction* run_enter_loop(Frame& f, const Instruction* i);
const Instruction* run_next(Frame& f, const Instruction* i);
const Instruction* run_end(Frame& f, const Instruction* i);

}  // namespace backcast::loop::machine
