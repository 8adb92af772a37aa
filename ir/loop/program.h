// The program: kernels called on places. Buffers are constants, inputs, outputs, state or arena;
// the plan gives arena buffers their offsets; an entry point is a sequence of calls.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph/literal.h"
#include "ir/graph/state_role.h"
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
  Literal value;          // constant; state: what init puts there (zeros where it has no data)
  /// Part of another buffer: starts `view_offset` elements into buffer `view_of` (-1: own storage).
  int32_t view_of = -1;
  Dim view_offset;
  int64_t offset = -1;  // once planned: bytes from the start of the arena, or of the state
  Loc loc;
  StateRole role = StateRole::parameter;  // state
  /// State that is trained in part: elements from `slice_start` on along `slice_axis` of the
  /// model's initializer; -1: all of it.
  int32_t slice_axis = -1;
  int64_t slice_start = 0;
  /// State that lies in another order than the model has it: for every dimension of `shape` and
  /// `value` the model's. Empty: the model's order. `slice_axis` is one of the model's.
  std::vector<int32_t> order;
};

/// The shape that a state has in the model.
Dims model_shape(const Buffer& buffer);

/// Index into Program::buffers.
using BufferId = int32_t;

enum class StepKind : uint8_t { call, copy, loop, branch, check_finite };
/// call: kernel(buffers…, sizes…). copy: buffers[1] ← buffers[0], whole.
///   With a `grain`, its last two sizes, 0 and n, are a range of iterations that may be cut into
///   pieces of at least so many, done in any order and at the same time.
/// loop: `symbol` counts 0 … count-1 (`reverse`: down) around `body`; buffers are {trips (i64
///   scalar) or -1, condition (bool scalar) or -1}: trips bounds the count further, and the
///   condition is read before every trip and ends the loop when false. Reversed, it counts from the
///   number of trips - 1. View offsets and sizes inside the body may mention the symbol.
/// branch: buffers[0] (bool scalar) chooses `body` or `otherwise`.
/// check_finite: the entry point ends with a status when buffers[0] (a float scalar) is infinite or
///   NaN. Steps write state only after it.
struct Step {
  StepKind kind = StepKind::call;
  std::string kernel;
  std::vector<BufferId> buffers;  // call: one per BufferParam
  std::vector<Dim> sizes;         // one per Kernel::sizes
  int64_t grain = 0;              // call: fewest iterations of a piece; 0: one piece
  Loc loc;
  std::string symbol;  // loop
  Dim count;
  bool reverse = false;
  std::vector<Step> body, otherwise;
};

/// What the integers of an input may be; anything else is refused before the first step.
struct ValueRange {
  int64_t min = 0, max = 0;
  std::optional<int64_t> ignore;  // allowed too
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

struct EntryPoint {
  std::string name = "run";
  std::vector<BufferId> inputs, outputs;  // in the model's order
  std::vector<Step> steps;
  std::map<BufferId, ValueRange> ranges;  // of inputs
  /// Outputs the caller may leave out; a step that writes one is then skipped (it writes nothing
  /// else, and nothing reads the output).
  std::set<BufferId> optional_outputs;
  /// i64 scalars that say how large others are: the symbol has this value, taken into its range,
  /// once a step has written it. They are outputs where an output mentions the symbol.
  std::map<BufferId, std::string> extents;
  /// State (i32 or u32 scalar) that must not be zero when the entry point is called; -1: none.
  BufferId required_count = -1;
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
  int64_t state_bytes = 0;  // planned: header and state buffers
  int64_t state_alignment = 1;
  int64_t batch = 0;       // examples of a training step, for the header; 0: not said
  int64_t accumulate = 0;  // training steps per update; 0: a step updates
  /// Hash of the model's constants and initial values, the same for every target: states and their
  /// checkpoints are tied to it. 0: those of the program take its place.
  uint64_t model_hash = 0;

  const Buffer& buffer(BufferId id) const { return buffers[static_cast<size_t>(id)]; }
  /// Bytes of storage at the symbols' maxima.
  int64_t storage_bytes(BufferId id) const;
  /// Follows views: the buffer that owns the storage.
  BufferId owner(BufferId id) const;
  /// Makes every view of its owner's class, after a pass has given storage another one.
  void update_view_classes();
  /// The state buffers that own storage, in the order of the state: parameters, statistics, the
  /// rest, each in the order of `buffers`. Empty: the program has no state.
  std::vector<BufferId> states() const;
};

/// Bytes at the start of the state, before the first variable:
/// u32 magic, u32 ABI version, u64 model hash, u64 generation (0: not initialised), u64 reserved.
inline constexpr int64_t kStateHeaderBytes = 32;

}  // namespace backcast::loop
