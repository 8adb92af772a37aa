// Builds ONNX models in memory for tests.
#pragma once

#include <string>
#include <vector>

#include "frontend/graph_importer.h"
#include "frontend/onnx_model.h"

namespace backcast {

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17) { model_.opsets[""] = opset; }

  /// An extent is a number, "?" when it is unknown, or else a symbol or an expression.
  ModelBuilder& input(const std::string& name, const std::vector<std::string>& shape,
                      int64_t type = onnx_type::kFloat) {
    model_.graph.inputs.push_back(value(name, shape, type));
    return *this;
  }
  ModelBuilder& output(const std::string& name, const std::vector<std::string>& shape = {"?"},
                       int64_t type = onnx_type::kFloat) {
    model_.graph.outputs.push_back(value(name, shape, type));
    return *this;
  }
  ModelBuilder& ints(const std::string& name, const std::vector<int64_t>& values) {
    OnnxTensor tensor;
    tensor.name = name;
    tensor.data_type = onnx_type::kInt64;
    tensor.dims = {static_cast<int64_t>(values.size())};
    auto held = std::make_shared<std::vector<int64_t>>(values);
    tensor.int64_data = *held;
    tensor.owner = held;
    model_.graph.initializers.push_back(tensor);
    return *this;
  }
  ModelBuilder& node(const std::string& name, const std::string& op,
                     const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs,
                     const std::vector<OnnxAttribute>& attributes = {}) {
    model_.graph.nodes.push_back({name, op, "", inputs, outputs, attributes});
    return *this;
  }

  OnnxModel& model() { return model_; }
  ImportedModel import(const ImportOptions& options = {}) const {
    return GraphImporter(model_, "", options).run();
  }

  static OnnxAttribute integer(const std::string& name, int64_t value) {
    OnnxAttribute a = attribute(name, OnnxAttribute::Kind::integer);
    a.i = value;
    return a;
  }
  static OnnxAttribute real(const std::string& name, float value) {
    OnnxAttribute a = attribute(name, OnnxAttribute::Kind::real);
    a.f = value;
    return a;
  }
  static OnnxAttribute integers(const std::string& name, const std::vector<int64_t>& values) {
    OnnxAttribute a = attribute(name, OnnxAttribute::Kind::integers);
    a.ints = values;
    return a;
  }
  /// A graph in an attribute, made of a model's.
  static OnnxAttribute body(const std::string& name, const ModelBuilder& of) {
    OnnxAttribute a = attribute(name, OnnxAttribute::Kind::graph);
    OnnxGraph graph = of.model_.graph;
    graph.name = name;
    a.g = std::make_shared<OnnxGraph>(std::move(graph));
    return a;
  }
  static OnnxAttribute string(const std::string& name, const std::string& value) {
    OnnxAttribute a = attribute(name, OnnxAttribute::Kind::string);
    a.s = value;
    return a;
  }

 private:
  static OnnxAttribute attribute(const std::string& name, OnnxAttribute::Kind kind) {
    OnnxAttribute a;
    a.name = name;
    a.kind = kind;
    return a;
  }
  static OnnxValueInfo value(const std::string& name, const std::vector<std::string>& shape,
                             int64_t type) {
    OnnxValueInfo info;
    info.name = name;
    info.kind = OnnxValueInfo::Kind::tensor;
    info.element_type = type;
    info.shape.emplace();
    for (const std::string& extent : shape) {
      OnnxDim dim;
      if (extent.find_first_not_of("0123456789") == std::string::npos) {
        dim.value = std::stoll(extent);
      } else if (extent != "?") {
        dim.symbol = extent;
      }
      info.shape->push_back(dim);
    }
    return info;
  }

  OnnxModel model_;
};

/// What the import says against a model; empty when it is taken.
inline std::string complaint_of(const ModelBuilder& model, const ImportOptions& options = {}) {
  try {
    static_cast<void>(model.import(options));
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace backcast
