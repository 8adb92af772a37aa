// Statements of kernels, and whole functions (kernel_writer.h).
#include "backend/c/kernel_writer.h"

#include <algorithm>
#include <unordered_set>

#include "backend/library/header.h"
#include "ir/graph/error.h"
#include "ir/loop/byte_tables.h"
#include "ir/loop/visit.h"

namespace backcast::c_backend {

using loop::Expr;
using loop::ExprKind;
using loop::ExprNode;
using loop::ForKind;
using loop::Kernel;
using loop::Memory;
using loop::Scalar;
using loop::Stmt;
using loop::StmtKind;
using loop::StmtNode;
using loop::Type;

namespace {

bool has_names(const Stmt& stmt) {
  return std::any_of(stmt->body.begin(), stmt->body.end(), [](const Stmt& part) {
    return part->kind == StmtKind::let || part->kind == StmtKind::alloc;
  });
}

/// Unrolled loops as their iterations, so that indices of register allocations become constants.
Stmt unroll(const Stmt& stmt) {
  const StmtNode& node = *stmt;
  if (node.body.empty()) return stmt;
  StmtNode result = node;
  result.body.clear();
  for (const Stmt& part : node.body) {
    const Stmt inner = part ? unroll(part) : part;
    const bool splice =
        node.kind == StmtKind::block && inner->kind == StmtKind::block && !has_names(inner);
    if (splice) {
      result.body.insert(result.body.end(), inner->body.begin(), inner->body.end());
    } else {
      result.body.push_back(inner);
    }
  }
  int64_t begin = 0, extent = 0;
  const bool is_unrolled = node.kind == StmtKind::for_loop && node.for_kind == ForKind::unrolled &&
                           loop::as_constant(node.exprs[0], begin) &&
                           loop::as_constant(node.exprs[1], extent);
  if (!is_unrolled) return Stmt(std::make_shared<const StmtNode>(std::move(result)));
  StmtNode sequence;
  sequence.kind = StmtKind::block;
  for (int64_t i = 0; i < extent; ++i) {
    const Stmt iteration =
        loop::substitute(result.body[0], {{node.name, loop::index_constant(begin + i)}});
    if (iteration->kind == StmtKind::block && !has_names(iteration)) {
      sequence.body.insert(sequence.body.end(), iteration->body.begin(), iteration->body.end());
    } else {
      sequence.body.push_back(iteration);
    }
  }
  return Stmt(std::make_shared<const StmtNode>(std::move(sequence)));
}

/// What a kernel's statements mention.
struct Mentions {
  std::set<std::string> variables;  // read
  std::set<std::string> loaded, stored;
  std::set<std::string> arrays;  // allocations with an index that is no constant or of mixed lanes
  std::map<std::string, std::set<int64_t>> elements;  // constant indices of allocations
  std::map<std::string, Type> allocations;
  // What is bound to a variable: several values once loops are unrolled.
  std::map<std::string, std::vector<Expr>> lets;
  std::vector<std::string> found;  // variables whose values are not added yet

  bool waits_for_reads = false;  // of variables, before what a `let` computes counts

  Mentions() = default;
  /// All of a body, without what is computed for nothing.
  explicit Mentions(const Stmt& body) : waits_for_reads(true) {
    add(body);
    while (!found.empty()) {
      const auto let = lets.find(found.back());
      found.pop_back();
      if (let == lets.end()) continue;
      for (const Expr& value : let->second) add(value);
    }
  }

  void touch(const std::string& buffer, const Expr& index, Type value) {
    const auto allocation = allocations.find(buffer);
    if (allocation == allocations.end()) return;
    int64_t element = -1;
    if (value.lanes != allocation->second.lanes || !loop::as_constant(index, element)) {
      arrays.insert(buffer);
    } else {
      elements[buffer].insert(element);
    }
  }

  void add(const Expr& root) {
    std::unordered_set<const ExprNode*> seen;
    std::vector<const Expr*> pending = {&root};
    while (!pending.empty()) {
      const Expr& e = *pending.back();
      pending.pop_back();
      if (!seen.insert(e.get()).second) continue;
      if (e->kind == ExprKind::var && variables.insert(e->name).second) found.push_back(e->name);
      if (e->kind == ExprKind::load) {
        loaded.insert(e->name);
        touch(e->name, e->args[0], e.type());
      }
      for (const Expr& arg : e->args) pending.push_back(&arg);
    }
  }

  void add(const Stmt& stmt) {
    const StmtNode& node = *stmt;
    BC_CHECK(node.kind != StmtKind::define, "a definition must be lowered before code is emitted");
    if (node.kind == StmtKind::alloc) allocations[node.name] = node.type;
    if (node.kind == StmtKind::let && waits_for_reads) {
      lets[node.name].push_back(node.exprs[0]);
      return;
    }
    for (const Expr& e : node.exprs) add(e);
    if (node.kind == StmtKind::store) {
      stored.insert(node.name);
      touch(node.name, node.exprs[0], node.exprs[1].type());
    }
    for (const Stmt& part : node.body) {
      if (part) add(part);
    }
  }

  bool mentions(const std::string& buffer) const {
    return loaded.contains(buffer) || stored.contains(buffer);
  }
};

class KernelWriter {
 public:
  KernelWriter(Prelude& prelude, const std::map<std::string, loop::MathFunction>& functions,
               const Stmt& body)
      : writer_(prelude, functions), body_(body), mentions_(body) {}

  FunctionWriter& writer() { return writer_; }
  const Mentions& mentions() const { return mentions_; }
  int64_t stack_bytes() const { return stack_bytes_; }
  void write() { statement(body_); }

 private:
  void statement(const Stmt& stmt);
  void block(const StmtNode& node);
  void for_loop(const StmtNode& node);
  void while_loop(const StmtNode& node);
  void branch(const StmtNode& node);
  void let(const StmtNode& node);
  void alloc(const StmtNode& node, const std::vector<Stmt>& siblings, size_t position);
  bool initialise(const StmtNode& node);

  FunctionWriter writer_;
  Stmt body_;
  Mentions mentions_;
  std::set<std::pair<std::string, int64_t>>
      undeclared_;  // variables that their first store declares
  int64_t stack_bytes_ = 0;
};

void KernelWriter::block(const StmtNode& node) {
  for (size_t i = 0; i < node.body.size(); ++i) {
    const Stmt& part = node.body[i];
    if (part->kind == StmtKind::alloc) {
      alloc(*part, node.body, i);
    } else if (part->kind == StmtKind::block && has_names(part)) {
      writer_.line("{");
      writer_.indent_more();
      block(*part);
      writer_.close();
    } else {
      statement(part);
    }
  }
}

void KernelWriter::statement(const Stmt& stmt) {
  const StmtNode& node = *stmt;
  switch (node.kind) {
    case StmtKind::block:
      return block(node);
    case StmtKind::let:
      return let(node);
    case StmtKind::for_loop:
      return for_loop(node);
    case StmtKind::while_loop:
      return while_loop(node);
    case StmtKind::if_branch:
      return branch(node);
    case StmtKind::store:
      writer_.begin_statement(node.exprs);
      if (!initialise(node)) writer_.store(node.name, node.exprs[0], node.exprs[1]);
      return;
    case StmtKind::alloc:
      return alloc(node, {stmt}, 0);
    case StmtKind::prefetch:
      writer_.begin_statement(node.exprs);
      return writer_.prefetch(node.name, node.exprs[0], node.cache);
    case StmtKind::define:
      break;
  }
  BC_CHECK(false, "a definition must be lowered before code is emitted");
}

void KernelWriter::let(const StmtNode& node) {
  if (!mentions_.variables.contains(node.name)) return;
  writer_.begin_statement(node.exprs);
  const Text value = writer_.expr(node.exprs[0]);
  writer_.bind(node.name, value.mask_bits);
  writer_.line(fmt::format("const {} {} = {};",
                           writer_.prelude().type(node.exprs[0].type(), value.mask_bits),
                           writer_.local(node.name), value.text));
}

/// No memory is read and little is computed: may stand in a loop's condition.
bool is_cheap(const Expr& e) {
  switch (e->kind) {
    case ExprKind::constant:
    case ExprKind::var:
      return true;
    case ExprKind::binary:
      return (e->op == loop::Op::add || e->op == loop::Op::sub || e->op == loop::Op::mul) &&
             is_cheap(e->args[0]) && e->args[1]->kind == ExprKind::constant;
    default:
      return false;
  }
}

void KernelWriter::for_loop(const StmtNode& node) {
  const Expr begin = node.exprs[0], end = begin + node.exprs[1];
  writer_.begin_statement({begin, end});
  Text last = writer_.expr(end);
  if (!is_cheap(end)) last = writer_.temporary({}, last);
  const std::string name = writer_.local(node.name);
  writer_.open(fmt::format("for (index_t {0} = {1}; {0} < {2}; ++{0})", name,
                           writer_.expr(begin).text, last.at(kSum)));
  statement(node.body[0]);
  writer_.close();
}

void KernelWriter::while_loop(const StmtNode& node) {
  std::string before = writer_.take_text();
  writer_.begin_statement(node.exprs);
  writer_.indent_more();
  const Text condition = writer_.expr(node.exprs[0]);
  const std::string lines = writer_.take_text();
  writer_.indent_less();
  writer_.put_text(std::move(before));
  if (lines.empty()) {
    writer_.open(fmt::format("while ({})", condition.text));
  } else {
    writer_.open("for (;;)");
    writer_.put_text(writer_.take_text() + lines);
    writer_.line(fmt::format("if (!{}) break;", condition.at(kPostfix)));
  }
  statement(node.body[0]);
  writer_.close();
}

void KernelWriter::branch(const StmtNode& node) {
  writer_.begin_statement(node.exprs);
  writer_.open(fmt::format("if ({})", writer_.expr(node.exprs[0]).text));
  statement(node.body[0]);
  if (node.body.size() > 1 && node.body[1]) {
    writer_.close("} else {");
    writer_.indent_more();
    statement(node.body[1]);
  }
  writer_.close();
}

/// A store that is the first mention of its variable declares it.
bool KernelWriter::initialise(const StmtNode& node) {
  int64_t element = -1;
  if (undeclared_.empty() || !loop::as_constant(node.exprs[0], element)) return false;
  if (undeclared_.erase({node.name, element}) == 0) return false;
  const Type type = node.exprs[1].type();
  Text value = writer_.expr(node.exprs[1]);
  if (type.scalar == Scalar::boolean && type.is_vector()) {
    value = convert_mask(writer_.prelude(), value, type.lanes, Prelude::kMaskBits);
  }
  writer_.line(fmt::format("{} {}_{} = {};", writer_.prelude().type(type),
                           writer_.place(node.name).name, element, value.text));
  return true;
}

void KernelWriter::alloc(const StmtNode& node, const std::vector<Stmt>& siblings, size_t position) {
  if (!mentions_.loaded.contains(node.name) && !mentions_.stored.contains(node.name)) return;
  Prelude& prelude = writer_.prelude();
  int64_t count = 0;
  BC_CHECK(loop::as_constant(node.exprs[0], count), "allocation {} has no constant size",
           node.name);
  const std::string name = writer_.local_place(node.name);
  const bool variables = node.memory == Memory::registers && !mentions_.arrays.contains(node.name);
  writer_.add_place(node.name, {name, node.type, variables});
  const std::string unused = mentions_.loaded.contains(node.name) ? "" : " __attribute__((unused))";
  if (!variables) {
    stack_bytes_ += count * node.type.lanes * prelude.bits(node.type.scalar) / 8;
    // Like the arena's buffers: vectors do not straddle lines.
    const int vector_bits = prelude.target().vector_bits;
    const std::string aligned =
        vector_bits > 0 ? fmt::format(" __attribute__((aligned({})))", vector_bits / 8) : "";
    writer_.line(fmt::format("{} {}[{}]{}{};", prelude.memory_type(node.type), name, count, aligned,
                             unused));
    return;
  }
  std::set<int64_t> declared_later;
  const std::set<int64_t>& used = mentions_.elements[node.name];
  for (size_t i = position + 1; i < siblings.size() && declared_later.size() < used.size(); ++i) {
    Mentions here;
    here.add(siblings[i]);
    if (!here.mentions(node.name)) continue;
    int64_t element = -1;
    const bool is_first_store =
        unused.empty() && siblings[i]->kind == StmtKind::store && siblings[i]->name == node.name &&
        !here.loaded.contains(node.name) && loop::as_constant(siblings[i]->exprs[0], element) &&
        !declared_later.contains(element);
    if (!is_first_store) break;
    declared_later.insert(element);
    undeclared_.insert({node.name, element});
  }
  const std::string type = prelude.type(node.type);
  for (const int64_t element : used) {
    BC_CHECK(element >= 0 && element < count, "element {} of {}[{}]", element, node.name, count);
    if (declared_later.contains(element)) continue;
    const char* zero = node.type.is_vector() ? "{0}" : "0";
    writer_.line(fmt::format("{} {}_{}{} = {};", type, name, element, unused, zero));
  }
}

std::string parameter_list(KernelWriter& kernel_writer, const Kernel& kernel,
                           const KernelUse& use) {
  FunctionWriter& writer = kernel_writer.writer();
  Prelude& prelude = writer.prelude();
  std::string list;
  for (const loop::BufferParam& buffer : kernel.buffers) {
    const Type element = {buffer.element, 1};
    std::string type = prelude.memory_type(element);
    if (use.overlaid.contains(buffer.name)) {
      const std::string alias = "aliasing_" + prelude.tag(element);
      prelude.helper(alias, [&] {
        return fmt::format("typedef BC_ALIASING({}) {};\n", type, alias);
      });
      type = alias;
    }
    const std::string name = writer.local_place(buffer.name);
    writer.add_place(buffer.name, {name, element, false, loop::is_byte_table(buffer)});
    list += fmt::format("{}{}{} *{}{}", list.empty() ? "" : ", ",
                        buffer.mode == loop::AccessMode::read ? "const " : "", type,
                        use.restricted.contains(buffer.name) ? "restrict " : "", name);
  }
  for (const std::string& size : kernel.sizes) {
    list += fmt::format("{}index_t {}", list.empty() ? "" : ", ", writer.local(size));
  }
  return list.empty() ? "void" : list;
}

std::string kernel_comment(const Kernel& kernel) {
  std::string nodes;
  for (const Loc& loc : kernel.locs) {
    if (loc.empty()) continue;
    if (!nodes.empty()) nodes += ", ";
    nodes += loc.node;
    if (!loc.op_type.empty()) nodes += fmt::format(" ({})", loc.op_type);
    if (loc.origin == Origin::adjoint_of) nodes += " adjoint";
  }
  if (nodes.empty()) nodes = kernel.name;
  if (kernel.macs > 0) nodes += fmt::format(": {} multiply-accumulates", kernel.macs);
  return comment_text(nodes);
}

}  // namespace

KernelText kernel_text(Prelude& prelude, const Kernel& kernel, const std::string& function,
                       const KernelUse& use,
                       const std::map<std::string, loop::MathFunction>& functions) {
  KernelWriter writer(prelude, functions, unroll(kernel.body));
  const std::string parameters = parameter_list(writer, kernel, use);
  for (const loop::BufferParam& buffer : kernel.buffers) {
    if (!writer.mentions().mentions(buffer.name)) {
      writer.writer().line(fmt::format("(void){};", writer.writer().local_place(buffer.name)));
    }
  }
  for (const std::string& size : kernel.sizes) {
    if (!writer.mentions().variables.contains(size)) {
      writer.writer().line(fmt::format("(void){};", writer.writer().local(size)));
    }
  }
  if (kernel.flushes) {
    writer.writer().line("const unsigned control = __builtin_ia32_stmxcsr();");
    writer.writer().line(
        fmt::format("__builtin_ia32_ldmxcsr(control | {:#x}u);", kFlushSubnormals));
  }
  writer.write();
  if (kernel.flushes) writer.writer().line("__builtin_ia32_ldmxcsr(control);");
  KernelText result;
  result.function = function;
  result.stack_bytes = writer.stack_bytes();
  result.called = writer.writer().called();
  result.definition = fmt::format("/* {} */\n{} void {}({}) {{\n{}}}\n", kernel_comment(kernel),
                                  kernel.macs > 0 ? "BC_TILE_KERNEL" : "BC_KERNEL", function,
                                  parameters, writer.writer().take_text());
  return result;
}

std::string math_name(const std::string& function) { return sanitize("math_" + function); }

KernelText math_text(Prelude& prelude, const loop::MathFunction& function,
                     const std::map<std::string, loop::MathFunction>& functions) {
  FunctionWriter writer(prelude, functions);
  std::string parameters;
  for (const loop::MathFunction::Param& param : function.params) {
    parameters += fmt::format("{}{} {}", parameters.empty() ? "" : ", ", prelude.type(param.type),
                              writer.local(param.name));
  }
  for (const auto& [name, value] : function.lets) {
    writer.begin_statement({value});
    const Text text = writer.expr(value);
    writer.bind(name, text.mask_bits);
    writer.line(fmt::format("const {} {} = {};", prelude.type(value.type(), text.mask_bits),
                            writer.local(name), text.text));
  }
  writer.begin_statement({function.result});
  const Type type = function.result.type();
  Text result = writer.expr(function.result);
  if (type.scalar == Scalar::boolean && type.is_vector()) {
    result = convert_mask(prelude, result, type.lanes, Prelude::kMaskBits);
  }
  writer.line(fmt::format("return {};", result.text));
  KernelText text;
  text.function = math_name(function.name);
  text.called = writer.called();
  text.definition = fmt::format("static inline {} {}({}) {{\n{}}}\n", prelude.type(type),
                                text.function, parameters, writer.take_text());
  return text;
}

}  // namespace backcast::c_backend
