// Generic traversal of loop IR.
#include "ir/loop/visit.h"

#include <unordered_map>

#include "ir/loop/integer_fold.h"

namespace backcast::loop {
namespace {

using ExprFunction = std::function<Expr(const Expr&)>;

/// Rebuilds bottom-up; a shared subtree is rebuilt once.
class ExprRewriter {
 public:
  explicit ExprRewriter(const ExprFunction& f) : f_(f) {}

  Expr operator()(const Expr& e) {
    if (e->args.empty()) return f_(e);
    const auto [found, fresh] = done_.try_emplace(e.get());
    if (!fresh) return found->second;
    std::vector<Expr> args;
    args.reserve(e->args.size());
    bool changed = false;
    for (const Expr& arg : e->args) {
      args.push_back((*this)(arg));
      changed |= args.back().get() != arg.get();
    }
    const Expr result = f_(changed ? with_args(e, std::move(args)) : e);
    done_[e.get()] = result;
    return result;
  }

 private:
  const ExprFunction& f_;
  std::unordered_map<const ExprNode*, Expr> done_;
};

void apply(const ExprFunction& f, Expr& e) {
  if (e) e = f(e);
}

Definition map_exprs(Definition d, const ExprFunction& f) {
  for (Axis& axis : d.axes) apply(f, axis.extent);
  for (Axis& axis : d.reduce_axes) apply(f, axis.extent);
  for (Accumulator& acc : d.accumulators) {
    apply(f, acc.init);
    apply(f, acc.value);
  }
  for (DefinitionOutput& out : d.outputs) {
    for (Expr& index : out.indices) apply(f, index);
    apply(f, out.value);
  }
  return d;
}

bool same(const Definition& a, const Definition& b) {
  bool result = true;
  const auto check = [&](const Expr& x, const Expr& y) { result &= x.get() == y.get(); };
  for (size_t i = 0; i < a.axes.size(); ++i) check(a.axes[i].extent, b.axes[i].extent);
  for (size_t i = 0; i < a.reduce_axes.size(); ++i) {
    check(a.reduce_axes[i].extent, b.reduce_axes[i].extent);
  }
  for (size_t i = 0; i < a.accumulators.size(); ++i) {
    check(a.accumulators[i].init, b.accumulators[i].init);
    check(a.accumulators[i].value, b.accumulators[i].value);
  }
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    check(a.outputs[i].value, b.outputs[i].value);
    for (size_t k = 0; k < a.outputs[i].indices.size(); ++k) {
      check(a.outputs[i].indices[k], b.outputs[i].indices[k]);
    }
  }
  return result;
}

/// A statement with other expressions and children. A block is flattened anew, an empty child goes.
Stmt with_parts(const Stmt& s, std::vector<Expr> exprs, std::vector<Stmt> body) {
  if (s->kind == StmtKind::block) return block(std::move(body));
  StmtNode node = *s;
  node.exprs = std::move(exprs);
  if (s->kind == StmtKind::let) node.type = node.exprs[0].type();
  node.body = std::move(body);
  if (!node.body.empty() && !node.body[0]) node.body[0] = block({});
  if (node.body.size() == 2 && !node.body[1]) node.body.pop_back();
  return Stmt(std::make_shared<const StmtNode>(std::move(node)));
}

}  // namespace

Expr rewrite(const Expr& expr, const ExprFunction& f) {
  if (!expr) return expr;
  return ExprRewriter(f)(expr);
}

Stmt rewrite(const Stmt& stmt, const ExprFunction& on_expr,
             const std::function<Stmt(const Stmt&)>& on_stmt) {
  if (!stmt) return stmt;
  std::vector<Expr> exprs = stmt->exprs;
  std::vector<Stmt> body = stmt->body;
  bool changed = false;
  if (on_expr) {
    for (size_t i = 0; i < exprs.size(); ++i) {
      apply(on_expr, exprs[i]);
      changed |= exprs[i].get() != stmt->exprs[i].get();
    }
  }
  for (size_t i = 0; i < body.size(); ++i) {
    body[i] = rewrite(body[i], on_expr, on_stmt);
    changed |= body[i].get() != stmt->body[i].get();
  }
  Stmt result = changed ? with_parts(stmt, std::move(exprs), std::move(body)) : stmt;
  if (result->kind == StmtKind::define && on_expr) {
    Definition mapped = map_exprs(*stmt->definition, on_expr);
    if (!same(mapped, *stmt->definition)) result = define(std::move(mapped));
  }
  return on_stmt ? on_stmt(result) : result;
}

void visit(const Expr& expr, const std::function<void(const Expr&)>& f) {
  if (!expr) return;
  f(expr);
  for (const Expr& arg : expr->args) visit(arg, f);
}

void visit(const Stmt& stmt, const std::function<void(const Stmt&)>& on_stmt,
           const std::function<void(const Expr&)>& on_expr_node) {
  if (!stmt) return;
  if (on_stmt) on_stmt(stmt);
  if (on_expr_node) {
    for (const Expr& e : stmt->exprs) visit(e, on_expr_node);
    if (stmt->definition) {
      map_exprs(*stmt->definition, [&](const Expr& e) {
        visit(e, on_expr_node);
        return e;
      });
    }
  }
  for (const Stmt& s : stmt->body) visit(s, on_stmt, on_expr_node);
}

Expr substitute(const Expr& expr, const std::map<std::string, Expr>& replacement) {
  if (replacement.empty()) return expr;
  return rewrite(expr, [&](const Expr& e) {
    if (e->kind != ExprKind::var) return e;
    const auto found = replacement.find(e->name);
    return found == replacement.end() ? e : found->second;
  });
}

Stmt substitute(const Stmt& stmt, const std::map<std::string, Expr>& replacement) {
  if (replacement.empty()) return stmt;
  return rewrite(stmt, [&](const Expr& e) { return substitute(e, replacement); }, {});
}

Stmt rename_buffers(const Stmt& stmt, const std::map<std::string, std::string>& names) {
  const auto renamed = [&](const std::string& name) {
    const auto found = names.find(name);
    return found == names.end() ? name : found->second;
  };
  const ExprFunction on_node = [&](const Expr& e) {
    const bool reads = e->kind == ExprKind::load || e->kind == ExprKind::access;
    if (!reads || !names.contains(e->name)) return e;
    ExprNode node = *e;
    node.name = renamed(e->name);
    return Expr(std::make_shared<const ExprNode>(std::move(node)));
  };
  const auto on_stmt = [&](const Stmt& s) {
    StmtNode node = *s;
    if (s->kind == StmtKind::define) {
      Definition definition = *s->definition;
      for (DefinitionOutput& out : definition.outputs) out.buffer = renamed(out.buffer);
      return define(std::move(definition));
    }
    const bool names_buffer =
        s->kind == StmtKind::store || s->kind == StmtKind::alloc || s->kind == StmtKind::prefetch;
    if (!names_buffer || !names.contains(s->name)) return s;
    node.name = renamed(s->name);
    return Stmt(std::make_shared<const StmtNode>(std::move(node)));
  };
  return rewrite(
      stmt, [&](const Expr& e) { return rewrite(e, on_node); }, on_stmt);
}

}  // namespace backcast::loop
