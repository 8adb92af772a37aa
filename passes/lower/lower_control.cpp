// See lower_control.h. Every carry has one place: it is copied there before the loop and at the end
// of each trip; place_copies.h then computes most of these values where they belong. Where a scan
// saves its carries and runs in full, a carry goes from row to row of what is saved instead, and
// what the body gives beside it is the same rows, one further.
#include "passes/lower/lower_control.h"

#include <fmt/format.h>

#include "ir/ops/ops.h"
#include "ir/ops/scan_layout.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Program;
using loop::Step;
using loop::StepKind;
using Buffers = LoweringHost::Buffers;

TensorType type_of(const Program& program, BufferId id) {
  return {program.buffer(id).element, program.buffer(id).shape};
}

class ScanLowering {
 public:
  ScanLowering(LoweringHost& host, const Function& function, const Node& node,
               const Buffers& operands)
      : host_(host),
        function_(function),
        node_(node),
        attrs_(node.attrs.as<ScanAttrs>()),
        layout_(ops::scan_layout(node)),
        operands_(operands) {}

  Buffers run() {
    const bool full = runs_in_full();
    in_rows_ = full && layout_.trajectory && attrs_.length.is_constant();
    for (size_t i = 0; i < node_.type.elements().size(); ++i) {
      const int64_t number = static_cast<int64_t>(i);
      results_.push_back(in_rows_ && carry_of(number) >= 0 ? -1 : add_buffer(number));
    }
    if (in_rows_) add_rows();
    for (int64_t c = 0; c < layout_.carries; ++c) {
      copy(operands_[size_t(c + 1)], in_rows_ ? first_rows_[size_t(c)] : result(c));
    }
    if (!full) {
      for (int64_t i = layout_.carries; i < layout_.carries + rows(); ++i) fill_with_zeros(i);
    }
    if (layout_.trajectory) count_trips();
    if (!(attrs_.length == Dim(0))) add_loop(full);
    return results_;
  }

 private:
  BufferId result(int64_t i) const { return results_[static_cast<size_t>(i)]; }
  int64_t rows() const { return layout_.ys + (layout_.trajectory ? layout_.carries : 0); }

  BufferId add_buffer(int64_t number) {
    const TensorType& type = node_.type.elements()[size_t(number)].tensor();
    return host_.add_buffer(node_.loc.node, type, BufferClass::arena, node_.loc);
  }

  // ---- carries in rows

  /// The carry that result `number` is the values of: at the end, before or after all trips; -1 for
  /// others.
  int64_t carry_of(int64_t number) const {
    if (number < layout_.carries) return number;
    if (number >= layout_.executed()) return -1;
    if (number >= layout_.first_trajectory()) return number - layout_.first_trajectory();
    const Function& body = host_.module().function(attrs_.body.name);
    const Node& given = body.node(body.result);
    for (int64_t c = 0; given.op == &ops::tuple && c < layout_.carries; ++c) {
      if (given.operands[size_t(c)] == given.operands[size_t(number)]) return c;
    }
    return -1;
  }

  BufferId view(BufferId whole, const TensorType& type, const Dim& offset) {
    const Buffer owner = host_.program().buffer(whole);
    const BufferId id = host_.add_buffer(owner.name, type, owner.kind, node_.loc);
    Buffer& part = host_.program().buffers[static_cast<size_t>(id)];
    part.view_of = whole;
    part.view_offset = offset;
    return id;
  }

  /// One storage per carry, of its value before the first trip and after each.
  void add_rows() {
    const Dim begin = attrs_.reverse ? attrs_.length : Dim(0);
    const Dim end = attrs_.reverse ? Dim(0) : attrs_.length;
    std::vector<BufferId> states;
    for (int64_t c = 0; c < layout_.carries; ++c) {
      const TensorType row = node_.type.elements()[size_t(c)].tensor();
      TensorType all = row;
      all.shape.insert(all.shape.begin(), attrs_.length + Dim(1));
      states.push_back(host_.add_buffer(node_.loc.node, all, BufferClass::arena, node_.loc));
      first_rows_.push_back(view(states.back(), row, begin * row.element_count()));
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      if (results_[i] >= 0) continue;
      const int64_t number = static_cast<int64_t>(i), c = carry_of(number);
      const TensorType row = node_.type.elements()[size_t(c)].tensor();
      const bool before = number >= layout_.first_trajectory();
      const Dim first = number < layout_.carries ? end : Dim(before == attrs_.reverse ? 1 : 0);
      results_[i] =
          view(states[size_t(c)], node_.type.elements()[i].tensor(), first * row.element_count());
    }
    for (int64_t c = 0; c < layout_.carries; ++c) {
      const TensorType all = node_.type.elements()[size_t(layout_.first_trajectory() + c)].tensor();
      const Dim one = node_.type.elements()[size_t(c)].tensor().element_count();
      next_rows_.push_back(view(states[size_t(c)], all, attrs_.reverse ? Dim(0) : one));
    }
  }

  void copy(BufferId from, BufferId to) { host_.steps().push_back(copy_step(from, to, node_.loc)); }

  /// Whether every row is written: then nothing needs to be zero before.
  bool runs_in_full() const {
    if (attrs_.conditional) return false;
    const Node& trips = function_.node(node_.operands[0]);
    if (trips.op == &ops::dimension) return trips.attrs.as<DimensionAttrs>().value == attrs_.length;
    return trips.op == &ops::constant && attrs_.length.is_constant() &&
           trips.attrs.as<ConstantAttrs>().value.as_int(0) >= attrs_.length.constant();
  }

  void fill_with_zeros(int64_t i) {
    const TensorType type = type_of(host_.program(), result(i));
    KernelBuilder builder(node_, {}, {type});
    builder.map([&](const std::vector<loop::Expr>&) {
      return builder.stored(loop::constant(compute_type(type.element), 0));
    });
    host_.add_call(node_, builder, {}, {result(i)});
  }

  /// min(max(trips, 0), length) where that is the number; a conditional loop counts.
  void count_trips() {
    const TensorType scalar{ElementType::i64, {}};
    const loop::Type i64 = compute_type(ElementType::i64);
    KernelBuilder builder(node_, {scalar}, {scalar});
    builder.map([&](const std::vector<loop::Expr>&) {
      if (attrs_.conditional) return loop::constant(i64, 0);
      const loop::Expr least =
          loop::binary(loop::Op::max, builder.read(0, {}), loop::constant(i64, 0));
      return loop::binary(loop::Op::min, least, loop::cast(i64, loop::expr_of(attrs_.length)));
    });
    host_.add_call(node_, builder, {operands_[0]}, {result(layout_.executed())});
  }

  /// Row `symbol` of a buffer.
  BufferId row_of(BufferId whole, const std::string& symbol) {
    TensorType row = type_of(host_.program(), whole);
    row.shape.erase(row.shape.begin());
    const Buffer owner = host_.program().buffer(whole);
    const BufferId id = host_.add_buffer(owner.name + "_row", row, owner.kind, node_.loc);
    Buffer& view = host_.program().buffers[static_cast<size_t>(id)];
    view.view_of = whole;
    view.view_offset = Dim::symbol(symbol) * row.element_count();
    return id;
  }

  std::string fresh_symbol() {
    SymbolRanges& symbols = host_.program().symbols;
    std::string name = "trip";
    for (int i = 2; symbols.contains(name); ++i) name = fmt::format("trip{}", i);
    const int64_t most = attrs_.length.range(symbols).max;
    symbols[name] = {0, most == INT64_MAX ? most : std::max<int64_t>(most - 1, 0)};
    return name;
  }

  void add_loop(bool full) {
    Step loop;
    loop.kind = StepKind::loop;
    loop.symbol = fresh_symbol();
    loop.count = attrs_.length;
    loop.reverse = attrs_.reverse;
    loop.buffers = {full ? -1 : operands_[0], attrs_.conditional ? result(0) : -1};
    loop.loc = node_.loc;
    const auto copy_row = [&](BufferId from, int64_t to) {
      loop.body.push_back(copy_step(from, row_of(result(to), loop.symbol), node_.loc));
    };
    std::vector<Buffers> arguments;
    for (int64_t c = 0; c < layout_.carries; ++c) {
      if (layout_.trajectory && !in_rows_) copy_row(result(c), layout_.first_trajectory() + c);
      arguments.push_back(
          {in_rows_ ? row_of(result(layout_.first_trajectory() + c), loop.symbol) : result(c)});
    }
    for (int64_t x = 0; x < layout_.xs; ++x) {
      arguments.push_back({row_of(operands_[size_t(layout_.first_x() + x)], loop.symbol)});
    }
    for (int64_t i = 0; i < layout_.invariants; ++i) {
      arguments.push_back({operands_[size_t(layout_.first_invariant() + i)]});
    }
    const Buffers given =
        host_.lower_body(host_.module().function(attrs_.body.name), arguments, loop.body);
    for (int64_t y = 0; y < layout_.ys; ++y) {
      if (in_rows_ && carry_of(layout_.first_y() + y) >= 0) continue;
      copy_row(given[size_t(layout_.carries + y)], layout_.first_y() + y);
    }
    if (layout_.trajectory && attrs_.conditional) count_one(loop.body);
    if (!in_rows_) update_carries(given, loop.body);
    for (int64_t c = 0; in_rows_ && c < layout_.carries; ++c) {
      const BufferId to = row_of(next_rows_[size_t(c)], loop.symbol);
      loop.body.push_back(copy_step(given[size_t(c)], to, node_.loc));
    }
    host_.steps().push_back(std::move(loop));
  }

  void count_one(std::vector<Step>& body) {
    const TensorType scalar{ElementType::i64, {}};
    const loop::Type i64 = compute_type(ElementType::i64);
    const BufferId count = result(layout_.executed());
    const BufferId next = host_.add_buffer("trips", scalar, BufferClass::arena, node_.loc);
    KernelBuilder builder(node_, {scalar}, {scalar});
    builder.map([&](const std::vector<loop::Expr>&) {
      return loop::binary(loop::Op::add, builder.read(0, {}), loop::constant(i64, 1));
    });
    std::swap(host_.steps(), body);
    host_.add_call(node_, builder, {count}, {next});
    std::swap(host_.steps(), body);
    body.push_back(copy_step(next, count, node_.loc));
  }

  /// New values take their places; one that lies in the place of another carry moves out first.
  void update_carries(Buffers given, std::vector<Step>& body) {
    const Program& program = host_.program();
    for (int64_t c = 0; c < layout_.carries; ++c) {
      BufferId& value = given[static_cast<size_t>(c)];
      const BufferId owner = program.owner(value);
      bool elsewhere = false;
      for (int64_t other = 0; other < layout_.carries; ++other) {
        elsewhere = elsewhere || (other != c && program.owner(result(other)) == owner);
      }
      if (!elsewhere) continue;
      const TensorType type = type_of(program, value);
      const BufferId saved = host_.add_buffer("saved", type, BufferClass::arena, node_.loc);
      body.push_back(copy_step(value, saved, node_.loc));
      value = saved;
    }
    for (int64_t c = 0; c < layout_.carries; ++c) {
      const BufferId value = given[static_cast<size_t>(c)];
      if (value != result(c)) body.push_back(copy_step(value, result(c), node_.loc));
    }
  }

  LoweringHost& host_;
  const Function& function_;
  const Node& node_;
  const ScanAttrs& attrs_;
  const ops::ScanLayout layout_;
  const Buffers& operands_;
  bool in_rows_ = false;
  Buffers results_, first_rows_, next_rows_;  // the latter of carries in rows
};

}  // namespace

Step copy_step(BufferId from, BufferId to, const Loc& loc) {
  Step copy;
  copy.kind = StepKind::copy;
  copy.buffers = {from, to};
  copy.loc = loc;
  return copy;
}

Buffers lower_scan(LoweringHost& host, const Function& function, const Node& node,
                   const Buffers& operands) {
  return ScanLowering(host, function, node, operands).run();
}

Buffers lower_if_else(LoweringHost& host, const Node& node, const std::vector<Buffers>& operands) {
  const IfElseAttrs& attrs = node.attrs.as<IfElseAttrs>();
  const std::vector<Buffers> arguments(operands.begin() + 1, operands.end());
  Buffers results;
  for (const TensorType& type : flatten(node.type)) {
    results.push_back(host.add_buffer(node.loc.node, type, BufferClass::arena, node.loc));
  }
  Step branch;
  branch.kind = StepKind::branch;
  branch.buffers = operands[0];
  branch.loc = node.loc;
  const auto lower_arm = [&](const FunctionRef& function, std::vector<Step>& steps) {
    const Buffers given = host.lower_body(host.module().function(function.name), arguments, steps);
    for (size_t i = 0; i < given.size(); ++i) {
      steps.push_back(copy_step(given[i], results[i], node.loc));
    }
  };
  lower_arm(attrs.then, branch.body);
  lower_arm(attrs.otherwise, branch.otherwise);
  host.steps().push_back(std::move(branch));
  return results;
}

}  // namespace backcast
