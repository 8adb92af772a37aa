// Generic traversal of loop IR: rebuild expressions and statements with some of them replaced.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "ir/loop/stmt.h"

namespace backcast::loop {

/// Rebuilds an expression bottom-up: `f` sees each node after its arguments were rebuilt and
/// returns the replacement (or the same node).
Expr rewrite(const Expr& expr, const std::function<Expr(const Expr&)>& f);
/// Rebuilds a statement bottom-up: `on_expr` for every expression (whole, not node by node), then
/// `on_stmt` for every statement; either may be null.
Stmt rewrite(const Stmt& stmt, const std::function<Expr(const Expr&)>& on_expr,
             const std::function<Stmt(const Stmt&)>& on_stmt);
/// Calls f for every node, parents first.
void visit(const Expr& expr, const std::function<void(const Expr&)>& f);
void visit(const Stmt& stmt, const std::function<void(const Stmt&)>& on_stmt,
           const std::function<void(const Expr&)>& on_expr_node);

/// Variables replaced by expressions.
Expr substitute(const Expr& expr, const std::map<std::string, Expr>& replacement);
Stmt substitute(const Stmt& stmt, const std::map<std::string, Expr>& replacement);
/// Buffers renamed in loads, accesses, stores, definitions.
Stmt rename_buffers(const Stmt& stmt, const std::map<std::string, std::string>& names);
/// Every let, loop and alloc name made distinct by a suffix.
Stmt with_unique_names(const Stmt& stmt, std::set<std::string>& taken);

/// Folds constants, index arithmetic in canonical affine form, conditions decided by the ranges of
/// the enclosing loops, empty and single-trip loops.
Stmt simplify(const Stmt& stmt, const SymbolRanges& sizes = {});
Expr simplify(const Expr& expr, const std::map<std::string, DimRange>& ranges = {});

}  // namespace backcast::loop
