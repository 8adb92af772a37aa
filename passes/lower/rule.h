// How one node becomes one kernel: a rule per core operator writes compute definitions (or loops)
// over the node's operands `a0, a1, …` and results `out0, …`, without any thought of speed.
// Scheduling and fusion work on what rules write and never ask for the operator's name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "ir/loop/program.h"

namespace backcast {

/// The kernel under construction for one node.
class KernelBuilder {
 public:
  KernelBuilder(const Node& node, std::vector<TensorType> operands, std::vector<TensorType> results)
      : node_(node), operands_(std::move(operands)), results_(std::move(results)) {}

  const Node& node() const { return node_; }
  template <class T>
  const T& attrs() const {
    return node_.attrs.as<T>();
  }
  int64_t operand_count() const { return static_cast<int64_t>(operands_.size()); }
  const TensorType& operand(int64_t i) const { return operands_[static_cast<size_t>(i)]; }
  const TensorType& result(int64_t i = 0) const { return results_[static_cast<size_t>(i)]; }

  /// Axes `i0, i1, …` (or another letter) over a shape, and their variables.
  static std::vector<loop::Axis> axes(const Shape& shape, const std::string& letter = "i");
  static std::vector<loop::Expr> vars(const std::vector<loop::Axis>& axes);

  /// Operand i's element, in the type it computes in: f16 and bf16 arrive as f32.
  loop::Expr read(int64_t i, std::vector<loop::Expr> indices) const;
  /// Casts to the stored type of a result (the inverse of what read() does).
  loop::Expr stored(loop::Expr value, int64_t result = 0) const;

  /// out[i…] = f(i…): the whole kernel of an elementwise or data-moving operator.
  void map(const std::function<loop::Expr(const std::vector<loop::Expr>&)>& f);
  void define(loop::Definition definition);
  void statement(loop::Stmt stmt) { statements_.push_back(std::move(stmt)); }
  /// The result is operand i's bytes, `offset` elements in: no kernel at all.
  void view(int64_t i, Dim offset = 0);
  /// The result is the operands' bytes one after another: they are computed into their places.
  void join() { joins_ = true; }
  /// A buffer `scratch0`, `scratch1`, … for statements to work in: undefined before and after.
  void add_scratch(TensorType type) { scratch_.push_back(std::move(type)); }
  /// Statements begin by copying operand i, element by element, to the first result, which may lie
  /// where the operand does.
  void begin_with(int64_t i);
  void set_macs(const Dim& macs) { macs_ = macs; }

  // What lower() collects.
  const std::vector<loop::Stmt>& statements() const { return statements_; }
  const std::vector<TensorType>& scratch() const { return scratch_; }
  int64_t begins_with() const { return begins_with_; }
  bool is_view() const { return view_of_ >= 0; }
  bool is_join() const { return joins_; }
  int64_t view_of() const { return view_of_; }
  const Dim& view_offset() const { return view_offset_; }
  const Dim& macs() const { return macs_; }

 private:
  const Node& node_;
  std::vector<TensorType> operands_, results_, scratch_;
  std::vector<loop::Stmt> statements_;
  int64_t view_of_ = -1, begins_with_ = -1;
  bool joins_ = false;
  Dim view_offset_;
  Dim macs_;
};

using LowerRule = void (*)(KernelBuilder&);
/// The rule of an operator; null for those that are structure (parameter, tuple, call, …).
LowerRule find_lower_rule(const OpDef& op);

/// The type arithmetic on an element type happens in: f32 for f16 and bf16, itself otherwise.
loop::Type compute_type(ElementType element);
/// Largest finite (or infinite) starting values of max and min reductions.
loop::Expr lowest(loop::Type type);
loop::Expr highest(loop::Type type);
/// A float function of the math library, or an Op where there is one.
loop::Expr math_call(const std::string& function, std::vector<loop::Expr> args);
/// max/min that propagate NaN, as ONNX and the evaluator have them.
loop::Expr max_nan(loop::Expr a, loop::Expr b);
loop::Expr min_nan(loop::Expr a, loop::Expr b);
/// Conversion with the semantics of the core operator `cast`.
loop::Expr convert(loop::Expr value, loop::Scalar to);

}  // namespace backcast
