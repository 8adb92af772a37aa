// simplify(): walks statements, keeping what is known of the enclosing loops and conditions.
#include <algorithm>

#include "ir/loop/simplifier.h"
#include "ir/loop/visit.h"

namespace backcast::loop {
namespace {

/// An empty handle means that nothing is left.
class StmtSimplifier {
 public:
  explicit StmtSimplifier(const SymbolRanges& sizes) {
    for (const auto& [name, range] : sizes) knowledge().bind(name, {range.min, range.max});
  }

  Stmt run(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::block:
        return run_block(*s);
      case StmtKind::let:
        return let(s->name, expr(s->exprs[0]));
      case StmtKind::for_loop:
        return run_loop(*s);
      case StmtKind::while_loop:
        return run_while(*s);
      case StmtKind::if_branch:
        return run_if(*s);
      case StmtKind::store:
        return run_store(*s);
      case StmtKind::alloc:
        return alloc(s->name, s->type, expr(s->exprs[0]), s->memory);
      case StmtKind::prefetch:
        return prefetch(s->name, expr(s->exprs[0]), s->cache);
      case StmtKind::define:
        return run_definition(*s->definition);
    }
    return s;
  }

 private:
  Knowledge& knowledge() { return simplifier_.knowledge(); }

  Expr expr(const Expr& e) {
    if (!e) return e;
    return simplifier_.run(replaced_.empty() ? e : substitute(e, replaced_));
  }

  void forget(const std::string& name, size_t facts) {
    if (!name.empty()) knowledge().unbind(name);
    knowledge().forget_to(facts);
    simplifier_.changed();
  }

  Stmt run_block(const StmtNode& s) {
    std::vector<Stmt> statements;
    std::vector<std::string> bound;
    std::vector<std::string> replaced;
    for (const Stmt& child : s.body) {
      if (child->kind != StmtKind::let) {
        if (Stmt result = run(child)) statements.push_back(std::move(result));
        continue;
      }
      const Expr value = expr(child->exprs[0]);
      if (value->kind == ExprKind::constant || value->kind == ExprKind::var) {
        replaced_[child->name] = value;
        replaced.push_back(child->name);
        continue;
      }
      if (value.type() == Type{}) {
        knowledge().bind_equal(child->name, value);
        simplifier_.changed();
        bound.push_back(child->name);
      }
      statements.push_back(let(child->name, value));
    }
    for (const std::string& name : replaced) replaced_.erase(name);
    for (const std::string& name : bound) forget(name, knowledge().assumptions());
    return statements.empty() ? Stmt() : block(std::move(statements));
  }

  Stmt run_loop(const StmtNode& s) {
    const Expr begin = expr(s.exprs[0]);
    const Expr extent = expr(s.exprs[1]);
    if (knowledge().range(extent).max <= 0) return {};
    if (is_constant(extent, 1)) {
      const bool simple = begin->kind == ExprKind::constant || begin->kind == ExprKind::var;
      if (!simple) return run_block({.body = {let(s.name, begin), s.body[0]}});
      replaced_[s.name] = begin;
      Stmt body = run(s.body[0]);
      replaced_.erase(s.name);
      return body;
    }
    const size_t facts = knowledge().assumptions();
    knowledge().bind_loop(s.name, begin, extent);
    simplifier_.changed();
    Stmt body = run(s.body[0]);
    forget(s.name, facts);
    return body ? for_loop(s.name, begin, extent, std::move(body), s.for_kind) : body;
  }

  Stmt run_while(const StmtNode& s) {
    const Expr condition = expr(s.exprs[0]);
    if (is_constant(condition, 0)) return {};
    return while_loop(condition, run(s.body[0]));
  }

  Stmt run_if(const StmtNode& s) {
    const Expr condition = expr(s.exprs[0]);
    int64_t decided = 0;
    if (as_constant(condition, decided)) {
      const size_t branch = decided != 0 ? 0 : 1;
      return branch < s.body.size() ? run(s.body[branch]) : Stmt();
    }
    std::vector<Stmt> branches(2);
    for (size_t i = 0; i < s.body.size(); ++i) {
      const size_t facts = knowledge().assume(condition, i == 0);
      simplifier_.changed();
      branches[i] = run(s.body[i]);
      forget("", facts);
    }
    if (!branches[0] && !branches[1]) return {};
    return if_branch(condition, branches[0], branches[1]);
  }

  Stmt run_store(const StmtNode& s) {
    Expr index = expr(s.exprs[0]);
    // A scatter to neighbours is a contiguous store.
    const bool contiguous = index->kind == ExprKind::ramp && is_constant(index->args[1], 1);
    return store(s.name, contiguous ? index->args[0] : index, expr(s.exprs[1]));
  }

  void bind_axes(std::vector<Axis>& axes) {
    for (Axis& axis : axes) {
      axis.extent = expr(axis.extent);
      knowledge().bind_loop(axis.name, 0, axis.extent);
      simplifier_.changed();
    }
  }

  Stmt run_definition(Definition d) {
    const size_t facts = knowledge().assumptions();
    bind_axes(d.axes);
    const size_t outer_facts = knowledge().assumptions();
    for (Accumulator& acc : d.accumulators) acc.init = expr(acc.init);
    bind_axes(d.reduce_axes);
    for (Accumulator& acc : d.accumulators) acc.value = expr(acc.value);
    for (const Axis& axis : d.reduce_axes) forget(axis.name, outer_facts);
    for (DefinitionOutput& out : d.outputs) {
      for (Expr& index : out.indices) index = expr(index);
      out.value = expr(out.value);
    }
    for (const Axis& axis : d.axes) forget(axis.name, facts);
    return define(std::move(d));
  }

  Simplifier simplifier_;
  std::map<std::string, Expr> replaced_;
};

}  // namespace

Stmt simplify(const Stmt& stmt, const SymbolRanges& sizes) {
  if (!stmt) return stmt;
  const Stmt result = StmtSimplifier(sizes).run(stmt);
  return result ? result : block({});
}

Expr simplify(const Expr& expr, const std::map<std::string, DimRange>& ranges) {
  if (!expr) return expr;
  Simplifier simplifier;
  for (const auto& [name, range] : ranges) {
    simplifier.knowledge().bind(name, {range.min, range.max});
  }
  return simplifier.run(expr);
}

}  // namespace backcast::loop
