// Kernels: names, types, buffers.
#include "ir/loop/verify_kernel.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/graph/error.h"
#include "ir/loop/math_library.h"
#include "ir/loop/text.h"
#include "ir/loop/type_rules.h"

namespace backcast::loop {

void verification_error(std::string_view after, const std::string& place,
                        const std::string& message) {
  const std::string when = after.empty() ? "" : "after " + std::string(after) + ": ";
  throw InternalError(when + place + ": " + message);
}

namespace {

/// Long expressions are cut: the start tells which one it is.
std::string excerpt(const std::string& text) {
  constexpr size_t kMost = 200;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "…";
}

class Checker {
 public:
  Checker(std::string place, const std::map<std::string, MathFunction>& functions,
          std::string_view after)
      : place_(std::move(place)), functions_(functions), after_(after) {}

  void check(const Kernel& kernel) {
    for (const std::string& size : kernel.sizes) bind(size, Type{}, "size");
    std::set<std::string> symbols;
    for (const BufferParam& param : kernel.buffers) {
      add_array(param.name, {{param.element, 1}, &param});
      for (const Dim& extent : param.shape) extent.collect_symbols(symbols);
    }
    for (const std::string& symbol : symbols) {
      if (!values_.contains(symbol)) fail("the size " + symbol + " of a buffer is no parameter");
    }
    for (const BufferParam& param : kernel.buffers) check_over(kernel, param);
    if (!kernel.body) fail("there is no body");
    check(*kernel.body);
  }

  void check(const MathFunction& function) {
    for (const MathFunction::Param& param : function.params) {
      bind(param.name, param.type, "parameter");
    }
    for (const auto& [name, value] : function.lets) {
      check(value);
      bind(name, value.type(), "let");
    }
    check(function.result);
  }

 private:
  struct Array {
    Type element;
    const BufferParam* param = nullptr;
  };

  [[noreturn]] void fail(const std::string& message) const {
    verification_error(after_, place_, message);
  }
  [[noreturn]] void fail(const ExprNode& e, const std::string& message) const {
    fail(message + " in " + excerpt(print(Expr(std::make_shared<const ExprNode>(e)))));
  }
  [[noreturn]] void fail(const StmtNode& s, const std::string& message) const {
    fail(message + " in " + excerpt(print(Stmt(std::make_shared<const StmtNode>(s)))));
  }

  /// Names are unique in a kernel, whether or not they are visible.
  void take_name(const std::string& name, const std::string& what) {
    if (name.empty()) fail("a " + what + " without a name");
    if (!taken_.insert(name).second) fail("a second " + name + " (" + what + ")");
  }
  void bind(const std::string& name, Type type, const std::string& what) {
    take_name(name, what);
    values_[name] = type;
    seen_.clear();
  }
  void add_array(const std::string& name, Array array) {
    take_name(name, "buffer");
    arrays_[name] = array;
    seen_.clear();
  }

  void check_over(const Kernel& kernel, const BufferParam& param) const {
    for (const std::string& name : param.over) {
      const BufferParam* other = kernel.find(name);
      if (other == nullptr || other->mode != AccessMode::read || param.mode == AccessMode::read) {
        fail(param.name + " cannot take over " + name);
      }
    }
  }

  const Array& array(const ExprNode& e) const {
    const auto found = arrays_.find(e.name);
    if (found == arrays_.end()) fail(e, "unknown buffer " + e.name);
    return found->second;
  }

  void check(const Expr& e) {
    if (!e) fail("an expression is missing");
    if (!seen_.insert(e.get()).second) return;
    for (const Expr& arg : e->args) check(arg);
    const std::string mistake = type_mistake(*e);
    if (!mistake.empty()) fail(*e, mistake);
    check_names(*e);
  }

  void check_names(const ExprNode& e) const {
    switch (e.kind) {
      case ExprKind::var: {
        const auto found = values_.find(e.name);
        if (found == values_.end()) fail(e, "unbound variable");
        if (found->second != e.type) {
          fail(e, e.name + " is " + found->second.to_string() + ", not " + e.type.to_string());
        }
        return;
      }
      case ExprKind::access: {
        const Array& from = array(e);
        if (!in_definition_) fail(e, "an access outside of a definition");
        if (from.param == nullptr) fail(e, "an access of an allocation");
        check_rank(e, *from.param, e.args.size());
        if (from.element.scalar != e.type.scalar) fail(e, "another element type");
        return;
      }
      case ExprKind::load:
        return check_element(e, array(e), e.type, e.args[0].type());
      case ExprKind::call:
        return check_call(e);
      default:
        return;
    }
  }

  template <class Node>
  void check_rank(const Node& node, const BufferParam& param, size_t indices) const {
    if (indices != param.shape.size()) {
      fail(node, fmt::format("{} indices for the {} dimensions of {}", indices, param.shape.size(),
                             param.name));
    }
  }

  template <class Node>
  void check_element(const Node& node, const Array& array, Type value, Type index) const {
    const bool fits = array.element.is_vector() ? value == array.element && !index.is_vector()
                                                : value.scalar == array.element.scalar;
    if (!fits) {
      fail(node,
           "a value of type " + value.to_string() + " in an array of " + array.element.to_string());
    }
  }

  void check_call(const ExprNode& e) const {
    const MathFunction* callee = nullptr;
    for (const std::string& name : {called_name(e), e.name}) {
      const auto own = functions_.find(name);
      if (callee == nullptr && own != functions_.end()) callee = &own->second;
    }
    std::string scalar = e.name;
    const std::string suffix = "x" + std::to_string(e.type.lanes);
    if (e.type.lanes > 1 && scalar.ends_with(suffix)) scalar.resize(scalar.size() - suffix.size());
    const auto library = math_library(false).find(scalar);
    if (callee == nullptr && library != math_library(false).end()) callee = &library->second;
    if (callee == nullptr) fail(e, "unknown function " + e.name);
    if (callee->params.size() != e.args.size()) fail(e, "another number of arguments");
    for (size_t i = 0; i < e.args.size(); ++i) {
      if (callee->params[i].type.scalar != e.args[i].type().scalar) fail(e, "an argument's type");
    }
    if (callee->result.type().scalar != e.type.scalar) fail(e, "another result type");
  }

  void check_type(const StmtNode& s, size_t i, Type type) {
    check(s.exprs.at(i));
    if (s.exprs[i].type() != type) fail(s, "expected " + type.to_string());
  }

  void check(const StmtNode& s) {
    switch (s.kind) {
      case StmtKind::block:
        return check_block(s);
      case StmtKind::let:
        check(s.exprs.at(0));
        if (s.type != s.exprs[0].type()) fail(s, "another type than its value's");
        bind(s.name, s.type, "let");
        return;
      case StmtKind::for_loop:
        check_type(s, 0, Type{});
        check_type(s, 1, Type{});
        bind(s.name, Type{}, "loop");
        check_bodies(s, 1, 1);
        values_.erase(s.name);
        seen_.clear();
        return;
      case StmtKind::while_loop:
        check_type(s, 0, {Scalar::boolean, 1});
        return check_bodies(s, 1, 1);
      case StmtKind::if_branch:
        check_type(s, 0, {Scalar::boolean, 1});
        return check_bodies(s, 1, 2);
      case StmtKind::store:
        return check_store(s);
      case StmtKind::alloc:
        check_type(s, 0, Type{});
        return add_array(s.name, {s.type, nullptr});
      case StmtKind::prefetch:
        check_type(s, 0, Type{});
        if (!arrays_.contains(s.name)) fail(s, "unknown buffer " + s.name);
        return;
      case StmtKind::define:
        if (!s.definition) fail("a definition is missing");
        return check_definition(*s.definition, s);
    }
  }

  void check_bodies(const StmtNode& s, size_t least, size_t most) {
    if (s.body.size() < least || s.body.size() > most) fail(s, "wrong number of bodies");
    for (const Stmt& body : s.body) {
      if (!body) fail("a body is missing");
      // What stands alone has its names to itself.
      check_block({.body = {body}});
    }
  }

  void check_block(const StmtNode& s) {
    std::vector<const StmtNode*> bound;
    for (const Stmt& child : s.body) {
      if (!child) fail("a statement is missing");
      check(*child);
      if (child->kind == StmtKind::let || child->kind == StmtKind::alloc) {
        bound.push_back(child.get());
      }
    }
    for (const StmtNode* child : bound) {
      values_.erase(child->name);
      arrays_.erase(child->name);
    }
    if (!bound.empty()) seen_.clear();
  }

  void check_store(const StmtNode& s) {
    check(s.exprs.at(0));
    check(s.exprs.at(1));
    const Type at = s.exprs[0].type();
    const Type value = s.exprs[1].type();
    const auto found = arrays_.find(s.name);
    if (found == arrays_.end()) fail(s, "unknown buffer " + s.name);
    if (at.scalar != Scalar::index || (at.lanes != 1 && at.lanes != value.lanes)) {
      fail(s, "an index of type " + at.to_string());
    }
    const BufferParam* param = found->second.param;
    if (param != nullptr && param->mode == AccessMode::read) fail(s, s.name + " is only read");
    check_element(s, found->second, value, at);
  }

  /// Axes and accumulators are the definition's own: others may use the names again.
  void bind_own(const std::string& name, Type type, std::vector<std::string>& own) {
    if (values_.contains(name) || arrays_.contains(name)) fail("a second " + name + " (axis)");
    values_[name] = type;
    own.push_back(name);
  }

  void check_axes(const std::vector<Axis>& axes, const StmtNode& s, std::vector<std::string>& own) {
    for (const Axis& axis : axes) {
      check(axis.extent);
      if (axis.extent.type() != Type{})
        fail(s, "an extent of type " + axis.extent.type().to_string());
      bind_own(axis.name, Type{}, own);
    }
  }

  void check_definition(const Definition& d, const StmtNode& s) {
    std::vector<std::string> own;
    in_definition_ = true;
    seen_.clear();
    check_axes(d.axes, s, own);
    for (const Accumulator& acc : d.accumulators) check(acc.init);
    std::vector<std::string> reduced;
    check_axes(d.reduce_axes, s, reduced);
    if (!d.reduce_axes.empty() && d.accumulators.empty()) fail(s, "a reduction of nothing");
    for (const Accumulator& acc : d.accumulators) bind_own(acc.name, acc.type, own);
    for (const Accumulator& acc : d.accumulators) {
      check(acc.value);
      if (acc.value.type() != acc.type || acc.init.type() != acc.type) {
        fail(s, "accumulator " + acc.name + " differs from its values in type");
      }
    }
    for (const std::string& name : reduced) values_.erase(name);
    seen_.clear();
    for (const DefinitionOutput& out : d.outputs) check_output(out, s);
    for (const std::string& name : own) values_.erase(name);
    seen_.clear();
    in_definition_ = false;
  }

  void check_output(const DefinitionOutput& out, const StmtNode& s) {
    const auto found = arrays_.find(out.buffer);
    if (found == arrays_.end() || found->second.param == nullptr) {
      fail(s, "unknown buffer " + out.buffer);
    }
    const BufferParam& param = *found->second.param;
    if (param.mode == AccessMode::read) fail(s, out.buffer + " is only read");
    check_rank(s, param, out.indices.size());
    for (const Expr& index : out.indices) {
      check(index);
      if (index.type() != Type{}) fail(s, "an index of type " + index.type().to_string());
    }
    check(out.value);
    if (out.value.type() != Type{param.element, 1}) fail(s, "another type for " + out.buffer);
  }

  std::string place_;
  const std::map<std::string, MathFunction>& functions_;
  std::string_view after_;
  std::unordered_map<std::string, Type> values_;
  std::unordered_map<std::string, Array> arrays_;
  std::unordered_set<std::string> taken_;
  std::unordered_set<const ExprNode*> seen_;  // checked under the present bindings
  bool in_definition_ = false;
};

}  // namespace

void verify_kernel(const Kernel& kernel, const std::map<std::string, MathFunction>& functions,
                   std::string_view after) {
  Checker("kernel " + kernel.name, functions, after).check(kernel);
}

void verify_function(const MathFunction& function,
                     const std::map<std::string, MathFunction>& functions, std::string_view after) {
  Checker("function " + function.name, functions, after).check(function);
}

}  // namespace backcast::loop
