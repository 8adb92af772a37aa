// The program: kernels called on places. Buffers are constants, inputs, outputs, state or arena;
// the plan gives arena buffers their offsets; an entry point is a sequence of calls.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph/literal.h"
#include "ir/graph/type.h"
#include "ir/loop/stmt.h"

namespace backcast::loop {

enum class BufferClass : uint8_t { constant, state, input, output, arena };

/// One place in memory. Storage takes the maximum of the shape over the symbols' ranges.
struct Buffer {
  std::string name;  // unique in the program; inputs and outputs: the model's names
  ElementType element = ElementType::f32;
  Dims shape;
  BufferClass kind = BufferClass::arena;
  int64_t alignment = 0;  // bytes; 0: the element's size
  Literal value;          // constant
  /// Part of another buffer: starts `view_offset` elements into buffer `view_of` (-1: own storage).
  int32_t view_of = -1;
  Dim view_offset;
  int64_t offset = -1;  // arena buffers, once planned: bytes from the arena's start
  Loc loc;
};

/// Index into Program::buffers.
using BufferId = int32_t;

enum class StepKind : uint8_t { call, copy };
/// call: kernel(buffers…, sizes…). copy: buffers[1] ← buffers[0], whole.
struct Step {
  StepKind kind = StepKind::call;
  std::string kernel;
  std::vector<BufferId> buffers;  // one per BufferParam
  std::vector<Dim> sizes;         // one per Kernel::sizes
  Loc loc;
};

struct EntryPoint {
  std::string name = "run";
  std::vector<BufferId> inputs, outputs;  // in the model's order
  std::vector<Step> steps;
};

struct Program {
  std::string name;  // a C identifier
  SymbolRanges symbols;
  std::vector<Buffer> buffers;
  std::map<std::string, Kernel> kernels;
  std::map<std::string, MathFunction> functions;  // what the kernels call, after legalisation
  std::vector<EntryPoint> entries;
  int64_t arena_bytes = 0;  // planned
  int64_t arena_bound = 0;  // lower bound (largest sum of live buffers)
  int64_t arena_alignment = 1;

  const Buffer& buffer(BufferId id) const { return buffers[static_cast<size_t>(id)]; }
  /// Bytes of storage at the symbols' maxima.
  int64_t storage_bytes(BufferId id) const;
  /// Follows views: the buffer that owns the storage.
  BufferId owner(BufferId id) const;
};

}  // namespace backcast::loop
