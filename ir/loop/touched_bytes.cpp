// See touched_bytes.h. Places within a period of a tensor's rows tell its parts along an inner axis
// apart; those within the whole storage, parts along the outermost one.
#include "ir/loop/touched_bytes.h"

#include <algorithm>

#include "ir/loop/step_access.h"

namespace backcast::loop {
namespace {

/// Sorted, and joined where they meet.
std::vector<Places> joined(std::vector<Places> places) {
  std::sort(places.begin(), places.end(),
            [](const Places& a, const Places& b) { return a.min < b.min; });
  std::vector<Places> result;
  for (const Places& next : places) {
    if (result.empty() || next.min > result.back().max + 1) {
      result.push_back(next);
    } else {
      result.back().max = std::max(result.back().max, next.max);
    }
  }
  return result;
}

/// Of sorted lists.
bool meet(const std::vector<Places>& a, const std::vector<Places>& b) {
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i].max < b[k].min) {
      ++i;
    } else if (b[k].max < a[i].min) {
      ++k;
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace

TouchedBytes::TouchedBytes(const Program& program, const Step& step, BufferId storage,
                           bool writes) {
  periods_.insert(0);
  const Buffer& buffer = program.buffer(storage);
  // Scheduled kernels have flat parameters.
  if (is_static(buffer.shape)) add_periods(buffer.shape, byte_size(buffer.element));
  if (step.kind == StepKind::copy) {
    const BufferId id = step.buffers[writes ? 1 : 0];
    if (program.owner(id) == storage) add_copied(program, id);
    return;
  }
  if (step.kind != StepKind::call) {
    is_known_ = false;
    return;
  }
  const Kernel& kernel = program.kernels.at(step.kernel);
  std::map<std::string, Access> parameters;
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    if (step.buffers[i] < 0 || program.owner(step.buffers[i]) != storage) continue;
    const BufferParam& param = kernel.buffers[i];
    if (param.mode == (writes ? AccessMode::read : AccessMode::write)) continue;
    const Dim begin = byte_offset(program, step.buffers[i]);
    if (!begin.is_constant() || !is_static(param.shape)) {
      is_known_ = false;
      return;
    }
    const int64_t size = byte_size(element_of(param.element));
    parameters[param.name] = {{}, begin.constant(), size};
    add_periods(param.shape, size);
  }
  affine_.emplace(kernel);
  affine_->visit(kernel.body, [&](const std::string& name, const AffineAccess& access) {
    const auto found = parameters.find(name);
    if (found == parameters.end() || access.is_store != writes) return;
    is_known_ = is_known_ && access.index.has_value();
    accesses_.push_back({access, found->second.begin, found->second.size});
  });
}

void TouchedBytes::add_copied(const Program& program, BufferId id) {
  const Buffer& buffer = program.buffer(id);
  const Dim begin = byte_offset(program, id);
  is_known_ = begin.is_constant() && is_static(buffer.shape);
  if (!is_known_) return;
  const int64_t bytes = program.storage_bytes(id);
  if (bytes > 0) whole_.push_back({begin.constant(), begin.constant() + bytes - 1});
}

void TouchedBytes::add_periods(const Dims& shape, int64_t size) {
  int64_t bytes = size;
  for (size_t d = shape.size(); d-- > 0;) {
    bytes *= shape[d].constant();
    if (bytes > 0) periods_.insert(bytes);
  }
}

std::optional<std::vector<Places>> TouchedBytes::find_places(int64_t period) const {
  std::vector<Places> result;
  for (const Places& bytes : whole_) {
    const std::optional<Places> within = within_period(bytes, period);
    if (!within) return std::nullopt;
    result.push_back(*within);
  }
  for (const Access& a : accesses_) {
    if (period % a.size != 0) return std::nullopt;
    std::optional<Places> elements = affine_->rest(a.access, period / a.size);
    if (!elements) return std::nullopt;
    const std::optional<Places> within = within_period(
        {a.begin + elements->min * a.size, a.begin + (elements->max + 1) * a.size - 1}, period);
    if (!within) return std::nullopt;
    result.push_back(*within);
  }
  return joined(std::move(result));
}

const std::optional<std::vector<Places>>& TouchedBytes::places(int64_t period) const {
  const auto found = found_.find(period);
  if (found != found_.end()) return found->second;
  return found_[period] = find_places(period);
}

bool TouchedBytes::is_apart_from(const TouchedBytes& other) const {
  if (!is_known_ || !other.is_known_) return false;
  std::set<int64_t> periods = periods_;
  periods.insert(other.periods_.begin(), other.periods_.end());
  return std::any_of(periods.begin(), periods.end(), [&](int64_t period) {
    const auto& mine = places(period);
    const auto& theirs = other.places(period);
    return mine && theirs && !meet(*mine, *theirs);
  });
}

}  // namespace backcast::loop
