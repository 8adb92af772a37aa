// See verify_reads.h.
#include "ir/loop/verify_reads.h"

#include <set>

#include "ir/graph/error.h"
#include "ir/loop/step_access.h"
#include "ir/loop/verify_kernel.h"
#include "ir/loop/visit.h"

namespace backcast::loop {
std::set<std::string> read_first(const Kernel& kernel) {
  std::set<std::string> stored, reads;
  std::vector<std::string> storing;  // by the statement looked at, after it has read
  visit(
      kernel.body,
      [&](const Stmt& s) {
        stored.insert(storing.begin(), storing.end());
        storing.clear();
        if (s->kind == StmtKind::store) storing.push_back(s->name);
        if (s->kind != StmtKind::define) return;
        for (const DefinitionOutput& output : s->definition->outputs) {
          storing.push_back(output.buffer);
        }
      },
      [&](const Expr& e) {
        const bool is_read = e->kind == ExprKind::load || e->kind == ExprKind::access;
        if (is_read && !stored.contains(e->name)) reads.insert(e->name);
      });
  return reads;
}

namespace {

class ReadChecker {
 public:
  ReadChecker(const Program& program,
              const std::map<std::string, std::set<std::string>>& read_first,
              std::string_view after)
      : program_(program), after_(after), read_first_(read_first) {}

  void run() {
    for (const EntryPoint& entry : program_.entries) {
      written_.clear();
      check(entry, entry.steps);
    }
  }

 private:
  void check(const EntryPoint& entry, const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      for (size_t i = 0; i < step.buffers.size(); ++i) {
        if (step.buffers[i] >= 0 && reads(step, i)) check_written(entry, step, step.buffers[i]);
      }
      // A loop that makes no trip leaves nothing to read: what it writes counts.
      check(entry, step.body);
      check(entry, step.otherwise);
      written_.merge(written_buffers(program_, step));
    }
  }

  bool reads(const Step& step, size_t i) const {
    if (operand_mode(program_, step, i) == AccessMode::write) return false;
    if (step.kind != StepKind::call) return true;
    const Kernel& kernel = program_.kernels.at(step.kernel);
    return read_first_.at(step.kernel).contains(kernel.buffers[i].name);
  }

  void check_written(const EntryPoint& entry, const Step& step, BufferId id) const {
    const BufferId owner = program_.owner(id);
    const BufferClass kind = program_.buffer(owner).kind;
    const bool is_given = kind != BufferClass::arena && kind != BufferClass::output;
    if (is_given || written_.contains(owner) || program_.storage_bytes(id) == 0) return;
    const std::string reader = step.kind == StepKind::call ? "a call of " + step.kernel : "a step";
    verification_error(after_, "program " + program_.name,
                       fmt::format("entry {}: {} reads buffer {} before any step writes it",
                                   entry.name, reader, program_.buffer(id).name));
  }

  const Program& program_;
  std::string_view after_;
  const std::map<std::string, std::set<std::string>>& read_first_;  // by kernel
  std::set<BufferId> written_;  // owners, by the steps seen so far
};

}  // namespace

void verify_reads(const Program& program,
                  const std::map<std::string, std::set<std::string>>& read_first,
                  std::string_view after) {
  ReadChecker(program, read_first, after).run();
}

}  // namespace backcast::loop
