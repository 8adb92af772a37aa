// Products, convolutions, windows and linear systems.
#include "ir/ops/window_attrs.h"
#include "tests/ops/gradient_cases.h"

namespace backcast {
namespace {

void products(GradientCases& cases) {
  const auto add = [&](const char* what, std::vector<int64_t> a, std::vector<int64_t> b,
                       const DotGeneralAttrs& attrs) {
    cases.push_back({&ops::dot_general, what, {spread(a), spread(b, -2, 2, 1)}, attrs});
  };
  add("matrix times vector", {2, 3}, {3}, {{}, {}, {1}, {0}});
  add("matrix product", {2, 3}, {3, 4}, {{}, {}, {1}, {0}});
  add("transposed right", {2, 3}, {4, 3}, {{}, {}, {1}, {1}});
  add("transposed left", {3, 2}, {3, 4}, {{}, {}, {0}, {0}});
  add("batch", {2, 2, 3}, {2, 3, 2}, {{0}, {0}, {2}, {1}});
  add("batch dimensions anywhere", {2, 3, 2}, {2, 4, 3}, {{1}, {2}, {2}, {0}});
  add("two batch dimensions", {2, 3, 2}, {3, 2, 2}, {{0, 1}, {1, 0}, {2}, {2}});
  add("two contracted, crosswise", {2, 3, 2}, {2, 4, 3}, {{}, {}, {1, 2}, {2, 0}});
  add("outer product", {2}, {3}, {});
  add("everything contracted", {2, 3}, {3, 2}, {{}, {}, {0, 1}, {1, 0}});
}

/// Plain dimension numbers for `spatial` dimensions.
ConvAttrs conv_attrs(int64_t spatial) {
  ConvAttrs attrs;
  for (int64_t i = 2; i < spatial + 2; ++i) {
    attrs.input_spatial.push_back(i);
    attrs.kernel_spatial.push_back(i);
    attrs.output_spatial.push_back(i);
    attrs.strides.push_back(1);
    attrs.kernel_dilation.push_back(1);
    attrs.input_dilation.push_back(1);
    attrs.pad_low.push_back(0);
    attrs.pad_high.push_back(0);
  }
  return attrs;
}

void convolutions(GradientCases& cases) {
  const auto add = [&](const char* what, std::vector<int64_t> x, std::vector<int64_t> w,
                       const ConvAttrs& attrs) {
    cases.push_back({&ops::conv, what, {spread(x), spread(w, -2, 2, 1)}, attrs});
  };
  add("no spatial dimension", {2, 3}, {2, 3}, conv_attrs(0));
  ConvAttrs c = conv_attrs(1);
  add("one dimension", {2, 2, 5}, {3, 2, 3}, c);
  c.pad_low = {1}, c.pad_high = {2};
  add("asymmetric pads", {1, 2, 4}, {2, 2, 3}, c);
  c.pad_low = {-1}, c.pad_high = {2};
  add("negative pad below", {1, 1, 5}, {2, 1, 3}, c);
  c.pad_low = {1}, c.pad_high = {-2};
  add("negative pad above", {1, 1, 6}, {2, 1, 2}, c);
  c = conv_attrs(1), c.strides = {2};
  add("strides that leave elements unread", {1, 2, 6}, {2, 2, 3}, c);
  c.strides = {3}, c.pad_low = {1}, c.pad_high = {1};
  add("strides larger than the kernel", {1, 1, 8}, {2, 1, 2}, c);
  c = conv_attrs(1), c.kernel_dilation = {2}, c.pad_high = {1};
  add("kernel dilation", {1, 2, 6}, {1, 2, 3}, c);
  c.strides = {3}, c.pad_low = {2};
  add("kernel dilation and strides", {1, 1, 7}, {2, 1, 3}, c);
  c = conv_attrs(1), c.input_dilation = {3}, c.pad_low = {1};
  add("input dilation", {1, 2, 4}, {2, 2, 2}, c);
  c.strides = {2}, c.kernel_dilation = {2}, c.pad_low = {-1}, c.pad_high = {2};
  add("everything in one dimension", {2, 1, 5}, {2, 1, 3}, c);
  c = conv_attrs(1), c.feature_groups = 2, c.strides = {2}, c.pad_low = {1};
  add("feature groups", {2, 4, 5}, {6, 2, 3}, c);
  c.feature_groups = 3;
  add("depthwise", {1, 3, 4}, {3, 1, 2}, c);
  c = conv_attrs(1), c.batch_groups = 2, c.strides = {2}, c.pad_high = {1};
  add("batch groups", {4, 2, 5}, {6, 2, 3}, c);

  c = conv_attrs(2);
  c.strides = {2, 1}, c.pad_low = {1, 0}, c.pad_high = {0, 1}, c.kernel_dilation = {1, 2};
  add("two dimensions", {1, 2, 4, 5}, {2, 2, 3, 2}, c);
  c.input_batch = 0, c.input_spatial = {1, 2}, c.input_feature = 3;
  c.output_batch = 0, c.output_spatial = {1, 2}, c.output_feature = 3;
  c.kernel_spatial = {0, 1}, c.kernel_input = 2, c.kernel_output = 3;
  c.feature_groups = 2;
  add("channels last, groups", {2, 4, 4, 4}, {3, 2, 2, 4}, c);
  c = conv_attrs(2), c.input_batch = 3, c.input_feature = 2, c.input_spatial = {1, 0};
  c.output_batch = 2, c.output_feature = 0, c.output_spatial = {3, 1};
  c.batch_groups = 2;
  add("odd dimension numbers, batch groups", {3, 3, 1, 4}, {2, 1, 2, 2}, c);
  c = conv_attrs(3), c.strides = {1, 2, 1}, c.pad_low = {0, 1, 0};
  add("three dimensions", {1, 1, 2, 3, 3}, {2, 1, 2, 2, 2}, c);

  c = conv_attrs(2), c.strides = {2, 3};
  add("strides of a kernel of one element", {2, 2, 5, 8}, {3, 2, 1, 1}, c);
  c.pad_low = {1, -1}, c.pad_high = {2, -1};
  add("its pads", {1, 2, 5, 8}, {3, 2, 1, 1}, c);
  c.pad_low = {0, 1}, c.pad_high = {0, 1};
  add("one element in one dimension", {1, 2, 5, 6}, {3, 2, 1, 2}, c);
  c.input_dilation = {2, 1}, c.feature_groups = 2;
  add("one element, operand and result spread", {1, 4, 3, 6}, {2, 2, 1, 1}, c);
  c = conv_attrs(2), c.strides = {2, 2}, c.batch_groups = 2;
  add("one element, batch groups", {4, 2, 4, 3}, {6, 2, 1, 1}, c);
}

ReduceWindowAttrs window_attrs(Reduction kind, Ints window, Ints strides, Ints dilation, Dims low,
                               Dims high) {
  return {kind,           std::move(window), std::move(strides), std::move(dilation),
          std::move(low), std::move(high)};
}

void windows(GradientCases& cases) {
  const auto add = [&](const char* what, std::vector<int64_t> x, const ReduceWindowAttrs& sum) {
    cases.push_back({&ops::reduce_window, fmt::format("sum, {}", what), {spread(x)}, sum});
    ReduceWindowAttrs extreme = sum;
    extreme.kind = Reduction::max;
    cases.push_back({&ops::reduce_window, fmt::format("max, {}", what), {spread(x)}, extreme});
    extreme.kind = Reduction::min;
    cases.push_back({&ops::reduce_window, fmt::format("min, {}", what), {spread(x)}, extreme});
  };
  const Reduction kind = Reduction::sum;
  add("side by side", {1, 2, 4, 6},
      window_attrs(kind, {1, 1, 2, 3}, {1, 1, 2, 3}, {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}));
  add("side by side, ends cut off", {5, 4},
      window_attrs(kind, {2, 3}, {2, 3}, {1, 1}, {0, 1}, {0, 0}));
  add("side by side, padded", {5, 4}, window_attrs(kind, {2, 3}, {2, 3}, {1, 1}, {1, 2}, {0, 1}));
  add("side by side, cropped", {7, 5},
      window_attrs(kind, {2, 2}, {2, 2}, {1, 1}, {-1, 0}, {-2, 1}));
  add("overlapping", {5, 4}, window_attrs(kind, {3, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}));
  add("overlapping, strides and pads", {6, 5},
      window_attrs(kind, {3, 3}, {2, 2}, {1, 1}, {1, 0}, {0, 1}));
  add("gaps between windows", {7}, window_attrs(kind, {2}, {3}, {1}, {0}, {1}));
  add("dilated", {7, 5}, window_attrs(kind, {3, 2}, {2, 1}, {2, 3}, {1, 1}, {1, 0}));
  add("dilated and cropped", {9}, window_attrs(kind, {3}, {2}, {2}, {-1}, {-1}));
  // The last window lies wholly in the padding: it gives the identity, whose adjoint goes nowhere.
  cases.push_back({&ops::reduce_window,
                   "a window of padding",
                   {spread({3})},
                   window_attrs(kind, {2}, {2}, {1}, {0}, {3})});
  // Ties: the first element of each window wins, and padding never does.
  cases.push_back({&ops::reduce_window,
                   "max, first wins",
                   {f64({5}, {1, 1, 0, -3, -3})},
                   window_attrs(Reduction::max, {3}, {1}, {1}, {1}, {1}),
                   {},
                   {f64({5}, {2, 1, 1, 1, 0})}});
  // As PyTorch has it: kernel 2, stride 2, padding 1, dilation 2, extents rounded up.
  cases.push_back({&ops::reduce_window,
                   "max, first wins in two dimensions",
                   {f64({4, 5}, {3, 1, 3, 0, 2, 3, 2, 1, 2, 2, 0, -1, -1, 5, 5, 4, 4, -2, 5, 0})},
                   window_attrs(Reduction::max, {2, 2}, {2, 2}, {2, 2}, {1, 1}, {2, 1}),
                   {},
                   {f64({4, 5}, {0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 4, 0})}});
  const ReduceWindowAttrs large =
      window_attrs(Reduction::max, {16, 17}, {1, 1}, {1, 1}, {0, 0}, {0, 0});
  cases.push_back({&ops::reduce_window, "max of a window of 272", {spread({17, 17})}, large});

  // The position of the first element of each window, so that the cases hold for any x.
  const Literal positions = tensor(ElementType::u8, {3}, {0, 2, 1});
  cases.push_back({&ops::gather_window,
                   "picks",
                   {spread({6}), positions},
                   GatherWindowAttrs{{3}, {2}, {1}, {0}, {1}}});
  cases.push_back({&ops::scatter_window,
                   "adds up",
                   {spread({3}), positions},
                   ScatterWindowAttrs{{6}, {3}, {2}, {1}, {0}, {1}}});
}

void systems(GradientCases& cases) {
  Literal a = f64({2, 3, 3}, {0.1, 2, -1, 3, 0.5, 1, 1, -1, 2,  //
                              2, -0.3, 1, 4, 1, 0.5, 1, 3, -2});
  cases.push_back({&ops::solve, "batch", {a, spread({2, 3, 2})}});
  cases.push_back({&ops::solve, "one unknown", {f64({1, 1}, {3}), spread({1, 2})}});
}

}  // namespace

GradientCases contraction_gradients() {
  GradientCases cases;
  products(cases);
  convolutions(cases);
  windows(cases);
  systems(cases);
  return cases;
}

}  // namespace backcast
