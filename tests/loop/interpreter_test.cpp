// Whole kernels: what a definition says and what a schedule of it does must agree.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/error.h"
#include "tests/loop/kernels.h"

namespace backcast::loop {
namespace {

TEST(Interpreter, MatmulAndItsScheduleAgree) {
  std::vector<float> a = random_floats(6 * 9, 1);
  std::vector<float> b = random_floats(9 * 16, 2);
  std::vector<float> by_definition(6 * 16);
  std::vector<float> by_loops(6 * 16);
  const std::string head =
      "kernel @matmul(a: f32[N,9] read, b: f32[9,16] read, y: f32[N,16] write) sizes(N) ";
  run_text(head +
               "{ define [i in N, j in 16] reduce [k in 9] {"
               " acc: f32 = sum(init 0:f32, a[i, k]*b[k, j])"
               " y[i, j] = max(acc, 0:f32) } }",
           {bytes_of(a), bytes_of(b), bytes_of(by_definition)}, {{"N", 6}});
  run_text(head + R"({
    for io in 0 .. N/2 {
      for jo in 0 .. 2 {
        alloc tile : f32x8[2] registers
        unrolled for r in 0 .. 2 { store tile[r] = 0:f32x8 }
        for k in 0 .. 9 {
          let row = load f32x8 b[k*16 + jo*8]
          unrolled for s in 0 .. 2 {
            let product = broadcast(load f32 a[(io*2 + s)*9 + k], 8)*row
            store tile[s] = load f32x8 tile[s] + product
          }
        }
        unrolled for t in 0 .. 2 {
          store y[(io*2 + t)*16 + jo*8] = max(load f32x8 tile[t], 0:f32x8)
        }
      }
    }
  })",
           {bytes_of(a), bytes_of(b), bytes_of(by_loops)}, {{"N", 6}});
  EXPECT_EQ(by_definition, by_loops);
  float expected = 0;
  for (size_t k = 0; k < 9; ++k) expected += a[9 + k] * b[k * 16 + 3];
  EXPECT_EQ(by_definition[16 + 3], std::max(expected, 0.0f));
}

TEST(Interpreter, PaddedConvolution) {
  std::vector<float> x = random_floats(5 * 5, 1);
  std::vector<float> w = random_floats(3 * 3, 2);
  std::vector<float> y(5 * 5);
  run_text(R"(kernel @conv(x: f32[5,5] read, w: f32[3,3] read, y: f32[5,5] write) {
    define [r in 5, c in 5] reduce [p in 3, q in 3] {
      acc: f32 = sum(init 0.5:f32, w[p, q]*(if r + p - 1 >= 0 & r + p - 1 < 5 & c + q - 1 >= 0 &
                                            c + q - 1 < 5 then x[r + p - 1, c + q - 1]
                                            else 0:f32))
      y[r, c] = acc
    }
  })",
           {bytes_of(x), bytes_of(w), bytes_of(y)});
  for (int r = 0; r < 5; ++r) {
    for (int c = 0; c < 5; ++c) {
      float acc = 0.5f;
      for (int p = 0; p < 3; ++p) {
        for (int q = 0; q < 3; ++q) {
          const int row = r + p - 1;
          const int column = c + q - 1;
          const bool inside = row >= 0 && row < 5 && column >= 0 && column < 5;
          acc += w[static_cast<size_t>(p * 3 + q)] *
                 (inside ? x[static_cast<size_t>(row * 5 + column)] : 0.0f);
        }
      }
      EXPECT_EQ(y[static_cast<size_t>(r * 5 + c)], acc);
    }
  }
}

TEST(Interpreter, ArgmaxNeedsGeneralAccumulators) {
  std::vector<float> x = {3, 7, 7, 1, 9, 2, 9, 0};
  std::vector<int64_t> at(2);
  std::vector<float> best(2);
  run_text(R"(kernel @argmax(x: f32[2,4] read, at: i64[2] write, best: f32[2] write) {
    define [i in 2] reduce [k in 4] {
      top: f32 = general(init -inf:f32, if x[i, k] > top then x[i, k] else top)
      where: i64 = general(init 0:i64, select(x[i, k] > top, cast i64 (k), where))
      at[i] = where
      best[i] = top
    }
  })",
           {bytes_of(x), bytes_of(at), bytes_of(best)});
  EXPECT_EQ(at, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(best, (std::vector<float>{7, 9}));
}

TEST(Interpreter, AccumulatorsChangeTogether) {
  // Fibonacci: a, b = b, a + b.
  std::vector<int32_t> y(2);
  run_text(R"(kernel @fibonacci(y: i32[2] write) {
    define [] reduce [k in 10] {
      a: i32 = general(init 0:i32, b)
      b: i32 = general(init 1:i32, a + b)
      y[0] = a
      y[1] = b
    }
  })",
           {bytes_of(y)});
  EXPECT_EQ(y, (std::vector<int32_t>{55, 89}));
}

TEST(Interpreter, EveryReductionAndAnEmptyOne) {
  std::vector<int32_t> x = {3, -4, 6};
  std::vector<int32_t> y(6);
  run_text(R"(kernel @r(x: i32[K] read, y: i32[6] write) sizes(K) {
    define [] reduce [k in K] {
      s: i32 = sum(init 1:i32, x[k])
      p: i32 = prod(init 1:i32, x[k])
      h: i32 = max(init -100:i32, x[k])
      l: i32 = min(init 100:i32, x[k])
      n: i32 = bit_and(init -1:i32, x[k])
      o: i32 = bit_or(init 0:i32, x[k])
      y[0] = s y[1] = p y[2] = h y[3] = l y[4] = n y[5] = o
    }
  })",
           {bytes_of(x), bytes_of(y)}, {{"K", 3}});
  EXPECT_EQ(y, (std::vector<int32_t>{6, -72, 6, -4, 3 & -4 & 6, 3 | -4 | 6}));
  run_text(
      "kernel @r(x: i32[K] read, y: i32[1] write) sizes(K) { define [] reduce [k in K] {"
      " s: i32 = sum(init 1:i32, x[k]) y[0] = s } }",
      {bytes_of(x), bytes_of(y)}, {{"K", 0}});
  EXPECT_EQ(y[0], 1);
}

TEST(Interpreter, RefusesWhatDoesNotFit) {
  std::vector<float> x(3);
  EXPECT_THROW(run_text("kernel @k(x: f32[4] update) {}", {bytes_of(x)}), InternalError);
  EXPECT_THROW(run_text("kernel @k(x: f32[3] update) {}", {}), InternalError);
  EXPECT_THROW(run_text("kernel @k(x: f32[N] update) sizes(N) {}", {bytes_of(x)}), CompileError);
}

}  // namespace
}  // namespace backcast::loop
