// Sequences of tensors, as long as import can tell how many there are and which one is meant. In
// the graph they are tuples, of which nothing is left once their elements have been taken out.
#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

using Elements = std::vector<ValueId>;

constexpr int64_t kMaxElements = 4096;

/// The place that input i names among `count`, from the end where it is negative; with `or_end`
/// also the one behind the last.
size_t place(const NodeContext& n, size_t i, size_t count, bool or_end = false) {
  const int64_t total = static_cast<int64_t>(count);
  const int64_t given = n.index(i);
  const int64_t at = given < 0 ? given + total : given;
  if (at < 0 || at >= total + (or_end ? 1 : 0)) {
    n.fail(fmt::format("input {} (\"{}\") is {}, and the sequence has {} elements", i,
                       n.input_name(i), given, count));
  }
  return static_cast<size_t>(at);
}

void empty(NodeContext& n) { n.result(n.e.tuple({})); }

void construct(NodeContext& n) { n.result(n.e.tuple(n.all_inputs())); }

void insert(NodeContext& n) {
  Elements elements = n.elements(0);
  const size_t count = elements.size();
  const size_t at = n.has(2) ? place(n, 2, count, true) : count;
  elements.insert(elements.begin() + static_cast<int64_t>(at), n.input(1));
  n.result(n.e.tuple(elements));
}

void erase(NodeContext& n) {
  Elements elements = n.elements(0);
  if (elements.empty()) n.fail("the sequence is empty");
  const size_t at = n.has(1) ? place(n, 1, elements.size()) : elements.size() - 1;
  elements.erase(elements.begin() + static_cast<int64_t>(at));
  n.result(n.e.tuple(elements));
}

/// Equal tensors side by side along a new axis.
ValueId stacked(NodeContext& n, const Elements& elements, int64_t axis) {
  Elements rows;
  for (const ValueId id : elements) rows.push_back(n.e.unsqueeze(id, axis));
  return n.e.concat(rows, axis);
}

void at(NodeContext& n) {
  const Elements elements = n.elements(0);
  if (elements.empty()) n.fail("the sequence is empty");
  if (n.known_dims(1)) return n.result(elements[place(n, 1, elements.size())]);
  const ValueId rows = stacked(n, elements, 0);  // refuses those of different shapes
  const ValueId which = n.e.reshape(n.input(1), {});
  n.result(n.e.take(rows, n.e.wrap_negative(which, n.e.extent(rows, 0)), 0));
}

void length(NodeContext& n) { n.result(n.e.integer(static_cast<int64_t>(n.elements(0).size()))); }

/// Parts of a size, the last one smaller where it does not divide the axis; parts of given sizes;
/// or single places of the axis, which they need not keep.
void split(NodeContext& n) {
  const int64_t axis = n.attr_axis("axis", 0, n.rank(0));
  const Dim extent = n.shape(0)[static_cast<size_t>(axis)];
  Dims sizes;
  if (n.has(1) && n.rank(1) == 1) {
    sizes = n.dims(1);
  } else {
    const int64_t each = n.has(1) ? n.index(1) : 1;
    if (each < 1) n.fail(fmt::format("parts of {} places", each));
    if (!extent.is_constant()) {
      n.fail(
          fmt::format("the axis has the extent {}, and so only run time knows the number of "
                      "parts; bind it with --dim",
                      extent.to_string()));
    }
    if ((extent.constant() - 1) / each >= kMaxElements) {
      n.fail(fmt::format("{} parts of an axis of {}; at most {} can be followed one by one",
                         (extent.constant() - 1) / each + 1, extent.constant(), kMaxElements));
    }
    for (int64_t start = 0; start < extent.constant(); start += each) {
      sizes.push_back(Dim(std::min(each, extent.constant() - start)));
    }
  }
  Elements parts = parts_of(n, axis, sizes);
  const bool keeps = n.has(1) || n.attr_int("keepdims", 1) != 0;
  for (ValueId& part : parts) {
    Shape shape = n.e.shape(part);
    shape.erase(shape.begin() + axis);
    if (!keeps) part = n.e.reshape(part, shape);
  }
  n.result(n.e.tuple(parts));
}

void concatenate(NodeContext& n) {
  const Elements elements = n.elements(0);
  if (elements.empty()) n.fail("the sequence is empty");
  if (!n.has_attr("axis")) n.fail("attribute \"axis\" is missing");
  const bool new_axis = n.attr_int("new_axis", 0) != 0;
  const int64_t axis = n.attr_axis("axis", 0, n.e.rank(elements[0]) + (new_axis ? 1 : 0));
  n.result(new_axis ? stacked(n, elements, axis) : n.e.concat(elements, axis));
}

constexpr int64_t kNew = kNewestOpset;

OperatorRule row(std::string_view name, int64_t min_inputs, int64_t max_inputs,
                 void (*import)(NodeContext&), std::string_view attributes = "") {
  OperatorRule rule{name, 11, kNew, min_inputs, max_inputs, import, attributes};
  rule.sequences = true;
  return rule;
}

const OperatorRule kRules[] = {
    row("SequenceEmpty", 0, 0, empty, "dtype:i"),
    row("SequenceConstruct", 1, -1, construct),
    row("SequenceInsert", 2, 3, insert),
    row("SequenceErase", 1, 2, erase),
    row("SequenceAt", 2, 2, at),
    row("SequenceLength", 1, 1, length),
    row("SplitToSequence", 1, 2, split, "axis:i keepdims:i"),
    row("ConcatFromSequence", 1, 1, concatenate, "axis:i new_axis:i"),
};

}  // namespace

std::span<const OperatorRule> sequence_rules() { return kRules; }

}  // namespace backcast
