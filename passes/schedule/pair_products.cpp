#include "passes/schedule/pair_products.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/loop/add.h"
#include "ir/loop/integer_fold.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "ir/loop/words.h"
#include "passes/lower/definition_cost.h"
#include "passes/lower/lower_control.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/product_words.h"
#include "passes/schedule/sum_of_products.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Op;
using loop::Program;
using loop::Scalar;
using loop::Step;

/// A factor of the products: what is read, the dimension that the sum runs along, and how elements
/// lie in words along it.
struct Factor {
  Expr read;
  size_t dimension = 0;
  Expr word;  // the index of the word there
  Places places = Places::halves;
  bool is_signed = true;
  bool constant = false;
};

// What two results cost that share words, two instructions at the end, takes sums of as many
// products to win back.
constexpr int64_t kShortSum = 32;

/// Products in a sum; 0 where run time tells.
int64_t steps_of(const Definition& definition) {
  int64_t steps = 1;
  for (const Axis& axis : definition.reduce_axes) steps *= static_extent(axis).value_or(0);
  return steps;
}

class Pairing {
 public:
  Pairing(const Program& program, const TargetInfo& target)
      : target_(target),
        takes_apart_(target.pair_products && target.vector_bits == 0),
        result_(program) {
    if (takes_apart_) forms_.push_back(Places::nibbles);
    if (target.multiplies_bytes(false) || target.multiplies_bytes(true)) {
      forms_.push_back(Places::bytes);
    }
    if (takes_apart_) forms_.push_back(Places::pairs_of_bytes);
    if (target.pair_products) forms_.push_back(Places::halves);
  }

  Program run() {
    if (forms_.empty()) return std::move(result_);
    calls_ = loop::count_calls(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      copies_.clear();
      loop::for_each_call(entry.steps, [&](Step& step) {
        if (calls_[step.kernel] == 1) pair(step);
      });
      for (const auto& [input, copy] : copies_) {
        if (result_.buffer(input).view_of >= 0) continue;
        entry.steps.insert(entry.steps.begin(), copy_step(input, copy, result_.buffer(input).loc));
      }
    }
    return std::move(result_);
  }

 private:
  void pair(Step& step) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    const std::optional<SumOfProducts> sum = sum_of_products(kernel);
    if (!sum) return;
    const Definition& found = *sum->definition;
    const Expr& product = sum->product;
    for (const Places form : forms_) {
      const int64_t at_once = per_word(form);
      for (const Axis& axis : found.reduce_axes) {
        const std::optional<int64_t> extent = static_extent(axis);
        const int64_t whole = form == Places::bytes ? target_.bytes_at_once() : at_once;
        if (!extent || *extent % whole != 0 || sum->is_guarded_by(axis.name)) continue;
        const std::optional<Factor> a = factor(step, found, product->args[0], axis.name, form);
        const std::optional<Factor> b = factor(step, found, product->args[1], axis.name, form);
        if (!a || !b || a->read->name == b->read->name) continue;
        const Factor &x = a->constant ? *b : *a, &weights = a->constant ? *a : *b;
        if (form == Places::nibbles && !leaves_room(step, found, x, weights)) continue;
        const bool turned = form == Places::bytes ? !is_multiplied(*a, *b) : a->constant;
        if (form == Places::bytes ? turned && !is_multiplied(*b, *a)
                                  : a->places != form && b->places != form) {
          continue;
        }
        if (form == Places::bytes && share_words(step, *sum, x, weights, axis)) return;
        Definition definition = found;
        for (Axis& reduced : definition.reduce_axes) {
          if (reduced.name == axis.name) reduced.extent = Expr(*extent / at_once);
        }
        const Expr products =
            turned ? products_of(step, *b, *a, form) : products_of(step, *a, *b, form);
        definition.accumulators[0].value = sum->behind_guard(products);
        if (form == Places::nibbles) shift_sum(definition, kNibbleShift);
        kernel.body = loop::define(std::move(definition));
        return;
      }
    }
  }

  /// Whether what is left of a word holds the sum of each result.
  bool leaves_room(const Step& step, const Definition& definition, const Factor& x,
                   const Factor& weights) const {
    std::vector<bool> is_summed;
    for (const Expr& index : weights.read->args) {
      is_summed.push_back(std::ranges::any_of(
          definition.reduce_axes, [&](const Axis& axis) { return mentions(index, axis.name); }));
    }
    const BufferId id = loop::buffer_of(result_.kernels.at(step.kernel), step, weights.read->name);
    const int64_t room = int64_t{1} << (31 - kNibbleShift), most = x.is_signed ? 128 : 255;
    return most * largest_sum(result_.buffer(id).value, is_summed) < room;
  }

  /// Whether words of bytes are multiplied: the second factor's are signed, the first one's may be.
  /// Where none of them is a constant, only vectors are filled with words.
  bool is_multiplied(const Factor& first, const Factor& second) const {
    if (first.constant || !second.is_signed) return false;
    return second.constant ? target_.multiplies_bytes(first.is_signed)
                           : target_.has_dot4(first.is_signed);
  }

  /// A factor that can be read in words along the axis: a small constant, or integers that lie one
  /// behind another.
  std::optional<Factor> factor(const Step& step, const Definition& definition, const Expr& value,
                               const std::string& axis, Places form) const {
    const Expr& read = value->kind == ExprKind::cast ? value->args[0] : value;
    if (read->kind != ExprKind::access || read->args.empty()) return std::nullopt;
    const std::optional<size_t> dimension = dimension_mentioning(read, axis);
    if (reads_of(definition, read->name) != 1 || !dimension) return std::nullopt;
    const Expr& index = read->args[*dimension];
    const std::optional<Expr> word = word_along(definition, index, axis, per_word(form));
    if (!word) return std::nullopt;
    const Kernel& kernel = result_.kernels.at(step.kernel);
    const BufferId id = loop::buffer_of(kernel, step, read->name);
    const Buffer& buffer = result_.buffer(id);
    const Dim& length = buffer.shape[*dimension];
    if (!length.is_constant() || length.constant() % per_word(form) != 0) return std::nullopt;
    if (!loop::passes_constant(result_, kernel, step, read->name)) {
      const Places places = beside(form);
      const bool with_sign = is_signed(buffer.element);
      if (*dimension + 1 != read->args.size() || buffer.element == ElementType::u16 ||
          !loop::lies_in_words(result_, is_copied(id, places) ? in_arena(buffer) : buffer,
                               per_word(places))) {
        return {};
      }
      return Factor{read, *dimension, *word, places, with_sign};
    }
    if (index->kind != ExprKind::var) return std::nullopt;
    if (form == Places::nibbles) {
      if (!fits_signed_nibbles(buffer.value)) return std::nullopt;
      return Factor{read, *dimension, *word, form, true, true};
    }
    if (loop::fits(buffer.value, Scalar::i8))
      return Factor{read, *dimension, *word, form, true, true};
    if (form == Places::bytes || !loop::fits(buffer.value, Scalar::i16)) return std::nullopt;
    return Factor{read, *dimension, *word, Places::halves, true, true};
  }

  /// The index of the word of `count` elements that a step along the axis reads: that of elements,
  /// where the axis counts words from now on. Rows of a view may begin at any whole word.
  std::optional<Expr> word_along(const Definition& definition, const Expr& index,
                                 const std::string& axis, int64_t count) const {
    if (index->kind == ExprKind::var) return index;
    if (target_.summed_byte_products) return std::nullopt;
    std::vector<Axis> axes = definition.axes;
    axes.insert(axes.end(), definition.reduce_axes.begin(), definition.reduce_axes.end());
    std::map<std::string, int64_t> origin;
    for (const Axis& any : axes) origin[any.name] = 0;
    const std::optional<int64_t> first = evaluate(index, origin);
    if (!first || *first % count != 0 || coefficient(index, axis) != 1) return std::nullopt;
    Expr word = loop::var(axis) + *first / count;
    for (const Axis& other : axes) {
      const std::optional<int64_t> step = coefficient(index, other.name);
      if (!step || (other.name != axis && *step % count != 0)) return std::nullopt;
      if (other.name != axis) word = word + loop::var(other.name) * (*step / count);
    }
    return word;
  }

  /// The axis of results that share a word, and where the weights have it.
  static std::optional<std::pair<Axis, size_t>> shared_axis(const SumOfProducts& sum,
                                                            const Factor& x,
                                                            const Factor& weights) {
    for (size_t d = 0; d < weights.read->args.size(); ++d) {
      const Expr& index = weights.read->args[d];
      if (d == weights.dimension || index->kind != ExprKind::var) continue;
      for (const Axis& axis : sum.definition->axes) {
        const std::optional<int64_t> extent = static_extent(axis);
        if (axis.name != index->name || !extent || *extent % 2 != 0) continue;
        const bool guarded = sum.is_guarded_by(axis.name);
        if (!guarded && !mentions(x.read, axis.name)) return std::pair(axis, d);
      }
    }
    return std::nullopt;
  }

  /// Whether halves hold the weights of two results each, and sums of bytes times those of the
  /// first leave room for what they are shifted by.
  static bool fits_halves(const Literal& weights, size_t result, bool is_signed) {
    const int64_t inner = row_major_strides(weights.shape())[result];
    const int64_t results = weights.shape()[result], most = is_signed ? 128 : 255;
    std::vector<int64_t> sums(static_cast<size_t>(results));
    for (int64_t i = 0; i < weights.element_count(); ++i) {
      const int64_t f = i / inner % results, first = weights.as_int(i);
      if (f % 2 != 0) continue;
      if (256 * first + weights.as_int(i + inner) < -(1 << 15)) return false;
      sums[static_cast<size_t>(f)] += std::abs(first) * most;
    }
    return std::all_of(sums.begin(), sums.end(), [](int64_t sum) { return sum < 1 << 23; });
  }

  /// Two results at once, a and b, where bytes are taken apart: of x·(256·a + b) and x·b, summed up
  /// modulo 2^32, the difference is 256 times the sum of x·a. One instruction instead of two makes
  /// the factors of a word.
  bool share_words(Step& step, const SumOfProducts& sum, const Factor& x, const Factor& weights,
                   const Axis& reduced) {
    const Definition& found = *sum.definition;
    if (!takes_apart_ || x.places != Places::bytes || !weights.constant) return false;
    if (steps_of(found) < kShortSum) return false;
    Kernel& kernel = result_.kernels.at(step.kernel);
    const BufferId id = loop::buffer_of(kernel, step, weights.read->name);
    const auto shared = shared_axis(sum, x, weights);
    if (!shared || !fits_halves(result_.buffer(id).value, shared->second, x.is_signed))
      return false;
    const auto& [axis, dimension] = *shared;

    Definition definition = found;
    for (Axis& a : definition.axes) {
      if (a.name == axis.name) a.extent = Expr(*static_extent(axis) / 2);
    }
    for (Axis& a : definition.reduce_axes) {
      if (a.name == reduced.name) a.extent = Expr(*static_extent(reduced) / 4);
    }
    const std::vector<Expr> bytes = words_of(step, x, Places::bytes);
    const auto weight = [&](int64_t half) {
      std::vector<Expr> indices{weights.read->args[dimension]};
      for (size_t d = 0; d < weights.read->args.size(); ++d) {
        if (d != dimension && d != weights.dimension) indices.push_back(weights.read->args[d]);
      }
      indices.insert(indices.end(), {weights.read->args[weights.dimension], Expr(half)});
      return loop::access(weights.read->name, Scalar::i32, indices);
    };
    const auto sum_of = [&](const auto& of_word) {
      const Expr even = loop::binary(Op::dot2, bytes[0], of_word(weight(0)));
      return even + loop::binary(Op::dot2, bytes[1], of_word(weight(1)));
    };
    loop::Accumulator& both = definition.accumulators[0];
    loop::Accumulator second = both;
    second.name = both.name + "_second";
    both.value = sum.behind_guard(sum_of([](const Expr& word) { return word; }));
    second.value = sum.behind_guard(
        sum_of([](const Expr& word) { return loop::unary(Op::even_bytes, word); }));
    const Expr all = loop::var(both.name, both.type), of_second = loop::var(second.name, both.type);
    const Expr of_first = loop::binary(Op::shr, all - of_second, loop::int_constant(both.type, 8));
    definition.outputs.clear();
    for (const loop::DefinitionOutput& output : found.outputs) {
      for (const int64_t i : {0, 1}) {
        const std::map<std::string, Expr> values{{axis.name, loop::var(axis.name) * 2 + Expr(i)},
                                                 {both.name, i == 0 ? of_first : of_second}};
        loop::DefinitionOutput half = output;
        for (Expr& index : half.indices) index = loop::substitute(index, values);
        half.value = loop::substitute(half.value, values);
        definition.outputs.push_back(std::move(half));
      }
    }
    definition.accumulators.push_back(std::move(second));
    hand_over(step, weights,
              loop::derived_constant(
                  result_, id, "_shared",
                  as_shared_words(result_.buffer(id).value, dimension, weights.dimension)));
    kernel.body = loop::define(std::move(definition));
    return true;
  }

  /// The products of a word's elements, `b` being the constant if one of them is.
  Expr products_of(Step& step, const Factor& a, const Factor& b, Places form) {
    const std::vector<Expr> left = words_of(step, a, form), right = words_of(step, b, form);
    if (left.size() == 1 && form == Places::bytes) {
      return loop::binary(a.is_signed ? Op::dot4_signed : Op::dot4, left[0], right[0]);
    }
    Expr sum = loop::binary(Op::dot2, left[0], right[0]);
    for (size_t i = 1; i < left.size(); ++i) sum = sum + loop::binary(Op::dot2, left[i], right[i]);
    return sum;
  }

  /// What is read at once: a word of bytes where dot4 takes it, or one pair or two.
  std::vector<Expr> words_of(Step& step, const Factor& factor, Places form) {
    hand_over_words(step, factor);
    const auto word = [&](const Expr& index) {
      std::vector<Expr> indices = factor.read->args;
      indices[factor.dimension] = index;
      return loop::access(factor.read->name, Scalar::i32, indices);
    };
    const int64_t count = per_word(form) / per_word(factor.places);
    std::vector<Expr> taken;
    for (int64_t i = 0; i < count; ++i) {
      const Expr all = word(count == 1 ? factor.word : factor.word * count + i);
      const std::vector<Expr> pairs = takes_apart_ ? pairs_of(all, factor) : std::vector<Expr>{all};
      taken.insert(taken.end(), pairs.begin(), pairs.end());
    }
    return taken;
  }

  /// The pairs that lie in a word.
  static std::vector<Expr> pairs_of(const Expr& word, const Factor& factor) {
    const auto masked = [&](Op towards, int64_t places, int64_t mask) {
      const Expr shift = loop::int_constant({Scalar::i32}, places);
      const Expr moved = places == 0 ? word : loop::binary(towards, word, shift);
      return loop::binary(Op::bit_and, moved, loop::int_constant({Scalar::i32}, mask));
    };
    if (factor.places == Places::halves) return {word};
    if (factor.places == Places::nibbles) {
      std::vector<Expr> pairs;
      for (int64_t shift = 0; shift <= kNibbleShift; shift += 4) {
        pairs.push_back(masked(Op::shl, shift, static_cast<int32_t>(0xf000f000)));
      }
      return pairs;
    }
    if (factor.is_signed) {
      return {loop::unary(Op::even_bytes, word), loop::unary(Op::odd_bytes, word)};
    }
    return {masked(Op::shr, 0, 0x00ff00ff), masked(Op::shr, 8, 0x00ff00ff)};
  }

  /// A caller's bytes lie anywhere; their copy in the arena lies in words.
  bool is_copied(BufferId id, Places form) const {
    const Buffer& whole = result_.buffer(result_.owner(id));
    return form == Places::bytes && whole.kind == BufferClass::input &&
           TensorType{whole.element, whole.shape}.is_static();
  }

  static Buffer in_arena(Buffer buffer) {
    buffer.kind = BufferClass::arena;
    return buffer;
  }

  /// The same part of the copy: rows that a loop reads are views of what was copied before it.
  BufferId copied(BufferId id) {
    const auto known = copies_.find(id);
    if (known != copies_.end()) return known->second;
    Buffer copy = in_arena(result_.buffer(id));
    if (copy.view_of >= 0) copy.view_of = copied(copy.view_of);
    const std::string wish = copy.name + "_copy";
    return copies_[id] = loop::add_buffer(result_, wish, std::move(copy));
  }

  /// Makes the call hand over words.
  void hand_over_words(Step& step, const Factor& factor) {
    BufferId id = loop::buffer_of(result_.kernels.at(step.kernel), step, factor.read->name);
    if (!factor.constant && is_copied(id, factor.places)) id = copied(id);
    const int64_t count = per_word(factor.places);
    static constexpr const char* kNames[] = {"_pairs", "_bytes", "_bytes", "_nibbles"};
    hand_over(step, factor,
              factor.constant
                  ? loop::derived_constant(
                        result_, id, kNames[static_cast<size_t>(factor.places)],
                        as_words(result_.buffer(id).value, factor.dimension, factor.places))
                  : loop::add_words(result_, id, count));
  }

  void hand_over(Step& step, const Factor& factor, BufferId words) {
    loop::hand_over_words(result_, result_.kernels.at(step.kernel), step, factor.read->name, words);
  }

  const TargetInfo& target_;
  const bool takes_apart_;     // words of bytes, by instructions of their own
  std::vector<Places> forms_;  // the best first
  Program result_;
  std::map<std::string, int64_t> calls_;
  std::map<BufferId, BufferId> copies_;  // of an entry point's inputs and their views
};

}  // namespace

Program pair_products(const Program& program, const TargetInfo& target) {
  return Pairing(program, target).run();
}

}  // namespace backcast
