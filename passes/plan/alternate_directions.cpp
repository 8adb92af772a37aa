// See alternate_directions.h.
#include "passes/plan/alternate_directions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/loop/step_access.h"
#include "passes/schedule/outer_loops.h"

namespace backcast {
namespace {

using loop::BufferId;
using loop::Program;

/// The kernels that can run backwards, so turned: no call gives them memory twice or cuts them.
class TurnedKernels {
 public:
  explicit TurnedKernels(const Program& program) : program_(program) {
    for (const loop::EntryPoint& entry : program.entries) {
      loop::for_each_call(entry.steps, [&](const loop::Step& step) {
        if (step.grain > 0 || is_overlaid(program, step)) fixed_.insert(step.kernel);
      });
    }
  }

  const std::optional<loop::Kernel>& find(const std::string& name) {
    const auto [found, is_new] = kernels_.try_emplace(name);
    if (is_new && !fixed_.contains(name)) found->second = reversed(program_.kernels.at(name));
    return found->second;
  }

 private:
  const Program& program_;
  std::set<std::string> fixed_;
  std::map<std::string, std::optional<loop::Kernel>> kernels_;
};

struct Turned {
  Program program;
  int64_t macs = 0;  // of calls that run backwards
};

Turned alternate(const Program& program, const std::vector<ReachingCall>& calls,
                 TurnedKernels& kernels, bool first_backwards) {
  Turned result{program, 0};
  std::map<std::string, bool> backwards;   // kernels
  std::map<BufferId, bool> is_written_so;  // by storage: backwards
  for (const ReachingCall& call : calls) {
    const auto before = is_written_so.find(call.read);
    const bool wanted = before == is_written_so.end() ? first_backwards : !before->second;
    const auto [turns, is_new] = backwards.try_emplace(call.kernel, wanted);
    if (is_new && wanted) {
      turns->second = kernels.find(call.kernel).has_value();
      if (turns->second) result.program.kernels.at(call.kernel) = *kernels.find(call.kernel);
    }
    if (turns->second) result.macs += program.kernels.at(call.kernel).macs;
    is_written_so[call.written] = turns->second;
  }
  return result;
}

}  // namespace

std::vector<Program> alternate_directions(const Program& program,
                                          const std::vector<ReachingCall>& calls) {
  std::set<BufferId> written;
  bool any_chain = false;
  for (const ReachingCall& call : calls) {
    any_chain = any_chain || written.contains(call.read);
    written.insert(call.written);
  }
  if (!any_chain) return {};
  TurnedKernels kernels(program);
  Turned one = alternate(program, calls, kernels, false);
  Turned other = alternate(program, calls, kernels, true);
  if (other.macs < one.macs) std::swap(one, other);
  return {std::move(one.program), std::move(other.program)};
}

}  // namespace backcast
