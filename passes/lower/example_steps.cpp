#include "passes/lower/example_steps.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::BufferParam;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;

class Matcher {
 public:
  Matcher(const Kernel& kernel, const SymbolRanges& symbols)
      : kernel_(kernel), symbols_(symbols), definition_(*loop::only_definition(kernel)) {}

  std::optional<ExampleKernel> run() {
    if (!find_axis() || !results()) return std::nullopt;
    transform(definition_, [&](const Expr& e) {
      if (e->kind != ExprKind::access) return e;
      return loop::access(e->name, e.type().scalar, of_one(e->name, e->args));
    });
    const bool mixed = std::any_of(found_.apart.begin(), found_.apart.end(),
                                   [&](size_t param) { return whole_.contains(param); });
    if (mixed || depends_on_example()) return std::nullopt;
    finish();
    return found_;
  }

 private:
  /// The axis that is the first index of the first result.
  bool find_axis() {
    const loop::DefinitionOutput& first = definition_.outputs.front();
    if (first.indices.empty() || first.indices[0]->kind != ExprKind::var) return false;
    const auto axis = std::find_if(definition_.axes.begin(), definition_.axes.end(),
                                   [&](const Axis& a) { return a.name == first.indices[0]->name; });
    found_.examples = kernel_.find(first.buffer)->shape[0];
    if (axis == definition_.axes.end() || found_.examples == Dim(1) ||
        !loop::equal(axis->extent, loop::expr_of(found_.examples))) {
      return false;
    }
    axis_ = *axis;
    definition_.axes.erase(axis);
    return true;
  }

  bool results() {
    for (loop::DefinitionOutput& output : definition_.outputs) {
      output.indices = of_one(output.buffer, output.indices);
    }
    return whole_.empty() &&
           std::all_of(kernel_.buffers.begin(), kernel_.buffers.end(),
                       [](const BufferParam& p) { return p.mode != loop::AccessMode::update; });
  }

  /// The indices of what an example reaches in its own part of a parameter, or in the whole one.
  std::vector<Expr> of_one(const std::string& name, std::vector<Expr> indices) {
    size_t param = 0;
    while (kernel_.buffers[param].name != name) ++param;
    const Dims& shape = kernel_.buffers[param].shape;
    if (!indices.empty() && shape[0] == found_.examples && indices[0]->kind == ExprKind::var &&
        indices[0]->name == axis_.name) {
      found_.apart.insert(param);
      indices[0] = Expr(0);
    } else {
      whole_.insert(param);
    }
    return indices;
  }

  bool depends_on_example() const {
    const auto uses = [&](const Expr& e) { return mentions(e, axis_.name); };
    const auto reaches = [&](const loop::DefinitionOutput& output) {
      return uses(output.value) || std::any_of(output.indices.begin(), output.indices.end(), uses);
    };
    return std::any_of(
               definition_.accumulators.begin(), definition_.accumulators.end(),
               [&](const loop::Accumulator& acc) { return uses(acc.value) || uses(acc.init); }) ||
           std::any_of(definition_.outputs.begin(), definition_.outputs.end(), reaches) ||
           std::any_of(definition_.reduce_axes.begin(), definition_.reduce_axes.end(),
                       [&](const Axis& axis) { return uses(axis.extent); });
  }

  void finish() {
    Kernel& one = found_.one;
    one = kernel_;
    std::set<std::string> sizes;
    for (size_t i = 0; i < one.buffers.size(); ++i) {
      if (found_.apart.contains(i)) one.buffers[i].shape[0] = Dim(1);
      for (const Dim& extent : one.buffers[i].shape) extent.collect_symbols(sizes);
      std::erase_if(one.buffers[i].over, [&](const std::string& over) {
        const auto read = std::find_if(one.buffers.begin(), one.buffers.end(),
                                       [&](const BufferParam& p) { return p.name == over; });
        return !found_.apart.contains(static_cast<size_t>(read - one.buffers.begin()));
      });
    }
    one.body = loop::simplify(loop::define(definition_));
    loop::visit(one.body, nullptr, [&](const Expr& e) {
      if (e->kind == ExprKind::var) sizes.insert(e->name);
    });
    std::erase_if(one.sizes, [&](const std::string& size) { return !sizes.contains(size); });
    one.macs = kernel_.macs / std::max<int64_t>(most_of(axis_, symbols_), 1);
  }

  const Kernel& kernel_;
  const SymbolRanges& symbols_;
  Definition definition_;
  Axis axis_;
  std::set<size_t> whole_;  // parameters that are read without regard to the example
  ExampleKernel found_;
};

}  // namespace

std::optional<ExampleKernel> match_examples(const Kernel& kernel, const SymbolRanges& symbols) {
  if (loop::only_definition(kernel) == nullptr) return std::nullopt;
  return Matcher(kernel, symbols).run();
}

}  // namespace backcast
