// See example_steps.h. An axis of c indices per example has the value n·c + r: an index that is
// e·n + s in that reaches the part of example n of a dimension with e indices for each. Where parts
// of examples alternate in a dimension, it must be the index as it is.
#include "passes/lower/example_steps.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/partition.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::BufferParam;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;

// Stands for the example in the course of matching; no axis has such a name.
constexpr const char* kExample = "example n";
// And for an axis of which alternating parts are an example's.
constexpr const char* kPart = "part of n";

class Matcher {
 public:
  Matcher(const Kernel& kernel, const Dim& examples, const SymbolRanges& symbols)
      : kernel_(kernel), examples_(examples), symbols_(symbols) {}

  /// By an axis of the definition of which examples have such a share.
  std::optional<ExampleKernel> match(const std::string& axis, const ExampleShare& share) {
    definition_ = *loop::only_definition(kernel_);
    found_ = {};
    whole_.clear();
    fits_ = true;
    alternates_ = share.outside > 1 ? std::optional(share) : std::nullopt;
    axis_ = axis;
    if (alternates_) {
      find_axis()->extent = Expr(share.outside * share.each);
    } else {
      take_apart(axis, share.each);
    }
    for (loop::DefinitionOutput& output : definition_.outputs) {
      output.indices = of_one(output.buffer, output.indices);
    }
    if (!whole_.empty()) return std::nullopt;  // results that are no example's own
    transform(definition_, [&](const Expr& e) {
      if (e->kind != ExprKind::access) return e;
      return loop::access(e->name, e.type().scalar, of_one(e->name, e->args));
    });
    const bool mixed = std::any_of(whole_.begin(), whole_.end(),
                                   [&](size_t param) { return found_.apart.contains(param); });
    if (!fits_ || mixed || depends_on_example()) return std::nullopt;
    finish();
    return found_;
  }

  size_t position(const std::string& param) const {
    size_t at = 0;
    while (kernel_.buffers[at].name != param) ++at;
    return at;
  }

 private:
  std::vector<Axis>::iterator find_axis() {
    return std::find_if(definition_.axes.begin(), definition_.axes.end(),
                        [&](const Axis& axis) { return axis.name == axis_; });
  }

  void take_apart(const std::string& name, int64_t each) {
    Expr value = loop::var(kExample);
    ranges_ = ranges_of(definition_.axes);
    for (const auto& [axis, range] : ranges_of(definition_.reduce_axes)) ranges_[axis] = range;
    ranges_[kExample] = {0, std::max<int64_t>(examples_.range(symbols_).max, 1) - 1};
    const auto axis = find_axis();
    if (each == 1) {
      definition_.axes.erase(axis);
    } else {
      axis->extent = Expr(each);
      ranges_[name] = {0, each - 1};
      value = value * Expr(each) + loop::var(name);
    }
    definition_ = moved(std::move(definition_), {{name, value}});
  }

  /// The indices of what an example reaches in its own part of a parameter, or in the whole one.
  std::vector<Expr> of_one(const std::string& name, std::vector<Expr> indices) {
    const size_t param = position(name);
    std::optional<ExampleShare> share;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (alternates_ && indices[d]->kind == ExprKind::var && indices[d]->name == axis_) {
        const Dim extent = examples_ * Dim(alternates_->outside * alternates_->each);
        fits_ = fits_ && !share && kernel_.buffers[param].shape[d] == extent;
        share = {d, alternates_->each, alternates_->outside};
        indices[d] = loop::var(kPart);
        continue;
      }
      if (!depends(indices[d])) continue;
      const Expr index = loop::simplify(indices[d], ranges_);
      const std::optional<int64_t> each = coefficient(index, kExample);
      fits_ = fits_ && each && !share &&
              quotient(kernel_.buffers[param].shape[d], examples_, symbols_) == each;
      if (!fits_) return indices;
      share = {d, *each};
      indices[d] = loop::simplify(loop::substitute(index, {{kExample, Expr(0)}}), ranges_);
      fits_ = is_within(indices[d], *each);
    }
    if (!share) {
      whole_.insert(param);
      return indices;
    }
    const auto [known, fresh] = found_.apart.emplace(param, *share);
    fits_ = fits_ && known->second == *share;
    return indices;
  }

  /// Whether an index stays among those of one example.
  bool is_within(const Expr& index, int64_t each) const {
    int64_t holds = 0;
    const Expr inside = index >= Expr(0) && index < Expr(each);
    return loop::as_constant(loop::simplify(inside, ranges_), holds) && holds != 0;
  }

  /// On which example it is, other than by what was taken apart.
  bool depends(const Expr& e) const {
    return mentions(e, kExample) || (alternates_ && mentions(e, axis_));
  }

  bool depends_on_example() const {
    const auto uses = [&](const Expr& e) { return depends(e); };
    return std::any_of(
               definition_.accumulators.begin(), definition_.accumulators.end(),
               [&](const loop::Accumulator& acc) { return uses(acc.value) || uses(acc.init); }) ||
           std::any_of(definition_.outputs.begin(), definition_.outputs.end(),
                       [&](const loop::DefinitionOutput& output) { return uses(output.value); });
  }

  void finish() {
    Kernel& one = found_.one;
    one = kernel_;
    std::set<std::string> sizes;
    for (size_t i = 0; i < one.buffers.size(); ++i) {
      BufferParam& param = one.buffers[i];
      const auto share = found_.apart.find(i);
      if (share != found_.apart.end()) param.shape = shape_of_one(param.shape, share->second);
      for (const Dim& extent : param.shape) extent.collect_symbols(sizes);
      std::erase_if(param.over, [&](const std::string& over) {
        return !found_.apart.contains(position(over));
      });
    }
    one.body = loop::define(definition_);
    if (alternates_) one.body = loop::substitute(one.body, {{kPart, loop::var(axis_)}});
    one.body = loop::simplify(one.body);
    loop::visit(one.body, nullptr, [&](const Expr& e) {
      if (e->kind == ExprKind::var) sizes.insert(e->name);
    });
    std::erase_if(one.sizes, [&](const std::string& size) { return !sizes.contains(size); });
    one.macs = kernel_.macs / std::max<int64_t>(examples_.range(symbols_).max, 1);
  }

  const Kernel& kernel_;
  const Dim& examples_;
  const SymbolRanges& symbols_;
  Definition definition_;
  std::string axis_;
  std::optional<ExampleShare> alternates_;
  std::map<std::string, DimRange> ranges_;
  std::set<size_t> whole_;  // parameters that are read without regard to the example
  bool fits_ = true;
  ExampleKernel found_;
};

}  // namespace

std::optional<int64_t> quotient(const Dim& a, const Dim& b, const SymbolRanges& symbols) {
  const int64_t most = a.range(symbols).max, of = b.range(symbols).max;
  if (of < 1 || most % of != 0 || !(b * Dim(most / of) == a)) return std::nullopt;
  return most / of;
}

Dim elements_inside(const Dims& shape, const ExampleShare& share) {
  Dim count(share.each);
  for (size_t d = share.dimension + 1; d < shape.size(); ++d) count = count * shape[d];
  return count;
}

std::optional<ExampleShare> share_of(const Dims& shape, const Dim& inside, const Dim& examples,
                                     const SymbolRanges& symbols) {
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::optional<int64_t> each = quotient(inside, elements_inside(shape, {d}), symbols);
    if (!each) continue;
    const std::optional<int64_t> outside = quotient(shape[d], examples * Dim(*each), symbols);
    if (outside && *outside > 0) return ExampleShare{d, *each, *outside};
  }
  return std::nullopt;
}

Dims shape_of_one(Dims shape, const ExampleShare& share) {
  shape[share.dimension] = Dim(share.outside * share.each);
  return shape;
}

std::optional<ExampleKernel> match_examples(const Kernel& kernel, const Dim& examples,
                                            const std::map<size_t, ExampleShare>& known,
                                            const SymbolRanges& symbols) {
  const Definition* definition = loop::only_definition(kernel);
  const bool updates =
      std::any_of(kernel.buffers.begin(), kernel.buffers.end(),
                  [](const BufferParam& p) { return p.mode == loop::AccessMode::update; });
  if (definition == nullptr || updates) return std::nullopt;
  Matcher matcher(kernel, examples, symbols);
  const int64_t most = examples.range(symbols).max;
  std::set<std::string> tried;
  std::optional<ExampleKernel> found;
  const auto is_axis = [&](const Axis& axis, int64_t of_one) {
    return loop::equal(axis.extent, loop::expr_of(examples * Dim(of_one)));
  };
  const auto attempt = [&](const Expr& index, const ExampleShare& share) {
    for (const Axis& axis : definition->axes) {
      if (found || !mentions(index, axis.name)) continue;
      const bool as_it_is = index->kind == ExprKind::var;
      ExampleShare of_axis{0, most_of(axis, symbols) / std::max<int64_t>(most, 1), 1};
      if (as_it_is) of_axis = share;
      const bool fits = of_axis.each > 0 && (as_it_is || share.outside == 1) &&
                        share.each % of_axis.each == 0 &&
                        is_axis(axis, of_axis.outside * of_axis.each);
      if (fits && tried.insert(axis.name).second) found = matcher.match(axis.name, of_axis);
    }
  };
  for_each_access(*definition, [&](const loop::ExprNode& read, bool) {
    const auto share = known.find(matcher.position(read.name));
    if (share == known.end() || found) return;
    attempt(read.args[share->second.dimension], share->second);
  });
  const loop::DefinitionOutput& first = definition->outputs.front();
  if (!examples.is_constant() && known.empty() && !first.indices.empty() &&
      kernel.find(first.buffer)->shape[0] == examples) {
    attempt(first.indices[0], {});
  }
  return found;
}

}  // namespace backcast
