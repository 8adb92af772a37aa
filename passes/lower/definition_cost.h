// What fusion weighs: the arithmetic of a definition, its points, and walks over its expressions.
#pragma once

#include <functional>
#include <string>

#include "ir/loop/stmt.h"

namespace backcast {

/// What a math function counts as.
inline constexpr int64_t kMathFunctionCost = 8;

/// Operations per point. Index arithmetic, conversions of storage types and the choice between
/// parts (if_then_else) are free.
struct DefinitionCost {
  int64_t arithmetic = 0;
  int64_t indirect = 0;  // accesses whose indices are themselves loaded
  int64_t total() const { return arithmetic + indirect; }
};
DefinitionCost cost(const loop::Definition& definition);
DefinitionCost cost(const loop::Expr& value);

/// The extent of an axis at the symbols' maxima.
int64_t most_of(const loop::Axis& axis, const SymbolRanges& symbols);

/// Iterations at the symbols' maxima: axes and reduction axes.
int64_t points(const loop::Definition& definition, const SymbolRanges& symbols);

/// Does the expression read a buffer? An index that does is only known at run time.
bool reads_memory(const loop::Expr& e);
/// Whether results are made of what stands at places that memory tells.
bool looks_up(const loop::Definition& definition);

/// Distinct buffers read.
size_t params(const loop::Definition& definition);

/// Calls f(access node, inside an accumulator?) for every read.
void for_each_access(const loop::Definition& definition,
                     const std::function<void(const loop::ExprNode&, bool)>& f);

/// How often a parameter is read.
int64_t reads_of(const loop::Definition& definition, const std::string& param);

/// Rewrites every expression of accumulators and output values bottom-up.
void transform(loop::Definition& definition, const std::function<loop::Expr(const loop::Expr&)>& f);

/// (c ? x : 0) * w becomes c ? x * w : 0 in sums, so that a guard covers the whole product.
void lift_guards(loop::Definition& definition);

}  // namespace backcast
