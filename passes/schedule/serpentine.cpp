#include "passes/schedule/serpentine.h"

#include <map>
#include <set>

#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/independence.h"
#include "passes/schedule/outer_loops.h"

namespace backcast {
namespace {

using loop::BufferId;
using loop::Expr;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::StepKind;
using loop::Stmt;
using loop::StmtKind;

class Turning {
 public:
  Turning(const Program& program, const TargetInfo& target) : target_(target), result_(program) {}

  Program run() {
    for (loop::EntryPoint& entry : result_.entries) visit(entry.steps);
    loop::drop_uncalled(result_);
    return std::move(result_);
  }

 private:
  void visit(std::vector<Step>& steps) {
    for (Step& step : steps) {
      visit(step.body);
      visit(step.otherwise);
      if (step.kind == StepKind::loop) turn_calls(step);
    }
  }

  void turn_calls(Step& loop) {
    const std::set<BufferId> written = loop::written_buffers(result_, loop);
    const auto is_same = [&](BufferId id) {
      return !written.contains(result_.owner(id)) && !moves(id, loop.symbol);
    };
    std::set<BufferId> again;
    loop::for_each_call(loop.body, [&](const Step& call) {
      for (size_t i = 0; i < call.buffers.size(); ++i) {
        const bool reads = loop::operand_mode(result_, call, i) != loop::AccessMode::write;
        if (reads && is_same(call.buffers[i])) again.insert(result_.owner(call.buffers[i]));
      }
    });
    int64_t bytes = 0;
    for (const BufferId id : again) bytes += result_.storage_bytes(id);
    if (bytes <= target_.l2_bytes / 2) return;
    loop::for_each_call(loop.body, [&](Step& call) { turn(call, loop.symbol, is_same); });
  }

  /// Whether a view begins elsewhere in every trip.
  bool moves(BufferId id, const std::string& symbol) const {
    std::set<std::string> symbols;
    loop::byte_offset(result_, id).collect_symbols(symbols);
    return symbols.contains(symbol);
  }

  template <class IsSame>
  void turn(Step& call, const std::string& symbol, const IsSame& is_same) {
    // Less than this of the second cache comes back in no time.
    constexpr int64_t kPart = 16;
    const Kernel& kernel = result_.kernels.at(call.kernel);
    std::set<std::string> again;
    for (size_t i = 0; i < call.buffers.size(); ++i) {
      const BufferId id = call.buffers[i];
      const bool large = result_.storage_bytes(id) > target_.l2_bytes / kPart;
      const bool reads = kernel.buffers[i].mode == loop::AccessMode::read;
      if (large && reads && is_same(id)) again.insert(kernel.buffers[i].name);
    }
    if (again.empty() || turned_.contains(call.kernel)) return;
    const std::string name = turned(call, again);
    if (name.empty()) return;
    call.kernel = name;
    call.sizes.insert(call.sizes.end() - range_sizes(call), Dim::symbol(symbol));
  }

  /// Sizes that are a range of iterations.
  static int64_t range_sizes(const Step& call) { return call.grain > 0 ? 2 : 0; }

  /// The kernel that walks back in odd trips; empty where none of its loops can.
  std::string turned(const Step& call, const std::set<std::string>& again) {
    std::string key = call.kernel;
    for (const std::string& param : again) key += " " + param;
    const auto [known, is_new] = variants_.try_emplace(key);
    if (!is_new) return known->second;
    Kernel kernel = result_.kernels.at(call.kernel);
    const std::string trip = fresh_name(kernel, "trip");
    kernel.sizes.insert(kernel.sizes.end() - range_sizes(call), trip);
    const bool proved = call.grain > 0;  // all loops of a range are independent
    std::vector<Stmt> parts =
        kernel.body->kind == StmtKind::block ? kernel.body->body : std::vector<Stmt>{kernel.body};
    const std::string back = fresh_name(kernel, "back");
    bool any = false;
    for (Stmt& part : parts) {
      if (!walks_through(part, again)) continue;
      if (!proved && !(is_counted(part) && are_independent(kernel, {part}))) continue;
      part = in_turns(part, fresh_name(kernel, part->name + "_turn"), back);
      any = true;
    }
    if (!any) return "";
    const Expr odd = loop::binary(loop::Op::eq, loop::floor_mod(loop::var(trip), Expr(2)), Expr(1));
    parts.insert(parts.begin(), loop::let(back, odd));
    kernel.body = loop::block(parts);
    kernel.name = fresh_kernel(kernel.name + "_turns");
    turned_.insert(kernel.name);
    known->second = kernel.name;
    result_.kernels.emplace(kernel.name, kernel);
    return known->second;
  }

  /// A loop around loops whose iterations read different parts of one of these.
  static bool walks_through(const Stmt& stmt, const std::set<std::string>& params) {
    if (stmt->kind != StmtKind::for_loop || stmt->for_kind != loop::ForKind::serial) return false;
    bool nests = false, walks = false;
    loop::visit(
        stmt->body[0], [&](const Stmt& s) { nests = nests || s->kind == StmtKind::for_loop; },
        [&](const Expr& e) {
          walks = walks || (e->kind == loop::ExprKind::load && params.contains(e->name) &&
                            mentions(e->args[0], stmt->name));
        });
    return nests && walks;
  }

  static Stmt in_turns(const Stmt& stmt, const std::string& name, const std::string& back) {
    const Expr begin = stmt->exprs[0], extent = stmt->exprs[1], at = loop::var(name);
    const Expr other_end = begin + begin + extent - Expr(1) - at;
    const Expr odd = loop::var(back, loop::Type{loop::Scalar::boolean, 1});
    return loop::for_loop(
        name, begin, extent,
        loop::block({loop::let(stmt->name, loop::select(odd, other_end, at)), stmt->body[0]}));
  }

  std::string fresh_kernel(std::string name) const {
    while (result_.kernels.contains(name)) name += "_";
    return name;
  }

  const TargetInfo& target_;
  Program result_;
  std::map<std::string, std::string> variants_;  // by kernel and what it reads again
  std::set<std::string> turned_;
};

}  // namespace

Program serpentine(const Program& program, const TargetInfo& target) {
  return target.l2_bytes > 0 ? Turning(program, target).run() : program;
}

}  // namespace backcast
