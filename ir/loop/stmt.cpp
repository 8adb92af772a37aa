// Construction of statements, and dimensions as index expressions.
#include "ir/loop/stmt.h"

#include "ir/graph/error.h"

namespace backcast::loop {
namespace {

Stmt make(StmtNode node) { return Stmt(std::make_shared<const StmtNode>(std::move(node))); }

bool binds_name(const Stmt& s) { return s->kind == StmtKind::let || s->kind == StmtKind::alloc; }

bool has_own_names(const StmtNode& block) {
  for (const Stmt& s : block.body) {
    if (binds_name(s)) return true;
  }
  return false;
}

Stmt or_empty(Stmt s) { return s ? s : block({}); }

}  // namespace

Stmt block(std::vector<Stmt> statements) {
  std::vector<Stmt> flat;
  for (size_t i = 0; i < statements.size(); ++i) {
    Stmt& s = statements[i];
    if (!s) continue;
    // The last block of a block ends with it, so its names may be the outer block's.
    const bool nested =
        s->kind == StmtKind::block && (!has_own_names(*s) || i + 1 == statements.size());
    if (nested) {
      flat.insert(flat.end(), s->body.begin(), s->body.end());
    } else {
      flat.push_back(std::move(s));
    }
  }
  if (flat.size() == 1) return flat[0];
  return make({.kind = StmtKind::block, .body = std::move(flat)});
}

Stmt let(const std::string& name, Expr value) {
  const Type type = value.type();
  return make({.kind = StmtKind::let, .name = name, .type = type, .exprs = {std::move(value)}});
}

Stmt for_loop(const std::string& variable, Expr begin, Expr extent, Stmt body, ForKind kind) {
  BC_CHECK(begin.type() == Type{} && extent.type() == Type{}, "loop {} over {} and {}", variable,
           begin.type().to_string(), extent.type().to_string());
  return make({.kind = StmtKind::for_loop,
               .name = variable,
               .for_kind = kind,
               .exprs = {std::move(begin), std::move(extent)},
               .body = {or_empty(std::move(body))}});
}

Stmt while_loop(Expr condition, Stmt body) {
  BC_CHECK(condition.type() == Type{Scalar::boolean}, "while over {}",
           condition.type().to_string());
  return make({.kind = StmtKind::while_loop,
               .exprs = {std::move(condition)},
               .body = {or_empty(std::move(body))}});
}

Stmt if_branch(Expr condition, Stmt then_body, Stmt else_body) {
  BC_CHECK(condition.type() == Type{Scalar::boolean}, "if over {}", condition.type().to_string());
  std::vector<Stmt> body = {or_empty(std::move(then_body))};
  if (else_body) body.push_back(std::move(else_body));
  return make(
      {.kind = StmtKind::if_branch, .exprs = {std::move(condition)}, .body = std::move(body)});
}

Stmt store(const std::string& buffer, Expr index, Expr value) {
  const Type at = index.type();
  BC_CHECK(at.scalar == Scalar::index && (at.lanes == 1 || at.lanes == value.type().lanes),
           "store to {} of {} at {}", buffer, value.type().to_string(), at.to_string());
  return make(
      {.kind = StmtKind::store, .name = buffer, .exprs = {std::move(index), std::move(value)}});
}

Stmt prefetch(const std::string& buffer, Expr index, Cache cache) {
  BC_CHECK(index.type() == Type{}, "prefetch of {} at {}", buffer, index.type().to_string());
  return make(
      {.kind = StmtKind::prefetch, .name = buffer, .cache = cache, .exprs = {std::move(index)}});
}

Stmt alloc(const std::string& name, Type element, Expr count, Memory memory) {
  return make({.kind = StmtKind::alloc,
               .name = name,
               .memory = memory,
               .type = element,
               .exprs = {std::move(count)}});
}

Stmt define(Definition definition) {
  return make({.kind = StmtKind::define,
               .definition = std::make_shared<const Definition>(std::move(definition))});
}

const BufferParam* Kernel::find(const std::string& buffer) const {
  for (const BufferParam& param : buffers) {
    if (param.name == buffer) return &param;
  }
  return nullptr;
}

namespace {

Expr atom_expr(const Dim::Atom& atom) {
  switch (atom.kind) {
    case Dim::Atom::Kind::symbol:
      return var(atom.name);
    case Dim::Atom::Kind::floor_div:
      return floor_div(expr_of(atom.a), expr_of(atom.b));
    case Dim::Atom::Kind::mod:
      return floor_mod(expr_of(atom.a), expr_of(atom.b));
    case Dim::Atom::Kind::min:
      return min(expr_of(atom.a), expr_of(atom.b));
    case Dim::Atom::Kind::max:
      return max(expr_of(atom.a), expr_of(atom.b));
  }
  return {};
}

}  // namespace

Expr expr_of(const Dim& dim) {
  Expr sum = 0;
  for (const Dim::Term& term : dim.terms()) {
    Expr product = 1;
    for (const Dim::AtomPtr& atom : term.atoms) product = product * atom_expr(*atom);
    sum = sum + product * Expr(term.coefficient);
  }
  return sum + Expr(dim.constant_term());
}

Expr flat_index(const Dims& shape, const std::vector<Expr>& indices) {
  BC_CHECK(shape.size() == indices.size(), "{} indices for {} dimensions", indices.size(),
           shape.size());
  std::vector<Dim> strides(shape.size());
  Dim stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride = stride * shape[d];
  }
  Expr sum = 0;
  for (size_t d = 0; d < shape.size(); ++d) sum = sum + indices[d] * expr_of(strides[d]);
  return sum;
}

const Definition* only_definition(const Kernel& kernel) {
  const StmtNode* body = kernel.body.get();
  while (body->kind == StmtKind::block && body->body.size() == 1) body = body->body[0].get();
  return body->kind == StmtKind::define ? body->definition.get() : nullptr;
}

}  // namespace backcast::loop
