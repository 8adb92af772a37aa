// See stream_feed.h.
#include "driver/stream_feed.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/error.h"
#include "ir/ops/narrow.h"
#include "ir/ops/rows_along.h"

namespace backcast {
namespace {

/// Positions outside of the whole repeat those at its ends: nobody asks for what becomes of them.
Literal slice(const Literal& whole, int64_t axis, int64_t first, int64_t count) {
  const int64_t extent = whole.shape()[static_cast<size_t>(axis)];
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) {
    indices.push_back(std::clamp<int64_t>(first + i, 0, extent - 1));
  }
  return keep_indices(whole, {{axis, indices}});
}

Literal join(const std::vector<Literal>& parts, int64_t axis) {
  std::vector<int64_t> shape = parts[0].shape();
  int64_t& extent = shape[static_cast<size_t>(axis)];
  extent = 0;
  for (const Literal& part : parts) extent += part.shape()[static_cast<size_t>(axis)];
  std::vector<std::byte> bytes;
  const ops::RowsAlong rows(shape, axis);
  for (int64_t outer = 0; outer < rows.outer; ++outer) {
    for (const Literal& part : parts) {
      const size_t run = part.bytes().size() / static_cast<size_t>(rows.outer);
      const std::byte* begin = part.bytes().data() + static_cast<size_t>(outer) * run;
      bytes.insert(bytes.end(), begin, begin + run);
    }
  }
  return Literal(parts[0].element(), std::move(shape), std::move(bytes));
}

}  // namespace

StreamFeed::StreamFeed(const StreamNotes& notes, std::vector<Literal> inputs)
    : notes_(notes), inputs_(std::move(inputs)) {
  const auto is_latest = [](const StreamNotes::Tensor& output) { return output.axis < 0; };
  const bool stretch = std::ranges::any_of(notes_.outputs, is_latest);
  bool found = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const StreamNotes::Tensor& input = notes_.inputs[i];
    if (input.axis < 0) continue;
    const int64_t extent = inputs_[i].shape()[static_cast<size_t>(input.axis)];
    const int64_t calls = stretch ? notes_.first_call : extent / input.count;
    calls_ = found ? std::min(calls_, calls) : calls;
    if (found || !stretch) continue;
    found = true;
    lead_ = calls_ * input.count - notes_.stretch;
    const bool follows = std::ranges::all_of(notes_.outputs, is_latest) && notes_.exact;
    if (lead_ > 0 && !follows) {
      throw CompileError(fmt::format(
          "\"{}\" has {} positions, of which calls of {} begin none with the first one while its "
          "last one is there; choose another --hop",
          input.name, extent, input.count));
    }
  }
}

std::vector<Literal> StreamFeed::inputs(int64_t call) const {
  std::vector<Literal> pieces;
  const StreamNotes::Tensor* first = nullptr;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const StreamNotes::Tensor& input = notes_.inputs[i];
    if (input.axis >= 0 && first == nullptr) first = &input;
    if (input.axis < 0) {
      pieces.push_back(inputs_[i]);
    } else {
      const int64_t lead = lead_ * input.count / first->count;
      pieces.push_back(slice(inputs_[i], input.axis, call * input.count - lead, input.count));
    }
  }
  return pieces;
}

int64_t StreamFeed::given_of(const StreamNotes::Tensor& output) const {
  return std::min(calls_ * output.count - output.delay, output.extent);
}

std::vector<Literal> StreamFeed::joined(const std::vector<std::vector<Literal>>& outputs) const {
  std::vector<Literal> results;
  for (size_t i = 0; i < notes_.outputs.size(); ++i) {
    const StreamNotes::Tensor& output = notes_.outputs[i];
    if (output.axis < 0) {
      results.push_back(outputs.back()[i]);
      continue;
    }
    std::vector<Literal> parts;
    for (const std::vector<Literal>& call : outputs) parts.push_back(call[i]);
    results.push_back(slice(join(parts, output.axis), output.axis, output.delay, given_of(output)));
  }
  return results;
}

std::vector<Literal> StreamFeed::given(const std::vector<Literal>& whole) const {
  std::vector<Literal> results = whole;
  for (size_t i = 0; i < notes_.outputs.size(); ++i) {
    const StreamNotes::Tensor& output = notes_.outputs[i];
    if (output.axis < 0) continue;
    results[i] = slice(whole[i], output.axis, 0, given_of(output));
  }
  return results;
}

}  // namespace backcast
