// Walks the function of every entry once. A value is a list of buffers (tuples are flattened here
// and nowhere else).
#include "passes/lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/loop/step_access.h"
#include "ir/ops/ops.h"
#include "passes/lower/lower_control.h"
#include "passes/lower/rule.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::BufferParam;
using loop::Kernel;
using loop::Program;
using loop::Step;

/// A C identifier made of the letters of `text`, never empty, unlike every name taken before.
class Names {
 public:
  std::string make(const std::string& text) {
    std::string base;
    for (char c : text) base += (isalnum(static_cast<unsigned char>(c)) ? c : '_');
    if (base.empty() || isdigit(static_cast<unsigned char>(base[0]))) base = "n" + base;
    if (base.size() > 48) base = base.substr(base.size() - 48);
    std::string name = base;
    for (int i = 2; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
    return name;
  }

 private:
  std::set<std::string> taken_;
};

/// What the functions of all entries share: buffers, kernels, and the names they have taken.
class Lowering : public LoweringHost {
 public:
  Lowering(const Module& module, const std::string& name) : module_(module) {
    program_.name = name;
    program_.symbols = module.symbols;
    program_.batch = module.batch;
    program_.accumulate = module.accumulate;
  }

  Program run() {
    for (const StateVariable& state : module_.states) add_state(state);
    for (const Entry& entry : entries_of(module_)) lower_entry(entry);
    return std::move(program_);
  }

  // What lowering of control flow needs.
  const Module& module() const override { return module_; }
  Program& program() override { return program_; }
  std::vector<Step>& steps() override { return *steps_; }

  Buffers lower_body(const Function& function, const std::vector<Buffers>& arguments,
                     std::vector<Step>& steps) override {
    check_arguments(function, arguments);
    const Function* const caller = std::exchange(main_, &function);
    std::vector<Step>* const outer = std::exchange(steps_, &steps);
    const std::vector<Buffers>* const given = std::exchange(arguments_, &arguments);
    std::vector<Buffers> values =
        std::exchange(values_, std::vector<Buffers>(function.nodes.size()));
    for (int64_t i = 0; i < function.size(); ++i) lower_node(ValueId(i));
    Buffers result = values_[static_cast<size_t>(function.result.index)];
    values_ = std::move(values);
    arguments_ = given;
    steps_ = outer;
    main_ = caller;
    return result;
  }

 private:
  loop::EntryPoint& entry() { return program_.entries.back(); }

  void add_state(const StateVariable& state) {
    const BufferId id = add_buffer(state.name, state.initial.type(), BufferClass::state, state.loc);
    Buffer& buffer = program_.buffers[static_cast<size_t>(id)];
    buffer.role = state.role;
    buffer.value = state.initial;
    buffer.slice_axis = static_cast<int32_t>(state.slice_axis);
    buffer.slice_start = state.slice_start;
    states_[state.name] = id;
  }

  void lower_entry(const Entry& offered) {
    offered_ = &offered;
    main_ = &module_.function(offered.function);
    program_.entries.emplace_back();
    entry().name = offered.name;
    steps_ = &entry().steps;
    values_.assign(main_->nodes.size(), {});
    for (int64_t i = 0; i < main_->size(); ++i) lower_node(ValueId(i));
    guard();
    bind_outputs();
    for (const auto& [id, symbol] : entry().extents) {
      if (program_.buffer(id).kind == BufferClass::output) entry().outputs.push_back(id);
    }
    if (entry().inputs.empty()) require_count();
  }

  /// What takes nothing but state works on what other entries accumulated: without any, there is
  /// nothing to do. The counter is the only slot that is one integer.
  void require_count() {
    for (const ValueId id : main_->params) {
      const auto state = states_.find(parameter_name(main_->node(id)));
      if (state == states_.end()) continue;
      const Buffer& buffer = program_.buffer(state->second);
      const bool counts = buffer.role == StateRole::slot && buffer.shape.empty() &&
                          buffer.element == ElementType::i32;
      if (counts) entry().required_count = state->second;
    }
  }

  /// A body is lowered for the extents its text has.
  void check_arguments(const Function& function, const std::vector<Buffers>& arguments) const {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Node& param = function.node(function.params[i]);
      const std::vector<TensorType> types = flatten(param.type);
      for (size_t k = 0; k < types.size(); ++k) {
        if (program_.buffer(arguments[i][k]).shape == types[k].shape) continue;
        throw CompileError(param.loc,
                           fmt::format("parameter {} of @{}, the body of a loop or branch, must be "
                                       "written with the extents of its operand, {}",
                                       parameter_name(param), function.name,
                                       to_string(program_.buffer(arguments[i][k]).shape)));
      }
    }
  }

  /// Inputs and outputs of the second entry on bear its name in front, so that all are unlike.
  std::string name_in_entry(const std::string& name) const {
    return program_.entries.size() == 1 ? name : offered_->name + "_" + name;
  }

  bool names_storage(const Step& step, BufferId owner) const {
    return std::any_of(step.buffers.begin(), step.buffers.end(),
                       [&](BufferId id) { return id >= 0 && program_.owner(id) == owner; });
  }

  /// Ends the entry before any state is written when the guarded result is not finite.
  void guard() {
    if (offered_->guard.empty()) return;
    const std::vector<std::string>& names = main_->result_names;
    const auto found = std::find(names.begin(), names.end(), offered_->guard);
    const std::vector<BufferId>& results = values_[static_cast<size_t>(main_->result.index)];
    const BufferId guarded = results[static_cast<size_t>(found - names.begin())];
    Step check;
    check.kind = loop::StepKind::check_finite;
    check.buffers = {guarded};
    check.loc = program_.buffer(guarded).loc;
    // Right behind what computes it, so that updates need not wait for more than that.
    const BufferId owner = program_.owner(guarded);
    size_t at = steps().size();
    while (at > 0 && !names_storage(steps()[at - 1], owner)) --at;
    steps().insert(steps().begin() + static_cast<int64_t>(at), std::move(check));
  }

  BufferId add_buffer(const std::string& name, const TensorType& type, BufferClass kind,
                      const Loc& loc) override {
    Buffer buffer;
    buffer.name = buffer_names_.make(name);
    buffer.element = type.element;
    buffer.shape = type.shape;
    buffer.kind = kind;
    buffer.loc = loc;
    program_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }

  void lower_node(ValueId id) {
    const Node& node = main_->node(id);
    std::vector<BufferId>& value = values_[static_cast<size_t>(id.index)];
    if (node.op == &ops::parameter) {
      const ParameterAttrs& attrs = node.attrs.as<ParameterAttrs>();
      if (arguments_ != nullptr) {
        value = (*arguments_)[static_cast<size_t>(attrs.index)];
        return;
      }
      const auto state = states_.find(attrs.name);
      if (state != states_.end()) {
        value = {state->second};
        return;
      }
      for (const TensorType& type : flatten(node.type)) {
        const std::string name = name_in_entry(attrs.name);
        value.push_back(add_buffer(name, type, BufferClass::input, node.loc));
        entry().inputs.push_back(value.back());
        const auto range = offered_->ranges.find(attrs.name);
        if (range != offered_->ranges.end()) {
          entry().ranges[value.back()] = {range->second.min, range->second.max,
                                          range->second.ignore};
        }
      }
    } else if (node.op == &ops::constant) {
      value = {constant(node)};
    } else if (node.op == &ops::tuple) {
      for (ValueId operand : node.operands) {
        const std::vector<BufferId>& part = values_[static_cast<size_t>(operand.index)];
        value.insert(value.end(), part.begin(), part.end());
      }
    } else if (node.op == &ops::get) {
      lower_get(node, value);
    } else if (node.op == &ops::scan) {
      Buffers operands;
      for (ValueId operand : node.operands) operands.push_back(value_of(operand).front());
      assign(id, lower_scan(*this, *main_, node, operands));
    } else if (node.op == &ops::if_else) {
      std::vector<Buffers> operands;
      for (ValueId operand : node.operands) operands.push_back(value_of(operand));
      assign(id, lower_if_else(*this, node, operands));
    } else {
      if (node.op == &ops::prefix) measure(node);
      lower_with_rule(node, value);
    }
  }

  /// The count of a prefix. Where a result is as large, it becomes an output of the symbol's name,
  /// behind the model's.
  void measure(const Node& node) {
    const std::string symbol = measured_symbol(node);
    const std::vector<std::string>& results = main_->result_names;
    if (arguments_ != nullptr) {
      throw CompileError(node.loc, "an extent that depends on data, " + symbol +
                                       ", in the body of a loop or branch; leave it out");
    }
    const BufferId count = value_of(node.operands[1]).front();
    std::string name = symbol;  // not to take a result's
    while (std::find(results.begin(), results.end(), name) != results.end()) name += '_';
    const TensorType type{ElementType::i64, {}};
    std::set<std::string> told;
    for (const TensorType& result : flatten(main_->result_type())) {
      for (const Dim& dim : result.shape) dim.collect_symbols(told);
    }
    const BufferId extent = told.contains(symbol)
                                ? add_output(name, type, node.loc)
                                : add_buffer(name, type, BufferClass::arena, node.loc);
    entry().extents[extent] = symbol;
    steps().push_back(copy_step(count, extent, node.loc));
  }

  const Buffers& value_of(ValueId id) const { return values_[static_cast<size_t>(id.index)]; }
  void assign(ValueId id, Buffers value) {
    values_[static_cast<size_t>(id.index)] = std::move(value);
  }

  /// Entries share their constants.
  BufferId constant(const Node& node) {
    const Literal& literal = node.attrs.as<ConstantAttrs>().value;
    std::vector<BufferId>& equal = constants_[literal.hash()];
    for (BufferId id : equal) {
      if (program_.entries.size() > 1 && program_.buffer(id).value == literal) return id;
    }
    equal.push_back(add_buffer(node.loc.node, node.type.tensor(), BufferClass::constant, node.loc));
    program_.buffers.back().value = literal;
    return equal.back();
  }

  void lower_get(const Node& node, std::vector<BufferId>& value) {
    const std::vector<Type>& elements = main_->type(node.operands[0]).elements();
    int64_t index = node.attrs.as<GetAttrs>().index;
    size_t begin = 0;
    for (int64_t i = 0; i < index; ++i) begin += flatten(elements[static_cast<size_t>(i)]).size();
    size_t count = flatten(elements[static_cast<size_t>(index)]).size();
    const std::vector<BufferId>& whole = values_[static_cast<size_t>(node.operands[0].index)];
    value.assign(whole.begin() + static_cast<int64_t>(begin),
                 whole.begin() + static_cast<int64_t>(begin + count));
  }

  void lower_with_rule(const Node& node, std::vector<BufferId>& value) {
    LowerRule rule = find_lower_rule(*node.op);
    if (!rule) {
      throw CompileError(node.loc, fmt::format("core operator \"{}\" cannot be compiled; `verify "
                                               "--evaluator` can run it",
                                               node.op->name));
    }
    std::vector<BufferId> operands;
    std::vector<TensorType> operand_types;
    for (ValueId operand : node.operands) {
      for (BufferId id : values_[static_cast<size_t>(operand.index)]) operands.push_back(id);
      for (const TensorType& type : flatten(main_->type(operand))) operand_types.push_back(type);
    }
    std::vector<TensorType> results = flatten(node.type);
    KernelBuilder builder(node, operand_types, results);
    rule(builder);
    for (const TensorType& type : results) {
      value.push_back(add_buffer(node.loc.node, type, BufferClass::arena, node.loc));
    }
    if (builder.is_view()) {
      Buffer& buffer = program_.buffers[static_cast<size_t>(value[0])];
      buffer.view_of = operands[static_cast<size_t>(builder.view_of())];
      buffer.view_offset = builder.view_offset();
      buffer.kind = program_.buffer(buffer.view_of).kind;
      return;
    }
    if (builder.is_join()) return join(operands, value[0], node.loc);
    add_call(node, builder, operands, value);
  }

  /// Whether a value is computed before the data tells what place `offset` is.
  bool is_early(BufferId id, const Dim& offset) {
    std::set<std::string> symbols;
    offset.collect_symbols(symbols);
    const auto first = [&](BufferId named) {
      const BufferId owner = program_.owner(named);
      return std::ranges::find_if(steps(), [&](const Step& s) {
        return loop::written_buffers(program_, s).contains(owner);
      });
    };
    return std::ranges::any_of(entry().extents, [&](const auto& extent) {
      return symbols.contains(extent.second) && first(id) < first(extent.first);
    });
  }

  /// The operands become parts of `whole`: an arena value that is no part of anything yet is
  /// computed in place, everything else is copied there.
  void join(const std::vector<BufferId>& operands, BufferId whole, const Loc& loc) {
    Dim offset = 0;
    for (BufferId id : operands) {
      const Buffer operand = program_.buffer(id);
      TensorType type{operand.element, operand.shape};
      BufferId part = id;
      if (operand.kind != BufferClass::arena || operand.view_of >= 0 || is_early(id, offset)) {
        part = add_buffer(loc.node, type, BufferClass::arena, loc);
        steps().push_back(copy_step(id, part, loc));
      }
      Buffer& placed = program_.buffers[static_cast<size_t>(part)];
      placed.view_of = whole;
      placed.view_offset = offset;
      offset = offset + type.element_count();
    }
  }

  /// Parameters of the kernel: the operands it mentions, once each, then the results.
  void add_call(const Node& node, const KernelBuilder& builder, const Buffers& operands,
                const Buffers& results) override {
    Kernel kernel;
    kernel.name = kernel_names_.make(node.loc.node);
    kernel.locs = {node.loc};
    kernel.body = loop::block(builder.statements());
    Step step;
    step.kernel = kernel.name;
    step.loc = node.loc;
    std::set<std::string> symbols;
    const auto add_param = [&](const std::string& name, BufferId id, loop::AccessMode mode) {
      const Buffer& buffer = program_.buffer(id);
      kernel.buffers.push_back({name, loop::scalar_of(buffer.element), buffer.shape, mode, {}});
      step.buffers.push_back(id);
      for (const Dim& dim : buffer.shape) dim.collect_symbols(symbols);
    };
    for (size_t i = 0; i < operands.size(); ++i) {
      add_param(fmt::format("a{}", i), operands[i], loop::AccessMode::read);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      add_param(fmt::format("out{}", i), results[i], loop::AccessMode::write);
    }
    if (const int64_t first = builder.begins_with(); first >= 0) {
      const BufferId owner = program_.owner(operands[static_cast<size_t>(first)]);
      const auto same = [&](BufferId id) { return program_.owner(id) == owner; };
      const bool once = std::count_if(operands.begin(), operands.end(), same) == 1;
      if (once) kernel.buffers[operands.size()].over = {fmt::format("a{}", first)};
    }
    for (size_t i = 0; i < builder.scratch().size(); ++i) {
      const std::string name = fmt::format("scratch{}", i);
      const BufferId id = add_buffer(name, builder.scratch()[i], BufferClass::arena, node.loc);
      add_param(name, id, loop::AccessMode::write);
    }
    builder.macs().collect_symbols(symbols);
    for (const AttrField& field : node.attrs.fields()) {
      if (const Dim* dim = std::get_if<Dim>(&field.value)) dim->collect_symbols(symbols);
      if (const Dims* dims = std::get_if<Dims>(&field.value)) {
        for (const Dim& dim : *dims) dim.collect_symbols(symbols);
      }
    }
    kernel.sizes.assign(symbols.begin(), symbols.end());
    for (const std::string& symbol : kernel.sizes) step.sizes.push_back(Dim::symbol(symbol));
    kernel.macs = builder.macs().range(program_.symbols).max;
    program_.kernels.emplace(kernel.name, std::move(kernel));
    steps().push_back(std::move(step));
  }

  /// Results become output buffers or the new values of state. An arena value is renamed into an
  /// output's place; inputs, constants, state, values that are several outputs at once and those
  /// of outputs that may be left out are copied. State is written last, when nothing reads the old
  /// values any more.
  void bind_outputs() {
    std::set<BufferId> bound;
    std::vector<Step> updates;
    const std::vector<BufferId>& results = values_[static_cast<size_t>(main_->result.index)];
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string name =
          i < main_->result_names.size() ? main_->result_names[i] : fmt::format("output{}", i);
      const auto state = states_.find(name);
      if (state == states_.end()) {
        bind_output(results[i], name, bound);
      } else if (results[i] != state->second) {
        updates.push_back(
            copy_step(settled(results[i]), state->second, program_.buffer(state->second).loc));
      }
    }
    for (Step& update : updates) steps().push_back(std::move(update));
  }

  BufferId add_output(const std::string& name, const TensorType& type, const Loc& loc) {
    const BufferId output = add_buffer(name, type, BufferClass::output, loc);
    Buffer& named = program_.buffers[static_cast<size_t>(output)];
    named.name = output_names_.make(name_in_entry(name));
    // Long names are cut: an input's, or another entry's, may end alike.
    const auto is_twin = [&](const Buffer& other) {
      return &other != &named && other.name == named.name;
    };
    if (std::any_of(program_.buffers.begin(), program_.buffers.end(), is_twin)) {
      named.name = buffer_names_.make(named.name);
    }
    return output;
  }

  void bind_output(BufferId id, const std::string& name, std::set<BufferId>& bound) {
    const Buffer value = program_.buffer(id);
    const BufferId owner = program_.owner(id);
    const Buffer owned = program_.buffer(owner);  // add_buffer moves the originals
    const TensorType type{value.element, value.shape};
    const BufferId output = add_output(name, type, value.loc);
    entry().outputs.push_back(output);
    const bool may_lack = offered_->optional_outputs.contains(name);
    if (may_lack) entry().optional_outputs.insert(output);
    const bool whole =
        owned.element == value.element &&
        TensorType{owned.element, owned.shape}.element_count() == type.element_count();
    if (owned.kind == BufferClass::arena && whole && !may_lack && bound.insert(owner).second) {
      Buffer& moved = program_.buffers[static_cast<size_t>(owner)];
      moved.view_of = output;
      moved.view_offset = 0;
      program_.update_view_classes();
    } else {
      steps().push_back(copy_step(id, output, value.loc));
    }
  }

  /// The value in a place that no update of state can change: what lies in state is copied.
  BufferId settled(BufferId id) {
    if (program_.buffer(program_.owner(id)).kind != BufferClass::state) return id;
    const Buffer value = program_.buffer(id);
    const BufferId copy =
        add_buffer(value.name, {value.element, value.shape}, BufferClass::arena, value.loc);
    steps().push_back(copy_step(id, copy, value.loc));
    return copy;
  }

  const Module& module_;
  Program program_;
  std::map<std::string, BufferId> states_;
  std::map<uint64_t, std::vector<BufferId>> constants_;  // by hash
  // Of the entry that is being lowered.
  const Entry* offered_ = nullptr;
  const Function* main_ = nullptr;  // or the body that is being lowered
  std::vector<Step>* steps_ = nullptr;
  const std::vector<Buffers>* arguments_ = nullptr;  // of a body
  std::vector<Buffers> values_;
  Names buffer_names_, kernel_names_, output_names_;
};

}  // namespace

loop::Program lower(const Module& module, const std::string& name) {
  return Lowering(module, name).run();
}

}  // namespace backcast
