// Equal kernels share one body: their text, less name and locations, is the key.
#include <algorithm>
#include <map>

#include "ir/loop/text.h"
#include "passes/schedule/schedule.h"

namespace backcast {

namespace {

void rename_calls(std::vector<loop::Step>& steps, const std::map<std::string, std::string>& names) {
  for (loop::Step& step : steps) {
    const auto found = names.find(step.kernel);
    if (found != names.end()) step.kernel = found->second;
    rename_calls(step.body, names);
    rename_calls(step.otherwise, names);
  }
}

/// A step of its own kernel says what that computes; of a shared one, nothing else could.
void name_steps(std::vector<loop::Step>& steps, const loop::Program& program) {
  for (loop::Step& step : steps) {
    name_steps(step.body, program);
    name_steps(step.otherwise, program);
    if (step.kind != loop::StepKind::call) continue;
    std::vector<std::string> nodes;
    for (const Loc& loc : program.kernels.at(step.kernel).locs) {
      if (loc.node.empty()) continue;
      if (std::find(nodes.begin(), nodes.end(), loc.node) == nodes.end()) nodes.push_back(loc.node);
    }
    if (nodes.size() < 2) continue;
    step.loc.node = nodes[0];
    for (size_t i = 1; i < nodes.size(); ++i) step.loc.node += "+" + nodes[i];
  }
}

}  // namespace

loop::Program share_kernels(const loop::Program& program) {
  loop::Program result = program;
  for (loop::EntryPoint& entry : result.entries) name_steps(entry.steps, program);
  std::map<std::string, std::string> first;     // text → the kernel that stays
  std::map<std::string, std::string> replaced;  // name → the kernel that stays
  for (const auto& [name, kernel] : program.kernels) {
    auto [it, fresh] = first.emplace(loop::print_anonymous(kernel), name);
    if (fresh) continue;
    replaced[name] = it->second;
    loop::Kernel& kept = result.kernels.at(it->second);
    kept.locs.insert(kept.locs.end(), kernel.locs.begin(), kernel.locs.end());
    result.kernels.erase(name);
  }
  for (loop::EntryPoint& entry : result.entries) rename_calls(entry.steps, replaced);
  return result;
}

}  // namespace backcast
