// The units of a list of steps while fusion joins them: who reads and writes what, and which step
// may move past which.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "passes/lower/fusion_unit.h"

namespace backcast {

/// Where a read value is made: the step, the buffer it writes, and the access's indices in terms of
/// that buffer.
struct Source {
  size_t step;
  loop::BufferId buffer;
  std::vector<loop::Expr> indices;
};

class UnitList {
 public:
  UnitList() = default;
  /// `alone`: owners of what no two steps may be taken to produce together.
  UnitList(const loop::Program& program, const std::vector<loop::Step>& steps,
           const std::set<loop::BufferId>& alone);

  const loop::Program& program() const { return *program_; }
  size_t size() const { return units_.size(); }
  bool is_alone(loop::BufferId id) const { return alone_.count(program_->owner(id)) > 0; }

  /// Makes a unit of step s, if it is one definition.
  bool admit(size_t s);
  /// From now on s is the source of what it writes.
  void publish(size_t s);

  bool has(size_t s) const { return units_[s].has_value(); }
  bool is_gone(size_t s) const { return gone_[s] != 0; }
  Unit& at(size_t s) { return *units_[s]; }
  const Unit& at(size_t s) const { return *units_[s]; }
  /// The definition of a step as it was; null when it is none.
  const loop::Definition* original(size_t s) const;

  /// The unit that makes what an access reads; nothing when there is none or a view in between
  /// changes more than unit dimensions or, if `joins`, has several as one.
  std::optional<Source> source(const loop::ExprNode& read, bool joins = false) const;
  /// Whether nothing but copies into state reads what a step writes there.
  bool becomes_state(loop::BufferId id) const;
  /// The steps that read the storage of a buffer.
  const std::set<size_t>& readers(loop::BufferId id) const;

  /// The owners of what a unit reads, its extents included.
  std::set<loop::BufferId> reads(const Unit& unit) const;
  /// Unit s has taken in the definition of unit `from` and reads what that reads; `from` is gone if
  /// nothing else needs it.
  void take_reads(size_t s, size_t from);
  /// Unit p may run at the place of the later s, but for what s itself needs of it.
  bool may_move_down(size_t p, size_t s) const;
  /// Unit s may run at the place of the earlier p, but for what it needs of p.
  bool may_move_up(size_t s, size_t p) const;
  /// Only elementwise units stand between p and the later s.
  bool is_near(size_t p, size_t s) const;
  /// `merged`, of `place` and `other`, stands at `place`; `other` is gone.
  void replace(size_t place, size_t other, Unit merged);

 private:
  std::set<loop::BufferId> written_by(size_t s) const;
  bool written_between(size_t first, size_t last, const std::set<loop::BufferId>& owners) const;

  const loop::Program* program_ = nullptr;
  const std::vector<loop::Step>* steps_ = nullptr;
  std::set<loop::BufferId> alone_;
  std::vector<std::optional<Unit>> units_;
  std::vector<std::set<loop::BufferId>> writes_;        // owners, as the steps were
  std::map<loop::BufferId, size_t> producer_;           // written buffer → step
  std::map<loop::BufferId, std::set<size_t>> readers_;  // owner → steps
  std::vector<char> gone_;
};

}  // namespace backcast
