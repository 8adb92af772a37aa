// STFT by its definition: ONNX's own cases feed the step at run time, which import has to know.
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

}  // namespace
}  // namespace backcast
