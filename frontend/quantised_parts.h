// What a quantised file is made of: tensors of integers with their scales, the nodes between floats
// and them, and names that are new.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/graph_edit.h"
#include "frontend/graph_names.h"
#include "frontend/onnx_model.h"
#include "ir/graph/literal.h"

namespace backcast {

/// x = scale · (q - zero) for q in i8.
struct ValueFormat {
  double scale = 1;
  int64_t zero = 0;
};

/// A format whose numbers are initializers of these names.
struct NamedFormat {
  std::string scale, zero;
  ValueFormat numbers;
};

/// Numbers of a tensor and which of its channels each belongs to.
struct Channels {
  std::vector<int64_t> shape;
  std::optional<size_t> axis;
  std::vector<double> values;

  size_t count() const { return axis ? static_cast<size_t>(shape[*axis]) : 1; }
  size_t of(size_t i) const;
  /// What makes the largest number of each channel one of the weights' integers.
  std::vector<double> scales() const;
};

/// As files have them: in f32, 1 for 0.
std::vector<double> rounded_scales(std::vector<double> scales);

/// Values by name.
using ComputedConstants = std::map<std::string, Literal>;

class QuantisedParts {
 public:
  /// `computed`: what nodes make of the model's constants alone.
  QuantisedParts(const OnnxModel& model, const ComputedConstants& computed,
                 const std::filesystem::path& model_dir);

  int64_t opset() const { return opset_; }
  std::string free(const std::string& name) { return free_name(name, taken_); }

  /// New initializers: their names.
  std::string add(const std::string& name, Literal value);
  std::string add_floats(const std::string& name, const std::vector<int64_t>& shape,
                         const std::vector<double>& values);
  std::string add_ints(const std::string& name, const std::vector<int64_t>& values);

  /// Whether it is a constant in f32.
  bool is_float(const std::string& name) const;
  Channels read(const std::string& name) const;

  /// The name of integers, and of scales for each channel.
  struct Integers {
    std::string name;
    NamedFormat format;
  };
  Integers integers(const std::string& name, ElementType element, const Channels& tensor,
                    const std::vector<double>& scales);
  /// The result of a DequantizeLinear of such, in front of all nodes.
  std::string decoded(const std::string& name, ElementType element, const Channels& tensor,
                      const std::vector<double>& scales);

  /// QuantizeLinear or DequantizeLinear.
  OnnxNode linear(const std::string& op_type, const std::string& from, const NamedFormat& format,
                  const std::string& to, std::optional<size_t> axis = {});
  void insert(std::optional<size_t> behind, OnnxNode node);

  GraphEdit edit;

 private:
  const std::filesystem::path& model_dir_;
  const ComputedConstants& computed_;
  const std::map<std::string, const OnnxTensor*> constants_;
  std::set<std::string> taken_;
  std::string domain_;
  int64_t opset_ = 0;
};

}  // namespace backcast
