// Entry points: the checks of their arguments, the hooks, and steps on places in one arena.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "backend/library/abi.h"
#include "backend/llvm/host.h"
#include "backend/llvm/jit.h"
#include "ir/graph/error.h"
#include "runtime-c/include/bc_types.h"
#include "tests/backend_llvm/program_helpers.h"

namespace backcast::testing {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::Expr;
using loop::Scalar;
using loop::StepKind;

constexpr loop::Type kF32{Scalar::f32, 1};

loop::Kernel scale_kernel(const std::string& name, double factor) {
  const Expr i = loop::var("i");
  loop::Kernel kernel;
  kernel.name = name;
  kernel.sizes = {"N"};
  kernel.buffers = {read_buffer("a", Scalar::f32, {Dim::symbol("N"), 4}),
                    write_buffer("b", Scalar::f32, {Dim::symbol("N"), 4})};
  kernel.body = loop::for_loop(
      "i", 0, loop::var("N") * Expr(4),
      loop::store("b", i, loop::load(kF32, "a", i) * loop::float_constant(kF32, factor)));
  kernel.locs = {{"scale_" + name, "Mul"}};
  return kernel;
}

Buffer make_buffer(const std::string& name, Dims shape, BufferClass kind, int64_t offset = -1) {
  Buffer buffer;
  buffer.name = name;
  buffer.shape = std::move(shape);
  buffer.kind = kind;
  buffer.offset = offset;
  return buffer;
}

/// x·2 → arena, copied to another place, view of its second half · 3 → y (with rows 4 and up of a
/// buffer of twice the rows).
loop::Program chain() {
  const Dim n = Dim::symbol("N");
  loop::Program program;
  program.name = "chain";
  program.symbols = {{"N", {1, 4}}};
  program.buffers = {make_buffer("x", {n, 4}, BufferClass::input),
                     make_buffer("y", {n, 4}, BufferClass::output),
                     make_buffer("first", {n, 4}, BufferClass::arena, 0),
                     make_buffer("both", {8, 4}, BufferClass::arena, 64)};
  Buffer half = make_buffer("half", {n, 4}, BufferClass::arena);
  half.view_of = 3;
  half.view_offset = Dim(4) * n;
  program.buffers.push_back(half);
  program.arena_bytes = 64 + 128;
  program.arena_alignment = 16;
  program.kernels["two"] = scale_kernel("two", 2);
  program.kernels["three"] = scale_kernel("three", 3);
  loop::EntryPoint entry;
  entry.inputs = {0};
  entry.outputs = {1};
  entry.steps = {{StepKind::call, "two", {0, 2}, {n}, {}},
                 {StepKind::copy, "", {2, 4}, {}, {}},
                 {StepKind::call, "three", {4, 1}, {n}, {}}};
  program.entries = {entry};
  return program;
}

TEST(Entry, StepsShareAnArena) {
  std::vector<double> x;
  for (int i = 0; i < 12; ++i) x.push_back(i * 0.75 - 3);
  expect_agreement(chain(), {Literal::from_doubles(ElementType::f32, {3, 4}, x)});
}

struct Inputs {
  int64_t n;
  const float* x;
};
struct Outputs {
  float* y;
};
using Function = bc_status (*)(const Inputs*, const Outputs*, void*, size_t, const bc_context*);

class EntryCall : public ::testing::Test {
 protected:
  EntryCall() : program_(chain(), host_target()) {
    run_ = reinterpret_cast<Function>(program_.symbol("chain_run"));
  }

  CompiledProgram program_;
  Function run_ = nullptr;
  alignas(64) std::byte arena_[256] = {};
  float x_[16] = {1, 2, 3, 4, 5, 6, 7, 8};
  float y_[16] = {};
  Inputs in_{2, x_};
  Outputs out_{y_};
};

TEST_F(EntryCall, ChecksItsArguments) {
  EXPECT_EQ(run_(&in_, &out_, arena_, 192, nullptr), BC_OK);
  EXPECT_EQ(y_[7], 48);
  EXPECT_EQ(y_[8], 0) << "rows beyond the live size";
  EXPECT_EQ(run_(nullptr, &out_, arena_, 192, nullptr), BC_ERROR_NULL);
  EXPECT_EQ(run_(&in_, nullptr, arena_, 192, nullptr), BC_ERROR_NULL);
  EXPECT_EQ(run_(&in_, &out_, nullptr, 192, nullptr), BC_ERROR_NULL);
  EXPECT_EQ(run_(&in_, &out_, arena_, 191, nullptr), BC_ERROR_ARENA_SIZE);
  EXPECT_EQ(run_(&in_, &out_, arena_ + 8, 192, nullptr), BC_ERROR_ALIGNMENT);
  in_.x = nullptr;
  EXPECT_EQ(run_(&in_, &out_, arena_, 192, nullptr), BC_ERROR_NULL);
  in_.x = x_;
  out_.y = nullptr;
  EXPECT_EQ(run_(&in_, &out_, arena_, 192, nullptr), BC_ERROR_NULL);
  out_.y = y_;
  for (const int64_t n : {int64_t{0}, int64_t{5}, int64_t{-1}, (int64_t{1} << 32) + 1}) {
    in_.n = n;
    EXPECT_EQ(run_(&in_, &out_, arena_, 192, nullptr), BC_ERROR_DIMENSION) << n;
  }
}

TEST_F(EntryCall, CallsHooks) {
  std::string log;
  bc_context context = {};
  context.struct_bytes = sizeof(context);
  context.user = &log;
  context.before_kernel = [](void* user, int32_t kernel, const char* name) {
    *static_cast<std::string*>(user) += fmt::format("<{} {}", kernel, name);
  };
  EXPECT_EQ(run_(&in_, &out_, arena_, 192, &context), BC_OK);
  EXPECT_EQ(log, "<0 scale_two<1 copy<2 scale_three");
  log.clear();
  context.after_kernel = [](void* user, int32_t, const char*) {
    *static_cast<std::string*>(user) += ">";
  };
  EXPECT_EQ(run_(&in_, &out_, arena_, 192, &context), BC_OK);
  EXPECT_EQ(log, "<0 scale_two><1 copy><2 scale_three>");
  // Members past the caller's struct are not looked at.
  log.clear();
  context.struct_bytes = offsetof(bc_context, before_kernel);
  EXPECT_EQ(run_(&in_, &out_, arena_, 192, &context), BC_OK);
  EXPECT_EQ(log, "");
}

/// Steps in a loop begin and end in every trip, and what stands around it is not under way.
TEST(Entry, HooksFollowLoops) {
  loop::Program looped = chain();
  loop::Step trips;
  trips.kind = StepKind::loop;
  trips.buffers = {-1, -1};
  trips.symbol = "t";
  trips.count = 2;
  trips.body = {looped.entries[0].steps[1]};
  looped.entries[0].steps[1] = trips;
  std::string log;
  bc_context context = {};
  context.struct_bytes = sizeof(context);
  context.user = &log;
  context.before_kernel = [](void* user, int32_t kernel, const char* name) {
    *static_cast<std::string*>(user) += fmt::format("<{} {}", kernel, name == nullptr ? "" : name);
  };
  context.after_kernel = [](void* user, int32_t kernel, const char* name) {
    EXPECT_EQ(name == nullptr, static_cast<std::string*>(user)->ends_with(" "));
    *static_cast<std::string*>(user) += fmt::format(" {}>", kernel);
  };
  alignas(64) std::byte arena[256] = {};
  const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float y[8] = {};
  const Inputs in{2, x};
  const Outputs out{y};
  for (const bool names : {true, false}) {
    const CompiledProgram program(looped, host_target(), {.names = names});
    log.clear();
    const auto run = reinterpret_cast<Function>(program.symbol("chain_run"));
    EXPECT_EQ(run(&in, &out, arena, 192, &context), BC_OK);
    EXPECT_EQ(log, names ? "<0 scale_two 0><2 copy 2><2 copy 2><3 scale_three 3>"
                         : "<0  0><2  2><2  2><3  3>");
  }
}

TEST(Entry, RefusesInputsOfAnotherType) {
  const CompiledProgram program(chain(), host_target(), {.level = 0});
  EXPECT_THROW(program.run("run", {}), CompileError);
  EXPECT_THROW(program.run("run", {Literal::from_ints({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}),
               CompileError);
  EXPECT_THROW(program.run("run", {Literal::from_doubles(ElementType::f32, {5, 4},
                                                         std::vector<double>(20, 1.0))}),
               CompileError);
}

}  // namespace
}  // namespace backcast::testing
