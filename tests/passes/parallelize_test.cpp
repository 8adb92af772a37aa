// What may be shared out among threads: proofs on kernels written down here, and whole models whose
// kernels run piece by piece, the last piece first, to the bit.
#include "passes/schedule/parallelize.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "driver/compiler.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/step_access.h"
#include "ir/loop/text.h"
#include "passes/pipeline.h"
#include "passes/schedule/independence.h"

namespace backcast {
namespace {

bool independent(const std::string& parameters, const std::string& body) {
  const loop::Kernel kernel =
      loop::parse_kernel("kernel @k(" + parameters + ") {\n" + body + "\n}\n");
  const bool is_block = kernel.body->kind == loop::StmtKind::block;
  return are_independent(kernel,
                         is_block ? kernel.body->body : std::vector<loop::Stmt>{kernel.body});
}

constexpr const char* kTwo = "x: f32[64] read, y: f32[64] write";

TEST(Independence, RowsAreApart) {
  EXPECT_TRUE(independent(kTwo, R"(for i in 0 .. 8 {
    for j in 0 .. 8 { store y[i * 8 + j] = load f32 x[i * 8 + j] }
  })"));
}

TEST(Independence, ColumnsAreApartInAnyOrderOfTheLoops) {
  EXPECT_TRUE(independent(kTwo, R"(for j in 0 .. 8 {
    for i in 0 .. 8 { store y[i * 8 + j] = load f32 x[i * 8 + j] }
  })"));
}

TEST(Independence, LetsAreSeenThrough) {
  EXPECT_TRUE(independent(kTwo, R"(for i in 0 .. 8 {
    let row = i * 8
    for j in 0 .. 8 { store y[row + j] = load f32 x[j] }
  })"));
}

TEST(Independence, RowsThatOverlapAreNot) {
  EXPECT_FALSE(independent(kTwo, R"(for i in 0 .. 7 {
    for j in 0 .. 9 { store y[i * 8 + j] = load f32 x[j] }
  })"));
}

TEST(Independence, AVectorMayReachIntoTheNextRow) {
  EXPECT_FALSE(independent("x: f32[68] read, y: f32[68] write", R"(for i in 0 .. 8 {
    store y[i * 7] = load f32x8 x[i * 8]
  })"));
}

TEST(Independence, ASumOverTheLoopIsNot) {
  EXPECT_FALSE(independent("x: f32[64] read, y: f32[8] update", R"(for i in 0 .. 8 {
    for j in 0 .. 8 { store y[j] = load f32 y[j] + load f32 x[i * 8 + j] }
  })"));
}

TEST(Independence, WhatIsReadOfTheResultMustBeTheIterationsOwn) {
  EXPECT_TRUE(independent("y: f32[64] update", R"(for i in 0 .. 8 {
    for j in 1 .. +7 { store y[i * 8 + j] = load f32 y[i * 8] }
  })"));
  EXPECT_FALSE(independent("y: f32[72] update", R"(for i in 0 .. 8 {
    for j in 0 .. 8 { store y[i * 8 + j] = load f32 y[i * 8 + 8] }
  })"));
}

TEST(Independence, AnOperandUnderTheResultCountsAsTheResult) {
  const char* shifted = R"(for i in 0 .. 63 { store y[i] = load f32 x[i + 1] })";
  EXPECT_TRUE(independent(kTwo, shifted));
  EXPECT_FALSE(independent("x: f32[64] read, y: f32[64] write over(x)", shifted));
}

TEST(Independence, TwoLoopsMustNotMeet) {
  const char* body = R"(for i in 0 .. 4 {{
    for r in 0 .. 4 {{ store y[r * 16 + i * 2] = load f32x2 x[r * 16 + i * 2] }}
  }}
  for k in 0 .. 4 {{
    for s in 0 .. 4 {{ store y[s * 16 + k * 2 + {}] = load f32x2 x[s * 16 + k * 2] }}
  }})";
  EXPECT_TRUE(independent(kTwo, fmt::format(fmt::runtime(body), 8)));
  EXPECT_FALSE(independent(kTwo, fmt::format(fmt::runtime(body), 6)));
}

TEST(Independence, RowsOfATileHaveNoVariable) {
  // Two blocks of 24 columns of 64, then the other 16, of two rows at a time.
  EXPECT_TRUE(independent("x: f32[256] read, y: f32[256] write", R"(for f in 0 .. 2 {
    for r in 0 .. 2 {
      store y[f * 24 + r * 128] = load f32x8 x[0]
      store y[f * 24 + r * 128 + 16] = load f32x8 x[8]
      store y[f * 24 + r * 128 + 64] = load f32x8 x[0]
      store y[f * 24 + r * 128 + 80] = load f32x8 x[8]
    }
  }
  for once in 0 .. 1 {
    store y[48] = load f32x16 x[0]
    store y[112] = load f32x16 x[0]
  })"));
}

TEST(Independence, ABlockMayNotReachTheNextRow) {
  EXPECT_FALSE(independent("x: f32[256] read, y: f32[256] write", R"(for f in 0 .. 3 {
    store y[f * 24] = load f32x16 x[0]
    store y[f * 24 + 48] = load f32x16 x[0]
  })"));
}

TEST(Independence, LanesApartCountLikeALoop) {
  const char* body = R"(for y in 0 .. 3 {{
    for f in 0 .. 2 {{ store y[ramp(y * {} + f * 72, 9, 8)] = load f32x8 x[0] }}
  }})";
  const char* both = "x: f32[8] read, y: f32[144] write";
  EXPECT_TRUE(independent(both, fmt::format(fmt::runtime(body), 3)));
  EXPECT_FALSE(independent(both, fmt::format(fmt::runtime(body), 9)));
}

/// Sizes are the same in all iterations, and so is what is made of them.
TEST(Independence, RowsThatRunTimeCountsAreApart) {
  const std::string sizes = "x: f32[8] read, y: f32[M,64] write) sizes(M";
  EXPECT_TRUE(independent(sizes, R"(for j in 0 .. 8 {
    for i in 0 .. M % 3 { store y[M * 64 - M % 3 * 64 + i * 64 + j * 8] = load f32x8 x[0] }
  })"));
  EXPECT_FALSE(independent(sizes, R"(for j in 0 .. 8 {
    for i in 0 .. M % 3 { store y[M * 64 - j % 3 * 64 + i * 64 + j * 8] = load f32x8 x[0] }
  })"));
}

TEST(Independence, OneIterationIsApart) {
  EXPECT_TRUE(independent("y: f32[8] update", R"(for once in 0 .. 1 {
    for i in 0 .. 8 { store y[0] = load f32 y[0] + load f32 y[i] }
  })"));
}

TEST(Independence, UnknownIndicesProveNothing) {
  EXPECT_FALSE(independent("n: i64[8] read, y: f32[64] write", R"(for i in 0 .. 8 {
    store y[cast index (load i64 n[i])] = 1:f32
  })"));
}

/// Every call that may be cut as many, one iteration each, the last one first.
void cut(std::vector<loop::Step>& steps, int& calls) {
  std::vector<loop::Step> result;
  for (loop::Step& step : steps) {
    cut(step.body, calls);
    cut(step.otherwise, calls);
    if (step.grain == 0) {
      result.push_back(step);
      continue;
    }
    ++calls;
    for (int64_t i = step.sizes.back().constant(); i-- > 0;) {
      loop::Step piece = step;
      piece.grain = 0;
      piece.sizes.end()[-2] = Dim(i);
      piece.sizes.end()[-1] = Dim(i + 1);
      result.push_back(std::move(piece));
    }
  }
  steps = std::move(result);
}

class Models : public testing::TestWithParam<const char*> {};

TEST_P(Models, PiecesGiveTheSameBits) {
  const std::filesystem::path folder = std::filesystem::path(MODELS) / GetParam();
  TargetInfo target = resolve_target("x86-64-v3");
  target.parallel_grain = 1;
  PipelineResult state;
  state.module = import_model((folder / "model.onnx").string(), {}).module;
  for (const std::string& pass : pass_names()) run_pass(state, pass, target, "model");
  loop::Program pieces = state.program;
  int calls = 0;
  for (loop::EntryPoint& entry : pieces.entries) cut(entry.steps, calls);
  EXPECT_GT(calls, 0);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<Literal> inputs;
  for (const loop::BufferId id : pieces.entries.front().inputs) {
    const loop::Buffer& buffer = pieces.buffer(id);
    std::vector<int64_t> shape;
    for (const Dim& extent : buffer.shape) shape.push_back(extent.constant());
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(real(random));
    inputs.push_back(Literal::from_doubles(buffer.element, shape, values));
  }
  EXPECT_EQ(loop::interpret(pieces, "run", inputs), loop::interpret(state.program, "run", inputs));
}

/// Multiply-accumulates of all calls, and of those that may be cut.
void count(const loop::Program& program, const std::vector<loop::Step>& steps, double& all,
           double& shared) {
  loop::for_each_call(steps, [&](const loop::Step& step) {
    const double macs = static_cast<double>(program.kernels.at(step.kernel).macs);
    all += macs;
    if (step.grain > 0) shared += macs;
  });
}

INSTANTIATE_TEST_SUITE_P(OfTheRepository, Models,
                         testing::Values("digits_cnn", "dscnn_small", "resnet_small",
                                         "transformer_small", "keras_style"));

class Networks : public testing::TestWithParam<const char*> {};

TEST_P(Networks, ShareNearlyAllProducts) {
  const std::string path = fmt::format("{}/{}.onnx", NETWORKS, GetParam());
  const Module module = import_model(path, {.dims = {{"N", {1, 1}}}}).module;
  for (const char* name : {"x86-64-v3", "x86-64-v4", "aarch64"}) {
    TargetInfo target = resolve_target(name);
    target.parallel_grain = 1;
    const loop::Program program = run_pipeline(module, target, {}).program;
    double all = 0, shared = 0;
    for (const loop::EntryPoint& entry : program.entries) {
      count(program, entry.steps, all, shared);
    }
    EXPECT_GT(shared, 0.95 * all) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(OfTheRepository, Networks, testing::Values("enc", "ic", "kws", "vww"));

}  // namespace
}  // namespace backcast
