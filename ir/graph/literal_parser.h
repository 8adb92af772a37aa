// Constants in the text form: written out, or by hash from the side file. Internal to the parser.
#pragma once

#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph/error.h"
#include "ir/graph/literal.h"
#include "ir/graph/scanner.h"

namespace backcast {

/// The constants of a side file by hash.
class SideFile {
 public:
  explicit SideFile(std::string_view bytes) {
    size_t at = 0;
    while (at < bytes.size()) {
      if (bytes.size() - at < 16) damaged(at);
      const uint64_t hash = read_u64(bytes, at);
      const uint64_t size = read_u64(bytes, at + 8);
      if (size > bytes.size() - at - 16) damaged(at);
      blocks_[hash] = bytes.substr(at + 16, size);
      at += 16 + size;
    }
  }

  const std::string_view* find(uint64_t hash) const {
    const std::unordered_map<uint64_t, std::string_view>::const_iterator found = blocks_.find(hash);
    return found == blocks_.end() ? nullptr : &found->second;
  }

 private:
  [[noreturn]] static void damaged(size_t at) {
    throw CompileError(fmt::format("the file of constants is cut off in the entry at byte {}", at));
  }
  static uint64_t read_u64(std::string_view bytes, size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    return value;
  }

  std::unordered_map<uint64_t, std::string_view> blocks_;
};

class LiteralParser {
 public:
  /// Both outlive the parser.
  LiteralParser(Scanner& scanner, std::string_view constants)
      : scanner_(scanner), constants_(constants) {}

  /// The elements, or the hash, of a constant of `type`, which the text gave at `start`.
  /// CompileError with line and column.
  Literal literal(const TensorType& type, size_t start);

 private:
  void element(ElementType type, std::vector<std::byte>& data);
  Literal stored(ElementType element, std::vector<int64_t> shape, uint64_t bytes, size_t start);

  Scanner& scanner_;
  SideFile constants_;
  std::map<uint64_t, Literal> loaded_;  // of the side file, each once
};

}  // namespace backcast
