// Modules as text. Generic over operators: a node prints the attributes that differ from its
// operator's default ones.
#include <set>

#include "ir/graph/element_text.h"
#include "ir/graph/error.h"
#include "ir/graph/scanner.h"
#include "ir/graph/text.h"

namespace backcast {
namespace {

std::string word_or_quoted(std::string_view text) {
  return is_word(text) ? std::string(text) : quote(text);
}

bool is_inline(const Literal& literal, const PrintOptions& options) {
  return literal.element_count() <= options.max_inline_elements;
}

std::string literal_text(const Literal& literal, const PrintOptions& options) {
  std::string text = to_string(literal.type());
  if (!is_inline(literal, options)) return text + fmt::format(" #{:016x}", literal.hash());
  if (literal.shape().empty()) return text + " " + element_text(literal, 0);
  text += " [";
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    if (i > 0) text += ",";
    text += element_text(literal, i);
  }
  return text + "]";
}

std::string integers_text(const std::vector<int64_t>& values) {
  return to_string(Shape(values.begin(), values.end()));
}

std::string value_text(const AttrValue& value, const PrintOptions& options) {
  struct Visitor {
    const PrintOptions& options;
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return double_text(v); }
    std::string operator()(const std::string& v) const { return word_or_quoted(v); }
    std::string operator()(ElementType v) const { return std::string(name_of(v)); }
    std::string operator()(const FunctionRef& v) const { return "@" + word_or_quoted(v.name); }
    std::string operator()(const std::vector<int64_t>& v) const { return integers_text(v); }
    std::string operator()(const Dims& v) const { return to_string(v); }
    std::string operator()(const Dim& v) const { return v.to_string(); }
    std::string operator()(const Literal& v) const { return literal_text(v, options); }
  };
  return std::visit(Visitor{options}, value);
}

std::string attributes_text(const Node& node, const PrintOptions& options) {
  const std::vector<AttrField> fields = node.attrs.fields();
  const std::vector<AttrField> defaults = node.op->default_attrs.fields();
  std::string text;
  for (size_t i = 0; i < fields.size(); ++i) {
    // A literal always shows: its default has no bytes.
    const bool as_default = i < defaults.size() &&
                            !std::holds_alternative<Literal>(fields[i].value) &&
                            same_value(fields[i].value, defaults[i].value);
    if (as_default) continue;
    text += text.empty() ? " {" : ", ";
    text += fields[i].name + "=" + value_text(fields[i].value, options);
  }
  return text.empty() ? text : text + "}";
}

std::string location_text(const Loc& loc, const PrintOptions& options) {
  static constexpr std::string_view kOrigins[] = {"imported", "adjoint_of", "fused_from", "made"};
  if (!options.locations || loc.empty()) return "";
  std::string text = " loc(" + quote(loc.node);
  const bool imported = loc.origin == Origin::imported;
  if (!loc.op_type.empty() || !imported) text += ", " + quote(loc.op_type);
  if (!imported) text += ", " + std::string(kOrigins[static_cast<size_t>(loc.origin)]);
  return text + ")";
}

/// How each value is called: parameters by their own names where those are words and unique, other
/// nodes by their number.
class ValueNames {
 public:
  explicit ValueNames(const Function& function) : names_(function.nodes.size()) {
    std::set<std::string> taken;
    for (size_t i = 0; i < function.params.size(); ++i) {
      const size_t index = static_cast<size_t>(function.params[i].index);
      const std::string own = parameter_name(function.nodes[index]);
      params_.push_back(own);
      if (is_word(own) && taken.insert(own).second) names_[index] = own;
    }
    int64_t number = 0;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!names_[i].empty()) continue;
      if (!is_parameter(function.nodes[i])) {
        names_[i] = std::to_string(number++);
        continue;
      }
      std::string name = fmt::format("arg{}", i);
      while (!taken.insert(name).second) name += "_";
      names_[i] = name;
    }
  }

  std::string operator[](ValueId id) const {
    const bool known = id.valid() && static_cast<size_t>(id.index) < names_.size();
    return known ? "%" + names_[static_cast<size_t>(id.index)] : "%?";
  }

  /// `%x`, or `%arg0 "any name"`.
  std::string parameter(const Function& function, size_t i) const {
    const std::string name = (*this)[function.params[i]];
    return name == "%" + params_[i] ? name : name + " " + quote(params_[i]);
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::string> params_;
};

std::string head_text(const Function& function, const ValueNames& names,
                      const PrintOptions& options) {
  std::string text = "func @" + word_or_quoted(function.name) + "(";
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Node& node = function.node(function.params[i]);
    if (i > 0) text += ", ";
    text += names.parameter(function, i) + ": " + node.type.to_string() +
            (node.loc == parameter_loc(parameter_name(node), static_cast<int64_t>(i))
                 ? ""
                 : location_text(node.loc, options));
  }
  text += ") -> " + function.result_type().to_string();
  for (size_t i = 0; i < function.result_names.size(); ++i) {
    text += (i == 0 ? " results(" : ", ") + quote(function.result_names[i]);
  }
  return text + (function.result_names.empty() ? " {\n" : ") {\n");
}

std::string entry_text(const Entry& entry) {
  std::string text = fmt::format("entry {} @{}", quote(entry.name), word_or_quoted(entry.function));
  if (!entry.guard.empty()) text += " guard " + quote(entry.guard);
  for (const auto& [input, range] : entry.ranges) {
    text += fmt::format(" range {} {}..{}", quote(input), range.min, range.max);
    if (range.ignore) text += fmt::format(" ignore {}", *range.ignore);
  }
  for (const std::string& output : entry.optional_outputs) text += " optional " + quote(output);
  return text + "\n";
}

/// Calls f with every literal of the module that is too big to print.
template <class F>
void for_each_big_literal(const Module& module, const PrintOptions& options, F&& f) {
  for (const StateVariable& state : module.states) {
    if (!is_inline(state.initial, options)) f(state.initial);
  }
  for (const auto& [name, function] : module.functions) {
    for (const Node& node : function.nodes) {
      for (const AttrField& field : node.attrs.fields()) {
        const Literal* literal = std::get_if<Literal>(&field.value);
        if (literal && !is_inline(*literal, options)) f(*literal);
      }
    }
  }
}

void append_u64(std::string& bytes, uint64_t value) {
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace

std::string print(const Function& function, const PrintOptions& options) {
  const ValueNames names(function);
  std::string text = head_text(function, names, options);
  for (int64_t i = 0; i < function.size(); ++i) {
    const Node& node = function.node(ValueId(i));
    if (is_parameter(node)) continue;
    text += "  " + names[ValueId(i)] + " = " + std::string(node.op->name);
    for (size_t k = 0; k < node.operands.size(); ++k) {
      text += (k == 0 ? " " : ", ") + names[node.operands[k]];
    }
    text += attributes_text(node, options) + " : " + node.type.to_string() +
            location_text(node.loc, options) + "\n";
  }
  return text + "  return " + names[function.result] + "\n}\n";
}

std::string print(const Module& module, const PrintOptions& options) {
  std::string text;
  if (!options.side_file.empty()) text += "constants " + quote(options.side_file) + "\n";
  for (const auto& [name, range] : module.symbols) {
    text += fmt::format("symbol {} in {}..{}\n", word_or_quoted(name), range.min,
                        range.max == INT64_MAX ? "" : std::to_string(range.max));
  }
  if (module.batch > 0) text += fmt::format("batch {}\n", module.batch);
  if (module.accumulate > 0) text += fmt::format("accumulate {}\n", module.accumulate);
  for (const StateVariable& state : module.states) {
    std::string slice;
    if (state.slice_axis >= 0) {
      slice = fmt::format(" slice {} {}", state.slice_axis, state.slice_start);
    }
    text += fmt::format("state {} {}{} = {}{}\n", quote(state.name), enum_name(state.role), slice,
                        literal_text(state.initial, options), location_text(state.loc, options));
  }
  for (const Entry& entry : module.entries) text += entry_text(entry);
  for (const auto& [name, function] : module.functions) {
    if (!text.empty()) text += "\n";
    text += print(function, options);
  }
  return text;
}

std::string print_constants(const Module& module, const PrintOptions& options) {
  std::string bytes;
  std::map<uint64_t, Literal> written;
  for_each_big_literal(module, options, [&](const Literal& literal) {
    const auto [at, is_new] = written.emplace(literal.hash(), literal);
    BC_CHECK(is_new || at->second == literal, "two constants share the hash {:016x}",
             literal.hash());
    if (!is_new) return;
    append_u64(bytes, literal.hash());
    append_u64(bytes, literal.bytes().size());
    bytes.append(reinterpret_cast<const char*>(literal.bytes().data()), literal.bytes().size());
  });
  return bytes;
}

}  // namespace backcast
