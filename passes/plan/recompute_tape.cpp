#include "passes/plan/recompute_tape.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/loop/step_access.h"
#include "ir/loop/touched_bytes.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"

namespace backcast {

using loop::AccessMode;
using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::StepKind;

namespace {

constexpr int64_t kPerElement = 2;
// Measured: 30 GB/s out of the third cache against 97 GMAC/s.
constexpr int64_t kPerElementAfar = 12;
// A tensor stays in the second cache until it is read if it takes no more than this share of it.
constexpr int64_t kShareOfCache = 4;
constexpr int64_t kPerFunction = 8;
// Pairs of steps that are looked at for the parts of one tensor.
constexpr size_t kMostPairs = 20'000;

int64_t elements(const Program& program, BufferId id) {
  const Buffer& buffer = program.buffer(id);
  return TensorType{buffer.element, buffer.shape}.element_count().range(program.symbols).max;
}

/// To read or write all of a buffer.
int64_t access_work(const Program& program, BufferId id, const TargetInfo& target) {
  const int64_t count = elements(program, id);
  const int64_t bytes = count * byte_size(program.buffer(id).element);
  const bool afar = target.l2_bytes > 0 && bytes * kShareOfCache > target.l2_bytes;
  return count * (afar ? kPerElementAfar : kPerElement);
}

/// Writes the arena, each storage whole or in part, without reading it.
bool repeatable(const Program& program, const Step& step) {
  if (step.kind != StepKind::call && step.kind != StepKind::copy) return false;
  const std::set<BufferId> written = loop::written_buffers(program, step);
  const std::set<BufferId> read = loop::read_buffers(program, step);
  return std::all_of(written.begin(), written.end(), [&](BufferId id) {
    return program.buffer(id).kind == BufferClass::arena && !read.contains(id);
  });
}

/// Pairs of buffers of a call: a written one and one whose storage it may take over.
std::vector<std::pair<BufferId, BufferId>> takes_over(const Program& program, const Step& step) {
  std::vector<std::pair<BufferId, BufferId>> result;
  if (step.kind != StepKind::call) return result;
  const Kernel& kernel = program.kernels.at(step.kernel);
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    for (const size_t j : loop::taken_over_by(kernel, i)) {
      const BufferId written = step.buffers[i], owner = program.owner(step.buffers[j]);
      const int64_t uses =
          std::count_if(step.buffers.begin(), step.buffers.end(),
                        [&](BufferId id) { return id >= 0 && program.owner(id) == owner; });
      if (program.buffer(written).view_of < 0 && uses == 1) result.emplace_back(written, owner);
    }
  }
  return result;
}

}  // namespace

int64_t work_of(const Program& program, const Step& step, const TargetInfo& target) {
  int64_t total = 0;
  for (const Step& inner : step.body) total += work_of(program, inner, target);
  for (const Step& inner : step.otherwise) total += work_of(program, inner, target);
  if (step.kind == StepKind::loop) return total * step.count.range(program.symbols).max;
  if (step.kind == StepKind::copy) return 2 * access_work(program, step.buffers[0], target);
  if (step.kind != StepKind::call) return total;
  const Kernel& kernel = program.kernels.at(step.kernel);
  int64_t largest = 0;
  for (const BufferId id : step.buffers) {
    total += access_work(program, id, target);
    largest = std::max(largest, elements(program, id));
  }
  if (kernel.macs > 0) return std::max(kernel.macs, total);
  int64_t functions = 0;
  loop::visit(kernel.body, nullptr,
              [&](const loop::Expr& e) { functions += e->kind == loop::ExprKind::call; });
  if (const loop::Definition* definition = loop::only_definition(kernel)) {
    functions = std::max(functions, cost(*definition).total() / kPerFunction);
  }
  return total + (functions > 0 ? kPerFunction * largest : 0);
}

Tape::Tape(const Program& program, size_t entry, const TargetInfo& target) {
  std::vector<int> value_of(program.buffers.size(), -1);
  const auto value = [&](BufferId owner) {
    int& id = value_of[static_cast<size_t>(owner)];
    if (id < 0) {
      id = static_cast<int>(values_.size());
      const BufferClass kind = program.buffer(owner).kind;
      const int64_t bytes = kind == BufferClass::arena ? program.storage_bytes(owner) : 0;
      values_.push_back({owner, bytes, kind, false});
    }
    return id;
  };
  const std::vector<Step>& steps = program.entries[entry].steps;
  for (size_t s = 0; s < steps.size(); ++s) {
    TapeOp op;
    op.step = s;
    const std::set<BufferId> read = loop::read_buffers(program, steps[s]);
    const std::set<BufferId> written = loop::written_buffers(program, steps[s]);
    for (BufferId id : read) op.reads.push_back(value(id));
    for (BufferId id : written) op.writes.push_back(value(id));
    for (const auto& [to, from] : takes_over(program, steps[s])) {
      op.over.emplace_back(value(to), value(from));
    }
    op.work = work_of(program, steps[s], target);
    op.repeatable = repeatable(program, steps[s]);
    ops_.push_back(std::make_shared<const TapeOp>(std::move(op)));
  }
  tell_parts_apart(program, entry);
}

void Tape::tell_parts_apart(const Program& program, size_t entry) {
  const std::vector<Step>& steps = program.entries[entry].steps;
  const auto apart = std::make_shared<Apart>();
  const std::vector<std::vector<size_t>> writers_of = writers();
  const std::vector<std::vector<size_t>> uses_of = uses();
  for (size_t v = 0; v < values_.size(); ++v) {
    const std::vector<size_t>&writers = writers_of[v], &uses = uses_of[v];
    if (values_[v].bytes == 0 || writers.size() < 2) continue;
    if (writers.size() * uses.size() > kMostPairs) continue;
    const BufferId storage = values_[v].storage;
    const auto touched = [&](const std::vector<size_t>& ops, bool writes) {
      std::vector<loop::TouchedBytes> result;
      for (size_t op : ops) result.emplace_back(program, steps[op], storage, writes);
      return result;
    };
    const std::vector<loop::TouchedBytes> written = touched(writers, true);
    const std::vector<loop::TouchedBytes> read = touched(uses, false);
    for (size_t w = 0; w < writers.size(); ++w) {
      for (size_t u = 0; u < uses.size(); ++u) {
        if (written[w].is_apart_from(read[u])) apart->emplace(storage, writers[w], uses[u]);
      }
    }
  }
  apart_ = apart;
}

bool Tape::meet(size_t writer, size_t reader, int value) const {
  const BufferId storage = values_[static_cast<size_t>(value)].storage;
  return !apart_->contains({storage, op(writer).step, op(reader).step});
}

int64_t Tape::work() const {
  int64_t total = 0;
  for (const auto& op : ops_) total += op->work;
  return total;
}

std::vector<int64_t> Tape::live_bytes() const {
  const size_t none = ops_.size();
  std::vector<size_t> first(values_.size(), none), last(values_.size(), none);
  for (size_t i = 0; i < ops_.size(); ++i) {
    for (const std::vector<int>* touched : {&op(i).reads, &op(i).writes}) {
      for (int v : *touched) {
        size_t& begin = first[static_cast<size_t>(v)];
        if (begin == none) begin = i;
        last[static_cast<size_t>(v)] = i;
      }
    }
  }
  std::vector<char> taken(values_.size(), 0);
  std::vector<size_t> begin = first;
  for (size_t i = 0; i < ops_.size(); ++i) {
    for (const auto& [to, from] : op(i).over) {
      const size_t w = static_cast<size_t>(to), r = static_cast<size_t>(from);
      if (first[w] != i || begin[w] != i || last[r] != i || taken[r]) continue;
      if (values_[r].bytes < values_[w].bytes || values_[w].bytes == 0) continue;
      taken[r] = 1;
      begin[w] = i + 1;
    }
  }
  std::vector<int64_t> change(ops_.size() + 2, 0);
  for (size_t v = 0; v < values_.size(); ++v) {
    if (first[v] == none || begin[v] > last[v]) continue;
    change[begin[v]] += values_[v].bytes;
    change[last[v] + 1] -= values_[v].bytes;
  }
  std::vector<int64_t> live(ops_.size(), 0);
  int64_t sum = 0;
  for (size_t i = 0; i < ops_.size(); ++i) live[i] = sum += change[i];
  return live;
}

std::vector<std::vector<size_t>> Tape::uses() const {
  std::vector<std::vector<size_t>> result(values_.size());
  for (size_t i = 0; i < ops_.size(); ++i) {
    for (const std::vector<int>* touched : {&op(i).reads, &op(i).writes}) {
      for (int v : *touched) {
        std::vector<size_t>& uses = result[static_cast<size_t>(v)];
        if (uses.empty() || uses.back() != i) uses.push_back(i);
      }
    }
  }
  return result;
}

std::vector<std::vector<size_t>> Tape::writers() const {
  std::vector<std::vector<size_t>> result(values_.size());
  for (size_t i = 0; i < ops_.size(); ++i) {
    for (int v : op(i).writes) result[static_cast<size_t>(v)].push_back(i);
  }
  return result;
}

Tape Tape::with(const Recompute& recompute) const {
  Tape result;
  result.values_ = values_;
  result.apart_ = apart_;
  std::vector<int> renamed(values_.size());
  for (size_t v = 0; v < values_.size(); ++v) renamed[v] = static_cast<int>(v);
  const auto changes = [&](int id) { return renamed[static_cast<size_t>(id)] != id; };
  const auto rename_reads = [&](TapeOp& op) {
    for (int& id : op.reads) id = renamed[static_cast<size_t>(id)];
    for (auto& [to, from] : op.over) from = renamed[static_cast<size_t>(from)];
  };
  result.ops_.reserve(ops_.size() + recompute.chain.size());
  result.ops_.assign(ops_.begin(), ops_.begin() + static_cast<int64_t>(recompute.before));
  for (size_t index : recompute.chain) {
    TapeOp op = *ops_[index];
    op.again = true;
    rename_reads(op);
    for (int& id : op.writes) {
      int& again = renamed[static_cast<size_t>(id)];
      if (again == id) {  // else another part of it has been computed again before
        again = static_cast<int>(result.values_.size());
        result.values_.push_back(values_[static_cast<size_t>(id)]);
        result.values_.back().again = true;
      }
      id = again;
    }
    for (auto& [to, from] : op.over) to = renamed[static_cast<size_t>(to)];
    result.ops_.push_back(std::make_shared<const TapeOp>(std::move(op)));
  }
  for (size_t i = recompute.before; i < ops_.size(); ++i) {
    result.ops_.push_back(ops_[i]);
    if (std::none_of(ops_[i]->reads.begin(), ops_[i]->reads.end(), changes)) continue;
    TapeOp op = *ops_[i];
    rename_reads(op);
    result.ops_.back() = std::make_shared<const TapeOp>(std::move(op));
  }
  result.drop_unread(recompute.chain);
  return result;
}

void Tape::drop_unread(const std::vector<size_t>& candidates) {
  std::vector<char> asked(values_.size(), 0);
  for (size_t i : candidates) {
    for (int v : op(i).writes) asked[static_cast<size_t>(v)] = 1;
  }
  std::vector<std::pair<int, size_t>> readers;  // of values that are asked for
  for (size_t i = 0; i < ops_.size(); ++i) {
    for (int v : op(i).reads) {
      if (asked[static_cast<size_t>(v)]) readers.emplace_back(v, i);
    }
  }
  const auto is_read = [&](size_t writer) {
    const std::vector<int>& writes = op(writer).writes;
    return std::any_of(readers.begin(), readers.end(), [&](const auto& reader) {
      const auto& [v, by] = reader;
      return std::find(writes.begin(), writes.end(), v) != writes.end() && meet(writer, by, v);
    });
  };
  std::vector<size_t> unread;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(unread),
               [&](size_t op) { return !is_read(op); });
  for (size_t i = unread.size(); i-- > 0;) {
    ops_.erase(ops_.begin() + static_cast<int64_t>(unread[i]));
  }
}

namespace {

/// Gives the values that are computed again buffers of their own.
class Renaming {
 public:
  explicit Renaming(Program& program) : program_(program) {
    for (const Buffer& buffer : program.buffers) names_.insert(buffer.name);
  }

  /// The buffer that is to `value` what `id` is to the storage it was.
  BufferId of(BufferId id, int value) {
    const auto known = copies_.find({value, id});
    if (known != copies_.end()) return known->second;
    const BufferId onto = program_.buffer(id).view_of;
    const BufferId view_of = onto < 0 ? -1 : of(onto, value);
    Buffer copy = program_.buffer(id);
    copy.view_of = view_of;
    const std::string base = copy.name + "_again";
    copy.name = base;
    for (int i = 2; !names_.insert(copy.name).second; ++i) copy.name = base + std::to_string(i);
    program_.buffers.push_back(std::move(copy));
    const BufferId result = static_cast<BufferId>(program_.buffers.size() - 1);
    copies_[{value, id}] = result;
    return result;
  }

 private:
  Program& program_;
  std::set<std::string> names_;
  std::map<std::pair<int, BufferId>, BufferId> copies_;
};

}  // namespace

void Tape::write_to(Program& program, size_t entry) const {
  const std::vector<Step> old = program.entries[entry].steps;
  Renaming renaming(program);
  std::vector<Step> steps;
  for (const auto& op : ops_) {
    std::map<BufferId, int> again;
    for (const std::vector<int>* touched : {&op->reads, &op->writes}) {
      for (int v : *touched) {
        const TapeValue& value = values_[static_cast<size_t>(v)];
        if (value.again) again[value.storage] = v;
      }
    }
    Step step = old[op->step];
    if (!again.empty()) {
      loop::for_each_buffer(step, [&](BufferId& id) {
        const auto found = again.find(program.owner(id));
        if (found != again.end()) id = renaming.of(id, found->second);
      });
    }
    steps.push_back(std::move(step));
  }
  program.entries[entry].steps = std::move(steps);
}

}  // namespace backcast
