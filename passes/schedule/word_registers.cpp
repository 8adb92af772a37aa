#include "passes/schedule/word_registers.h"

#include <map>
#include <optional>
#include <string>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "ir/loop/words.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/product_words.h"
#include "passes/schedule/reorder.h"

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

/// Results whose sums are formed side by side, if there are as many: their epilogue is one of
/// vectors.
constexpr int64_t kColumns = 4;

/// Products by weights at the top of bytes are 2^4 times as large, and sums of so many words of
/// them fit in 32 bits.
constexpr int64_t kHalfShift = 4, kMostWords = (int64_t{1} << 31) / (16 * 4 * 8 * 128);

/// The product in a definition, and the axes that are split.
struct Product {
  Expr words, weights;  // accesses
  Axis sum, results;
  size_t sum_at = 0, results_at = 0;  // dimensions of the weights
  int64_t columns = 1;
  bool in_halves = false;  // two registers of weights are one, of which bytes hold a weight of each
};

class Registers {
 public:
  Registers(const Program& program, int64_t lanes) : lanes_(lanes), result_(program) {}

  Program run() {
    calls_ = loop::count_calls(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      loop::for_each_call(entry.steps, [&](Step& step) {
        if (calls_[step.kernel] != 1) return;
        if (const std::optional<Product> product = product_of(step)) split(step, *product);
      });
    }
    return std::move(result_);
  }

 private:
  std::optional<Product> product_of(const Step& step) const {
    const Kernel& kernel = result_.kernels.at(step.kernel);
    const Definition* found = loop::only_definition(kernel);
    if (found == nullptr || found->accumulators.size() != 1) return std::nullopt;
    Product product;
    loop::visit(found->accumulators[0].value, [&](const Expr& e) {
      if (e->kind != ExprKind::binary || e->op != Op::dot4_signed) return;
      for (const size_t side : {0u, 1u}) {
        const Expr &words = e->args[side], &weights = e->args[1 - side];
        if (words->kind != ExprKind::access || weights->kind != ExprKind::access) continue;
        if (!loop::passes_constant(result_, kernel, step, weights->name)) continue;
        product.words = words;
        product.weights = weights;
      }
    });
    if (!product.words || reads_of(*found, product.weights->name) != 1) return std::nullopt;
    const auto choose = [&](const std::vector<Axis>& axes, int64_t multiple, bool is_sum,
                            Axis& axis, size_t& at) {
      for (const Axis& candidate : axes) {
        const std::optional<int64_t> extent = static_extent(candidate);
        const std::optional<size_t> dimension = dimension_along(product.weights, candidate.name);
        const bool in_words = mentions(product.words, candidate.name);
        if (!extent || *extent % multiple != 0 || !dimension || in_words != is_sum) continue;
        if (is_sum && dimension_along(product.words, candidate.name) !=
                          std::optional(product.words->args.size() - 1)) {
          continue;
        }
        axis = candidate;
        at = *dimension;
        return true;
      }
      return false;
    };
    if (!choose(found->reduce_axes, lanes_, true, product.sum, product.sum_at)) return std::nullopt;
    product.in_halves = may_lie_in_halves(step, *found, product);
    for (const int64_t columns : {kColumns, int64_t{1}}) {
      product.columns = columns;
      if (choose(found->axes, columns, false, product.results, product.results_at)) return product;
    }
    return std::nullopt;
  }

  /// Whether 4 bits hold the weights, an even number of registers, and 28 bits any sum.
  bool may_lie_in_halves(const Step& step, const Definition& definition,
                         const Product& product) const {
    if (*static_extent(product.sum) % (2 * lanes_) != 0) return false;
    int64_t words = 1;
    for (const Axis& axis : definition.reduce_axes)
      words *= static_extent(axis).value_or(kMostWords);
    const BufferId id =
        loop::buffer_of(result_.kernels.at(step.kernel), step, product.weights->name);
    return words < kMostWords && are_nibbles(result_.buffer(id).value);
  }

  void split(Step& step, const Product& product) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    Definition definition = *loop::only_definition(kernel);
    const std::string lane = product.sum.name + "_lane", column = product.results.name + "_column";
    const auto divide = [](std::vector<Axis>& axes, const Axis& axis, const std::string& inner,
                           int64_t extent) {
      for (size_t i = 0; i < axes.size(); ++i) {
        if (axes[i].name != axis.name) continue;
        axes[i].extent = Expr(*static_extent(axis) / extent);
        axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(i) + 1, Axis{inner, Expr(extent)});
        return;
      }
    };
    const int64_t words = product.in_halves ? 2 * lanes_ : lanes_;
    divide(definition.reduce_axes, product.sum, lane, lanes_);
    for (Axis& axis : definition.reduce_axes) {
      if (axis.name == product.sum.name) axis.extent = Expr(*static_extent(product.sum) / words);
    }
    divide(definition.axes, product.results, column, product.columns);

    // What the weights are read by: results first, the lanes of a register last.
    std::vector<Expr> indices{loop::var(product.results.name)};
    for (size_t d = 0; d < product.weights->args.size(); ++d) {
      if (d == product.sum_at || d == product.results_at) continue;
      indices.push_back(product.weights->args[d]);
    }
    for (const std::string& name : {product.sum.name, column, lane}) {
      indices.push_back(loop::var(name));
    }
    const Expr weights = loop::access(product.weights->name, Scalar::i32, indices);
    const std::map<std::string, Expr> whole{
        {product.sum.name, loop::var(product.sum.name) * words + loop::var(lane)},
        {product.results.name,
         loop::var(product.results.name) * product.columns + loop::var(column)}};
    loop::Accumulator& sum = definition.accumulators[0];
    sum.value = loop::rewrite(loop::substitute(sum.value, whole), [&](const Expr& e) {
      return e->kind == ExprKind::access && e->name == weights->name ? weights : e;
    });
    if (product.in_halves) {
      sum.value = loop::rewrite(sum.value, [&](const Expr& e) {
        const bool multiplies = e->kind == ExprKind::binary && e->op == Op::dot4_signed;
        return multiplies ? products_of_halves(e, weights->name, lane) : e;
      });
      shift_sum(definition, kHalfShift);
    }
    for (loop::DefinitionOutput& output : definition.outputs) {
      output.value = loop::substitute(output.value, whole);
      for (Expr& index : output.indices) index = loop::substitute(index, whole);
    }
    const BufferId id = loop::buffer_of(kernel, step, product.weights->name);
    loop::hand_over_words(result_, kernel, step, product.weights->name,
                          in_reading_order(id, product));
    kernel.body = loop::define(std::move(definition));
  }

  /// The products of two registers of words that lie one behind the other and of what the halves of
  /// the weights' bytes hold, 16 times as large.
  Expr products_of_halves(const Expr& product, const std::string& weights,
                          const std::string& lane) const {
    const size_t side = product->args[1]->name == weights ? 1 : 0;
    const Expr &both = product->args[side], &words = product->args[1 - side];
    const Expr next = loop::substitute(words, {{lane, loop::var(lane) + lanes_}});
    const auto integer = [](int64_t value) { return loop::int_constant({Scalar::i32}, value); };
    const Expr mask = integer(static_cast<int32_t>(0xf0f0f0f0));
    const Expr low = loop::binary(Op::shl, both, integer(kHalfShift));
    return loop::binary(Op::dot4_signed, words, loop::binary(Op::bit_and, both, mask)) +
           loop::binary(Op::dot4_signed, next, loop::binary(Op::bit_and, low, mask));
  }

  BufferId in_reading_order(BufferId id, const Product& product) {
    const Literal& value = result_.buffer(id).value;
    std::vector<int64_t> parts;
    Order others;
    int32_t results = 0, sum = 0;
    for (size_t d = 0; d < value.shape().size(); ++d) {
      const auto at = static_cast<int32_t>(parts.size());
      const int64_t extent = value.shape()[d];
      if (d == product.sum_at) {
        sum = at;
        if (product.in_halves) {
          parts.insert(parts.end(), {extent / (2 * lanes_), 2, lanes_});
        } else {
          parts.insert(parts.end(), {extent / lanes_, lanes_});
        }
      } else if (d == product.results_at) {
        results = at;
        parts.insert(parts.end(), {extent / product.columns, product.columns});
      } else {
        others.push_back(at);
        parts.push_back(extent);
      }
    }
    Order order{results};
    order.insert(order.end(), others.begin(), others.end());
    order.insert(order.end(), {sum, results + 1, sum + 1});
    if (product.in_halves) order.push_back(sum + 2);
    const std::span<const std::byte> bytes = value.bytes();
    const Literal split(value.element(), parts, {bytes.begin(), bytes.end()});
    const Literal words = permuted(split, order);
    return loop::derived_constant(result_, id, "_registers",
                                  product.in_halves ? as_half_words(words) : words);
  }

  const int64_t lanes_;  // words of a register
  Program result_;
  std::map<std::string, int64_t> calls_;
};

}  // namespace

Program word_registers(const Program& program, const TargetInfo& target) {
  if (!target.summed_byte_products) return program;
  return Registers(program, target.vector_lanes(4)).run();
}

}  // namespace backcast
