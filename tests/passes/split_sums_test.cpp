// Sums split over two lanes where features would leave half of a register empty: against the
// evaluator, C and LLVM to the bit.
#include <gtest/gtest.h>

#include "ir/loop/text.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

/// Whether a pair of an operand is repeated across lanes.
bool splits(const loop::Program& program) {
  return loop::print(program).find("; 0, 1, 0, 1") != std::string::npos;
}

TEST(SplitSums, Convolutions) {
  const TargetInfo host = resolve_target("native");
  const int64_t lanes = host.vector_lanes(4);
  if (lanes < 4) GTEST_SKIP() << "no vectors";
  PipelineOptions options;
  options.round_trip = true;
  for (const int64_t features : {lanes / 2, lanes * 3 / 2, lanes * 5 / 2}) {
    for (const int64_t kernel : {1, 3}) {
      for (const int64_t stride : {1, 2}) {
        const ConvShape shape{2, 9, 20, 32, features, kernel, stride};
        const NodeCase one =
            compiled_case(residual_convolution(shape, "f32"), shape.name(), host, options);
        EXPECT_TRUE(splits(one.model.result.program)) << shape.name();
        expect_close_and_equal(one, 1e-5);
      }
    }
  }
  // An odd number of channels has no pairs.
  const ConvShape odd{1, 9, 20, 35, lanes * 3 / 2, 1, 1};
  const NodeCase whole = compiled_case(residual_convolution(odd, "f32"), "odd", host, options);
  EXPECT_FALSE(splits(whole.model.result.program));
  expect_close_and_equal(whole, 1e-5);
}

}  // namespace
}  // namespace backcast
