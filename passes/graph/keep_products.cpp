#include "passes/graph/keep_products.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "ir/ops/ops.h"
#include "ir/ops/scan_layout.h"
#include "passes/graph/rebuild_scan.h"

namespace backcast {
namespace {

// A sum of fewer products costs no more than keeping it.
constexpr int64_t kFewProducts = 8;

/// Two scans of one function, of which the second reads what the first had in the same trips.
class Pair {
 public:
  Pair(const Module& module, const Function& function, ValueId first, ValueId second)
      : function_(function),
        first_(function.node(first)),
        second_(function.node(second)),
        first_id_(first),
        a_(module.function(first_.attrs.as<ScanAttrs>().body.name)),
        b_(module.function(second_.attrs.as<ScanAttrs>().body.name)),
        layout_a_(ops::scan_layout(first_)),
        layout_b_(ops::scan_layout(second_)),
        uses_(use_counts(b_)) {}

  /// What the second had better read, as values of its body; empty when that is nothing.
  std::vector<ValueId> find() {
    if (!runs_the_same_trips()) return {};
    match_parameters();
    match_nodes();
    for (int64_t i = 0; i < b_.size(); ++i) {
      if (is_product(ValueId(i))) keep_furthest(ValueId(i));
    }
    if (!kept_.empty()) free_rows();
    return kept_;
  }

  /// The first's value that is the same.
  ValueId in_first(ValueId id) const { return same_[static_cast<size_t>(id.index)]; }

 private:
  bool runs_the_same_trips() const {
    const ScanAttrs& a = first_.attrs.as<ScanAttrs>();
    const ScanAttrs& b = second_.attrs.as<ScanAttrs>();
    if (!(a.length == b.length) || b.conditional) return false;
    if (!a.conditional) return first_.operands[0] == second_.operands[0];
    return taken_of_first(second_.operands[0]) == std::optional(layout_a_.executed());
  }

  /// Which of the first's results a value is.
  std::optional<int64_t> taken_of_first(ValueId id) const {
    const Node& node = function_.node(id);
    if (node.op != &ops::get || !(node.operands[0] == first_id_)) return std::nullopt;
    return node.attrs.as<GetAttrs>().index;
  }

  /// The first's parameter that an operand of the second is in every trip.
  ValueId parameter_for(ValueId operand, bool rows) const {
    if (const std::optional<int64_t> result = taken_of_first(operand); result && rows) {
      const int64_t c = *result - layout_a_.first_trajectory();
      const bool before = layout_a_.trajectory && c >= 0 && c < layout_a_.carries;
      return before ? a_.params[static_cast<size_t>(c)] : ValueId();
    }
    const int64_t begin = rows ? layout_a_.first_x() : layout_a_.first_invariant();
    const int64_t end =
        rows ? layout_a_.first_invariant() : static_cast<int64_t>(first_.operands.size());
    for (int64_t i = begin; i < end; ++i) {
      if (first_.operands[static_cast<size_t>(i)] == operand) {
        return a_.params[static_cast<size_t>(i - 1)];
      }
    }
    return {};
  }

  void match_parameters() {
    same_.assign(b_.nodes.size(), ValueId());
    varies_.assign(b_.nodes.size(), 0);
    for (int64_t p = layout_b_.carries; p < static_cast<int64_t>(b_.params.size()); ++p) {
      const bool rows = p < layout_b_.carries + layout_b_.xs;
      const size_t at = static_cast<size_t>(b_.params[static_cast<size_t>(p)].index);
      same_[at] = parameter_for(second_.operands[static_cast<size_t>(p + 1)], rows);
      varies_[at] = rows;
    }
  }

  void match_nodes() {
    std::multimap<uint64_t, ValueId> of_first;
    for (int64_t i = 0; i < a_.size(); ++i) {
      const Node& node = a_.node(ValueId(i));
      if (!is_parameter(node)) of_first.emplace(node.attrs.hash(), ValueId(i));
    }
    for (int64_t i = 0; i < b_.size(); ++i) {
      const Node& node = b_.node(ValueId(i));
      if (is_parameter(node)) continue;
      std::vector<ValueId> operands;
      bool matched = true;
      for (ValueId operand : node.operands) {
        operands.push_back(in_first(operand));
        matched = matched && operands.back().valid();
        varies_[static_cast<size_t>(i)] |= varies_[static_cast<size_t>(operand.index)];
      }
      const auto [begin, end] = of_first.equal_range(node.attrs.hash());
      for (auto it = begin; matched && it != end; ++it) {
        const Node& other = a_.node(it->second);
        if (other.op != node.op || other.operands != operands || !(other.attrs == node.attrs)) {
          continue;
        }
        same_[static_cast<size_t>(i)] = it->second;
        break;
      }
    }
  }

  bool is_static(ValueId id) const {
    return b_.type(id).is_tensor() && b_.type(id).tensor().is_static();
  }
  /// Whether rows of the value may be kept.
  bool can_be_kept(ValueId id) const {
    return in_first(id).valid() && varies_[static_cast<size_t>(id.index)] && is_static(id) &&
           !is_parameter(b_.node(id));
  }
  int64_t bytes(ValueId id) const { return bytes_of(b_.type(id).tensor()); }

  bool is_product(ValueId id) const {
    const Node& node = b_.node(id);
    if (!can_be_kept(id)) return false;
    if (node.op == &ops::conv) return true;
    if (node.op != &ops::dot_general) return false;
    int64_t products = 1;
    for (int64_t axis : node.attrs.as<DotGeneralAttrs>().lhs_contract) {
      const Dim& dim = b_.type(node.operands[0]).tensor().shape[static_cast<size_t>(axis)];
      products *= dim.is_constant() ? dim.constant() : 1;
    }
    return products >= kFewProducts;
  }

  std::vector<ValueId> users(ValueId id) const {
    std::vector<ValueId> result;
    for (int64_t i = id.index + 1; i < b_.size(); ++i) {
      const std::vector<ValueId>& operands = b_.node(ValueId(i)).operands;
      if (std::find(operands.begin(), operands.end(), id) != operands.end()) {
        result.push_back(ValueId(i));
      }
    }
    return result;
  }

  /// What the value becomes before anything but the first's values is made of it, as long as that
  /// takes no more bytes.
  void keep_furthest(ValueId id) {
    int64_t grown = 0;
    const std::vector<ValueId> next = users(id);
    for (ValueId user : next) {
      if (!can_be_kept(user)) return keep(id);
      grown += bytes(user);
    }
    if (next.empty() || grown > bytes(id)) return keep(id);
    for (ValueId user : next) keep_furthest(user);
  }

  bool is_kept(ValueId id) const {
    return std::find(kept_.begin(), kept_.end(), id) != kept_.end();
  }
  void keep(ValueId id) {
    if (!is_kept(id)) kept_.push_back(id);
  }

  /// Which nodes of the second compute with `source`, through what is not kept.
  std::vector<char> made_of(ValueId source) const {
    std::vector<char> made(b_.nodes.size(), 0);
    made[static_cast<size_t>(source.index)] = 1;
    for (int64_t i = source.index + 1; i < b_.size(); ++i) {
      if (is_kept(ValueId(i))) continue;
      for (ValueId operand : b_.node(ValueId(i)).operands) {
        made[static_cast<size_t>(i)] |= made[static_cast<size_t>(operand.index)];
      }
    }
    return made;
  }

  /// What of that the second's own nodes read; nothing when one of them cannot be kept.
  std::optional<std::vector<ValueId>> borders(ValueId source) const {
    const std::vector<char> made = made_of(source);
    std::vector<ValueId> result;
    for (int64_t i = 0; i < b_.size(); ++i) {
      if (in_first(ValueId(i)).valid()) continue;
      for (ValueId operand : b_.node(ValueId(i)).operands) {
        if (!made[static_cast<size_t>(operand.index)] || !in_first(operand).valid()) continue;
        if (!can_be_kept(operand)) return std::nullopt;
        if (std::find(result.begin(), result.end(), operand) == result.end()) {
          result.push_back(operand);
        }
      }
    }
    return result;
  }

  /// Keeps more where that takes less than rows which nothing else needs then.
  void free_rows() {
    const std::vector<int> uses = use_counts(function_);
    for (int64_t p = layout_b_.carries; p < layout_b_.carries + layout_b_.xs; ++p) {
      const ValueId x = b_.params[static_cast<size_t>(p)];
      const ValueId rows = second_.operands[static_cast<size_t>(p + 1)];
      if (!in_first(x).valid() || taken_of_first(rows) || !is_static(x) ||
          uses[static_cast<size_t>(rows.index)] != 2 || is_parameter(function_.node(rows))) {
        continue;
      }
      const std::optional<std::vector<ValueId>> read = borders(x);
      int64_t more = 0;
      for (size_t i = 0; read && i < read->size(); ++i) more += bytes((*read)[i]);
      if (!read || more > bytes(x)) continue;
      for (ValueId id : *read) keep(id);
    }
  }

  const Function& function_;
  const Node& first_;
  const Node& second_;
  const ValueId first_id_;
  const Function& a_;
  const Function& b_;
  const ops::ScanLayout layout_a_, layout_b_;
  const std::vector<int> uses_;
  std::vector<ValueId> same_;  // of the second's nodes, in the first
  std::vector<char> varies_;   // from trip to trip
  std::vector<ValueId> kept_;
};

class Keeping {
 public:
  explicit Keeping(const Module& module) : result_(module) {}

  Module run() {
    std::vector<std::string> names;
    for (const auto& [name, function] : result_.functions) names.push_back(name);
    for (const std::string& name : names) {
      while (change(name)) {
      }
    }
    remove_unused(result_, replaced_);
    return std::move(result_);
  }

 private:
  /// Whether two scans of the function became others.
  bool change(const std::string& name) {
    const Function from = result_.function(name);
    std::vector<ValueId> scans;
    for (int64_t i = 0; i < from.size(); ++i) {
      if (!can_be_rebuilt(from, ValueId(i))) continue;
      for (ValueId first : scans) {
        Pair pair(result_, from, first, ValueId(i));
        const std::vector<ValueId> kept = pair.find();
        if (kept.empty()) continue;
        rewrite(from, first, ValueId(i), pair, kept);
        return true;
      }
      scans.push_back(ValueId(i));
    }
    return false;
  }

  bool can_be_rebuilt(const Function& from, ValueId id) const {
    const Node& node = from.node(id);
    return node.op == &ops::scan &&
           results_of(result_.function(node.attrs.as<ScanAttrs>().body.name)) &&
           results_taken(from, id);
  }

  void rewrite(const Function& from, ValueId first, ValueId second, const Pair& pair,
               const std::vector<ValueId>& kept) {
    Rewriter rewriter(result_, from);
    std::map<int64_t, RebuiltScan> rebuilt;
    for (int64_t i = 0; i < from.size(); ++i) {
      const Node& node = from.node(ValueId(i));
      ScanChange change;
      if (ValueId(i) == first) {
        for (ValueId id : kept) change.more_ys.push_back(pair.in_first(id));
      } else if (ValueId(i) == second) {
        const RebuiltScan& now = rebuilt.at(first.index);
        for (size_t k = 0; k < kept.size(); ++k) {
          rewriter.builder().set_loc(node.loc);
          change.read.push_back({kept[k], get(rewriter.builder(), now.node, now.more_ys[k])});
        }
      } else {
        const auto scan =
            node.op == &ops::get ? rebuilt.find(node.operands[0].index) : rebuilt.end();
        if (scan == rebuilt.end()) {
          rewriter.copy(ValueId(i));
        } else {
          const size_t old = static_cast<size_t>(node.attrs.as<GetAttrs>().index);
          rewriter.builder().set_loc(node.loc);
          rewriter.map(ValueId(i),
                       get(rewriter.builder(), scan->second.node, scan->second.results[old]));
        }
        continue;
      }
      std::vector<ValueId> operands;
      for (ValueId operand : node.operands) operands.push_back(rewriter[operand]);
      rewriter.builder().set_loc(node.loc);
      rebuilt[i] = rebuild_scan(result_, rewriter.builder(), node, operands, change);
      replaced_.insert(node.attrs.as<ScanAttrs>().body.name);
    }
    result_.functions[from.name] = rewriter.finish();
  }

  static ValueId get(Builder& b, ValueId scan, int64_t number) {
    return b.emit(ops::get, {scan}, GetAttrs{number});
  }

  Module result_;
  std::set<std::string> replaced_;
};

}  // namespace

Module keep_products(const Module& module) { return Keeping(module).run(); }

}  // namespace backcast
