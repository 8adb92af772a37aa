// Quantised operators of com.microsoft. Expected values are those of ONNX Runtime 1.32 without
// optimisation, on weights of 7 bits, whose sums its kernels for AVX2 do not saturate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/error.h"
#include "tests/frontend/contrib_node.h"

namespace backcast {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

TEST(QuantizedContrib, AddRoundsBehindTheZeroPoint) {
  const std::vector<double> y =
      run("QLinearAdd", {u8({2, 4}, {171, 206, 5, 206, 120, 131, 161, 73}), f32({}, {0.25}),
                         u8({}, {3}), u8({4}, {250, 13, 71, 98}), f32({}, {0.25}), u8({}, {130}),
                         f32({}, {0.5}), u8({}, {121})});
  EXPECT_THAT(y, ElementsAre(255, 164, 92, 206, 240, 126, 170, 140));
}

TEST(QuantizedContrib, AddOfSignedOnesWithOtherScales) {
  const std::vector<double> y = run(
      "QLinearAdd", {i8({2, 4}, {18, -24, -95, -117, -128, -116, -90, 127}),
                     f32({}, {0.0299999993}), i8({}, {-5}), i8({2, 1}, {-80, 39}),
                     f32({}, {0.0700000003}), i8({}, {9}), f32({}, {0.0599999987}), i8({}, {2})});
  EXPECT_THAT(y, ElementsAre(-90, -111, -128, -128, -24, -18, -5, 103));
}

TEST(QuantizedContrib, Mul) {
  const std::vector<double> y =
      run("QLinearMul", {u8({2, 4}, {192, 60, 72, 111, 67, 249, 45, 229}), f32({}, {0.0299999993}),
                         u8({}, {120}), u8({4}, {204, 216, 29, 100}), f32({}, {0.0500000007}),
                         u8({}, {100}), f32({}, {0.140000001}), u8({}, {77})});
  EXPECT_THAT(y, ElementsAre(157, 2, 114, 77, 18, 237, 134, 77));
}

TEST(QuantizedContrib, Sigmoid) {
  const std::vector<double> y =
      run("QLinearSigmoid", {u8({7}, {0, 60, 100, 128, 150, 200, 255}), f32({}, {0.0399999991}),
                             u8({}, {128}), f32({}, {0.00390625}), u8({}, {0})});
  EXPECT_THAT(y, ElementsAre(2, 16, 63, 128, 181, 242, 254));
}

TEST(QuantizedContrib, LeakyRelu) {
  const std::vector<double> y =
      run("QLinearLeakyRelu",
          {i8({7}, {-128, -60, -7, -6, 5, 100, 127}), f32({}, {0.0399999991}), i8({}, {-6}),
           f32({}, {0.0299999993}), i8({}, {-50})},
          {real("alpha", 0.1f)});
  EXPECT_THAT(y, ElementsAre(-66, -57, -50, -50, -35, 91, 127));
}

TEST(QuantizedContrib, SoftmaxOfOneAxis) {
  const std::vector<double> y =
      run("QLinearSoftmax",
          {u8({2, 2, 3}, {160, 126, 170, 173, 169, 15, 245, 142, 231, 69, 92, 225}),
           f32({}, {0.0199999996}), u8({}, {128}), f32({}, {0.00390625}), u8({}, {0})},
          {ModelBuilder::integer("axis", 1), ModelBuilder::integer("opset", 13)});
  EXPECT_THAT(y, ElementsAre(111, 76, 245, 145, 180, 11, 249, 187, 136, 7, 69, 120));
}

TEST(QuantizedContrib, SoftmaxOfAllAxesBehind) {
  const std::vector<double> y =
      run("QLinearSoftmax",
          {u8({2, 2, 3}, {47, 16, 95, 173, 31, 222, 87, 58, 139, 229, 226, 223}),
           f32({}, {0.0199999996}), u8({}, {128}), f32({}, {0.00390625}), u8({}, {0})},
          {ModelBuilder::integer("axis", 1), ModelBuilder::integer("opset", 12)});
  EXPECT_THAT(y, ElementsAre(5, 3, 13, 63, 4, 168, 5, 3, 14, 83, 78, 74));
}

TEST(QuantizedContrib, Where) {
  const std::vector<double> y =
      run("QLinearWhere",
          {boolean({2, 2}, {1, 0, 1, 0}), u8({2, 2}, {78, 4, 199, 181}), f32({}, {0.0399999991}),
           u8({}, {128}), u8({1, 2}, {197, 0}), f32({}, {0.0199999996}), u8({}, {10}),
           f32({}, {0.0500000007}), u8({}, {99})});
  EXPECT_THAT(y, ElementsAre(59, 95, 156, 95));
}

TEST(QuantizedContrib, ConcatBringsPartsToOneScale) {
  const std::vector<double> y =
      run("QLinearConcat",
          {f32({}, {0.0500000007}), u8({}, {100}), u8({2, 2}, {9, 128, 85, 111}),
           f32({}, {0.0500000007}), u8({}, {100}), u8({2, 1}, {238, 52}), f32({}, {0.0299999993}),
           u8({}, {7})},
          {ModelBuilder::integer("axis", 1)});
  EXPECT_THAT(y, ElementsAre(9, 128, 239, 85, 111, 127));
}

TEST(QuantizedContrib, AveragePool) {
  const std::vector<double> y = run(
      "QLinearAveragePool",
      {u8({1, 1, 4, 4}, {135, 83, 75, 206, 39, 81, 30, 38, 71, 178, 148, 114, 43, 204, 204, 60}),
       f32({}, {0.25}), u8({}, {3}), f32({}, {0.25}), u8({}, {101})},
      {ModelBuilder::integers("kernel_shape", {2, 2}), ModelBuilder::integers("pads", {1, 1, 0, 0}),
       ModelBuilder::integers("strides", {2, 2})});
  EXPECT_THAT(y, ElementsAre(233, 177, 153, 207));
}

TEST(QuantizedContrib, AveragePoolWithChannelsLast) {
  const std::vector<double> y = run(
      "QLinearAveragePool",
      {u8({1, 2, 2, 3}, {15, 81, 37, 204, 133, 129, 74, 129, 247, 60, 196, 3}), f32({}, {0.25}),
       u8({}, {3}), f32({}, {0.25}), u8({}, {101})},
      {ModelBuilder::integers("kernel_shape", {2, 1}), ModelBuilder::integer("channels_last", 1)});
  EXPECT_THAT(y, ElementsAre(142, 203, 240, 230, 255, 164));
}

TEST(QuantizedContrib, GlobalAveragePool) {
  const std::vector<double> y =
      run("QLinearGlobalAveragePool",
          {u8({1, 3, 2, 3},
              {80, 238, 223, 21, 215, 216, 116, 94, 250, 243, 173, 102, 53, 239, 68, 142, 172, 61}),
           f32({}, {0.0500000007}), u8({}, {3}), f32({}, {0.0299999993}), u8({}, {20})},
          {ModelBuilder::integer("channels_last", 0)});
  EXPECT_THAT(y, ElementsAre(255, 255, 219));
}

TEST(QuantizedContrib, GlobalAveragePoolWithChannelsLast) {
  const std::vector<double> y =
      run("QLinearGlobalAveragePool",
          {u8({1, 2, 3, 2}, {80, 189, 50, 172, 241, 175, 165, 118, 247, 56, 91, 164}),
           f32({}, {0.0500000007}), u8({}, {3}), f32({}, {0.0299999993}), u8({}, {20})},
          {ModelBuilder::integer("channels_last", 1)});
  EXPECT_THAT(y, ElementsAre(255, 255));
}

TEST(QuantizedContrib, GemmPerColumn) {
  const std::vector<double> y = run(
      "QGemm",
      {u8({2, 3}, {167, 27, 41, 177, 215, 162}), f32({}, {0.0500000007}), u8({}, {120}),
       i8({4, 3}, {55, -16, -22, 38, -59, -40, -40, -15, -44, 38, 44, -16}),
       f32({4}, {0.00999999978, 0.0199999996, 0.0149999997, 0.0299999993}), i8({4}, {0, 0, 0, 0}),
       i32({4}, {-500, 100, 0, 900}), f32({}, {0.100000001}), u8({}, {90})},
      {ModelBuilder::integer("transB", 1), real("alpha", 0.5f)});
  EXPECT_THAT(y, ElementsAre(103, 143, 101, 89, 90, 65, 69, 139));
}

TEST(QuantizedContrib, GemmWithAFloatResult) {
  const std::vector<double> y =
      run("QGemm",
          {u8({2, 3}, {7, 182, 27, 156, 43, 240}), f32({}, {0.0500000007}), u8({}, {120}),
           i8({3, 2}, {22, 62, 14, 28, -16, 39}), f32({}, {0.00999999978}), i8({}, {3})},
          {ModelBuilder::integer("transB", 0), real("alpha", 1.0f)});
  EXPECT_THAT(y, Pointwise(FloatNear(1e-6),
                           std::vector<double>{0.151000008, -4.23250008, -1.22150004, 2.25950003}));
}

TEST(QuantizedContrib, MatMulIntegerToFloat) {
  const std::vector<double> y =
      run("MatMulIntegerToFloat",
          {u8({2, 3}, {28, 39, 92, 182, 124, 216}), i8({3, 2}, {56, -13, -10, 6, 18, -3}),
           f32({}, {0.0500000007}), f32({2}, {0.00999999978, 0.0199999996}), u8({}, {99}),
           i8({2}, {0, 0}), f32({2}, {0.5, -0.25})});
  EXPECT_THAT(y, Pointwise(FloatNear(1e-6),
                           std::vector<double>{-1.25100005, 0.334000051, 3.75200009, -1.53000009}));
}

TEST(QuantizedContrib, DynamicQuantizeMatMul) {
  const std::vector<double> y =
      run("DynamicQuantizeMatMul", {f32({2, 3}, {0.614000022, -1.19700003, -0.321999997,
                                                 -0.00700000022, -0.444999993, -0.0540000014}),
                                    i8({3, 2}, {8, 55, 14, 54, 10, -23}), f32({}, {0.00999999978}),
                                    i8({}, {2}), f32({2}, {0.5, -0.25})});
  EXPECT_THAT(y, Pointwise(FloatNear(1e-6), std::vector<double>{0.367051303, -0.470515907,
                                                                0.441337794, -0.472220361}));
}

TEST(QuantizedContrib, DynamicQuantizeLstm) {
  const std::vector<double> y = run(
      "DynamicQuantizeLSTM",
      {f32({3, 1, 3}, {-1.83700001, -0.204999998, -0.351999998, 0.264999986, -0.463999987,
                       -0.479000002, -0.721000016, -0.519999981, 0.159999996}),
       i8({2, 3, 8}, {-23, 3,   63,  -31, 6,   -2,  0,   6,   26,  -51, 61, 46, 34,  -29, -8,  -7,
                      -25, -57, 31,  -64, 33,  -40, 18,  -21, -34, 54,  -4, 49, -40, -3,  -20, -6,
                      -63, 21,  -20, 45,  -37, -21, -59, 37,  4,   -13, 53, 12, 59,  30,  10,  0}),
       i8({2, 2, 8}, {-39, 24,  37,  25, -12, -64, 30, -59, 38,  -45, -25, -37, 5,   -38, -31, -58,
                      61,  -37, -40, 12, -46, 49,  36, -20, -13, -18, 30,  -11, -28, 23,  -47, 36}),
       f32({2, 16},
           {1.54999995,   0.00999999978, -1.46000004,  1.95000005,   1.09000003,   -1.05999994,
            1.38,         0.0299999993,  -1.80999994,  -0.419999987, -0.50999999,  1.59000003,
            -0.790000021, -0.25,         -0.280000001, -0.379999995, -0.910000026, 0.219999999,
            1.08000004,   0.620000005,   -0.930000007, -1.14999998,  0.119999997,  -0.709999979,
            -0.629999995, -1.67999995,   1.95000005,   0.920000017,  -0.970000029, 0.910000026,
            1.34000003,   -2.3900001}),
       absent(), absent(), absent(), absent(),
       f32({2, 8},
           {0.0199999996, 0.0130000003, 0.0140000004, 0.0130000003, 0.00999999978, 0.00999999978,
            0.0120000001, 0.0189999994, 0.0120000001, 0.0170000009, 0.0120000001, 0.0109999999,
            0.0120000001, 0.0170000009, 0.0149999997, 0.0149999997}),
       i8({2, 8}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
       f32({2}, {0.0120000001, 0.0149999997}), i8({2}, {0, 0})},
      {ModelBuilder::integer("hidden_size", 2),
       ModelBuilder::string("direction", "bidirectional")});
  EXPECT_THAT(
      y, Pointwise(FloatNear(1e-6),
                   std::vector<double>{0.00917659327, -0.174432695, 0.401357412, -0.0905923024,
                                       0.0473642759, -0.0227262676, 0.248181507, -0.187714353,
                                       0.0285494551, -0.185651347, 0.273851842, -0.0625445694}));
}

TEST(QuantizedContrib, SixteenBits) {
  const std::vector<double> y = run("QuantizeLinear", {f32({4}, {-4, -1.5, 0.25, 3.0999999}),
                                                       f32({}, {9.99999975e-05}), i16({}, {100})});
  EXPECT_THAT(y, ElementsAre(-32768, -14900, 2600, 31100));
}

TEST(QuantizedContrib, SixteenBitsPerChannel) {
  const std::vector<double> y =
      run("DequantizeLinear",
          {i16({2, 2}, {-32768, 5, 300, 32767}), f32({2}, {0.5, 0.25}), i16({2}, {0, 7})},
          {ModelBuilder::integer("axis", 1)});
  EXPECT_THAT(y, ElementsAre(-16384, -0.5, 150, 8190));
}

TEST(QuantizedContrib, ComplainsOfScalesThatAreNoNumbers) {
  const Operand x = u8({2}, {1, 2});
  const Operand one = f32({}, {1}), zero = u8({}, {0});
  const Operand scales = f32({2}, {1, 2});
  try {
    run("QLinearAdd", {x, scales, zero, x, one, zero, one, zero});
    FAIL() << "no complaint";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("input 1 has to be one number"));
  }
}

TEST(QuantizedContrib, AdvisesAgainstFusedOperators) {
  try {
    run("LongformerAttention", {u8({2}, {1, 2})});
    FAIL() << "no complaint";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("give the model that it was given"));
  }
}

TEST(QuantizedContrib, NotesScalesThatAreNotFinite) {
  ModelBuilder m;
  m.model().opsets["com.microsoft"] = 1;
  const std::vector<float> infinite = {INFINITY};
  const std::vector<int32_t> none = {0};
  OnnxTensor scale, zero;
  scale.name = "mask_scale";
  scale.data_type = onnx_type::kFloat;
  scale.float_data = infinite;
  zero.name = "zero";
  zero.data_type = onnx_type::kUint8;
  zero.int32_data = none;
  m.model().graph.initializers = {scale, zero};
  m.input("x", {"2"}).node("q", "QuantizeLinear", {"x", "mask_scale", "zero"}, {"a"});
  m.node("s", "QLinearSigmoid", {"a", "mask_scale", "zero", "mask_scale", "zero"}, {"y"});
  m.model().graph.nodes[1].domain = "com.microsoft";
  m.output("y", {"2"}, onnx_type::kUint8);
  EXPECT_THAT(m.import().notes, ElementsAre(HasSubstr("the scale \"mask_scale\" is inf")));
  // Blocks of weights may count down.
  const std::vector<float> negative = {-0.5f};
  m.model().graph.initializers[0].float_data = negative;
  EXPECT_THAT(m.import().notes, ::testing::IsEmpty());
}

}  // namespace
}  // namespace backcast
