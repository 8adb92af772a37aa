// Builds one function node by node; infers every type as it goes and refuses a node without a
// location.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace backcast {

class Builder {
 public:
  /// `module` supplies the functions that calls refer to; it must outlive the builder.
  Builder(const Module& module, std::string function_name);

  /// Location of the nodes that follow.
  void set_loc(Loc loc) { loc_ = std::move(loc); }
  const Loc& loc() const { return loc_; }

  /// Parameters come before every other node. Without a location they get one of their own name.
  ValueId parameter(const std::string& name, Type type);
  /// Infers the type. CompileError (with the current location) when the operands do not fit.
  /// Empty attributes stand for the operator's default ones.
  ValueId emit(const OpDef& op, std::vector<ValueId> operands, Attrs attrs = {});
  ValueId constant(Literal value);
  ValueId scalar(ElementType element, double value);  // rank 0

  const Type& type(ValueId id) const { return function_.type(id); }
  const TensorType& tensor_type(ValueId id) const { return type(id).tensor(); }
  const Node& node(ValueId id) const { return function_.node(id); }
  const Module& module() const { return module_; }

  Function finish(ValueId result, std::vector<std::string> result_names = {});

 private:
  const Module& module_;
  Function function_;
  Loc loc_;
};

/// Gives the builder parameters like those of `function` (name, type, location), in order.
std::vector<ValueId> copy_parameters(Builder& builder, const Function& function);

/// Copies `function` node by node through a mapping old id → new id. The parameters are copied and
/// mapped from the start; `from` must outlive the rewriter.
class Rewriter {
 public:
  Rewriter(const Module& module, const Function& from);

  Builder& builder() { return builder_; }
  /// The new value of an already mapped old value.
  ValueId operator[](ValueId old) const;
  bool mapped(ValueId old) const;
  void map(ValueId old, ValueId now);
  /// Emits a copy of an old node (operands mapped, location kept) and maps it; an old value that is
  /// already mapped stays as it is. The builder's current location is left alone.
  ValueId copy(ValueId old);
  /// The same with everything that the value needs and that is still unmapped.
  ValueId copy_all(ValueId old);
  /// Copies what is still unmapped among the values that the result needs and finishes.
  Function finish();

 private:
  void copy_symbols(const Node& node);

  const Function& from_;
  Builder builder_;
  std::vector<ValueId> now_;
  std::map<std::string, ValueId> measured_;
};

}  // namespace backcast
