#include "passes/schedule/halve_weights.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "ir/loop/words.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/nibbles.h"
#include "passes/schedule/product_words.h"
#include "passes/schedule/sum_of_products.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::BufferId;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Program;
using loop::Scalar;
using loop::Step;

/// Fewer integer registers have no room for columns of results that share bytes (nibbles.h).
constexpr int kColumnRegisters = 10;

class Halving {
 public:
  Halving(const Program& program, bool has_columns) : has_columns_(has_columns), result_(program) {}

  Program run() {
    calls_ = loop::count_calls(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      loop::for_each_call(entry.steps, [&](Step& step) {
        if (calls_[step.kernel] == 1) halve(step);
      });
    }
    return std::move(result_);
  }

 private:
  void halve(Step& step) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    const std::optional<SumOfProducts> sum = sum_of_products(kernel);
    if (!sum) return;
    for (const size_t side : {0u, 1u}) {
      const Expr& factor = sum->product->args[side];
      const Expr& read = factor->kind == ExprKind::cast ? factor->args[0] : factor;
      if (!may_be_halved(step, *sum->definition, read)) continue;
      if (has_columns_ && is_read_once(*sum->definition, read)) return;
      const Axis* axis = axis_of_pairs(*sum, read);
      if (axis != nullptr) return split(step, *sum, read, *axis, sum->product->args[1 - side]);
    }
  }

  /// Of the sum's axes along which weights have neighbours, the one where these are nearest.
  static const Axis* axis_of_pairs(const SumOfProducts& sum, const Expr& weights) {
    const Axis* nearest = nullptr;
    std::optional<size_t> last;
    for (const Axis& axis : sum.definition->reduce_axes) {
      const std::optional<size_t> dimension = dimension_along(weights, axis.name);
      if (!dimension || static_extent(axis).value_or(1) % 2 != 0) continue;
      if (sum.is_guarded_by(axis.name) || dimension <= last) continue;
      nearest = &axis;
      last = dimension;
    }
    return nearest;
  }

  bool may_be_halved(const Step& step, const Definition& definition, const Expr& read) const {
    const Kernel& kernel = result_.kernels.at(step.kernel);
    return read->kind == ExprKind::access && reads_of(definition, read->name) == 1 &&
           loop::passes_constant(result_, kernel, step, read->name) &&
           fits_signed_nibbles(result_.buffer(loop::buffer_of(kernel, step, read->name)).value);
  }

  /// The sum in steps of two along an axis.
  void split(Step& step, const SumOfProducts& sum, const Expr& weights, const Axis& axis,
             const Expr& other) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    Definition definition = *sum.definition;
    for (Axis& reduced : definition.reduce_axes) {
      if (reduced.name == axis.name) reduced.extent = Expr(*static_extent(axis) / 2);
    }
    const Expr both = loop::access(weights->name, Scalar::i8, weights->args);
    const auto product_of = [&](int64_t i) {
      const Expr place = loop::var(axis.name) * 2 + i;
      return loop::substitute(other, {{axis.name, place}}) * half_of(both, i == 1);
    };
    definition.accumulators[0].value = sum.behind_guard(product_of(0) + product_of(1));
    const BufferId id = loop::buffer_of(kernel, step, weights->name);
    const BufferId halves = loop::derived_constant(
        result_, id, "_halves",
        as_half_bytes(result_.buffer(id).value, *dimension_along(weights, axis.name)));
    loop::hand_over_words(result_, kernel, step, weights->name, halves);
    kernel.body = loop::define(std::move(definition));
  }

  /// A weight that one result alone reads: columns of results share bytes for less.
  static bool is_read_once(const Definition& definition, const Expr& read) {
    return std::ranges::all_of(definition.axes, [&](const Axis& axis) {
      return static_extent(axis) == 1 || mentions(read, axis.name);
    });
  }

  const bool has_columns_;
  Program result_;
  std::map<std::string, int64_t> calls_;
};

}  // namespace

Program halve_weights(const Program& program, const TargetInfo& target) {
  const bool multiplies_words = target.vector_bits > 0 || target.pair_products;
  if (!target.is_microcontroller() || multiplies_words) return program;
  return Halving(program, target.integer_registers >= kColumnRegisters).run();
}

}  // namespace backcast
