// Equal kernels share one body: their text, less name and locations, is the key.
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

}  // namespace

loop::Program share_kernels(const loop::Program& program) {
  loop::Program result = program;
  std::map<std::string, std::string> first;     // text → the kernel that stays
  std::map<std::string, std::string> replaced;  // name → the kernel that stays
  for (const auto& [name, kernel] : program.kernels) {
    loop::Kernel anonymous = kernel;
    anonymous.name = "k";
    anonymous.locs.clear();
    auto [it, fresh] = first.emplace(loop::print(anonymous), name);
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
