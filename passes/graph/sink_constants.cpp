#include "passes/graph/sink_constants.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "ir/ops/ops.h"
#include "ir/ops/scan_layout.h"
#include "passes/graph/constant_value.h"
#include "passes/graph/rebuild_scan.h"

namespace backcast {
namespace {

bool is_narrow(const Type& type) {
  return type.is_tensor() && byte_size(type.tensor().element) <= 2 &&
         type.tensor().element_count() != Dim(1);
}

/// The tensors in few bits among the constants that a value is made of.
void find_narrow(const Function& function, ValueId id, std::set<ElementType>& found) {
  const Node& node = function.node(id);
  if (node.op == &ops::constant && is_narrow(node.type)) found.insert(node.type.tensor().element);
  for (const ValueId operand : node.operands) find_narrow(function, operand, found);
}

class Pass {
 public:
  Pass(const Module& module, const TargetInfo& target) : result_(module), target_(target) {}

  Module run() {
    for (const Entry& entry : entries_of(result_)) change(entry.function);
    remove_unused(result_, replaced_);
    return std::move(result_);
  }

 private:
  /// The invariants that become constants of the body: all that can, if there are constants in few
  /// bits, which small scales belong to.
  std::vector<int64_t> sunk(const Function& from, const Node& scan) const {
    const Function& body = result_.function(scan.attrs.as<ScanAttrs>().body.name);
    bool narrow = std::ranges::any_of(body.nodes, [](const Node& node) {
      return node.op == &ops::constant && is_narrow(node.type);
    });
    std::vector<int64_t> operands;
    for (int64_t i = ops::scan_layout(scan).first_invariant();
         i < static_cast<int64_t>(scan.operands.size()); ++i) {
      const ValueId operand = scan.operands[static_cast<size_t>(i)];
      if (!is_made_of_constants(from, operand)) continue;
      std::set<ElementType> found;
      find_narrow(from, operand, found);
      const bool decoded = !found.empty() && !is_narrow(from.type(operand));
      if (decoded && !std::ranges::all_of(found, [&](ElementType e) { return decodes(e); }))
        continue;
      operands.push_back(i);
      narrow = narrow || !found.empty();
    }
    return narrow ? operands : std::vector<int64_t>();
  }

  bool decodes(ElementType from) const {
    if (target_.is_microcontroller()) return true;
    return target_.vector_bits >= 256 && (is_integer(from) || target_.converts_halves);
  }

  static ValueId copy_of(const Function& from, ValueId id, Builder& b) {
    const Node& node = from.node(id);
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) operands.push_back(copy_of(from, operand, b));
    b.set_loc(node.loc);
    return b.emit(*node.op, operands, node.attrs);
  }

  ValueId rebuilt(const Function& from, const Node& scan, const std::vector<int64_t>& operands,
                  Rewriter& rewriter) {
    ScanChange change;
    for (const int64_t i : operands) {
      const ValueId id = scan.operands[static_cast<size_t>(i)];
      change.made[i - 1] = [&from, id](Builder& b) { return copy_of(from, id, b); };
    }
    replaced_.insert(scan.attrs.as<ScanAttrs>().body.name);
    std::vector<ValueId> mapped;
    for (const ValueId operand : scan.operands) mapped.push_back(rewriter[operand]);
    rewriter.builder().set_loc(scan.loc);
    return rebuild_scan(result_, rewriter.builder(), scan, mapped, change).node;
  }

  void change(const std::string& name) {
    const Function from = result_.function(name);
    Rewriter rewriter(result_, from);
    std::vector<std::string> bodies;
    bool changed = false;
    for (int64_t i = 0; i < from.size(); ++i) {
      const Node& node = from.node(ValueId(i));
      if (node.op == &ops::scan) {
        const std::string& body = node.attrs.as<ScanAttrs>().body.name;
        const std::vector<int64_t> operands = sunk(from, node);
        if (!operands.empty() && results_of(result_.function(body))) {
          rewriter.map(ValueId(i), rebuilt(from, node, operands, rewriter));
          changed = true;
        }
      }
      const ValueId now = rewriter.copy(ValueId(i));
      const std::vector<std::string> called = called_functions(rewriter.builder().node(now));
      bodies.insert(bodies.end(), called.begin(), called.end());
    }
    if (changed) result_.functions[name] = rewriter.finish();
    for (const std::string& body : bodies) change(body);
  }

  Module result_;
  const TargetInfo& target_;
  std::set<std::string> replaced_;
};

}  // namespace

Module sink_constants(const Module& module, const TargetInfo& target) {
  return Pass(module, target).run();
}

}  // namespace backcast
