// Structural equality of statements, kernels and programs.
#include <algorithm>

#include "ir/loop/text.h"

namespace backcast::loop {
namespace {

template <class T, class F>
bool all_equal(const std::vector<T>& a, const std::vector<T>& b, F&& same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

bool equal_exprs(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return all_equal(a, b, [](const Expr& x, const Expr& y) { return equal(x, y); });
}

bool equal_axes(const std::vector<Axis>& a, const std::vector<Axis>& b) {
  return all_equal(a, b, [](const Axis& x, const Axis& y) {
    return x.name == y.name && equal(x.extent, y.extent);
  });
}

bool equal_definitions(const Definition& a, const Definition& b) {
  const bool same_accumulators =
      all_equal(a.accumulators, b.accumulators, [](const Accumulator& x, const Accumulator& y) {
        return x.name == y.name && x.type == y.type && x.combine == y.combine &&
               equal(x.init, y.init) && equal(x.value, y.value);
      });
  const bool same_outputs =
      all_equal(a.outputs, b.outputs, [](const DefinitionOutput& x, const DefinitionOutput& y) {
        return x.buffer == y.buffer && equal_exprs(x.indices, y.indices) && equal(x.value, y.value);
      });
  return equal_axes(a.axes, b.axes) && equal_axes(a.reduce_axes, b.reduce_axes) &&
         same_accumulators && same_outputs;
}

bool equal_params(const BufferParam& a, const BufferParam& b) {
  return a.name == b.name && a.element == b.element && a.shape == b.shape && a.mode == b.mode &&
         a.over == b.over;
}

bool equal_functions(const MathFunction& a, const MathFunction& b) {
  return a.name == b.name &&
         all_equal(a.params, b.params,
                   [](const MathFunction::Param& x, const MathFunction::Param& y) {
                     return x.name == y.name && x.type == y.type;
                   }) &&
         all_equal(
             a.lets, b.lets,
             [](const std::pair<std::string, Expr>& x, const std::pair<std::string, Expr>& y) {
               return x.first == y.first && equal(x.second, y.second);
             }) &&
         equal(a.result, b.result);
}

bool equal_buffers(const Buffer& a, const Buffer& b) {
  return a.name == b.name && a.element == b.element && a.shape == b.shape && a.kind == b.kind &&
         a.alignment == b.alignment && a.value == b.value && a.view_of == b.view_of &&
         a.view_offset == b.view_offset && a.offset == b.offset && a.loc == b.loc &&
         a.role == b.role && a.slice_axis == b.slice_axis && a.slice_start == b.slice_start &&
         a.order == b.order;
}

bool equal_steps(const Step& a, const Step& b) {
  return a.kind == b.kind && a.kernel == b.kernel && a.buffers == b.buffers && a.sizes == b.sizes &&
         a.grain == b.grain && a.loc == b.loc && a.symbol == b.symbol && a.count == b.count &&
         a.reverse == b.reverse && all_equal(a.body, b.body, equal_steps) &&
         all_equal(a.otherwise, b.otherwise, equal_steps);
}

bool equal_entries(const EntryPoint& a, const EntryPoint& b) {
  return a.name == b.name && a.inputs == b.inputs && a.outputs == b.outputs &&
         a.ranges == b.ranges && a.optional_outputs == b.optional_outputs &&
         a.extents == b.extents && a.required_count == b.required_count &&
         all_equal(a.steps, b.steps, equal_steps);
}

template <class Map, class F>
bool equal_maps(const Map& a, const Map& b, F&& same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const typename Map::value_type& x, const typename Map::value_type& y) {
                      return x.first == y.first && same(x.second, y.second);
                    });
}

}  // namespace

bool equal(const Stmt& a, const Stmt& b) {
  if (a.get() == b.get()) return true;
  if (!a || !b) return false;
  if (a->kind != b->kind || a->name != b->name || a->for_kind != b->for_kind ||
      a->cache != b->cache || a->memory != b->memory || a->type != b->type ||
      !equal_exprs(a->exprs, b->exprs)) {
    return false;
  }
  if (!a->definition != !b->definition) return false;
  if (a->definition && !equal_definitions(*a->definition, *b->definition)) return false;
  return all_equal(a->body, b->body, [](const Stmt& x, const Stmt& y) { return equal(x, y); });
}

bool equal(const Kernel& a, const Kernel& b) {
  return a.name == b.name && all_equal(a.buffers, b.buffers, equal_params) && a.sizes == b.sizes &&
         equal(a.body, b.body) && a.locs == b.locs && a.macs == b.macs && a.flushes == b.flushes;
}

bool equal(const Program& a, const Program& b) {
  return a.name == b.name && a.symbols == b.symbols &&
         all_equal(a.buffers, b.buffers, equal_buffers) &&
         equal_maps(a.kernels, b.kernels,
                    [](const Kernel& x, const Kernel& y) { return equal(x, y); }) &&
         equal_maps(a.functions, b.functions, equal_functions) &&
         all_equal(a.entries, b.entries, equal_entries) && a.arena_bytes == b.arena_bytes &&
         a.arena_bound == b.arena_bound && a.arena_alignment == b.arena_alignment &&
         a.state_bytes == b.state_bytes && a.state_alignment == b.state_alignment &&
         a.batch == b.batch && a.accumulate == b.accumulate && a.model_hash == b.model_hash;
}

}  // namespace backcast::loop
