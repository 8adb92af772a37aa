#include "ir/loop/instruction_counts.h"

#include <algorithm>
#include <map>
#include <string>

#include "ir/loop/bounds.h"

namespace backcast::loop {
namespace {

constexpr int64_t kLoop = 4;  // counter, comparison, jump, a pointer
constexpr int64_t kCall = 8;  // arguments
constexpr int64_t kCopiedBytes = 4;
constexpr int64_t kWhileTrips = 16;  // over the bits of a word, half of which are set

/// Whether an instruction does this and what its operand is: adds the products of words, or takes
/// every other byte of a word.
bool is_one_with(const Expr& e, const Expr& arg) {
  if (e->kind != ExprKind::binary || arg->kind != ExprKind::binary) return false;
  const bool is_integer = loop::is_integer(e->type.scalar);
  if (e->op == Op::add) return is_integer && (is_word_product(arg->op) || arg->op == Op::mul);
  return e->op == Op::bit_and && is_integer && arg->op == Op::shr;
}

int64_t size_of(const Expr& e) {
  switch (e->kind) {
    case ExprKind::constant:
    case ExprKind::var:
      return 0;
    case ExprKind::load:
      return 1;  // addresses are kept or folded
    default:
      break;
  }
  int64_t sum = e->type.scalar == Scalar::index ? 0 : 1;
  for (const Expr& arg : e->args) sum += size_of(arg) - (is_one_with(e, arg) ? 1 : 0);
  return sum;
}

InstructionCounts& operator+=(InstructionCounts& a, const InstructionCounts& b) {
  a.code += b.code;
  a.executed += b.executed;
  return a;
}

class Counting {
 public:
  explicit Counting(const SymbolRanges& symbols) {
    for (const auto& [name, range] : symbols) known_.bind(name, {range.min, range.max});
  }

  InstructionCounts of(const Stmt& stmt) {
    if (stmt->kind == StmtKind::for_loop) return of_loop(*stmt);
    InstructionCounts sum;
    for (const Stmt& s : stmt->body) sum += of(s);
    int64_t own = 0;
    switch (stmt->kind) {
      case StmtKind::while_loop:
        own = kLoop + size_of(stmt->exprs[0]);
        return {sum.code + own, (sum.executed + own) * kWhileTrips};
      case StmtKind::store:
        own = 1 + size_of(stmt->exprs[1]);
        break;
      case StmtKind::let:
        own = size_of(stmt->exprs[0]);
        if (stmt->exprs[0]->type.scalar == Scalar::index) {
          known_.bind_equal(stmt->name, stmt->exprs[0]);
        }
        break;
      case StmtKind::if_branch:
        own = 1 + size_of(stmt->exprs[0]);
        break;
      default:
        break;
    }
    return {sum.code + own, sum.executed + own};
  }

 private:
  InstructionCounts of_loop(const StmtNode& loop) {
    const Interval extent = known_.range(loop.exprs[1]);
    const int64_t trips = extent.max == INT64_MAX ? 1 : std::max<int64_t>(extent.max, 0);
    known_.bind_loop(loop.name, loop.exprs[0], loop.exprs[1]);
    const InstructionCounts body = of(loop.body[0]);
    known_.unbind(loop.name);
    if (loop.for_kind == ForKind::unrolled) return {body.code * trips, body.executed * trips};
    return {body.code + kLoop, (body.executed + kLoop) * trips};
  }

  Knowledge known_;
};

/// Of what a kernel executes with these sizes.
class KernelCounts {
 public:
  explicit KernelCounts(const Program& program) : program_(program) {}

  const InstructionCounts& of(const std::string& name, const std::vector<Dim>& sizes = {}) {
    std::string key = name;
    for (const Dim& size : sizes) key += " " + size.to_string();
    const auto [found, fresh] = counts_.try_emplace(key);
    if (!fresh) return found->second;
    const Kernel& kernel = program_.kernels.at(name);
    SymbolRanges symbols = program_.symbols;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!sizes[i].is_constant()) continue;
      symbols[kernel.sizes[i]] = {sizes[i].constant(), sizes[i].constant()};
    }
    return found->second = Counting(symbols).of(kernel.body);
  }

 private:
  const Program& program_;
  std::map<std::string, InstructionCounts> counts_;
};

InstructionCounts counts(const Program& program, KernelCounts& kernels,
                         const std::vector<Step>& steps) {
  InstructionCounts sum;
  for (const Step& step : steps) {
    InstructionCounts own{kCall, kCall};
    own += counts(program, kernels, step.body);
    own += counts(program, kernels, step.otherwise);
    if (step.kind == StepKind::call) {
      own.executed += kernels.of(step.kernel, step.sizes).executed;
    }
    if (step.kind == StepKind::copy) {
      own.executed += 2 * program.storage_bytes(step.buffers[1]) / kCopiedBytes;
    }
    if (step.kind == StepKind::loop && step.count.is_constant()) {
      own.executed *= step.count.constant();
    }
    sum += own;
  }
  return sum;
}

}  // namespace

InstructionCounts instruction_counts(const Program& program) {
  KernelCounts kernels(program);
  InstructionCounts sum;
  for (const auto& [name, kernel] : program.kernels) sum.code += kCall + kernels.of(name).code;
  for (const EntryPoint& entry : program.entries) sum += counts(program, kernels, entry.steps);
  return sum;
}

}  // namespace backcast::loop
