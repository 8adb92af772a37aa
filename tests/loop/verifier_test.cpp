// What the verifier refuses.
#include "ir/loop/verifier.h"

#include <gtest/gtest.h>

#include "ir/graph/error.h"
#include "ir/loop/text.h"

namespace backcast::loop {
namespace {

std::string message_of(const auto& thing) {
  try {
    verify(thing, "pass");
  } catch (const InternalError& error) {
    return error.what();
  }
  return "none";
}

std::string kernel_message(const std::string& body, const std::string& shape = "4,4") {
  return message_of(parse_kernel("kernel @k(x: f32[" + shape +
                                 "] read, y: f32[4] write) sizes(N) {" + body + "}"));
}

Kernel with_body(const Stmt& body) {
  Kernel kernel;
  kernel.name = "k";
  kernel.buffers = {{"y", Scalar::f32, {Dim(4)}, AccessMode::write, {}}};
  kernel.body = body;
  return kernel;
}

TEST(Verifier, AcceptsWhatIsRight) {
  EXPECT_EQ(kernel_message("for i in 0 .. N { let a = i*2 store y[a] = load f32 x[a] }"
                           " define [i in 4] reduce [k in 4] {"
                           " s: f32 = sum(init 0:f32, x[i, k]) y[i] = tanh.f32(s) }"
                           " define [i in 4] { y[i] = x[i, i] }"),
            "none");
}

TEST(Verifier, Names) {
  EXPECT_EQ(message_of(with_body(store("y", var("i"), constant({Scalar::f32}, 1)))),
            "after pass: kernel k: unbound variable in i");
  EXPECT_EQ(kernel_message("let a = N let a = N"), "after pass: kernel k: a second a (let)");
  EXPECT_EQ(kernel_message("for i in 0 .. 4 { } for i in 0 .. 4 { }"),
            "after pass: kernel k: a second i (loop)");
  EXPECT_EQ(kernel_message("", "M,4"),
            "after pass: kernel k: the size M of a buffer is no parameter");
  // A let ends with its block.
  const Stmt inner = for_loop(
      "i", 0, 4, block({let("a", var("i")), store("y", var("a"), constant({Scalar::f32}, 1))}));
  const Stmt outer = block({inner, store("y", var("a"), constant({Scalar::f32}, 1))});
  EXPECT_EQ(message_of(with_body(outer)), "after pass: kernel k: unbound variable in a");
}

TEST(Verifier, Buffers) {
  EXPECT_EQ(kernel_message("store x[0] = 1:f32"),
            "after pass: kernel k: x is only read in store x[0] = 1:f32\n");
  EXPECT_EQ(kernel_message("store y[0] = load f32 z[0]"),
            "after pass: kernel k: unknown buffer z in load f32 z[0]");
  EXPECT_EQ(kernel_message("let a = load i32 x[0]"),
            "after pass: kernel k: a value of type i32 in an array of f32 in load i32 x[0]");
  EXPECT_EQ(kernel_message("define [i in 4] { y[i] = x[i] }"),
            "after pass: kernel k: 1 indices for the 2 dimensions of x in x[i]");
  EXPECT_EQ(kernel_message("let a = x[0, 0]"),
            "after pass: kernel k: an access outside of a definition in x[0, 0]");
  EXPECT_EQ(kernel_message("alloc t : f32x4[2] registers let a = load f32 t[0]"),
            "after pass: kernel k: a value of type f32 in an array of f32x4 in load f32 t[0]");
}

TEST(Verifier, TypesOfHandmadeNodes) {
  const Expr f = constant({Scalar::f32}, 1);
  const Expr sum(std::make_shared<const ExprNode>(
      ExprNode{.kind = ExprKind::binary, .type = {Scalar::f32}, .op = Op::add, .args = {f, 1}}));
  EXPECT_EQ(message_of(with_body(store("y", 0, sum))),
            "after pass: kernel k: add of f32 and index in 1:f32 + 1");
  const Expr pairs(std::make_shared<const ExprNode>(
      ExprNode{.kind = ExprKind::binary, .type = {Scalar::f32}, .op = Op::dot2, .args = {f, f}}));
  EXPECT_EQ(message_of(with_body(store("y", 0, pairs))),
            "after pass: kernel k: dot2 of f32 in dot2(1:f32, 1:f32)");
  const Expr bytes(std::make_shared<const ExprNode>(
      ExprNode{.kind = ExprKind::unary, .type = {Scalar::f32}, .op = Op::odd_bytes, .args = {f}}));
  EXPECT_EQ(message_of(with_body(store("y", 0, bytes))),
            "after pass: kernel k: odd_bytes of f32 in odd_bytes(1:f32)");
  EXPECT_EQ(message_of(with_body(store("y", 0, call("hyper.f32", {Scalar::f32}, {f})))),
            "after pass: kernel k: unknown function hyper.f32 in hyper.f32(1:f32)");
}

std::string program_message(const std::string& arena, const std::string& steps) {
  return message_of(parse_program(
      "program @p\narena 64 bound 64 align 16\nbuffer %x : f32[8] input\n"
      "buffer %w : f32[8] constant {1, 1, 1, 1, 1, 1, 1, 1}\nbuffer %y : f32[8] output\n" +
      arena +
      "kernel @add(a: f32[8] read, b: f32[8] read, c: f32[8] write over(a)) {"
      " define [i in 8] { c[i] = a[i] + b[i] } }\n"
      "entry @run(%x) -> (%y) { " +
      steps + " }\n"));
}

TEST(Verifier, Plans) {
  const std::string apart =
      "buffer %s : f32[8] arena offset 0\nbuffer %t : f32[8] arena offset 32\n";
  const std::string shared =
      "buffer %s : f32[8] arena offset 0\nbuffer %t : f32[8] arena offset 0\n";
  const std::string crossing =
      "buffer %s : f32[8] arena offset 0\nbuffer %t : f32[8] arena offset 16\n";
  const std::string steps = "call @add(%x, %w, %s) call @add(%s, %w, %t) call @add(%t, %w, %y)";
  EXPECT_EQ(program_message(apart, steps), "none");
  EXPECT_EQ(program_message(shared, steps), "none");
  const std::string both =
      "after pass: program p: entry run: buffers s and t share bytes while both live";
  EXPECT_EQ(program_message(crossing, steps), both);
  // Only the first operand may be overwritten.
  EXPECT_EQ(program_message(shared, "call @add(%x, %w, %s) call @add(%x, %s, %t) copy %t, %y"),
            both);
  // s is needed later.
  EXPECT_EQ(program_message(shared, "call @add(%x, %w, %s) call @add(%s, %w, %t) copy %s, %y"),
            both);
  EXPECT_EQ(program_message("buffer %s : f32[8] arena offset 40\n", "copy %x, %s copy %s, %y"),
            "after pass: program p: buffer s lies outside of the arena");
}

TEST(Verifier, Calls) {
  EXPECT_EQ(program_message("", "call @add(%x, %y)"),
            "after pass: program p: a call of add with 2 buffers and 0 sizes for 3 and 0");
  EXPECT_EQ(program_message("", "call @sub(%x)"),
            "after pass: program p: a call of sub, which is no kernel");
  EXPECT_EQ(program_message("", "call @add(%x, %w, %w)"),
            "after pass: program p: w is written by kernel add");
  EXPECT_EQ(program_message("buffer %h : i32[8] arena\n", "call @add(%x, %h, %y)"),
            "after pass: program p: a call of add: h has another element type than b");
  EXPECT_EQ(program_message("buffer %h : f32[4] arena\n", "call @add(%x, %h, %y)"),
            "after pass: program p: a call of add: h has the shape [4], b has [8]");
}

TEST(Verifier, Reads) {
  const std::string two = "buffer %s : f32[8] arena\nbuffer %t : f32[8] arena\n";
  const std::string unwritten =
      "after pass: program p: entry run: a call of add reads buffer t before any step writes it";
  EXPECT_EQ(program_message(two, "call @add(%x, %w, %t) call @add(%t, %w, %y)"), "none");
  EXPECT_EQ(program_message(two, "call @add(%x, %w, %s) call @add(%t, %s, %y)"), unwritten);
  EXPECT_EQ(program_message(two, "call @add(%t, %w, %y) call @add(%x, %w, %t)"), unwritten);
  EXPECT_EQ(program_message("", "call @add(%y, %w, %y)"),
            "after pass: program p: entry run: a call of add reads buffer y before any step writes "
            "it");
  EXPECT_EQ(program_message(two, "copy %t, %y"),
            "after pass: program p: entry run: a step reads buffer t before any step writes it");
  // Nothing is read of what has no elements.
  EXPECT_EQ(program_message("buffer %e : f32[0] arena\nbuffer %z : f32[0] arena\n",
                            "copy %x, %y copy %e, %z"),
            "none");
}

TEST(Verifier, ReadsOfWhatTheKernelWritesFirst) {
  const auto message = [](const std::string& body) {
    return message_of(
        parse_program("program @p\nbuffer %x : f32[2] input\nbuffer %s : f32[2] arena\n"
                      "buffer %y : f32[2] output\n"
                      "kernel @k(a: f32[2] read, s: f32[2] update, c: f32[2] write) { " +
                      body + " }\nentry @run(%x) -> (%y) { call @k(%x, %s, %y) }\n"));
  };
  EXPECT_EQ(message("for i in 0 .. 2 { store s[i] = load f32 a[i] } "
                    "for j in 0 .. 2 { store c[j] = load f32 s[1 - j] }"),
            "none");
  EXPECT_EQ(
      message("for i in 0 .. 2 { store s[i] = load f32 s[i] + load f32 a[i] } "
              "for j in 0 .. 2 { store c[j] = load f32 s[1 - j] }"),
      "after pass: program p: entry run: a call of k reads buffer s before any step writes it");
}

/// The complaint of a verifier that has seen `before` about `now`.
std::string message_behind(const Program& before, const Program& now) {
  Verifier verifier;
  verifier.run(before, "pass");
  try {
    verifier.run(now, "pass");
  } catch (const InternalError& error) {
    return error.what();
  }
  return "none";
}

TEST(Verifier, LooksAgainAtKernelsThatChange) {
  const Program before = parse_program(
      "program @p\nbuffer %x : f32[2] input\nbuffer %y : f32[2] output\n"
      "function @twice.f32(a: f32) { return a + a }\n"
      "kernel @k(a: f32[2] read, c: f32[2] write) {"
      " for i in 0 .. 2 { store c[i] = twice.f32(load f32 a[i]) } }\n"
      "entry @run(%x) -> (%y) { call @k(%x, %y) }\n");
  EXPECT_EQ(message_behind(before, before), "none");
  Program now = before;
  Kernel& kernel = now.kernels.at("k");
  kernel.body = store("c", var("i"), constant({Scalar::f32}, 1));
  EXPECT_EQ(message_behind(before, now), "after pass: kernel k: unbound variable in i");
  kernel.body = store("c", 0, load({Scalar::f32}, "c", 0));
  kernel.buffers[1].mode = AccessMode::update;
  EXPECT_EQ(message_behind(before, now),
            "after pass: program p: entry run: a call of k reads buffer y before any step writes "
            "it");
  now = before;
  now.kernels.at("k").buffers[1].mode = AccessMode::read;
  EXPECT_NE(message_behind(before, now), "none");
  now = before;
  now.functions.clear();
  EXPECT_NE(message_behind(before, now), "none");
}

TEST(Verifier, Views) {
  EXPECT_EQ(
      program_message("buffer %v : f32[4] arena view of %u at 5\nbuffer %u : f32[8] arena\n", ""),
      "after pass: program p: view v leaves u");
  EXPECT_NE(program_message("buffer %v : f32[4] arena view of %u at 0\n"
                            "buffer %u : f32[4] arena view of %v at 0\n",
                            ""),
            "none");
  // Words of small integers, from the beginning; nothing else changes its type.
  const auto view = [](const std::string& type, const std::string& of, int at) {
    return program_message("buffer %v : " + type + " arena view of %u at " + std::to_string(at) +
                               "\nbuffer %u : " + of + " arena\n",
                           "");
  };
  EXPECT_EQ(view("i32[4]", "i16[8]", 0), "none");
  EXPECT_EQ(view("i32[5]", "i16[8]", 0), "after pass: program p: view v leaves u");
  const std::string other = "after pass: program p: view v has another element type";
  EXPECT_EQ(view("i32[2]", "i16[8]", 1), other);
  EXPECT_EQ(view("i16[8]", "i32[4]", 0), other);
  EXPECT_EQ(view("i32[4]", "f32[4]", 0), other);
}

}  // namespace
}  // namespace backcast::loop
