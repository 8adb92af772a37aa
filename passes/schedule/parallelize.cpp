// See parallelize.h. The outermost loops of a kernel, one behind the other, are one range: with
// offset o and n iterations, a loop does those of [begin, end) that lie in [o, o + n).
#include "passes/schedule/parallelize.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/schedule/independence.h"
#include "passes/schedule/outer_loops.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::Stmt;
using loop::StmtKind;

// What a call of a math function counts.
constexpr int64_t kCallWork = 16;
// Trips of a loop whose number is not constant.
constexpr int64_t kUnknownTrips = 4;

int64_t work_of(const Expr& expr) {
  int64_t work = 0;
  loop::visit(expr, [&](const Expr& e) {
    switch (e->kind) {
      case ExprKind::call:
        work += kCallWork * e.type().lanes;
        break;
      case ExprKind::unary:
      case ExprKind::binary:
      case ExprKind::fma:
      case ExprKind::load:
        work += e.type().scalar == loop::Scalar::index ? 0 : e.type().lanes;
        break;
      default:
        break;
    }
  });
  return work;
}

int64_t trips_of(const Expr& extent) {
  int64_t trips = 0;
  return loop::as_constant(extent, trips) ? trips : kUnknownTrips;
}

/// Half of a word's bits, where they are taken one by one (nonzero_steps.h).
int64_t trips_while(const Expr& condition) {
  if (condition->kind != ExprKind::binary || condition->op != loop::Op::ne) return kUnknownTrips;
  const loop::Scalar word = condition->args[0].type().scalar;
  return word == loop::Scalar::u64 ? 32 : word == loop::Scalar::u32 ? 16 : kUnknownTrips;
}

/// Operations on elements, lane by lane.
int64_t work_of(const Stmt& stmt) {
  if (!stmt) return 0;
  int64_t work = stmt->kind == StmtKind::store ? stmt->exprs[1].type().lanes : 0;
  for (const Expr& e : stmt->exprs) work += work_of(e);
  int64_t inside = 0;
  for (const Stmt& part : stmt->body) inside += work_of(part);
  const int64_t trips = stmt->kind == StmtKind::for_loop     ? trips_of(stmt->exprs[1])
                        : stmt->kind == StmtKind::while_loop ? trips_while(stmt->exprs[0])
                                                             : 1;
  return work + std::max<int64_t>(trips, 0) * inside;
}

/// A loop of few iterations and the one that is all of its body as a single loop, where the inner
/// one's iterations are independent as well; otherwise the loop itself.
Stmt collapsed(const Kernel& kernel, const Stmt& outer) {
  constexpr int64_t kFew = 8;
  const Stmt& inner = outer->body[0];
  if (extent_of(outer) >= kFew || !is_counted(inner) || !are_independent(kernel, {inner})) {
    return outer;
  }
  const int64_t each = extent_of(inner);
  const std::string name = fresh_name(kernel, outer->name + "_" + inner->name);
  const Expr at = loop::var(name);
  return loop::for_loop(
      name, Expr(0), Expr(extent_of(outer) * each),
      loop::block({loop::let(outer->name, outer->exprs[0] + loop::floor_div(at, Expr(each))),
                   loop::let(inner->name, inner->exprs[0] + loop::floor_mod(at, Expr(each))),
                   inner->body[0]}));
}

class Parallelizing {
 public:
  Parallelizing(const Program& program, const TargetInfo& target)
      : target_(target), result_(program) {}

  Program run() {
    if (target_.parallel_grain == 0) return std::move(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      loop::for_each_call(entry.steps, [&](Step& step) { calls_[step.kernel].push_back(&step); });
    }
    for (auto& [name, calls] : calls_) cut(result_.kernels.at(name), calls);
    return std::move(result_);
  }

 private:
  void cut(Kernel& kernel, const std::vector<Step*>& calls) {
    const int64_t work = work_of(kernel.body);
    if (work < 2 * target_.parallel_grain) return;
    std::vector<Stmt> loops = outer_loops(kernel);
    if (loops.empty()) return;
    int64_t iterations = 0;
    for (Stmt& stmt : loops) {
      stmt = collapsed(kernel, stmt);
      iterations += extent_of(stmt);
    }
    const int64_t each = std::max<int64_t>(work / iterations, 1);
    const int64_t grain = (target_.parallel_grain + each - 1) / each;
    if (iterations < 2 * grain) return;
    for (const Step* step : calls) {
      if (step->grain > 0 || is_overlaid(result_, *step)) return;
    }
    const std::string begin = fresh_name(kernel, "range_begin");
    const std::string end = fresh_name(kernel, "range_end");
    kernel.body = in_range(loops, loop::var(begin), loop::var(end), iterations);
    kernel.sizes.insert(kernel.sizes.end(), {begin, end});
    for (Step* step : calls) {
      step->sizes.insert(step->sizes.end(), {Dim(0), Dim(iterations)});
      step->grain = grain;
    }
  }

  static Stmt in_range(const std::vector<Stmt>& loops, const Expr& begin, const Expr& end,
                       int64_t iterations) {
    std::vector<Stmt> parts;
    int64_t offset = 0;
    for (const Stmt& stmt : loops) {
      const int64_t extent = extent_of(stmt);
      const auto inside = [&](const Expr& bound) {
        Expr at = bound - Expr(offset);
        if (offset > 0) at = loop::max(at, Expr(0));
        return offset + extent < iterations ? loop::min(at, Expr(extent)) : at;
      };
      const Expr first = inside(begin);
      parts.push_back(
          loop::for_loop(stmt->name, stmt->exprs[0] + first, inside(end) - first, stmt->body[0]));
      offset += extent;
    }
    return loop::block(parts);
  }

  const TargetInfo& target_;
  Program result_;
  std::map<std::string, std::vector<Step*>> calls_;  // of result_, by kernel
};

}  // namespace

Program parallelize(const Program& program, const TargetInfo& target) {
  return Parallelizing(program, target).run();
}

}  // namespace backcast
