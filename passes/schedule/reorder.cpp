#include "passes/schedule/reorder.h"

#include <algorithm>

#include "ir/loop/visit.h"

namespace backcast {

using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Stmt;
using loop::StmtKind;

Literal permuted(const Literal& value, const Order& order) {
  const std::vector<int64_t> shape = permuted(value.shape(), order);
  std::vector<int64_t> strides(value.shape().size(), 1);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * value.shape()[i];
  const std::vector<int64_t> steps = permuted(strides, order);
  const size_t unit = static_cast<size_t>(byte_size(value.element()));
  std::vector<std::byte> bytes(value.bytes().size());
  std::vector<int64_t> at(shape.size(), 0);
  int64_t from = 0;
  for (size_t to = 0; to < bytes.size(); to += unit) {
    std::copy_n(value.bytes().begin() + from * static_cast<int64_t>(unit), unit,
                bytes.begin() + static_cast<int64_t>(to));
    for (size_t d = shape.size(); d-- > 0;) {
      from += steps[d];
      if (++at[d] < shape[d]) break;
      from -= steps[d] * shape[d];
      at[d] = 0;
    }
  }
  return Literal(value.element(), shape, std::move(bytes));
}

namespace {

/// Axes in the order in which the first output lies, those it does not name first.
void sort_axes(Definition& definition) {
  const auto place = [&](const loop::Axis& axis) -> size_t {
    const std::vector<Expr>& indices = definition.outputs[0].indices;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i]->kind == ExprKind::var && indices[i]->name == axis.name) return i + 1;
    }
    return 0;
  };
  std::stable_sort(definition.axes.begin(), definition.axes.end(),
                   [&](const loop::Axis& a, const loop::Axis& b) { return place(a) < place(b); });
}

}  // namespace

Kernel reordered(const Kernel& kernel, const std::map<std::string, Order>& orders) {
  Kernel result = kernel;
  for (loop::BufferParam& param : result.buffers) {
    const bool moves = orders.contains(param.name);
    if (moves) param.shape = permuted(param.shape, orders.at(param.name));
    // Elements meet no longer where only one of two moves.
    std::erase_if(param.over,
                  [&](const std::string& other) { return orders.contains(other) != moves; });
  }
  const auto on_node = [&](const Expr& e) {
    if (e->kind != ExprKind::access || !orders.contains(e->name)) return e;
    return loop::access(e->name, e.type().scalar, permuted(e->args, orders.at(e->name)));
  };
  result.body = loop::rewrite(
      kernel.body, [&](const Expr& e) { return loop::rewrite(e, on_node); },
      [&](const Stmt& s) -> Stmt {
        if (s->kind != StmtKind::define) return s;
        Definition definition = *s->definition;
        bool writes = false;
        for (loop::DefinitionOutput& output : definition.outputs) {
          if (!orders.contains(output.buffer)) continue;
          output.indices = permuted(output.indices, orders.at(output.buffer));
          writes = true;
        }
        if (!writes) return s;
        sort_axes(definition);
        return loop::define(std::move(definition));
      });
  return result;
}

}  // namespace backcast
