// What an import rule sees of its ONNX node: inputs as values or as known integers, attributes,
// declared output types, and the emitter. A rule ends by setting the outputs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/emitter.h"
#include "frontend/import.h"
#include "frontend/index_values.h"
#include "frontend/onnx_model.h"

namespace backcast {

/// What rules tell about training, and what they need for it.
struct TrainingImport {
  ImportMode mode = ImportMode::as_written;
  /// The random generator's key and the number of the step, in training, or else the seed, which
  /// the caller gives: values of `builder`. Valid where something is drawn.
  ValueId generator, step, seed;
  const Builder* builder = nullptr;
  int64_t draws = 0;
  /// Initializers that are running statistics, and in training their new values.
  std::map<std::string, ValueId> statistics;
  /// Initializers that belong to the format of quantised tensors, and the nodes that round.
  std::set<std::string> scales;
  std::vector<std::string> rounding;
};

/// What the graph importer offers to every node.
struct ImportServices {
  Module& module;
  Builder& builder;
  IndexValues& known;
  /// The declared shape of a value, when the file states it completely.
  std::function<std::optional<Shape>(const std::string&)> declared_shape;
  /// Whether a constant has elements of 4 bits in the file.
  std::function<bool(const std::string&)> is_narrow;
  /// Whether anything reads a value of this name.
  std::function<bool(const std::string&)> is_used;
  /// A literal of a tensor attribute.
  std::function<Literal(const OnnxTensor&)> literal;
  /// Names of composite bodies by signature.
  std::map<std::string, std::string>& composites;
  TrainingImport& training;
  std::vector<std::string>& notes;
};

/// The first `count` (an i64 scalar) positions along an axis; a new symbol, named after `wish`,
/// stands for how many these are.
ValueId measured_prefix(Module& module, const Emitter& e, const std::string& wish, ValueId x,
                        ValueId count, int64_t axis);

class NodeContext {
 public:
  NodeContext(ImportServices& services, const OnnxNode& node, Loc loc, int64_t opset,
              std::vector<ValueId> inputs);

  const std::string& op_type() const { return node_.op_type; }
  int64_t opset() const { return opset_; }
  const Loc& loc() const { return loc_; }
  Emitter e;  // the rules' work horse, hence the short name

  /// Throws CompileError with the node's location.
  [[noreturn]] void fail(const std::string& message) const;

  /// Tells the user, once, of what is no error.
  void note(const std::string& message);

  // Inputs.
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].valid(); }
  ValueId input(size_t i) const;  // CompileError when absent
  std::vector<ValueId> all_inputs() const;
  TensorType type(size_t i) const { return e.type(input(i)); }
  Shape shape(size_t i) const { return type(i).shape; }
  int64_t rank(size_t i) const { return type(i).rank(); }
  ElementType element(size_t i) const { return type(i).element; }
  const std::string& input_name(size_t i) const { return node_.inputs[i]; }
  /// Whether input i is a constant whose elements were widened from 4 bits.
  bool is_narrow(size_t i) const { return services_.is_narrow(input_name(i)); }

  /// The elements of an integer input when import can tell them.
  std::optional<Dims> known_dims(size_t i) const;
  std::optional<Ints> known_ints(size_t i) const;
  std::optional<Literal> known_literal(size_t i) const { return services_.known.literal(input(i)); }
  std::optional<Ints> known_ints_of(ValueId id) const;
  std::optional<Literal> known_literal_of(ValueId id) const { return services_.known.literal(id); }
  /// The same, or a CompileError that asks for a constant.
  Dims dims(size_t i) const;
  Ints ints(size_t i) const;
  /// The one element of an integer input, or a CompileError.
  Dim dim(size_t i) const;
  /// The one element of an integer input as a number, or a CompileError.
  int64_t index(size_t i) const;
  /// The elements of an input that is a sequence, or a CompileError.
  std::vector<ValueId> elements(size_t i);
  /// The value when it is one number, known at import time.
  std::optional<double> known_number(size_t i) const;
  const SymbolRanges& ranges() const { return services_.module.symbols; }

  // Attributes; their kinds have been checked against the rule's table row.
  bool has_attr(std::string_view name) const { return find(name) != nullptr; }
  int64_t attr_int(std::string_view name, int64_t fallback) const;
  double attr_float(std::string_view name, double fallback) const;
  std::string attr_string(std::string_view name, std::string_view fallback) const;
  std::optional<Ints> attr_ints(std::string_view name) const;
  std::vector<float> attr_floats(std::string_view name) const;
  std::optional<Literal> attr_tensor(std::string_view name) const;
  const OnnxAttribute* find(std::string_view name) const;
  /// An ONNX data type attribute as an element type; CompileError for unsupported ones.
  ElementType attr_element(std::string_view name, ElementType fallback) const;

  /// `axis` in 0..rank-1; negative values count from the end. CompileError when out of range.
  int64_t axis(int64_t axis, int64_t rank) const;
  Ints axes(const Ints& axes, int64_t rank) const;  // sorted, without duplicates
  int64_t attr_axis(std::string_view name, int64_t fallback, int64_t rank) const;

  // Outputs.
  size_t output_count() const { return node_.outputs.size(); }
  bool wants(size_t k) const { return k < node_.outputs.size() && !node_.outputs[k].empty(); }
  /// Whether somebody does more with output k than name it.
  bool uses(size_t k) const { return wants(k) && services_.is_used(node_.outputs[k]); }
  void set(size_t k, ValueId value);
  void result(ValueId value) { set(0, value); }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  /// The shape that the file declares for output k, all extents known.
  std::optional<Shape> declared(size_t k) const;

  TrainingImport& training() { return services_.training; }
  /// The initializer that input i is, also by way of Identity nodes; empty when it is none.
  std::string initializer(size_t i) const;

  /// measured_prefix, named after the node's first output.
  ValueId prefix(ValueId x, ValueId count, int64_t axis);

  /// Adds a function made of core operators: the body of a loop. Its name begins with `name`.
  FunctionRef function(const std::string& name, const std::vector<Type>& params,
                       const std::function<ValueId(Emitter&, const std::vector<ValueId>&)>& body);
  /// The body of a scan of these operands, values of `around`: it takes the carries, a row of each
  /// of the xs, and what is the same for all trips.
  FunctionRef scan_body(const Emitter& around, const std::vector<ValueId>& operands,
                        const ScanAttrs& attrs,
                        const std::function<ValueId(Emitter&, const std::vector<ValueId>&)>& body);
  /// Applies a function made of core operators that lowering may recognise by `name`. `variant`
  /// tells apart bodies of one name on equal operand types.
  ValueId composite(const std::string& name, const std::string& variant,
                    const std::vector<ValueId>& operands,
                    const std::function<ValueId(Emitter&, const std::vector<ValueId>&)>& body);

 private:
  ImportServices& services_;
  const OnnxNode& node_;
  Loc loc_;
  int64_t opset_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
};

}  // namespace backcast
