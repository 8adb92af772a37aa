// See independence.h.
#include "passes/schedule/independence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/graph/dim_math.h"
#include "ir/loop/visit.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Op;
using loop::Stmt;
using loop::StmtKind;

/// Inclusive.
struct Range {
  int64_t min = 0, max = 0;
};

/// constant + Σ coefficient · variable.
struct Affine {
  int64_t constant = 0;
  std::map<std::string, int64_t> terms;
};

Affine plus(Affine a, const Affine& b, int64_t scale) {
  a.constant += scale * b.constant;
  for (const auto& [name, c] : b.terms) {
    if ((a.terms[name] += scale * c) == 0) a.terms.erase(name);
  }
  return a;
}

struct Access {
  bool is_store = false;
  size_t loop = 0;  // which of the kernel's loops it stands in
  std::optional<Affine> index;
  int64_t width = 1;  // elements from there on
};

class Proof {
 public:
  Proof(const Kernel& kernel, const std::vector<Stmt>& loops) : kernel_(kernel), loops_(loops) {
    loop::visit(
        kernel.body, [&](const Stmt& s) { note_range(s); }, nullptr);
    for (size_t i = 0; i < loops.size(); ++i) collect(loops[i], i);
  }

  bool run() const {
    for (const loop::BufferParam& param : kernel_.buffers) {
      if (param.mode == loop::AccessMode::read) continue;
      std::vector<Access> group;
      add(param.name, group);
      for (const std::string& name : param.over) add(name, group);
      for (const Access& access : group) {
        if (!access.index) return false;
      }
      if (!are_apart(group, rows_of(param))) return false;
    }
    return true;
  }

 private:
  void add(const std::string& buffer, std::vector<Access>& group) const {
    const auto found = accesses_.find(buffer);
    if (found == accesses_.end()) return;
    group.insert(group.end(), found->second.begin(), found->second.end());
  }

  // ---- what is accessed ------------------------------------------------------------------------

  void collect(const Stmt& stmt, size_t loop) {
    if (!stmt) return;
    for (const Expr& e : stmt->exprs) {
      loop::visit(e, [&](const Expr& node) {
        if (node->kind == ExprKind::load)
          touch(node->name, node->args[0], node.type(), loop, false);
      });
    }
    if (stmt->kind == StmtKind::store) {
      touch(stmt->name, stmt->exprs[0], stmt->exprs[1].type(), loop, true);
    }
    if (stmt->kind == StmtKind::let) {
      if (std::optional<Affine> value = affine(stmt->exprs[0])) values_[stmt->name] = *value;
    }
    note_range(stmt);
    for (const Stmt& part : stmt->body) collect(part, loop);
  }

  void note_range(const Stmt& stmt) {
    int64_t begin = 0, extent = 0;
    if (stmt->kind != StmtKind::for_loop || !loop::as_constant(stmt->exprs[0], begin) ||
        !loop::as_constant(stmt->exprs[1], extent)) {
      return;
    }
    ranges_[stmt->name] = {begin, begin + std::max<int64_t>(extent, 1) - 1};
  }

  void touch(const std::string& name, const Expr& index, loop::Type type, size_t loop, bool store) {
    if (!kernel_.find(name)) return;
    Access access{store, loop, std::nullopt, type.lanes};
    if (!index.type().is_vector()) access.index = affine(index);
    if (index->kind == ExprKind::ramp) access = lanes_apart(access, index);
    accesses_[name].push_back(std::move(access));
  }

  /// Lanes that do not lie one behind another count like a loop.
  Access lanes_apart(Access access, const Expr& ramp) {
    access.width = 1;
    access.index = affine(ramp->args[0]);
    int64_t stride = 0;
    if (!loop::as_constant(ramp->args[1], stride)) access.index.reset();
    if (!access.index) return access;
    const std::string lane = fmt::format("lane of {}", ramp.type().lanes);
    ranges_[lane] = {0, ramp.type().lanes - 1};
    access.index = plus(*access.index, {0, {{lane, 1}}}, stride);
    return access;
  }

  std::optional<Affine> affine(const Expr& e) const {
    int64_t value = 0;
    if (loop::as_constant(e, value)) return Affine{value, {}};
    if (e.type() != loop::Type{loop::Scalar::index, 1}) return std::nullopt;
    if (e->kind == ExprKind::var) {
      const auto known = values_.find(e->name);
      return known != values_.end() ? known->second : Affine{0, {{e->name, 1}}};
    }
    if (e->kind != ExprKind::binary) return std::nullopt;
    const std::optional<Affine> a = affine(e->args[0]), b = affine(e->args[1]);
    if (!a || !b) return std::nullopt;
    if (e->op == Op::add) return plus(*a, *b, 1);
    if (e->op == Op::sub) return plus(*a, *b, -1);
    if (e->op != Op::mul) return std::nullopt;
    if (a->terms.empty()) return plus({}, *b, a->constant);
    if (b->terms.empty()) return plus({}, *a, b->constant);
    return std::nullopt;
  }

  // ---- digits ----------------------------------------------------------------------------------

  /// What the index adds up to, its multiples of `modulus` left out (0: none is) and those of
  /// `skipped` too.
  std::optional<Range> rest(const Access& access, int64_t modulus,
                            const std::string& skipped) const {
    Range range{access.index->constant, access.index->constant + access.width - 1};
    for (const auto& [name, c] : access.index->terms) {
      if (name == skipped || (modulus != 0 && c % modulus == 0)) continue;
      const auto found = ranges_.find(name);
      if (found == ranges_.end()) return std::nullopt;
      range.min += c * (c > 0 ? found->second.min : found->second.max);
      range.max += c * (c > 0 ? found->second.max : found->second.min);
    }
    return range;
  }

  /// Places within a period of `modulus`; nothing when a period's end lies inside.
  static std::optional<Range> within_period(Range range, int64_t modulus) {
    if (modulus == 0) return range;
    const int64_t period = math::floor_div(range.min, modulus);
    if (math::floor_div(range.max, modulus) != period) return std::nullopt;
    return Range{range.min - period * modulus, range.max - period * modulus};
  }

  /// Elements of the buffer's rows, planes and so on: what a tile's constants are multiples of.
  static std::set<int64_t> rows_of(const loop::BufferParam& param) {
    std::set<int64_t> result;
    int64_t elements = 1;
    for (size_t i = param.shape.size(); i-- > 0 && param.shape[i].is_constant();) {
      elements *= param.shape[i].constant();
      if (elements > 0) result.insert(elements);
    }
    return result;
  }

  /// Where digits may end: at variables' coefficients, at rows of the buffer and, as rows that are
  /// unrolled have no variable, at constants that a variable does not reach: 32·f + 64·(0, 1, …)
  /// has one at 64 where f stays below 2.
  std::set<int64_t> moduli(const std::vector<Access>& group, std::set<int64_t> result) const {
    result.insert(0);
    std::set<int64_t> constants, reaches;
    for (const Access& access : group) {
      constants.insert(access.index->constant - group[0].index->constant);
      for (const auto& [name, c] : access.index->terms) {
        if (c > 0) result.insert(c);
        const auto range = ranges_.find(name);
        if (c > 0 && range != ranges_.end()) {
          reaches.insert(c * (range->second.max - range->second.min + 1));
        }
      }
    }
    for (const int64_t reach : reaches) {
      const auto row = constants.lower_bound(reach);
      if (row != constants.end()) result.insert(*row);
    }
    return result;
  }

  /// The value of the loop variable's digit, less the variable itself, in the number whose digits
  /// above `modulus` do not count; nothing where the variable shares its digit.
  std::optional<int64_t> digit(const Access& access, int64_t c, int64_t modulus) const {
    const std::string& variable = loops_[access.loop]->name;
    const auto found = access.index->terms.find(variable);
    if (found == access.index->terms.end() || found->second != c) return std::nullopt;
    std::optional<Range> below = rest(access, modulus, variable);
    if (!below) return std::nullopt;
    if (modulus != 0) {
      const std::optional<Range> whole = rest(access, modulus, "");
      if (!whole || !within_period(*whole, modulus)) return std::nullopt;
      const int64_t period = math::floor_div(whole->min, modulus) * modulus;
      below = Range{below->min - period, below->max - period};
    }
    const int64_t shift = math::floor_div(below->min, c);
    if (math::floor_div(below->max, c) != shift) return std::nullopt;
    return shift;
  }

  /// Iterations of one loop have a digit of their own.
  bool are_apart_within(const std::vector<Access>& all, const std::set<int64_t>& rows,
                        size_t loop) const {
    std::vector<Access> group;
    bool is_written = false;
    for (const Access& access : all) {
      if (access.loop != loop) continue;
      group.push_back(access);
      is_written = is_written || access.is_store;
    }
    const auto trips = ranges_.find(loops_[loop]->name);
    const bool once = trips != ranges_.end() && trips->second.min == trips->second.max;
    if (!is_written || once) return true;
    const auto own = group[0].index->terms.find(loops_[loop]->name);
    if (own == group[0].index->terms.end() || own->second <= 0) return false;
    for (const int64_t modulus : moduli(group, rows)) {
      if (modulus != 0 && modulus <= own->second) continue;
      const std::optional<int64_t> first = digit(group[0], own->second, modulus);
      if (first && std::all_of(group.begin(), group.end(), [&](const Access& access) {
            return digit(access, own->second, modulus) == first;
          })) {
        return true;
      }
    }
    return false;
  }

  bool are_apart(const std::vector<Access>& group, const std::set<int64_t>& rows) const {
    for (size_t loop = 0; loop < loops_.size(); ++loop) {
      if (!are_apart_within(group, rows, loop)) return false;
    }
    const std::set<int64_t> candidates = moduli(group, rows);
    for (const Access& a : group) {
      for (const Access& b : group) {
        if (a.loop == b.loop || !a.is_store) continue;
        const bool apart = std::any_of(candidates.begin(), candidates.end(),
                                       [&](int64_t modulus) { return never_meet(a, b, modulus); });
        if (!apart) return false;
      }
    }
    return true;
  }

  bool never_meet(const Access& a, const Access& b, int64_t modulus) const {
    std::optional<Range> x = rest(a, modulus, ""), y = rest(b, modulus, "");
    if (!x || !y) return false;
    x = within_period(*x, modulus);
    y = within_period(*y, modulus);
    return x && y && (x->max < y->min || y->max < x->min);
  }

  const Kernel& kernel_;
  const std::vector<Stmt>& loops_;
  std::map<std::string, Range> ranges_;   // of loop variables
  std::map<std::string, Affine> values_;  // of lets
  std::map<std::string, std::vector<Access>> accesses_;
};

}  // namespace

bool are_independent(const Kernel& kernel, const std::vector<Stmt>& loops) {
  return Proof(kernel, loops).run();
}

}  // namespace backcast
