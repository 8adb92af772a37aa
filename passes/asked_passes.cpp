#include "passes/asked_passes.h"

#include <charconv>
#include <map>
#include <utility>

#include "ir/graph/error.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/drop_constant_channels.h"
#include "passes/graph/stream.h"

namespace backcast {
namespace {

/// The arguments of one pass; every reading takes its argument away, so that what is left over is
/// an error.
class Arguments {
 public:
  explicit Arguments(const std::string& spec) : spec_(spec) {
    const size_t open = spec.find('(');
    name_ = spec.substr(0, open);
    if (spec.back() != ')') fail("a parenthesis is not closed");
    std::string inside = spec.substr(open + 1, spec.size() - open - 2);
    while (!inside.empty()) {
      const size_t comma = inside.find(',');
      const std::string word = inside.substr(0, comma);
      const size_t equals = word.find('=');
      if (equals == std::string::npos) fail("expected key=value and found \"" + word + "\"");
      values_[word.substr(0, equals)] = word.substr(equals + 1);
      inside = comma == std::string::npos ? "" : inside.substr(comma + 1);
    }
  }

  const std::string& name() const { return name_; }

  std::string text(const std::string& key, const std::string& otherwise) {
    const auto found = values_.find(key);
    if (found == values_.end()) return otherwise;
    std::string value = found->second;
    values_.erase(found);
    return value;
  }
  bool flag(const std::string& key, bool otherwise) {
    const std::string value = text(key, otherwise ? "true" : "false");
    if (value != "true" && value != "false") fail(key + " is true or false");
    return value == "true";
  }
  int64_t number(const std::string& key, int64_t otherwise) {
    const std::string value = text(key, std::to_string(otherwise));
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) fail(key + " is a number");
    return number;
  }
  /// Names joined by plus signs.
  std::vector<std::string> names(const std::string& key) {
    std::vector<std::string> parts;
    std::string value = text(key, "");
    while (!value.empty()) {
      const size_t plus = value.find('+');
      parts.push_back(value.substr(0, plus));
      value = plus == std::string::npos ? "" : value.substr(plus + 1);
    }
    return parts;
  }

  void finish() const {
    if (!values_.empty()) fail("there is no argument \"" + values_.begin()->first + "\"");
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw CompileError("pass " + spec_ + ": " + why);
  }

 private:
  std::string spec_, name_;
  std::map<std::string, std::string> values_;
};

}  // namespace

bool is_asked_pass(std::string_view spec) { return spec.find('(') != std::string_view::npos; }

Module run_asked_pass(const Module& module, const std::string& spec) {
  Arguments arguments(spec);
  const std::string function = arguments.text("function", "main");
  DifferentiateOptions options;
  options.wrt = arguments.names("wrt");
  using Derivative = Module (*)(const Module&, const std::string&, const std::vector<std::string>&);
  static const std::map<std::string, Derivative> derivatives{
      {"vjp", add_vjp}, {"jvp", add_jvp}, {"hvp", add_hvp}};
  const auto derivative = derivatives.find(arguments.name());
  if (derivative != derivatives.end()) {
    arguments.finish();
    return derivative->second(module, function, options.wrt);
  }
  if (arguments.name() == "drop_constant_channels") {
    const std::string range = arguments.text("range", "1e6");
    const ChannelUnits units{arguments.number("vector_bits", 0), arguments.number("word", 1)};
    arguments.finish();
    const std::string bounds = range == "off" ? range : "-" + range + "," + range;
    return drop_constant_channels(module, parse_input_bounds({bounds}), nullptr, units);
  }
  if (arguments.name() == "stream") {
    StreamOptions stream_options;
    const int64_t axis = arguments.number("axis", 0), hop = arguments.number("hop", 0);
    for (const std::string& input : arguments.names("inputs")) {
      stream_options.inputs.push_back({input, axis});
    }
    if (hop > 0) stream_options.hop = hop;
    if (arguments.flag("open", false)) stream_options.edges = StreamEdges::open;
    arguments.finish();
    return stream(module, stream_options);
  }
  if (arguments.name() != "differentiate") {
    arguments.fail(
        "passes with arguments are differentiate, vjp, jvp, hvp, stream and "
        "drop_constant_channels");
  }
  options.target_index = arguments.number("target_index", 0);
  options.seeded = arguments.flag("seeded", false);
  options.keep_result = arguments.flag("keep_result", true);
  options.strict = arguments.flag("strict", false);
  options.name = arguments.text("name", "");
  arguments.finish();
  return differentiate(module, function, options);
}

std::vector<std::string> split_passes(std::string_view list) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (char c : list) {
    depth += (c == '(') - (c == ')');
    if (c == ',' && depth == 0) {
      parts.push_back(std::exchange(part, {}));
    } else {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

}  // namespace backcast
