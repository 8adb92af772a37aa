// What a loop reads row by row is computed a few rows at a time: the same values, for any number of
// trips and direction; not where something else needs the rows.
#include "passes/lower/loop_bands.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "ir/target/target_info.h"
#include "passes/pipeline.h"
#include "tests/ops/cases.h"

namespace backcast {
namespace {

struct Recurrence {
  int64_t trips = 4;
  bool reverse = false;   // the trips
  bool from_end = false;  // the rows, turned in front of the loop
  bool two_products = false;
  bool computed = false;     // what they multiply, by more than they would do themselves
  bool stacked = false;      // another recurrence on top
  bool read_behind = false;  // the rows of the product
  bool bounded = false;      // by a number that only run time knows
};

/// A product of all inputs, and a recurrence over its rows.
Module module_of(const Recurrence& r) {
  const std::string rows = fmt::format("f32[{},4]", r.trips);
  std::string text = R"(
func @step(%h: f32[4], %x: f32[4], %y: f32[4], %r: f32[4,4]) -> (f32[4], f32[4]) {
  %0 = dot_general %r, %h {lhs_contract=[1], rhs_contract=[0]}
  %1 = add %0, %x
  %2 = mul %1, %y
  %3 = tanh %2
  %4 = tuple %3, %1
  return %4
}
)";
  text += fmt::format(
      "func @main(%n: i64[], %h: f32[4], %xs: f32[{},3], %w: f32[4,3], %v: "
      "f32[4,3], %r: f32[4,4]) -> (f32[4], {}, {}) {{\n",
      r.trips, rows, rows);
  const char* x = r.computed ? "%e" : "%xs";
  text += "  %e = exp %xs\n";
  text += fmt::format("  %a = dot_general {}, %w {{lhs_contract=[1], rhs_contract=[1]}}\n", x);
  text += fmt::format("  %b = dot_general {}, %v {{lhs_contract=[1], rhs_contract=[1]}}\n", x);
  text += "  %one = constant {value=f32[] 1}\n";
  text += fmt::format("  %ones = broadcast %one {{shape=[{},4]}}\n", r.trips);
  text += "  %c = add %b, %ones\n";
  text += fmt::format("  %count = constant {{value=i64[] {}}}\n", r.trips);
  text +=
      fmt::format("  %s = scan {}, %h, {}, {}, %r {{body=@step, carries=1, xs=2, length={}{}}}\n",
                  r.bounded ? "%n" : "%count", "%a", r.two_products ? "%c" : "%a", r.trips,
                  r.reverse ? ", reverse=true" : "");
  text += "  %last = get %s {index=0}\n  %all = get %s {index=1}\n";
  std::string all = "%all";
  if (r.stacked) {
    text += "  %d = dot_general %all, %r {lhs_contract=[1], rhs_contract=[1]}\n";
    text += fmt::format(
        "  %s2 = scan %count, %h, %d, %d, %r {{body=@step, carries=1, xs=2, "
        "length={}{}}}\n",
        r.trips, r.reverse ? ", reverse=true" : "");
    text += "  %all2 = get %s2 {index=1}\n";
    all = "%all2";
  }
  text += fmt::format("  %other = neg {}\n", r.read_behind ? "%a" : all);
  text += fmt::format("  %t = tuple %last, {}, %other\n  return %t\n}}\n", all);
  return parse_module(text);
}

loop::Program fused(const Module& module) {
  PipelineOptions options;
  options.stop_after = "update_in_place";
  return run_pipeline(module, *find_target("cortex-m4"), options).program;
}

std::vector<Literal> inputs_of(const Recurrence& r) {
  const auto numbers = [](std::vector<int64_t> shape, double scale) {
    std::vector<double> values;
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(scale * static_cast<double>(i * 7 % 11 - 5));
    }
    return Literal::from_doubles(ElementType::f32, shape, values);
  };
  return {Literal::from_ints({}, {r.trips - 1}),
          numbers({4}, 0.1),
          numbers({r.trips, 3}, 0.2),
          numbers({4, 3}, 0.3),
          numbers({4, 3}, 0.1),
          numbers({4, 4}, 0.05)};
}

int64_t largest_arena_buffer(const loop::Program& program) {
  int64_t most = 0;
  std::set<loop::BufferId> used;
  for (const loop::Step& step : program.entries[0].steps) {
    for (const loop::BufferId id : loop::written_buffers(program, step)) used.insert(id);
  }
  for (const loop::BufferId id : used) {
    if (program.buffer(id).kind == loop::BufferClass::arena) {
      most = std::max(most, program.storage_bytes(id));
    }
  }
  return most;
}

void check(const Recurrence& r, int64_t most_rows = 8,
           TripsTogether together = TripsTogether::as_tiles) {
  const loop::Program whole = fused(module_of(r));
  const std::optional<loop::Program> bands = loop_bands(whole, together);
  ASSERT_TRUE(bands.has_value()) << r.trips << "\n" << loop::print(whole);
  loop::verify(*bands);
  EXPECT_TRUE(equal(loop::parse_program(loop::print(*bands)), *bands));
  EXPECT_LE(largest_arena_buffer(*bands), most_rows * 4 * 4) << loop::print(*bands);
  // What no loop counts by is a dimension that callers give.
  std::set<std::string> counted;
  for (const loop::Step* step : loop::flat_steps(bands->entries[0].steps)) {
    if (step->kind == loop::StepKind::loop) counted.insert(step->symbol);
  }
  for (const auto& [symbol, range] : bands->symbols) EXPECT_TRUE(counted.contains(symbol));
  const std::vector<Literal> expected = loop::interpret(whole, "run", inputs_of(r));
  const std::vector<Literal> found = loop::interpret(*bands, "run", inputs_of(r));
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(difference(found[i], expected[i], 0), "") << r.trips << "\n" << loop::print(*bands);
  }
}

TEST(LoopBands, KeepEveryValue) {
  for (const int64_t trips : {5, 6, 7, 8, 9, 11, 13, 16, 21, 31}) {
    for (const bool reverse : {false, true}) {
      for (const bool two_products : {false, true}) {
        check({.trips = trips, .reverse = reverse, .two_products = two_products});
      }
    }
  }
}

TEST(LoopBands, OfOneTripKeepEveryValue) {
  for (const int64_t trips : {2, 3, 13, 16}) {
    for (const bool reverse : {false, true}) {
      for (const bool two_products : {false, true}) {
        check({.trips = trips, .reverse = reverse, .two_products = two_products}, 2,
              TripsTogether::one);
      }
      check({.trips = trips, .reverse = reverse, .stacked = true}, 2, TripsTogether::one);
      check({.trips = trips, .reverse = reverse, .computed = true}, 2, TripsTogether::one);
    }
  }
}

TEST(LoopBands, OfRecurrencesOnTopOfEachOtherAreOne) {
  for (const int64_t trips : {6, 8, 15, 16, 21, 25}) {
    for (const bool reverse : {false, true}) {
      check({.trips = trips, .reverse = reverse, .stacked = true});
    }
  }
  // Of a prime number all rows stay between the two.
  for (const int64_t trips : {11, 13}) check({.trips = trips, .stacked = true}, trips);
}

TEST(LoopBands, LeaveWhatIsReadElsewhere) {
  EXPECT_FALSE(loop_bands(fused(module_of({.trips = 12, .read_behind = true}))));
}

TEST(LoopBands, LeaveFewTripsAndUnknownNumbers) {
  EXPECT_FALSE(loop_bands(fused(module_of({.trips = 3}))));
  EXPECT_FALSE(loop_bands(fused(module_of({.trips = 12, .bounded = true}))));
}

TEST(LoopBands, AreChosenOnMicrocontrollersWhereTheySaveMemory) {
  const auto arena = [](const Module& module, const char* target, bool bands) {
    PipelineOptions options;
    options.passes.bands = bands;
    return run_pipeline(module, *find_target(target), options).program.arena_bytes;
  };
  const Module module = module_of({.trips = 96});
  EXPECT_LT(arena(module, "cortex-m4", true), 300);
  EXPECT_GT(arena(module, "cortex-m4", false), 96 * 4 * 4);
  EXPECT_GT(arena(module, "x86-64-v3", true), 96 * 4 * 4);
}

TEST(LoopBands, AreOfOneTripWhereMemoryIsShort) {
  const auto arena = [](std::optional<int64_t> ram) {
    PipelineOptions options;
    options.passes.ram = ram;
    const Module module = module_of({.trips = 95});
    return run_pipeline(module, *find_target("cortex-m4"), options).program.arena_bytes;
  };
  EXPECT_GE(arena(std::nullopt), 5 * 4 * 4);
  EXPECT_LT(arena(4 * 4 * 4), 5 * 4 * 4);
}

}  // namespace
}  // namespace backcast
