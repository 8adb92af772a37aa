#include "driver/memory_size.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <map>

#include "ir/graph/error.h"

namespace backcast {

int64_t parse_memory_size(const std::string& text, const std::string& option) {
  static const std::map<std::string, double> units{{"", 1},    {"k", 1e3},      {"K", 1e3},
                                                   {"M", 1e6}, {"Ki", 1 << 10}, {"Mi", 1 << 20}};
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  const auto unit = units.find(std::string(rest, end));
  const bool valid = error == std::errc() && unit != units.end() && std::isfinite(value);
  const double bytes = valid ? std::floor(value * unit->second) : 0;
  if (bytes < 1 || bytes > 9e15) {
    throw CompileError(fmt::format(
        "{} {}: expected an amount of memory above zero, such as 65536, 64k, 1.5M or 64Ki", option,
        text));
  }
  return static_cast<int64_t>(bytes);
}

void add_ram_option(CLI::App& app, std::string& text) {
  app.add_option("--ram", text,
                 "most bytes that the arena and, where the library trains, the state may take "
                 "together (64k, 1.5M, 64Ki; not the stack): no more than that needs runs band by "
                 "band (inference) or is computed again instead of kept (training)")
      ->option_text("SIZE");
}

std::optional<int64_t> parse_ram(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return parse_memory_size(text, "--ram");
}

}  // namespace backcast
