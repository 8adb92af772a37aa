// See entry_writer.h.
#include "backend/c/entry_writer.h"

#include "backend/c/pieces.h"
#include "ir/graph/error.h"
#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"

namespace backcast::c_backend {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Expr;
using loop::Scalar;
using loop::Step;

namespace {

class EntryWriter {
 public:
  EntryWriter(Prelude& prelude, const EntryContext& context, const EntryAbi& abi)
      : context_(context), abi_(abi), writer_(prelude, no_functions_) {
    for (size_t i = 0; i < abi.inputs.size(); ++i) {
      pointers_[abi.inputs[i].buffer] = "in->" + abi.inputs[i].identifier;
    }
    for (size_t i = 0; i < abi.outputs.size(); ++i) {
      pointers_[abi.outputs[i].buffer] = "out->" + abi.outputs[i].identifier;
    }
    for (const char* name :
         {"in", "out", "arena", "arena_bytes", "context", "base", "state", "saved", "call"}) {
      writer_.local(name);
    }
  }

  std::string write(const loop::EntryPoint& entry);

 private:
  std::string checks() const;
  std::string signature() const;
  void range_check(const TensorField& field);
  void check_finite(const Step& step);
  void steps(const std::vector<Step>& list);
  void loop(const Step& step);
  void branch(const Step& step);
  void hooked_step(const Step& step, const StepAbi& hook);
  void measure(const Step& step);
  std::string pointer(BufferId id);
  std::string dim(const Dim& d);
  void step(const Step& step);

  const EntryContext& context_;
  const EntryAbi& abi_;
  const std::map<std::string, loop::MathFunction> no_functions_;
  FunctionWriter writer_;
  std::map<BufferId, std::string> pointers_;
  std::set<std::string> symbols_;             // mentioned
  std::set<BufferId> optional_;               // outputs
  std::map<BufferId, std::string> measured_;  // EntryPoint::extents that steps depend on
  bool uses_arena_ = false, uses_state_ = false;
  size_t next_step_ = 0;  // number among all steps of the entry point
};

std::string failure(const EntryAbi& abi, const Check& check) {
  using Kind = Check::Kind;
  const auto misaligned = [&](const std::string& pointer) {
    return fmt::format("((uintptr_t){} & {}u) != 0", pointer, check.value - 1);
  };
  switch (check.kind) {
    case Kind::in_null:
      return "in == NULL";
    case Kind::out_null:
      return "out == NULL";
    case Kind::input_null:
      return fmt::format("in->{} == NULL", abi.inputs[check.field].identifier);
    case Kind::output_null:
      return fmt::format("out->{} == NULL", abi.outputs[check.field].identifier);
    case Kind::arena_null:
      return "arena == NULL";
    case Kind::arena_size:
      return fmt::format("arena_bytes < {}u", check.value);
    case Kind::arena_alignment:
      return misaligned("arena");
    case Kind::input_alignment:
      return misaligned("in->" + abi.inputs[check.field].identifier);
    case Kind::output_alignment:
      return misaligned("out->" + abi.outputs[check.field].identifier);
    case Kind::dimension: {
      const SizeField& size = abi.sizes[check.field];
      return fmt::format("in->{0} < {1} || in->{0} > {2}", size.identifier,
                         integer_literal(Scalar::i64, size.range.min),
                         integer_literal(Scalar::i64, size.range.max));
    }
    case Kind::state_null:
      return "state == NULL";
    case Kind::state_alignment:
      return misaligned("state");
    case Kind::state_header:
      return "bc_state_check(STATE_LAYOUT, state) != BC_OK";
    case Kind::count_zero:
      return fmt::format("*(const uint32_t *)((const unsigned char *)state + {}) == 0",
                         check.value);
  }
  BC_CHECK(false, "check of kind {}", static_cast<int>(check.kind));
}

/// Checks that follow each other with one status share an `if`, a line each.
std::string EntryWriter::checks() const {
  std::string text;
  for (size_t i = 0; i < abi_.checks.size();) {
    const Status status = abi_.checks[i].status;
    std::string condition;
    size_t count = 0;
    for (; i < abi_.checks.size() && abi_.checks[i].status == status; ++i, ++count) {
      condition += (count > 0 ? " ||\n      " : "") + failure(abi_, abi_.checks[i]);
    }
    const bool is_one = count == 1;
    text += fmt::format("  if ({}){}return {};\n{}", condition, is_one ? " " : " {\n    ",
                        macro_of(status), is_one ? "" : "  }\n");
  }
  return text;
}

/// To stand beside sums: a quotient may be a shift.
std::string EntryWriter::dim(const Dim& d) {
  std::set<std::string> symbols;
  d.collect_symbols(symbols);
  symbols_.insert(symbols.begin(), symbols.end());
  const Expr e = loop::expr_of(d);
  writer_.begin_statement({});
  return writer_.expr(e).at(kSum);
}

/// Where a buffer starts, as an expression that converts to a pointer to its elements.
std::string EntryWriter::pointer(BufferId id) {
  const loop::Program& program = context_.program;
  Dim bytes = loop::byte_offset(program, id);
  const BufferId owner_id = program.owner(id);
  const Buffer& owner = program.buffer(owner_id);
  const bool is_const = owner.kind == BufferClass::constant || owner.kind == BufferClass::input;
  std::string start;
  switch (owner.kind) {
    case BufferClass::arena: {
      BC_CHECK(owner.offset >= 0, "arena buffer {} has no place", owner.name);
      uses_arena_ = true;
      bytes = bytes + Dim(owner.offset);
      if (bytes == Dim(0)) return "(void *)base";
      return fmt::format("(void *)(base + {})", dim(bytes));
    }
    case BufferClass::constant:
      start = context_.constants.at(owner_id);
      break;
    case BufferClass::input:
    case BufferClass::output:
      BC_CHECK(pointers_.contains(owner_id), "buffer {} is no input or output of entry {}",
               owner.name, abi_.name);
      start = pointers_.at(owner_id);
      break;
    case BufferClass::state:
      BC_CHECK(owner.offset >= 0, "state buffer {} has no place", owner.name);
      uses_state_ = true;
      return fmt::format("({}void *)(saved + {})", abi_.writes_state ? "" : "const ",
                         dim(bytes + Dim(owner.offset)));
  }
  const std::string qualifier = is_const ? "const " : "";
  if (bytes == Dim(0)) {
    if (program.buffer(id).element == owner.element) return start;
    return fmt::format("({}void *){}", qualifier, start);
  }
  return fmt::format("({0}void *)(({0}unsigned char *){1} + {2})", qualifier, start, dim(bytes));
}

/// Integers of an input that must lie in a range.
void EntryWriter::range_check(const TensorField& field) {
  const loop::ValueRange& range = *field.range;
  const Buffer& buffer = context_.program.buffer(field.buffer);
  const std::string count = dim(TensorType{buffer.element, buffer.shape}.element_count());
  const std::string i = writer_.local("i"), value = writer_.local("value");
  const auto literal = [](int64_t number) { return integer_literal(Scalar::i64, number); };
  std::string outside =
      fmt::format("{0} < {1} || {0} > {2}", value, literal(range.min), literal(range.max));
  if (range.ignore)
    outside = fmt::format("({}) && {} != {}", outside, value, literal(*range.ignore));
  writer_.open(fmt::format("for (index_t {0} = 0; {0} < {1}; ++{0})", i, count));
  writer_.line(fmt::format("const int64_t {} = (int64_t)in->{}[{}];", value, field.identifier, i));
  writer_.line(fmt::format("if ({}) return {};", outside, macro_of(Status::index)));
  writer_.close();
}

void EntryWriter::check_finite(const Step& step) {
  const bool is_double = context_.program.buffer(step.buffers[0]).element == ElementType::f64;
  const std::string name = is_double ? "f64_is_finite" : "f32_is_finite";
  const std::string mask = is_double ? "UINT64_C(0x7ff0000000000000)" : "0x7f800000u";
  writer_.prelude().helper(name, [&] {
    return inline_function("int", name, "const void *value") +
           fmt::format(
               " {{\n  uint{0}_t bits;\n  __builtin_memcpy(&bits, value, sizeof bits);\n"
               "  return (bits & {1}) != {1};\n}}\n",
               is_double ? 64 : 32, mask);
  });
  writer_.line(fmt::format("if (!{}({})) return {};", name, pointer(step.buffers[0]),
                           macro_of(Status::nonfinite)));
}

/// A step that writes an output the caller may leave out runs only if it is there.
void EntryWriter::step(const Step& step) {
  const StepAbi& hook = abi_.steps[next_step_++];
  if (step.kind == loop::StepKind::check_finite) return check_finite(step);
  if (step.kind == loop::StepKind::loop) return loop(step);
  if (step.kind == loop::StepKind::branch) return branch(step);
  for (const TensorField& output : abi_.outputs) {
    if (!optional_.contains(output.buffer)) continue;
    if (!loop::written_buffers(context_.program, step).contains(output.buffer)) continue;
    writer_.open(fmt::format("if (out->{} != NULL)", output.identifier));
    hooked_step(step, hook);
    writer_.close();
    return;
  }
  hooked_step(step, hook);
  measure(step);
}

/// The symbols whose values the step has written, taken into their ranges.
void EntryWriter::measure(const Step& step) {
  if (measured_.empty()) return;
  for (const BufferId id : loop::written_buffers(context_.program, step)) {
    const auto extent = measured_.find(id);
    if (extent == measured_.end()) continue;
    const DimRange& range = context_.program.symbols.at(extent->second);
    const auto literal = [](int64_t number) { return integer_literal(Scalar::i64, number); };
    const std::string count = fmt::format("*(const int64_t *)({})", pointer(id));
    writer_.line(fmt::format("{0} = (index_t)({1} < {2} ? {2} : {1} > {3} ? {3} : {1});",
                             writer_.local(extent->second), count, literal(range.min),
                             literal(range.max)));
  }
}

void EntryWriter::steps(const std::vector<Step>& list) {
  for (const Step& step : list) this->step(step);
}

/// Hooks are called for the steps inside, in every trip.
void EntryWriter::loop(const Step& step) {
  const std::string i = writer_.local(step.symbol);
  std::string end = dim(step.count);
  const bool is_short = step.buffers[0] >= 0;
  if (is_short) {
    const std::string trips = writer_.local(step.symbol + "_trips");
    const std::string last = writer_.local(step.symbol + "_end");
    writer_.line(
        fmt::format("const int64_t {} = *(const int64_t *)({});", trips, pointer(step.buffers[0])));
    writer_.line(fmt::format("const index_t {0} = {1} < 0 ? 0 : {1} < {2} ? (index_t){1} : {2};",
                             last, trips, end));
    end = last;
  }
  std::string condition;
  if (step.buffers[1] >= 0) {
    condition = fmt::format(" && *(const uint8_t *)({}) != 0", pointer(step.buffers[1]));
  }
  if (step.reverse) {
    writer_.open(fmt::format("for (index_t {0} = {1} - 1; {0} >= 0; --{0})", i, end));
  } else {
    writer_.open(fmt::format("for (index_t {0} = 0; {0} < {1}{2}; ++{0})", i, end, condition));
  }
  steps(step.body);
  writer_.close();
}

void EntryWriter::branch(const Step& step) {
  const std::string condition =
      fmt::format("*(const uint8_t *)({}) {{}} 0", pointer(step.buffers[0]));
  const auto test = [&](const char* operation) {
    return fmt::format("if ({})", fmt::format(fmt::runtime(condition), operation));
  };
  if (!step.body.empty()) {
    writer_.open(test("!="));
    steps(step.body);
    writer_.close();
  }
  if (!step.otherwise.empty()) {
    writer_.open(test("=="));
    steps(step.otherwise);
    writer_.close();
  }
}

/// The memory of a buffer overlaps another's only if both lie in the arena or are one.
void EntryWriter::hooked_step(const Step& step, const StepAbi& hook) {
  const std::string name = context_.names ? string_literal(hook.name) : "NULL";
  writer_.line(fmt::format("before_kernel(context, {}, {});", hook.number, name));
  std::string args;
  for (const BufferId id : step.buffers) args += (args.empty() ? "" : ", ") + pointer(id);
  if (step.kind == loop::StepKind::copy) {
    const Buffer& from = context_.program.buffer(step.buffers[0]);
    const Dim count = TensorType{from.element, from.shape}.element_count();
    const std::string bytes = dim(count * Dim(byte_size(from.element)));
    writer_.line(fmt::format("__builtin_memmove({}, {}, (size_t)({}));", pointer(step.buffers[1]),
                             pointer(step.buffers[0]), bytes));
  } else {
    const size_t range = step.grain > 0 ? 2 : 0;
    for (size_t i = 0; i + range < step.sizes.size(); ++i) {
      args += (args.empty() ? "" : ", ") + dim(step.sizes[i]);
    }
    const std::string& function = context_.kernels.at(step.kernel);
    if (range == 0) {
      writer_.line(fmt::format("{}({});", function, args));
    } else {
      writer_.line("{");
      writer_.indent_more();
      writer_.line(fmt::format("{} call = {{{}}};", call_struct(function), args));
      writer_.line(fmt::format("for_each_piece(context, {}, {}, {}, &call);",
                               dim(step.sizes.back()), step.grain, piece_function(function)));
      writer_.close();
    }
  }
  writer_.line(fmt::format("after_kernel(context, {}, {});", hook.number, name));
}

std::string EntryWriter::signature() const {
  std::string text = fmt::format("bc_status {0}(", abi_.symbol);
  if (abi_.has_state) text += abi_.writes_state ? "void *state, " : "const void *state, ";
  if (abi_.has_structs) {
    text += fmt::format("const {0}_inputs *in, const {0}_outputs *out, ", abi_.symbol);
  }
  return text + "void *arena,\n    size_t arena_bytes, const bc_context *context) {\n";
}

std::string EntryWriter::write(const loop::EntryPoint& entry) {
  optional_ = entry.optional_outputs;
  for (const Step& step : entry.steps) {
    for (const BufferId id : loop::extent_buffers(context_.program, step)) {
      if (entry.extents.contains(id)) measured_[id] = entry.extents.at(id);
    }
  }
  for (const TensorField& field : abi_.inputs) {
    if (field.range) range_check(field);
  }
  this->steps(entry.steps);
  const std::string steps = writer_.take_text();
  std::string text = signature();
  const std::string checked = checks();
  text += checked;
  if (checked.find("arena_bytes") == std::string::npos) text += "  (void)arena_bytes;\n";
  if (entry.steps.empty()) text += "  (void)context;\n";
  if (uses_arena_) {
    text += "  unsigned char *const base = (unsigned char *)arena;\n";
  } else if (checked.find("arena ==") == std::string::npos) {
    text += "  (void)arena;\n";
  }
  if (uses_state_) {
    const std::string type = abi_.writes_state ? "unsigned char *" : "const unsigned char *";
    text += fmt::format("  {0}const saved = ({0})state;\n", type);
  }
  for (const SizeField& size : abi_.sizes) {
    if (!symbols_.contains(size.symbol)) continue;
    text += fmt::format("  const index_t {} = (index_t)in->{};\n", writer_.local(size.symbol),
                        size.identifier);
  }
  for (const auto& [id, symbol] : measured_) {
    text += fmt::format("  index_t {} = 0;\n", writer_.local(symbol));
  }
  return text + steps + "  return BC_OK;\n}\n";
}

/// Bytes of a place that a call may touch: of the arena, else of its owner alone.
bool may_overlap(const loop::Program& program, BufferId a, BufferId b) {
  const BufferId owner_a = program.owner(a), owner_b = program.owner(b);
  if (owner_a == owner_b) return true;
  const Buffer& x = program.buffer(owner_a);
  const Buffer& y = program.buffer(owner_b);
  if (x.kind != BufferClass::arena || y.kind != BufferClass::arena) return false;
  // Nothing at the same place: equal pointers, which compilers warn of where they are restricted.
  if (x.offset == y.offset) return true;
  return x.offset < y.offset + program.storage_bytes(owner_b) &&
         y.offset < x.offset + program.storage_bytes(owner_a);
}

/// Where what is written says that it overlaps nothing, what is read need not say so.
void drop_needless(const loop::Kernel& kernel, KernelUse& use) {
  const auto is_read = [](const loop::BufferParam& b) { return b.mode == loop::AccessMode::read; };
  for (const loop::BufferParam& buffer : kernel.buffers) {
    if (!is_read(buffer) && !use.restricted.contains(buffer.name)) return;
  }
  for (const loop::BufferParam& buffer : kernel.buffers) {
    if (is_read(buffer)) use.restricted.erase(buffer.name);
  }
}

}  // namespace

std::map<std::string, KernelUse> kernel_uses(const loop::Program& program) {
  std::map<std::string, KernelUse> uses;
  for (const auto& [name, kernel] : program.kernels) {
    for (const loop::BufferParam& buffer : kernel.buffers)
      uses[name].restricted.insert(buffer.name);
  }
  for (const loop::EntryPoint& entry : program.entries) {
    for (const Step* flat : loop::flat_steps(entry.steps)) {
      const Step& step = *flat;
      if (step.kind != loop::StepKind::call) continue;
      const loop::Kernel& kernel = program.kernels.at(step.kernel);
      BC_CHECK(kernel.buffers.size() == step.buffers.size(), "call of {} with {} buffers",
               step.kernel, step.buffers.size());
      KernelUse& use = uses[step.kernel];
      for (size_t i = 0; i < step.buffers.size(); ++i) {
        const BufferId owner = program.owner(step.buffers[i]);
        if (program.buffer(owner).element != program.buffer(step.buffers[i]).element) {
          use.overlaid.insert(kernel.buffers[i].name);
        }
        for (size_t j = i + 1; j < step.buffers.size(); ++j) {
          if (!may_overlap(program, step.buffers[i], step.buffers[j])) continue;
          const loop::BufferParam& a = kernel.buffers[i];
          const loop::BufferParam& b = kernel.buffers[j];
          use.restricted.erase(a.name);
          use.restricted.erase(b.name);
          if (a.element != b.element) use.overlaid.insert({a.name, b.name});
        }
      }
    }
  }
  for (auto& [name, use] : uses) drop_needless(program.kernels.at(name), use);
  return uses;
}

std::string entry_text(Prelude& prelude, const EntryContext& context, const loop::EntryPoint& entry,
                       const EntryAbi& abi) {
  return EntryWriter(prelude, context, abi).write(entry);
}

std::string hooks_text() {
  std::string text;  // functions of their own: twice per step their tests would be much code
  for (const char* hook : {"before_kernel", "after_kernel"}) {
    text += fmt::format(
        "BC_KERNEL void {0}(const bc_context *context, int32_t kernel, const char *name) {{\n"
        "  const size_t needed = offsetof(bc_context, {0}) + sizeof context->{0};\n"
        "  if (context == NULL || context->struct_bytes < needed) return;\n"
        "  if (context->{0} != NULL) context->{0}(context->user, kernel, name);\n}}\n\n",
        hook);
  }
  return text;
}

}  // namespace backcast::c_backend
