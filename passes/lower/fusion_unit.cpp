#include "passes/lower/fusion_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/graph/error.h"
#include "ir/loop/step_access.h"
#include "ir/loop/text.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {

using loop::AccessMode;
using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::BufferParam;
using loop::Definition;
using loop::DefinitionOutput;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Program;
using loop::Step;

std::string buffer_name(BufferId id) { return fmt::format("b{}", id); }
BufferId buffer_id(const std::string& name) { return std::stoi(name.substr(1)); }

std::vector<BufferId> Unit::outputs() const {
  std::vector<BufferId> result;
  for (const DefinitionOutput& output : definition.outputs) {
    result.push_back(buffer_id(output.buffer));
  }
  return result;
}

const DefinitionOutput& Unit::output(BufferId id) const {
  const std::string name = buffer_name(id);
  for (const DefinitionOutput& output : definition.outputs) {
    if (output.buffer == name) return output;
  }
  BC_CHECK(false, "no output {}", name);
}

namespace {

Definition renamed(const Definition& definition, const std::map<std::string, std::string>& names) {
  return *loop::rename_buffers(loop::define(definition), names)->definition;
}

/// The element of a constant that has one, of a type that fits an expression exactly.
std::optional<Expr> only_element(const Buffer& buffer) {
  if (buffer.kind != BufferClass::constant || buffer.view_of >= 0) return std::nullopt;
  const bool is_i32 = buffer.element == ElementType::i32;
  if (buffer.element != ElementType::f32 && buffer.element != ElementType::f64 && !is_i32) {
    return std::nullopt;
  }
  for (const Dim& extent : buffer.shape) {
    if (!(extent == Dim(1))) return std::nullopt;
  }
  const loop::Type type{loop::scalar_of(buffer.element), 1};
  if (is_i32) return loop::int_constant(type, buffer.value.as_int(0));
  return loop::float_constant(type, buffer.value.as_double(0));
}

}  // namespace

std::optional<Unit> unit_of(const Program& program, const Step& step) {
  if (step.kind != loop::StepKind::call) return std::nullopt;
  const Kernel& kernel = program.kernels.at(step.kernel);
  const Definition* definition = loop::only_definition(kernel);
  if (definition == nullptr || definition->outputs.size() != 1) return std::nullopt;
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    names[kernel.buffers[i].name] = buffer_name(step.buffers[i]);
  }
  Unit unit{renamed(*definition, names), kernel.locs, kernel.sizes, kernel.macs,
            loop::extent_buffers(program, step)};
  transform(unit.definition, [&](const Expr& e) -> Expr {
    if (e->kind != ExprKind::access) return e;
    return only_element(program.buffer(buffer_id(e->name))).value_or(e);
  });
  return unit;
}

namespace {

/// Read parameters of an output's size whose every read is at the index just being written.
std::vector<std::string> takes_over(const Kernel& kernel, const Definition& definition,
                                    const DefinitionOutput& output, const BufferParam& out) {
  std::map<std::string, bool> fits;
  for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
    const BufferParam& param = *kernel.find(read.name);
    bool same =
        !in_reduction && param.shape == out.shape &&
        byte_size(loop::element_of(param.element)) == byte_size(loop::element_of(out.element));
    for (size_t i = 0; same && i < read.args.size(); ++i) {
      same = loop::equal(read.args[i], output.indices[i]);
    }
    auto [it, fresh] = fits.emplace(read.name, same);
    if (!fresh) it->second = it->second && same;
  });
  std::vector<std::string> result;
  for (const auto& [name, fit] : fits) {
    if (fit) result.push_back(name);
  }
  return result;
}

}  // namespace

Step step_of(const Program& program, const Unit& unit, Step step, Kernel& kernel) {
  std::vector<BufferId> reads;
  for_each_access(unit.definition, [&](const loop::ExprNode& read, bool) {
    const BufferId id = buffer_id(read.name);
    if (std::find(reads.begin(), reads.end(), id) == reads.end()) reads.push_back(id);
  });
  kernel.name = step.kernel;
  kernel.locs = unit.locs;
  kernel.macs = unit.macs;
  kernel.sizes = unit.sizes;
  step.buffers.clear();
  std::map<std::string, std::string> names;
  const auto add = [&](BufferId id, const std::string& name, AccessMode mode) {
    const Buffer& buffer = program.buffer(id);
    kernel.buffers.push_back({name, loop::scalar_of(buffer.element), buffer.shape, mode, {}});
    names[buffer_name(id)] = name;
    step.buffers.push_back(id);
  };
  for (size_t i = 0; i < reads.size(); ++i) add(reads[i], fmt::format("a{}", i), AccessMode::read);
  const std::vector<BufferId> written = unit.outputs();
  for (size_t i = 0; i < written.size(); ++i) {
    add(written[i], fmt::format("out{}", i), AccessMode::write);
  }
  step.sizes.clear();
  for (const std::string& size : kernel.sizes) step.sizes.push_back(Dim::symbol(size));
  Definition definition = renamed(unit.definition, names);
  for (size_t i = 0; i < written.size(); ++i) {
    BufferParam& out = kernel.buffers[reads.size() + i];
    out.over = takes_over(kernel, definition, definition.outputs[i], out);
  }
  kernel.body = loop::define(std::move(definition));
  return step;
}

int64_t elements(const Program& program, BufferId id) {
  const Shape& shape = program.buffer(id).shape;
  return TensorType{ElementType::f32, shape}.element_count().range(program.symbols).max;
}

bool is_shared(const Program& program, BufferId id, int64_t points) {
  constexpr int64_t kMany = 8;
  return elements(program, id) * kMany <= points;
}

std::set<BufferId> operands(const Definition& definition) {
  std::set<BufferId> result;
  for_each_access(definition,
                  [&](const loop::ExprNode& read, bool) { result.insert(buffer_id(read.name)); });
  return result;
}

bool reads_once(const Program& program, const Definition& map, BufferId id) {
  const std::vector<Expr>* place = nullptr;
  bool same = true;
  for_each_access(map, [&](const loop::ExprNode& read, bool) {
    if (program.owner(buffer_id(read.name)) != program.owner(id)) return;
    const auto equals = [](const Expr& a, const Expr& b) { return loop::equal(a, b); };
    same = same && (!place || std::equal(place->begin(), place->end(), read.args.begin(),
                                         read.args.end(), equals));
    place = &read.args;
  });
  if (!place || !same) return false;
  // Every axis moves along one dimension of its own.
  std::set<size_t> taken;
  return std::all_of(map.axes.begin(), map.axes.end(), [&](const loop::Axis& axis) {
    int64_t extent = 0;
    if (loop::as_constant(axis.extent, extent) && extent == 1) return true;
    size_t found = 0;
    for (size_t d = 0; d < place->size(); ++d) {
      const std::optional<int64_t> step = coefficient((*place)[d], axis.name);
      if (!step || (*step != 0 && !taken.insert(d).second)) return false;
      found += *step != 0;
    }
    return found == 1;
  });
}

void adopt(Unit& unit, const Unit& other) {
  for (const Loc& loc : other.locs) {
    if (std::find(unit.locs.begin(), unit.locs.end(), loc) == unit.locs.end()) {
      unit.locs.push_back(loc);
    }
  }
  std::set<std::string> sizes(unit.sizes.begin(), unit.sizes.end());
  sizes.insert(other.sizes.begin(), other.sizes.end());
  unit.sizes.assign(sizes.begin(), sizes.end());
  unit.extents.insert(other.extents.begin(), other.extents.end());
}

bool writes_at_its_axes(const Definition& definition) {
  if (definition.outputs.size() != 1) return false;
  const std::vector<Expr>& indices = definition.outputs[0].indices;
  if (indices.size() != definition.axes.size()) return false;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i]->kind != ExprKind::var || indices[i]->name != definition.axes[i].name)
      return false;
  }
  return true;
}

Expr value_at(const Definition& definition, const std::vector<Expr>& indices) {
  std::map<std::string, Expr> values;
  for (size_t i = 0; i < definition.axes.size(); ++i) {
    values[definition.axes[i].name] = indices[i];
  }
  return loop::substitute(definition.outputs.at(0).value, values);
}

std::optional<std::vector<Expr>> through_view(const std::vector<Expr>& indices, const Shape& view,
                                              const Shape& base, bool joins) {
  std::vector<Expr> result;
  size_t v = 0;
  for (size_t b = 0; b < base.size(); ++b) {
    if (base[b] == Dim(1)) {
      result.push_back(Expr(0));
      continue;
    }
    while (v < view.size() && view[v] == Dim(1)) ++v;
    if (v == view.size()) return std::nullopt;
    if (view[v] == base[b]) {
      result.push_back(indices[v++]);
      continue;
    }
    if (!joins || !view[v].is_constant()) return std::nullopt;
    Expr rest = indices[v];
    int64_t extent = view[v++].constant();
    for (; extent > 1; ++b) {
      if (b == base.size() || !base[b].is_constant()) return std::nullopt;
      const int64_t own = base[b].constant();
      if (own == 0 || extent % own != 0) return std::nullopt;
      extent /= own;
      result.push_back(loop::floor_div(rest, Expr(extent)));
      rest = loop::floor_mod(rest, Expr(extent));
    }
    --b;
  }
  while (v < view.size() && view[v] == Dim(1)) ++v;
  return v == view.size() ? std::optional(result) : std::nullopt;
}

bool has_one_type(const Program& program, const Definition& definition) {
  std::set<ElementType> types;
  for (BufferId id : operands(definition)) types.insert(program.buffer(id).element);
  for (const DefinitionOutput& output : definition.outputs) {
    types.insert(program.buffer(buffer_id(output.buffer)).element);
  }
  return types.size() == 1;
}

bool lie_alike(const Program& program, const DefinitionOutput& a, const DefinitionOutput& b) {
  const auto long_dimensions = [&](const DefinitionOutput& output) {
    std::vector<std::pair<Dim, Expr>> result;
    const Shape& shape = program.buffer(buffer_id(output.buffer)).shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (!(shape[i] == Dim(1))) result.emplace_back(shape[i], output.indices[i]);
    }
    return result;
  };
  const auto x = long_dimensions(a), y = long_dimensions(b);
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(x[i].first == y[i].first) || !loop::equal(x[i].second, y[i].second)) return false;
  }
  return true;
}

}  // namespace backcast
