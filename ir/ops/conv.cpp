// conv: cross-correlation with general dimension numbers, dilations and groups (StableHLO
// convolution).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_conv(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  const TensorType& w = c.tensor(1);
  const ConvAttrs& a = c.attrs.as<ConvAttrs>();
  require(x.element == w.element && x.element != ElementType::boolean, "operands are {} and {}",
          to_string(x), to_string(w));
  require(x.rank() >= 2 && x.rank() == w.rank(), "ranks of {} and {} do not fit", to_string(x),
          to_string(w));
  const auto check = [&](int64_t first, int64_t second, const Ints& spatial) {
    Ints all{first, second};
    all.insert(all.end(), spatial.begin(), spatial.end());
    require_length(all.size(), x.rank(), "dimension numbers");
    require_axes(all, x.rank());
  };
  check(a.input_batch, a.input_feature, a.input_spatial);
  check(a.kernel_output, a.kernel_input, a.kernel_spatial);
  check(a.output_batch, a.output_feature, a.output_spatial);
  int64_t space = x.rank() - 2;
  for (const Ints* list : {&a.strides, &a.input_dilation, &a.kernel_dilation}) {
    require_length(list->size(), space + 0, "a spatial list");
    for (int64_t value : *list)
      require(value >= 1 && value < INT32_MAX, "{} is no stride or dilation", value);
  }
  require_length(a.pad_low.size(), space, "pad_low");
  require_length(a.pad_high.size(), space, "pad_high");
  require(a.feature_groups >= 1 && a.batch_groups >= 1, "groups must be positive");
  require(a.feature_groups == 1 || a.batch_groups == 1,
          "feature and batch groups exclude each other");
  const auto at = [](const TensorType& t, int64_t d) { return t.shape[static_cast<size_t>(d)]; };
  require(at(x, a.input_feature) == at(w, a.kernel_input) * Dim(a.feature_groups),
          "the input has {} features, the weights {} for {} groups",
          at(x, a.input_feature).to_string(), at(w, a.kernel_input).to_string(), a.feature_groups);
  Dim features = at(w, a.kernel_output);
  require(Dim::mod(features, a.feature_groups * a.batch_groups) == Dim(0),
          "{} output features do not divide into the groups", features.to_string());
  TensorType result{x.element, Shape(x.shape.size())};
  result.shape[static_cast<size_t>(a.output_batch)] =
      Dim::floor_div(at(x, a.input_batch), a.batch_groups);
  result.shape[static_cast<size_t>(a.output_feature)] = features;
  for (size_t i = 0; i < a.strides.size(); ++i) {
    Dim size = at(x, a.input_spatial[i]), kernel = at(w, a.kernel_spatial[i]);
    Dim dilated =
        (size - Dim(1)) * Dim(a.input_dilation[i]) + Dim(1) + a.pad_low[i] + a.pad_high[i];
    Dim window = (kernel - Dim(1)) * Dim(a.kernel_dilation[i]) + Dim(1);
    Dim extent = Dim::floor_div(dilated - window, a.strides[i]) + Dim(1);
    require(!(dilated - window).is_constant() || (dilated - window).constant() >= 0,
            "the window of {} is larger than the padded input of {}", window.to_string(),
            dilated.to_string());
    result.shape[static_cast<size_t>(a.output_spatial[i])] = extent;
  }
  return result;
}

/// What one spatial dimension of the walk needs.
struct Space {
  int64_t out, in, kernel, stride, low, input_dilation, kernel_dilation;
  int64_t out_step, in_step, kernel_step;  // flat strides
};

template <class T>
class Convolution {
 public:
  explicit Convolution(const EvalContext& c)
      : c_(c), a_(c.node.attrs.as<ConvAttrs>()), out_(result_writer(c)) {
    for (size_t i = 0; i < 2; ++i) {
      std::vector<T>& values = i == 0 ? x_ : w_;
      for (int64_t k = 0; k < c.tensor(i).element_count(); ++k)
        values.push_back(element<T>(c.tensor(i), k));
    }
    std::vector<int64_t> low = c.evaluate(a_.pad_low);
    for (size_t i = 0; i < a_.strides.size(); ++i) {
      space_.push_back({extent(out_.shape(), a_.output_spatial[i]),
                        extent(c.tensor(0).shape(), a_.input_spatial[i]),
                        extent(c.tensor(1).shape(), a_.kernel_spatial[i]), a_.strides[i], low[i],
                        a_.input_dilation[i], a_.kernel_dilation[i],
                        step(out_.shape(), a_.output_spatial[i]),
                        step(c.tensor(0).shape(), a_.input_spatial[i]),
                        step(c.tensor(1).shape(), a_.kernel_spatial[i])});
    }
  }

  Literal run() {
    const std::vector<int64_t>& x = c_.tensor(0).shape();
    const std::vector<int64_t>& w = c_.tensor(1).shape();
    int64_t batch = extent(out_.shape(), a_.output_batch);
    int64_t features = extent(w, a_.kernel_output), channels = extent(w, a_.kernel_input);
    int64_t per_group = features / (a_.feature_groups * a_.batch_groups);
    std::vector<int64_t> outer;
    for (const Space& s : space_) outer.push_back(s.out);
    for (Odometer at(outer); !at.done(); at.next()) {
      collect_taps(at);
      int64_t place = 0;
      for (size_t d = 0; d < space_.size(); ++d) place += at[d] * space_[d].out_step;
      for (int64_t n = 0; n < batch; ++n) {
        for (int64_t f = 0; f < features; ++f) {
          int64_t group = f / per_group;
          int64_t image = a_.batch_groups > 1 ? group * batch + n : n;
          int64_t first = a_.feature_groups > 1 ? group * channels : 0;
          int64_t from = image * step(x, a_.input_batch) + first * step(x, a_.input_feature);
          int64_t weights = f * step(w, a_.kernel_output);
          out_.set(
              place + n * step(out_.shape(), a_.output_batch) +
                  f * step(out_.shape(), a_.output_feature),
              sum(from, weights, channels, step(x, a_.input_feature), step(w, a_.kernel_input)));
        }
      }
    }
    return out_.finish();
  }

 private:
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

  static int64_t extent(const std::vector<int64_t>& shape, int64_t d) {
    return shape[static_cast<size_t>(d)];
  }
  static int64_t step(const std::vector<int64_t>& shape, int64_t d) {
    int64_t result = 1;
    for (size_t i = static_cast<size_t>(d) + 1; i < shape.size(); ++i) result *= shape[i];
    return result;
  }

  /// Offsets in x and w of the window elements that lie inside the input, for one output position.
  void collect_taps(const Odometer& at) {
    taps_.clear();
    std::vector<int64_t> window;
    for (const Space& s : space_) window.push_back(s.kernel);
    for (Odometer k(window); !k.done(); k.next()) {
      int64_t from = 0, weight = 0;
      bool inside = true;
      for (size_t d = 0; d < space_.size(); ++d) {
        const Space& s = space_[d];
        int64_t position = at[d] * s.stride + k[d] * s.kernel_dilation - s.low;
        inside = inside && position >= 0 && position % s.input_dilation == 0 &&
                 position / s.input_dilation < s.in;
        from += position / s.input_dilation * s.in_step;
        weight += k[d] * s.kernel_step;
      }
      if (inside) taps_.emplace_back(from, weight);
    }
  }

  Sum sum(int64_t from, int64_t weights, int64_t channels, int64_t x_step, int64_t w_step) const {
    Sum total = 0;
    for (const auto& [x, w] : taps_) {
      for (int64_t ch = 0; ch < channels; ++ch) {
        total += static_cast<Sum>(x_[static_cast<size_t>(from + x + ch * x_step)]) *
                 static_cast<Sum>(w_[static_cast<size_t>(weights + w + ch * w_step)]);
      }
    }
    return total;
  }

  const EvalContext& c_;
  const ConvAttrs& a_;
  TensorWriter out_;
  std::vector<T> x_, w_;
  std::vector<Space> space_;
  std::vector<std::pair<int64_t, int64_t>> taps_;
};

Value evaluate_conv(const EvalContext& c) {
  Literal result;
  visit_compute_type(c.tensor(0).element(), [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) result = Convolution<T>(c).run();
  });
  return result;
}

}  // namespace

const OpDef conv = {.name = "conv",
                    .documentation =
                        "cross-correlation with general dimension numbers, dilations and groups "
                        "(StableHLO convolution).",
                    .min_operands = 2,
                    .max_operands = 2,
                    .default_attrs = ConvAttrs{},
                    .infer = infer_conv,
                    .evaluate = evaluate_conv};

}  // namespace backcast::ops
