// Operators whose places are data, by results that are known without them, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph/evaluator.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

using testing::HasSubstr;

Literal floats(const std::vector<int64_t>& shape, const std::vector<double>& values) {
  return Literal::from_doubles(ElementType::f32, shape, values);
}

/// [1, 2, height, width] of 10 · row + column, the second channel negative.
Literal ramp(int64_t height, int64_t width) {
  std::vector<double> values;
  for (const double sign : {1.0, -1.0}) {
    for (int64_t i = 0; i < height * width; ++i) {
      values.push_back(sign * static_cast<double>(i / width * 10 + i % width));
    }
  }
  return floats({1, 2, height, width}, values);
}

std::vector<double> run(const ModelBuilder& builder, const std::vector<Value>& inputs) {
  const ImportedModel model = builder.import();
  return evaluate(model.module, model.module.function("main"), inputs).tensor.as_doubles();
}

ModelBuilder roi_align(const std::vector<std::string>& x, const std::vector<std::string>& regions,
                       int64_t sampling) {
  ModelBuilder m(16);
  m.input("x", x).input("r", regions).input("b", {regions[0]}, onnx_type::kInt64).output("y");
  m.node("n", "RoiAlign", {"x", "r", "b"}, {"y"},
         {ModelBuilder::integer("sampling_ratio", sampling),
          ModelBuilder::integer("output_width", 2)});
  return m;
}

/// The mean of what lies between elements of a ramp is what lies in the middle.
TEST(Vision, RoiAlignOfARamp) {
  const Literal image = Literal::from_ints({1}, {0});
  const std::vector<double> y = run(roi_align({"1", "2", "5", "7"}, {"1", "4"}, 3),
                                    {ramp(5, 7), floats({1, 4}, {1, 1, 5, 3}), image});
  ASSERT_EQ(y.size(), 4u);
  EXPECT_NEAR(y[0], 16.5, 1e-5);
  EXPECT_NEAR(y[1], 18.5, 1e-5);
  EXPECT_NEAR(y[2], -16.5, 1e-5);
}

TEST(Vision, RoiAlignAdaptsToRegionsThatAreKnown) {
  ModelBuilder m(16);
  m.input("x", {"1", "2", "5", "7"}).output("y");
  m.ints("i", {1, 1, 5, 3, 2, 0, 3, 4}).ints("s", {2, 4}).ints("b", {0, 0});
  m.node("c", "Cast", {"i"}, {"f"}, {ModelBuilder::integer("to", onnx_type::kFloat)})
      .node("e", "Reshape", {"f", "s"}, {"r"})
      .node("n", "RoiAlign", {"x", "r", "b"}, {"y"});
  const std::vector<double> y = run(m, {ramp(5, 7)});
  ASSERT_EQ(y.size(), 4u);
  EXPECT_NEAR(y[0], 17.5, 1e-5);
  // Of four rows of samples the first lies on the border.
  EXPECT_NEAR(y[2], 2 + (0 + 10 + 20 + 30) / 4.0, 1e-5);
}

TEST(Vision, RoiAlignRefuses) {
  EXPECT_THAT(complaint_of(roi_align({"1", "2", "5", "7"}, {"3", "4"}, 0)),
              HasSubstr("set it to how many"));
  EXPECT_THAT(complaint_of(roi_align({"1", "2", "5", "7"}, {"3", "5"}, 2)),
              HasSubstr("needs regions [regions, 4]"));
  EXPECT_THAT(complaint_of(roi_align({"2", "5", "7"}, {"3", "4"}, 2)),
              HasSubstr("needs an input [N, C, H, W]"));
  ImportOptions any_height;
  any_height.dims["H"] = {2, 9};
  EXPECT_THAT(complaint_of(roi_align({"1", "2", "H", "7"}, {"3", "4"}, 2), any_height),
              HasSubstr("bind H with --dim"));
}

ModelBuilder max_roi_pool(const std::vector<std::string>& regions) {
  ModelBuilder m(16);
  m.input("x", {"1", "2", "5", "7"}).input("r", regions).output("y");
  m.node("n", "MaxRoiPool", {"x", "r"}, {"y"}, {ModelBuilder::integers("pooled_shape", {2, 2})});
  return m;
}

/// Rows 1 to 3 and columns 2 to 5 in two by two bins, which share row 2; then nothing.
TEST(Vision, MaxRoiPoolOfARamp) {
  const Literal regions = floats({2, 5}, {0, 2, 1, 5, 3, 0, 20, 20, 24, 24});
  EXPECT_THAT(run(max_roi_pool({"2", "5"}), {ramp(5, 7), regions}),
              testing::ElementsAre(23, 25, 33, 35, -12, -14, -22, -24, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(Vision, MaxRoiPoolRefuses) {
  EXPECT_THAT(complaint_of(max_roi_pool({"2", "4"})), HasSubstr("regions [regions, 5]"));
}

ModelBuilder deform_conv(const std::vector<std::string>& offset, int64_t groups) {
  ModelBuilder m(19);
  m.input("x", {"1", "2", "5", "7"}).input("w", {"1", "2", "1", "2"}).input("o", offset);
  m.output("y").node("n", "DeformConv", {"x", "w", "o"}, {"y"},
                     {ModelBuilder::integer("offset_group", groups)});
  return m;
}

/// Everything half a row farther down: the ramp grows by 5, and the row below it is zero.
TEST(Vision, DeformConvOfARamp) {
  std::vector<double> offset(size_t{4 * 5 * 6}, 0);
  std::fill_n(offset.begin(), 5 * 6, 0.5);
  const std::vector<double> y =
      run(deform_conv({"1", "4", "5", "6"}, 1),
          {ramp(5, 7), floats({1, 2, 1, 2}, {1, 0, 0, 0}), floats({1, 4, 5, 6}, offset)});
  ASSERT_EQ(y.size(), 30u);
  for (size_t i = 0; i < y.size(); ++i) {
    const double at = static_cast<double>(i / 6 * 10 + i % 6);
    EXPECT_NEAR(y[i], i < 24 ? at + 5 : at / 2, 1e-5);
  }
}

TEST(Vision, DeformConvRefuses) {
  EXPECT_THAT(complaint_of(deform_conv({"1", "2", "5", "6"}, 1)),
              HasSubstr("has the shape [1,2,5,6] and needs [1,4,5,6]"));
  EXPECT_THAT(complaint_of(deform_conv({"1", "4", "5"}, 1)), HasSubstr("offsets of its rank"));
  EXPECT_THAT(complaint_of(deform_conv({"1", "12", "5", "6"}, 3)),
              HasSubstr("does not divide 2 channels"));
}

}  // namespace
}  // namespace backcast
