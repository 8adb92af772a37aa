// One walk over the steps in order. Each step first takes in its producers' definitions (inline),
// then merges, if it is elementwise, with the kernel that computes what it reads: as its epilogue
// when nothing else reads that, as one more result otherwise. A second walk joins steps that read
// the same over the same axes (siblings).
#include "passes/lower/fuse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/lower/fusion_unit.h"
#include "passes/lower/siblings.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::BufferClass;
using loop::BufferId;
using loop::Definition;
using loop::DefinitionOutput;
using loop::Expr;
using loop::ExprKind;
using loop::Program;
using loop::Step;

// Larger kernels gain nothing and cost the compilers time. Several results have more to share.
constexpr int64_t kMaxCost = 48;
constexpr int64_t kMaxJointCost = 96;
constexpr size_t kMaxParams = 24;
// Larger kernels with several results need more streams than a core follows.
constexpr size_t kMaxResults = 6;
// Readings for which a host converts small constants in a sum rather than beforehand: registers
// share a conversion among some of them, and memory is slower than the others (measured, 4 bits).
constexpr int64_t kMostConversions = 64;
// Where it would be a constant of twice the size instead, not made again in every call.
constexpr int64_t kMostOfHalves = 32;
constexpr int64_t kConversionCost = 3;  // less a zero point, times a scale, and one more

class Fusion {
 public:
  Fusion(const Program& program, const TargetInfo& target) : program_(program), target_(target) {
    for (const auto& [symbol, range] : program.symbols) least_[symbol] = {range.min, range.min};
  }

  Program run() {
    Program result = program_;
    for (size_t e = 0; e < program_.entries.size(); ++e)
      result.entries[e].steps = fuse_entry(program_.entries[e], result);
    return result;
  }

 private:
  std::vector<Step> fuse_entry(const loop::EntryPoint& entry, Program& result) {
    alone_.clear();
    for (BufferId id : entry.optional_outputs) alone_.insert(program_.owner(id));
    // Sizes are read from memory.
    for (const auto& [id, symbol] : entry.extents) {
      if (in_arena(id)) alone_.insert(program_.owner(id));
    }
    std::map<BufferId, const std::vector<Step>*> writers;
    find_rewritten(entry.steps, writers);
    return fuse_steps(entry.steps, result);
  }

  /// What is written in two lists of steps (before a loop and in it, …) has no one producer.
  void find_rewritten(const std::vector<Step>& steps,
                      std::map<BufferId, const std::vector<Step>*>& writers) {
    for (const Step& step : steps) {
      if (step.body.empty() && step.otherwise.empty()) {
        for (BufferId id : loop::written_buffers(program_, step)) {
          if (writers.emplace(id, &steps).first->second != &steps) alone_.insert(id);
        }
      }
      find_rewritten(step.body, writers);
      find_rewritten(step.otherwise, writers);
    }
  }

  /// What loops and branches hold is fused for itself; from outside they only read and write.
  std::vector<Step> fuse_steps(const std::vector<Step>& from, Program& result) {
    std::vector<Step> inner = from;
    for (Step& step : inner) {
      step.body = fuse_steps(step.body, result);
      step.otherwise = fuse_steps(step.otherwise, result);
    }
    list_ = UnitList(program_, from, alone_);
    for (size_t s = 0; s < from.size(); ++s) {
      if (!list_.admit(s)) continue;
      inline_producers(s);
      merge_producers(s);
      if (!list_.is_gone(s)) list_.publish(s);
    }
    join_siblings(list_);
    std::vector<Step> to;
    for (size_t s = 0; s < from.size(); ++s) {
      if (list_.is_gone(s)) continue;
      if (!list_.has(s)) {
        to.push_back(std::move(inner[s]));
        continue;
      }
      loop::Kernel kernel;
      to.push_back(step_of(program_, list_.at(s), from[s], kernel));
      result.kernels[kernel.name] = std::move(kernel);
    }
    return to;
  }

  bool in_arena(BufferId id) const {
    return program_.buffer(program_.owner(id)).kind == BufferClass::arena;
  }

  // ---- inlining ---------------------------------------------------------------------------------

  void inline_producers(size_t s) {
    Unit& unit = list_.at(s);
    if (only_widens(unit)) return;
    for (int round = 0; round < 8; ++round) {
      std::set<size_t> wanted;
      std::set<BufferId> stay;  // owners, of what some read has to find in memory
      for_each_access(unit.definition, [&](const loop::ExprNode& read, bool in_reduction) {
        std::optional<Source> from = inlined_source(unit, read);
        if (!from) stay.insert(program_.owner(buffer_id(read.name)));
        if (from && worth_inlining(list_.at(from->step), unit.definition, in_reduction) &&
            !(unit.macs > 0 && scatters_words(unit.definition, read, *from))) {
          wanted.insert(from->step);
        }
      });
      std::erase_if(wanted, [&](size_t step) {
        const std::vector<BufferId> results = list_.at(step).outputs();
        return std::ranges::any_of(results,
                                   [&](BufferId id) { return stay.count(program_.owner(id)) > 0; });
      });
      if (wanted.empty()) return;
      Definition inlined = unit.definition;
      transform(inlined, [&](const Expr& e) -> Expr {
        if (e->kind != ExprKind::access) return e;
        std::optional<Source> from = inlined_source(unit, *e);
        if (!from || !wanted.count(from->step)) return e;
        return value_at(list_.at(from->step).definition, from->indices);
      });
      lift_guards(inlined);
      if (cost(inlined).total() > kMaxCost || params(inlined) > kMaxParams) return;
      unit.definition = std::move(inlined);
      for (size_t step : wanted) {
        adopt(unit, list_.at(step));
        list_.take_reads(s, step);
      }
    }
  }

  /// What is repeated along joined dimensions and meets another tensor there, such as the finer one
  /// of a pyramid, is read where it was repeated from, unless neighbours in a vector would have to
  /// divide their places. (Alone it stays a kernel, which may run band by band.)
  std::optional<Source> inlined_source(const Unit& unit, const loop::ExprNode& read) const {
    std::optional<Source> from = list_.source(read);
    const Definition& definition = unit.definition;
    if (from || !unit.is_map() || definition.axes.empty()) return from;
    from = list_.source(read, true);
    if (!from || cost(list_.at(from->step).definition).total() > 0) return std::nullopt;
    const std::string& innermost = definition.axes.back().name;
    const bool divides =
        std::any_of(from->indices.begin(), from->indices.end(), [&](const Expr& index) {
          return index->kind != ExprKind::var && mentions(index, innermost);
        });
    const BufferId own = program_.owner(buffer_id(read.name));
    const int64_t places = points(definition, program_.symbols);
    const bool meets = std::ranges::any_of(operands(definition), [&](BufferId id) {
      return program_.owner(id) != own && elements(program_, id) == places;
    });
    return divides || !meets ? std::nullopt : from;
  }

  /// Only converts small integers for its readers, each of which will do so when it reads: what is
  /// stored are the small ones.
  bool only_widens(const Unit& unit) const {
    const Definition& definition = unit.definition;
    if (!unit.is_map() || !unit.has_one_output() || !in_arena(unit.outputs()[0])) return false;
    const Expr& value = definition.outputs[0].value;
    if (value->kind != ExprKind::cast || value->args[0]->kind != ExprKind::access) return false;
    const auto bytes = [](const Expr& e) {
      const loop::Scalar type = e.type().scalar;
      return loop::is_integer(type) && type != loop::Scalar::index
                 ? byte_size(loop::element_of(type))
                 : 0;
    };
    const int64_t narrow = bytes(value->args[0]);
    if (narrow == 0 || bytes(value) <= narrow) return false;
    const std::set<size_t>& readers = list_.readers(unit.outputs()[0]);
    return std::all_of(readers.begin(), readers.end(),
                       [&](size_t reader) { return list_.original(reader) != nullptr; });
  }

  bool worth_inlining(const Unit& producer, const Definition& consumer, bool in_reduction) const {
    if (!producer.is_map() || !writes_at_its_axes(producer.definition)) return false;
    const BufferId value = producer.outputs()[0];
    if (!in_arena(value)) return false;
    DefinitionCost price = cost(producer.definition);
    if (price.indirect > 0 && in_reduction) return false;
    const std::set<size_t>& readers = list_.readers(value);
    if (chooses(producer.definition) && (in_reduction || readers.size() > 1)) return false;
    if (is_left_to_folding(producer.definition)) return false;
    if (price.total() == 0 || converts_for(producer.definition, consumer)) return true;
    if (points(consumer, program_.symbols) > points(producer.definition, program_.symbols) &&
        (in_reduction || readers.size() > 1 || !reads_once(program_, consumer, value))) {
      return false;
    }
    if (readers.size() == 1) return true;
    // Otherwise it has to disappear from all of them.
    return is_shift(producer.definition) &&
           std::all_of(readers.begin(), readers.end(), [&](size_t reader) {
             const Definition* other = list_.original(reader);
             return other != nullptr && points(*other, program_.symbols) <=
                                            points(producer.definition, program_.symbols);
           });
  }

  /// Whether what constants of half its size or less are converted to, element for element as
  /// quantised weights are, is to be converted wherever the consumer reads it: what has no RAM to
  /// spare always does.
  bool converts_for(const Definition& producer, const Definition& consumer) const {
    const BufferId value = buffer_id(producer.outputs[0].buffer);
    int64_t bytes = 0;
    bool converts = false;
    for (BufferId id : operands(producer)) {
      if (program_.buffer(program_.owner(id)).kind != BufferClass::constant) return false;
      converts = converts || elements(program_, id) == elements(program_, value);
      bytes += program_.storage_bytes(id);
    }
    converts = converts && 2 * bytes <= program_.storage_bytes(value);
    if (!converts || cost(producer).arithmetic > kConversionCost) return false;
    const int64_t most =
        2 * bytes == program_.storage_bytes(value) ? kMostOfHalves : kMostConversions;
    return target_.is_microcontroller() ||
           points(consumer, least_) <= most * points(producer, least_);
  }

  /// Whether constants are converted by many operations, where a step is one: fold_constants does
  /// it beforehand.
  bool is_left_to_folding(const Definition& producer) const {
    if (!target_.has_f32 || target_.converts_halves) return false;
    const std::set<BufferId> read = operands(producer);
    return !read.empty() && std::ranges::all_of(read, [&](BufferId id) {
      const loop::Buffer& owner = program_.buffer(program_.owner(id));
      return owner.kind == BufferClass::constant && owner.element == ElementType::f16;
    });
  }

  bool is_small_integer(const loop::ExprNode& read) const {
    const ElementType element = program_.buffer(buffer_id(read.name)).element;
    return is_integer(element) && byte_size(element) <= 2;
  }

  /// Whether small integers that lie one behind another along a sum, words for instructions that
  /// multiply several, would be read from apart.
  bool scatters_words(const Definition& sum, const loop::ExprNode& read, const Source& from) const {
    if (read.args.empty()) return false;
    const Expr value = value_at(list_.at(from.step).definition, from.indices);
    const bool has_words = is_small_integer(read);
    return std::any_of(sum.reduce_axes.begin(), sum.reduce_axes.end(), [&](const loop::Axis& axis) {
      if (coefficient(read.args.back(), axis.name) != 1) return false;
      bool apart = false;
      loop::visit(value, [&](const Expr& e) {
        if (e->kind != ExprKind::access || e->args.empty()) return;
        const bool in_words = is_small_integer(*e) && coefficient(e->args.back(), axis.name) == 1;
        apart = apart || ((has_words || is_small_integer(*e)) && !in_words);
      });
      return apart;
    });
  }

  /// Whether conditions choose between tensors, as in a concatenation: a sum that reads it would
  /// ask them for every term, and what is written once can be written part by part (place_parts.h).
  bool chooses(const Definition& definition) const {
    bool found = false;
    loop::visit(definition.outputs[0].value, [&](const Expr& e) {
      found = found || (e->kind == ExprKind::if_then_else && !reads_memory(e->args[0]) &&
                        reads_tensor(e->args[1]) && reads_tensor(e->args[2]));
    });
    return found;
  }

  bool reads_tensor(const Expr& value) const {
    bool found = false;
    loop::visit(value, [&](const Expr& e) {
      found = found || (e->kind == ExprKind::access && elements(program_, buffer_id(e->name)) > 1);
    });
    return found;
  }

  /// One operation on one tensor and values that many elements share: as cheap to do again in every
  /// reader as to read.
  bool is_shift(const Definition& definition) const {
    if (cost(definition).total() > 1) return false;
    const int64_t all = points(definition, program_.symbols);
    int64_t large = 0;
    for (BufferId id : operands(definition)) {
      if (!is_shared(program_, id, all)) large += elements(program_, id) == all ? 1 : 2;
    }
    return all > kSmallTensor && large == 1;
  }

  /// Whether every reader of a result will take in its definition.
  bool will_be_inlined(const Unit& unit) const {
    if (!unit.is_map() || !unit.has_one_output() || chooses(unit.definition)) return false;
    if (cost(unit.definition).indirect > 0) return false;  // sums, at least, will not
    const std::set<size_t>& readers = list_.readers(unit.outputs()[0]);
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](size_t reader) {
      const Definition* definition = list_.original(reader);
      return definition != nullptr && worth_inlining(unit, *definition, false);
    });
  }

  // ---- epilogues and further results ------------------------------------------------------------

  void merge_producers(size_t s) {
    for (int round = 0; round < 4; ++round) {
      if (list_.is_gone(s) || !list_.at(s).is_map() || !list_.at(s).has_one_output()) return;
      if (only_widens(list_.at(s))) return;
      // Reductions first: what is left may still be elementwise.
      std::set<std::pair<bool, size_t>> candidates;
      for_each_access(list_.at(s).definition, [&](const loop::ExprNode& read, bool) {
        std::optional<Source> from = list_.source(read);
        if (from) candidates.insert({list_.at(from->step).is_map(), from->step});
      });
      bool merged = false;
      for (const auto& [map, p] : candidates) merged = merged || try_merge(s, p);
      if (!merged) return;
    }
  }

  bool try_merge(size_t s, size_t p) {
    const Unit& consumer = list_.at(s);
    const Unit& producer = list_.at(p);
    const BufferId value = consumer.outputs()[0];
    // Nothing runs over an extent that it writes itself.
    const std::vector<BufferId> before = producer.outputs();
    if (std::ranges::any_of(before, [&](BufferId id) { return consumer.extents.contains(id); })) {
      return false;
    }
    // A product's vectors cannot choose.
    if (producer.macs > 0 && chooses(consumer.definition)) return false;
    std::optional<std::map<std::string, Expr>> axes = joint_axes(s, p);
    if (!axes) return false;
    Unit merged = producer;
    std::set<BufferId> dropped;
    for (BufferId id : producer.outputs()) {
      if (in_arena(id) && list_.readers(id) == std::set<size_t>{s}) dropped.insert(id);
    }
    std::erase_if(merged.definition.outputs, [&](const DefinitionOutput& output) {
      return dropped.count(buffer_id(output.buffer)) > 0;
    });
    const bool joint = !merged.definition.outputs.empty();
    merged.definition.outputs.push_back(consumer_in_producer_axes(s, p, *axes));
    if (joint && !may_join(consumer, merged)) return false;
    if (cost(merged.definition).total() > (joint ? kMaxJointCost : kMaxCost) ||
        params(merged.definition) > kMaxParams) {
      return false;
    }
    adopt(merged, consumer);
    const bool inlined_later = will_be_inlined(consumer);
    if (inlined_later && !joint && is_smaller(dropped, value)) return false;
    if (list_.may_move_down(p, s)) {
      if (joint && inlined_later) return false;
      list_.replace(s, p, std::move(merged));
      return true;
    }
    // Earlier than it was written: worth it where less is kept until then, or at once.
    int64_t saved = -program_.storage_bytes(value);
    for (BufferId id : dropped) saved += program_.storage_bytes(id);
    const bool wanted = !joint || !inlined_later;
    const bool worth = saved > 0 || (wanted && (saved == 0 || list_.is_near(p, s)));
    if (!worth || !list_.may_move_up(s, p)) return false;
    list_.replace(p, s, std::move(merged));
    return true;
  }

  /// Whether what the readers would otherwise read are integers that take less room than the value.
  bool is_smaller(const std::set<BufferId>& dropped, BufferId value) const {
    int64_t bytes = 0;
    bool integers = true;
    for (BufferId id : dropped) {
      bytes += program_.storage_bytes(id);
      integers = integers && is_integer(program_.buffer(id).element);
    }
    return integers && bytes < program_.storage_bytes(value);
  }

  /// Whether the last output of `merged` may stand beside its others.
  bool may_join(const Unit& consumer, const Unit& merged) const {
    const std::vector<DefinitionOutput>& outputs = merged.definition.outputs;
    if (outputs.size() > kMaxResults || cost(consumer.definition).indirect > 0) return false;
    if (!has_one_type(program_, merged.definition)) return false;
    // What only replaces state must be able to wait until nobody reads the old value.
    const bool state = list_.becomes_state(buffer_id(outputs.back().buffer));
    return std::all_of(outputs.begin(), outputs.end(), [&](const DefinitionOutput& output) {
      const BufferId id = buffer_id(output.buffer);
      return lie_alike(program_, output, outputs.back()) && !alone_.count(program_.owner(id)) &&
             list_.becomes_state(id) == state;
    });
  }

  /// The consumer's axes in terms of the producer's; nothing unless every read of the producer's
  /// results is at the place just being written and both run over the same points.
  std::optional<std::map<std::string, Expr>> joint_axes(size_t s, size_t p) const {
    const Unit& consumer = list_.at(s);
    const Unit& producer = list_.at(p);
    std::set<BufferId> owners;
    for (BufferId id : producer.outputs()) owners.insert(program_.owner(id));
    Definition outside = producer.definition;
    outside.reduce_axes.clear();
    const int64_t places = points(outside, program_.symbols);
    std::map<std::string, Expr> axes;
    bool same = points(consumer.definition, program_.symbols) == places;
    for_each_access(consumer.definition, [&](const loop::ExprNode& read, bool) {
      std::optional<Source> from = list_.source(read);
      if (!from) same = same && !owners.count(program_.owner(buffer_id(read.name)));
      if (!from || from->step != p || !same) return;
      const loop::Buffer& buffer = program_.buffer(from->buffer);
      same = elements(program_, from->buffer) == places &&
             bind_axes(from->indices, producer.output(from->buffer).indices, buffer.shape, axes);
    });
    if (!same || (axes.empty() && places > 1)) return std::nullopt;
    for (const loop::Axis& axis : consumer.definition.axes) {
      const auto bound = axes.find(axis.name);
      if (bound != axes.end() && runs_further(producer.definition, bound->second, axis)) {
        return std::nullopt;
      }
      if (bound != axes.end()) continue;
      if (!loop::is_constant(axis.extent, 1)) return std::nullopt;
      axes[axis.name] = Expr(0);
    }
    return axes;
  }

  /// Whether an axis of the definition may have another extent than this one, whose place it takes:
  /// symbols may differ although their maxima do not.
  static bool runs_further(const Definition& definition, const Expr& place,
                           const loop::Axis& axis) {
    return std::ranges::any_of(definition.axes, [&](const loop::Axis& own) {
      return place->kind == ExprKind::var && own.name == place->name &&
             !loop::equal(own.extent, axis.extent);
    });
  }

  static bool bind_axes(const std::vector<Expr>& read, const std::vector<Expr>& written,
                        const Shape& shape, std::map<std::string, Expr>& axes) {
    for (size_t i = 0; i < read.size(); ++i) {
      if (loop::is_constant(read[i], 0)) {
        if (!(shape[i] == Dim(1))) return false;
        continue;
      }
      if (read[i]->kind != ExprKind::var) return false;
      const auto [known, fresh] = axes.emplace(read[i]->name, written[i]);
      if (!fresh && !loop::equal(known->second, written[i])) return false;
    }
    return true;
  }

  DefinitionOutput consumer_in_producer_axes(size_t s, size_t p,
                                             const std::map<std::string, Expr>& axes) const {
    const Unit& producer = list_.at(p);
    DefinitionOutput output = list_.at(s).definition.outputs[0];
    // Mark the reads of the producer's values before the axes are renamed.
    std::map<std::string, Expr> results;
    output.value = loop::rewrite(output.value, [&](const Expr& e) -> Expr {
      if (e->kind != ExprKind::access) return e;
      std::optional<Source> from = list_.source(*e);
      if (!from || from->step != p) return e;
      const std::string mark = "fused " + buffer_name(from->buffer);
      results[mark] = producer.output(from->buffer).value;
      return loop::var(mark, e.type());
    });
    output.value = loop::substitute(output.value, axes);
    for (Expr& index : output.indices) index = loop::substitute(index, axes);
    output.value = loop::substitute(output.value, results);
    return output;
  }

  const Program& program_;
  const TargetInfo& target_;
  SymbolRanges least_;  // the least that each may be
  UnitList list_;
  std::set<BufferId> alone_;  // owners of what must be a step's only result
};

}  // namespace

Program fuse(const Program& program, const TargetInfo& target) {
  return remove_dead_kernels(Fusion(program, target).run());
}

}  // namespace backcast
