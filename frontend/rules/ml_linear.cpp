// ai.onnx.ml: what prepares features, and linear models.
#include <cmath>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "frontend/rules/ml_classes.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// A list of one value or one per feature, along the last axis of x.
ValueId per_feature(NodeContext& n, const std::vector<float>& values, ValueId x,
                    std::string_view name) {
  Emitter& e = n.e;
  const int64_t last = e.rank(x) - 1;
  if (values.size() == 1) return e.like(x, values[0]);
  if (last < 0 || !(e.extent(x, last) == Dim(static_cast<int64_t>(values.size())))) {
    n.fail(fmt::format("attribute \"{}\" has {} values for {}", name, values.size(),
                       to_string(e.type(x))));
  }
  return e.broadcast_in(ml_vector(n, values, e.element(x)), e.shape(x), {last});
}

ValueId as_float(NodeContext& n) {
  return n.e.cast(n.input(0), n.element(0) == ElementType::f64 ? n.element(0) : ElementType::f32);
}

void scaler(NodeContext& n) {
  ValueId x = as_float(n);
  const std::vector<float> offset = n.attr_floats("offset"), scale = n.attr_floats("scale");
  if (!offset.empty()) x = n.e.sub(x, per_feature(n, offset, x, "offset"));
  if (!scale.empty()) x = n.e.mul(x, per_feature(n, scale, x, "scale"));
  n.result(n.e.cast(x, ElementType::f32));
}

/// Each example divided by its norm; one whose norm is zero stays as it is.
void normalizer(NodeContext& n) {
  Emitter& e = n.e;
  const ValueId x = as_float(n);
  if (e.rank(x) < 1) n.fail("needs an input of rank 1 or more");
  const Ints axes = {e.rank(x) - 1};
  const std::string norm = n.attr_string("norm", "MAX");
  ValueId size;
  if (norm == "MAX") {
    size = e.reduce(Reduction::max, x, axes, true);
  } else if (norm == "L1") {
    size = e.reduce(Reduction::sum, e.unary(ops::abs, x), axes, true);
  } else if (norm == "L2") {
    size = e.unary(ops::sqrt, e.reduce(Reduction::sum, e.mul(x, x), axes, true));
  } else {
    n.fail(fmt::format("attribute \"norm\" is \"{}\"; MAX, L1 and L2 are possible", norm));
  }
  const ValueId divisor = e.select(e.compare(Comparison::eq, size, 0.0), e.like(size, 1), size);
  n.result(e.cast(e.div(x, divisor), ElementType::f32));
}

void binarizer(NodeContext& n) {
  const ValueId above = n.e.compare(Comparison::gt, n.input(0), n.attr_float("threshold", 0));
  n.result(n.e.cast(above, n.element(0)));
}

void imputer(NodeContext& n) {
  Emitter& e = n.e;
  const ValueId x = n.input(0);
  const bool real = is_float(n.element(0));
  std::vector<float> values = n.attr_floats("imputed_value_floats");
  double replaced = n.attr_float("replaced_value_float", 0);
  if (!real) {
    const Ints ints = n.attr_ints("imputed_value_int64s").value_or(Ints());
    values.assign(ints.begin(), ints.end());
    replaced = static_cast<double>(n.attr_int("replaced_value_int64", 0));
  }
  if (values.empty()) n.fail("has no values to put in for what is missing");
  const ValueId missing = real && std::isnan(replaced) ? e.unary(ops::is_nan, x)
                                                       : e.compare(Comparison::eq, x, replaced);
  n.result(e.select(missing, per_feature(n, values, x, "imputed_value_floats"), x));
}

/// Columns by number; of a vector a row.
void array_feature_extractor(NodeContext& n) {
  Emitter& e = n.e;
  const ValueId x = n.rank(0) == 1 ? e.unsqueeze(n.input(0), 0) : n.input(0);
  const ValueId columns = e.reshape(n.input(1), {product(n.shape(1), 0, n.rank(1))});
  n.result(e.take(x, columns, e.rank(x) - 1));
}

/// x * coefficients^T + intercepts: [examples, rows].
ValueId linear(NodeContext& n, ValueId x, int64_t rows) {
  Emitter& e = n.e;
  const std::vector<float> given = n.attr_floats("coefficients");
  const std::vector<float> intercepts = n.attr_floats("intercepts");
  const int64_t count = static_cast<int64_t>(given.size());
  if (rows < 1 || count % rows != 0 || !(e.extent(x, 1) == Dim(count / rows))) {
    n.fail(
        fmt::format("has {} coefficients for {} outputs of {}", count, rows, to_string(e.type(x))));
  }
  const ValueId weights =
      e.reshape(ml_vector(n, given, e.element(x)), {Dim(rows), Dim(count / rows)});
  ValueId y = matmul(n, x, e.transpose(weights, {1, 0}));
  if (!intercepts.empty()) y = e.add(y, per_feature(n, intercepts, y, "intercepts"));
  return y;
}

void linear_regressor(NodeContext& n) {
  const ValueId y = linear(n, ml_features(n), n.attr_int("targets", 1));
  n.result(n.e.cast(post_transform(n, y), ElementType::f32));
}

void linear_classifier(NodeContext& n) {
  const Ints labels = class_labels(n, "classlabels_ints", "classlabels_strings");
  const ValueId x = ml_features(n);
  const int64_t features = static_cast<int64_t>(n.attr_floats("coefficients").size());
  const std::vector<float> intercepts = n.attr_floats("intercepts");
  const int64_t classes = static_cast<int64_t>(labels.size());
  const bool one = intercepts.empty() ? n.e.extent(x, 1) == Dim(features) : intercepts.size() == 1;
  if (!one) return set_classes(n, linear(n, x, classes), labels);
  if (classes != 2) n.fail(fmt::format("has one row of coefficients for {} classes", classes));
  set_two_classes(n, linear(n, x, 1), labels, 0, true);
}

const OperatorRule kRules[] = {
    {"Scaler", 1, kNewestMlOpset, 1, 1, scaler, "offset:F scale:F", kMlDomain},
    {"Normalizer", 1, kNewestMlOpset, 1, 1, normalizer, "norm:s", kMlDomain},
    {"Binarizer", 1, kNewestMlOpset, 1, 1, binarizer, "threshold:f", kMlDomain},
    {"Imputer", 1, kNewestMlOpset, 1, 1, imputer,
     "imputed_value_floats:F imputed_value_int64s:I replaced_value_float:f replaced_value_int64:i",
     kMlDomain},
    {"ArrayFeatureExtractor", 1, kNewestMlOpset, 2, 2, array_feature_extractor, "", kMlDomain},
    {"LinearRegressor", 1, kNewestMlOpset, 1, 1, linear_regressor,
     "coefficients:F intercepts:F post_transform:s targets:i", kMlDomain},
    {"LinearClassifier", 1, kNewestMlOpset, 1, 1, linear_classifier,
     "classlabels_ints:I classlabels_strings:S coefficients:F intercepts:F multi_class:i "
     "post_transform:s",
     kMlDomain},
};

}  // namespace

std::span<const OperatorRule> ml_linear_rules() { return kRules; }

}  // namespace backcast
