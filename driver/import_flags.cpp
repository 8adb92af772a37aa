// See import_flags.h.
#include "driver/import_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "ir/graph/error.h"

namespace backcast {
namespace {

[[noreturn]] void expected(const std::string& option, const std::string& word,
                           const std::string& what) {
  throw CompileError(fmt::format("{} {}: expected {}", option, word, what));
}

/// All of the text as a number; none where it is something else.
template <typename T>
std::optional<T> number(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// NAME=VALUE; no name holds the first equals sign.
std::pair<std::string, std::string_view> split(const std::string& option, const std::string& word,
                                               const std::string& what) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) expected(option, word, what);
  return {word.substr(0, equals), std::string_view(word).substr(equals + 1)};
}

std::map<std::string, DimRange> parse_dims(const std::vector<std::string>& words) {
  static const std::string kWhat = "NAME=SIZE or NAME=MIN..MAX";
  std::map<std::string, DimRange> result;
  for (const std::string& word : words) {
    const auto [name, value] = split("--dim", word, kWhat);
    const size_t dots = value.find("..");
    const bool one = dots == std::string_view::npos;
    const std::optional<int64_t> least = number<int64_t>(value.substr(0, dots));
    const std::optional<int64_t> most = one ? least : number<int64_t>(value.substr(dots + 2));
    if (!least || !most || *least < 0 || *most < 0) expected("--dim", word, kWhat);
    if (*least > *most) throw CompileError("--dim " + word + ": the range is empty");
    result[name] = {*least, *most};
  }
  return result;
}

std::map<std::string, std::vector<double>> parse_constants(const std::vector<std::string>& words) {
  static const std::string kWhat = "NAME=NUMBER, or numbers separated by commas";
  std::map<std::string, std::vector<double>> result;
  for (const std::string& word : words) {
    auto [name, rest] = split("--constant", word, kWhat);
    std::vector<double>& values = result[name];
    for (bool more = true; more;) {
      const size_t comma = rest.find(',');
      const std::string_view text = rest.substr(0, comma);
      const std::optional<double> value = text == "true"    ? 1
                                          : text == "false" ? 0
                                                            : number<double>(text);
      if (!value) expected("--constant", word, kWhat);
      values.push_back(*value);
      more = comma != std::string_view::npos;
      if (more) rest.remove_prefix(comma + 1);
    }
  }
  return result;
}

}  // namespace

void ImportFlags::add_to(CLI::App& app) {
  app.add_option("--dim", dims_, "size of a symbolic dimension: N=8, or a range: N=1..8");
  app.add_option("--constant", constants_,
                 "an input that is always the same: NAME=NUMBER for all of its elements, or one "
                 "each, separated by commas; the library does not ask for it, and branches that it "
                 "decides are left out")
      ->allow_extra_args(false);
  app.add_option("--max-trips", max_trips_,
                 "of a Loop that only run time bounds; needed to train through it")
      ->check(CLI::NonNegativeNumber);
}

ImportOptions ImportFlags::options() const {
  ImportOptions options;
  options.dims = parse_dims(dims_);
  options.constants = parse_constants(constants_);
  options.max_trips = max_trips_;
  return options;
}

}  // namespace backcast
