#include "passes/schedule/store_words.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "ir/loop/words.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferId;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Op;
using loop::Program;
using loop::Scalar;
using loop::Step;

class WordStores {
 public:
  explicit WordStores(const Program& program)
      : result_(program), calls_(loop::count_calls(program)) {}

  Program run() {
    for (loop::EntryPoint& entry : result_.entries) {
      loop::for_each_call(entry.steps, [&](Step& step) { store(step); });
    }
    return std::move(result_);
  }

 private:
  void store(Step& step) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    const Definition* found = loop::only_definition(kernel);
    if (calls_[step.kernel] != 1 || found == nullptr || !found->accumulators.empty()) return;
    if (found->outputs.size() != 1 || found->axes.empty()) return;
    const loop::DefinitionOutput& output = found->outputs[0];
    const loop::Axis& innermost = found->axes.back();
    const BufferId id = loop::buffer_of(kernel, step, output.buffer);
    const std::optional<int64_t> count = per_word(result_.buffer(id));
    if (!count || static_extent(innermost) != *count) return;
    const Expr& last = output.indices.back();
    if (last->kind != ExprKind::var || last->name != innermost.name) return;

    Definition definition = *found;
    loop::DefinitionOutput& words = definition.outputs[0];
    words.value = word_of(*found, *count);
    words.indices.back() = Expr(0);
    definition.axes.pop_back();
    loop::hand_over_words(result_, kernel, step, output.buffer,
                          loop::add_words(result_, id, *count));
    kernel.body = loop::define(std::move(definition));
  }

  /// How many elements are a word, which is all that the last dimension has.
  std::optional<int64_t> per_word(const Buffer& buffer) const {
    const int64_t size = byte_size(buffer.element);
    if (!is_integer(buffer.element) || (size != 1 && size != 2)) return std::nullopt;
    if (!loop::lies_in_words(result_, buffer, 4 / size)) return std::nullopt;
    return buffer.shape.back() == Dim(4 / size) ? std::optional(4 / size) : std::nullopt;
  }

  static Expr word_of(const Definition& definition, int64_t count) {
    const auto constant = [](int64_t value) {
      return loop::int_constant(loop::Type{Scalar::i32}, value);
    };
    const std::string& innermost = definition.axes.back().name;
    const std::map<std::string, DimRange> ranges = ranges_of(definition.axes);
    Expr word;
    for (int64_t i = 0; i < count; ++i) {
      const Expr element = loop::simplify(
          loop::substitute(definition.outputs[0].value, {{innermost, Expr(i)}}), ranges);
      const bool was_wide =
          element->kind == ExprKind::cast && element->args[0].type() == loop::Type{Scalar::i32};
      const Expr whole = was_wide ? element->args[0] : loop::cast(loop::Type{Scalar::i32}, element);
      const Expr bits = loop::binary(Op::bit_and, whole, constant(count == 4 ? 0xff : 0xffff));
      const Expr placed = i == 0 ? bits : loop::binary(Op::shl, bits, constant(32 / count * i));
      word = word ? loop::binary(Op::bit_or, word, placed) : placed;
    }
    return loop::simplify(word, ranges);
  }

  Program result_;
  std::map<std::string, int64_t> calls_;
};

}  // namespace

Program store_words(const Program& program, const TargetInfo& target) {
  return target.vector_bits > 0 ? WordStores(program).run() : program;
}

}  // namespace backcast
