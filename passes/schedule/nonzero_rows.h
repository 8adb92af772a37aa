// Which factor of a sum of products has zeros to leave out, and how the sum runs through it.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/loop/program.h"

namespace backcast {

/// Two parameters that a sum multiplies, one of which was rectified.
struct ZeroFactor {
  std::string factor, weight;  // whose zeros, and what they multiply
  // An axis of results along which the factor lies without a gap: a result's steps go across the
  // factor's rows, as in the gradient of a product, Σ x[k, m]·y[k, n]. Empty: they run along a row.
  std::string across;
  // Axes of results that all take part in a step (shift_taps.h), the fastest one last.
  std::vector<std::string> taps = {};
  double border = 0;  // the share of steps that some of them do not take part in
};

/// How the sum's steps lie in the factor, and which bits say whether a step's element is zero.
struct NonzeroRows {
  ZeroFactor of;
  loop::Expr flat_weight;          // index of the latter
  std::vector<std::string> axes;   // of the reduction, that a row of bits runs through
  std::vector<std::string> order;  // of all its axes: these are innermost
  int64_t count = 1;               // bits of a row
  bool is_joint = true;     // both parameters are read evenly along the axes, if not rearranged
  bool is_guarded = false;  // some steps lie outside of the factor
  bool converts = false;    // what is multiplied is of a narrower type
  // Along rows of the factor: all of these, and the one that a result reads, over all axes but
  // `axes`.
  int64_t rows = 0;
  loop::Expr row;
  // Across them: the axes of results that bits differ along.
  std::set<std::string> results;
};

/// The factors whose zeros a sum of products of two floats may leave out.
///   `is_rectified`: whether about half of a parameter's elements are zero.
std::vector<ZeroFactor> zero_factors(const loop::Definition& definition, const loop::Kernel& kernel,
                                     const std::function<bool(const std::string&)>& is_rectified);

/// The rows for one of these, if all are of the same length, which is known.
///   `outside`: axes of the reduction that are not to run through a row.
std::optional<NonzeroRows> find_nonzero_rows(const loop::Definition& definition,
                                             const loop::Kernel& kernel, const ZeroFactor& of,
                                             const std::set<std::string>& outside = {});

}  // namespace backcast
