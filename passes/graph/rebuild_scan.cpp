#include "passes/graph/rebuild_scan.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/scan_layout.h"
#include "passes/graph/algebra.h"

namespace backcast {
namespace {

class Rebuilding {
 public:
  Rebuilding(Module& module, Builder& b, const Node& scan, const std::vector<ValueId>& operands,
             const ScanChange& change)
      : module_(module),
        outside_(b),
        operands_(operands),
        change_(change),
        attrs_(scan.attrs.as<ScanAttrs>()),
        layout_(ops::scan_layout(scan)),
        old_(module.function(attrs_.body.name)),
        results_(*results_of(old_)) {}

  RebuiltScan run() {
    collect_roots();
    find_needed();
    std::string name;
    for (int64_t i = 2; name.empty() || module_.functions.contains(name); ++i) {
      name = fmt::format("{}_{}", attrs_.body.name, i);
    }
    module_.functions.emplace(name, body(name));
    attrs_.body = {name};
    return {outside_.emit(ops::scan, new_operands_, attrs_), numbers(), more_};
  }

 private:
  bool dropped(int64_t carry) const { return change_.dropped_carries.contains(carry); }

  void collect_roots() {
    for (int64_t i = 0; i < static_cast<int64_t>(results_.size()); ++i) {
      if (!dropped(i)) roots_.push_back(results_[static_cast<size_t>(i)]);
    }
    for (ValueId y : change_.more_ys) {
      const auto carries = static_cast<size_t>(layout_.carries) - change_.dropped_carries.size();
      const auto given = std::find(roots_.begin() + static_cast<int64_t>(carries), roots_.end(), y);
      more_.push_back(given - roots_.begin());
      if (given == roots_.end()) roots_.push_back(y);
    }
  }

  void find_needed() {
    std::set<int32_t> read;
    for (const ScanChange::Read& r : change_.read) read.insert(r.value.index);
    needed_ = reached(old_, roots_, read);
  }

  /// Gives the body its parameters and the scan their operands.
  void add_parameters(Builder& b) {
    const auto keep = [&](int64_t param) {
      const ValueId id = old_.params[static_cast<size_t>(param)];
      b.set_loc(old_.node(id).loc);
      now_[static_cast<size_t>(id.index)] =
          b.parameter(old_.node(id).attrs.as<ParameterAttrs>().name, old_.type(id));
      new_operands_.push_back(operands_[static_cast<size_t>(param + 1)]);
    };
    const auto is_needed = [&](int64_t param) {
      return needed_[static_cast<size_t>(old_.params[static_cast<size_t>(param)].index)] != 0;
    };
    new_operands_ = {operands_[0]};
    attrs_.carries = attrs_.xs = 0;
    for (int64_t c = 0; c < layout_.carries; ++c) {
      if (dropped(c)) continue;
      keep(c);
      ++attrs_.carries;
    }
    for (int64_t p = layout_.carries; p < layout_.carries + layout_.xs; ++p) {
      if (!is_needed(p)) continue;
      keep(p);
      ++attrs_.xs;
    }
    for (const ScanChange::Read& read : change_.read) {
      if (!needed_[static_cast<size_t>(read.value.index)]) continue;
      const Node& node = old_.node(read.value);
      b.set_loc(node.loc);
      now_[static_cast<size_t>(read.value.index)] =
          b.parameter(fmt::format("kept{}", read.value.index), node.type);
      new_operands_.push_back(read.rows);
      ++attrs_.xs;
    }
    for (int64_t p = layout_.carries + layout_.xs; p < static_cast<int64_t>(old_.params.size());
         ++p) {
      if (is_needed(p) && !change_.made.contains(p)) keep(p);
    }
    for (const auto& [param, make] : change_.made) {
      const ValueId id = old_.params[static_cast<size_t>(param)];
      if (is_needed(param)) now_[static_cast<size_t>(id.index)] = make(b);
    }
  }

  Function body(const std::string& name) {
    Builder b(module_, name);
    now_.assign(old_.nodes.size(), ValueId());
    add_parameters(b);
    for (int64_t i = 0; i < old_.size(); ++i) {
      const Node& node = old_.node(ValueId(i));
      ValueId& now = now_[static_cast<size_t>(i)];
      if (!needed_[static_cast<size_t>(i)] || now.valid()) continue;
      std::vector<ValueId> operands;
      for (ValueId operand : node.operands) {
        operands.push_back(now_[static_cast<size_t>(operand.index)]);
      }
      b.set_loc(node.loc);
      now = b.emit(*node.op, operands, node.attrs);
    }
    std::vector<ValueId> results;
    for (ValueId root : roots_) results.push_back(now_[static_cast<size_t>(root.index)]);
    b.set_loc(old_.node(old_.result).loc);
    return b.finish(b.emit(ops::tuple, results));
  }

  /// Of each old result.
  std::vector<int64_t> numbers() const {
    std::vector<int64_t> result;
    int64_t next = 0;
    const int64_t count = layout_.carries + layout_.ys;
    for (int64_t i = 0; i < count; ++i) result.push_back(dropped(i) ? -1 : next++);
    next = static_cast<int64_t>(roots_.size());
    for (int64_t i = 0; layout_.trajectory && i <= layout_.carries; ++i) result.push_back(next++);
    return result;
  }

  Module& module_;
  Builder& outside_;
  const std::vector<ValueId>& operands_;
  const ScanChange& change_;
  ScanAttrs attrs_;
  const ops::ScanLayout layout_;
  const Function& old_;
  const std::vector<ValueId>& results_;
  std::vector<ValueId> roots_, now_, new_operands_;
  std::vector<int64_t> more_;
  std::vector<char> needed_;
};

}  // namespace

RebuiltScan rebuild_scan(Module& module, Builder& b, const Node& scan,
                         const std::vector<ValueId>& operands, const ScanChange& change) {
  return Rebuilding(module, b, scan, operands, change).run();
}

bool runs_in_full(const Function& function, const Node& scan) {
  const ScanAttrs& attrs = scan.attrs.as<ScanAttrs>();
  const Literal* trips = constant_of(function, scan.operands[0]);
  return trips && !attrs.conditional && attrs.length.is_constant() &&
         trips->as_int(0) >= attrs.length.constant();
}

std::optional<std::set<int64_t>> results_taken(const Function& function, ValueId scan) {
  std::set<int64_t> taken;
  if (function.result == scan) return std::nullopt;
  for (const Node& node : function.nodes) {
    if (std::find(node.operands.begin(), node.operands.end(), scan) == node.operands.end()) {
      continue;
    }
    if (node.op != &ops::get) return std::nullopt;
    taken.insert(node.attrs.as<GetAttrs>().index);
  }
  return taken;
}

const std::vector<ValueId>* results_of(const Function& body) {
  const Node& node = body.node(body.result);
  return node.op == &ops::tuple ? &node.operands : nullptr;
}

std::vector<char> reached(const Function& body, const std::vector<ValueId>& roots,
                          const std::set<int32_t>& stops) {
  std::vector<char> found(body.nodes.size(), 0);
  for (const ValueId root : roots) found[static_cast<size_t>(root.index)] = 1;
  for (int64_t i = body.size(); i-- > 0;) {
    if (!found[static_cast<size_t>(i)] || stops.contains(static_cast<int32_t>(i))) continue;
    for (const ValueId operand : body.node(ValueId(i)).operands) {
      found[static_cast<size_t>(operand.index)] = 1;
    }
  }
  return found;
}

void remove_unused(Module& module, const std::set<std::string>& names) {
  std::set<std::string> reached;
  std::vector<std::string> next;
  for (const Entry& entry : entries_of(module)) next.push_back(entry.function);
  while (!next.empty()) {
    const std::string name = next.back();
    next.pop_back();
    if (!reached.insert(name).second) continue;
    for (const Node& node : module.function(name).nodes) {
      for (const std::string& called : called_functions(node)) next.push_back(called);
    }
  }
  for (const std::string& name : names) {
    if (!reached.contains(name)) module.functions.erase(name);
  }
}

int64_t bytes_of(const TensorType& type) {
  return type.element_count().constant() * byte_size(type.element);
}

}  // namespace backcast
