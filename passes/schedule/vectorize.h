// From an expression over axes to the same expression over one register of lanes.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/loop/stmt.h"

namespace backcast {

/// Rewrites definition expressions for the register that holds elements base … base + lanes - 1 of
/// the vector axis. What does not depend on the axis stays scalar until it meets a vector.
struct Vectorizer {
  using Bindings = std::map<std::string, loop::Expr>;

  const loop::Kernel* kernel = nullptr;
  std::string axis;
  int32_t lanes = 1;
  loop::Expr base;
  /// Lanes that each element has: what lies along `split_axis` is for one of them after the other.
  int32_t splits = 1;
  std::string split_axis;
  std::function<bool(const std::string& buffer)> is_packed;
  std::function<loop::Expr(const std::string& buffer, loop::Type, const Bindings&)> packed_load;
  /// A value read in another way than along the axis; `flat` mentions axes. Empty (or an empty
  /// result): as usual.
  std::function<loop::Expr(const std::string& buffer, loop::Type, const loop::Expr& flat)>
      turned_load;
  /// The register of an accumulator; empty for other variables.
  std::function<loop::Expr(const std::string& name)> accumulator;

  /// `place` binds every other axis.
  loop::Expr run(const loop::Expr& e, const Bindings& place) const;
  /// Broadcasts a scalar result and checks the type.
  loop::Expr widen(const loop::Expr& e, loop::Type scalar_type) const;
  /// Index of a store: contiguous when the output is contiguous along the axis.
  loop::Expr store_index(const loop::Expr& flat) const;

 private:
  loop::Expr read(const loop::Expr& flat, const std::string& buffer, loop::Type type) const;
  loop::Expr read_splits(const loop::Expr& flat, const std::string& buffer, loop::Type type) const;
  /// A read whose index is itself read from memory, or is what a reduction found.
  loop::Expr read_indirect(const loop::Expr& flat, const std::string& buffer, loop::Type type,
                           const Bindings& place) const;
  loop::Expr index(const loop::Expr& flat) const;
  bool depends_on_sum(const loop::Expr& e) const;
};

/// Names for loaded values, one per distinct load, as `let` statements in front of their use.
class LetCache {
 public:
  /// `widens`: registers of small integers are named as the words that they become.
  LetCache(std::vector<loop::Stmt>& body, std::function<std::string(const std::string&)> fresh,
           bool widens)
      : body_(body), fresh_(std::move(fresh)), widens_(widens) {}

  /// Every load of a buffer outside lazy branches bound to a name.
  loop::Expr hoist_loads(const loop::Expr& e);
  loop::Expr bind(const std::string& base, const loop::Expr& value);

 private:
  std::vector<loop::Stmt>& body_;
  std::function<std::string(const std::string&)> fresh_;
  bool widens_;
  std::vector<std::pair<loop::Expr, loop::Expr>> known_;
};

}  // namespace backcast
