// GroupQueryAttention beyond tests/models/fused_decoder. Expected values are those of ONNX Runtime
// 1.32 without optimisation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/frontend/contrib_node.h"

namespace backcast {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Quarters on a sine wave.
Operand wave(const Extents& shape, double step) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  Values values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(std::nearbyint(std::sin(static_cast<double>(i) * step) * 4) / 4);
  }
  return f32(shape, values);
}

std::vector<OnnxAttribute> heads(int64_t all, int64_t groups) {
  return {ModelBuilder::integer("num_heads", all), ModelBuilder::integer("kv_num_heads", groups)};
}

ModelBuilder grouped(const std::vector<Operand>& operands,
                     const std::vector<OnnxAttribute>& attributes) {
  return model_of("GroupQueryAttention", operands, attributes);
}

TEST(GroupedAttention, PromptsOfTwoLengths) {
  const Values y = run("GroupQueryAttention",
                       {wave({2, 2, 16}, 0.7), wave({2, 2, 8}, 1.3), wave({2, 2, 8}, 2.1), absent(),
                        absent(), i32({2}, {1, 0}), i32({}, {2})},
                       heads(2, 1));
  ASSERT_EQ(y.size(), 64u);
  EXPECT_THAT(
      Values(y.begin(), y.begin() + 32),
      near({0,         0.75,       -0.75,      0,          0.75,      -1,         0,
            0.75,      0,          0.75,       -0.75,      0,         0.75,       -1,
            0,         0.75,       -0.7076263, 0.2192803,  0.3114395, -0.7076263, 0.2192803,
            0.2383461, -0.7076263, 0.2192803,  -0.5821137, 0.3134148, 0.1231705,  -0.5821137,
            0.3134148, 0.01869894, -0.5821137, 0.3134148}));
  // Of the second one the first query alone is no filling.
  EXPECT_THAT(Values(y.begin() + 32, y.begin() + 48),
              near({0.75, -1, 0, 0.75, -1, 0, 0.75, -1, 0.75, -1, 0, 0.75, -1, 0, 0.75, -1}));
}

TEST(GroupedAttention, BuffersWithRoomForAllKeys) {
  const std::vector<Operand> operands = {
      wave({1, 1, 8}, 0.7),    wave({1, 1, 8}, 1.3), wave({1, 1, 8}, 2.1), wave({1, 1, 4, 8}, 0.9),
      wave({1, 1, 4, 8}, 1.7), i32({1}, {2}),        i32({}, {3})};
  const ImportedModel model = grouped(operands, heads(1, 1)).import();
  EXPECT_THAT(model.notes, Contains(HasSubstr("buffers with room for all keys")));
  EXPECT_THAT(result_of(model, operands), near({0.1761152, 0.8365523, -0.5181904, -0.6397343,
                                                0.6634477, 0.2516216, -0.6705923, -0.09369679}));
}

TEST(GroupedAttention, HeadsNormalisedBeforehand) {
  const Operand length = i32({1}, {2}), total = i32({}, {3});
  const auto scaled = [](const Operand& x, const Values& by) {
    Values values;
    for (int64_t row = 0; row < x.value->element_count() / 2; ++row) {
      const double a = x.value->as_double(2 * row), b = x.value->as_double(2 * row + 1);
      const double root = std::sqrt((a * a + b * b) / 2 + 1e-6);
      values.insert(values.end(), {a / root * by[0], b / root * by[1]});
    }
    return f32(x.value->shape(), values);
  };
  const Operand q = wave({1, 3, 4}, 0.7), k = wave({1, 3, 2}, 1.3), v = wave({1, 3, 2}, 2.1);
  const Values query{0.5, 2}, key{-1, 1.5};
  const Values expected =
      run("GroupQueryAttention",
          {scaled(q, query), scaled(k, key), v, absent(), absent(), length, total}, heads(2, 1));
  EXPECT_THAT(run("GroupQueryAttention",
                  {q, k, v, absent(), absent(), length, total, absent(), absent(), absent(),
                   absent(), absent(), absent(), absent(), f32({2}, query), f32({2}, key)},
                  heads(2, 1)),
              near(expected));
}

TEST(GroupedAttention, WhatIsRefused) {
  const Operand q = wave({1, 2, 16}, 0.7), k = wave({1, 2, 8}, 1.3);
  const Operand length = i32({1}, {1}), total = i32({}, {2});
  const std::vector<Operand> operands = {q, k, k, absent(), absent(), length, total};
  const auto complaint = [&](const OnnxAttribute& more) {
    std::vector<OnnxAttribute> attributes = heads(2, 1);
    attributes.push_back(more);
    return complaint_of(grouped(operands, attributes));
  };
  EXPECT_THAT(complaint_of(grouped(operands, heads(2, 1))), IsEmpty());
  EXPECT_THAT(complaint(ModelBuilder::string("k_quant_type", "PER_TENSOR")),
              HasSubstr("a quantised cache is not supported"));
  EXPECT_THAT(complaint(ModelBuilder::integer("sliding_window_cache", 1)),
              HasSubstr("leave sliding_window_cache 0"));
  EXPECT_THAT(complaint(ModelBuilder::integer("do_rotary", 1)),
              HasSubstr("needs cos_cache and sin_cache"));
  EXPECT_THAT(complaint_of(grouped(operands, heads(4, 3))),
              HasSubstr("num_heads is no multiple of kv_num_heads"));
  EXPECT_THAT(complaint_of(grouped(operands, heads(2, 2))),
              HasSubstr("keys of shape [1,2,2,4] do not fit"));
  EXPECT_THAT(
      complaint_of(grouped({q, k, k, wave({1, 1, 2, 8}, 1), absent(), length, total}, heads(2, 1))),
      HasSubstr("used together only"));
  EXPECT_THAT(
      complaint_of(grouped({q, k, k, absent(), absent(), i32({2}, {1, 1}), total}, heads(2, 1))),
      HasSubstr("seqlens_k needs a length per example"));
}

}  // namespace
}  // namespace backcast
