// Weights of 2 and 4 bits: com.microsoft's operators on packed bytes, whose expected values are
// those of ONNX Runtime 1.32, and constants of 4-bit integers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph/error.h"
#include "tests/frontend/contrib_node.h"

namespace backcast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PackedWeights, FourBitsWithARestOfABlock) {
  const std::vector<double> y = run(
      "MatMulNBits",
      {f32({1, 20}, {1,  -0.75, -1.25, 2,     -1.5, -0.75, 0.5, 1.25,  0.5,  1.5,
                     -2, -0.5,  0.25,  -0.25, -0.5, -0.5,  -2,  -1.75, 0.25, 0}),
       u8({2, 2, 8}, {245, 61,  217, 65,  36, 47,  101, 49, 229, 208, 205, 108, 7,   65, 114, 151,
                      115, 154, 96,  165, 7,  233, 137, 38, 208, 95,  224, 72,  228, 4,  110, 46}),
       f32({2, 2}, {0.5, 0.25, 1, 2}), u8({2, 1}, {111, 101})},
      {ModelBuilder::integer("K", 20), ModelBuilder::integer("N", 2),
       ModelBuilder::integer("bits", 4), ModelBuilder::integer("block_size", 16)});
  EXPECT_THAT(y, ElementsAre(-27.125, -2.5));
}

TEST(PackedWeights, TwoBitsWithABias) {
  const std::vector<double> y =
      run("MatMulNBits",
          {f32({2, 16}, {2,    -0.5, 1,     0.5, -0.5,  -0.25, -1.75, 0.5, -0.5,  -1.25, -1.5,
                         -1.5, 1.75, -0.75, 1.5, -1.75, -1.75, -0.5,  2,   -0.25, 0.75,  1,
                         0.5,  1.5,  -0.75, -2,  -1.5,  2,     -1.75, 1,   -0.25, 2}),
           u8({3, 1, 4}, {243, 30, 3, 96, 106, 128, 44, 191, 136, 79, 29, 115}),
           f32({3}, {0.5, 0.25, 1}), absent(), absent(), f32({3}, {1, 2, 3})},
          {ModelBuilder::integer("K", 16), ModelBuilder::integer("N", 3),
           ModelBuilder::integer("bits", 2), ModelBuilder::integer("block_size", 16)});
  EXPECT_THAT(y, ElementsAre(7.375, 4.4375, 9.5, 1.125, -0.4375, -8));
}

TEST(PackedWeights, ZeroPointsThatAreNotPacked) {
  const std::vector<double> y = run(
      "MatMulNBits",
      {f32({1, 16},
           {1.75, -1, -0.75, -0.25, 1, 0, 0.5, 0.25, -0.25, 0.75, 1.5, -1, 1, 0.5, -1.25, -1.75}),
       u8({2, 1, 8}, {184, 156, 128, 117, 99, 34, 96, 65, 234, 16, 251, 95, 77, 103, 118, 125}),
       f32({2}, {0.5, 0.25}), f32({2}, {3, 7.5})},
      {ModelBuilder::integer("K", 16), ModelBuilder::integer("N", 2),
       ModelBuilder::integer("bits", 4), ModelBuilder::integer("block_size", 16)});
  EXPECT_THAT(y, ElementsAre(-3.75, 0.1875));
}

TEST(PackedWeights, RowsOfATable) {
  const std::vector<double> y = run(
      "GatherBlockQuantized",
      {u8({3, 9}, {178, 17,  219, 183, 54,  81, 216, 72, 84,  228, 96,  153, 178, 168,
                   141, 136, 163, 55,  222, 38, 220, 47, 135, 87,  125, 43,  94}),
       i64({1, 2}, {2, -3}), f32({3, 2}, {0.5, 0.25, 1, 2, 4, 0.125}), u8({3, 1}, {122, 201, 247})},
      {ModelBuilder::integer("bits", 4), ModelBuilder::integer("block_size", 16),
       ModelBuilder::integer("gather_axis", 0), ModelBuilder::integer("quantize_axis", 1)});
  EXPECT_THAT(y, ElementsAre(28, 24, -4, -20, 20, 24, 32, -20, 0, 4, 0, -8, 24, 0, 16, -20, -0.125,
                             -1.25, -4, 0.5, -4.5, -4.5, 0.5, 1.5, -1.5, 0.5, -2, -3.5, -4.5, -2.5,
                             -1, 1.5, -1, -3, -0.75, -0.5));
}

/// A constant of 4-bit integers, two in a byte with the first in its lower half.
OnnxTensor pairs(const std::string& name, int64_t type, const Extents& shape,
                 const std::vector<uint8_t>& bytes) {
  const auto held = std::make_shared<std::vector<uint8_t>>(bytes);
  OnnxTensor tensor;
  tensor.name = name;
  tensor.data_type = type;
  tensor.dims = shape;
  tensor.raw_data = std::as_bytes(std::span<const uint8_t>(*held));
  tensor.owner = held;
  return tensor;
}

/// DequantizeLinear of w: int4[2,2,1] and z: int4[2] by s: f32[2].
ModelBuilder dequantised(const std::string& op = "DequantizeLinear") {
  ModelBuilder m(21);
  m.input("s", {"2"}).node("n", op, {"w", "s", "z"}, {"y"}, {ModelBuilder::integer("axis", 1)});
  m.output("y", {"2", "2", "1"});
  m.model().graph.initializers.push_back(pairs("w", onnx_type::kInt4, {2, 2, 1}, {0x78, 0xf1}));
  m.model().graph.initializers.push_back(pairs("z", onnx_type::kInt4, {2}, {0xe0}));
  return m;
}

TEST(FourBits, ConstantsAreDequantised) {
  const ImportedModel model = dequantised().import();
  const Value y = evaluate(model.module, model.module.function("main"),
                           {Literal::from_doubles(ElementType::f32, {2}, {1, 10})});
  std::vector<double> numbers;
  for (int64_t i = 0; i < 4; ++i) numbers.push_back(y.tensor.as_double(i));
  EXPECT_THAT(numbers, ElementsAre(-8, 90, 1, 10));
}

TEST(FourBits, OtherOperatorsDoNotTakeThem) {
  // Even where DequantizeLinear has taken one before.
  ModelBuilder m = dequantised();
  m.node("t", "Identity", {"z"}, {"u"}).output("u", {"2"}, onnx_type::kInt4);
  EXPECT_THAT(complaint_of(m), HasSubstr("tensor \"z\" has int4 elements"));
  // As a zero point it would say how far to saturate.
  EXPECT_THAT(complaint_of(dequantised("QuantizeLinear")), HasSubstr("has int4 elements"));
}

TEST(FourBits, OddCountsAndMissingBytes) {
  ModelBuilder m = dequantised();
  m.model().graph.initializers[0] = pairs("w", onnx_type::kUint4, {3, 1}, {0x78});
  EXPECT_THAT(complaint_of(m), HasSubstr("holds 1 bytes where"));
}

}  // namespace
}  // namespace backcast
