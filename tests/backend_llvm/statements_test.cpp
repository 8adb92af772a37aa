// Statements, allocations and memory accesses: machine code against interpreter.
#include <gtest/gtest.h>

#include "tests/backend_llvm/program_helpers.h"

namespace backcast::testing {
namespace {

using loop::Expr;
using loop::ForKind;
using loop::Memory;
using loop::Op;
using loop::Scalar;
using loop::Stmt;
using loop::Type;

constexpr Type kF32{Scalar::f32, 1};
constexpr Type kI32{Scalar::i32, 1};

Expr i32(int64_t value) { return loop::int_constant(kI32, value); }

TEST(Statements, RegisterTileOfAMatrixProduct) {
  constexpr int32_t kLanes = 8;
  const Type vector{Scalar::f32, kLanes};
  const Expr i = loop::var("i"), j = loop::var("j"), k = loop::var("k"), n = loop::var("N");
  std::vector<Stmt> body = {loop::alloc("acc", vector, 2, Memory::registers)};
  for (int r = 0; r < 2; ++r) {
    body.push_back(loop::store("acc", r, loop::float_constant(vector, 0)));
  }
  std::vector<Stmt> inner;
  for (int r = 0; r < 2; ++r) {
    const Expr x = loop::broadcast(loop::load(kF32, "x", i * 20 + k), kLanes);
    const Expr w = loop::load(vector, "w", k * 32 + (j * 16 + r * kLanes));
    inner.push_back(loop::store("acc", r, loop::load(vector, "acc", r) + x * w));
  }
  body.push_back(loop::for_loop("k", 0, 20, loop::block(inner)));
  for (int r = 0; r < 2; ++r) {
    body.push_back(loop::store("y", i * 32 + (j * 16 + r * kLanes), loop::load(vector, "acc", r)));
  }
  loop::Kernel kernel;
  kernel.name = "product";
  kernel.sizes = {"N"};
  kernel.buffers = {read_buffer("x", Scalar::f32, {Dim::symbol("N"), 20}),
                    read_buffer("w", Scalar::f32, {20, 32}),
                    write_buffer("y", Scalar::f32, {Dim::symbol("N"), 32})};
  kernel.body = loop::for_loop("i", 0, n, loop::for_loop("j", 0, 2, loop::block(body)));
  std::vector<double> x, w;
  for (int v = 0; v < 60; ++v) x.push_back((v * 7 % 23 - 11) / 3.0);
  for (int v = 0; v < 640; ++v) w.push_back((v * 13 % 37 - 18) / 7.0);
  expect_agreement(single_kernel(kernel, {{"N", {1, 4}}}),
                   {Literal::from_doubles(ElementType::f32, {3, 20}, x),
                    Literal::from_doubles(ElementType::f32, {20, 32}, w)});
}

TEST(Statements, BranchesLoopsAndStackArrays) {
  const Expr i = loop::var("i");
  const Expr value = loop::load(kI32, "x", i);
  // Collatz steps of each value: a loop whose trips depend on data.
  const Expr current = loop::load(kI32, "state", 0);
  const Expr odd = loop::binary(Op::eq, loop::binary(Op::bit_and, current, i32(1)), i32(1));
  const Stmt step =
      loop::if_branch(odd, loop::store("state", 0, current * i32(3) + i32(1)),
                      loop::store("state", 0, loop::binary(Op::div, current, i32(2))));
  const Stmt collatz = loop::block(
      {loop::alloc("state", kI32, 2, Memory::stack), loop::store("state", 0, value),
       loop::store("state", 1, i32(0)),
       loop::while_loop(
           loop::binary(Op::ne, current, i32(1)),
           loop::block({step, loop::store("state", 1, loop::load(kI32, "state", 1) + i32(1))})),
       loop::store("steps", i, loop::load(kI32, "state", 1))});
  // A stack array written backwards, read forwards, then only every second element stored.
  const Expr j = loop::var("j"), q = loop::var("q");
  const Stmt reversal = loop::block(
      {loop::alloc("line", kI32, 16, Memory::stack),
       loop::for_loop("j", 0, 16, loop::store("line", Expr(15) - j, loop::load(kI32, "x", j))),
       loop::for_loop("q", 3, 13,
                      loop::if_branch(loop::binary(Op::eq, loop::floor_mod(q, 2), Expr(0)),
                                      loop::store("reversed", q, loop::load(kI32, "line", q))))});
  loop::Kernel kernel;
  kernel.name = "branches";
  kernel.buffers = {read_buffer("x", Scalar::i32, {16}), write_buffer("steps", Scalar::i32, {16}),
                    write_buffer("reversed", Scalar::i32, {16})};
  const Stmt clear = loop::for_loop("z", 0, 16, loop::store("reversed", loop::var("z"), i32(-1)));
  kernel.body = loop::block({clear, loop::for_loop("i", 0, 16, collatz), reversal});
  std::vector<double> x;
  for (int v = 1; v <= 16; ++v) x.push_back(v * 5 + 2);
  expect_agreement(single_kernel(kernel), {Literal::from_doubles(ElementType::i32, {16}, x)});
}

TEST(Statements, TheBranchNotTakenIsNotEvaluated) {
  const Expr i = loop::var("i");
  const Expr inside = loop::binary(Op::bit_and, loop::binary(Op::ge, i, Expr(2)),
                                   loop::binary(Op::lt, i, Expr(10)));
  const Expr shared = loop::load(kI32, "x", i - Expr(2));
  loop::Kernel kernel;
  kernel.name = "padded";
  kernel.buffers = {read_buffer("x", Scalar::i32, {8}), write_buffer("y", Scalar::i32, {12}),
                    write_buffer("z", Scalar::i32, {12})};
  kernel.body = loop::for_loop(
      "i", 0, 12,
      loop::block({loop::store("y", i, loop::if_then_else(inside, shared + shared, i32(-7))),
                   // The same node in the branches of two conditions of one expression.
                   loop::store("z", i,
                               loop::if_then_else(inside, shared, i32(1)) +
                                   loop::if_then_else(inside, shared * i32(3), i32(2)))}));
  expect_agreement(single_kernel(kernel), {special_values(ElementType::i32, 8, 3)});
}

TEST(Statements, UnrolledLoopsIndexRegisters) {
  const Expr i = loop::var("i"), u = loop::var("u"), v = loop::var("v");
  const Stmt fill = loop::for_loop("u", 0, 4, loop::store("r", u, loop::load(kF32, "x", i * 4 + u)),
                                   ForKind::unrolled);
  const Stmt drain =
      loop::for_loop("v", 0, 4, loop::store("y", i * 4 + v, loop::load(kF32, "r", Expr(3) - v)),
                     ForKind::unrolled);
  loop::Kernel kernel;
  kernel.name = "unrolled";
  kernel.buffers = {read_buffer("x", Scalar::f32, {32}), write_buffer("y", Scalar::f32, {32})};
  kernel.body = loop::for_loop(
      "i", 0, 8, loop::block({loop::alloc("r", kF32, 4, Memory::registers), fill, drain}));
  expect_agreement(single_kernel(kernel), {special_values(ElementType::f32, 32, 9)});
}

TEST(Statements, GathersAndScatters) {
  constexpr int32_t kLanes = 4;
  const Expr i = loop::var("i");
  const Type vector{Scalar::f32, kLanes};
  const Expr strided = loop::ramp(i, 8, kLanes);
  const Expr table =
      loop::cast({Scalar::index, kLanes}, loop::load({Scalar::i32, kLanes}, "at", i * kLanes));
  loop::Kernel kernel;
  kernel.name = "scattered";
  kernel.buffers = {
      read_buffer("x", Scalar::f32, {32}),           read_buffer("at", Scalar::i32, {32}),
      write_buffer("transposed", Scalar::f32, {32}), write_buffer("taken", Scalar::f32, {32}),
      write_buffer("scattered", Scalar::f32, {32}),  write_buffer("unit", Scalar::f32, {32})};
  kernel.body = loop::for_loop(
      "i", 0, 8,
      loop::block({loop::store("transposed", i * kLanes, loop::load(vector, "x", strided)),
                   loop::store("taken", i * kLanes, loop::load(vector, "x", table)),
                   loop::store("scattered", strided, loop::load(vector, "x", i * kLanes)),
                   loop::store("unit", i * kLanes,
                               loop::load(vector, "x", loop::ramp(i * kLanes, 1, kLanes)))}));
  std::vector<double> at;
  for (int v = 0; v < 32; ++v) at.push_back(v * 11 % 32);
  expect_agreement(single_kernel(kernel), {special_values(ElementType::f32, 32, 4),
                                           Literal::from_doubles(ElementType::i32, {32}, at)});
}

TEST(Statements, RegistersOfMasksAndVectorsOnTheStack) {
  constexpr int32_t kLanes = 8;
  const Type vector{Scalar::f32, kLanes};
  const Type mask{Scalar::boolean, kLanes};
  const Expr i = loop::var("i"), p = loop::var("p");
  const Expr a = loop::load(vector, "x", i * kLanes);
  const Stmt body = loop::block(
      {loop::alloc("m", mask, 1, Memory::registers), loop::alloc("s", vector, 4, Memory::stack),
       loop::store("m", 0, loop::binary(Op::gt, a, loop::float_constant(vector, 0))),
       loop::for_loop("p", 0, 4, loop::store("s", p, a + a)),
       loop::let("chosen", loop::select(loop::load(mask, "m", 0),
                                        loop::load(vector, "s", loop::floor_mod(i, 4)), a)),
       loop::store("y", i * kLanes, loop::var("chosen", vector)),
       loop::store("positive", i * kLanes, loop::load(mask, "m", 0))});
  loop::Kernel kernel;
  kernel.name = "masks";
  kernel.buffers = {read_buffer("x", Scalar::f32, {64}), write_buffer("y", Scalar::f32, {64}),
                    write_buffer("positive", Scalar::boolean, {64})};
  kernel.body = loop::for_loop("i", 0, 8, body);
  expect_agreement(single_kernel(kernel), {special_values(ElementType::f32, 64, 8)});
}

}  // namespace
}  // namespace backcast::testing
