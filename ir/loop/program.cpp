// Sizes and views of buffers.
#include "ir/loop/program.h"

#include <algorithm>

#include "ir/graph/error.h"

namespace backcast::loop {

Dims model_shape(const Buffer& buffer) {
  Dims shape = buffer.shape;
  for (size_t i = 0; i < buffer.order.size(); ++i) {
    shape[static_cast<size_t>(buffer.order[i])] = buffer.shape[i];
  }
  return shape;
}

int64_t Program::storage_bytes(BufferId id) const {
  const Buffer& b = buffer(id);
  // The largest product, which need not be the product of the largest extents.
  Dim count = 1;
  for (const Dim& extent : b.shape) count = count * extent;
  int64_t largest = 1;
  for (const Dim& extent : b.shape) {
    const int64_t most = extent.range(symbols).max;
    if (__builtin_mul_overflow(largest, most, &largest)) largest = INT64_MAX;
  }
  const int64_t elements = std::min(largest, count.range(symbols).max);
  int64_t bytes = 0;
  if (elements == INT64_MAX || __builtin_mul_overflow(elements, byte_size(b.element), &bytes)) {
    throw CompileError(b.loc, "buffer " + b.name + " has no bound; give its symbols ranges");
  }
  return bytes;
}

BufferId Program::owner(BufferId id) const {
  // A chain of views is at most as long as there are buffers.
  for (size_t steps = 0; steps <= buffers.size(); ++steps) {
    const int32_t next = buffer(id).view_of;
    if (next < 0) return id;
    id = next;
  }
  BC_CHECK(false, "buffer {} is a view of itself", buffer(id).name);
  return id;
}

void Program::update_view_classes() {
  for (size_t i = 0; i < buffers.size(); ++i) {
    buffers[i].kind = buffer(owner(static_cast<BufferId>(i))).kind;
  }
}

std::vector<BufferId> Program::states() const {
  std::vector<BufferId> ids;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    if (b.kind == BufferClass::state && b.view_of < 0) ids.push_back(static_cast<BufferId>(i));
  }
  const auto rank = [&](BufferId id) {
    const StateRole role = buffer(id).role;
    return role == StateRole::parameter ? 0 : role == StateRole::statistic ? 1 : 2;
  };
  std::stable_sort(ids.begin(), ids.end(),
                   [&](BufferId a, BufferId b) { return rank(a) < rank(b); });
  return ids;
}

}  // namespace backcast::loop
