// Gradients keep every bit when values are computed again for a smaller arena: layers that read all
// results before them, as parts of one tensor.
#include "passes/plan/rematerialize.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "passes/graph/differentiate.h"
#include "passes/plan/order_steps.h"
#include "passes/plan/plan_memory.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

/// h' = concat(h, relu(h·s + b)·w), some times, each time with more columns.
std::string dense_block(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](const std::vector<int64_t>& values) {
    return values[random() % values.size()];
  };
  const int64_t rows = one_of({11, 24, 40});
  int64_t columns = one_of({5, 8, 16});
  const auto type = [&](int64_t width) { return fmt::format("f64[{},{}]", rows, width); };
  std::string params = fmt::format("%h0: {}", type(columns)), body;
  const int64_t layers = one_of({3, 4, 5});
  for (int64_t i = 0; i < layers; ++i) {
    const int64_t more = one_of({3, 4, 8});
    params +=
        fmt::format(", %s{0}: f64[{1}], %b{0}: f64[{1}], %w{0}: f64[{1},{2}]", i, columns, more);
    body += fmt::format(
        "  %ws{0} = broadcast %s{0} {{shape=[{1},{2}], dims=[1]}}\n"
        "  %wb{0} = broadcast %b{0} {{shape=[{1},{2}], dims=[1]}}\n"
        "  %m{0} = mul %h{0}, %ws{0}\n"
        "  %n{0} = add %m{0}, %wb{0}\n"
        "  %r{0} = relu %n{0}\n"
        "  %p{0} = dot_general %r{0}, %w{0} {{lhs_contract=[1], rhs_contract=[0]}}\n"
        "  %h{3} = concat %h{0}, %p{0} {{axis=1}}\n",
        i, rows, columns, i + 1);
    columns += more;
  }
  return fmt::format("func @main({}) -> {} {{\n{}  return %h{}\n}}\n", params, type(columns), body,
                     layers);
}

struct Gradients {
  Module module;
  loop::Program program;  // scheduled
};

Gradients scheduled(unsigned seed, const TargetInfo& target) {
  const Module both = add_vjp(parse_module(dense_block(seed)), "main");
  Gradients result{both, {}};
  Function vjp = both.function("main_vjp");
  vjp.name = "main";
  result.module.functions["main"] = std::move(vjp);
  PipelineOptions options;
  options.passes.bands = false;
  options.stop_after = "drop_unused";
  result.program = run_pipeline(result.module, target, options).program;
  return result;
}

int64_t arena_of(const loop::Program& program, const TargetInfo& target) {
  return plan_memory(order_steps(program, target), target).arena_bytes;
}

class DenseBlocks : public testing::TestWithParam<unsigned> {};

TEST_P(DenseBlocks, KeepEveryBitInLess) {
  const TargetInfo& target = *find_target(GetParam() % 2 == 0 ? "x86-64-v3" : "cortex-m4");
  const Gradients gradients = scheduled(GetParam(), target);
  const std::vector<Literal> inputs = random_inputs(gradients.module);
  const std::vector<Literal> expected = loop::interpret(gradients.program, "run", inputs);
  const int64_t whole = arena_of(gradients.program, target);
  int64_t least = whole;
  for (const int64_t percent : {90, 75, 60, 40}) {
    Recomputation done;
    const loop::Program again =
        rematerialize(gradients.program, target, {whole * percent / 100, 10}, &done);
    loop::verify(again, "rematerialize");
    const std::vector<Literal> found = loop::interpret(again, "run", inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found[i], expected[i]) << percent << " %, result " << i;
    }
    least = std::min(least, arena_of(again, target));
  }
  EXPECT_LT(least, whole);
}

INSTANTIATE_TEST_SUITE_P(Rematerialize, DenseBlocks, testing::Range(1u, 41u));

}  // namespace
}  // namespace backcast
