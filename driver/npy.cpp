#include "driver/npy.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "driver/compiler.h"
#include "frontend/onnx_tensors.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

const std::map<std::string, ElementType> kDescriptors{
    {"|b1", ElementType::boolean}, {"|i1", ElementType::i8},  {"<i2", ElementType::i16},
    {"<i4", ElementType::i32},     {"<i8", ElementType::i64}, {"|u1", ElementType::u8},
    {"<u2", ElementType::u16},     {"<u4", ElementType::u32}, {"<u8", ElementType::u64},
    {"<f2", ElementType::f16},     {"<f4", ElementType::f32}, {"<f8", ElementType::f64}};

/// Text between the quotes or brackets that follow `'key':` in the header's dictionary.
std::string field(const std::string& header, const std::string& key, char open, char close) {
  size_t at = header.find("'" + key + "':");
  if (at == std::string::npos) return {};
  size_t begin = header.find(open, at + key.size() + 3);
  size_t end = begin == std::string::npos ? begin : header.find(close, begin + 1);
  return end == std::string::npos ? std::string() : header.substr(begin + 1, end - begin - 1);
}

Literal read_npy(const std::string& path) {
  std::string bytes = read_file(path);
  const auto fail = [&](const std::string& why) -> void { throw CompileError(path + ": " + why); };
  if (bytes.size() < 12 || bytes.compare(0, 6, "\x93NUMPY") != 0) fail("not a .npy file");
  size_t wide = bytes[6] >= 2 ? 4 : 2, length = 0;
  for (size_t i = 0; i < wide; ++i) length |= size_t(uint8_t(bytes[8 + i])) << (8 * i);
  size_t begin = 8 + wide;
  if (bytes.size() - begin < length) fail("the header is cut off");
  std::string header = bytes.substr(begin, length);
  if (header.find("'fortran_order': True") != std::string::npos) {
    fail("Fortran order; save it with numpy.ascontiguousarray");
  }
  auto type = kDescriptors.find(field(header, "descr", '\'', '\''));
  if (type == kDescriptors.end()) fail("an element type that Backcast does not have");
  std::vector<int64_t> shape;
  int64_t count = 1;
  std::string list = field(header, "shape", '(', ')');
  for (size_t at = 0; at < list.size();) {
    if (!isdigit(static_cast<unsigned char>(list[at]))) {
      ++at;
      continue;
    }
    size_t used = 0;
    shape.push_back(std::stoll(list.substr(at), &used));
    if (__builtin_mul_overflow(count, shape.back(), &count)) fail("the shape overflows");
    at += used;
  }
  size_t need = static_cast<size_t>(count) * static_cast<size_t>(byte_size(type->second));
  if (bytes.size() - begin - length != need) fail("the data does not have the shape's size");
  std::vector<std::byte> data(need);
  std::memcpy(data.data(), bytes.data() + begin + length, need);
  return Literal(type->second, shape, std::move(data));
}

}  // namespace

Literal read_tensor(const std::string& path) {
  return std::filesystem::path(path).extension() == ".npy" ? read_npy(path) : read_tensor_pb(path);
}

std::string npy_bytes(const Literal& tensor) {
  std::string descriptor = "<u2";
  for (const auto& [name, type] : kDescriptors) {
    if (type == tensor.element()) descriptor = name;
  }
  std::string shape;
  for (int64_t extent : tensor.shape()) shape += fmt::format("{}, ", extent);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descriptor, shape);
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes = "\x93NUMPY\x01";
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
  return bytes;
}

}  // namespace backcast
