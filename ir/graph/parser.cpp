// The parser of the text form. It knows no operator: the fields of an operator's default attributes
// say what may stand between the braces. It takes any bytes: nesting is bounded, nothing is
// allocated that the text does not spell out, and every complaint names line and column.
#include <unordered_map>

#include "ir/graph/element_text.h"
#include "ir/graph/infer.h"
#include "ir/graph/literal_parser.h"
#include "ir/graph/scanner.h"
#include "ir/graph/text.h"

namespace backcast {
namespace {

class Parser {
 public:
  Parser(std::string_view text, std::string_view constants)
      : scanner_(text), literals_(scanner_, constants) {}

  Module module() {
    if (scanner_.accept("constants")) scanner_.quoted();
    while (!scanner_.at_end()) {
      if (scanner_.accept("symbol")) {
        symbol();
      } else if (scanner_.accept("batch")) {
        module_.batch = count();
      } else if (scanner_.accept("accumulate")) {
        module_.accumulate = count();
      } else if (scanner_.accept("state")) {
        state();
      } else if (scanner_.accept("entry")) {
        entry();
      } else if (scanner_.accept("func")) {
        function();
      } else {
        scanner_.fail("expected \"symbol\", \"state\", \"entry\" or \"func\"");
      }
    }
    check_calls();
    check_entries();
    check_types();
    return std::move(module_);
  }

 private:
  using Values = std::unordered_map<std::string, ValueId>;

  /// What waits until all functions are known.
  struct Pending {
    std::string function;
    size_t node = 0;
    size_t position = 0;
  };

  std::string word_or_quoted(const std::string& what) {
    if (scanner_.peek() == '"') return scanner_.quoted();
    const std::string_view word = scanner_.word();
    if (word.empty()) scanner_.fail("expected " + what);
    return std::string(word);
  }

  void symbol() {
    const size_t start = scanner_.position();
    const std::string name = word_or_quoted("the name of a symbol");
    DimRange range;
    scanner_.expect("in");
    range.min = scanner_.integer();
    scanner_.expect("..");
    const char next = scanner_.peek();
    if ((next >= '0' && next <= '9') || next == '-') range.max = scanner_.integer();
    if (name.empty()) scanner_.fail_at(start, "a symbol needs a name");
    if (range.min < 0 || range.min > range.max) {
      scanner_.fail_at(start, "the range of a symbol must be 0 <= min <= max");
    }
    if (!module_.symbols.emplace(name, range).second) {
      scanner_.fail_at(start, "symbol " + name + " is declared twice");
    }
  }

  int64_t count() {
    const size_t start = scanner_.position();
    const int64_t value = scanner_.integer();
    if (value < 1) scanner_.fail_at(start, "expected a number from 1 on");
    return value;
  }

  void state() {
    const size_t start = scanner_.position();
    StateVariable state;
    state.name = scanner_.quoted();
    const std::string role(scanner_.word());
    const auto names = EnumNames<StateRole>::names;
    const size_t count = std::size(EnumNames<StateRole>::names);
    size_t index = 0;
    while (index < count && names[index] != role) ++index;
    if (index == count) scanner_.fail_at(start, "\"" + role + "\" is no role of a state variable");
    state.role = static_cast<StateRole>(index);
    if (scanner_.accept("slice")) {
      state.slice_axis = scanner_.integer();
      state.slice_start = scanner_.integer();
      if (state.slice_axis < 0 || state.slice_start < 0) {
        scanner_.fail_at(start, "a slice is an axis and a start, neither negative");
      }
    }
    scanner_.expect("=");
    state.initial = literal();
    state.loc = location();
    if (find_state(module_, state.name)) {
      scanner_.fail_at(start, "state " + state.name + " is declared twice");
    }
    module_.states.push_back(std::move(state));
  }

  void entry() {
    entry_position_ = scanner_.position();
    Entry entry;
    entry.name = scanner_.quoted();
    scanner_.expect("@");
    entry.function = word_or_quoted("the name of a function");
    if (scanner_.accept("guard")) entry.guard = scanner_.quoted();
    while (scanner_.accept("range")) {
      const std::string input = scanner_.quoted();
      InputRange range;
      range.min = scanner_.integer();
      scanner_.expect("..");
      range.max = scanner_.integer();
      if (scanner_.accept("ignore")) range.ignore = scanner_.integer();
      entry.ranges[input] = range;
    }
    while (scanner_.accept("optional")) entry.optional_outputs.insert(scanner_.quoted());
    module_.entries.push_back(std::move(entry));
  }

  void check_entries() {
    for (const Entry& entry : module_.entries) {
      if (module_.functions.contains(entry.function)) continue;
      scanner_.fail_at(entry_position_, "there is no function @" + entry.function);
    }
  }

  Dim dimension() {
    const size_t start = scanner_.position();
    const Dim result = scanner_.dimension();
    std::set<std::string> symbols;
    result.collect_symbols(symbols);
    for (const std::string& name : symbols) {
      if (module_.symbols.contains(name)) continue;
      scanner_.fail_at(start, "symbol " + name + " is not declared; write \"symbol " + name +
                                  " in 1..8\" above");
    }
    return result;
  }

  /// Items between brackets, separated by commas.
  template <class F>
  void list(std::string_view open, std::string_view close, F&& item) {
    scanner_.expect(open);
    if (scanner_.accept(close)) return;
    do {
      item();
    } while (scanner_.accept(","));
    scanner_.expect(close);
  }

  ElementType element_type() {
    const size_t start = scanner_.position();
    const std::string_view name = scanner_.word();
    const std::optional<ElementType> element = element_type_from_name(name);
    if (!element) scanner_.fail_at(start, "expected an element type such as f32");
    return *element;
  }

  TensorType tensor_type() {
    TensorType type;
    type.element = element_type();
    list("[", "]", [&] { type.shape.push_back(dimension()); });
    return type;
  }

  Type type(int depth = 0) {
    constexpr int kMaxDepth = 64;
    if (depth > kMaxDepth) scanner_.fail("tuples are nested too deeply");
    if (scanner_.peek() != '(') return tensor_type();
    std::vector<Type> elements;
    list("(", ")", [&] { elements.push_back(type(depth + 1)); });
    return Type::tuple(std::move(elements));
  }

  Loc location() {
    if (!scanner_.accept("loc")) return {};
    Loc loc;
    scanner_.expect("(");
    loc.node = scanner_.quoted();
    if (scanner_.accept(",")) loc.op_type = scanner_.quoted();
    if (scanner_.accept(",")) loc.origin = origin();
    scanner_.expect(")");
    return loc;
  }

  Origin origin() {
    if (scanner_.accept("imported")) return Origin::imported;
    if (scanner_.accept("adjoint_of")) return Origin::adjoint_of;
    if (scanner_.accept("fused_from")) return Origin::fused_from;
    if (scanner_.accept("made")) return Origin::made;
    scanner_.fail("expected imported, adjoint_of, fused_from or made");
  }

  Literal literal() {
    const size_t start = scanner_.position();
    return literals_.literal(tensor_type(), start);
  }

  /// A value of the same kind as `like`.
  AttrValue attribute_value(const AttrValue& like) {
    struct Visitor {
      Parser& parser;
      Scanner& scanner;
      AttrValue operator()(bool) const {
        if (scanner.accept("true")) return true;
        if (scanner.accept("false")) return false;
        scanner.fail("expected true or false");
      }
      AttrValue operator()(int64_t) const { return scanner.integer(); }
      AttrValue operator()(double) const {
        const size_t start = scanner.position();
        double value = 0;
        if (!double_from_text(scanner.number(), value)) scanner.fail_at(start, "expected a number");
        return value;
      }
      AttrValue operator()(const std::string&) const {
        return parser.word_or_quoted("a word or a string");
      }
      AttrValue operator()(ElementType) const { return parser.element_type(); }
      AttrValue operator()(const FunctionRef&) const {
        scanner.expect("@");
        return FunctionRef{parser.word_or_quoted("the name of a function")};
      }
      AttrValue operator()(const std::vector<int64_t>&) const {
        std::vector<int64_t> values;
        parser.list("[", "]", [&] { values.push_back(scanner.integer()); });
        return values;
      }
      AttrValue operator()(const Dims&) const {
        Dims values;
        parser.list("[", "]", [&] { values.push_back(parser.dimension()); });
        return values;
      }
      AttrValue operator()(const Dim&) const { return parser.dimension(); }
      AttrValue operator()(const Literal&) const { return parser.literal(); }
    };
    return std::visit(Visitor{*this, scanner_}, like);
  }

  Attrs attributes(const OpDef& op) {
    const size_t start = scanner_.position();
    if (scanner_.peek() != '{') {
      if (op.name == "constant") scanner_.fail("a constant needs {value=…}");
      return op.default_attrs;
    }
    const std::vector<AttrField> known = op.default_attrs.fields();
    std::vector<AttrField> given;
    list("{", "}", [&] {
      const size_t at = scanner_.position();
      const std::string name(scanner_.word());
      const AttrField* field = nullptr;
      std::string names;
      for (const AttrField& candidate : known) {
        if (candidate.name == name) field = &candidate;
        names += (names.empty() ? "" : ", ") + candidate.name;
      }
      if (!field) {
        scanner_.fail_at(at, fmt::format("{} has no attribute \"{}\"; it has {}", op.name, name,
                                         names.empty() ? "none" : names));
      }
      for (const AttrField& earlier : given) {
        if (earlier.name == name) scanner_.fail_at(at, "attribute " + name + " is given twice");
      }
      scanner_.expect("=");
      given.push_back({name, attribute_value(field->value)});
    });
    if (op.name == "constant" && given.empty()) {
      scanner_.fail_at(start, "a constant needs {value=…}");
    }
    try {
      return op.default_attrs.with(given);
    } catch (const CompileError& error) {
      scanner_.fail_at(start, error.what());
    }
  }

  void define(Values& values, const std::string& name, ValueId id, size_t position) {
    if (!values.emplace(name, id).second) {
      scanner_.fail_at(position, "value %" + name + " is defined twice");
    }
  }

  ValueId use(const Values& values) {
    const size_t start = scanner_.position();
    scanner_.expect("%");
    const std::string name(scanner_.name());
    const Values::const_iterator found = values.find(name);
    if (found == values.end()) scanner_.fail_at(start, "value %" + name + " is not defined above");
    return found->second;
  }

  void parameter(Function& function, Values& values) {
    const size_t start = scanner_.position();
    scanner_.expect("%");
    const std::string value(scanner_.name());
    const std::string name = scanner_.peek() == '"' ? scanner_.quoted() : value;
    scanner_.expect(":");
    const OpDef* op = find_op("parameter");
    BC_CHECK(op != nullptr, "there is no operator parameter");
    const ValueId id(function.size());
    Node node{op,
              {},
              op->default_attrs.with({{"name", name}, {"index", int64_t{id.index}}}),
              type(),
              location()};
    if (node.loc.empty()) node.loc = parameter_loc(name, id.index);
    define(values, value, id, start);
    function.nodes.push_back(std::move(node));
    function.params.push_back(id);
  }

  void function() {
    Function function;
    scanner_.expect("@");
    const size_t start = scanner_.position();
    function.name = word_or_quoted("the name of a function");
    if (module_.functions.contains(function.name)) {
      scanner_.fail_at(start, "function @" + function.name + " is defined twice");
    }
    positions_[function.name] = start;
    Values values;
    list("(", ")", [&] { parameter(function, values); });
    scanner_.expect("->");
    const Type result = type();
    if (scanner_.accept("results")) {
      list("(", ")", [&] { function.result_names.push_back(scanner_.quoted()); });
    }
    scanner_.expect("{");
    while (!scanner_.accept("return")) node(function, values);
    const size_t returned = scanner_.position();
    function.result = use(values);
    if (function.result_type() != result) {
      scanner_.fail_at(returned,
                       fmt::format("the result is {} and the function's head says {}",
                                   function.result_type().to_string(), result.to_string()));
    }
    const size_t names = function.result_names.size();
    const size_t results = result.is_tuple() ? result.elements().size() : 1;
    if (names != 0 && names != results) {
      scanner_.fail_at(start, fmt::format("{} names for {} results", names, results));
    }
    scanner_.expect("}");
    module_.functions.emplace(function.name, std::move(function));
  }

  void node(Function& function, Values& values) {
    const size_t start = scanner_.position();
    if (scanner_.peek() != '%') scanner_.fail("expected a value such as %0, or return");
    scanner_.expect("%");
    const std::string name(scanner_.name());
    scanner_.expect("=");
    const size_t op_position = scanner_.position();
    const std::string_view op_name = scanner_.word();
    const OpDef* op = find_op(op_name);
    if (!op) scanner_.fail_at(op_position, fmt::format("unknown operator \"{}\"", op_name));
    if (op->name == "parameter") {
      scanner_.fail_at(op_position, "parameters belong into the head of the function");
    }
    Node node;
    node.op = op;
    if (scanner_.peek() == '%') {
      do {
        node.operands.push_back(use(values));
      } while (scanner_.accept(","));
    }
    node.attrs = attributes(*op);
    for (const std::string& callee : called_functions(node)) {
      calls_.push_back({callee, 0, op_position});
    }
    if (scanner_.accept(":")) {
      node.type = type();
      pending_.push_back({function.name, function.nodes.size(), op_position});
    } else {
      node.type = inferred(function, node, op_position);
    }
    node.loc = location();
    if (node.loc.empty()) node.loc = {"%" + name, std::string(op_name), Origin::made};
    define(values, name, ValueId(function.size()), start);
    function.nodes.push_back(std::move(node));
  }

  Type inferred(const Function& function, const Node& node, size_t position) {
    std::vector<Type> types;
    types.reserve(node.operands.size());
    for (const ValueId operand : node.operands) types.push_back(function.type(operand));
    try {
      return infer_type(module_, *node.op, types, node.attrs);
    } catch (const CompileError& error) {
      scanner_.fail_at(position, error.what());
    }
  }

  void check_calls() {
    for (const Pending& call : calls_) {
      if (!module_.functions.contains(call.function)) {
        scanner_.fail_at(call.position, "there is no function @" + call.function);
      }
    }
    const std::string recursive = find_recursion(module_);
    if (!recursive.empty()) {
      scanner_.fail_at(positions_.at(recursive), "function @" + recursive + " calls itself");
    }
  }

  void check_types() {
    for (const Pending& pending : pending_) {
      const Function& function = module_.functions.at(pending.function);
      const Node& node = function.nodes[pending.node];
      const Type type = inferred(function, node, pending.position);
      if (type == node.type) continue;
      scanner_.fail_at(pending.position,
                       fmt::format("{} gives {} and the text says {}", node.op->name,
                                   type.to_string(), node.type.to_string()));
    }
  }

  Scanner scanner_;
  LiteralParser literals_;
  Module module_;
  std::vector<Pending> pending_;
  std::vector<Pending> calls_;
  std::map<std::string, size_t> positions_;
  size_t entry_position_ = 0;
};

}  // namespace

Module parse_module(std::string_view text, std::string_view constants) {
  return Parser(text, constants).module();
}

std::string side_file_of(std::string_view text) {
  Scanner scanner(text);
  return scanner.accept("constants") ? scanner.quoted() : std::string();
}

}  // namespace backcast
