// A small network, x[N,3] · w1[3,4] + b1 → relu → · w2[4,3] + b2, as the importer would write it,
// and the same trained by hand in double: the reference of the tests.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/ops/val.h"
#include "passes/train/training.h"
#include "tests/train/trainer.h"

namespace backcast::mlp {

inline constexpr int64_t kIn = 3, kHidden = 4, kOut = 3;
using Vector = std::vector<double>;

struct Weights {
  Vector w1 = noise(kIn * kHidden, 1), b1 = noise(kHidden, 2);
  Vector w2 = noise(kHidden * kOut, 3), b2 = noise(kOut, 4);
};

inline Val initializer(Builder& b, const std::string& name, ElementType element,
                       const std::vector<int64_t>& shape, const Vector& values) {
  b.set_loc({name, "initializer", Origin::imported});
  return Val(b, b.constant(Literal::from_doubles(element, shape, values)));
}

inline Val dense(Builder& b, const Val& x, const Val& w, const Val& bias, const std::string& node) {
  b.set_loc({node, "Gemm", Origin::imported});
  const Val product = x.emit(ops::dot_general, {w}, DotGeneralAttrs{{}, {}, {1}, {0}});
  return product + broadcast(bias, product.shape(), {1});
}

inline Module model(int64_t batch, ElementType element = ElementType::f64) {
  Module module;
  const Weights start;
  Builder b(module, "main");
  const Val x(b, b.parameter("x", TensorType{element, {batch, kIn}}));
  const Val w1 = initializer(b, "fc1.weight", element, {kIn, kHidden}, start.w1);
  const Val b1 = initializer(b, "fc1.bias", element, {kHidden}, start.b1);
  const Val hidden = dense(b, x, w1, b1, "/fc1/Gemm");
  b.set_loc({"/Relu", "Relu", Origin::imported});
  const Val active = relu(hidden);
  const Val w2 = initializer(b, "fc2.weight", element, {kHidden, kOut}, start.w2);
  const Val b2 = initializer(b, "fc2.bias", element, {kOut}, start.b2);
  const Val y = dense(b, active, w2, b2, "/fc2/Gemm");
  module.functions["main"] = b.finish(y, {"y"});
  return module;
}

inline TrainingModels models(int64_t batch, ElementType element = ElementType::f64) {
  TrainingModels result;
  result.inference = model(1, element);
  result.inference_batch = result.training = model(batch, element);
  result.parameters = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
  return result;
}

inline Tensors batch(int64_t size, uint64_t seed, ElementType element = ElementType::f64) {
  const size_t n = static_cast<size_t>(size);
  std::vector<double> labels;
  for (double value : noise(n, seed + 1000)) labels.push_back(std::floor((value + 1) * 1.5));
  return {{"x", Literal::from_doubles(element, {size, kIn}, noise(n * kIn, seed))},
          {"target", Literal::from_doubles(ElementType::i32, {size}, labels)}};
}

/// Loss and gradients of cross-entropy, written out.
struct Gradients {
  double loss = 0;
  Weights of;
};

inline Gradients gradients(const Weights& w, const Tensors& data) {
  Gradients g;
  g.of = {Vector(w.w1.size()), Vector(w.b1.size()), Vector(w.w2.size()), Vector(w.b2.size())};
  const Vector x = doubles(data.at("x")), labels = doubles(data.at("target"));
  const size_t n = labels.size();
  for (size_t row = 0; row < n; ++row) {
    double hidden[kHidden], out[kOut], sum = 0;
    for (int64_t j = 0; j < kHidden; ++j) {
      hidden[j] = w.b1[j];
      for (int64_t i = 0; i < kIn; ++i) hidden[j] += x[row * kIn + i] * w.w1[i * kHidden + j];
    }
    for (int64_t k = 0; k < kOut; ++k) {
      out[k] = w.b2[k];
      for (int64_t j = 0; j < kHidden; ++j) {
        out[k] += std::max(hidden[j], 0.0) * w.w2[j * kOut + k];
      }
      sum += std::exp(out[k]);
    }
    const int64_t label = static_cast<int64_t>(labels[row]);
    g.loss += (std::log(sum) - out[label]) / n;
    double back[kHidden] = {};
    for (int64_t k = 0; k < kOut; ++k) {
      const double d = (std::exp(out[k]) / sum - (k == label ? 1 : 0)) / n;
      g.of.b2[k] += d;
      for (int64_t j = 0; j < kHidden; ++j) {
        g.of.w2[j * kOut + k] += std::max(hidden[j], 0.0) * d;
        back[j] += d * w.w2[j * kOut + k];
      }
    }
    for (int64_t j = 0; j < kHidden; ++j) {
      if (hidden[j] <= 0) continue;
      g.of.b1[j] += back[j];
      for (int64_t i = 0; i < kIn; ++i) g.of.w1[i * kHidden + j] += x[row * kIn + i] * back[j];
    }
  }
  return g;
}

inline void descend(Vector& w, const Vector& g, double rate) {
  for (size_t i = 0; i < w.size(); ++i) w[i] -= rate * g[i];
}

}  // namespace backcast::mlp
