// Computes in wider floats than a module says.
#pragma once

#include <set>
#include <string>

#include "ir/graph/module.h"

namespace backcast {

/// In double precision: the reference that single precision is held against.
///   Ensures: every floating-point tensor (parameters, constants, what casts and counts give, the
///   state) is f64; casts that this makes idle are gone. Integers and shapes stay. A model that
///   quantises to a small float type loses that rounding.
Module promote_f64(const Module& module);

struct HalfPromotion {
  std::set<std::string> learned = {};  // initializers that become f32, to learn by small steps
  bool results = false;                // of entries become f32 as well
};

/// f16 and bf16 in single precision, which keeps more bits than either asks for.
///   Requires: entries that nothing calls.
///   Ensures: half floats are what entries take and give, constants that are converted where they
///   are read, and what a wider float is cast to, which rounds as before; all else is f32.
Module promote_halves(const Module& module, const HalfPromotion& how = {});
/// Whether a tensor of the module is of such a type.
bool has_halves(const Module& module);

}  // namespace backcast
