// Loops and branches through every pass: what the interpreter computes after each stage is what the
// evaluator computes of the graph, to the bit where no reduction is rearranged.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/graph/builder.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/liveness.h"
#include "ir/loop/text.h"
#include "ir/ops/ops.h"
#include "ir/target/target_info.h"
#include "passes/graph/differentiate.h"
#include "passes/pipeline.h"
#include "tests/ops/cases.h"

namespace backcast {
namespace {

loop::Program compile(const std::string& text, const std::string& stop = {},
                      const std::string& target = "x86-64-v3") {
  PipelineOptions options;
  options.verify = true;
  options.round_trip = true;
  options.stop_after = stop;
  return run_pipeline(parse_module(text), *find_target(target), options).program;
}

/// Compares the program after each pass that matters with the evaluator.
void check(const std::string& text, const std::vector<Literal>& inputs) {
  const Module module = parse_module(text);
  const std::vector<Value> arguments(inputs.begin(), inputs.end());
  const Value expected = evaluate(module, module.function("main"), arguments);
  const std::vector<Value> wanted =
      expected.is_tuple ? expected.elements : std::vector<Value>{expected};
  for (const char* target : {"x86-64-v3", "cortex-m4"}) {
    for (const char* stop : {"lower", "fuse", "place_copies", "schedule", "plan_memory"}) {
      const loop::Program program = compile(text, stop, target);
      const std::vector<Literal> found = loop::interpret(program, "run", inputs);
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(difference(found[i], wanted[i], 2e-6), "")
            << "result " << i << " after " << stop << " for " << target << "\n"
            << loop::print(program);
      }
    }
  }
}

int64_t count(const loop::Program& program, loop::StepKind kind) {
  int64_t found = 0;
  for (const loop::Step* step : loop::flat_steps(program.entries[0].steps)) {
    found += step->kind == kind;
  }
  return found;
}

std::string recurrence(const std::string& attributes) {
  return R"(
func @step(%h: f32[3], %x: f32[3], %w: f32[3,3]) -> (f32[3], f32[3]) {
  %0 = dot_general %w, %h {lhs_contract=[1], rhs_contract=[0]}
  %1 = add %0, %x
  %2 = tanh %1
  %3 = tuple %2, %2
  return %3
}
func @main(%n: i64[], %h: f32[3], %xs: f32[4,3], %w: f32[3,3]) -> (f32[3], f32[4,3]) {
  %0 = scan %n, %h, %xs, %w {body=@step, carries=1, xs=1, length=4)" +
         attributes + R"(}
  return %0
})";
}

std::vector<Literal> recurrence_inputs(int64_t trips) {
  std::vector<double> xs, w;
  for (int i = 0; i < 12; ++i) xs.push_back(0.1 * i - 0.5);
  for (int i = 0; i < 9; ++i) w.push_back(0.3 - 0.07 * i);
  return {i64({}, {trips}), f32({3}, {0.1, -0.2, 0.3}), f32({4, 3}, xs), f32({3, 3}, w)};
}

TEST(Control, Recurrence) {
  for (const int64_t trips : {4, 2, 0, -3, 100}) check(recurrence(""), recurrence_inputs(trips));
}

TEST(Control, Reverse) {
  for (const int64_t trips : {4, 3, 0}) {
    check(recurrence(", reverse=true"), recurrence_inputs(trips));
  }
}

TEST(Control, OnlyExecutedTripsAreCountedInAFullLoop) {
  std::string text = recurrence("");
  text.replace(text.find("scan %n"), 7, "scan %c");
  text.insert(text.find("  %0 = scan"), "  %c = constant {value=i64[] 4}\n");
  const loop::Program program = compile(text);
  const loop::Step* loop = nullptr;
  for (const loop::Step* step : loop::flat_steps(program.entries[0].steps)) {
    if (step->kind == loop::StepKind::loop) loop = step;
  }
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(loop->buffers, (std::vector<loop::BufferId>{-1, -1}));
  // The next carry is computed in its row and copied once; the initial carry is copied.
  EXPECT_EQ(count(program, loop::StepKind::copy), 2);
  check(text, recurrence_inputs(4));
}

TEST(Control, ExchangedCarries) {
  check(R"(
func @swap(%a: f32[2], %b: f32[2], %x: f32[2]) -> (f32[2], f32[2], f32[2], f32[2]) {
  %0 = add %a, %x
  %1 = tuple %b, %0, %a, %b
  return %1
}
func @main(%n: i64[], %a: f32[2], %b: f32[2], %xs: f32[5,2]) -> (f32[2], f32[2], f32[5,2], f32[5,2]) {
  %0 = scan %n, %a, %b, %xs {body=@swap, carries=2, xs=1, length=5}
  return %0
})",
        {i64({}, {5}), f32({2}, {1, 2}), f32({2}, {10, 20}),
         f32({5, 2}, {1, 1, 2, 2, 3, 3, 4, 4, 5, 5})});
}

TEST(Control, ConditionEndsTheLoop) {
  const std::string text = R"(
func @double(%go: bool[], %x: f32[]) -> (bool[], f32[], f32[]) {
  %0 = add %x, %x
  %1 = constant {value=f32[] 10}
  %2 = compare %0, %1 {direction=lt}
  %3 = tuple %2, %0, %x
  return %3
}
func @main(%go: bool[], %x: f32[]) -> (bool[], f32[], f32[6], f32[6], i64[]) {
  %n = constant {value=i64[] 6}
  %0 = scan %n, %go, %x {body=@double, carries=2, length=6, conditional=true, trajectory=true}
  %1 = get %0 {index=0}
  %2 = get %0 {index=1}
  %3 = get %0 {index=2}
  %4 = get %0 {index=4}
  %5 = get %0 {index=5}
  %6 = tuple %1, %2, %3, %4, %5
  return %6
})";
  check(text, {bools({}, {1}), f32({}, {3})});
  check(text, {bools({}, {0}), f32({}, {3})});
  check(text, {bools({}, {1}), f32({}, {0.01})});
}

/// Loops of elementwise kernels: each element by itself on cores without vectors, until it stays.
TEST(Control, ElementsGoThroughTheirTripsAlone) {
  const std::string text = R"(
func @walk(%at: i32[2,9], %next: i32[6], %x: f32[2,9]) -> (i32[2,9]) {
  %zero = constant {value=i32[] 0}
  %last = constant {value=i32[] 5}
  %lasts = broadcast %last {shape=[2,9]}
  %row = clamp %at, %zero, %last
  %there = gather %next, %row {offset_dims=[], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=2, slice_sizes=[1]}
  %half = constant {value=f32[] 0.5}
  %halves = broadcast %half {shape=[2,9]}
  %far = compare %x, %halves {direction=gt}
  %one = constant {value=i32[] 1}
  %ones = broadcast %one {shape=[2,9]}
  %farther = add %there, %ones
  %to = select %far, %farther, %there
  %inside = compare %at, %lasts {direction=le}
  %moved = select %inside, %to, %at
  %r = tuple %moved
  return %r
}
func @settle(%x: f32[2,9], %c: f32[2,9]) -> (f32[2,9]) {
  %p = mul %x, %c
  %y = add %p, %c
  %r = tuple %y
  return %r
}
func @main(%at: i32[2,9], %next: i32[6], %x: f32[2,9], %c: f32[2,9]) -> (i32[2,9], f32[2,9]) {
  %trips = constant {value=i64[] 4}
  %s = scan %trips, %at, %next, %x {body=@walk, carries=1, length=4}
  %end = get %s {index=0}
  %t = scan %trips, %x, %c {body=@settle, carries=1, length=4}
  %y = get %t {index=0}
  %r = tuple %end, %y
  return %r
})";
  std::vector<double> at, x, c;
  for (int i = 0; i < 18; ++i) {
    at.push_back(i % 10 - 1);
    x.push_back(i % 3 * 0.4);
    c.push_back(0.9 - 0.1 * i);
  }
  check(text, {Literal::from_doubles(ElementType::i32, {2, 9}, at),
               Literal::from_doubles(ElementType::i32, {6}, {1, 3, 6, 4, 5, 7}), f32({2, 9}, x),
               f32({2, 9}, c)});
  EXPECT_EQ(count(compile(text, "", "cortex-m4"), loop::StepKind::loop), 0);
  EXPECT_EQ(count(compile(text), loop::StepKind::loop), 2);
}

TEST(Control, BranchesAndNestedLoops) {
  const std::string text = R"(
func @half(%x: f32[2], %y: f32[2]) -> f32[2] {
  %0 = mul %x, %y
  %1 = concat %0, %x {axis=0}
  %2 = reverse %1 {axes=[0]}
  %3 = slice %2 {start=[0], limit=[2], stride=[1]}
  return %3
}
func @square(%x: f32[2], %y: f32[2]) -> f32[2] {
  return %y
}
func @inner(%s: f32[2], %x: f32[2], %k: f32[2]) -> (f32[2], f32[2]) {
  %0 = constant {value=f32[] 0.25}
  %1 = reduce %x {axes=[0]}
  %2 = compare %1, %0 {direction=lt}
  %3 = if_else %2, %s, %x {then=@half, otherwise=@square}
  %4 = add %s, %3
  %5 = mul %4, %k
  %6 = tuple %4, %5
  return %6
}
func @outer(%s: f32[2], %row: f32[3,2], %k: f32[2]) -> (f32[2], f32[3,2]) {
  %0 = constant {value=i64[] 3}
  %1 = scan %0, %s, %row, %k {body=@inner, carries=1, xs=1, length=3}
  return %1
}
func @main(%s: f32[2], %xs: f32[2,3,2], %k: f32[2]) -> (f32[2], f32[2,3,2]) {
  %0 = constant {value=i64[] 2}
  %1 = scan %0, %s, %xs, %k {body=@outer, carries=1, xs=1, length=2, reverse=true}
  return %1
})";
  check(text, {f32({2}, {0.5, 1}), f32({2, 3, 2}, {1, -1, 2, 0.5, -3, 1, 0, 0, 0.1, 0.1, 5, 6}),
               f32({2}, {2, 3})});
}

/// The vector-Jacobian product of such a recurrence as `main`, forward result included.
std::string adjoint_of(const std::string& text) {
  Module module = add_vjp(parse_module(text), "main", {"h", "xs", "w"});
  Function main = module.function("main_vjp");
  Builder builder(module, "main");
  std::vector<ValueId> operands;
  for (const ValueId param : main.params) {
    operands.push_back(builder.parameter(parameter_name(main.node(param)), main.type(param)));
  }
  builder.set_loc({"both", "", Origin::made});
  const std::vector<ValueId> forward(operands.begin(), operands.begin() + 4);
  module.functions["forward"] = module.function("main");
  module.functions["forward"].name = "forward";
  const ValueId result = builder.emit(ops::call, forward, CallAttrs{{"forward"}});
  const ValueId adjoints = builder.emit(ops::call, operands, CallAttrs{{"main_vjp"}});
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < 2; ++i) parts.push_back(builder.emit(ops::get, {result}, GetAttrs{i}));
  for (int64_t i = 0; i < 3; ++i) parts.push_back(builder.emit(ops::get, {adjoints}, GetAttrs{i}));
  const ValueId all = builder.emit(ops::tuple, parts);
  module.functions["main"] = builder.finish(all);
  return print(module);
}

TEST(Control, GradientRunsTheForwardLoopOnce) {
  const std::string text = adjoint_of(recurrence(""));
  EXPECT_EQ(count(compile(text), loop::StepKind::loop), 2);
  for (const int64_t trips : {4, 2, 0}) {
    std::vector<Literal> inputs = recurrence_inputs(trips);
    inputs.push_back(f32({3}, {1, -1, 0.5}));
    inputs.push_back(f32({4, 3}, {1, 2, 3, -1, 0, 1, 0.5, 0.5, 0.5, 2, 2, 2}));
    check(text, inputs);
  }
}

Module graph_after(const std::string& stop, const std::string& text) {
  PipelineOptions options;
  options.stop_after = stop;
  return run_pipeline(parse_module(text), *find_target("x86-64-v3"), options).module;
}

int64_t contractions_after(const std::string& stop, const std::string& text) {
  const Module module = graph_after(stop, text);
  int64_t found = 0;
  for (const auto& [name, function] : module.functions) {
    for (const Node& node : function.nodes) found += node.op == &ops::dot_general;
  }
  return found;
}

/// Of the only scan in `main`.
int64_t carries_after(const std::string& stop, const std::string& text) {
  const Module module = graph_after(stop, text);
  for (const Node& node : module.function("main").nodes) {
    if (node.op == &ops::scan) return node.attrs.as<ScanAttrs>().carries;
  }
  return 0;
}

std::vector<double> wave(int count, double scale = 1) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(scale * (0.9 - 0.13 * (i * 5 % 7)));
  return values;
}

TEST(Control, SumsOfContractionsGoBehindTheLoop) {
  for (const char* reverse : {"false", "true"}) {
    const std::string text = fmt::format(R"(
func @step(%h: f32[2,3], %sum: f32[6,4], %bias: f32[3], %x: f32[2,4], %w: f32[4,3]) -> (f32[2,3], f32[6,4], f32[3], f32[2,6]) {{
  %0 = dot_general %x, %w {{lhs_contract=[1], rhs_contract=[0]}}
  %1 = add %0, %h
  %2 = tanh %1
  %3 = mul %2, %h
  %zero = constant {{value=f32[] 0}}
  %4 = pad %2, %zero {{low=[0,0], high=[0,3], interior=[0,0]}}
  %5 = pad %0, %zero {{low=[0,3], high=[0,0], interior=[0,0]}}
  %6 = add %4, %5
  %7 = dot_general %2, %x {{lhs_contract=[0], rhs_contract=[0]}}
  %8 = dot_general %3, %x {{lhs_contract=[0], rhs_contract=[0]}}
  %9 = pad %7, %zero {{low=[0,0], high=[3,0], interior=[0,0]}}
  %10 = pad %8, %zero {{low=[3,0], high=[0,0], interior=[0,0]}}
  %11 = sub %9, %10
  %12 = add %11, %sum
  %13 = reduce %2 {{kind=sum, axes=[0]}}
  %14 = add %bias, %13
  %15 = tuple %2, %12, %14, %6
  return %15
}}
func @main(%h: f32[2,3], %s: f32[6,4], %b: f32[3], %xs: f32[5,2,4], %w: f32[4,3]) -> (f32[2,3], f32[6,4], f32[3], f32[5,2,6]) {{
  %n = constant {{value=i64[] 5}}
  %0 = scan %n, %h, %s, %b, %xs, %w {{body=@step, carries=3, xs=1, length=5, reverse={}}}
  %1 = get %0 {{index=0}}
  %2 = get %0 {{index=1}}
  %3 = get %0 {{index=2}}
  %4 = get %0 {{index=3}}
  %5 = tuple %1, %2, %3, %4
  return %5
}})",
                                         reverse);
    check(text, {f32({2, 3}, wave(6)), f32({6, 4}, wave(24)), f32({3}, wave(3)),
                 f32({5, 2, 4}, wave(40)), f32({4, 3}, wave(12))});
    EXPECT_EQ(carries_after("defer_sums", text), 1);
  }
}

const char* const kGated = R"(
func @step(%h: f32[2,8], %x: f32[2,16], %w: f32[8,16]) -> (f32[2,8], f32[2,8]) {
  %0 = dot_general %h, %w {lhs_contract=[1], rhs_contract=[0]}
  %1 = add %0, %x
  %2 = slice %1 {start=[0,0], limit=[2,8], stride=[1,1]}
  %3 = sigmoid %2
  %4 = slice %1 {start=[0,8], limit=[2,16], stride=[1,1]}
  %5 = tanh %4
  %6 = mul %3, %5
  %7 = tuple %6, %6
  return %7
}
func @main(%n: i64[], %h: f32[2,8], %xs: f32[4,2,16], %w: f32[8,16]) -> (f32[2,8], f32[4,2,8]) {
  %0 = scan %n, %h, %xs, %w {body=@step, carries=1, xs=1, length=4}
  return %0
})";

TEST(Control, LoopsBackwardsReadProducts) {
  const std::string text = adjoint_of(kGated);
  // One forwards, those of %h and %w backwards.
  EXPECT_EQ(contractions_after("simplify", text), 4);
  EXPECT_EQ(contractions_after("keep_products", text), 3);
  for (const int64_t trips : {4, 2, 0}) {
    check(text, {i64({}, {trips}), f32({2, 8}, wave(16)), f32({4, 2, 16}, wave(128, 0.1)),
                 f32({8, 16}, wave(128, 0.1)), f32({2, 8}, wave(16)), f32({4, 2, 8}, wave(64))});
  }
}

TEST(Control, LoopsBackwardsComputeAgainWhatDoesNotFit) {
  const Module module = parse_module(adjoint_of(kGated));
  const auto arena = [&](const PassOptions& passes) {
    PipelineOptions options;
    options.passes = passes;
    return run_pipeline(module, *find_target("x86-64-v3"), options).program.arena_bytes;
  };
  const int64_t least = arena({.frugal = true});
  EXPECT_GT(arena({}), least);
  EXPECT_EQ(arena({.ram = least}), least);
}

TEST(Control, LiveRangesReachOverLoops) {
  const loop::Program program = compile(recurrence(""));
  const std::vector<loop::LiveRange> ranges = loop::live_ranges(program, program.entries[0]);
  const std::vector<const loop::Step*> steps = loop::flat_steps(program.entries[0].steps);
  int64_t first = 0;
  while (steps[size_t(first)]->kind != loop::StepKind::loop) ++first;
  const int64_t last = first + static_cast<int64_t>(steps[size_t(first)]->body.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const loop::Buffer& buffer = program.buffers[i];
    if (buffer.view_of >= 0 || buffer.kind == loop::BufferClass::arena) continue;
    if (ranges[i].first > last || ranges[i].last < first) continue;
    EXPECT_LE(ranges[i].first, first) << buffer.name;
    EXPECT_GE(ranges[i].last, last) << buffer.name;
  }
}

}  // namespace
}  // namespace backcast
