// Random convolutions, windows and gathers against references written as plainly as possible: one
// bounds-checked read per multiplication, indices in maps of dimensions.
#include <gtest/gtest.h>

#include <random>

#include "tests/ops/cases.h"

namespace backcast {
namespace {

using Index = std::vector<int64_t>;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  Ints permutation(int64_t n) {
    Ints order;
    for (int64_t i = 0; i < n; ++i) order.push_back(i);
    for (int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[between(0, i)]);
    return order;
  }
  Literal values(const Index& shape) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    std::vector<double> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(between(-9, 9)));
    return tensor(ElementType::f32, shape, numbers);
  }

 private:
  std::mt19937 engine_;
};

double read(const Literal& x, const Index& index) {
  int64_t flat = 0;
  for (size_t d = 0; d < index.size(); ++d) flat = flat * x.shape()[d] + index[d];
  return x.as_double(flat);
}

/// Calls f for every index of the shape.
template <class F>
void for_each(const Index& shape, const F& f) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  for (int64_t flat = 0; flat < count; ++flat) {
    Index index(shape.size());
    int64_t rest = flat;
    for (size_t d = shape.size(); d-- > 0;) {
      index[d] = rest % shape[d];
      rest /= shape[d];
    }
    f(index);
  }
}

/// Position of window element k of result p in the undilated input; -1 for padding and gaps.
int64_t input_position(int64_t p, int64_t k, int64_t stride, int64_t low, int64_t kernel_dilation,
                       int64_t input_dilation, int64_t extent) {
  const int64_t at = p * stride + k * kernel_dilation - low;
  if (at < 0 || at % input_dilation != 0 || at / input_dilation >= extent) return -1;
  return at / input_dilation;
}

struct ConvSizes {
  int64_t batch, features, outputs;  // of the result's batch, of one group's input, of the result
  Index input, kernel;               // spatial
};

ConvAttrs random_conv(Random& random, ConvSizes& sizes) {
  const int64_t spatial = random.between(0, 2);
  const int64_t rank = spatial + 2;
  ConvAttrs attrs;
  const Ints in = random.permutation(rank), ker = random.permutation(rank);
  const Ints out = random.permutation(rank);
  attrs.input_batch = in[0], attrs.input_feature = in[1];
  attrs.kernel_output = ker[0], attrs.kernel_input = ker[1];
  attrs.output_batch = out[0], attrs.output_feature = out[1];
  attrs.input_spatial.assign(in.begin() + 2, in.end());
  attrs.kernel_spatial.assign(ker.begin() + 2, ker.end());
  attrs.output_spatial.assign(out.begin() + 2, out.end());
  const int64_t kind = random.between(0, 2);
  attrs.feature_groups = kind == 1 ? random.between(2, 3) : 1;
  attrs.batch_groups = kind == 2 ? random.between(2, 3) : 1;
  sizes.batch = random.between(1, 2);
  sizes.features = random.between(1, 3);
  sizes.outputs = attrs.feature_groups * attrs.batch_groups * random.between(1, 2);
  for (int64_t i = 0; i < spatial; ++i) {
    sizes.input.push_back(random.between(3, 6));
    sizes.kernel.push_back(random.between(1, 3));
    attrs.strides.push_back(random.between(1, 3));
    attrs.kernel_dilation.push_back(random.between(1, 2));
    attrs.input_dilation.push_back(random.between(1, 3));
    attrs.pad_low.push_back(random.between(-1, 3));
    attrs.pad_high.push_back(random.between(attrs.input_dilation.back() > 1 ? -2 : 3, 3));
  }
  return attrs;
}

double reference_conv(const ConvAttrs& a, const ConvSizes& s, const Literal& x, const Literal& w,
                      const Index& at) {
  const int64_t groups = a.feature_groups * a.batch_groups;
  const int64_t o = at[a.output_feature];
  const int64_t group = o / (s.outputs / groups);
  double sum = 0;
  for_each(s.kernel, [&](const Index& k) {
    for (int64_t c = 0; c < s.features; ++c) {
      Index from(x.shape().size()), weight(x.shape().size());
      from[a.input_batch] = at[a.output_batch] + (a.batch_groups > 1 ? group * s.batch : 0);
      from[a.input_feature] = c + (a.feature_groups > 1 ? group * s.features : 0);
      weight[a.kernel_output] = o;
      weight[a.kernel_input] = c;
      bool inside = true;
      for (size_t i = 0; i < k.size(); ++i) {
        const int64_t position =
            input_position(at[a.output_spatial[i]], k[i], a.strides[i], a.pad_low[i].constant(),
                           a.kernel_dilation[i], a.input_dilation[i], s.input[i]);
        from[a.input_spatial[i]] = position;
        weight[a.kernel_spatial[i]] = k[i];
        inside = inside && position >= 0;
      }
      if (inside) sum += read(x, from) * read(w, weight);
    }
  });
  return sum;
}

TEST(Reference, Conv) {
  Random random(1);
  int compared = 0;
  for (int round = 0; round < 300; ++round) {
    ConvSizes sizes{};
    const ConvAttrs attrs = random_conv(random, sizes);
    Index x_shape(sizes.input.size() + 2), w_shape(sizes.input.size() + 2);
    x_shape[attrs.input_batch] = sizes.batch * attrs.batch_groups;
    x_shape[attrs.input_feature] = sizes.features * attrs.feature_groups;
    w_shape[attrs.kernel_output] = sizes.outputs;
    w_shape[attrs.kernel_input] = sizes.features;
    for (size_t i = 0; i < sizes.input.size(); ++i) {
      x_shape[attrs.input_spatial[i]] = sizes.input[i];
      w_shape[attrs.kernel_spatial[i]] = sizes.kernel[i];
    }
    const Literal x = random.values(x_shape), w = random.values(w_shape);
    const std::string refusal = infer_error(ops::conv, {x.type(), w.type()}, attrs);
    if (refusal != "no error") {
      EXPECT_NE(refusal.find("larger than the padded input"), std::string::npos) << refusal;
      continue;
    }
    const Literal y = run(ops::conv, {x, w}, attrs).tensor;
    for_each(y.shape(), [&](const Index& at) {
      ASSERT_EQ(read(y, at), reference_conv(attrs, sizes, x, w, at)) << "round " << round;
      ++compared;
    });
  }
  EXPECT_GT(compared, 5000);
}

TEST(Reference, ReduceWindow) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const size_t rank = static_cast<size_t>(random.between(1, 3));
    Index shape;
    ReduceWindowAttrs attrs;
    attrs.kind = random.between(0, 1) == 0 ? Reduction::sum : Reduction::max;
    for (size_t d = 0; d < rank; ++d) {
      shape.push_back(random.between(3, 6));
      attrs.window.push_back(random.between(1, 2));
      attrs.strides.push_back(random.between(1, 3));
      attrs.dilation.push_back(random.between(1, 2));
      attrs.pad_low.push_back(random.between(0, 3));
      attrs.pad_high.push_back(random.between(0, 3));
    }
    const Literal x = random.values(shape);
    const Literal y = run(ops::reduce_window, {x}, attrs).tensor;
    for_each(y.shape(), [&](const Index& at) {
      double value = attrs.kind == Reduction::sum ? 0 : -kInf;
      for_each(attrs.window, [&](const Index& k) {
        Index from(rank);
        for (size_t d = 0; d < rank; ++d) {
          from[d] = input_position(at[d], k[d], attrs.strides[d], attrs.pad_low[d].constant(),
                                   attrs.dilation[d], 1, shape[d]);
          if (from[d] < 0) return;
        }
        const double v = read(x, from);
        value = attrs.kind == Reduction::sum ? value + v : std::max(value, v);
      });
      ASSERT_EQ(read(y, at), value) << "round " << round;
    });
  }
}

/// Pads by hand where they may be negative, to tell a result element from its source.
TEST(Reference, Pad) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const Index shape = {random.between(1, 4), random.between(1, 4)};
    PadAttrs attrs;
    for (size_t d = 0; d < 2; ++d) {
      attrs.low.push_back(random.between(-3, 3));
      attrs.high.push_back(random.between(-3, 3));
      attrs.interior.push_back(random.between(0, 2));
    }
    const Literal x = random.values(shape);
    if (infer_error(ops::pad, {x.type(), f32({}, {0}).type()}, attrs) != "no error") continue;
    const Literal y = run(ops::pad, {x, f32({}, {99})}, attrs).tensor;
    for_each(y.shape(), [&](const Index& at) {
      Index from(2);
      bool inside = true;
      for (size_t d = 0; d < 2; ++d) {
        from[d] = input_position(at[d], 0, 1, attrs.low[d].constant(), 1, attrs.interior[d] + 1,
                                 shape[d]);
        inside = inside && from[d] >= 0;
      }
      ASSERT_EQ(read(y, at), inside ? read(x, from) : 99) << "round " << round;
    });
  }
}

TEST(Reference, DotGeneral) {
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    const size_t batch = static_cast<size_t>(random.between(0, 2));
    const size_t contract = static_cast<size_t>(random.between(0, 2));
    const int64_t a_rank = static_cast<int64_t>(batch + contract) + random.between(0, 2);
    const int64_t b_rank = static_cast<int64_t>(batch + contract) + random.between(0, 2);
    const Ints a_order = random.permutation(a_rank), b_order = random.permutation(b_rank);
    DotGeneralAttrs attrs;
    Index a_shape(a_rank), b_shape(b_rank);
    for (int64_t& extent : a_shape) extent = random.between(1, 3);
    for (int64_t& extent : b_shape) extent = random.between(1, 3);
    for (size_t i = 0; i < batch + contract; ++i) {
      (i < batch ? attrs.lhs_batch : attrs.lhs_contract).push_back(a_order[i]);
      (i < batch ? attrs.rhs_batch : attrs.rhs_contract).push_back(b_order[i]);
      b_shape[b_order[i]] = a_shape[a_order[i]];
    }
    const Literal a = random.values(a_shape), b = random.values(b_shape);
    const Literal y = run(ops::dot_general, {a, b}, attrs).tensor;
    Index depth;
    for (const int64_t d : attrs.lhs_contract) depth.push_back(a_shape[d]);
    for_each(y.shape(), [&](const Index& at) {
      Index left(a_rank, -1), right(b_rank, -1);
      size_t next = 0;
      for (; next < batch; ++next) {
        left[attrs.lhs_batch[next]] = right[attrs.rhs_batch[next]] = at[next];
      }
      double sum = 0;
      for (const int64_t d : attrs.lhs_contract) left[d] = 0;
      for (const int64_t d : attrs.rhs_contract) right[d] = 0;
      for (int64_t& index : left) index = index < 0 ? at[next++] : index;
      for (int64_t& index : right) index = index < 0 ? at[next++] : index;
      for_each(depth, [&](const Index& k) {
        for (size_t i = 0; i < k.size(); ++i) {
          left[attrs.lhs_contract[i]] = right[attrs.rhs_contract[i]] = k[i];
        }
        sum += read(a, left) * read(b, right);
      });
      ASSERT_EQ(read(y, at), sum) << "round " << round;
    });
  }
}

}  // namespace
}  // namespace backcast
