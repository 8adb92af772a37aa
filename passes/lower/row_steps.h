// What a kernel that is one definition reads for some rows of its results, and the kernel that
// computes just these. Rows are indices of one axis of the results, or of one that is summed along;
// no operator is known here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/loop/stmt.h"

namespace backcast {

/// Rows from `begin` up to, not including, `end`.
struct Rows {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};

/// A parameter of which rows of the results reach only some indices of one dimension: a row r those
/// from floor((scale * r + phase) / per) + low to as much + high, as far as they exist.
struct RowAccess {
  size_t param = 0;
  size_t dimension = 0;
  int64_t extent = 0;  // of the dimension
  int64_t scale = 1, low = 0, high = 0;
  int64_t per = 1, phase = 0;  // 1, 0 unless `scale` is 1

  Rows reached(const Rows& rows) const;
  /// Whether rows are its indices as they are.
  bool is_identity() const { return scale == 1 && per == 1 && low == 0 && high == 0; }
  /// Whether rows reach the same indices of the other.
  bool reaches_like(const RowAccess& other) const {
    return extent == other.extent && scale == other.scale && low == other.low &&
           high == other.high && per == other.per && phase == other.phase;
  }
};

/// A kernel that can be computed by rows.
struct RowKernel {
  std::string axis;
  int64_t rows = 0;
  std::vector<RowAccess> reads, writes;
  std::vector<size_t> whole;  // parameters that all rows read alike
  /// The axis is one to sum along: every row adds to all sums (row_sums.h), so there are no
  /// `writes`, and these parameters are read once all rows are there.
  bool sums = false;
  std::vector<size_t> behind;

  /// Of all parameters that rows reach in part: reads, then writes.
  std::vector<RowAccess> accesses() const;
};

/// The dimension whose parts lie one behind the other: the first that is not 1.
std::optional<size_t> outermost(const Dims& shape);

/// One for every axis that is one dimension of each result, then one for every axis that is summed
/// along; none for kernels of any other form than
/// one definition of constant shape, whose operands depend on rows through one affine index each.
std::vector<RowKernel> match_rows(const loop::Kernel& kernel);

/// Whether dimension da of shape a and dimension db of b divide the same elements alike.
bool same_rows(const Dims& a, size_t da, const Dims& b, size_t db);

/// A part of a parameter: a view of this shape so many elements into it.
struct RowView {
  Dims shape;
  int64_t offset = 0;
  friend bool operator==(const RowView&, const RowView&) = default;
};
/// Indices `rows` of a dimension. Where dimensions that are not 1 lie outside of it, the view has
/// one dimension and what lies between the rows is a part of it.
RowView window_of(const Dims& shape, size_t dimension, const Rows& rows);

/// The parameters of a kernel that is passed rows `passed` of what rows reach in part: their shapes
/// are those of the windows, or of nothing but these rows (`apart`). Results are no longer over
/// operands of which they have other rows. Its body stays as it is.
loop::Kernel with_parts(const loop::Kernel& kernel, const RowKernel& by,
                        const std::map<size_t, Rows>& passed, const std::set<size_t>& apart);

/// Indices of a parameter of shape `whole`, with those of its rows counted from the part's
/// beginning, as indices of a part of shape `part`.
std::vector<loop::Expr> index_in_part(const Dims& whole, const Dims& part,
                                      std::vector<loop::Expr> indices);

/// The kernel for some rows only, which of sums gives those. Parameters that rows reach in part
/// (`reads` and `writes`) have the shapes of the windows at the indices `reached`, by parameter;
/// those of `apart` hold nothing but these indices.
loop::Kernel restrict_rows(const loop::Kernel& kernel, const RowKernel& by, const Rows& rows,
                           const std::map<size_t, Rows>& reached, const std::set<size_t>& apart);

}  // namespace backcast
