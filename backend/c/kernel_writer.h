// One kernel or math function of the loop IR as a C function. Internal to backend/c.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/c/operations.h"
#include "backend/library/abi.h"
#include "ir/loop/program.h"

namespace backcast::c_backend {

/// Where a buffer or an allocation lies.
struct Place {
  std::string name;    // in C
  loop::Type element;  // what an index counts
  /// A register allocation whose indices are all constant: variables name_0, name_1, ….
  bool variables = false;
  bool is_byte_table = false;  // an element for every byte
};

/// Statements of one function under construction: expressions become text, nodes shared within a
/// statement become temporaries.
class FunctionWriter {
 public:
  FunctionWriter(Prelude& prelude, const std::map<std::string, loop::MathFunction>& functions);

  /// The C name of a variable; unique, and none that a type or helper of the file has.
  std::string local(const std::string& name) { return local_of(locals_, name); }
  /// The same of a buffer or allocation, which may share its loop IR name with a variable.
  std::string local_place(const std::string& name) { return local_of(local_places_, name); }
  void bind(const std::string& name, int mask_bits);
  void add_place(const std::string& name, Place place) { places_[name] = std::move(place); }

  /// Counts the uses of nodes of the expressions of one statement; to be called before `expr`.
  void begin_statement(const std::vector<loop::Expr>& exprs);
  Text expr(const loop::Expr& e);
  void line(const std::string& text);
  void open(const std::string& text);  // text {
  void close(const std::string& text = "}");

  void store(const std::string& buffer, const loop::Expr& index, const loop::Expr& value);
  void prefetch(const std::string& buffer, const loop::Expr& index, loop::Cache cache);
  /// A constant index of a buffer whose elements are variables.
  static int64_t variable_index(const loop::Expr& index);
  const Place& place(const std::string& name) const;

  Prelude& prelude() { return prelude_; }
  /// A temporary of its own.
  Text temporary(loop::Type type, const Text& value);
  std::string take_text() { return std::exchange(text_, {}); }
  void put_text(std::string text) { text_ = std::move(text); }
  void indent_more() { ++indent_; }
  void indent_less() { --indent_; }
  /// Math functions called so far.
  const std::set<std::string>& called() const { return called_; }

 private:
  std::string local_of(std::map<std::string, std::string>& names, const std::string& name);
  Text node_text(const loop::Expr& e);
  Text load_text(const loop::ExprNode& node);
  Text converted_load(const loop::ExprNode& node);
  Text if_text(const loop::ExprNode& node);
  Text binary_of(const loop::ExprNode& node);
  Text scaled_sum(const loop::Expr& a, const loop::Expr& b, const loop::Expr& sum);
  Text neon_sum(const loop::ExprNode& product, const loop::Expr& sum);
  /// All lanes of a product of bytes, added up by one instruction.
  bool is_summed(const loop::ExprNode& node) const;
  Text summed_product(const loop::ExprNode& node, const Text& sum);
  Text call_text(const loop::ExprNode& node);
  Text name_of(const loop::Expr& e);  // a temporary unless the text is one
  std::vector<std::string> lane_indices(const loop::Expr& index);
  void forget_since(size_t count);

  Prelude& prelude_;
  const std::map<std::string, loop::MathFunction>& functions_;
  std::string text_;
  int indent_ = 1;
  Identifiers names_;
  std::map<std::string, std::string> locals_, local_places_;
  std::map<std::string, int> mask_bits_;
  std::map<std::string, Place> places_;
  std::unordered_map<const loop::ExprNode*, int> uses_;
  std::unordered_map<const loop::ExprNode*, Text> known_;
  std::vector<const loop::ExprNode*> order_;  // of insertion into known_
  int temporaries_ = 0;
  std::set<std::string> called_;
};

/// How a kernel's parameters may overlap in the program's calls.
struct KernelUse {
  std::set<std::string> restricted;  // parameters that say that they overlap no other
  std::set<std::string> overlaid;    // parameters that overlap one of another element type
};

struct KernelText {
  std::string function;  // "kernel_conv1"
  std::string definition;
  int64_t stack_bytes = 0;       // of its allocations
  std::set<std::string> called;  // math functions
};
KernelText kernel_text(Prelude& prelude, const loop::Kernel& kernel, const std::string& function,
                       const KernelUse& use,
                       const std::map<std::string, loop::MathFunction>& functions);

/// "math_exp_f32x8" of "exp.f32x8".
std::string math_name(const std::string& function);
/// A static inline function; the ones it calls are in `called`.
KernelText math_text(Prelude& prelude, const loop::MathFunction& function,
                     const std::map<std::string, loop::MathFunction>& functions);

/// Breaks lines longer than 100 columns at spaces, outside of strings.
std::string wrap_lines(const std::string& text);

}  // namespace backcast::c_backend
