// Expressions translated to instructions. Internal to ir/loop.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "ir/loop/translate.h"

namespace backcast::loop::machine {

class ExprTranslator {
 public:
  ExprTranslator(const Kernel& kernel, const std::map<std::string, MathFunction>& functions,
                 Code& code)
      : kernel_(kernel), functions_(functions), code_(code) {}

  /// The slot of an expression's value, after instructions that compute it.
  int32_t run(const Expr& e);
  /// Values of shared nodes are known until this is called.
  void forget() {
    known_.clear();
    known_order_.clear();
  }

  int32_t new_slots(int32_t count);
  size_t emit(Instruction instruction);
  Instruction& at(size_t index) { return code_.instructions[index]; }
  size_t position() const { return code_.instructions.size(); }
  /// Lets the jump at `from` lead to `to`.
  void jump_to(size_t from, size_t to) {
    at(from).number = static_cast<int64_t>(to) - static_cast<int64_t>(from);
  }
  int32_t constant_slot(const ExprNode& constant);

  void bind(const std::string& name, int32_t slot, Type type) { values_[name] = {slot, type}; }
  struct Place {
    int32_t array = 0;
    Type element;
    const BufferParam* param = nullptr;
  };
  void bind_array(const std::string& name, Place place) { arrays_[name] = place; }
  const Place& place(const std::string& name) const;
  /// The slot of a flat index, every dimension checked.
  int32_t flatten(const std::string& buffer, const std::vector<Expr>& indices);
  void store(const std::string& buffer, int32_t index_slot, const Type& index_type,
             int32_t value_slot, const Type& value_type);

  [[noreturn]] void fail(const std::string& message) const;

 private:
  int32_t run_node(const ExprNode& e);
  int32_t run_operation(const ExprNode& e, Run run);
  int32_t run_load(const ExprNode& e);
  int32_t run_if(const ExprNode& e);
  int32_t run_bitcast(const ExprNode& e);
  int32_t run_shuffle(const ExprNode& e);
  int32_t run_call(const ExprNode& e);
  int32_t load_from(const Place& place, Type type, Type index_type, int32_t index);
  const MathFunction& function(const ExprNode& call);

  struct Value {
    int32_t slot = 0;
    Type type;
  };
  const Kernel& kernel_;
  const std::map<std::string, MathFunction>& functions_;
  Code& code_;
  std::map<std::string, MathFunction> widened_;
  std::unordered_map<std::string, Value> values_;
  std::unordered_map<std::string, Place> arrays_;
  std::map<std::pair<Slot, int32_t>, int32_t> constants_;  // bits and lanes
  std::unordered_map<const ExprNode*, int32_t> known_;
  std::vector<Expr> known_order_;  // keeps them: another node may not take a known one's place
  int call_depth_ = 0;
};

}  // namespace backcast::loop::machine
