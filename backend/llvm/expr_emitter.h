// Internal to backend/llvm: expressions of one LLVM function.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/llvm/operations.h"
#include "ir/loop/stmt.h"

namespace backcast::llvm_backend {

/// Where a buffer or an allocation lies.
struct Place {
  llvm::Value* pointer = nullptr;
  loop::Type element;  // what an index counts
  /// A register allocation whose indices are all constants: one variable per element.
  std::vector<llvm::Value*> variables;
  bool is_byte_table = false;  // an element for every byte
};

/// What names mean at a point of a function. Names are unique in a kernel, so nothing is shadowed;
/// an unrolled body rebinds its own.
struct Environment {
  std::map<std::string, llvm::Value*> values;
  std::map<std::string, Place> places;
  std::set<std::string> naturals;  // of the values: integers that are never negative
};

/// Whether an index is never negative, as its form tells.
bool is_natural(const loop::Expr& expr, const Environment& environment);

/// The LLVM function of a math function on so many lanes.
using FunctionLookup = std::function<llvm::Function*(const std::string& name, int32_t lanes)>;

class ExprEmitter {
 public:
  ExprEmitter(Builder& builder, const Types& types, const Environment& environment,
              FunctionLookup functions)
      : builder_(builder),
        types_(types),
        environment_(environment),
        functions_(std::move(functions)) {}

  /// Nodes shared by several parents are computed once until forget() is called.
  llvm::Value* emit(const loop::Expr& expr);
  /// To be called when memory or names have changed.
  void forget() {
    known_.clear();
    order_.clear();
  }

  void emit_prefetch(const std::string& buffer, const loop::Expr& index, loop::Cache cache);
  void emit_store(const std::string& buffer, const loop::Expr& index, const loop::Expr& value);

 private:
  llvm::Value* emit_node(const loop::ExprNode& node);
  llvm::Value* emit_load(const loop::ExprNode& node);
  llvm::Value* emit_if(const loop::ExprNode& node);
  llvm::Value* emit_call(const loop::ExprNode& node);
  llvm::Value* emit_ramp(const loop::ExprNode& node);
  const Place& place(const std::string& name) const;
  /// An index in two parts: addresses that differ by constants share their computation and become
  /// immediate offsets.
  struct Index {
    llvm::Value* terms = nullptr;
    int64_t offset = 0;
    bool is_natural = false;  // neither part is ever negative; found out where that is of use
  };
  /// The address of an element (in units of `place.element`) for a value of this type.
  llvm::Value* address(const Place& place, loop::Type value, const Index& index);
  Index emit_index(const loop::Expr& index);
  /// The variable behind a constant index, or null when the place is an array.
  static llvm::Value* variable(const Place& place, const loop::Expr& index);
  /// Element indices of a gather or scatter, lane by lane.
  std::vector<llvm::Value*> lane_indices(const loop::Expr& index);
  /// The address of the first lane when lanes follow each other in memory; else null.
  llvm::Value* contiguous_address(const Place& place, loop::Type value, const loop::Expr& index);
  llvm::Align alignment(loop::Type value) const;

  Builder& builder_;
  const Types& types_;
  const Environment& environment_;
  FunctionLookup functions_;
  std::unordered_map<const loop::ExprNode*, llvm::Value*> known_;
  std::vector<const loop::ExprNode*> order_;  // of insertion into known_
};

}  // namespace backcast::llvm_backend
