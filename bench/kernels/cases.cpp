#include "bench/kernels/cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace backcast::bench {
namespace {

/// y = x·Wᵀ, its two gradients, and the gradient with an update behind it.
void add_dense(std::vector<Case>& cases, const std::string& model, int64_t b, int64_t in,
               int64_t out) {
  int64_t macs = b * in * out;
  std::string shape = fmt::format("{} {}-{} b{}", model, in, out, b);
  std::string x = fmt::format("%x: f32[{},{}]", b, in), w = fmt::format("%w: f32[{},{}]", out, in);
  std::string dy = fmt::format("%dy: f32[{},{}]", b, out);
  std::string xt = fmt::format("f32[{},{}]", b, in), yt = fmt::format("f32[{},{}]", b, out);
  std::string wt = fmt::format("f32[{},{}]", out, in);
  const std::string product = "dot_general %dy, %x {lhs_contract=[0], rhs_contract=[0]}";
  cases.push_back({"dense y=x.W[o,i] " + shape,
                   fmt::format("func @main({}, {}) -> {} {{\n  %y = dot_general %x, %w "
                               "{{lhs_contract=[1], rhs_contract=[1]}}\n  return %y\n}}\n",
                               x, w, yt),
                   macs});
  cases.push_back({"dense y=x.W[i,o] " + shape,
                   fmt::format("func @main({}, %w: f32[{},{}]) -> {} {{\n  %y = dot_general %x, %w "
                               "{{lhs_contract=[1], rhs_contract=[0]}}\n  return %y\n}}\n",
                               x, in, out, yt),
                   macs});
  cases.push_back({"dense dx " + shape,
                   fmt::format("func @main({}, {}) -> {} {{\n  %y = dot_general %dy, %w "
                               "{{lhs_contract=[1], rhs_contract=[0]}}\n  return %y\n}}\n",
                               dy, w, xt),
                   macs});
  cases.push_back(
      {"dense dw " + shape,
       fmt::format("func @main({}, {}) -> {} {{\n  %y = {}\n  return %y\n}}\n", dy, x, wt, product),
       macs});
  cases.push_back({"dense dw+sgd " + shape,
                   fmt::format("func @main({}, {}, {}, %r: f32[]) -> {} {{\n  %g = {}\n"
                               "  %s = broadcast %r {{dims=[], shape=[{},{}]}}\n"
                               "  %d = mul %g, %s\n  %y = sub %w, %d\n  return %y\n}}\n",
                               dy, x, w, wt, product, out, in),
                   macs, 2});
}

struct Conv {
  std::string model;
  int64_t n, size_h, size_w, in, out, kernel_h, kernel_w, stride, groups;
};

std::string conv_text(const std::string& operands, const std::string& numbers, const Conv& c,
                      const std::string& strides, const std::string& low, const std::string& high,
                      const std::string& input_dilation, const std::string& kernel_dilation,
                      const std::string& groups) {
  return fmt::format(
      "conv {} {{{}, strides={}, pad_low={}, pad_high={}, input_dilation={}, "
      "kernel_dilation={}{}}}",
      operands, numbers, strides, low, high, input_dilation, kernel_dilation,
      c.groups > 1 ? ", " + groups : "");
}

std::string pair(int64_t a, int64_t b) { return fmt::format("[{},{}]", a, b); }

/// Channels last; weights as a training library keeps them (order_state): input × window × output
/// where there is a window, output × input otherwise, as ONNX has them. Padding as "same" has it.
void add_conv(std::vector<Case>& cases, const Conv& c) {
  int64_t oh = (c.size_h + c.stride - 1) / c.stride, ow = (c.size_w + c.stride - 1) / c.stride;
  int64_t pad_h = std::max<int64_t>((oh - 1) * c.stride + c.kernel_h - c.size_h, 0);
  int64_t pad_w = std::max<int64_t>((ow - 1) * c.stride + c.kernel_w - c.size_w, 0);
  int64_t low_h = pad_h / 2, low_w = pad_w / 2, high_h = pad_h - low_h, high_w = pad_w - low_w;
  int64_t per_group = c.in / c.groups;
  // Products with padding do not count.
  const auto valid = [&](int64_t size, int64_t o, int64_t k, int64_t low) {
    int64_t n = 0;
    for (int64_t i = 0; i < o; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        int64_t at = i * c.stride + j - low;
        n += at >= 0 && at < size;
      }
    }
    return n;
  };
  int64_t macs = c.n * valid(c.size_h, oh, c.kernel_h, low_h) *
                 valid(c.size_w, ow, c.kernel_w, low_w) * c.out * per_group;
  std::string shape = fmt::format("{} {}->{} {}x{} of {}x{} s{} b{}", c.model, c.in, c.out,
                                  c.kernel_h, c.kernel_w, c.size_h, c.size_w, c.stride, c.n);
  std::string xt = fmt::format("f32[{},{},{},{}]", c.n, c.size_h, c.size_w, c.in);
  std::string yt = fmt::format("f32[{},{},{},{}]", c.n, oh, ow, c.out);
  const bool turned = c.groups == 1 && c.kernel_h * c.kernel_w > 1;
  const std::vector<int64_t> weights =
      turned ? std::vector<int64_t>{per_group, c.kernel_h, c.kernel_w, c.out}
             : std::vector<int64_t>{c.out, per_group, c.kernel_h, c.kernel_w};
  const std::string lists = fmt::format("{}", fmt::join(weights, ","));
  std::string wt = "f32[" + lists + "]";
  const int place_out = turned ? 3 : 0, place_in = turned ? 0 : 1;
  const std::string place_window = turned ? "[1,2]" : "[2,3]";
  const auto numbers = [&](int output, int input) {
    return fmt::format("kernel_output={}, kernel_input={}, kernel_spatial={}", output, input,
                       place_window);
  };
  const std::string one = "[1,1]";
  std::string s = pair(c.stride, c.stride), groups = fmt::format("feature_groups={}", c.groups);
  const std::string last = "input_batch=0, input_feature=3, input_spatial=[1,2], ";
  const std::string result = ", output_batch=0, output_feature=3, output_spatial=[1,2]";
  const std::string kind = c.groups > 1 ? "depthwise " : "conv ";
  std::string forward = conv_text("%x, %w", last + numbers(place_out, place_in) + result, c, s,
                                  pair(low_h, low_w), pair(high_h, high_w), one, one, groups);
  cases.push_back({kind + "y " + shape,
                   fmt::format("func @main(%x: {}, %w: {}) -> {} {{\n  %y = {}\n  return %y\n}}\n",
                               xt, wt, yt, forward),
                   macs});
  // Where a gradient of the input reads: the window from its other side.
  const auto back_high = [&](int64_t size, int64_t o, int64_t k, int64_t low) {
    return size + k - 1 - ((o - 1) * c.stride + 1) - (k - 1 - low);
  };
  std::string back_low = pair(c.kernel_h - 1 - low_h, c.kernel_w - 1 - low_w);
  std::string back =
      pair(back_high(c.size_h, oh, c.kernel_h, low_h), back_high(c.size_w, ow, c.kernel_w, low_w));
  bool depthwise = c.groups > 1;
  std::string roles = depthwise ? numbers(0, 1) : numbers(place_in, place_out);
  std::string dx =
      conv_text("%dy, %r", last + roles + result, c, one, back_low, back, s, one, groups);
  cases.push_back({kind + "dx " + shape,
                   fmt::format("func @main(%dy: {}, %w: {}) -> {} {{\n"
                               "  %r = reverse %w {{axes={}}}\n  %y = {}\n  return %y\n}}\n",
                               yt, wt, xt, place_window, dx),
                   macs});
  const std::string window = fmt::format(
      "input_batch=3, input_feature=0, input_spatial=[1,2], kernel_output=3, kernel_input=0, "
      "kernel_spatial=[1,2], output_batch={}, output_feature={}, output_spatial={}",
      place_in, place_out, place_window);
  std::string over_h = std::to_string((oh - 1) * c.stride + c.kernel_h - c.size_h - low_h);
  std::string over_w = std::to_string((ow - 1) * c.stride + c.kernel_w - c.size_w - low_w);
  std::string dw = conv_text("%x, %dy", window, c, one, pair(low_h, low_w),
                             fmt::format("[{},{}]", over_h, over_w), one, s,
                             fmt::format("batch_groups={}", c.groups));
  cases.push_back({kind + "dw " + shape,
                   fmt::format("func @main(%x: {}, %dy: {}) -> {} {{\n  %y = {}\n  return %y\n}}\n",
                               xt, yt, wt, dw),
                   macs});
  cases.push_back(
      {kind + "dw+sgd " + shape,
       fmt::format("func @main(%x: {}, %dy: {}, %w: {}, %r: f32[]) -> {} {{\n  %g = {}\n"
                   "  %s = broadcast %r {{dims=[], shape=[{}]}}\n"
                   "  %d = mul %g, %s\n  %y = sub %w, %d\n  return %y\n}}\n",
                   xt, yt, wt, wt, dw, lists),
       macs, 2});
}

/// One product of attention: h heads, contraction of the named dimensions.
void add_attention(std::vector<Case>& cases, int64_t h, int64_t t, int64_t d) {
  std::string rows = fmt::format("f32[{},{},{}]", h, t, d),
              scores = fmt::format("f32[{},{},{}]", h, t, t);
  const auto add = [&](const std::string& name, const std::string& a, const std::string& b,
                       const std::string& y, int lhs, int rhs) {
    cases.push_back({fmt::format("attention {} h{} t{} d{}", name, h, t, d),
                     fmt::format("func @main(%a: {}, %b: {}) -> {} {{\n  %y = dot_general %a, %b "
                                 "{{lhs_batch=[0], rhs_batch=[0], lhs_contract=[{}], "
                                 "rhs_contract=[{}]}}\n  return %y\n}}\n",
                                 a, b, y, lhs, rhs),
                     h * t * t * d});
  };
  add("q.kT", rows, rows, scores, 2, 2);
  add("p.v", scores, rows, rows, 2, 1);
  add("pT.dy", scores, rows, rows, 1, 1);
}

void add_map(std::vector<Case>& cases, const std::string& name, const std::string& text) {
  cases.push_back({name, text, 0});
}

void add_reductions(std::vector<Case>& cases) {
  const auto reduction = [&](const std::string& kind, const std::string& shape,
                             const std::string& axes, const std::string& result) {
    add_map(cases, fmt::format("{} [{}] over {}", kind, shape, axes),
            fmt::format("func @main(%x: f32[{}]) -> f32[{}] {{\n  %y = reduce %x {{kind={}, "
                        "axes=[{}]}}\n  return %y\n}}\n",
                        shape, result, kind, axes));
  };
  reduction("sum", "64,128", "1", "64");
  reduction("max", "64,128", "1", "64");
  reduction("sum", "4,64,64", "2", "4,64");
  reduction("sum", "64,128", "0", "128");
  reduction("sum", "8,16,16,32", "0,1,2", "32");
  reduction("sum", "8,32,16,16", "0,2,3", "32");
  reduction("sum", "128,640", "0,1", "");
  reduction("sum", "8,10", "1", "8");
  add_map(cases, "softmax [256,64]",
          "func @main(%x: f32[256,64]) -> f32[256,64] {\n"
          "  %m = reduce %x {kind=max, axes=[1]}\n"
          "  %mb = broadcast %m {dims=[0], shape=[256,64]}\n  %d = sub %x, %mb\n  %e = exp %d\n"
          "  %s = reduce %e {kind=sum, axes=[1]}\n"
          "  %sb = broadcast %s {dims=[0], shape=[256,64]}\n  %y = div %e, %sb\n  return %y\n}\n");
}

void add_transposes(std::vector<Case>& cases) {
  const auto transpose = [&](const std::string& from, const std::string& to,
                             const std::string& permutation) {
    add_map(cases, fmt::format("transpose [{}] by [{}]", from, permutation),
            fmt::format("func @main(%x: f32[{}]) -> f32[{}] {{\n  %y = transpose %x "
                        "{{permutation=[{}]}}\n  return %y\n}}\n",
                        from, to, permutation));
  };
  transpose("128,128", "128,128", "1,0");
  transpose("64,32,3,3", "3,3,32,64", "2,3,1,0");
  transpose("8,32,32,16", "8,16,32,32", "0,3,1,2");
  transpose("64,4,32", "4,64,32", "1,0,2");
}

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (int64_t b : {1, 8}) {
    add_dense(cases, "mlp", b, 784, 128);
    add_dense(cases, "mlp", b, 128, 10);
    add_dense(cases, "ad", b, 640, 128);
    add_dense(cases, "ad", b, 128, 128);
    add_dense(cases, "ad", b, 128, 640);
    add_conv(cases, {"resnet8", b, 32, 32, 3, 16, 3, 3, 1, 1});
    add_conv(cases, {"resnet8", b, 32, 32, 16, 16, 3, 3, 1, 1});
    add_conv(cases, {"resnet8", b, 32, 32, 16, 32, 3, 3, 2, 1});
    add_conv(cases, {"resnet8", b, 16, 16, 32, 32, 3, 3, 1, 1});
    add_conv(cases, {"resnet8", b, 16, 16, 32, 64, 3, 3, 2, 1});
    add_conv(cases, {"resnet8", b, 8, 8, 64, 64, 3, 3, 1, 1});
    add_conv(cases, {"resnet8", b, 32, 32, 16, 32, 1, 1, 2, 1});
    add_conv(cases, {"kws", b, 25, 5, 64, 64, 1, 1, 1, 1});
    add_conv(cases, {"kws", b, 25, 5, 64, 64, 3, 3, 1, 64});
  }
  add_dense(cases, "gemm", 128, 128, 128);
  add_dense(cases, "encoder", 64, 128, 128);
  add_dense(cases, "encoder", 64, 128, 512);
  add_dense(cases, "encoder", 64, 512, 128);
  add_attention(cases, 4, 64, 32);
  add_reductions(cases);
  add_transposes(cases);
  return cases;
}

}  // namespace backcast::bench
