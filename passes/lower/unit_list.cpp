#include "passes/lower/unit_list.h"

#include <algorithm>

#include "ir/loop/step_access.h"

namespace backcast {

using loop::Buffer;
using loop::BufferId;
using loop::Expr;

UnitList::UnitList(const loop::Program& program, const std::vector<loop::Step>& steps,
                   const std::set<BufferId>& alone)
    : program_(&program), steps_(&steps), alone_(alone) {
  units_.resize(steps.size());
  gone_.assign(steps.size(), 0);
  for (size_t s = 0; s < steps.size(); ++s) {
    for (BufferId id : loop::read_buffers(program, steps[s])) readers_[id].insert(s);
    writes_.push_back(loop::written_buffers(program, steps[s]));
  }
}

bool UnitList::admit(size_t s) {
  units_[s] = unit_of(*program_, (*steps_)[s]);
  return units_[s].has_value();
}

void UnitList::publish(size_t s) {
  for (BufferId id : units_[s]->outputs()) {
    if (!is_alone(id)) producer_[id] = s;
  }
}

const loop::Definition* UnitList::original(size_t s) const {
  const loop::Step& step = (*steps_)[s];
  if (step.kind != loop::StepKind::call) return nullptr;
  return loop::only_definition(program_->kernels.at(step.kernel));
}

std::optional<Source> UnitList::source(const loop::ExprNode& read, bool joins) const {
  BufferId id = buffer_id(read.name);
  std::vector<Expr> indices = read.args;
  while (true) {
    const auto found = producer_.find(id);
    if (found != producer_.end()) return Source{found->second, id, indices};
    const Buffer& buffer = program_->buffer(id);
    if (buffer.view_of < 0 || !(buffer.view_offset == Dim(0))) return std::nullopt;
    std::optional<std::vector<Expr>> mapped =
        through_view(indices, buffer.shape, program_->buffer(buffer.view_of).shape, joins);
    if (!mapped) return std::nullopt;
    indices = *mapped;
    id = buffer.view_of;
  }
}

const std::set<size_t>& UnitList::readers(BufferId id) const {
  static const std::set<size_t> kNone;
  const auto found = readers_.find(program_->owner(id));
  return found == readers_.end() ? kNone : found->second;
}

bool UnitList::becomes_state(BufferId id) const {
  const std::set<size_t>& by = readers(id);
  return !by.empty() && std::all_of(by.begin(), by.end(), [&](size_t s) {
    const loop::Step& step = (*steps_)[s];
    return step.kind == loop::StepKind::copy &&
           program_->buffer(program_->owner(step.buffers[1])).kind == loop::BufferClass::state;
  });
}

std::set<BufferId> UnitList::reads(const Unit& unit) const {
  std::set<BufferId> result = unit.extents;
  for (BufferId id : operands(unit.definition)) result.insert(program_->owner(id));
  return result;
}

void UnitList::take_reads(size_t s, size_t from) {
  bool needed = false;
  for (BufferId id : units_[from]->outputs()) {
    std::set<size_t>& readers = readers_[program_->owner(id)];
    readers.erase(s);
    needed = needed || !readers.empty();
  }
  for (BufferId id : reads(*units_[from])) {
    readers_[id].insert(s);
    if (!needed) readers_[id].erase(from);
  }
  if (!needed) gone_[from] = 1;
}

std::set<BufferId> UnitList::written_by(size_t s) const {
  if (!units_[s]) return writes_[s];
  std::set<BufferId> result;
  for (BufferId id : units_[s]->outputs()) result.insert(program_->owner(id));
  return result;
}

bool UnitList::written_between(size_t first, size_t last, const std::set<BufferId>& owners) const {
  for (size_t t = first + 1; t < last; ++t) {
    if (gone_[t]) continue;
    for (BufferId id : written_by(t)) {
      if (owners.count(id)) return true;
    }
  }
  return false;
}

bool UnitList::may_move_down(size_t p, size_t s) const {
  std::set<BufferId> touched = reads(*units_[p]);
  for (BufferId id : units_[p]->outputs()) {
    const BufferId owner = program_->owner(id);
    touched.insert(owner);
    const auto found = readers_.find(owner);
    if (found == readers_.end()) continue;
    const auto next = found->second.upper_bound(p);
    if (next != found->second.end() && *next < s) return false;
  }
  return !written_between(p, s, touched);
}

bool UnitList::may_move_up(size_t s, size_t p) const {
  std::set<BufferId> touched = reads(*units_[s]);
  for (BufferId id : units_[s]->outputs()) touched.insert(program_->owner(id));
  return !written_between(p, s, touched);
}

bool UnitList::is_near(size_t p, size_t s) const {
  for (size_t t = p + 1; t < s; ++t) {
    if (!gone_[t] && !(units_[t] && units_[t]->is_map())) return false;
  }
  return true;
}

void UnitList::replace(size_t place, size_t other, Unit merged) {
  for (const size_t old : {place, other}) {
    for (BufferId id : reads(*units_[old])) readers_[id].erase(old);
    for (BufferId id : units_[old]->outputs()) producer_.erase(id);
  }
  gone_[other] = 1;
  units_[place] = std::move(merged);
  for (BufferId id : reads(*units_[place])) readers_[id].insert(place);
  publish(place);
}

}  // namespace backcast
