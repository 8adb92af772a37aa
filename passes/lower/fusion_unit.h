// What fusion works on: the one definition of a step, its buffers named by id, and the questions
// asked of one or two of them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/loop/program.h"

namespace backcast {

/// A step whose kernel is one definition. Accesses and outputs are named "b<BufferId>".
struct Unit {
  loop::Definition definition;
  std::vector<Loc> locs;
  std::vector<std::string> sizes;
  int64_t macs = 0;
  std::set<loop::BufferId> extents = {};  // outputs that its sizes are read from

  bool is_map() const { return definition.accumulators.empty(); }
  bool has_one_output() const { return definition.outputs.size() == 1; }
  std::vector<loop::BufferId> outputs() const;
  /// The output that writes the buffer; it must be one of outputs().
  const loop::DefinitionOutput& output(loop::BufferId id) const;
};

std::string buffer_name(loop::BufferId id);
loop::BufferId buffer_id(const std::string& name);

/// The unit of a call of a kernel that is one definition with one output; nothing for other steps.
/// Constants of one element are part of its expressions.
std::optional<Unit> unit_of(const loop::Program& program, const loop::Step& step);

/// Kernel and operands of the unit; `step` gives the kernel's name and what else a step has.
loop::Step step_of(const loop::Program& program, const Unit& unit, loop::Step step,
                   loop::Kernel& kernel);

/// Elements of a buffer at the symbols' maxima.
int64_t elements(const loop::Program& program, loop::BufferId id);
/// Tensors of so many elements take no time or room worth saving.
inline constexpr int64_t kSmallTensor = 512;
/// Whether many of so many points share each element of a buffer.
bool is_shared(const loop::Program& program, loop::BufferId id, int64_t points);
/// The buffers that a definition of a unit reads.
std::set<loop::BufferId> operands(const loop::Definition& definition);

/// Whether a map reads each element of a buffer at most once, all at one place: a border around it
/// adds points, but no reads.
bool reads_once(const loop::Program& program, const loop::Definition& map, loop::BufferId id);

/// Locations and sizes of another unit, whose definition this one has taken in.
void adopt(Unit& unit, const Unit& other);

/// Whether out[i, j, …] is written at exactly the axes i, j, ….
bool writes_at_its_axes(const loop::Definition& definition);

/// The value of one output at given indices, which stand for the axes in order.
///   Requires: writes_at_its_axes().
loop::Expr value_at(const loop::Definition& definition, const std::vector<loop::Expr>& indices);

/// Indices of an access to a view as indices of its base, when the two shapes differ only by
/// dimensions of extent 1 or, if `joins`, where the view has several of the base as one: by
/// quotients and remainders.
std::optional<std::vector<loop::Expr>> through_view(const std::vector<loop::Expr>& indices,
                                                    const Shape& view, const Shape& base,
                                                    bool joins = false);

/// Whether everything read and written is of one type, so that vectors of one length serve all.
bool has_one_type(const loop::Program& program, const loop::Definition& definition);

/// Whether two outputs lie alike: the same extents and indices, dimensions of extent 1 aside.
bool lie_alike(const loop::Program& program, const loop::DefinitionOutput& a,
               const loop::DefinitionOutput& b);

}  // namespace backcast
