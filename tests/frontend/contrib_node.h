// Runs one node on given operands: of com.microsoft, unless said otherwise.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx_tensors.h"
#include "ir/graph/evaluator.h"
#include "tests/frontend/model_builder.h"

namespace backcast {

struct Operand {
  std::optional<Literal> value;  // none: an input that is left out
  int64_t type = 0;
};
inline Operand operand(ElementType element, const std::vector<int64_t>& shape,
                       const std::vector<double>& values) {
  return {Literal::from_doubles(element, shape, values), onnx_data_type_of(element)};
}
inline Operand absent() { return {}; }
using Extents = std::vector<int64_t>;
using Values = std::vector<double>;
inline Operand boolean(const Extents& s, const Values& v) {
  return operand(ElementType::boolean, s, v);
}
inline Operand u8(const Extents& s, const Values& v) { return operand(ElementType::u8, s, v); }
inline Operand i8(const Extents& s, const Values& v) { return operand(ElementType::i8, s, v); }
inline Operand i16(const Extents& s, const Values& v) { return operand(ElementType::i16, s, v); }
inline Operand i32(const Extents& s, const Values& v) { return operand(ElementType::i32, s, v); }
inline Operand i64(const Extents& s, const Values& v) { return operand(ElementType::i64, s, v); }
inline Operand f32(const Extents& s, const Values& v) { return operand(ElementType::f32, s, v); }

/// Results that are equal but for single precision.
inline testing::Matcher<Values> near(const Values& expected) {
  return testing::Pointwise(testing::FloatNear(1e-6f),
                            std::vector<float>(expected.begin(), expected.end()));
}

inline constexpr auto real = ModelBuilder::real;

/// A model of one node, whose inputs are those operands that are there.
inline ModelBuilder model_of(const std::string& op, const std::vector<Operand>& operands,
                             const std::vector<OnnxAttribute>& attributes = {},
                             const std::string& domain = "com.microsoft") {
  ModelBuilder m(17);
  m.model().opsets["com.microsoft"] = 1;
  std::vector<std::string> names;
  for (const Operand& o : operands) {
    names.push_back(o.value ? fmt::format("x{}", names.size()) : "");
    if (!o.value) continue;
    std::vector<std::string> shape;
    for (const int64_t extent : o.value->shape()) shape.push_back(std::to_string(extent));
    m.input(names.back(), shape, o.type);
  }
  m.node("n", op, names, {"y"}, attributes).output("y", {"?"}, 0);
  m.model().graph.nodes[0].domain = domain;
  return m;
}

/// The result of a model on the operands.
inline std::vector<double> result_of(const ImportedModel& model,
                                     const std::vector<Operand>& operands) {
  std::vector<Value> values;
  for (const Operand& o : operands) {
    if (o.value) values.push_back(*o.value);
  }
  const Value result = evaluate(model.module, model.module.function("main"), values);
  std::vector<double> y;
  for (int64_t i = 0; i < result.tensor.element_count(); ++i) {
    y.push_back(result.tensor.as_double(i));
  }
  return y;
}

/// The result of one node on the operands.
inline std::vector<double> run(const std::string& op, const std::vector<Operand>& operands,
                               const std::vector<OnnxAttribute>& attributes = {},
                               const std::string& domain = "com.microsoft") {
  const ImportedModel model = model_of(op, operands, attributes, domain).import();
  for (const std::string& note : model.notes) ADD_FAILURE() << note;
  return result_of(model, operands);
}

}  // namespace backcast
