#include "passes/schedule/follow_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/vectorize.h"

namespace backcast {
namespace {

using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Stmt;
using loop::StmtKind;

class Follower {
 public:
  Follower(const Definition& update, const Kernel& kernel) : update_(update), kernel_(kernel) {}

  Stmt run(const Stmt& nest) {
    if (!find_operand(nest) || !reads_are_named(nest)) return {};
    const Stmt result = loop::rewrite(nest, nullptr, [&](const Stmt& stmt) -> Stmt {
      if (stmt->kind != StmtKind::block) return stmt;
      std::vector<Stmt> body;
      for (const Stmt& inner : stmt->body) {
        body.push_back(inner);
        if (is_read(inner)) append_stores(inner, body);
      }
      return loop::block(std::move(body));
    });
    return fits_ ? result : Stmt();
  }

 private:
  bool is_read(const Stmt& stmt) const {
    return stmt->kind == StmtKind::let && stmt->exprs[0]->kind == ExprKind::load &&
           stmt->exprs[0]->name == operand_;
  }

  /// The operand, and the ranges of the loops around its reads.
  bool find_operand(const Stmt& nest) {
    std::set<std::string> read;
    loop::visit(
        nest,
        [&](const Stmt& s) {
          if (s->kind != StmtKind::for_loop) return;
          int64_t begin = 0, extent = 0;
          if (loop::as_constant(s->exprs[0], begin) && loop::as_constant(s->exprs[1], extent)) {
            last_[s->name] = begin + extent - 1;
          }
        },
        [&](const Expr& e) {
          if (e->kind == ExprKind::load) read.insert(e->name);
        });
    for (const loop::DefinitionOutput& output : update_.outputs) {
      for (const std::string& name : kernel_.find(output.buffer)->over) {
        if (!read.count(name)) continue;
        if (!operand_.empty() && operand_ != name) return false;
        operand_ = name;
      }
    }
    return !operand_.empty();
  }

  /// Whether each read of the operand is a `let` of its own, in a block.
  bool reads_are_named(const Stmt& nest) const {
    int64_t reads = 0, named = 0;
    loop::visit(
        nest,
        [&](const Stmt& s) {
          if (s->kind != StmtKind::block) return;
          named += std::count_if(s->body.begin(), s->body.end(),
                                 [&](const Stmt& inner) { return is_read(inner); });
        },
        [&](const Expr& e) { reads += e->kind == ExprKind::load && e->name == operand_; });
    return reads > 0 && reads == named;
  }

  /// The place of `lanes` elements from a flat index on, which lie in one row; nothing when that
  /// cannot be told.
  std::optional<std::vector<Expr>> place_of(const Expr& flat, int64_t lanes) const {
    std::set<std::string> variables;
    loop::visit(flat, [&](const Expr& e) {
      if (e->kind == ExprKind::var) variables.insert(e->name);
    });
    std::map<std::string, int64_t> steps, zeros;
    for (const std::string& variable : variables) {
      const std::optional<int64_t> step = coefficient(flat, variable);
      if (!step || *step < 0 || !last_.count(variable)) return std::nullopt;
      steps[variable] = *step;
      zeros[variable] = 0;
    }
    std::optional<int64_t> rest = evaluate(flat, zeros);
    if (!rest || *rest < 0) return std::nullopt;
    const Dims& shape = kernel_.find(operand_)->shape;
    int64_t stride = 1;
    for (const Dim& extent : shape) stride *= extent.constant();
    std::vector<Expr> place;
    for (const Dim& extent : shape) {
      stride /= extent.constant();
      Expr index(*rest / stride);
      *rest %= stride;
      int64_t most = *rest + lanes - 1;
      for (auto& [variable, step] : steps) {
        if (step / stride > 0) index = index + loop::var(variable) * Expr(step / stride);
        step %= stride;
        most += step * last_.at(variable);
      }
      if (stride > 1 && most >= stride) return std::nullopt;
      place.push_back(index);
    }
    return place;
  }

  void append_stores(const Stmt& read, std::vector<Stmt>& body) {
    const loop::Type type = read->exprs[0].type();
    const std::optional<std::vector<Expr>> place = place_of(read->exprs[0]->args[0], type.lanes);
    if (!place) {
      fits_ = false;
      return;
    }
    Vectorizer v;
    v.kernel = &kernel_;
    v.lanes = type.lanes;
    v.is_packed = [](const std::string&) { return false; };
    v.accumulator = [&](const std::string& name) -> Expr {
      return name == kOld ? loop::var(read->name, type) : Expr();
    };
    Vectorizer::Bindings bindings;
    for (size_t i = 0; i < place->size(); ++i) bindings[update_.axes[i].name] = (*place)[i];
    if (type.lanes > 1) {
      v.axis = update_.axes.back().name;
      v.base = place->back();
      bindings.erase(v.axis);
    }
    std::vector<Stmt> stores;
    for (const loop::DefinitionOutput& output : update_.outputs) {
      const loop::BufferParam& param = *kernel_.find(output.buffer);
      const Expr flat = loop::substitute(loop::flat_index(param.shape, output.indices), bindings);
      const Expr value = v.widen(v.run(with_old_value(output.value), bindings), {param.element, 1});
      const std::string name = fmt::format("{}_new{}", read->name, stores.size());
      body.push_back(loop::let(name, value));
      stores.push_back(
          loop::store(output.buffer, v.store_index(flat), loop::var(name, value.type())));
    }
    body.insert(body.end(), stores.begin(), stores.end());
  }

  Expr with_old_value(const Expr& value) const {
    return loop::rewrite(value, [&](const Expr& e) -> Expr {
      return e->kind == ExprKind::access && e->name == operand_ ? loop::var(kOld, e.type()) : e;
    });
  }

  static constexpr const char* kOld = "old value";

  const Definition& update_;
  const Kernel& kernel_;
  std::string operand_;
  std::map<std::string, int64_t> last_;  // of loop variables
  bool fits_ = true;
};

}  // namespace

Stmt follow_reads(const Stmt& nest, const Definition& update, const Kernel& kernel) {
  return Follower(update, kernel).run(nest);
}

}  // namespace backcast
