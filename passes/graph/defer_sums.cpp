#include "passes/graph/defer_sums.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/ops/ops.h"
#include "ir/ops/scan_layout.h"
#include "passes/graph/algebra.h"
#include "passes/graph/rebuild_scan.h"
#include "passes/graph/stacked_rows.h"

namespace backcast {
namespace {

/// What a carry grows by: linear in the leaves, which are contractions, sums and values of a trip.
struct Growth {
  int64_t carry;
  ValueId added;
  std::vector<ValueId> leaves;
};

bool is_sum(const Node& node) {
  return node.op == &ops::reduce && node.attrs.as<ReduceAttrs>().kind == Reduction::sum;
}

Ints behind_first(const Ints& axes) {
  Ints result;
  for (int64_t axis : axes) result.push_back(axis + 1);
  return result;
}

Ints and_first(const Ints& axes) {
  Ints result = behind_first(axes);
  result.insert(result.begin(), 0);
  return result;
}

/// One scan whose sums go behind it.
class Deferring {
 public:
  Deferring(const Function& from, ValueId scan, const Function& body, bool frugal)
      : node_(from.node(scan)),
        attrs_(node_.attrs.as<ScanAttrs>()),
        body_(body),
        uses_(use_counts(body)),
        rows_(node_, body),
        frugal_(frugal) {}

  /// Whether there is anything to do.
  bool find() {
    std::vector<Growth> found;
    for (int64_t c = 0; c < attrs_.carries; ++c) {
      if (std::optional<Growth> growth = growth_of(c)) found.push_back(*growth);
    }
    // What contractions stack, other sums may use.
    for (const bool contractions : {true, false}) {
      for (const Growth& growth : found) {
        if (contains_contraction(growth) == contractions && pays(growth)) take(growth);
      }
    }
    return !taken_.empty();
  }

  /// Emits the scan and what its sums are now; gives the value of each old result.
  std::vector<ValueId> emit(Module& module, Rewriter& rewriter) {
    Builder& b = rewriter.builder();
    std::vector<ValueId> operands;
    for (ValueId operand : node_.operands) operands.push_back(rewriter[operand]);
    ScanChange change;
    change.more_ys = rows_.stacked();
    for (const Growth& growth : taken_) change.dropped_carries.insert(growth.carry);
    b.set_loc(node_.loc);
    const RebuiltScan scan = rebuild_scan(module, b, node_, operands, change);
    std::vector<ValueId> results;
    for (int64_t number : scan.results) {
      results.push_back(number < 0 ? ValueId() : b.emit(ops::get, {scan.node}, GetAttrs{number}));
    }
    rows_.place(b, operands, results, scan);
    for (const Growth& growth : taken_) {
      const ValueId start = operands[static_cast<size_t>(growth.carry + 1)];
      const ValueId sum = emit_sum(b, growth.added);
      b.set_loc(node_.loc);
      results[static_cast<size_t>(growth.carry)] =
          is_splat(b, start, 0) ? sum : b.emit(ops::add, {start, sum});
    }
    return results;
  }

 private:
  int uses(ValueId id) const { return uses_[static_cast<size_t>(id.index)]; }

  /// Sums of such values are such values of sums.
  bool is_linear(const Node& node) const {
    static const OpDef* const kLinear[] = {&ops::add,     &ops::sub,       &ops::neg,
                                           &ops::reshape, &ops::transpose, &ops::slice};
    if (node.op == &ops::pad) return is_zero_of(body_, node.operands[1]);
    return std::find(std::begin(kLinear), std::end(kLinear), node.op) != std::end(kLinear);
  }

  void find_leaves(ValueId id, std::vector<ValueId>& leaves) const {
    const Node& node = body_.node(id);
    if (!is_linear(node) || uses(id) != 1) {
      leaves.push_back(id);
      return;
    }
    const size_t count = node.op == &ops::pad ? 1 : node.operands.size();
    for (size_t i = 0; i < count; ++i) find_leaves(node.operands[i], leaves);
  }

  /// What carry `c` grows by, where nothing else reads or changes it.
  std::optional<Growth> growth_of(int64_t c) const {
    const ValueId before = body_.params[static_cast<size_t>(c)];
    const ValueId after = (*results_of(body_))[static_cast<size_t>(c)];
    const Node& sum = body_.node(after);
    const TensorType& type = body_.type(before).tensor();
    if (sum.op != &ops::add || !is_float(type.element) || !type.is_static() || uses(before) != 1 ||
        uses(after) != 1) {
      return std::nullopt;
    }
    for (size_t i : {0u, 1u}) {
      if (!(sum.operands[i] == before)) continue;
      Growth growth{c, sum.operands[1 - i], {}};
      find_leaves(growth.added, growth.leaves);
      return growth;
    }
    return std::nullopt;
  }

  bool is_contraction(ValueId id) const {
    return body_.node(id).op == &ops::dot_general && uses(id) == 1;
  }

  bool contains_contraction(const Growth& growth) const {
    return std::any_of(growth.leaves.begin(), growth.leaves.end(),
                       [&](ValueId id) { return is_contraction(id); });
  }

  /// What has to be stacked for a leaf.
  std::vector<ValueId> operands_of(ValueId leaf) const {
    if (is_contraction(leaf)) return body_.node(leaf).operands;
    if (is_sum(body_.node(leaf)) && uses(leaf) == 1) return {body_.node(leaf).operands[0]};
    return {leaf};
  }

  /// A sum where it is is read and written in every trip. What is stacked for it is written and
  /// read, what is stacked anyway only read. Sums without a contraction stack nothing.
  bool pays(const Growth& growth) const {
    int64_t moved = 0, grown = 0;
    std::vector<ValueId> counted;
    for (ValueId leaf : growth.leaves) {
      for (ValueId operand : operands_of(leaf)) {
        const TensorType& type = body_.type(operand).tensor();
        if (!type.is_static()) return false;
        if (std::find(counted.begin(), counted.end(), operand) != counted.end()) continue;
        counted.push_back(operand);
        moved += bytes_of(type);
        if (rows_.has(operand)) continue;
        if (!is_contraction(leaf)) return false;
        moved += bytes_of(type);
        grown += bytes_of(type);
      }
    }
    const int64_t sum = bytes_of(body_.type(growth.added).tensor());
    if (frugal_ && grown * attrs_.length.constant() > sum) return false;
    return !contains_contraction(growth) || moved < 2 * sum;
  }

  void take(const Growth& growth) {
    for (ValueId leaf : growth.leaves) {
      for (ValueId operand : operands_of(leaf)) rows_.stack(operand);
    }
    taken_.push_back(growth);
  }

  /// The sum over all trips of a value that a carry grows by.
  ValueId emit_sum(Builder& b, ValueId id) {
    const Node& node = body_.node(id);
    if (is_linear(node) && uses(id) == 1) {
      std::vector<ValueId> operands{emit_sum(b, node.operands[0])};
      if (node.op == &ops::pad) {
        operands.push_back(b.scalar(node.type.tensor().element, 0));
      } else if (node.operands.size() == 2) {
        operands.push_back(emit_sum(b, node.operands[1]));
      }
      b.set_loc(node.loc);
      return b.emit(*node.op, operands, node.attrs);
    }
    std::vector<ValueId> operands;
    for (ValueId operand : operands_of(id)) operands.push_back(rows_.emit(b, operand));
    b.set_loc(node.loc);
    if (is_contraction(id)) {
      const DotGeneralAttrs& dot = node.attrs.as<DotGeneralAttrs>();
      return b.emit(ops::dot_general, operands,
                    DotGeneralAttrs{behind_first(dot.lhs_batch), behind_first(dot.rhs_batch),
                                    and_first(dot.lhs_contract), and_first(dot.rhs_contract)});
    }
    const bool summed = !(operands_of(id)[0] == id);
    const Ints axes = summed ? and_first(node.attrs.as<ReduceAttrs>().axes) : Ints{0};
    return b.emit(ops::reduce, operands, ReduceAttrs{Reduction::sum, axes});
  }

  const Node& node_;
  const ScanAttrs& attrs_;
  const Function& body_;
  const std::vector<int> uses_;
  StackedRows rows_;
  const bool frugal_;
  std::vector<Growth> taken_;
};

class Functions {
 public:
  Functions(const Module& module, bool frugal) : result_(module), frugal_(frugal) {}

  Module run() {
    std::vector<std::string> names;
    for (const auto& [name, function] : result_.functions) names.push_back(name);
    for (const std::string& name : names) visit(name);
    remove_unused(result_, replaced_);
    return std::move(result_);
  }

 private:
  /// Bodies first: what a loop within one leaves as a contraction can go further out.
  void visit(const std::string& name) {
    if (!visited_.insert(name).second) return;
    const Function from = result_.function(name);
    for (const Node& node : from.nodes) {
      for (const std::string& called : called_functions(node)) visit(called);
    }
    Rewriter rewriter(result_, from);
    std::map<int64_t, std::vector<ValueId>> results;  // of scans that changed
    for (int64_t i = 0; i < from.size(); ++i) {
      const Node& node = from.node(ValueId(i));
      if (node.op == &ops::get) {
        const auto changed = results.find(node.operands[0].index);
        if (changed != results.end()) {
          rewriter.map(ValueId(i),
                       changed->second[static_cast<size_t>(node.attrs.as<GetAttrs>().index)]);
          continue;
        }
      }
      if (!may_change(from, ValueId(i))) {
        rewriter.copy(ValueId(i));
        continue;
      }
      const std::string body = node.attrs.as<ScanAttrs>().body.name;
      Deferring deferring(from, ValueId(i), result_.function(body), frugal_);
      if (!deferring.find()) {
        rewriter.copy(ValueId(i));
        continue;
      }
      results[i] = deferring.emit(result_, rewriter);
      replaced_.insert(body);
    }
    if (!results.empty()) result_.functions[name] = rewriter.finish();
  }

  bool may_change(const Function& from, ValueId id) const {
    const Node& node = from.node(id);
    if (node.op != &ops::scan || node.attrs.as<ScanAttrs>().trajectory) return false;
    return runs_in_full(from, node) &&
           results_of(result_.function(node.attrs.as<ScanAttrs>().body.name)) &&
           results_taken(from, id);
  }

  Module result_;
  const bool frugal_;
  std::set<std::string> visited_, replaced_;
};

}  // namespace

Module defer_sums(const Module& module, bool frugal) { return Functions(module, frugal).run(); }

}  // namespace backcast
