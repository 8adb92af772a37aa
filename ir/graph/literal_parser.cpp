#include "ir/graph/literal_parser.h"

#include "ir/graph/element_text.h"
#include "ir/graph/error.h"

namespace backcast {

Literal LiteralParser::literal(const TensorType& type, size_t start) {
  std::vector<int64_t> shape;
  uint64_t bytes = static_cast<uint64_t>(byte_size(type.element));
  bool too_big = false;
  bool is_empty = false;
  for (const Dim& d : type.shape) {
    if (!d.is_constant() || d.constant() < 0) {
      scanner_.fail_at(start, "the shape of a constant consists of natural numbers");
    }
    shape.push_back(d.constant());
    is_empty |= d == Dim(0);
    too_big |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(d.constant()), &bytes);
  }
  if (is_empty) bytes = 0;
  if (too_big && !is_empty) scanner_.fail_at(start, "a constant is too big");
  if (scanner_.accept("#")) return stored(type.element, std::move(shape), bytes, start);
  std::vector<std::byte> data;
  if (shape.empty()) {
    element(type.element, data);
  } else {
    scanner_.expect("[");
    if (!scanner_.accept("]")) {
      do {
        element(type.element, data);
      } while (scanner_.accept(","));
      scanner_.expect("]");
    }
  }
  if (data.size() != bytes) {
    const int64_t size = byte_size(type.element);
    scanner_.fail_at(start, fmt::format("a constant of {} elements lists {}",
                                        bytes / static_cast<uint64_t>(size),
                                        data.size() / static_cast<size_t>(size)));
  }
  return Literal(type.element, std::move(shape), std::move(data));
}

void LiteralParser::element(ElementType type, std::vector<std::byte>& data) {
  const size_t start = scanner_.position();
  const std::string_view text = scanner_.number();
  const size_t at = data.size();
  data.resize(at + static_cast<size_t>(byte_size(type)));
  if (!element_from_text(type, text, std::span(data).subspan(at))) {
    scanner_.fail_at(start, fmt::format("\"{}\" is no {}", text, name_of(type)));
  }
}

Literal LiteralParser::stored(ElementType element, std::vector<int64_t> shape, uint64_t bytes,
                              size_t start) {
  const uint64_t hash = scanner_.hexadecimal();
  const std::map<uint64_t, Literal>::const_iterator loaded = loaded_.find(hash);
  if (loaded != loaded_.end() && loaded->second.element() == element &&
      loaded->second.shape() == shape) {
    return loaded->second;
  }
  const std::string_view* block = constants_.find(hash);
  if (!block) {
    scanner_.fail_at(start, fmt::format("constant #{:016x} is not in the file of constants", hash));
  }
  if (block->size() != bytes) {
    scanner_.fail_at(start, fmt::format("constant #{:016x} has {} bytes where its type needs {}",
                                        hash, block->size(), bytes));
  }
  const std::byte* data = reinterpret_cast<const std::byte*>(block->data());
  Literal literal(element, std::move(shape), std::vector<std::byte>(data, data + bytes));
  if (literal.hash() != hash) {
    scanner_.fail_at(start, fmt::format("the bytes of constant #{:016x} do not have this hash; "
                                        "the file of constants is damaged",
                                        hash));
  }
  loaded_.emplace(hash, literal);
  return literal;
}

}  // namespace backcast
