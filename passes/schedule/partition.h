// Cuts the axes of a definition where its conditions change, and joins axes that run through memory
// together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/loop/stmt.h"

namespace backcast {

/// The definition with other expressions in the place of its axes, wherever these are mentioned.
loop::Definition moved(loop::Definition definition,
                       const std::map<std::string, loop::Expr>& places);

/// Definitions over parts of the axes whose results' conditions on single axes are decided: padding
/// and concatenation without a test inside. One definition (the same) when nothing can be cut.
std::vector<loop::Definition> partition(const loop::Definition& definition);

/// One definition per phase of axes whose elements take part in a reduction only where a remainder
/// is zero (a convolution of a dilated input): no product with the zeros in between is left. One
/// definition (the same) when there is no such condition.
std::vector<loop::Definition> phases(const loop::Definition& definition);

/// Joins axes that every access walks through as one (row-major, no gap), so that the innermost
/// loop is long: neighbouring axes of the results (with a reduction only rows too short to be cut
/// into full tiles), and any two of a reduction but for the taps of a window, unless order matters.
/// Accesses become flat: buffers are seen with one dimension.
///   Requires: `kernel` gives the shapes.
/// Returns false, leaving all as it is, when nothing can be joined.
bool coalesce(loop::Definition& definition, loop::Kernel& kernel);

}  // namespace backcast
