// See place_parts.h. A kernel is looked at when, cut where its conditions change, some piece of it
// copies all of a tensor.
#include "passes/lower/place_parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/loop/add.h"
#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/partition.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::BufferParam;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::StepKind;

/// A piece of a kernel that copies all of a tensor, and where the tensor's first element goes.
struct Part {
  size_t piece = 0;
  BufferId tensor = -1;
  std::vector<int64_t> begin;
};

std::vector<Expr> shifted(const std::vector<Expr>& indices, const std::vector<int64_t>& begin) {
  std::vector<Expr> result;
  for (size_t d = 0; d < indices.size(); ++d) result.push_back(indices[d] + Expr(begin[d]));
  return result;
}

/// Whether index d is axis d, from 0 on or, where `begin` is given, from there on.
bool runs_along_axes(const std::vector<Expr>& indices, const std::vector<loop::Axis>& axes,
                     std::vector<int64_t>* begin) {
  if (indices.size() != axes.size()) return false;
  std::map<std::string, int64_t> zero;
  for (const loop::Axis& axis : axes) zero[axis.name] = 0;
  for (size_t d = 0; d < axes.size(); ++d) {
    const std::optional<int64_t> first = evaluate(indices[d], zero);
    if (!first || (begin == nullptr && *first != 0)) return false;
    for (size_t a = 0; a < axes.size(); ++a) {
      if (static_extent(axes[a]) == 1) continue;
      if (coefficient(indices[d], axes[a].name) != (a == d ? 1 : 0)) return false;
    }
    if (begin) begin->push_back(*first);
  }
  return true;
}

class Placement {
 public:
  explicit Placement(const Program& program) : result_(program) {}

  Program run() {
    count();
    for (const Buffer& buffer : result_.buffers) {
      if (buffer.view_of >= 0) has_views_.insert(buffer.view_of);
    }
    for (loop::EntryPoint& entry : result_.entries) {
      entry_ = &entry;
      visit(entry.steps);
    }
    loop::drop_uncalled(result_);
    return std::move(result_);
  }

 private:
  static size_t index(BufferId id) { return static_cast<size_t>(id); }

  /// Who uses what, after a change.
  void count() {
    uses_.assign(result_.buffers.size(), 0);
    calls_ = loop::count_calls(result_);
    for (const loop::EntryPoint& entry : result_.entries) {
      for (const Step* step : loop::flat_steps(entry.steps)) {
        for (const BufferId id : step->buffers) {
          if (id >= 0) ++uses_[index(result_.owner(id))];
        }
      }
    }
  }

  void visit(std::vector<Step>& steps) {
    for (Step& step : steps) {
      visit(step.body);
      visit(step.otherwise);
    }
    for (size_t k = 0; k < steps.size(); ++k) {
      if (steps[k].kind == StepKind::call) place(steps, k);
    }
  }

  const Definition* definition_of(const Step& step) const {
    if (step.kind != StepKind::call) return nullptr;
    return loop::only_definition(result_.kernels.at(step.kernel));
  }

  void place(std::vector<Step>& steps, size_t k) {
    const Definition* definition = definition_of(steps[k]);
    const Kernel& kernel = result_.kernels.at(steps[k].kernel);
    if (definition == nullptr || !definition->accumulators.empty() || !kernel.sizes.empty()) return;
    if (definition->outputs.size() != 1) return;
    const std::vector<Definition> pieces = partition(*definition);
    if (pieces.size() < 2) return;
    const BufferId whole = loop::buffer_of(kernel, steps[k], definition->outputs[0].buffer);
    if (!may_take_parts(steps, k, whole)) return;
    std::vector<Part> parts;
    for (size_t p = 0; p < pieces.size(); ++p) {
      std::optional<Part> part = copied(pieces[p], kernel, steps[k]);
      if (!part || !may_move(steps, k, part->tensor)) continue;
      if (readers(pieces, pieces[p].outputs[0].value->name) > 1) continue;
      part->piece = p;
      parts.push_back(std::move(*part));
    }
    fit(whole, parts);
    if (parts.empty()) return;
    for (const Part& part : parts) move(steps, k, part, whole);
    replace(steps, k, pieces, parts);
  }

  /// How many pieces read a parameter: what stands in two places is written in neither.
  static int64_t readers(const std::vector<Definition>& pieces, const std::string& param) {
    return std::count_if(pieces.begin(), pieces.end(), [&](const Definition& piece) {
      bool reads = false;
      for_each_access(
          piece, [&](const loop::ExprNode& read, bool) { reads = reads || read.name == param; });
      return reads;
    });
  }

  /// The tensor that a piece copies, when that is all of it.
  static std::optional<Part> copied(const Definition& piece, const Kernel& kernel,
                                    const Step& step) {
    const Expr& value = piece.outputs[0].value;
    Part part;
    if (value->kind != ExprKind::access) return std::nullopt;
    if (!runs_along_axes(value->args, piece.axes, nullptr)) return std::nullopt;
    if (!runs_along_axes(piece.outputs[0].indices, piece.axes, &part.begin)) return std::nullopt;
    const Dims& shape = kernel.find(value->name)->shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!(shape[d] == Dim(static_extent(piece.axes[d]).value_or(-1)))) return std::nullopt;
    }
    part.tensor = loop::buffer_of(kernel, step, value->name);
    return part;
  }

  /// Whether nothing touches a tensor before step k, which writes all of it.
  bool may_take_parts(const std::vector<Step>& steps, size_t k, BufferId whole) const {
    const BufferId owner = result_.owner(whole);
    const BufferClass kind = result_.buffer(owner).kind;
    if (kind != BufferClass::arena && kind != BufferClass::output) return false;
    if (entry_->optional_outputs.contains(owner)) return false;
    if (!is_static(result_.buffer(whole).shape)) return false;
    return std::none_of(steps.begin(), steps.begin() + static_cast<int64_t>(k), [&](const Step& s) {
      return loop::written_buffers(result_, s).contains(owner) ||
             loop::read_buffers(result_, s).contains(owner);
    });
  }

  /// Whether definitions of this list are all that uses the tensor, and nothing writes it from step
  /// k on.
  bool may_move(const std::vector<Step>& steps, size_t k, BufferId tensor) const {
    const Buffer& buffer = result_.buffer(tensor);
    if (buffer.kind != BufferClass::arena || buffer.view_of >= 0) return false;
    if (has_views_.contains(tensor) || positions(steps[k], tensor).size() != 1) return false;
    int64_t seen = 0, writes = 0;
    for (size_t s = 0; s < steps.size(); ++s) {
      const std::vector<size_t> at = positions(steps[s], tensor);
      if (at.empty()) continue;
      if (definition_of(steps[s]) == nullptr) return false;
      const Kernel& kernel = result_.kernels.at(steps[s].kernel);
      for (const size_t i : at) {
        const BufferParam& param = kernel.buffers[i];
        if (!kernel.sizes.empty() || param.shape != buffer.shape) return false;
        if (param.mode == AccessMode::update) return false;
        if (param.mode == AccessMode::write && s >= k) return false;
        writes += param.mode == AccessMode::write;
        ++seen;
      }
    }
    return writes > 0 && seen == uses_[index(tensor)];
  }

  static std::vector<size_t> positions(const Step& step, BufferId id) {
    std::vector<size_t> result;
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      if (step.buffers[i] == id) result.push_back(i);
    }
    return result;
  }

  /// Leaves parts where they are, first those that would be in the larger tensor longest, until the
  /// program needs no more memory than before.
  void fit(BufferId whole, std::vector<Part>& parts) const {
    std::vector<loop::LiveRange> ranges = loop::live_ranges(result_, *entry_);
    const int64_t most = peak(ranges);
    const auto first = [&](const Part& part) { return ranges[index(part.tensor)].first; };
    std::sort(parts.begin(), parts.end(),
              [&](const Part& a, const Part& b) { return first(a) > first(b); });
    for (; !parts.empty(); parts.pop_back()) {
      std::vector<loop::LiveRange> moved = ranges;
      loop::LiveRange& all = moved[index(result_.owner(whole))];
      for (const Part& part : parts) {
        loop::LiveRange& range = moved[index(part.tensor)];
        all = {std::min(all.first, range.first), std::max(all.last, range.last)};
        range = {};
      }
      if (peak(moved) <= most) return;
    }
  }

  /// The most bytes that live at a step. The result of a map may lie over an operand that ends.
  int64_t peak(const std::vector<loop::LiveRange>& ranges) const {
    const std::vector<const Step*> steps = loop::flat_steps(entry_->steps);
    std::vector<int64_t> begun(steps.size()), ended(steps.size()), shared(steps.size());
    for (size_t id = 0; id < ranges.size(); ++id) {
      if (result_.buffers[id].kind != BufferClass::arena || ranges[id].last < 0) continue;
      const int64_t bytes = result_.storage_bytes(static_cast<BufferId>(id));
      const size_t last = static_cast<size_t>(ranges[id].last);
      begun[static_cast<size_t>(ranges[id].first)] += bytes;
      ended[last] += bytes;
      const Definition* definition = definition_of(*steps[last]);
      const bool map = definition != nullptr && definition->accumulators.empty();
      if (map) shared[last] = std::max(shared[last], bytes);
    }
    int64_t live = 0, most = 0;
    for (size_t t = 0; t < steps.size(); ++t) {
      live += begun[t];
      most = std::max(most, live - std::min(begun[t], shared[t]));
      live -= ended[t];
    }
    return most;
  }

  /// Makes all steps but k use the larger tensor instead of the part.
  void move(std::vector<Step>& steps, size_t k, const Part& part, BufferId whole) {
    for (size_t s = 0; s < steps.size(); ++s) {
      const std::vector<size_t> at = positions(steps[s], part.tensor);
      if (s == k || at.empty()) continue;
      Kernel& kernel = own_kernel(steps[s]);
      for (const size_t i : at) {
        BufferParam& param = kernel.buffers[i];
        kernel.body = loop::define(moved(*loop::only_definition(kernel), param.name, part.begin));
        param.shape = result_.buffer(whole).shape;
        param.over.clear();
        for (BufferParam& other : kernel.buffers) std::erase(other.over, param.name);
        steps[s].buffers[i] = whole;
      }
      merge_reads(kernel, steps[s], whole);
    }
    Buffer& target = result_.buffers[index(result_.owner(whole))];
    target.alignment = std::max(target.alignment, result_.buffer(part.tensor).alignment);
  }

  static Definition moved(Definition definition, const std::string& name,
                          const std::vector<int64_t>& begin) {
    transform(definition, [&](const Expr& e) -> Expr {
      if (e->kind != ExprKind::access || e->name != name) return e;
      return loop::access(name, e.type().scalar, shifted(e->args, begin));
    });
    for (loop::DefinitionOutput& output : definition.outputs) {
      if (output.buffer == name) output.indices = shifted(output.indices, begin);
    }
    return definition;
  }

  /// Parameters through which a kernel reads one tensor become one parameter.
  static void merge_reads(Kernel& kernel, Step& step, BufferId tensor) {
    std::map<std::string, std::string> names;
    const BufferParam* first = nullptr;
    for (const size_t i : positions(step, tensor)) {
      const BufferParam& param = kernel.buffers[i];
      if (param.mode != AccessMode::read) continue;
      if (first == nullptr) first = &param;
      if (first != &param && param.shape == first->shape) names[param.name] = first->name;
    }
    if (names.empty()) return;
    kernel.body = loop::rename_buffers(kernel.body, names);
    loop::drop_unread(kernel, step);
  }

  /// The step's kernel, called by nobody else.
  Kernel& own_kernel(Step& step) {
    if (calls_[step.kernel] > 1) {
      --calls_[step.kernel];
      Kernel copy = result_.kernels.at(step.kernel);
      step.kernel = loop::add_kernel(result_, step.kernel, std::move(copy));
      calls_[step.kernel] = 1;
    }
    return result_.kernels.at(step.kernel);
  }

  /// One step for each piece of step k that is left.
  void replace(std::vector<Step>& steps, size_t k, const std::vector<Definition>& pieces,
               const std::vector<Part>& parts) {
    const Step old = steps[k];
    const Kernel kernel = result_.kernels.at(old.kernel);
    std::vector<Step> left;
    for (size_t p = 0; p < pieces.size(); ++p) {
      const bool placed = std::any_of(parts.begin(), parts.end(),
                                      [&](const Part& part) { return part.piece == p; });
      if (placed) continue;
      Kernel rest = kernel;
      Step step = old;
      rest.body = loop::define(pieces[p]);
      for (BufferParam& param : rest.buffers) param.over.clear();
      loop::drop_unread(rest, step);
      step.kernel = loop::add_kernel(result_, kernel.name, std::move(rest));
      left.push_back(std::move(step));
    }
    const auto at = steps.erase(steps.begin() + static_cast<int64_t>(k));
    steps.insert(at, left.begin(), left.end());
    count();
  }

  Program result_;
  std::vector<int64_t> uses_;  // by owner
  std::map<std::string, int64_t> calls_;
  std::set<BufferId> has_views_;
  const loop::EntryPoint* entry_ = nullptr;
};

}  // namespace

Program place_parts(const Program& program) { return Placement(program).run(); }

}  // namespace backcast
