// STFT by its definition and ONNX's case of MelWeightMatrix: ONNX's own cases feed at run time what
// import has to know.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "ir/graph/evaluator.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

constexpr int64_t kSamples = 11, kStep = 3;

/// Frames of six samples, with a window that rises; [frames, bins, 2].
void check(int64_t one_sided) {
  constexpr int64_t kLength = 6;
  const int64_t bins = one_sided ? kLength / 2 + 1 : kLength;
  const int64_t frames = (kSamples - kLength) / kStep + 1;
  ModelBuilder m(17);
  m.input("x", {"1", std::to_string(kSamples)}).input("w", {std::to_string(kLength)}).output("y");
  m.ints("step", {kStep})
      .node("s", "STFT", {"x", "step", "w"}, {"y"}, {ModelBuilder::integer("onesided", one_sided)});
  std::vector<double> x, w;
  for (int64_t i = 0; i < kSamples; ++i) x.push_back(static_cast<double>(i * i % 7) - 2);
  for (int64_t i = 0; i < kLength; ++i) w.push_back(0.25 * static_cast<double>(i + 1));
  const ImportedModel model = m.import();
  const Literal y = evaluate(model.module, model.module.function("main"),
                             {Literal::from_doubles(ElementType::f32, {1, kSamples}, x),
                              Literal::from_doubles(ElementType::f32, {kLength}, w)})
                        .tensor;
  ASSERT_EQ(y.shape(), (std::vector<int64_t>{1, frames, bins, 2}));
  for (int64_t frame = 0; frame < frames; ++frame) {
    for (int64_t k = 0; k < bins; ++k) {
      double real = 0, imaginary = 0;
      for (int64_t i = 0; i < kLength; ++i) {
        const double turn = 2 * std::numbers::pi * static_cast<double>(i * k) / kLength;
        const double value = x[size_t(frame * kStep + i)] * w[size_t(i)];
        real += value * std::cos(turn);
        imaginary -= value * std::sin(turn);
      }
      EXPECT_NEAR(y.as_double((frame * bins + k) * 2), real, 1e-5);
      EXPECT_NEAR(y.as_double((frame * bins + k) * 2 + 1), imaginary, 1e-5);
    }
  }
}

TEST(Spectrum, HalfOfAFrame) { check(1); }
TEST(Spectrum, AllOfAFrame) { check(0); }

ModelBuilder mel(int64_t bands, int64_t length, int64_t highest) {
  ModelBuilder m(17);
  m.input("unused", {"1"}).output("y");
  m.ints("bands", {bands}).ints("length", {length}).ints("rate", {8192});
  m.ints("l", {0}).ints("h", {highest});
  for (const auto& [from, to] : {std::pair("l", "low"), std::pair("h", "high")}) {
    m.node(to, "Cast", {from}, {to}, {ModelBuilder::integer("to", onnx_type::kFloat)});
  }
  m.node("m", "MelWeightMatrix", {"bands", "length", "rate", "low", "high"}, {"y"});
  return m;
}

/// What each band weighs bins with: the transposed matrix.
std::vector<std::vector<double>> weights_of(const ModelBuilder& builder) {
  const ImportedModel model = builder.import();
  const Literal unused = Literal::from_doubles(ElementType::f32, {1}, {0});
  const Literal y = evaluate(model.module, model.module.function("main"), {unused}).tensor;
  const int64_t bands = y.shape().at(1);
  std::vector<std::vector<double>> result(static_cast<size_t>(bands));
  for (int64_t i = 0; i < y.element_count(); ++i) {
    result[static_cast<size_t>(i % bands)].push_back(y.as_double(i));
  }
  return result;
}

TEST(Spectrum, BandsOfOneBin) {
  const std::vector<std::vector<double>> bands = weights_of(mel(8, 16, 4096));
  const std::vector<size_t> peaks = {0, 0, 1, 1, 2, 3, 4, 5};
  ASSERT_EQ(bands.size(), peaks.size());
  for (size_t i = 0; i < bands.size(); ++i) {
    std::vector<double> expected(9, 0);
    expected[peaks[i]] = 1;
    EXPECT_EQ(bands[i], expected) << i;
  }
}

TEST(Spectrum, BandsAreTriangles) {
  const std::vector<std::vector<double>> bands = weights_of(mel(2, 24, 4096));
  ASSERT_EQ(bands.size(), 2u);
  EXPECT_THAT(bands[0], testing::ElementsAre(0, 1, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(bands[1],
              testing::ElementsAre(0, 0, 0.5, 1, testing::DoubleNear(2.0 / 3, 1e-6),
                                   testing::DoubleNear(1.0 / 3, 1e-6), 0, 0, 0, 0, 0, 0, 0));
}

TEST(Spectrum, BandsEndWithTheSpectrum) {
  EXPECT_THAT(complaint_of(mel(8, 16, 10000)), testing::HasSubstr("half of the sample rate"));
}

}  // namespace
}  // namespace backcast
