// See overlap.h. The walk goes through a kernel's accesses in order and keeps the bounds of what
// has been written; every read behind it asks for a distance. Indices are intervals: of one value
// for the variables of loops that are walked through, of all values for the others.
#include "ir/loop/overlap.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "ir/loop/integer_fold.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"

namespace backcast::loop {
namespace {

// Nodes of expressions visited per kernel, about.
constexpr int64_t kWork = 400'000;

struct Interval {
  int64_t min = INT64_MIN, max = INT64_MAX;
  bool is_known() const { return min != INT64_MIN && max != INT64_MAX; }
  bool is_point() const { return is_known() && min == max; }
};

Interval product(const Interval& a, const Interval& b) {
  if (!a.is_known() || !b.is_known()) return {};
  const auto [least, most] =
      std::minmax({a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max});
  return {least, most};
}

Interval sum(const Interval& a, const Interval& b) {
  if (!a.is_known() || !b.is_known()) return {};
  return {a.min + b.min, a.max + b.max};
}

Interval operation(Op op, const Interval& a, const Interval& b) {
  switch (op) {
    case Op::add:
      return sum(a, b);
    case Op::sub:
      return b.is_known() ? sum(a, {-b.max, -b.min}) : Interval{};
    case Op::mul:
      return product(a, b);
    case Op::min:
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case Op::max:
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case Op::floor_div:
      if (!a.is_known() || !b.is_point() || b.min <= 0) return {};
      return {floor_div_int(a.min, b.min), floor_div_int(a.max, b.min)};
    case Op::floor_mod:
      if (!b.is_point() || b.min <= 0) return {};
      if (a.is_point()) return {floor_mod_int(a.min, b.min), floor_mod_int(a.min, b.min)};
      return {0, b.min - 1};
    default:
      return {};
  }
}

/// A storage as a kernel reaches it.
struct Storage {
  struct View {
    int64_t begin = 0;    // of the parameter, in bytes from the start of the storage
    int64_t element = 1;  // bytes
  };
  int64_t bytes = 0;
  std::map<std::string, View> views;  // by parameter

  /// The bytes [min, max) of an access to elements `at` and `lanes` - 1 behind each.
  Interval range(const std::string& parameter, const Interval& at, int64_t lanes) const {
    const View& view = views.at(parameter);
    const int64_t least = at.is_known() ? view.begin + at.min * view.element : 0;
    const int64_t most = at.is_known() ? view.begin + (at.max + lanes) * view.element : bytes;
    return {std::max<int64_t>(least, 0), std::min(most, bytes)};
  }
};

class DistanceWalk {
 public:
  DistanceWalk(const Kernel& kernel, const Storage& read, const Storage& written)
      : kernel_(kernel), read_(read), written_(written) {}

  std::optional<OverlapDistance> run() {
    measure(kernel_.body);
    walk(kernel_.body, 1);
    if (has_definition_) return {};
    return OverlapDistance{std::min(distance_.read_above, written_.bytes),
                           std::min(distance_.written_above, read_.bytes)};
  }

 private:
  struct Size {
    int64_t nodes = 0;
    bool writes = false;
  };

  Size measure(const Stmt& stmt) {
    if (!stmt) return {};
    Size size{1, stmt->kind == StmtKind::store && written_.views.contains(stmt->name)};
    has_definition_ = has_definition_ || stmt->kind == StmtKind::define;
    for (const Expr& e : stmt->exprs) size.nodes += nodes_of(e);
    for (const Stmt& inner : stmt->body) {
      const Size part = measure(inner);
      size.nodes += part.nodes;
      size.writes = size.writes || part.writes;
    }
    sizes_[stmt.get()] = size;
    return size;
  }

  static int64_t nodes_of(const Expr& e) {
    int64_t nodes = 1;
    for (const Expr& a : e->args) nodes += nodes_of(a);
    return nodes;
  }

  /// In order; `times` is how often the loops around have this statement walked.
  void walk(const Stmt& stmt, int64_t times) {
    if (!stmt || has_definition_) return;
    if (stmt->kind == StmtKind::for_loop) return walk_loop(stmt, times);
    if (stmt->kind == StmtKind::while_loop) return take_as_one(stmt);
    visit_own(stmt);
    for (const Stmt& inner : stmt->body) walk(inner, times);
  }

  void walk_loop(const Stmt& stmt, int64_t times) {
    const Interval begin = range(stmt->exprs[0]), extent = range(stmt->exprs[1]);
    const Size size = sizes_.at(stmt.get());
    const bool in_order = stmt->for_kind == ForKind::serial || stmt->for_kind == ForKind::unrolled;
    const bool is_known = begin.is_point() && extent.is_point();
    // In doubles, since a product of extents may be larger than any integer.
    const double work = static_cast<double>(times) * static_cast<double>(extent.max) *
                        static_cast<double>(size.nodes);
    if (!size.writes || !in_order || !is_known || work > static_cast<double>(kWork)) {
      return take_as_one(stmt);
    }
    for (int64_t i = 0; i < extent.max; ++i) {
      variables_[stmt->name] = {begin.min + i, begin.min + i};
      for (const Stmt& inner : stmt->body) walk(inner, times * extent.max);
    }
  }

  /// Everything below counts as written first and read afterwards.
  void take_as_one(const Stmt& stmt) {
    as_one_ = true;
    all_reads_ = {INT64_MAX, INT64_MIN};
    collect(stmt);
    as_one_ = false;
    if (all_reads_.min < all_reads_.max) ask_for(all_reads_);
  }

  void collect(const Stmt& stmt) {
    if (!stmt) return;
    if (stmt->kind == StmtKind::for_loop) {
      const Interval begin = range(stmt->exprs[0]), extent = range(stmt->exprs[1]);
      const bool is_known = begin.is_known() && extent.is_known();
      if (is_known && extent.max <= 0) return;
      variables_[stmt->name] =
          is_known ? Interval{begin.min, begin.max + extent.max - 1} : Interval{};
    }
    visit_own(stmt);
    for (const Stmt& inner : stmt->body) collect(inner);
  }

  /// What a statement reads, then what it writes, without its body.
  void visit_own(const Stmt& stmt) {
    for (const Expr& e : stmt->exprs) visit_reads(e);
    if (stmt->kind == StmtKind::let) {
      const Type& type = stmt->exprs[0].type();
      variables_[stmt->name] = type.scalar == Scalar::index ? range(stmt->exprs[0]) : Interval{};
    }
    if (stmt->kind != StmtKind::store || !written_.views.contains(stmt->name)) return;
    const Expr& index = stmt->exprs[0];
    const int64_t lanes = index.type().is_vector() ? 1 : stmt->exprs[1].type().lanes;
    const Interval bytes = written_.range(stmt->name, range(index), lanes);
    so_far_ = {std::min(so_far_.min, bytes.min), std::max(so_far_.max, bytes.max)};
  }

  void visit_reads(const Expr& e) {
    for (const Expr& a : e->args) visit_reads(a);
    if (e->kind != ExprKind::load || !read_.views.contains(e->name)) return;
    const int64_t lanes = e->args[0].type().is_vector() ? 1 : e.type().lanes;
    const Interval bytes = read_.range(e->name, range(e->args[0]), lanes);
    if (as_one_) {
      all_reads_ = {std::min(all_reads_.min, bytes.min), std::max(all_reads_.max, bytes.max)};
    } else {
      ask_for(bytes);
    }
  }

  /// What is read now lies above or below all that has been written.
  void ask_for(const Interval& bytes) {
    if (so_far_.min >= so_far_.max) return;
    distance_.read_above = std::max(distance_.read_above, so_far_.max - bytes.min);
    distance_.written_above = std::max(distance_.written_above, bytes.max - so_far_.min);
  }

  Interval range(const Expr& e) const {
    switch (e->kind) {
      case ExprKind::constant:
        return {e->int_value, e->int_value};
      case ExprKind::var: {
        const auto found = variables_.find(e->name);
        return found == variables_.end() ? Interval{} : found->second;
      }
      case ExprKind::binary:
        return operation(e->op, range(e->args[0]), range(e->args[1]));
      case ExprKind::select:
      case ExprKind::if_then_else: {
        const Interval a = range(e->args[1]), b = range(e->args[2]);
        return {std::min(a.min, b.min), std::max(a.max, b.max)};
      }
      case ExprKind::broadcast:
        return range(e->args[0]);
      case ExprKind::cast:
        return counted(e->args[0]);
      case ExprKind::ramp: {
        const Interval lanes{0, e->type.lanes - 1};
        return sum(range(e->args[0]), product(range(e->args[1]), lanes));
      }
      default:
        return {};
    }
  }

  /// Of a number that becomes an index.
  static Interval counted(const Expr& e) {
    if (e->kind != ExprKind::unary || e->op != Op::trailing_zeros) return {};
    return {0, 8 * byte_size(element_of(e.type().scalar)) - 1};  // never of zero
  }

  const Kernel& kernel_;
  const Storage& read_;
  const Storage& written_;
  std::unordered_map<const StmtNode*, Size> sizes_;
  std::unordered_map<std::string, Interval> variables_;
  bool has_definition_ = false, as_one_ = false;
  Interval all_reads_;                        // of what counts as one; bytes [min, max)
  Interval so_far_ = {INT64_MAX, INT64_MIN};  // all that has been written; bytes [min, max)
  OverlapDistance distance_ = {INT64_MIN / 2, INT64_MIN / 2};  // asked for so far
};

/// The storage as the step's parameters see it; empty where one of them does not in this mode, or
/// sizes or places are symbolic.
std::optional<Storage> storage_of(const Program& program, const Step& step, BufferId id,
                                  AccessMode mode) {
  const Kernel& kernel = program.kernels.at(step.kernel);
  Storage storage{program.storage_bytes(id), {}};
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    if (program.owner(step.buffers[i]) != id) continue;
    const BufferParam& param = kernel.buffers[i];
    const Dim begin = byte_offset(program, step.buffers[i]);
    if (param.mode != mode || !begin.is_constant() || !is_static(param.shape)) return {};
    storage.views[param.name] = {begin.constant(), byte_size(element_of(param.element))};
  }
  return storage;
}

/// The kernel as the step calls it, where that passes nothing but constants.
std::optional<Kernel> with_sizes(Kernel kernel, const Step& step) {
  std::map<std::string, Expr> values;
  for (size_t i = 0; i < step.sizes.size(); ++i) {
    if (!step.sizes[i].is_constant()) return {};
    values[kernel.sizes[i]] = Expr(step.sizes[i].constant());
  }
  kernel.body = simplify(substitute(kernel.body, values));
  kernel.sizes.clear();
  return kernel;
}

}  // namespace

std::optional<OverlapDistance> overlap_distance(const Program& program, const Step& step,
                                                BufferId read, BufferId written) {
  if (step.kind != StepKind::call || step.grain != 0) return {};
  const Kernel& kernel = program.kernels.at(step.kernel);
  if (!kernel.body) return {};
  const std::optional<Storage> from = storage_of(program, step, read, AccessMode::read);
  const std::optional<Storage> to = storage_of(program, step, written, AccessMode::write);
  if (!from || !to || from->views.empty() || to->views.size() != 1) return {};
  if (kernel.sizes.empty()) return DistanceWalk(kernel, *from, *to).run();
  const std::optional<Kernel> told = with_sizes(kernel, step);
  return told ? DistanceWalk(*told, *from, *to).run() : std::nullopt;
}

namespace {

/// Whether a loop that holds step `at` also holds all of the range, its own number included.
bool loop_keeps(const std::vector<Step>& steps, int64_t number, const LiveRange& range,
                int64_t at) {
  for (const Step& step : steps) {
    const int64_t end = number + count_steps(step);
    if (at > number && at < end) {
      if (step.kind == StepKind::loop && range.first <= number) return true;
      int64_t otherwise = number + 1;
      for (const Step& inner : step.body) otherwise += count_steps(inner);
      return loop_keeps(step.body, number + 1, range, at) ||
             loop_keeps(step.otherwise, otherwise, range, at);
    }
    number = end;
  }
  return false;
}

}  // namespace

bool ends_at(const EntryPoint& entry, const LiveRange& range, int64_t at) {
  return range.last == at && !loop_keeps(entry.steps, 0, range, at);
}

}  // namespace backcast::loop
