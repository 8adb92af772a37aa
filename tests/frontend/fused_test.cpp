// Operators of ONNX Runtime's optimiser that tests/models/fused_* do not have, and what is refused.
// Expected values are those of ONNX Runtime 1.32 without optimisation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/frontend/contrib_node.h"

namespace backcast {
namespace {

using ::testing::HasSubstr;

const OnnxAttribute kTwoHeads = ModelBuilder::integer("num_heads", 2);
const OnnxAttribute kOneHead = ModelBuilder::integer("num_heads", 1);

TEST(Fused, OperatorsOfTheRuntimeNeedNoOpset) {
  ModelBuilder m = model_of("QuickGelu", {f32({1}, {0})}, {real("alpha", 1.702f)});
  m.model().opsets.erase("com.microsoft");
  EXPECT_THAT(complaint_of(m), testing::IsEmpty());
}

TEST(Fused, NormalizationsFromBeforeOnnxHadThem) {
  const Operand x = f32({2, 4}, {1, -2, 3, 0.5, 0.25, 0, -1, 4}), s = f32({4}, {1, 2, 0.5, -1});
  EXPECT_THAT(
      run("SimplifiedLayerNormalization", {x, s}, {}, ""),
      near({0.5298122, -2.119249, 0.7947183, -0.2649061, 0.1210454, 0, -0.2420907, -1.936726}));
  EXPECT_THAT(run("LayerNormalization", {x, s, f32({4}, {0, 1, 0, 0.5})}, {}, ""),
              near({0.2105584, -1.947817, 0.6667683, 0.5701861, -0.2962382, 0.1442007, -0.4772727,
                    -1.178683}));
}

// As std::erfc has it.
TEST(Fused, ErfcOfTensorFlow) {
  EXPECT_THAT(run("Erfc", {f32({4}, {-1, 0, 0.5, 2})}, {}, ""),
              near({1.842700793, 1, 0.4795001222, 0.004677734981}));
}

TEST(Fused, AttentionOverLessKeysThanQueriesAndLengths) {
  const Operand q = f32({1, 2, 4}, {1, 0, -1, 2, 0.5, 1, 0, -1});
  const Operand k = f32({1, 3, 4}, {0, 1, 1, 0, 1, -1, 0.5, 0, 2, 0, 0, 1});
  const Operand v = f32({1, 3, 4}, {1, 2, 3, 4, -1, 0, 1, 0, 0.5, 0.5, -2, 1});
  EXPECT_THAT(
      run("MultiHeadAttention", {q, k, v}, {kTwoHeads}),
      near({0.1440215, 0.5680462, -1.138758, 1.146372, 0.4917566, 1.06554, 1.208897, 1.802224}));
  EXPECT_THAT(run("MultiHeadAttention", {q, k, v, absent(), i32({1}, {2})}, {kTwoHeads}),
              near({-0.3395231, 0.6604769, 1.825042, 1.650084, 0.4856334, 1.485633, 2, 2}));
}

TEST(Fused, AttentionMaskedFromStartToEndAndByAMatrix) {
  const Operand x = f32({1, 4, 2}, {1, 0, 0, 1, 1, 1, -1, 2});
  const Operand w = f32({2, 6}, {-0.5, 0, 0.5, -0.25, 0.25, -0.5, 0, 0.5, -0.25, 0.25, -0.5, 0});
  EXPECT_THAT(run("Attention", {x, w, absent(), i32({2}, {3, 1})}, {kOneHead}),
              near({-0.3860198, -0.2279603, -0.3805207, -0.2389587, -0.3914764, -0.2170472, -0.375,
                    -0.25}));
  const Operand mask = i32({1, 4, 4}, {1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1});
  EXPECT_THAT(run("Attention", {x, w, absent(), mask}, {kOneHead}),
              near({-0.6943402, 0.1295601, -0.1580596, -0.2279603, -0.3914764, -0.2170472,
                    -0.7720827, 0.0220827}));
}

TEST(Fused, AttentionOfValuesWiderThanKeys) {
  const Operand x = f32({1, 4, 2}, {1, 0, 0, 1, 1, 1, -1, 2});
  const Operand w =
      f32({2, 7}, {-0.75, 0.5, 0, -0.5, 0.75, 0.25, -0.25, -0.75, 0.5, 0, -0.5, 0.75, 0.25, -0.25});
  EXPECT_THAT(
      run("Attention", {x, w}, {kOneHead, ModelBuilder::integers("qkv_hidden_sizes", {2, 2, 3})}),
      near({0.9137521, 0.304584, -0.304584, 0.9137521, 0.304584, -0.304584, 0.8922514, 0.2974171,
            -0.2974171, 0.9137521, 0.304584, -0.304584}));
}

TEST(Fused, AttentionOnIntegersWithAScalePerColumn) {
  const std::vector<Operand> operands = {
      u8({1, 2, 2}, {130, 90, 128, 200}),
      i8({2, 6}, {10, -20, 30, -40, 50, -60, 70, 80, -90, 100, 5, -6}),
      f32({6}, {0.5, -0.25, 0, 0.125, 1, -1}),
      f32({}, {0.05f}),
      f32({6}, {0.005, 0.01, 0.015, 0.02, 0.025, 0.03}),
      absent(),
      u8({}, {128}),
      i8({6}, {1, 0, 2, 0, -1, 0})};
  const ImportedModel model = model_of("QAttention", operands, {kOneHead}).import();
  EXPECT_THAT(result_of(model, operands), near({0.8425013, -0.8380015, 1.539991, -1.647989}));
}

TEST(Fused, WhatIsRefused) {
  const Operand x = f32({1, 4, 2}, {1, 0, 0, 1, 1, 1, -1, 2}), w = f32({2, 6}, Values(12, 0.5));
  EXPECT_THAT(
      complaint_of(model_of("Attention", {x, w, absent(), i32({3}, {1, 2, 3})}, {kOneHead})),
      HasSubstr("a mask of shape [3] is not supported; give one element per key"));
  EXPECT_THAT(
      complaint_of(model_of("Attention", {x, w},
                            {kOneHead, ModelBuilder::integers("qkv_hidden_sizes", {2, 2, 3})})),
      HasSubstr("queries, keys and values do not fill the product"));
  EXPECT_THAT(complaint_of(model_of("Attention", {x, f32({2, 7}, Values(14, 0.5))}, {kOneHead})),
              HasSubstr("queries, keys and values do not fill the product"));
  EXPECT_THAT(complaint_of(model_of("Attention", {x, w})),
              HasSubstr("\"num_heads\" has to be positive"));
  EXPECT_THAT(complaint_of(model_of("MultiHeadAttention", {x}, {kOneHead})),
              HasSubstr("give three"));
  const Operand table = f32({3, 2}, Values(6, 0.5));
  EXPECT_THAT(
      complaint_of(model_of("RotaryEmbedding", {x, i64({1}, {0}), table, table}, {kOneHead})),
      HasSubstr("the caches turn 4 elements of every head of [1,1,4,2]"));
  const Operand image = f32({1, 1, 2, 2}, {1, 2, 3, 4}), kernel = f32({1, 1, 1, 1}, {2});
  EXPECT_THAT(complaint_of(model_of("FusedConv", {image, kernel},
                                    {ModelBuilder::string("activation", "Clip")})),
              HasSubstr("needs both of its bounds"));
  EXPECT_THAT(complaint_of(model_of("FusedConv", {image, kernel},
                                    {ModelBuilder::string("activation", "Sine")})),
              HasSubstr("activation \"Sine\" is not known"));
}

}  // namespace
}  // namespace backcast
