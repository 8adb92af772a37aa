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
#include "passes/lower/lower_control.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/nibbles.h"
#include "passes/schedule/product_words.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::BufferId;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Op;
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
    const Definition* found = loop::only_definition(kernel);
    if (found == nullptr || found->accumulators.size() != 1) return;
    const loop::Accumulator& sum = found->accumulators[0];
    if (sum.combine != loop::Combine::sum || !(sum.type == loop::Type{Scalar::i32})) return;
    const bool guarded = sum.value->kind == ExprKind::if_then_else;
    if (guarded && !loop::is_constant(sum.value->args[2], 0)) return;
    const Expr product = guarded ? sum.value->args[1] : sum.value;
    if (product->kind != ExprKind::binary || product->op != Op::mul) return;
    for (const size_t side : {0u, 1u}) {
      const Expr& factor = product->args[side];
      const Expr& read = factor->kind == ExprKind::cast ? factor->args[0] : factor;
      if (!may_be_halved(step, *found, read)) continue;
      if (has_columns_ && is_read_once(*found, read)) return;
      for (size_t d = read->args.size(); d-- > 0;) {
        for (const Axis& axis : found->reduce_axes) {
          const bool is_along =
              read->args[d]->kind == ExprKind::var && read->args[d]->name == axis.name;
          if (!is_along || static_extent(axis).value_or(1) % 2 != 0) continue;
          if (guarded && mentions(sum.value->args[0], axis.name)) continue;
          return split(step, read, d, axis, product->args[1 - side]);
        }
      }
    }
  }

  bool may_be_halved(const Step& step, const Definition& definition, const Expr& read) const {
    const Kernel& kernel = result_.kernels.at(step.kernel);
    return read->kind == ExprKind::access && reads_of(definition, read->name) == 1 &&
           loop::passes_constant(result_, kernel, step, read->name) &&
           fits_signed_nibbles(result_.buffer(loop::buffer_of(kernel, step, read->name)).value);
  }

  /// The sum in steps of two along an axis, which is dimension `d` of the weights.
  void split(Step& step, const Expr& weights, size_t d, const Axis& axis, const Expr& other) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    Definition definition = *loop::only_definition(kernel);
    for (Axis& reduced : definition.reduce_axes) {
      if (reduced.name == axis.name) reduced.extent = Expr(*static_extent(axis) / 2);
    }
    const Expr both = loop::access(weights->name, Scalar::i8, weights->args);
    const auto product_of = [&](int64_t i) {
      const Expr place = loop::var(axis.name) * 2 + i;
      return loop::substitute(other, {{axis.name, place}}) * half_of(both, i == 1);
    };
    const Expr products = product_of(0) + product_of(1);
    Expr& value = definition.accumulators[0].value;
    value = value->kind == ExprKind::if_then_else
                ? loop::if_then_else(value->args[0], products, value->args[2])
                : products;
    const BufferId id = loop::buffer_of(kernel, step, weights->name);
    const BufferId halves =
        loop::derived_constant(result_, id, "_halves", as_half_bytes(result_.buffer(id).value, d));
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
