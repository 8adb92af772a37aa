#include "passes/schedule/pair_products.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "ir/loop/add.h"
#include "ir/loop/integer_fold.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

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

/// A factor of the products: what is read, the dimension that the sum runs along, and how many
/// elements lie in a word.
struct Factor {
  Expr read;
  size_t dimension = 0;
  int64_t per_word = 2;
};

/// A constant as words of two or four neighbours along a dimension. Of four, even_bytes is the
/// first pair and odd_bytes the second.
Literal as_words(const Literal& value, size_t dimension, int64_t per_word) {
  static constexpr int kPlaces[] = {0, 16, 8, 24};  // bits
  const uint32_t mask = per_word == 4 ? 0xff : 0xffff;
  std::vector<int64_t> shape = value.shape();
  int64_t inner = 1;
  for (size_t d = dimension + 1; d < shape.size(); ++d) inner *= shape[d];
  shape[dimension] /= per_word;
  std::vector<uint32_t> words(static_cast<size_t>(value.element_count() / per_word));
  for (size_t w = 0; w < words.size(); ++w) {
    const int64_t row = static_cast<int64_t>(w) / inner, column = static_cast<int64_t>(w) % inner;
    for (int64_t i = 0; i < per_word; ++i) {
      const int64_t element = value.as_int((per_word * row + i) * inner + column);
      words[w] |= (static_cast<uint32_t>(element) & mask) << kPlaces[i];
    }
  }
  std::vector<std::byte> bytes(words.size() * sizeof(uint32_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  return Literal(ElementType::i32, shape, std::move(bytes));
}

/// Integers that all fit in a narrower type.
bool fits(const Literal& value, Scalar narrow) {
  if (!is_integer(value.element())) return false;
  if (value.element() == loop::element_of(narrow)) return true;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    if (value.as_int(i) != loop::wrap(narrow, value.as_int(i))) return false;
  }
  return true;
}

class Pairing {
 public:
  Pairing(const Program& program, const TargetInfo& target)
      : keeps_bytes_(target.vector_bits == 0), result_(program) {}

  Program run() {
    calls_ = loop::count_calls(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      loop::for_each_call(entry.steps, [&](Step& step) {
        if (calls_[step.kernel] == 1) pair(step);
      });
    }
    return std::move(result_);
  }

 private:
  void pair(Step& step) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    const Definition* found = loop::only_definition(kernel);
    if (found == nullptr || found->accumulators.size() != 1) return;
    const loop::Accumulator& sum = found->accumulators[0];
    if (sum.combine != loop::Combine::sum || !(sum.type == loop::Type{Scalar::i32})) return;
    Expr product = sum.value;
    const bool guarded = product->kind == ExprKind::if_then_else;
    if (guarded && !loop::is_constant(product->args[2], 0)) return;
    if (guarded) product = product->args[1];
    if (product->kind != ExprKind::binary || product->op != Op::mul) return;
    const Expr guard = guarded ? sum.value->args[0] : Expr();
    for (const int64_t at_once : {4, 2}) {
      for (const Axis& axis : found->reduce_axes) {
        const std::optional<int64_t> extent = static_extent(axis);
        if (!extent || *extent % at_once != 0 || (guarded && mentions(guard, axis.name))) continue;
        const std::optional<Factor> a = factor(step, *found, product->args[0], axis.name, at_once);
        const std::optional<Factor> b = factor(step, *found, product->args[1], axis.name, at_once);
        if (!a || !b || a->read->name == b->read->name) continue;
        if (std::max(a->per_word, b->per_word) != at_once) continue;
        Definition definition = *found;
        for (Axis& reduced : definition.reduce_axes) {
          if (reduced.name == axis.name) reduced.extent = Expr(*extent / at_once);
        }
        const std::vector<Expr> left = pairs_of(step, *a, at_once);
        const std::vector<Expr> right = pairs_of(step, *b, at_once);
        Expr products = loop::binary(Op::dot2, left[0], right[0]);
        if (at_once == 4) products = products + loop::binary(Op::dot2, left[1], right[1]);
        Expr& value = definition.accumulators[0].value;
        value = guarded ? loop::if_then_else(guard, products, value->args[2]) : products;
        kernel.body = loop::define(std::move(definition));
        return;
      }
    }
  }

  /// A factor that can be read as pairs along the axis: a small constant, or 16-bit integers that
  /// lie one behind another. A constant of bytes is read by fours, if so many are taken `at_once`.
  std::optional<Factor> factor(const Step& step, const Definition& definition, const Expr& value,
                               const std::string& axis, int64_t at_once) const {
    const Expr& read = value->kind == ExprKind::cast ? value->args[0] : value;
    if (read->kind != ExprKind::access || read->args.empty()) return std::nullopt;
    int64_t reads = 0;
    for_each_access(definition,
                    [&](const loop::ExprNode& other, bool) { reads += other.name == read->name; });
    std::optional<size_t> dimension;
    for (size_t d = 0; d < read->args.size(); ++d) {
      if (!mentions(read->args[d], axis)) continue;
      if (dimension || read->args[d]->kind != ExprKind::var) return std::nullopt;
      dimension = d;
    }
    if (reads != 1 || !dimension) return std::nullopt;
    const Kernel& kernel = result_.kernels.at(step.kernel);
    const Buffer& buffer = result_.buffer(loop::buffer_of(kernel, step, read->name));
    const Dim& length = buffer.shape[*dimension];
    if (!length.is_constant() || length.constant() % at_once != 0) return std::nullopt;
    if (!loop::passes_constant(result_, kernel, step, read->name)) {
      const bool in_words = *dimension + 1 == read->args.size() && lies_in_words(buffer);
      return in_words ? std::optional(Factor{read, *dimension}) : std::nullopt;
    }
    if (!fits(buffer.value, Scalar::i16)) return std::nullopt;
    const bool by_fours = at_once == 4 && keeps_bytes_ && fits(buffer.value, Scalar::i8);
    return Factor{read, *dimension, by_fours ? 4 : 2};
  }

  /// In the arena, at a place that words may have.
  bool lies_in_words(const Buffer& buffer) const {
    if (buffer.element != ElementType::i16 || buffer.kind != BufferClass::arena) return false;
    for (const Buffer* at = &buffer; at->view_of >= 0; at = &result_.buffer(at->view_of)) {
      if (!(Dim::floor_div(at->view_offset, 2) * Dim(2) == at->view_offset)) return false;
    }
    return true;
  }

  /// What is read `at_once`, as pairs.
  std::vector<Expr> pairs_of(Step& step, const Factor& factor, int64_t at_once) {
    hand_over_words(step, factor);
    const auto word = [&](const Expr& index) {
      std::vector<Expr> indices = factor.read->args;
      indices[factor.dimension] = index;
      return loop::access(factor.read->name, Scalar::i32, indices);
    };
    const Expr at = factor.read->args[factor.dimension];
    if (factor.per_word == 4) {
      return {loop::unary(Op::even_bytes, word(at)), loop::unary(Op::odd_bytes, word(at))};
    }
    if (at_once == 4) return {word(at * 2), word(at * 2 + 1)};
    return {word(at)};
  }

  /// Makes the call hand over words.
  void hand_over_words(Step& step, const Factor& factor) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      loop::BufferParam& param = kernel.buffers[i];
      std::erase(param.over, factor.read->name);
      if (param.name != factor.read->name) continue;
      const BufferId id = step.buffers[i];
      Buffer words = result_.buffer(id);
      words.element = ElementType::i32;
      words.shape[factor.dimension] =
          Dim::floor_div(words.shape[factor.dimension], factor.per_word);
      if (words.kind == BufferClass::constant) {
        words.value = as_words(words.value, factor.dimension, factor.per_word);
        words.alignment = 0;
      } else {
        Buffer& whole = result_.buffers[static_cast<size_t>(result_.owner(id))];
        whole.alignment = std::max<int64_t>(whole.alignment, byte_size(ElementType::i32));
        words.view_of = id;
        words.view_offset = 0;
      }
      param.element = Scalar::i32;
      param.shape = words.shape;
      const std::string wish = words.name + (factor.per_word == 4 ? "_bytes" : "_pairs");
      step.buffers[i] = loop::add_buffer(result_, wish, std::move(words));
    }
  }

  const bool keeps_bytes_;
  Program result_;
  std::map<std::string, int64_t> calls_;
};

}  // namespace

Program pair_products(const Program& program, const TargetInfo& target) {
  return target.pair_products ? Pairing(program, target).run() : program;
}

}  // namespace backcast
