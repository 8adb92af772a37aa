// Statements, kernels and programs as text.
#include <map>

#include "ir/graph/element_text.h"
#include "ir/graph/error.h"
#include "ir/graph/scanner.h"
#include "ir/loop/text.h"
#include "ir/loop/text_syntax.h"

namespace backcast::loop {

std::string print_operand(const Expr& expr);

namespace {

constexpr int64_t kMaxInlineElements = 16;

std::string indentation(int indent) { return std::string(static_cast<size_t>(indent), ' '); }

template <class T, class F>
std::string joined(const std::vector<T>& items, F&& text_of) {
  std::string text;
  for (const T& item : items) text += (text.empty() ? "" : ", ") + text_of(item);
  return text;
}

/// `{ … }`: the statements of a block, or one statement alone.
std::string braces(const Stmt& body, int indent) {
  std::string text = "{\n";
  if (body && body->kind == StmtKind::block && body->body.size() != 1) {
    for (const Stmt& s : body->body) text += print(s, indent + 2);
  } else if (body) {
    text += print(body, indent + 2);
  }
  return text + indentation(indent) + "}";
}

std::string loop_text(const StmtNode& s, int indent) {
  static constexpr std::string_view kKinds[] = {"", "unrolled ", "vectorized ", "parallel "};
  const bool from_zero = is_constant(s.exprs[0], 0);
  return std::string(kKinds[static_cast<size_t>(s.for_kind)]) + "for " + name_text(s.name) +
         " in " + print_operand(s.exprs[0]) + (from_zero ? " .. " : " .. +") +
         print_operand(s.exprs[1]) + " " + braces(s.body[0], indent);
}

std::string if_text(const StmtNode& s, int indent) {
  std::string text = "if " + print_operand(s.exprs[0]) + " " + braces(s.body[0], indent);
  if (s.body.size() > 1) text += " else " + braces(s.body[1], indent);
  return text;
}

std::string axes_text(const std::vector<Axis>& axes) {
  return "[" +
         joined(
             axes,
             [](const Axis& axis) { return name_text(axis.name) + " in " + print(axis.extent); }) +
         "]";
}

std::string definition_text(const Definition& d, int indent) {
  static constexpr std::string_view kCombines[] = {"sum",     "prod",   "max",    "min",
                                                   "bit_and", "bit_or", "general"};
  std::string text = "define " + axes_text(d.axes);
  if (!d.reduce_axes.empty()) text += " reduce " + axes_text(d.reduce_axes);
  text += " {\n";
  const std::string inner = indentation(indent + 2);
  for (const Accumulator& acc : d.accumulators) {
    text += inner + name_text(acc.name) + ": " + acc.type.to_string() + " = " +
            std::string(kCombines[static_cast<size_t>(acc.combine)]) + "(init " + print(acc.init) +
            ", " + print(acc.value) + ")\n";
  }
  for (const DefinitionOutput& out : d.outputs) {
    text += inner + name_text(out.buffer) + "[" +
            joined(out.indices, [](const Expr& e) { return print(e); }) +
            "] = " + print(out.value) + "\n";
  }
  return text + indentation(indent) + "}";
}

std::string stmt_text(const StmtNode& s, int indent) {
  switch (s.kind) {
    case StmtKind::block: {
      // Inside `block { … }` every statement stands as it is.
      std::string text = "block {\n";
      for (const Stmt& child : s.body) text += print(child, indent + 2);
      return text + indentation(indent) + "}";
    }
    case StmtKind::let:
      return "let " + name_text(s.name) + " = " + print(s.exprs[0]);
    case StmtKind::for_loop:
      return loop_text(s, indent);
    case StmtKind::while_loop:
      return "while " + print_operand(s.exprs[0]) + " " + braces(s.body[0], indent);
    case StmtKind::if_branch:
      return if_text(s, indent);
    case StmtKind::store:
      return "store " + name_text(s.name) + "[" + print(s.exprs[0]) + "] = " + print(s.exprs[1]);
    case StmtKind::alloc:
      return "alloc " + name_text(s.name) + " : " + s.type.to_string() + "[" + print(s.exprs[0]) +
             "] " + (s.memory == Memory::registers ? "registers" : "stack");
    case StmtKind::prefetch:
      return "prefetch " + name_text(s.name) + "[" + print(s.exprs[0]) + "]" +
             (s.cache == Cache::first ? " near" : "");
    case StmtKind::define:
      return definition_text(*s.definition, indent);
  }
  return "";
}

std::string locs_text(const std::vector<Loc>& locs) {
  static constexpr std::string_view kOrigins[] = {"imported", "adjoint_of", "fused_from", "made"};
  std::string text;
  for (const Loc& loc : locs) {
    text += " loc(" + quote(loc.node) + ", " + quote(loc.op_type);
    if (loc.origin != Origin::imported) {
      text += ", " + std::string(kOrigins[static_cast<size_t>(loc.origin)]);
    }
    text += ")";
  }
  return text;
}

std::string loc_text(const Loc& loc) { return loc == Loc{} ? "" : locs_text({loc}); }

std::string param_text(const BufferParam& param) {
  static constexpr std::string_view kModes[] = {"read", "write", "update"};
  std::string text = name_text(param.name) + ": " + std::string(name_of(param.element)) +
                     to_string(param.shape) + " " +
                     std::string(kModes[static_cast<size_t>(param.mode)]);
  if (!param.over.empty()) text += " over(" + joined(param.over, name_text) + ")";
  return text;
}

/// A literal without bytes and extents is none at all: a scalar has bytes.
bool has_data(const Literal& literal) {
  return !literal.bytes().empty() || !literal.shape().empty();
}

bool is_inline(const Literal& literal) { return literal.element_count() <= kMaxInlineElements; }

bool has_type_of(const Literal& literal, const Buffer& buffer) {
  return literal.element() == buffer.element &&
         Dims(literal.shape().begin(), literal.shape().end()) == buffer.shape;
}

std::string literal_text(const Buffer& buffer) {
  const Literal& literal = buffer.value;
  if (!has_data(literal)) return "";
  // The literal's own type only where it differs from the buffer's.
  std::string text =
      has_type_of(literal, buffer) ? " " : " " + backcast::to_string(literal.type()) + " ";
  if (!is_inline(literal)) return text + fmt::format("#{:016x}", literal.hash());
  text += "{";
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    text += (i > 0 ? ", " : "") + element_text(literal, i);
  }
  return text + "}";
}

std::string buffer_text(const Program& program, const Buffer& buffer) {
  static constexpr std::string_view kClasses[] = {"constant", "state", "input", "output", "arena"};
  std::string text = "buffer %" + name_text(buffer.name) + " : " +
                     std::string(name_of(buffer.element)) + to_string(buffer.shape) + " " +
                     std::string(kClasses[static_cast<size_t>(buffer.kind)]);
  if (buffer.kind == BufferClass::state) text += " " + std::string(enum_name(buffer.role));
  text += literal_text(buffer);
  if (buffer.alignment != 0) text += fmt::format(" align {}", buffer.alignment);
  if (buffer.view_of >= 0) {
    text += " view of %" + name_text(program.buffer(buffer.view_of).name) + " at " +
            buffer.view_offset.to_string();
  }
  if (buffer.offset != -1) text += fmt::format(" offset {}", buffer.offset);
  if (buffer.slice_axis != -1) {
    text += fmt::format(" slice {} at {}", buffer.slice_axis, buffer.slice_start);
  }
  if (!buffer.order.empty()) text += fmt::format(" order [{}]", fmt::join(buffer.order, ","));
  return text + loc_text(buffer.loc) + "\n";
}

std::string dims_text(const std::vector<Dim>& dims) {
  return joined(dims, [](const Dim& d) { return d.to_string(); });
}

/// What an entry point promises or demands besides inputs and outputs.
std::string conditions_text(const Program& program, const EntryPoint& entry) {
  const auto name = [&](BufferId id) { return "%" + name_text(program.buffer(id).name); };
  std::string text;
  for (const auto& [id, range] : entry.ranges) {
    text += fmt::format(" range {} in {}..{}", name(id), range.min, range.max);
    if (range.ignore) text += fmt::format(" ignore {}", *range.ignore);
  }
  for (const BufferId id : entry.optional_outputs) text += " optional " + name(id);
  for (const auto& [id, symbol] : entry.extents) {
    text += fmt::format(" extent {} of {}", name(id), name_text(symbol));
  }
  if (entry.required_count != -1) text += " requires " + name(entry.required_count);
  return text;
}

std::string names_text(const Program& program, const std::vector<BufferId>& ids) {
  return joined(ids, [&](BufferId id) { return "%" + name_text(program.buffer(id).name); });
}

/// What stands before the steps that a loop or a branch holds.
std::string head_text(const Program& program, const Step& step) {
  const auto name = [&](size_t i) { return names_text(program, {step.buffers[i]}); };
  if (step.kind == StepKind::branch) return "branch " + name(0);
  std::string text = "loop " + name_text(step.symbol) + " in " + step.count.to_string();
  if (step.buffers[0] >= 0) text += " trips " + name(0);
  if (step.buffers[1] >= 0) text += " while " + name(1);
  return text + (step.reverse ? " reverse" : "");
}

std::string steps_text(const Program& program, const std::vector<Step>& steps, int indent) {
  std::string text;
  for (const Step& step : steps) {
    text += indentation(indent);
    switch (step.kind) {
      case StepKind::call:
        text += "call @" + name_text(step.kernel) + "(" + names_text(program, step.buffers) + ")";
        break;
      case StepKind::copy:
        text += "copy " + names_text(program, step.buffers);
        break;
      case StepKind::check_finite:
        text += "check_finite " + names_text(program, step.buffers);
        break;
      case StepKind::loop:
      case StepKind::branch:
        text += head_text(program, step) + loc_text(step.loc) + " {\n" +
                steps_text(program, step.body, indent + 2) + indentation(indent) + "}";
        if (step.otherwise.empty()) break;
        text += " else {\n" + steps_text(program, step.otherwise, indent + 2) +
                indentation(indent) + "}";
    }
    if (!step.sizes.empty()) text += " sizes(" + dims_text(step.sizes) + ")";
    if (step.grain != 0) text += fmt::format(" grain {}", step.grain);
    const bool is_nest = step.kind == StepKind::loop || step.kind == StepKind::branch;
    text += (is_nest ? "" : loc_text(step.loc)) + "\n";
  }
  return text;
}

std::string entry_text(const Program& program, const EntryPoint& entry) {
  std::string text = "entry @" + name_text(entry.name) + "(" + names_text(program, entry.inputs) +
                     ") -> (" + names_text(program, entry.outputs) + ")" +
                     conditions_text(program, entry) + " {\n";
  text += steps_text(program, entry.steps, 2);
  return text + "}\n";
}

template <class F>
void for_each_big_literal(const Program& program, F&& f) {
  for (const Buffer& buffer : program.buffers) {
    if (has_data(buffer.value) && !is_inline(buffer.value)) f(buffer.value);
  }
}

void append_u64(std::string& bytes, uint64_t value) {
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace

std::string print(const Stmt& stmt, int indent) {
  return stmt ? indentation(indent) + stmt_text(*stmt, indent) + "\n" : "";
}

std::string print(const Kernel& kernel) {
  std::string text =
      "kernel @" + name_text(kernel.name) + "(" + joined(kernel.buffers, param_text) + ")";
  if (!kernel.sizes.empty()) text += " sizes(" + joined(kernel.sizes, name_text) + ")";
  if (kernel.macs != 0) text += fmt::format(" macs {}", kernel.macs);
  if (kernel.flushes) text += " flushes";
  return text + locs_text(kernel.locs) + " " + braces(kernel.body, 0) + "\n";
}

std::string print_anonymous(Kernel kernel) {
  kernel.name = "k";
  kernel.locs.clear();
  return print(kernel);
}

std::string print(const MathFunction& function) {
  std::string text = "function @" + name_text(function.name) + "(" +
                     joined(function.params,
                            [](const MathFunction::Param& p) {
                              return name_text(p.name) + ": " + p.type.to_string();
                            }) +
                     ") {\n";
  for (const auto& [name, value] : function.lets) {
    text += "  let " + name_text(name) + " = " + print(value) + "\n";
  }
  return text + "  return " + print(function.result) + "\n}\n";
}

std::string print(const Program& program) {
  std::string text = "program @" + name_text(program.name) + "\n";
  for (const auto& [name, range] : program.symbols) {
    text += fmt::format("symbol {} in {}..{}\n", name_text(name), range.min,
                        range.max == INT64_MAX ? "" : std::to_string(range.max));
  }
  if (program.arena_bytes != 0 || program.arena_bound != 0 || program.arena_alignment != 1) {
    text += fmt::format("arena {} bound {} align {}\n", program.arena_bytes, program.arena_bound,
                        program.arena_alignment);
  }
  if (program.state_bytes != 0 || program.state_alignment != 1) {
    text += fmt::format("state {} align {}\n", program.state_bytes, program.state_alignment);
  }
  if (program.batch != 0 || program.accumulate != 0) {
    text += fmt::format("training batch {} accumulate {}\n", program.batch, program.accumulate);
  }
  if (program.model_hash != 0) text += fmt::format("model #{:016x}\n", program.model_hash);
  for (const Buffer& buffer : program.buffers) text += buffer_text(program, buffer);
  for (const auto& [name, function] : program.functions) text += "\n" + print(function);
  for (const auto& [name, kernel] : program.kernels) text += "\n" + print(kernel);
  for (const EntryPoint& entry : program.entries) text += "\n" + entry_text(program, entry);
  return text;
}

std::string print_constants(const Program& program) {
  std::string bytes;
  std::map<uint64_t, Literal> written;
  for_each_big_literal(program, [&](const Literal& literal) {
    const auto [at, is_new] = written.emplace(literal.hash(), literal);
    BC_CHECK(is_new || at->second == literal, "two constants share the hash {:016x}",
             literal.hash());
    if (!is_new) return;
    append_u64(bytes, literal.hash());
    append_u64(bytes, literal.bytes().size());
    bytes.append(reinterpret_cast<const char*>(literal.bytes().data()), literal.bytes().size());
  });
  return bytes;
}

}  // namespace backcast::loop
