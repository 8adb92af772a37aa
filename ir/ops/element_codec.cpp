// Allocation of results, with a limit: attributes may come from text that nobody has checked.
#include "ir/ops/element_codec.h"

#include "ir/ops/shape_rules.h"

namespace backcast::ops {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 32;

}  // namespace

int64_t checked_element_count(ElementType element, const std::vector<int64_t>& shape) {
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) fail("the result has a negative extent, {}", extent);
    empty |= extent == 0;
  }
  if (empty) return 0;
  const int64_t limit = kMaxBytes / byte_size(element);
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent > limit / count) {
      fail("a result of {} elements of {} is too large to evaluate",
           to_string(Shape(shape.begin(), shape.end())), name_of(element));
    }
    count *= extent;
  }
  return count;
}

ResultBuffer::ResultBuffer(ElementType element, std::vector<int64_t> shape)
    : element_(element), shape_(std::move(shape)) {
  const int64_t count = checked_element_count(element_, shape_);
  bytes_.resize(static_cast<size_t>(count * byte_size(element_)));
}

}  // namespace backcast::ops
