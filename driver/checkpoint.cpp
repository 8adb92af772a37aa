// See checkpoint.h. The checksum is looked at before anything is believed but magic and version.
#include "driver/checkpoint.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>

#include "ir/graph/error.h"

namespace backcast {
namespace {

constexpr uint32_t kMagic = 0x50434342;  // "BCCP"
constexpr uint32_t kSlotMagic = 0x4c534342;
constexpr uint32_t kVersion = 1;
constexpr size_t kHead = 24, kRecord = 20, kEnd = 4;

uint64_t number(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

/// CRC-32 of IEEE 802.3.
uint32_t crc32(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

/// 16 times the kind plus the bytes; kinds: bool, unsigned, signed, float, bfloat.
std::optional<ElementType> element_of(uint64_t code) {
  switch (code) {
    case 0x01:
      return ElementType::boolean;
    case 0x11:
      return ElementType::u8;
    case 0x12:
      return ElementType::u16;
    case 0x14:
      return ElementType::u32;
    case 0x18:
      return ElementType::u64;
    case 0x21:
      return ElementType::i8;
    case 0x22:
      return ElementType::i16;
    case 0x24:
      return ElementType::i32;
    case 0x28:
      return ElementType::i64;
    case 0x32:
      return ElementType::f16;
    case 0x34:
      return ElementType::f32;
    case 0x38:
      return ElementType::f64;
    case 0x42:
      return ElementType::bf16;
    default:
      return std::nullopt;
  }
}

void check_frame(std::string_view bytes) {
  if (bytes.size() >= 4 && number(bytes, 0, 4) == kSlotMagic) {
    throw CompileError(
        "this is a slot of bc_slots; the checkpoint begins 20 bytes further on and is as long as "
        "bytes 8 to 11 say");
  }
  if (bytes.size() < 4 || number(bytes, 0, 4) != kMagic) {
    throw CompileError("this is no checkpoint: it does not begin with \"BCCP\"");
  }
  if (bytes.size() < kHead + kEnd) {
    throw CompileError(fmt::format("the checkpoint is cut short: {} bytes", bytes.size()));
  }
  const uint64_t version = number(bytes, 4, 4);
  if (version != kVersion) {
    throw CompileError(fmt::format("the checkpoint has version {}; this program reads version {}",
                                   version, kVersion));
  }
}

/// Where the checkpoint ends, by its own lengths; none when that is beyond its bytes.
std::optional<size_t> end_of(std::string_view bytes) {
  const uint64_t count = number(bytes, 16, 4);
  size_t at = kHead;
  for (uint64_t i = 0; i < count; ++i) {
    if (bytes.size() - at < kRecord + kEnd) return std::nullopt;
    const uint64_t length = number(bytes, at + 8, 4);
    at += kRecord;
    if (bytes.size() - at - kEnd < length) return std::nullopt;
    at += length;
  }
  return at + kEnd;
}

}  // namespace

Checkpoint parse_checkpoint(std::string_view bytes) {
  check_frame(bytes);
  const std::optional<size_t> end = end_of(bytes);
  if (!end) throw CompileError("the checkpoint is cut short, or its lengths were changed");
  if (*end != bytes.size()) {
    throw CompileError(fmt::format(
        "{} bytes follow the checkpoint, or its lengths were changed; keep the {} bytes "
        "that save wrote",
        bytes.size() - *end, *end));
  }
  if (crc32(bytes.substr(0, bytes.size() - kEnd)) != number(bytes, bytes.size() - kEnd, kEnd)) {
    throw CompileError("the checkpoint was changed after it was written: its checksum differs");
  }
  Checkpoint result;
  result.model_hash = number(bytes, 8, 8);
  for (size_t at = kHead; at < bytes.size() - kEnd;) {
    CheckpointVariable variable;
    variable.name = number(bytes, at, 8);
    const size_t length = number(bytes, at + 8, 4);
    variable.start = static_cast<int64_t>(number(bytes, at + 12, 4));
    variable.axis = static_cast<signed char>(bytes[at + 16]);
    const uint64_t role = number(bytes, at + 17, 1), element = number(bytes, at + 18, 1);
    const std::optional<ElementType> type = element_of(element);
    if (role >= std::size(EnumNames<StateRole>::names) || !type) {
      throw CompileError(
          fmt::format("the checkpoint has a variable of role {} and element {}, which this program "
                      "does not know",
                      role, element));
    }
    variable.role = static_cast<StateRole>(role);
    variable.element = *type;
    variable.bytes = bytes.substr(at + kRecord, length);
    result.variables.push_back(variable);
    at += kRecord + length;
  }
  return result;
}

}  // namespace backcast
