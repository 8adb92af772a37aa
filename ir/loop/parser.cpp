// Statements, kernels and math functions of the text form.
#include "ir/loop/parser.h"

namespace backcast::loop {
namespace {

constexpr int kMaxStatementNesting = 200;

Stmt make(StmtNode node) { return Stmt(std::make_shared<const StmtNode>(std::move(node))); }

}  // namespace

size_t KernelParser::one_of(const std::vector<std::string_view>& words) {
  const Token at = in_.peek();
  const std::string word = in_.word();
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return i;
  }
  in_.fail(at, "unexpected \"" + word + "\"");
}

std::vector<Stmt> KernelParser::statements(int nesting) {
  in_.expect("{");
  const size_t mark = scope_.mark();
  std::vector<Stmt> result;
  while (!in_.accept("}")) {
    if (in_.at_end()) in_.fail("expected \"}\"");
    result.push_back(statement(nesting + 1));
  }
  scope_.leave(mark);
  return result;
}

Stmt KernelParser::body(int nesting) {
  std::vector<Stmt> list = statements(nesting);
  if (list.size() == 1) return list[0];
  return make({.kind = StmtKind::block, .body = std::move(list)});
}

Stmt KernelParser::statement(int nesting) {
  if (nesting > kMaxStatementNesting) in_.fail("statements are nested too deeply");
  static const std::vector<std::string_view> kWords = {
      "block", "let",   "for",   "unrolled", "vectorized", "parallel",
      "while", "store", "alloc", "define",   "prefetch",   "if"};
  switch (one_of(kWords)) {
    case 0:
      return make({.kind = StmtKind::block, .body = statements(nesting)});
    case 1:
      return let();
    case 2:
      return for_loop(ForKind::serial, nesting);
    case 3:
      in_.expect("for");
      return for_loop(ForKind::unrolled, nesting);
    case 4:
      in_.expect("for");
      return for_loop(ForKind::vectorized, nesting);
    case 5:
      in_.expect("for");
      return for_loop(ForKind::parallel, nesting);
    case 6: {
      const Expr holds = condition();
      return make({.kind = StmtKind::while_loop, .exprs = {holds}, .body = {body(nesting)}});
    }
    case 7:
      return store();
    case 8:
      return alloc();
    case 9:
      return definition();
    case 10:
      return prefetch();
    default:
      return if_branch(nesting);
  }
}

Expr KernelParser::expect_type(Type type) {
  const Token at = in_.peek();
  Expr e = exprs_.run();
  if (e.type() != type) {
    in_.fail(at, "expected " + type.to_string() + ", found " + e.type().to_string());
  }
  return e;
}

Stmt KernelParser::let() {
  const std::string name = in_.name();
  in_.expect("=");
  const Expr value = exprs_.run();
  scope_.bind(name, value.type());
  return make({.kind = StmtKind::let, .name = name, .type = value.type(), .exprs = {value}});
}

Stmt KernelParser::for_loop(ForKind kind, int nesting) {
  const std::string name = in_.name();
  in_.expect("in");
  const Token at = in_.peek();
  const Expr begin = index();
  in_.expect("..");
  if (!in_.accept("+") && !is_constant(begin, 0)) {
    in_.fail(at, "a loop that begins elsewhere than at 0 gives its extent: begin .. +extent");
  }
  const Expr extent = index();
  const size_t mark = scope_.mark();
  scope_.bind(name, Type{});
  Stmt inner = body(nesting);
  scope_.leave(mark);
  return make({.kind = StmtKind::for_loop,
               .name = name,
               .for_kind = kind,
               .exprs = {begin, extent},
               .body = {inner}});
}

Stmt KernelParser::if_branch(int nesting) {
  const Expr holds = condition();
  std::vector<Stmt> branches = {body(nesting)};
  if (in_.accept("else")) branches.push_back(body(nesting));
  return make({.kind = StmtKind::if_branch, .exprs = {holds}, .body = std::move(branches)});
}

Stmt KernelParser::prefetch() {
  const std::string name = in_.name();
  in_.expect("[");
  const Expr at = expect_type(Type{});
  in_.expect("]");
  const Cache cache = in_.accept("near") ? Cache::first : Cache::second;
  return make({.kind = StmtKind::prefetch, .name = name, .cache = cache, .exprs = {at}});
}

Stmt KernelParser::store() {
  const std::string name = in_.name();
  in_.expect("[");
  const Token at = in_.peek();
  const Expr to = exprs_.run();
  in_.expect("]");
  in_.expect("=");
  const Expr value = exprs_.run();
  const Type type = to.type();
  if (type.scalar != Scalar::index || (type.lanes != 1 && type.lanes != value.type().lanes)) {
    in_.fail(at, "a store of " + value.type().to_string() + " at " + type.to_string());
  }
  return make({.kind = StmtKind::store, .name = name, .exprs = {to, value}});
}

Stmt KernelParser::alloc() {
  const std::string name = in_.name();
  in_.expect(":");
  const Type type = in_.type();
  in_.expect("[");
  const Expr count = index();
  in_.expect("]");
  const Memory memory = one_of({"registers", "stack"}) == 0 ? Memory::registers : Memory::stack;
  return make(
      {.kind = StmtKind::alloc, .name = name, .memory = memory, .type = type, .exprs = {count}});
}

std::vector<Axis> KernelParser::axes() {
  std::vector<Axis> result;
  in_.expect("[");
  if (in_.accept("]")) return result;
  do {
    const std::string name = in_.name();
    in_.expect("in");
    result.push_back({name, index()});
  } while (in_.accept(","));
  in_.expect("]");
  return result;
}

Accumulator KernelParser::accumulator_head() {
  Accumulator acc;
  acc.name = in_.name();
  in_.expect(":");
  acc.type = in_.type();
  scope_.bind(acc.name, acc.type);
  return acc;
}

Stmt KernelParser::definition() {
  Definition d;
  const size_t mark = scope_.mark();
  d.axes = axes();
  for (const Axis& axis : d.axes) scope_.bind(axis.name, Type{});
  if (in_.accept("reduce")) d.reduce_axes = axes();
  for (const Axis& axis : d.reduce_axes) scope_.bind(axis.name, Type{});
  in_.expect("{");
  // A general value may mention every accumulator: their heads are read first.
  const size_t start = in_.position();
  declare_accumulators();
  in_.go_to(start);
  while (!in_.accept("}")) {
    if (in_.at_end()) in_.fail("expected \"}\"");
    if (in_.next_is(":", 1)) {
      d.accumulators.push_back(accumulator());
    } else {
      d.outputs.push_back(output());
    }
  }
  scope_.leave(mark);
  return make(
      {.kind = StmtKind::define, .definition = std::make_shared<const Definition>(std::move(d))});
}

void KernelParser::declare_accumulators() {
  // `name :` followed by a type starts an accumulator; a typed constant has a number before.
  for (; !in_.at_end() && !in_.next_is("}"); in_.take()) {
    const TokenKind kind = in_.peek().kind;
    Type type;
    const bool head = (kind == TokenKind::word || kind == TokenKind::text) && in_.next_is(":", 1) &&
                      in_.next_is("=", 3) && type_from_text(in_.peek(2).spelling, type);
    if (head) accumulator_head();
  }
}

Accumulator KernelParser::accumulator() {
  static const std::vector<std::string_view> kCombines = {"sum",     "prod",   "max",    "min",
                                                          "bit_and", "bit_or", "general"};
  Accumulator acc = accumulator_head();
  in_.expect("=");
  acc.combine = static_cast<Combine>(one_of(kCombines));
  in_.expect("(");
  in_.expect("init");
  acc.init = expect_type(acc.type);
  in_.expect(",");
  acc.value = expect_type(acc.type);
  in_.expect(")");
  return acc;
}

DefinitionOutput KernelParser::output() {
  DefinitionOutput out;
  out.buffer = in_.name();
  in_.expect("[");
  out.indices = exprs_.list("]");
  in_.expect("=");
  out.value = exprs_.run();
  return out;
}

BufferParam KernelParser::param() {
  BufferParam param;
  param.name = in_.name();
  in_.expect(":");
  param.element = in_.scalar();
  param.shape = in_.dimensions("[", "]");
  param.mode = static_cast<AccessMode>(one_of({"read", "write", "update"}));
  if (in_.accept("over")) param.over = names();
  exprs_.buffers()[param.name] = param.element;
  return param;
}

std::vector<std::string> KernelParser::names() {
  std::vector<std::string> result;
  in_.expect("(");
  if (in_.accept(")")) return result;
  do {
    result.push_back(in_.name());
  } while (in_.accept(","));
  in_.expect(")");
  return result;
}

Kernel KernelParser::kernel() {
  Kernel kernel;
  exprs_.buffers().clear();
  in_.expect("@");
  kernel.name = in_.name();
  in_.expect("(");
  if (!in_.accept(")")) {
    do {
      kernel.buffers.push_back(param());
    } while (in_.accept(","));
    in_.expect(")");
  }
  if (in_.accept("sizes")) kernel.sizes = names();
  if (in_.accept("macs")) kernel.macs = in_.integer();
  kernel.flushes = in_.accept("flushes");
  while (in_.accept("loc")) kernel.locs.push_back(in_.loc());
  const size_t mark = scope_.mark();
  for (const std::string& size : kernel.sizes) scope_.bind(size, Type{});
  kernel.body = body(0);
  scope_.leave(mark);
  return kernel;
}

MathFunction KernelParser::function() {
  MathFunction function;
  in_.expect("@");
  function.name = in_.name();
  const size_t mark = scope_.mark();
  in_.expect("(");
  if (!in_.accept(")")) {
    do {
      const std::string name = in_.name();
      in_.expect(":");
      function.params.push_back({name, in_.type()});
      scope_.bind(name, function.params.back().type);
    } while (in_.accept(","));
    in_.expect(")");
  }
  in_.expect("{");
  while (in_.accept("let")) {
    const std::string name = in_.name();
    in_.expect("=");
    function.lets.emplace_back(name, exprs_.run());
    scope_.bind(name, function.lets.back().second.type());
  }
  in_.expect("return");
  function.result = exprs_.run();
  in_.expect("}");
  scope_.leave(mark);
  return function;
}

Kernel parse_kernel(std::string_view text) {
  TokenReader in(text);
  in.expect("kernel");
  Kernel kernel = KernelParser(in).kernel();
  if (!in.at_end()) in.fail("expected the end of the text");
  return kernel;
}

std::map<std::string, MathFunction> parse_functions(std::string_view text) {
  TokenReader in(text);
  KernelParser parser(in);
  std::map<std::string, MathFunction> functions;
  while (!in.at_end()) {
    in.expect("function");
    const Token at = in.peek();
    MathFunction function = parser.function();
    const std::string name = function.name;
    if (!functions.emplace(name, std::move(function)).second) {
      in.fail(at, "a second function " + name);
    }
  }
  return functions;
}

}  // namespace backcast::loop
