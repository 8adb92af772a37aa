// Questions about index expressions: how they depend on a variable, and the parts of a condition.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/loop/stmt.h"

namespace backcast {

/// Does the expression mention the variable?
bool mentions(const loop::Expr& e, const std::string& variable);

/// The only dimension of an access whose index mentions the variable.
std::optional<size_t> dimension_mentioning(const loop::Expr& access, const std::string& variable);

/// The dimension that an access has the variable as the index of, nothing when it is part of an
/// index or of several.
std::optional<size_t> dimension_along(const loop::Expr& access, const std::string& variable);

/// The constant c with e(v + 1) - e(v) = c; 0 when v does not occur, nothing when e is not affine
/// in v with a constant coefficient.
std::optional<int64_t> coefficient(const loop::Expr& e, const std::string& variable);

/// Whether e(v + 1) - e(v) is the same for every v, be it one that run time tells.
bool is_linear(const loop::Expr& e, const std::string& variable);

/// The extent of an axis, when it is a constant.
std::optional<int64_t> static_extent(const loop::Axis& axis);

/// What the axes run over; from 0 on where an extent is no constant.
std::map<std::string, DimRange> ranges_of(const std::vector<loop::Axis>& axes);

/// Bytes of a kernel's parameter, when its shape is known.
std::optional<int64_t> static_bytes(const loop::BufferParam& param);

/// The parts of a conjunction.
std::vector<loop::Expr> conjuncts(const loop::Expr& condition);

/// What an accumulator takes in, without the conditions under which it does; these are added to
/// `guard`. What a general step leaves as it is, is itself.
loop::Expr without_guard(const loop::Accumulator& acc, std::vector<loop::Expr>& guard);

/// The same results without accumulators: each is combined once with where it begins.
///   Requires: no axis to reduce along.
loop::Definition without_accumulators(const loop::Definition& definition);

/// Value of an expression of integer constants and the given variables; nothing when others occur.
std::optional<int64_t> evaluate(const loop::Expr& e, const std::map<std::string, int64_t>& values);

}  // namespace backcast
