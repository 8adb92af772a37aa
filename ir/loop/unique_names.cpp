// Every let, loop and alloc of a statement under a name of its own.
#include <unordered_map>

#include "ir/loop/visit.h"

namespace backcast::loop {
namespace {

class Renamer {
 public:
  explicit Renamer(std::set<std::string>& taken) : taken_(taken) {}

  Stmt run(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::block:
        return run_block(*s);
      case StmtKind::for_loop: {
        StmtNode node = with_exprs(*s);
        const Scope scope = bind(s->name, node.name);
        node.body[0] = run(s->body[0]);
        restore(scope);
        return make(std::move(node));
      }
      case StmtKind::let:
      case StmtKind::alloc: {
        // Outside of a block nothing can refer to the name.
        StmtNode node = with_exprs(*s);
        restore(bind(s->name, node.name));
        return make(std::move(node));
      }
      case StmtKind::define:
        return run_definition(*s->definition);
      default: {
        StmtNode node = with_exprs(*s);
        const bool names_buffer = s->kind == StmtKind::store || s->kind == StmtKind::prefetch;
        if (names_buffer) node.name = current(s->name);
        for (Stmt& child : node.body) child = run(child);
        return make(std::move(node));
      }
    }
  }

 private:
  struct Scope {
    std::string name, outer;
    bool had_outer = false;
  };

  static Stmt make(StmtNode node) {
    return Stmt(std::make_shared<const StmtNode>(std::move(node)));
  }

  const std::string& current(const std::string& name) const {
    const auto found = renamed_.find(name);
    return found == renamed_.end() ? name : found->second;
  }

  Scope bind(const std::string& name, std::string& fresh) {
    fresh = name;
    while (!taken_.insert(fresh).second) {
      // Numbering goes on where it stopped for this name.
      fresh = name + "_" + std::to_string(++counts_[name]);
    }
    Scope scope = {name, {}, false};
    const auto found = renamed_.find(name);
    if (found != renamed_.end()) {
      scope.outer = found->second;
      scope.had_outer = true;
    }
    renamed_[name] = fresh;
    return scope;
  }

  void restore(const Scope& scope) {
    if (scope.had_outer) {
      renamed_[scope.name] = scope.outer;
    } else {
      renamed_.erase(scope.name);
    }
  }

  Expr expr(const Expr& e) const {
    if (!e) return e;
    return rewrite(e, [&](const Expr& node) {
      const bool named = node->kind == ExprKind::var || node->kind == ExprKind::load ||
                         node->kind == ExprKind::access;
      if (!named) return node;
      const auto found = renamed_.find(node->name);
      if (found == renamed_.end() || found->second == node->name) return node;
      ExprNode copy = *node;
      copy.name = found->second;
      return Expr(std::make_shared<const ExprNode>(std::move(copy)));
    });
  }

  StmtNode with_exprs(const StmtNode& s) const {
    StmtNode node = s;
    for (Expr& e : node.exprs) e = expr(e);
    return node;
  }

  Stmt run_block(const StmtNode& s) {
    StmtNode node = s;
    std::vector<Scope> scopes;
    for (Stmt& child : node.body) {
      if (child->kind == StmtKind::let || child->kind == StmtKind::alloc) {
        StmtNode bound = with_exprs(*child);
        scopes.push_back(bind(child->name, bound.name));
        child = make(std::move(bound));
      } else {
        child = run(child);
      }
    }
    while (!scopes.empty()) {
      restore(scopes.back());
      scopes.pop_back();
    }
    return make(std::move(node));
  }

  Stmt run_definition(Definition d) {
    // Axes and accumulators are the definition's own; they hide outer renamings.
    const std::unordered_map<std::string, std::string> outer = renamed_;
    for (Axis& axis : d.axes) axis.extent = expr(axis.extent);
    for (Axis& axis : d.reduce_axes) axis.extent = expr(axis.extent);
    for (const Axis& axis : d.axes) renamed_.erase(axis.name);
    for (const Axis& axis : d.reduce_axes) renamed_.erase(axis.name);
    for (const Accumulator& acc : d.accumulators) renamed_.erase(acc.name);
    for (Accumulator& acc : d.accumulators) {
      acc.init = expr(acc.init);
      acc.value = expr(acc.value);
    }
    for (DefinitionOutput& out : d.outputs) {
      out.buffer = current(out.buffer);
      for (Expr& index : out.indices) index = expr(index);
      out.value = expr(out.value);
    }
    renamed_ = outer;
    return define(std::move(d));
  }

  std::set<std::string>& taken_;
  std::unordered_map<std::string, std::string> renamed_;
  std::unordered_map<std::string, int64_t> counts_;
};

}  // namespace

Stmt with_unique_names(const Stmt& stmt, std::set<std::string>& taken) {
  return stmt ? Renamer(taken).run(stmt) : stmt;
}

}  // namespace backcast::loop
