// dot_general and a few convolutions by hand; reference_test.cpp compares many with a reference.
#include "ir/ops/window_attrs.h"
#include "tests/ops/cases.h"

namespace backcast {
namespace {

using E = ElementType;

void dots(OpCases& cases) {
  const Literal a = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Literal b = f32({3, 2}, {7, 8, 9, 10, 11, 12});
  const DotGeneralAttrs matmul{{}, {}, {1}, {0}};
  cases.push_back(
      {&ops::dot_general, "matrix product", {a, b}, matmul, f32({2, 2}, {58, 64, 139, 154})});
  cases.push_back({&ops::dot_general,
                   "transposed right",
                   {a, a},
                   DotGeneralAttrs{{}, {}, {1}, {1}},
                   f32({2, 2}, {14, 32, 32, 77})});
  cases.push_back({&ops::dot_general,
                   "contract the first dimensions",
                   {a, a},
                   DotGeneralAttrs{{}, {}, {0}, {0}},
                   f32({3, 3}, {17, 22, 27, 22, 29, 36, 27, 36, 45})});
  cases.push_back({&ops::dot_general,
                   "batch",
                   {a, a},
                   DotGeneralAttrs{{0}, {0}, {1}, {1}},
                   f32({2}, {14, 77})});
  // y[b, m, n] = Σ_k a[m, b, k] · c[k, n, b]
  cases.push_back({&ops::dot_general,
                   "batch dimensions anywhere",
                   {f32({1, 2, 2}, {1, 2, 3, 4}), f32({2, 1, 2}, {5, 6, 7, 8})},
                   DotGeneralAttrs{{1}, {2}, {2}, {0}},
                   f32({2, 1, 1}, {19, 50})});
  cases.push_back({&ops::dot_general,
                   "outer product",
                   {f32({2}, {1, 2}), f32({2}, {3, 4})},
                   DotGeneralAttrs{},
                   f32({2, 2}, {3, 4, 6, 8})});
  cases.push_back({&ops::dot_general,
                   "two contracted",
                   {a, a},
                   DotGeneralAttrs{{}, {}, {0, 1}, {0, 1}},
                   f32({}, {91})});
  cases.push_back({&ops::dot_general,
                   "nothing contracted away",
                   {f32({2, 0}, {}), f32({0, 2}, {})},
                   matmul,
                   f32({2, 2}, {0, 0, 0, 0})});
  cases.push_back({&ops::dot_general,
                   "i8 wraps",
                   {tensor(E::i8, {1, 2}, {100, 100}), tensor(E::i8, {2, 1}, {2, 1})},
                   matmul,
                   tensor(E::i8, {1, 1}, {44})});
  cases.push_back({&ops::dot_general,
                   "i64 is exact",
                   {i64({1, 2}, {9007199254740993, 1}), i64({2, 1}, {1, 1})},
                   matmul,
                   i64({1, 1}, {9007199254740994})});
  cases.push_back({&ops::dot_general,
                   "f32 accumulates in double",
                   {f32({1, 3}, {16777216, 1, -16777216}), f32({3, 1}, {1, 1, 1})},
                   matmul,
                   f32({1, 1}, {1})});
}

ConvAttrs conv1d() {
  ConvAttrs attrs;
  attrs.input_spatial = attrs.kernel_spatial = attrs.output_spatial = {2};
  attrs.strides = attrs.input_dilation = attrs.kernel_dilation = {1};
  attrs.pad_low = attrs.pad_high = {0};
  return attrs;
}

void convolutions(OpCases& cases) {
  const Literal x = f32({1, 1, 5}, {1, 2, 3, 4, 5});
  const Literal w = f32({1, 1, 3}, {1, 10, 100});
  const auto add = [&](const char* what, const ConvAttrs& attrs, std::vector<int64_t> shape,
                       std::vector<double> y) {
    cases.push_back({&ops::conv, what, {x, w}, attrs, f32(shape, y)});
  };
  ConvAttrs attrs = conv1d();
  add("does not flip", attrs, {1, 1, 3}, {321, 432, 543});
  attrs.pad_low = {1}, attrs.pad_high = {2};
  add("pads", attrs, {1, 1, 6}, {210, 321, 432, 543, 54, 5});
  attrs.strides = {2};
  add("strides", attrs, {1, 1, 3}, {210, 432, 54});
  attrs = conv1d(), attrs.kernel_dilation = {2};
  add("kernel dilation", attrs, {1, 1, 1}, {531});
  attrs = conv1d(), attrs.input_dilation = {2};
  add("input dilation", attrs, {1, 1, 7}, {201, 20, 302, 30, 403, 40, 504});
  attrs = conv1d(), attrs.pad_low = {-1}, attrs.pad_high = {-1};
  add("negative pads", attrs, {1, 1, 1}, {432});
  attrs = conv1d(), attrs.pad_low = {9}, attrs.pad_high = {-5};
  add("padding only", attrs, {1, 1, 7}, {0, 0, 0, 0, 0, 0, 0});
  // No spatial dimension: a matrix product with w[o, c].
  cases.push_back({&ops::conv,
                   "no spatial dimension",
                   {f32({1, 2}, {1, 2}), f32({2, 2}, {1, 10, 100, 1000})},
                   ConvAttrs{},
                   f32({1, 2}, {21, 2100})});
  ConvAttrs depthwise;
  depthwise.feature_groups = 2;
  cases.push_back({&ops::conv,
                   "feature groups",
                   {f32({1, 2}, {3, 5}), f32({4, 1}, {1, 10, 100, 1000})},
                   depthwise,
                   f32({1, 4}, {3, 30, 500, 5000})});
  ConvAttrs grouped;
  grouped.batch_groups = 2;
  cases.push_back({&ops::conv,
                   "batch groups",
                   {f32({4, 1}, {1, 2, 3, 4}), f32({2, 1}, {10, 100})},
                   grouped,
                   f32({2, 2}, {10, 300, 20, 400})});
  cases.push_back({&ops::conv,
                   "no features",
                   {f32({1, 0}, {}), f32({2, 0}, {})},
                   ConvAttrs{},
                   f32({1, 2}, {0, 0})});
  cases.push_back({&ops::conv,
                   "i32",
                   {i32({1, 1}, {65536}), i32({1, 1}, {65537})},
                   ConvAttrs{},
                   i32({1, 1}, {65536})});
}

ReduceWindowAttrs windows_1d(Reduction kind) {
  return {kind, {3}, {2}, {1}, {1}, {2}};  // over five elements: three windows
}

void chosen_elements(OpCases& cases) {
  const auto positions = [](std::vector<double> numbers) {
    const int64_t count = static_cast<int64_t>(numbers.size());
    return tensor(E::u8, {count}, numbers);
  };
  const Literal x = f32({5}, {7, 7, 1, 4, 4});
  cases.push_back({&ops::arg_window,
                   "first maximum, counting the padding",
                   {x},
                   windows_1d(Reduction::max),
                   positions({1, 0, 0})});
  cases.push_back(
      {&ops::arg_window, "first minimum", {x}, windows_1d(Reduction::min), positions({1, 1, 0})});
  cases.push_back({&ops::arg_window,
                   "the first NaN wins",
                   {f32({5}, {7, kNan, kNan, 9, 9})},
                   windows_1d(Reduction::max),
                   positions({2, 0, 0})});
  cases.push_back({&ops::arg_window,
                   "an infinity wins against padding",
                   {f32({5}, {-kInf, -kInf, -kInf, -kInf, -kInf})},
                   windows_1d(Reduction::max),
                   positions({1, 0, 0})});
  cases.push_back({&ops::arg_window,
                   "nothing but padding",
                   {i32({2}, {3, 4})},
                   ReduceWindowAttrs{Reduction::max, {2}, {2}, {1}, {2}, {2}},
                   positions({2, 1, 2})});
  cases.push_back({&ops::arg_window,
                   "rows before columns",
                   {f32({2, 2}, {1, 2, 3, 0})},
                   ReduceWindowAttrs{Reduction::max, {2, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
                   tensor(E::u8, {1, 1}, {2})});
  std::vector<double> many(300, 0);
  many[299] = 1;
  cases.push_back({&ops::arg_window,
                   "two bytes for a large window",
                   {f32({300}, many)},
                   ReduceWindowAttrs{Reduction::max, {300}, {1}, {1}, {0}, {0}},
                   tensor(E::u16, {1}, {299})});
  cases.push_back({&ops::gather_window,
                   "picks",
                   {x, positions({1, 0, 3})},
                   GatherWindowAttrs{{3}, {2}, {1}, {1}, {2}},
                   f32({3}, {7, 7, 0})});
  cases.push_back({&ops::gather_window,
                   "a position in the padding",
                   {x, positions({0, 2, 0})},
                   GatherWindowAttrs{{3}, {2}, {1}, {1}, {2}},
                   f32({3}, {0, 4, 4})});
  cases.push_back({&ops::scatter_window,
                   "overlapping windows add up",
                   {f32({3}, {1, 10, 100}), positions({2, 0, 3})},
                   ScatterWindowAttrs{{5}, {3}, {2}, {1}, {1}, {2}},
                   f32({5}, {0, 11, 0, 0, 0})});
  cases.push_back({&ops::scatter_window,
                   "dilated",
                   {i32({2}, {5, 6}), positions({1, 0})},
                   ScatterWindowAttrs{{4}, {2}, {1}, {2}, {0}, {0}},
                   i32({4}, {0, 6, 5, 0})});
}

void systems(OpCases& cases) {
  cases.push_back({&ops::solve,
                   "rows change places",
                   {f32({2, 2}, {0, 2, 4, 1}), f32({2, 2}, {2, 6, 9, -1})},
                   {},
                   f32({2, 2}, {2, -1, 1, 3})});
  cases.push_back({&ops::solve,
                   "batch",
                   {f32({2, 1, 1}, {2, 4}), f32({2, 1, 1}, {6, 2})},
                   {},
                   f32({2, 1, 1}, {3, 0.5})});
  cases.push_back({&ops::solve,
                   "singular",
                   {tensor(E::f64, {1, 1}, {0}), tensor(E::f64, {1, 2}, {1, 0})},
                   {},
                   tensor(E::f64, {1, 2}, {kInf, kNan})});
  cases.push_back(
      {&ops::solve, "no unknowns", {f32({0, 0}, {}), f32({0, 2}, {})}, {}, f32({0, 2}, {})});
}

}  // namespace

OpCases contraction_cases() {
  OpCases cases;
  dots(cases);
  convolutions(cases);
  chosen_elements(cases);
  systems(cases);
  return cases;
}

}  // namespace backcast
