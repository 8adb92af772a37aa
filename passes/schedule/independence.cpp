// See independence.h.
#include "passes/schedule/independence.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/graph/dim_math.h"
#include "ir/loop/affine_access.h"

namespace backcast {
namespace {

using loop::Kernel;
using loop::Places;
using loop::Stmt;
using loop::within_period;

struct Access : loop::AffineAccess {
  size_t loop = 0;  // which of the kernel's loops it stands in
};

class Proof {
 public:
  Proof(const Kernel& kernel, const std::vector<Stmt>& loops)
      : kernel_(kernel), loops_(loops), affine_(kernel) {
    for (size_t i = 0; i < loops.size(); ++i) {
      affine_.visit(loops[i], [&](const std::string& buffer, const loop::AffineAccess& access) {
        accesses_[buffer].push_back({access, i});
      });
    }
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
        const std::optional<Places> range = affine_.range_of(name);
        if (c > 0 && range) reaches.insert(c * (range->max - range->min + 1));
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
    std::optional<Places> below = affine_.rest(access, modulus, variable);
    if (!below) return std::nullopt;
    if (modulus != 0) {
      const std::optional<Places> whole = affine_.rest(access, modulus);
      if (!whole || !within_period(*whole, modulus)) return std::nullopt;
      const int64_t period = math::floor_div(whole->min, modulus) * modulus;
      below = Places{below->min - period, below->max - period};
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
    const std::optional<Places> trips = affine_.range_of(loops_[loop]->name);
    const bool once = trips && trips->min == trips->max;
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
    std::optional<Places> x = affine_.rest(a, modulus), y = affine_.rest(b, modulus);
    if (!x || !y) return false;
    x = within_period(*x, modulus);
    y = within_period(*y, modulus);
    return x && y && (x->max < y->min || y->max < x->min);
  }

  const Kernel& kernel_;
  const std::vector<Stmt>& loops_;
  loop::AffineAccesses affine_;
  std::map<std::string, std::vector<Access>> accesses_;
};

}  // namespace

bool are_independent(const Kernel& kernel, const std::vector<Stmt>& loops) {
  return Proof(kernel, loops).run();
}

}  // namespace backcast
