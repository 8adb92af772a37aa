#include "passes/schedule/pair_products.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "ir/loop/add.h"
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

/// A factor of the products: what is read, and the dimension that the sum runs along.
struct Factor {
  Expr read;
  size_t dimension = 0;
};

/// The pairs of a constant along a dimension, as words.
Literal paired(const Literal& value, size_t dimension) {
  std::vector<int64_t> shape = value.shape();
  int64_t inner = 1;
  for (size_t d = dimension + 1; d < shape.size(); ++d) inner *= shape[d];
  shape[dimension] /= 2;
  std::vector<int32_t> words(static_cast<size_t>(value.element_count() / 2));
  for (size_t w = 0; w < words.size(); ++w) {
    const int64_t row = static_cast<int64_t>(w) / inner, column = static_cast<int64_t>(w) % inner;
    const auto half = [&](int64_t i) {
      return static_cast<uint32_t>(value.as_int((2 * row + i) * inner + column)) & 0xffffu;
    };
    words[w] = static_cast<int32_t>(half(0) | half(1) << 16);
  }
  std::vector<std::byte> bytes(words.size() * sizeof(int32_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  return Literal(ElementType::i32, shape, std::move(bytes));
}

class Pairing {
 public:
  explicit Pairing(const Program& program) : result_(program) {}

  Program run() {
    calls_ = loop::count_calls(result_);
    for (loop::EntryPoint& entry : result_.entries) visit(entry.steps);
    return std::move(result_);
  }

 private:
  void visit(std::vector<Step>& steps) {
    for (Step& step : steps) {
      visit(step.body);
      visit(step.otherwise);
      if (step.kind == loop::StepKind::call && calls_[step.kernel] == 1) pair(step);
    }
  }

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
    for (const Axis& axis : found->reduce_axes) {
      const std::optional<int64_t> extent = static_extent(axis);
      if (!extent || *extent % 2 != 0) continue;
      if (guarded && mentions(sum.value->args[0], axis.name)) continue;
      const std::optional<Factor> a = factor(step, *found, product->args[0], axis.name);
      const std::optional<Factor> b = factor(step, *found, product->args[1], axis.name);
      if (!a || !b || a->read->name == b->read->name) continue;
      Definition definition = *found;
      for (Axis& reduced : definition.reduce_axes) {
        if (reduced.name == axis.name) reduced.extent = Expr(*extent / 2);
      }
      Expr words = loop::binary(Op::dot2, words_of(step, *a), words_of(step, *b));
      Expr& value = definition.accumulators[0].value;
      value = guarded ? loop::if_then_else(value->args[0], words, value->args[2]) : words;
      kernel.body = loop::define(std::move(definition));
      return;
    }
  }

  /// A factor that can be read as pairs along the axis: a small constant, or 16-bit integers that
  /// lie one behind another.
  std::optional<Factor> factor(const Step& step, const Definition& definition, const Expr& value,
                               const std::string& axis) const {
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
    if (!(buffer.shape[*dimension].is_constant() && buffer.shape[*dimension].constant() % 2 == 0)) {
      return std::nullopt;
    }
    const bool fits = loop::passes_constant(result_, kernel, step, read->name)
                          ? is_small(buffer.value)
                          : *dimension + 1 == read->args.size() && lies_in_words(buffer);
    return fits ? std::optional(Factor{read, *dimension}) : std::nullopt;
  }

  static bool is_small(const Literal& value) {
    if (!is_integer(value.element())) return false;
    if (byte_size(value.element()) == 1 || value.element() == ElementType::i16) return true;
    for (int64_t i = 0; i < value.element_count(); ++i) {
      if (value.as_int(i) != static_cast<int16_t>(value.as_int(i))) return false;
    }
    return true;
  }

  /// In the arena, at a place that words may have.
  bool lies_in_words(const Buffer& buffer) const {
    if (buffer.element != ElementType::i16 || buffer.kind != BufferClass::arena) return false;
    for (const Buffer* at = &buffer; at->view_of >= 0; at = &result_.buffer(at->view_of)) {
      if (!(Dim::floor_div(at->view_offset, 2) * Dim(2) == at->view_offset)) return false;
    }
    return true;
  }

  /// Makes the call hand over words; returns the access to them.
  Expr words_of(Step& step, const Factor& factor) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      loop::BufferParam& param = kernel.buffers[i];
      std::erase(param.over, factor.read->name);
      if (param.name != factor.read->name) continue;
      const BufferId id = step.buffers[i];
      Buffer words = result_.buffer(id);
      words.element = ElementType::i32;
      words.shape[factor.dimension] = Dim::floor_div(words.shape[factor.dimension], 2);
      if (words.kind == BufferClass::constant) {
        words.value = paired(words.value, factor.dimension);
        words.alignment = 0;
      } else {
        Buffer& whole = result_.buffers[static_cast<size_t>(result_.owner(id))];
        whole.alignment = std::max<int64_t>(whole.alignment, byte_size(ElementType::i32));
        words.view_of = id;
        words.view_offset = 0;
      }
      param.element = Scalar::i32;
      param.shape = words.shape;
      const std::string wish = words.name + "_pairs";
      step.buffers[i] = loop::add_buffer(result_, wish, std::move(words));
    }
    return loop::access(factor.read->name, Scalar::i32, factor.read->args);
  }

  Program result_;
  std::map<std::string, int64_t> calls_;
};

}  // namespace

Program pair_products(const Program& program, const TargetInfo& target) {
  return target.pair_products ? Pairing(program).run() : program;
}

}  // namespace backcast
