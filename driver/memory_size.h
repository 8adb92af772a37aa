// Amounts of memory on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace backcast {

/// "65536", "64k", "1.5M" (thousands and millions of bytes), "64Ki", "1Mi" (powers of two).
/// CompileError naming `option` for anything else, for nothing and for less than nothing.
int64_t parse_memory_size(const std::string& text, const std::string& option);

/// The option `--ram SIZE`, into `text`.
void add_ram_option(CLI::App& app, std::string& text);
/// None when `text` is empty.
std::optional<int64_t> parse_ram(const std::string& text);

}  // namespace backcast
