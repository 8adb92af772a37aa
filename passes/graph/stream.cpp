// See stream.h: writes down what stream_plan.h decides.
#include "passes/graph/stream.h"

#include <algorithm>

#include "ir/graph/builder.h"
#include "ir/graph/error.h"
#include "ir/ops/ops.h"
#include "ir/ops/rows_along.h"
#include "passes/graph/stream_plan.h"
#include "passes/graph/stream_source.h"
#include "passes/train/copy_nodes.h"

namespace backcast {
namespace {

TensorType with_extent(TensorType type, int64_t axis, int64_t extent) {
  type.shape[static_cast<size_t>(axis)] = extent;
  return type;
}

/// What is kept before the first call: the last positions in front of the first piece.
Literal initial_of(const Past& past, const Flow& positions, const TensorType& value) {
  std::vector<int64_t> shape;
  const int64_t kept = past.depth + (past.with_piece ? positions.count : 0);
  for (const Dim& extent : with_extent(value, positions.axis, kept).shape) {
    shape.push_back(extent.constant());
  }
  const ops::RowsAlong rows(shape, positions.axis);
  std::vector<std::byte> bytes;
  for (int64_t outer = 0; outer < rows.outer; ++outer) {
    for (int64_t i = 0; i < kept; ++i) {
      const bool inside = i - kept - positions.delay >= 0;
      const Literal& element = inside && positions.front ? *positions.front : past.initial;
      for (int64_t k = 0; k < rows.stride; ++k) {
        bytes.insert(bytes.end(), element.bytes().begin(), element.bytes().end());
      }
    }
  }
  return Literal(value.element, std::move(shape), std::move(bytes));
}

class StreamWriter {
 public:
  StreamWriter(const Module& module, const Function& function, const StreamPlan& plan)
      : module_(module), from_(function), plan_(plan), b_(module, function.name) {
    result_.symbols = module.symbols;
    now_.resize(static_cast<size_t>(from_.size()));
    extended_.resize(plan.pasts.size());
  }

  Module run(const Entry& entry) {
    add_parameters();
    for (int32_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      const Node& node = from_.node(id);
      if (!of(id).needed || is_parameter(node) || node.op == &ops::tuple) continue;
      b_.set_loc(node.loc);
      now_[static_cast<size_t>(i)] = of(id).pieces ? piece(id) : whole(id);
    }
    finish();
    result_.entries = {entry};
    return std::move(result_);
  }

 private:
  const StreamedNode& of(ValueId id) const { return plan_.nodes[static_cast<size_t>(id.index)]; }
  const Flow& flow(ValueId id) const { return of(id).flows[0]; }
  /// Tuples that are written down as such have none: who takes an element has that.
  ValueId now(ValueId id) const { return now_[static_cast<size_t>(id.index)]; }

  void add_parameters() {
    for (const ValueId id : from_.params) {
      b_.set_loc(from_.node(id).loc);
      Type type = from_.type(id);
      const Flow& input = flow(id);
      if (input.kind == Flow::Kind::pieces) {
        type = with_extent(type.tensor(), input.axis, input.count);
      }
      now_[static_cast<size_t>(id.index)] = b_.parameter(parameter_name(from_.node(id)), type);
    }
    for (const Past& past : plan_.pasts) {
      if (past.state.empty()) continue;
      add_state(past.state, initial_of(past, flow(past.value), from_.type(past.value).tensor()),
                from_.node(past.value).loc);
    }
    for (int32_t i = 0; i < from_.size(); ++i) {
      const StreamedNode& node = of(ValueId(i));
      for (size_t k = 0; k < node.carried.size(); ++k) {
        add_state(node.carried[k], node.carried_initial[k], from_.node(ValueId(i)).loc);
      }
    }
    if (!plan_.counter.empty()) {
      add_state(plan_.counter, Literal::scalar(ElementType::i32, 0), {plan_.counter, ""});
    }
  }

  void add_state(const std::string& name, const Literal& initial, const Loc& loc) {
    b_.set_loc(parameter_loc(name, 0));
    states_[name] = b_.parameter(name, Type(initial.type()));
    StateVariable state;
    state.name = name;
    state.role = StateRole::slot;
    state.initial = initial;
    state.loc = loc;
    result_.states.push_back(std::move(state));
  }

  // Positions side by side.

  ValueId slice(ValueId value, int64_t axis, int64_t first, int64_t count) {
    const Shape shape = b_.tensor_type(value).shape;
    const size_t d = static_cast<size_t>(axis);
    if (first == 0 && shape[d] == Dim(count)) return value;
    SliceAttrs attrs{Dims(shape.size(), Dim(0)), shape, Ints(shape.size(), 1)};
    attrs.start[d] = first;
    attrs.limit[d] = first + count;
    return b_.emit(ops::slice, {value}, attrs);
  }

  ValueId spread(ValueId value, const TensorType& type, Ints dims) {
    return b_.emit(ops::broadcast, {value}, BroadcastAttrs{type.shape, std::move(dims)});
  }

  ValueId integer(int64_t value) { return b_.scalar(ElementType::i32, static_cast<double>(value)); }

  /// The value's piece with `initial` where the sequence has not begun.
  ValueId masked(const Past& past) {
    const Flow& positions = flow(past.value);
    const ValueId piece = now(past.value);
    const TensorType type = b_.tensor_type(piece);
    const TensorType line{ElementType::i32, {Dim(positions.count)}};
    const ValueId begin =
        b_.emit(ops::sub, {b_.emit(ops::mul, {states_.at(plan_.counter), integer(positions.count)}),
                           integer(positions.delay)});
    const ValueId position =
        b_.emit(ops::add, {b_.emit(ops::iota, {}, IotaAttrs{ElementType::i32, line.shape, 0}),
                           spread(begin, line, {})});
    const ValueId begun = b_.emit(ops::compare, {position, spread(integer(0), line, {})},
                                  CompareAttrs{Comparison::ge});
    return b_.emit(ops::select, {spread(begun, type, {positions.axis}), piece,
                                 spread(b_.constant(past.initial), type, {})});
  }

  /// What is kept of a value and its piece.
  ValueId extended(int index) {
    ValueId& made = extended_[static_cast<size_t>(index)];
    if (made.valid()) return made;
    const Past& past = plan_.pasts[static_cast<size_t>(index)];
    const Flow& positions = flow(past.value);
    made = past.masked ? masked(past) : now(past.value);
    if (past.depth == 0) return made;
    const int64_t first = past.with_piece ? positions.count : 0;
    const ValueId before = slice(states_.at(past.state), positions.axis, first, past.depth);
    made = b_.emit(ops::concat, {before, made}, ConcatAttrs{positions.axis});
    next_[past.state] =
        past.with_piece ? made : slice(made, positions.axis, positions.count, past.depth);
    return made;
  }

  ValueId read(ValueId operand, const PieceRead& read) {
    const int64_t axis = flow(operand).axis;
    if (read.past < 0) return slice(now(operand), axis, read.first, read.count);
    const Past& past = plan_.pasts[static_cast<size_t>(read.past)];
    ValueId value = slice(extended(read.past), axis, read.first + past.depth, read.count);
    ValueId old = past.value;
    for (const ValueId id : read.again) {
      const Node& node = from_.node(id);
      std::vector<ValueId> operands;
      for (const ValueId other : node.operands) {
        const bool scalar = from_.type(other).tensor().rank() == 0;
        operands.push_back(other == old ? value
                           : scalar     ? now(other)
                                        : same(other, axis, read.count));
      }
      value = b_.emit(*node.op, operands, node.attrs);
      old = id;
    }
    return value;
  }

  ValueId same(ValueId value, int64_t axis, int64_t extent) {
    return same_along(b_, from_, value, axis, extent, [&](ValueId id) { return now(id); });
  }

  // Nodes.

  ValueId whole(ValueId id) {
    const Node& node = from_.node(id);
    if (node.op == &ops::get && from_.node(node.operands[0]).op == &ops::tuple) {
      const auto element = static_cast<size_t>(node.attrs.as<GetAttrs>().index);
      return now(from_.node(node.operands[0]).operands[element]);
    }
    std::vector<ValueId> operands;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const auto stretch = of(id).reads.find(k);
      operands.push_back(stretch == of(id).reads.end() ? now(node.operands[k])
                                                       : read(node.operands[k], stretch->second));
    }
    return b_.emit(*node.op, operands, node.attrs);
  }

  ValueId piece(ValueId id) {
    const Node& node = from_.node(id);
    const StreamedNode& here = of(id);
    const Pieces& pieces = *here.pieces;
    std::vector<int64_t> axes;
    std::vector<ValueId> operands;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId operand = node.operands[k];
      const OperandPieces& how = pieces.operands[k];
      const bool streamed = how.kind == OperandPieces::Kind::pieces;
      axes.push_back(streamed ? how.axis : -1);
      operands.push_back(streamed ? read(operand, here.reads.at(k))
                         : how.kind == OperandPieces::Kind::same
                             ? same(operand, how.axis, here.extents.result)
                             : now(operand));
    }
    if (pieces.count) {
      operands[*pieces.count] =
          b_.scalar(ElementType::i64, static_cast<double>(here.extents.result));
    }
    for (size_t i = 0; i < pieces.carried.size(); ++i) {
      ValueId& operand = operands[pieces.carried[i].operand];
      operand = carried(states_.at(here.carried[i]), operand, here.flows[0]);
    }
    const ValueId result =
        b_.emit(*node.op, operands, attrs_of_piece({from_, node, axes}, pieces, here.extents));
    for (size_t i = 0; i < pieces.carried.size(); ++i) {
      const GetAttrs element{static_cast<int64_t>(pieces.carried[i].result)};
      next_[here.carried[i]] = b_.emit(ops::get, {result}, element);
    }
    return result;
  }

  /// What was carried, or what it begins with until the sequence has begun.
  ValueId carried(ValueId state, ValueId initial, const Flow& positions) {
    if (positions.delay == 0) return state;
    const ValueId begun = b_.emit(
        ops::compare, {states_.at(plan_.counter), integer(positions.delay / positions.count)},
        CompareAttrs{Comparison::gt});
    return b_.emit(ops::select, {spread(begun, b_.tensor_type(state), {}), state, initial});
  }

  void finish() {
    const Node& node = from_.node(from_.result);
    const bool tuple = node.op == &ops::tuple;
    b_.set_loc(node.loc);
    std::vector<ValueId> results;
    for (const ValueId value : tuple ? node.operands : std::vector<ValueId>{from_.result}) {
      results.push_back(now(value));
    }
    std::vector<std::string> names = output_names(from_);
    if (!plan_.counter.empty()) {
      const ValueId next = b_.emit(ops::add, {states_.at(plan_.counter), integer(1)});
      next_[plan_.counter] = b_.emit(ops::min, {next, integer(plan_.counted_calls)});
    }
    for (const StateVariable& state : result_.states) {
      results.push_back(next_.at(state.name));
      names.push_back(state.name);
    }
    const ValueId all = results.size() == 1 ? results[0] : b_.emit(ops::tuple, results);
    for (const auto& [name, function] : module_.functions) {
      if (name != from_.name) result_.functions[name] = function;
    }
    result_.functions[from_.name] = b_.finish(all, names);
  }

  const Module& module_;
  const Function& from_;
  const StreamPlan& plan_;
  Module result_;
  Builder b_;
  std::vector<ValueId> now_, extended_;
  std::map<std::string, ValueId> states_, next_;
};

void check_inputs(const Function& function, const StreamOptions& options) {
  std::vector<std::string> names;
  for (const ValueId id : function.params) names.push_back(parameter_name(function.node(id)));
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    const auto& [name, axis] = options.inputs[i];
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw CompileError(
          fmt::format("--stream {}: the model's inputs are {}", name, fmt::join(names, ", ")));
    }
    const TensorType& type =
        function.type(function.params[static_cast<size_t>(found - names.begin())]).tensor();
    if (axis < 0 || axis >= type.rank() || !(Dim(0) < type.shape[static_cast<size_t>(axis)])) {
      throw CompileError(fmt::format("--stream {}={}: \"{}\" is {}; axes count from 0", name, axis,
                                     name, to_string(type)));
    }
    if (type.shape[static_cast<size_t>(axis)] == Dim(1)) {
      throw CompileError(
          fmt::format("--stream {}={}: \"{}\" is {}, a sequence of one position; "
                      "where its length is a symbol, give it another with --dim",
                      name, axis, name, to_string(type)));
    }
    for (size_t k = 0; k < i; ++k) {
      if (options.inputs[k].name == name) {
        throw CompileError(fmt::format("--stream {}: named twice", name));
      }
    }
  }
}

void check_extents(const Function& function) {
  for (const Node& node : function.nodes) {
    for (const TensorType& type : flatten(node.type)) {
      if (type.is_static()) continue;
      throw CompileError(node.loc,
                         fmt::format("a stream needs constant extents and this is {}; give symbols "
                                     "values with --dim, the sequence's length the longest "
                                     "stretch that results depend on",
                                     to_string(type)));
    }
  }
}

/// What is summed along the sequence and along other axes is summed along these first: less is
/// kept. Nothing where there is none of that.
std::optional<Function> with_parts_in_turn(const Module& module, const Function& function,
                                           const StreamPlan& plan) {
  Rewriter rewriter(module, function);
  bool changed = false;
  for (int32_t i = 0; i < function.size(); ++i) {
    const Node& node = function.node(ValueId(i));
    const StreamedNode& streamed = plan.nodes[static_cast<size_t>(i)];
    const auto read = streamed.reads.find(0);
    if (node.operands.size() != 1 || read == streamed.reads.end() || read->second.past < 0) {
      continue;
    }
    const Flow& operand = plan.nodes[static_cast<size_t>(node.operands[0].index)].flows[0];
    const std::vector<int64_t> axes{operand.axis};
    const std::optional<PartsInTurn> parts = parts_in_turn({function, node, axes});
    if (!parts) continue;
    Builder& b = rewriter.builder();
    const ValueId whole = rewriter.copy_all(node.operands[0]);
    b.set_loc(node.loc);
    const ValueId first = b.emit(*node.op, {whole}, parts->first);
    rewriter.map(ValueId(i), b.emit(*node.op, {first}, parts->second));
    changed = true;
  }
  return changed ? std::optional(rewriter.finish()) : std::nullopt;
}

StreamNotes notes_of(const Function& function, const StreamPlan& plan) {
  StreamNotes notes;
  const auto add = [&](std::vector<StreamNotes::Tensor>& to, std::string name, const Flow& flow) {
    StreamNotes::Tensor& tensor = to.emplace_back();
    tensor.name = std::move(name);
    if (flow.kind != Flow::Kind::pieces) return;
    tensor = {tensor.name, flow.axis,  flow.extent,
              flow.count,  flow.delay, flow.extent - flow.clean_to};
  };
  for (const ValueId id : function.params) {
    add(notes.inputs, parameter_name(function.node(id)),
        plan.nodes[static_cast<size_t>(id.index)].flows[0]);
  }
  const std::vector<Flow>& results = plan.nodes[static_cast<size_t>(function.result.index)].flows;
  const std::vector<std::string> names = output_names(function);
  for (size_t i = 0; i < results.size(); ++i) add(notes.outputs, names[i], results[i]);
  for (int32_t i = 0; i < function.size(); ++i) {
    const StreamedNode& node = plan.nodes[static_cast<size_t>(i)];
    const auto is_long = [](const auto& read) { return read.second.count > 1; };
    const bool reads_all = !node.pieces && std::ranges::any_of(node.reads, is_long);
    if (reads_all) notes.whole.push_back(function.node(ValueId(i)).loc);
  }
  notes.first_call = plan.first_call;
  notes.stretch = plan.stretch;
  notes.exact = plan.exact;
  return notes;
}

}  // namespace

int64_t StreamNotes::first_whole_call() const {
  int64_t first = 1;
  for (const Tensor& output : outputs) {
    const bool so_far = endless && output.extent <= 1;
    const int64_t call =
        output.axis < 0 ? first_call : (output.delay + output.count - 1) / output.count + 1;
    if (!so_far) first = std::max(first, call);
  }
  return first;
}

std::vector<std::string> StreamNotes::lines() const {
  std::vector<std::string> lines;
  const auto positions = [](int64_t count) {
    return fmt::format("{} position{}", count, count == 1 ? "" : "s");
  };
  const Tensor* first = nullptr;
  for (const Tensor& input : inputs) {
    if (input.axis < 0) continue;
    if (first == nullptr) first = &input;
    lines.push_back(fmt::format("a call takes {} of \"{}\"", positions(input.count), input.name));
  }
  for (const Tensor& output : outputs) {
    const bool latest = output.axis < 0;
    std::string line = fmt::format("and gives \"{}\"", output.name);
    if (!latest && (output.count > 1 || output.extent > 1)) {
      line = fmt::format("and gives {} of \"{}\"", positions(output.count), output.name);
    }
    if (!latest && output.extent > 1) {
      if (output.delay > 0) line += fmt::format(", the first {} for nothing", output.delay);
      if (output.behind > 0) {
        line +=
            fmt::format(", not the last {}, which read behind the sequence's end", output.behind);
      }
    } else if (endless) {
      line += " of all positions so far";
    } else {
      line += fmt::format(" of the latest {}{}, from call {} on", positions(first->extent),
                          exact ? "" : " and those before them",
                          latest ? first_call : output.delay / output.count + 1);
    }
    lines.push_back(line);
  }
  for (const Loc& loc : whole)
    lines.push_back("and reads all of that stretch for " + loc.describe());
  return lines;
}

Module stream(const Module& module, const StreamOptions& options, StreamNotes* notes) {
  const Entry entry = entries_of(module).at(0);
  Function function = module.function(entry.function);
  BC_CHECK(module.states.empty() && !options.inputs.empty(),
           "a stream of nothing, or with a state");
  check_inputs(function, options);
  check_extents(function);
  StreamPlan plan = plan_stream(module, function, options);
  if (std::optional<Function> less = with_parts_in_turn(module, function, plan)) {
    function = std::move(*less);
    plan = plan_stream(module, function, options);
  }
  if (notes) {
    *notes = notes_of(function, plan);
    notes->endless = options.endless;
  }
  return StreamWriter(module, function, plan).run(entry);
}

}  // namespace backcast
