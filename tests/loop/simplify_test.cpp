// Simplification: canonical sums, decided conditions, and that values stay what they were.
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/error.h"
#include "ir/loop/text.h"
#include "ir/loop/visit.h"

namespace backcast::loop {
namespace {

using Ranges = std::map<std::string, DimRange>;

const Expr i = var("i");
const Expr j = var("j");
const Expr k = var("k");
const Expr n = var("N");

std::string simple(const Expr& e, const Ranges& ranges = {}) { return print(simplify(e, ranges)); }

/// The body of a kernel of one store, simplified, as text.
std::string body_after(const std::string& body, const SymbolRanges& sizes = {}) {
  std::string names;
  for (const auto& [name, range] : sizes) names += (names.empty() ? "" : ", ") + name;
  const Kernel kernel = parse_kernel("kernel @k(x: f32[1000] read, y: f32[1000] write) sizes(" +
                                     names + ") {" + body + "}");
  return print(simplify(kernel.body, sizes));
}

TEST(Simplify, CollectsTerms) {
  EXPECT_EQ(simple((i + j) * Expr(4) - i * Expr(3) + Expr(5)), "i + j*4 + 5");
  EXPECT_EQ(simple(i - i), "0");
  EXPECT_EQ(simple((i + Expr(1)) * n - n), "N*i");
  EXPECT_EQ(simple(Expr(3) - (i + Expr(5))), "-i - 2");
  EXPECT_EQ(simple(Expr(7) - i), "7 - i");
}

TEST(Simplify, DividesWhatDivides) {
  const Ranges ranges = {{"i", {0, 100}}, {"j", {0, 7}}, {"k", {0, 3}}};
  EXPECT_EQ(simple(floor_div(i * Expr(8) + j, 8), ranges), "i");
  EXPECT_EQ(simple(floor_mod(i * Expr(8) + j, 8), ranges), "j");
  EXPECT_EQ(simple(floor_div(i * Expr(8) + j + Expr(16), 8), ranges), "i + 2");
  EXPECT_EQ(simple(floor_div(i, 8) * Expr(8) + floor_mod(i, 8), ranges), "i");
  EXPECT_EQ(simple(floor_div(floor_div(i, 4), 5), ranges), "i/20");
  EXPECT_EQ(simple(floor_mod(i * Expr(4) + k, 16), ranges), "(i*4 + k)%16");
  EXPECT_EQ(simple(floor_div(i * n + j, n), {{"i", {0, 9}}, {"j", {0, 1}}, {"N", {2, 9}}}), "i");
}

TEST(Simplify, DecidesByRanges) {
  const Ranges interior = {{"x", {1, 15}}, {"kx", {0, 2}}};
  const Expr at = var("x") * Expr(2) + var("kx") - Expr(1);
  EXPECT_EQ(simple(at >= Expr(0), interior), "true");
  EXPECT_EQ(simple((at >= Expr(0)) && (at < Expr(32)), interior), "true");
  EXPECT_EQ(simple((at >= Expr(0)) && (at < Expr(31)), interior), "kx + x*2 - 1 < 31");
  EXPECT_EQ(simple(min(var("x"), Expr(15)), interior), "x");
  EXPECT_EQ(simple(binary(Op::eq, var("x"), Expr(0)), interior), "false");
}

/// An index of another integer type brings along what its operations leave.
TEST(Simplify, DecidesByRangesOfOtherIntegers) {
  const Type i32{Scalar::i32, 1}, u8{Scalar::u8, 1};
  const Expr at = load(i32, "t", i);
  const auto clamped = [](const Expr& e) { return max(Expr(0), min(cast({}, e), Expr(5))); };
  const auto between = [&](int64_t low, int64_t high) {
    return binary(Op::min, binary(Op::max, at, int_constant(i32, low)), int_constant(i32, high));
  };
  const auto index_of = [&](const Expr& e) { return simple(cast({}, e)); };
  EXPECT_EQ(simple(clamped(between(0, 5))), index_of(between(0, 5)));
  EXPECT_EQ(simple(clamped(cast(u8, between(0, 5)))), index_of(cast(u8, between(0, 5))));
  EXPECT_NE(simple(clamped(between(0, 6))), index_of(between(0, 6)));
  EXPECT_NE(simple(clamped(between(-1, 5))), index_of(between(-1, 5)));
  // What wraps may be anything that the type holds, and so may a sum.
  EXPECT_NE(simple(clamped(cast(u8, between(-1, 5)))), index_of(cast(u8, between(-1, 5))));
  const Expr sum = between(0, 2) + int_constant(i32, 1);
  EXPECT_NE(simple(clamped(sum)), index_of(sum));
}

TEST(Simplify, MergesConditionsOfRamps) {
  const Ranges ranges = {{"i", {0, 3}}};
  const Expr lanes = ramp(i * Expr(8), 1, 8);
  EXPECT_EQ(simple(binary(Op::lt, lanes, broadcast(32, 8)), ranges), "true:boolx8");
  EXPECT_EQ(simple(lanes * broadcast(4, 8) + broadcast(j, 8), ranges), "ramp(j + i*32, 4, 8)");
  EXPECT_EQ(simple(load({Scalar::f32, 8}, "b", lanes), ranges), "load f32x8 b[i*8]");
}

TEST(Simplify, BordersVanishInsideLoops) {
  EXPECT_EQ(body_after("for a in 1 .. +15 { for b in 0 .. 3 {"
                       " if a*2 + b - 1 >= 0 & a*2 + b - 1 < 32 {"
                       "  store y[a] = load f32 x[a*2 + b - 1] } } }"),
            "for a in 1 .. +15 {\n  for b in 0 .. 3 {\n"
            "    store y[a] = load f32 x[a*2 + b - 1]\n  }\n}\n");
}

TEST(Simplify, SymbolicBoundsDecide) {
  EXPECT_EQ(body_after("for a in 0 .. N { if a < N { store y[a] = 1:f32 } }", {{"N", {1, 9}}}),
            "for a in 0 .. N {\n  store y[a] = 1:f32\n}\n");
  // The main loop of a split, and its tail.
  EXPECT_EQ(body_after("for a in 0 .. N/8 { for b in 0 .. 8 { if a*8 + b < N {"
                       " store y[a*8 + b] = 1:f32 } } }",
                       {{"N", {1, 90}}}),
            "for a in 0 .. N/8 {\n  for b in 0 .. 8 {\n    store y[a*8 + b] = 1:f32\n  }\n}\n");
  EXPECT_EQ(body_after("for a in 0 .. (N + 7)/8 { for b in 0 .. min(8, N - a*8) {"
                       " if a*8 + b < N & b < 8 { store y[a*8 + b] = 1:f32 } } }",
                       {{"N", {1, 90}}}),
            "for a in 0 .. (N + 7)/8 {\n  for b in 0 .. min(8, N - a*8) {\n"
            "    store y[a*8 + b] = 1:f32\n  }\n}\n");
}

TEST(Simplify, ConditionsHoldInTheirBranches) {
  EXPECT_EQ(body_after("for a in 0 .. 9 { if a >= 3 { if a >= 2 { store y[a] = 1:f32 } } else {"
                       " if a < 3 { store y[a] = 2:f32 } } }"),
            "for a in 0 .. 9 {\n  if a >= 3 {\n    store y[a] = 1:f32\n  } else {\n"
            "    store y[a] = 2:f32\n  }\n}\n");
}

TEST(Simplify, SelectDoesNotGuardItsLoads) {
  // Both sides are evaluated: the index must stay inside although the condition would allow more.
  EXPECT_EQ(body_after("for a in 0 .. 9 { store y[a] = select(a < 5, load f32 x[min(a, 4)], "
                       "0:f32) }"),
            "for a in 0 .. 9 {\n  store y[a] = select(a < 5, load f32 x[min(a, 4)], 0:f32)\n}\n");
  EXPECT_EQ(body_after("for a in 0 .. 9 { store y[a] = if a < 5 then load f32 x[min(a, 4)] else "
                       "0:f32 }"),
            "for a in 0 .. 9 {\n  store y[a] = if a < 5 then load f32 x[a] else 0:f32\n}\n");
}

TEST(Simplify, MagnitudesAreNotNegative) {
  const auto larger = [](const std::string& least) {
    const std::string x = "abs(load f32 x[a])";
    return body_after("for a in 0 .. 9 { store y[a] = select(is_nan(" + x + "), " + x + ", max(" +
                      x + ", " + least + ")) }");
  };
  const std::string bare = "for a in 0 .. 9 {\n  store y[a] = abs(load f32 x[a])\n}\n";
  EXPECT_EQ(larger("0:f32"), bare);
  EXPECT_EQ(larger("-1:f32"), bare);
  EXPECT_NE(larger("-0:f32"), bare);
  EXPECT_NE(larger("1:f32"), bare);
}

TEST(Simplify, EmptyAndSingleTripLoops) {
  EXPECT_EQ(body_after("for a in 0 .. 0 { store y[a] = 1:f32 } store y[1] = 1:f32"),
            "store y[1] = 1:f32\n");
  EXPECT_EQ(body_after("for a in 5 .. +1 { store y[a*2] = 1:f32 }"), "store y[10] = 1:f32\n");
  EXPECT_EQ(body_after("for a in 0 .. 4 { let b = a store y[b + 1] = 1:f32 }"),
            "for a in 0 .. 4 {\n  store y[a + 1] = 1:f32\n}\n");
}

// ---- properties

int64_t value_of(const Expr& e, const std::map<std::string, int64_t>& values) {
  std::map<std::string, Expr> constants;
  for (const auto& [name, value] : values) constants[name] = Expr(value);
  int64_t result = 0;
  EXPECT_TRUE(as_constant(substitute(e, constants), result)) << print(e);
  return result;
}

class RandomIndex {
 public:
  explicit RandomIndex(uint32_t seed) : random_(seed) {}
  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  Expr index(int depth) {
    if (depth == 0) return number(0, 2) == 0 ? Expr(number(-9, 9)) : variable();
    switch (number(0, 8)) {
      case 0:
      case 1:
        return index(depth - 1) + index(depth - 1);
      case 2:
        return index(depth - 1) - index(depth - 1);
      case 3:
        return index(depth - 1) * Expr(number(-4, 8));
      case 4:
        return floor_div(index(depth - 1), Expr(number(1, 9)));
      case 5:
        return floor_mod(index(depth - 1), Expr(number(1, 9)));
      case 6:
        return min(index(depth - 1), index(depth - 1));
      case 7:
        return if_then_else(condition(depth - 1), index(depth - 1), index(depth - 1));
      default:
        return index(depth - 1) * variable();
    }
  }
  Expr condition(int depth) {
    static constexpr Op kOps[] = {Op::lt, Op::le, Op::gt, Op::ge, Op::eq, Op::ne};
    if (depth > 1 && number(0, 2) == 0) {
      return binary(number(0, 1) == 0 ? Op::bit_and : Op::bit_or, condition(depth - 1),
                    condition(depth - 1));
    }
    return binary(kOps[number(0, 5)], index(depth - 1 > 0 ? depth - 1 : 0),
                  index(depth - 1 > 0 ? depth - 1 : 0));
  }

 private:
  Expr variable() { return var(std::string(1, static_cast<char>('a' + number(0, 3)))); }
  std::mt19937 random_;
};

TEST(Simplify, KeepsValues) {
  const Ranges ranges = {{"a", {0, 7}}, {"b", {0, 2}}, {"c", {-3, 5}}, {"d", {1, 20}}};
  RandomIndex random(7);
  for (int round = 0; round < 2500; ++round) {
    const Expr e = round % 3 == 0 ? random.condition(4) : random.index(4);
    const Expr s = simplify(e, ranges);
    EXPECT_TRUE(equal(simplify(e, ranges), s));
    for (int sample = 0; sample < 12; ++sample) {
      std::map<std::string, int64_t> values;
      for (const auto& [name, range] : ranges) values[name] = random.number(range.min, range.max);
      ASSERT_EQ(value_of(e, values), value_of(s, values)) << print(e) << "\n  became " << print(s);
    }
  }
}

TEST(Simplify, KeepsValuesInLoopsWithSymbols) {
  RandomIndex random(11);
  for (int round = 0; round < 80; ++round) {
    const Expr condition = random.condition(4);
    const Expr value = random.index(3);
    // for a in d .. +min(8, N - d) { for b in 0 .. 3 { for c in a .. +N/3 … } }
    const Expr extent = min(8, var("N") - var("d"));
    Stmt inner = if_branch(condition, store("y", 0, value), store("y", 1, value));
    Stmt loops = for_loop("c", var("a"), floor_div(var("N"), 3), inner);
    loops = for_loop("a", var("d"), extent, for_loop("b", 0, 3, loops));
    const Stmt after = simplify(loops, {{"N", {1, 30}}, {"d", {0, 6}}});
    // Both walks must store the same values at the same places, in order.
    for (int64_t size : {1, 4, 17, 30}) {
      for (int64_t d : {0, 3, 6}) {
        const std::function<void(const Stmt&, std::map<std::string, int64_t>&,
                                 std::vector<int64_t>&)>
            walk = [&](const Stmt& s, std::map<std::string, int64_t>& values,
                       std::vector<int64_t>& log) {
              if (s->kind == StmtKind::block) {
                for (const Stmt& child : s->body) walk(child, values, log);
              } else if (s->kind == StmtKind::let) {
                values[s->name] = value_of(s->exprs[0], values);
              } else if (s->kind == StmtKind::store) {
                for (const Expr& e : s->exprs) log.push_back(value_of(e, values));
              } else if (s->kind == StmtKind::if_branch) {
                const bool holds = value_of(s->exprs[0], values) != 0;
                if (holds || s->body.size() > 1) walk(s->body[holds ? 0 : 1], values, log);
              } else {
                const int64_t begin = value_of(s->exprs[0], values);
                const int64_t count = value_of(s->exprs[1], values);
                for (int64_t t = 0; t < count; ++t) {
                  values[s->name] = begin + t;
                  walk(s->body[0], values, log);
                }
              }
            };
        std::map<std::string, int64_t> values = {{"N", size}, {"d", d}};
        std::vector<int64_t> before_log, after_log;
        walk(loops, values, before_log);
        walk(after, values, after_log);
        ASSERT_EQ(before_log, after_log) << print(loops) << "became\n" << print(after);
      }
    }
  }
}

}  // namespace
}  // namespace backcast::loop
