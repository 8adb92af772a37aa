// ai.onnx.ml: what turns categories into numbers, and what puts features together.
#include <algorithm>

#include "frontend/operators.h"
#include "frontend/rules/ml_classes.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

void refuse_words(const NodeContext& n, const std::string& attribute) {
  const OnnxAttribute* words = n.find(attribute);
  if (!words || words->strings.empty()) return;
  n.fail(fmt::format("attribute \"{}\": strings are not supported; leave this part to the caller",
                     attribute));
}

/// The list that the attributes of some name hold: a tensor, integers or floats, whichever there
/// is.
std::optional<Literal> list_of(NodeContext& n, const std::string& name) {
  refuse_words(n, name + "_strings");
  std::optional<Literal> result = n.attr_tensor(name + "_tensor");
  if (const auto ints = n.attr_ints(name + "_int64s"); ints && !ints->empty()) {
    result = Literal::from_ints({static_cast<int64_t>(ints->size())}, *ints);
  }
  if (const std::vector<float> reals = n.attr_floats(name + "_floats"); !reals.empty()) {
    result = Literal::from_doubles(ElementType::f32, {static_cast<int64_t>(reals.size())},
                                   {reals.begin(), reals.end()});
  }
  return result;
}

/// What stands for keys that are not listed.
ValueId default_of(NodeContext& n, ElementType element) {
  if (const std::optional<Literal> tensor = n.attr_tensor("default_tensor")) {
    if (tensor->element_count() != 1) n.fail("attribute \"default_tensor\" has to hold one value");
    return n.e.cast(n.e.reshape(n.e.constant(*tensor), {}), element);
  }
  if (is_float(element)) return n.e.scalar(element, n.attr_float("default_float", -0.0));
  return n.e.cast(n.e.integer(n.attr_int("default_int64", -1)), element);
}

/// Each element beside each of some values of its type, along a new last axis; NaN equals NaN.
ValueId matches(Emitter& e, ValueId x, const Literal& values) {
  const int64_t last = e.rank(x);
  Shape shape = e.shape(x);
  shape.emplace_back(values.element_count());
  const ValueId each = e.broadcast_to(e.unsqueeze(x, last), shape);
  const ValueId all = e.broadcast_in(e.constant(values), shape, {last});
  const ValueId same = e.compare(Comparison::eq, each, all);
  if (!is_float(e.element(x))) return same;
  return e.binary(ops::bit_or, same,
                  e.binary(ops::bit_and, e.unary(ops::is_nan, each), e.unary(ops::is_nan, all)));
}

void label_encoder(NodeContext& n) {
  Emitter& e = n.e;
  const ValueId x = n.input(0);
  const std::optional<Literal> keys = list_of(n, "keys"), values = list_of(n, "values");
  if (!keys || !values || keys->element_count() != values->element_count()) {
    n.fail("needs as many keys as values");
  }
  if (keys->element() != e.element(x)) {
    n.fail(fmt::format("has keys of {} for {}", name_of(keys->element()), to_string(e.type(x))));
  }
  const ValueId found = e.cast(matches(e, x, *keys), ElementType::i32);
  const int64_t last = e.rank(x);
  const ValueId place = e.arg_reduce(Reduction::max, found, last, false, false);
  const ValueId any = e.compare(Comparison::gt, e.reduce(Reduction::max, found, {last}), 0.0);
  const ValueId value =
      e.take(e.reshape(e.constant(*values), {Dim(values->element_count())}), place, 0);
  n.result(e.select(any, value, e.broadcast_to(default_of(n, values->element()), e.shape(x))));
}

/// Categories that are not listed give zeros, also where ONNX would stop.
void one_hot_encoder(NodeContext& n) {
  refuse_words(n, "cats_strings");
  const Ints categories = n.attr_ints("cats_int64s").value_or(Ints());
  if (categories.empty()) n.fail("attribute \"cats_int64s\" is missing");
  const ValueId x = n.e.cast(n.input(0), ElementType::i64);
  const Ints extents{static_cast<int64_t>(categories.size())};
  n.result(n.e.cast(matches(n.e, x, Literal::from_ints(extents, categories)), ElementType::f32));
}

/// Rows side by side, each cut or filled with zeros to the number of features it is said to have.
void feature_vectorizer(NodeContext& n) {
  Emitter& e = n.e;
  const Ints widths = n.attr_ints("inputdimensions").value_or(Ints());
  if (widths.size() != n.input_count()) {
    n.fail(fmt::format("attribute \"inputdimensions\" has {} values for {} inputs", widths.size(),
                       n.input_count()));
  }
  std::vector<ValueId> parts;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (n.rank(i) < 1) n.fail("needs inputs of rank 1 or more");
    if (widths[i] < 0) n.fail(fmt::format("attribute \"inputdimensions\" has {}", widths[i]));
    const Dim rows = n.rank(i) == 1 ? Dim(1) : n.shape(i)[0];
    const Dim features = product(n.shape(i), n.rank(i) == 1 ? 0 : 1, n.rank(i));
    if (!features.is_constant()) n.fail("needs inputs with a known number of features");
    ValueId part = e.cast(e.reshape(n.input(i), {rows, features}), ElementType::f32);
    const int64_t had = features.constant(), kept = std::min(had, widths[i]);
    if (kept < had) part = e.slice_axis(part, 1, 0, kept);
    if (kept < widths[i]) {
      part = e.pad(part, e.scalar(ElementType::f32, 0), {0, 0}, {0, widths[i] - kept});
    }
    parts.push_back(part);
  }
  n.result(e.concat(parts, 1));
}

/// A map from labels to scores, per example: the scores, whose columns are in the labels' order.
void zip_map(NodeContext& n) {
  const ValueId scores = n.input(0);
  n.result(n.rank(0) == 1 ? n.e.unsqueeze(scores, 0) : scores);
}

#define LABELS                                                                                   \
  "keys_strings:S keys_int64s:I keys_floats:F values_strings:S values_int64s:I values_floats:F " \
  "default_string:s default_int64:i default_float:f"

const OperatorRule kRules[] = {
    {"LabelEncoder", 2, 3, 1, 1, label_encoder, LABELS, kMlDomain},
    {"LabelEncoder", 4, kNewestMlOpset, 1, 1, label_encoder,
     LABELS " keys_tensor:t values_tensor:t default_tensor:t", kMlDomain},
    {"OneHotEncoder", 1, kNewestMlOpset, 1, 1, one_hot_encoder,
     "cats_int64s:I cats_strings:S zeros:i", kMlDomain},
    {"FeatureVectorizer", 1, kNewestMlOpset, 1, -1, feature_vectorizer, "inputdimensions:I",
     kMlDomain},
    {"ZipMap", 1, kNewestMlOpset, 1, 1, zip_map, "classlabels_int64s:I classlabels_strings:S",
     kMlDomain},
};

}  // namespace

std::span<const OperatorRule> ml_encoder_rules() { return kRules; }

}  // namespace backcast
