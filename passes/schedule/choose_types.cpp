// What types a kernel computes with, and whether lanes of them fill vectors.
#include <algorithm>

#include "ir/loop/byte_tables.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/chooser.h"

namespace backcast {

using loop::Expr;
using loop::ExprKind;
using loop::Scalar;

bool Chooser::reads_byte_table(const loop::ExprNode& read) const {
  const loop::BufferParam* param = kernel_.find(read.name);
  return param && loop::is_byte_table(*param) && static_cast<bool>(loop::byte_place(read));
}

/// Places that are looked up are computed beside the lanes, in whatever type, those in tables of
/// bytes excepted.
void Chooser::collect_scalars(const Expr& e) {
  const Scalar s = e.type().scalar;
  if (s != Scalar::boolean && s != Scalar::index) scalars_.insert(s);
  if (e->kind == ExprKind::access && !reads_byte_table(*e)) return;
  for (const Expr& arg : e->args) collect_scalars(arg);
}

void Chooser::collect_types(const Expr& e) {
  collect_scalars(e);
  loop::visit(e, [&](const Expr& n) {
    if (n->kind != ExprKind::if_then_else) return;
    for (const Expr& part : conjuncts(n->args[0])) conditions_.push_back(part);
  });
}

bool Chooser::vectorizable_types() const {
  if (scalars_.size() != 1 || general_ || target_.vector_bits == 0) return false;
  Scalar s = *scalars_.begin();
  return s == Scalar::f32 || s == Scalar::f64 || s == Scalar::i32;
}

/// Whether results are elements of one type as they lie in memory, such as parts of a
/// concatenation.
bool Chooser::moves_elements() const {
  const bool is_one = scalars_.size() == 1 && scalar_ != Scalar::boolean;
  return target_.vector_bits > 0 && is_one && !is_reduction_ &&
         std::ranges::all_of(definition_.outputs, [](const loop::DefinitionOutput& output) {
           return output.value->kind == ExprKind::access;
         });
}

/// Whether lanes may lie along an axis of the results, whatever each computes: types of one width,
/// and narrower ones that are converted beside memory. What products read is of one type.
bool Chooser::fills_lanes() const {
  if (vectorizable_types() || moves_elements()) return true;
  const bool multiplies =
      std::any_of(accesses_.begin(), accesses_.end(), [](const Access& a) { return a.packable; });
  if (target_.vector_bits == 0 || (multiplies && !sums_one_type())) return false;
  return element_bytes() >= 4 && std::ranges::all_of(scalars_, [&](Scalar s) {
           return byte_size(loop::element_of(s)) <= 4 || widens_to(s);
         });
}

/// Whether sums are of one type of 32 bits, to which small integers and half floats are converted
/// as they are read.
bool Chooser::sums_one_type() const {
  bool one = byte_size(loop::element_of(scalar_)) == 4;
  const auto is_small = [](const Expr& e) {
    const Scalar s = e.type().scalar;
    return s != Scalar::boolean && s != Scalar::index && byte_size(loop::element_of(s)) <= 2;
  };
  for (const loop::Accumulator& acc : definition_.accumulators) {
    loop::visit(acc.value, [&](const Expr& e) {
      const Scalar s = e.type().scalar;
      const bool read = e->kind == ExprKind::access && is_small(e);
      one = one && (s == Scalar::boolean || s == Scalar::index || s == scalar_ || read);
    });
  }
  return one;
}

/// Of the widest type.
int64_t Chooser::element_bytes() const {
  int64_t bytes = scalars_.empty() ? byte_size(loop::element_of(scalar_)) : 1;
  for (const Scalar s : scalars_) bytes = std::max(bytes, byte_size(loop::element_of(s)));
  return bytes;
}

int32_t Chooser::vector_lanes() const {
  return target_.vector_lanes(static_cast<int>(element_bytes()));
}

/// Whether i64 is what results of fewer bits are turned into at the end, such as positions.
bool Chooser::widens_to(Scalar s) const {
  if (s != Scalar::i64 || definition_.accumulators.empty()) return false;
  bool summed = false;
  const auto find = [&](const Expr& e) { summed = summed || e.type().scalar == s; };
  for (const loop::Accumulator& acc : definition_.accumulators) {
    loop::visit(acc.init, find);
    loop::visit(acc.value, find);
  }
  return !summed;
}

}  // namespace backcast
