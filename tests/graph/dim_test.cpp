// Dimensions: canonical forms, arithmetic against plain integers at random points, ranges, text.
#include "ir/graph/dim.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/graph/error.h"

namespace backcast {
namespace {

const Dim kN = Dim::symbol("N");
const Dim kH = Dim::symbol("H");
const Dim kM = Dim::symbol("M");

int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

TEST(Dim, SumsAndProductsAreCanonical) {
  EXPECT_EQ(kN + kH, kH + kN);
  EXPECT_EQ(kN * kH * 3, Dim(3) * kH * kN);
  EXPECT_EQ((kN + 1) * (kN - 1), kN * kN - 1);
  EXPECT_EQ(kN - kN, Dim(0));
  EXPECT_EQ((kN + kH) * (kN + kH), kN * kN + kN * kH * 2 + kH * kH);
  EXPECT_TRUE((kN - kN + 7).is_constant());
  EXPECT_NE(kN, kH);
}

TEST(Dim, DivisionExtractsWhatIsExact) {
  EXPECT_EQ(Dim::floor_div(kN * 49, 49), kN);
  EXPECT_EQ(Dim::floor_div(kN * 49, kN), Dim(49));
  EXPECT_EQ(Dim::floor_div(kN * kH * 6, kH * 2), kN * 3);
  EXPECT_EQ(Dim::floor_div(kN * kH + kN, kH + 1), kN);
  EXPECT_EQ(Dim::floor_div(kN * kN - 1, kN + 1), kN - 1);
  EXPECT_EQ(Dim::floor_div(kN * 4 + 3, 4), kN);
  EXPECT_EQ(Dim::floor_div(kN * 2 + 1, 4), Dim::floor_div(kN, 2));
  EXPECT_EQ(Dim::floor_div(kH - 3, 2) + 1, Dim::floor_div(kH - 1, 2));
  EXPECT_EQ(Dim::floor_div(kN * kH, kN * 2), Dim::floor_div(kH, 2));
  EXPECT_EQ(Dim::floor_div(Dim(0) - kN, -2), Dim::floor_div(kN, 2));
}

TEST(Dim, NestedDivisionsMerge) {
  EXPECT_EQ(Dim::floor_div(Dim::floor_div(kH + 1, 2), 2), Dim::floor_div(kH + 1, 4));
  EXPECT_EQ(Dim::ceil_div(Dim::ceil_div(kH, 2), 3), Dim::ceil_div(kH, 6));
  EXPECT_EQ(Dim::floor_div(Dim::floor_div(kH, 2) + kN, 3), Dim::floor_div(kH + kN * 2, 6));
}

TEST(Dim, ModuloIsWhatDivisionLeaves) {
  EXPECT_EQ(Dim::floor_div(kN, 2) * 2 + Dim::mod(kN, 2), kN);
  EXPECT_EQ(Dim::mod(kN * 6, 3), Dim(0));
  EXPECT_EQ(Dim::mod(kN * kH, kH), Dim(0));
  EXPECT_EQ(Dim::mod(Dim::mod(kN, 4), 2), Dim::mod(kN, 2));
  EXPECT_EQ(Dim::mod(kN + kH * 5, kH), Dim::mod(kN, kH));
}

TEST(Dim, ExtremaAreCanonical) {
  EXPECT_EQ(Dim::max(kN, kN), kN);
  EXPECT_EQ(Dim::max(kN + 1, kN), kN + 1);
  EXPECT_EQ(Dim::min(kN + 1, kN), kN);
  EXPECT_EQ(Dim::max(kN, kH), Dim::max(kH, kN));
  EXPECT_EQ(Dim::max(kN + 1, 2), Dim::max(kN, 1) + 1);
  EXPECT_EQ(Dim::max(kN * 2, 4), Dim::max(kN, 2) * 2);
  EXPECT_EQ(Dim::max(Dim::max(kN, kH), kM), Dim::max(kN, Dim::max(kM, kH)));
  EXPECT_EQ(Dim::max(Dim::max(kN, 3) + 2, 7), Dim::max(kN, 5) + 2);
}

TEST(Dim, OverflowAndDivisionByZeroAreErrors) {
  EXPECT_THROW(Dim(INT64_MAX) + 1, CompileError);
  EXPECT_THROW(kN * INT64_MAX * 2, CompileError);
  EXPECT_THROW(Dim::floor_div(kN, 0), CompileError);
  EXPECT_THROW(Dim::mod(kN, 0), CompileError);
  EXPECT_THROW(Dim::floor_div(INT64_MIN, -1), CompileError);
  EXPECT_THROW((kN * kN).evaluate({{"N", int64_t{1} << 40}}), CompileError);
  EXPECT_THROW(Dim::floor_div(kN, kH).evaluate({{"N", 4}, {"H", 0}}), CompileError);
  EXPECT_THROW(kN.evaluate({}), CompileError);
  EXPECT_THROW(kN.constant(), InternalError);
}

TEST(Dim, GrowthIsBounded) {
  Dim d = kN;
  EXPECT_THROW(
      {
        for (int i = 0; i < 1000; ++i) d = Dim::max(d * kH + i, kM) * (kN + kM);
      },
      CompileError);
  Dim product = 1;
  EXPECT_THROW(
      {
        for (int i = 0; i < 40; ++i) {
          product = product * (Dim::symbol("a" + std::to_string(i)) + 1);
        }
      },
      CompileError);
}

TEST(Dim, RangesAreTightWhereItMatters) {
  const SymbolRanges ranges = {{"N", {1, 8}}, {"H", {4, 9}}};
  EXPECT_EQ((kN * 49).range(ranges), (DimRange{49, 392}));
  EXPECT_EQ((kN - kH).range(ranges), (DimRange{-8, 4}));
  EXPECT_EQ(Dim::ceil_div(kH, 2).range(ranges), (DimRange{2, 5}));
  EXPECT_EQ(Dim::mod(kN, 2).range(ranges), (DimRange{0, 1}));
  EXPECT_EQ(Dim::mod(kN, kH).range(ranges), (DimRange{0, 8}));
  EXPECT_EQ(Dim::max(kN, 3).range(ranges), (DimRange{3, 8}));
  EXPECT_EQ(Dim::floor_div(kH - kN, 2).range({{"H", {5, 8}}, {"N", {1, 3}}}), (DimRange{1, 3}));
  EXPECT_EQ(Dim::floor_div(kH, kN).range(ranges), (DimRange{0, 9}));
  EXPECT_EQ((kN * 2).range({}), (DimRange{2, INT64_MAX}));
  EXPECT_EQ((kN - kH).range({}), (DimRange{INT64_MIN, INT64_MAX}));
}

TEST(Dim, SubstitutionBringsBackToCanonicalForm) {
  EXPECT_EQ(Dim::ceil_div(kH, 2).substitute({{"H", kN * 2}}), kN);
  EXPECT_EQ((kN * kH).substitute({{"N", 3}, {"H", kN}}), kN * 3);
  EXPECT_EQ(Dim::max(kN, kH).substitute({{"N", kH - 1}}), kH);
}

TEST(Dim, PrintsReadably) {
  EXPECT_EQ((kN * 49 + 1).to_string(), "N*49+1");
  EXPECT_EQ(Dim::ceil_div(kH, 2).to_string(), "(H+1)/2");
  EXPECT_EQ(Dim::max(kN, 1).to_string(), "max(1, N)");
  EXPECT_EQ((Dim(3) - kN).to_string(), "-N+3");
  EXPECT_EQ((Dim::floor_div(kN, 2) * 3).to_string(), "(N/2)*3");
  EXPECT_EQ(Dim::symbol("batch size").to_string(), "\"batch size\"");
  EXPECT_EQ(Dim(-5).to_string(), "-5");
}

TEST(Dim, ParsesUsualPrecedence) {
  EXPECT_EQ(Dim::parse("1+N*2"), kN * 2 + 1);
  EXPECT_EQ(Dim::parse(" ( H + 1 ) / 2 "), Dim::ceil_div(kH, 2));
  EXPECT_EQ(Dim::parse("-5/2"), Dim(-3));
  EXPECT_EQ(Dim::parse("min(N, 3) - -2"), Dim::min(kN, 3) + 2);
  EXPECT_EQ(Dim::parse("-9223372036854775808"), Dim(INT64_MIN));
  for (const char* bad : {"", "N+", "(N", "N)", "9223372036854775808", "N/0", "min(N)", "N N",
                          "\"\"", "\"a", "1..2", "N*9223372036854775807*3"}) {
    EXPECT_FALSE(Dim::parse(bad).has_value()) << bad;
  }
  EXPECT_FALSE(Dim::parse(std::string(100000, '(')).has_value());
  EXPECT_FALSE(Dim::parse(std::string(100000, '-')).has_value());
}

/// A random expression together with its value by plain arithmetic.
struct Sample {
  Dim dim;
  std::vector<int64_t> values;  // one per point
};

class RandomDims {
 public:
  explicit RandomDims(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 12; ++i) {
      points_.push_back({{"N", pick(1, 20)}, {"H", pick(1, 20)}, {"M", pick(1, 5)}});
    }
  }

  Sample make(int depth) {
    if (depth == 0 || pick(0, 5) == 0) return leaf();
    const Sample a = make(depth - 1);
    Sample b = make(depth - 1);
    const int64_t operation = pick(0, 7);
    if (operation >= 3 && operation <= 5 && pick(0, 3) != 0) b = constant(pick(1, 6));
    Sample result;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (operation >= 3 && operation <= 5 && b.values[i] == 0) return a;
      result.values.push_back(apply(operation, a.values[i], b.values[i]));
    }
    result.dim = apply(operation, a.dim, b.dim);
    return result;
  }

  const std::vector<SymbolValues>& points() const { return points_; }

 private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  Sample constant(int64_t value) { return {value, std::vector<int64_t>(points_.size(), value)}; }

  Sample leaf() {
    if (pick(0, 2) == 0) return constant(pick(-4, 6));
    const std::string name =
        std::vector<std::string>{"N", "H", "M"}[static_cast<size_t>(pick(0, 2))];
    Sample sample{Dim::symbol(name), {}};
    for (const SymbolValues& point : points_) sample.values.push_back(point.at(name));
    return sample;
  }

  static int64_t apply(int64_t operation, int64_t a, int64_t b) {
    switch (operation) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return floor_div(a, b);
      case 4:
        return -floor_div(-a, b);
      case 5:
        return a - b * floor_div(a, b);
      case 6:
        return std::min(a, b);
      default:
        return std::max(a, b);
    }
  }

  static Dim apply(int64_t operation, const Dim& a, const Dim& b) {
    switch (operation) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return Dim::floor_div(a, b);
      case 4:
        return Dim::ceil_div(a, b);
      case 5:
        return Dim::mod(a, b);
      case 6:
        return Dim::min(a, b);
      default:
        return Dim::max(a, b);
    }
  }

  std::mt19937 random_;
  std::vector<SymbolValues> points_;
};

TEST(DimProperty, CanonicalFormKeepsValueRangeAndText) {
  const SymbolRanges ranges = {{"N", {1, 20}}, {"H", {1, 20}}, {"M", {1, 5}}};
  int checked = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    RandomDims random(seed);
    Sample sample;
    try {
      sample = random.make(4);
    } catch (const CompileError&) {  // a divisor that is the constant zero, or too large
      continue;
    }
    const std::string text = sample.dim.to_string();
    const DimRange range = sample.dim.range(ranges);
    for (size_t i = 0; i < sample.values.size(); ++i) {
      const int64_t value = sample.dim.evaluate(random.points()[i]);
      ASSERT_EQ(value, sample.values[i]) << text << " seed " << seed;
      ASSERT_LE(range.min, value) << text << " seed " << seed;
      ASSERT_GE(range.max, value) << text << " seed " << seed;
      std::map<std::string, Dim> numbers;
      for (const auto& [name, v] : random.points()[i]) numbers[name] = v;
      ASSERT_EQ(sample.dim.substitute(numbers), Dim(value)) << text << " seed " << seed;
    }
    const std::optional<Dim> parsed = Dim::parse(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    ASSERT_EQ(*parsed, sample.dim) << text << " became " << parsed->to_string();
    ASSERT_EQ(parsed->to_string(), text);
    ++checked;
  }
  EXPECT_GT(checked, 1500);
}

TEST(DimProperty, PolynomialsAreEqualExactlyWhenTheirValuesAre) {
  // Two polynomials of degree at most 2 per symbol that agree on a 3x3 grid are the same.
  std::mt19937 random(7);
  const auto pick = [&] { return static_cast<int64_t>(random() % 5) - 2; };
  for (int round = 0; round < 500; ++round) {
    const Dim a = (kN * pick() + kH * pick() + pick()) * (kN * pick() + kH * pick() + pick());
    const Dim b = (kN * pick() + kH * pick() + pick()) * (kN * pick() + kH * pick() + pick());
    bool same = true;
    for (int64_t n = 0; n < 3; ++n) {
      for (int64_t h = 0; h < 3; ++h) {
        const SymbolValues point = {{"N", n}, {"H", h}};
        same = same && a.evaluate(point) == b.evaluate(point);
      }
    }
    EXPECT_EQ(a == b, same) << a.to_string() << " and " << b.to_string();
  }
}

}  // namespace
}  // namespace backcast
