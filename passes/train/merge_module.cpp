#include "passes/train/merge_module.h"

#include "ir/graph/error.h"

namespace backcast {
namespace {

void rename_callees(Function& function, const std::string& prefix) {
  for (Node& node : function.nodes) {
    if (called_functions(node).empty()) continue;
    std::vector<AttrField> renamed;
    for (const AttrField& field : node.attrs.fields()) {
      const FunctionRef* ref = std::get_if<FunctionRef>(&field.value);
      if (ref && !ref->name.empty()) {
        renamed.push_back({field.name, FunctionRef{prefix + ref->name}});
      }
    }
    node.attrs = node.attrs.with(renamed);
  }
}

}  // namespace

Function merge_module(Module& into, const Module& from, const std::string& prefix,
                      const std::string& name) {
  for (const auto& [symbol, range] : from.symbols) {
    const auto [place, is_new] = into.symbols.emplace(symbol, range);
    if (is_new || place->second == range) continue;
    throw CompileError(
        fmt::format("dimension \"{}\" is {}..{} in one function and {}..{} in "
                    "another; give both the same range with --dim",
                    symbol, place->second.min, place->second.max, range.min, range.max));
  }
  for (const auto& [old_name, old] : from.functions) {
    if (old_name == "main") continue;
    Function function = old;
    function.name = prefix + old_name;
    rename_callees(function, prefix);
    into.functions.emplace(function.name, std::move(function));
  }
  Function main = from.function("main");
  main.name = name;
  rename_callees(main, prefix);
  return main;
}

}  // namespace backcast
