// Traversal, substitution, renaming.
#include "ir/loop/visit.h"

#include <gtest/gtest.h>

#include "ir/loop/text.h"

namespace backcast::loop {
namespace {

TEST(Visit, SubstitutesAndFolds) {
  const Expr e = var("i") * Expr(4) + var("j");
  EXPECT_EQ(print(substitute(e, {{"i", Expr(2)}, {"j", Expr(1)}})), "9");
  EXPECT_EQ(print(substitute(e, {{"j", ramp(0, 1, 4)}})), "broadcast(i*4, 4) + ramp(0, 1, 4)");
}

TEST(Visit, KeepsUnchangedNodes) {
  const Expr e = var("i") + var("j");
  EXPECT_EQ(substitute(e, {{"k", Expr(1)}}).get(), e.get());
  const Stmt s = for_loop("i", 0, 4, store("y", e, var("v", {Scalar::f32})));
  EXPECT_EQ(substitute(s, {{"k", Expr(1)}}).get(), s.get());
}

TEST(Visit, RenamesBuffers) {
  const Kernel kernel = parse_kernel(
      "kernel @k(x: f32[4] read, y: f32[4] write) {"
      " define [i in 4] { y[i] = x[i] } store y[0] = load f32 x[1] }");
  EXPECT_EQ(
      print(rename_buffers(kernel.body, {{"x", "a"}, {"y", "b"}})),
      "block {\n  define [i in 4] {\n    b[i] = a[i]\n  }\n  store b[0] = load f32 a[1]\n}\n");
}

TEST(Visit, MakesNamesUnique) {
  const Stmt one = for_loop("i", 0, 4, store("y", var("i"), load({Scalar::f32}, "x", var("i"))));
  std::set<std::string> taken = {"x"};
  const Stmt both = with_unique_names(block({one, one}), taken);
  EXPECT_EQ(print(both),
            "block {\n  for i in 0 .. 4 {\n    store y[i] = load f32 x[i]\n  }\n"
            "  for i_1 in 0 .. 4 {\n    store y[i_1] = load f32 x[i_1]\n  }\n}\n");
  EXPECT_EQ(taken, (std::set<std::string>{"i", "i_1", "x"}));
}

TEST(Visit, FlattensBlocksButKeepsTheirNames) {
  const Stmt s = store("y", 0, constant({Scalar::f32}, 1));
  const Stmt named = block({let("a", Expr(1) + var("n")), s});
  EXPECT_EQ(block({block({s, s}), s})->body.size(), 3u);
  EXPECT_EQ(block({named, s})->body.size(), 2u);
}

}  // namespace
}  // namespace backcast::loop
