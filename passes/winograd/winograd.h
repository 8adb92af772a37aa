// Winograd's minimal filtering, F(2×2, 3×3) and F(4×4, 3×3), for convolutions of stride 1 and their
// gradients: 2.25 and 4 times fewer multiplications, for additions and for room
// (A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015).
//   Requires: fused definitions, nothing scheduled yet.
//   Ensures: the same values but for rounding. A layer's kernel becomes three stages: patches of
//   the input transformed into frequencies (statements), one matrix product per frequency (a
//   definition, for the scheduler of contractions), and the inverse transform with the layer's own
//   epilogue (statements). They work on blocks of tiles, one after another, so that what they keep
//   in between stays small. Weights are transformed at compile time or, where they are not
//   constant, by a step of their own before the layer's (a definition). The gradient with respect
//   to weights becomes a step that sums such products over all tiles, and one (a definition) that
//   transforms the sums back and does what followed them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

/// `automatic` takes what the cost model finds faster (choice.h), on microcontrollers
/// without more weights in flash than F(2×2) has, and within the room there is; `on` takes it
/// wherever it is possible; `f2` and `f4` take that form wherever it is possible. All keep
/// kWinogradBound.
enum class WinogradMode : uint8_t { off, automatic, on, f2, f4 };

/// Most that a layer's error may be, relative to its largest result: of f32, on random data, with
/// the layer's own weights where they are constant, against double.
inline constexpr double kWinogradBound = 1e-5;

/// What was decided for a layer that has the shape for it.
struct WinogradLayer {
  std::string node;
  int tile = 0;                          // outputs per side: 2 or 4; 0: computed directly
  double error = 0, direct_error = 0;    // measured, relative to the largest result
  double cycles = 0, direct_cycles = 0;  // by the model
  int64_t weight_bytes = 0, scratch_bytes = 0;
};

struct WinogradNotes {
  std::vector<WinogradLayer> layers;  // those that could be transformed, in order
  int64_t room = 0;                   // that was kept to; 0: no need to
};

struct WinogradOptions {
  WinogradMode mode = WinogradMode::off;
  /// What the arena may take by a plan of the program as it is then, where memory is short
  /// (TargetInfo::is_microcontroller) and the choice is automatic; none: as much as without the
  /// pass.
  std::optional<int64_t> room = {};
  /// That the caller will have: so many parts of a layer get scratch of their own.
  int64_t threads = 1;
};

loop::Program winograd(const loop::Program& program, const TargetInfo& target,
                       const WinogradOptions& options, WinogradNotes* notes = nullptr);

}  // namespace backcast
