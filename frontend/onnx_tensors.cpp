// Decoding of ONNX tensors. Every length is checked before a byte is read.
#include "frontend/onnx_tensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <fstream>

#include "frontend/onnx_proto.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

namespace fs = std::filesystem;

int64_t count_elements(const OnnxTensor& tensor) {
  int64_t count = 1;
  bool overflow = false;
  bool empty = false;
  for (const int64_t extent : tensor.dims) {
    if (extent < 0) {
      throw CompileError(fmt::format("tensor \"{}\" has a negative extent, {}; the file is damaged",
                                     tensor.name, extent));
    }
    empty |= extent == 0;
    overflow |= __builtin_mul_overflow(count, extent, &count);
  }
  if (empty) return 0;
  // Sixteen bytes per element at most.
  if (overflow || count > INT64_MAX / 16) {
    throw CompileError(fmt::format(
        "tensor \"{}\" has more elements than fit in memory; the file is damaged", tensor.name));
  }
  return count;
}

[[noreturn]] void wrong_length(const OnnxTensor& tensor, int64_t has, int64_t needs,
                               const char* unit) {
  throw CompileError(fmt::format(
      "tensor \"{}\" holds {} {} where its extents and type need {}; the file is damaged",
      tensor.name, has, unit, needs));
}

/// Copies a typed field, narrowing each element to T.
template <class T, class Field>
Literal from_field(const OnnxTensor& tensor, ElementType element, std::span<const Field> field,
                   int64_t count) {
  if (static_cast<int64_t>(field.size()) != count) {
    wrong_length(tensor, static_cast<int64_t>(field.size()), count, "elements");
  }
  if constexpr (std::is_same_v<T, Field>) {
    return Literal(element, tensor.dims, std::as_bytes(field), tensor.owner);
  } else {
    std::vector<std::byte> bytes(static_cast<size_t>(count) * sizeof(T));
    for (size_t i = 0; i < field.size(); ++i) {
      const T value = static_cast<T>(field[i]);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return Literal(element, tensor.dims, std::move(bytes));
  }
}

Literal from_typed_fields(const OnnxTensor& tensor, ElementType element, int64_t count) {
  switch (element) {
    case ElementType::boolean:
    case ElementType::u8:
      return from_field<uint8_t>(tensor, element, tensor.int32_data, count);
    case ElementType::i8:
      return from_field<int8_t>(tensor, element, tensor.int32_data, count);
    case ElementType::i16:
      return from_field<int16_t>(tensor, element, tensor.int32_data, count);
    case ElementType::u16:
    case ElementType::f16:
    case ElementType::bf16:
      return from_field<uint16_t>(tensor, element, tensor.int32_data, count);
    case ElementType::i32:
      return from_field<int32_t>(tensor, element, tensor.int32_data, count);
    case ElementType::i64:
      return from_field<int64_t>(tensor, element, tensor.int64_data, count);
    case ElementType::u32:
      return from_field<uint32_t>(tensor, element, tensor.uint64_data, count);
    case ElementType::u64:
      return from_field<uint64_t>(tensor, element, tensor.uint64_data, count);
    case ElementType::f32:
      return from_field<float>(tensor, element, tensor.float_data, count);
    case ElementType::f64:
      return from_field<double>(tensor, element, tensor.double_data, count);
  }
  __builtin_unreachable();
}

Literal from_bytes(const OnnxTensor& tensor, ElementType element, std::span<const std::byte> bytes,
                   const std::shared_ptr<const void>& owner, int64_t count) {
  const int64_t needed = count * byte_size(element);
  if (static_cast<int64_t>(bytes.size()) != needed) {
    wrong_length(tensor, static_cast<int64_t>(bytes.size()), needed, "bytes");
  }
  const bool aligned =
      reinterpret_cast<uintptr_t>(bytes.data()) % static_cast<size_t>(byte_size(element)) == 0;
  // Truth values have to be 0 or 1, which the copying form makes sure of.
  if (!aligned || element == ElementType::boolean || needed == 0) {
    return Literal(element, tensor.dims, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
  return Literal(element, tensor.dims, bytes, owner);
}

/// A non-negative decimal integer of external_data; `fallback` when the key is absent.
int64_t external_number(const OnnxTensor& tensor, const char* key, int64_t fallback) {
  const std::map<std::string, std::string>::const_iterator found = tensor.external_data.find(key);
  if (found == tensor.external_data.end()) return fallback;
  const std::string& text = found->second;
  int64_t value = -1;
  const std::from_chars_result read =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || value < 0) {
    throw CompileError(
        fmt::format("tensor \"{}\": external data has the {} \"{}\", which is no size", tensor.name,
                    key, text));
  }
  return value;
}

/// The file, proven to lie inside the model's directory even through symbolic links.
fs::path external_path(const OnnxTensor& tensor, const fs::path& model_dir) {
  const std::map<std::string, std::string>::const_iterator found =
      tensor.external_data.find("location");
  if (found == tensor.external_data.end() || found->second.empty()) {
    throw CompileError(fmt::format("tensor \"{}\": external data without a location", tensor.name));
  }
  const fs::path relative(found->second);
  bool leaves = relative.is_absolute() || found->second.find('\0') != std::string::npos;
  for (const fs::path& part : relative) leaves |= part == "..";
  if (model_dir.empty() || leaves) {
    throw CompileError(fmt::format(
        "tensor \"{}\": external data \"{}\" is refused; it has to be a file inside the model's "
        "own directory",
        tensor.name, found->second));
  }
  std::error_code error;
  const fs::path root = fs::canonical(model_dir, error);
  const fs::path file = error ? fs::path() : fs::canonical(root / relative, error);
  if (error) {
    throw CompileError(
        fmt::format("tensor \"{}\": cannot open the external data file \"{}\": {}; "
                    "it has to lie beside the model",
                    tensor.name, found->second, error.message()));
  }
  const std::pair<fs::path::iterator, fs::path::iterator> difference =
      std::mismatch(root.begin(), root.end(), file.begin(), file.end());
  if (difference.first != root.end()) {
    throw CompileError(fmt::format(
        "tensor \"{}\": external data \"{}\" is a link that leaves the model's directory",
        tensor.name, found->second));
  }
  return file;
}

Literal from_external(const OnnxTensor& tensor, ElementType element, const fs::path& model_dir,
                      int64_t count) {
  const MappedFile file = map_file(external_path(tensor, model_dir));
  const int64_t size = static_cast<int64_t>(file.bytes.size());
  const int64_t needed = count * byte_size(element);
  const int64_t offset = external_number(tensor, "offset", 0);
  const int64_t length = external_number(tensor, "length", needed);
  if (offset > size || length > size - offset) {
    throw CompileError(fmt::format(
        "tensor \"{}\": external data at offset {} with length {} runs past the end of its file, "
        "which has {} bytes",
        tensor.name, offset, length, size));
  }
  return from_bytes(tensor, element,
                    file.bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(length)),
                    file.owner, count);
}

}  // namespace

std::optional<ElementType> element_type_of(int64_t onnx_data_type) {
  switch (onnx_data_type) {
    case onnx_type::kFloat:
      return ElementType::f32;
    case onnx_type::kUint8:
      return ElementType::u8;
    case onnx_type::kInt8:
      return ElementType::i8;
    case onnx_type::kUint16:
      return ElementType::u16;
    case onnx_type::kInt16:
      return ElementType::i16;
    case onnx_type::kInt32:
      return ElementType::i32;
    case onnx_type::kInt64:
      return ElementType::i64;
    case onnx_type::kBool:
      return ElementType::boolean;
    case onnx_type::kFloat16:
      return ElementType::f16;
    case onnx_type::kDouble:
      return ElementType::f64;
    case onnx_type::kUint32:
      return ElementType::u32;
    case onnx_type::kUint64:
      return ElementType::u64;
    case onnx_type::kBfloat16:
      return ElementType::bf16;
    default:
      return std::nullopt;
  }
}

int64_t onnx_data_type_of(ElementType element) {
  for (int64_t type = 1; type <= onnx_type::kBfloat16; ++type) {
    if (element_type_of(type) == element) return type;
  }
  BC_CHECK(false, "{} has no ONNX data type", name_of(element));
}

Literal to_literal(const OnnxTensor& tensor, const fs::path& model_dir) {
  const std::optional<ElementType> element = element_type_of(tensor.data_type);
  if (!element) {
    throw CompileError(fmt::format("tensor \"{}\" has {} elements, which are not supported",
                                   tensor.name, onnx_type_name(tensor.data_type)));
  }
  const int64_t count = count_elements(tensor);
  if (tensor.external) return from_external(tensor, *element, model_dir, count);
  if (tensor.raw_data) return from_bytes(tensor, *element, *tensor.raw_data, tensor.owner, count);
  return from_typed_fields(tensor, *element, count);
}

OnnxTensor to_tensor(const std::string& name, const Literal& value) {
  const std::shared_ptr<const Literal> owner = std::make_shared<const Literal>(value);
  OnnxTensor tensor;
  tensor.name = name;
  tensor.data_type = onnx_data_type_of(value.element());
  tensor.dims = value.shape();
  tensor.raw_data = owner->bytes();
  tensor.owner = owner;
  return tensor;
}

std::optional<Literal> widened(const OnnxTensor& tensor, const fs::path& model_dir) {
  const bool is_signed = tensor.data_type == onnx_type::kInt4;
  if (!is_signed && tensor.data_type != onnx_type::kUint4) return std::nullopt;
  const int64_t count = count_elements(tensor);
  OnnxTensor pairs = tensor;
  pairs.data_type = onnx_type::kUint8;
  pairs.dims = {(count + 1) / 2};
  const Literal packed = to_literal(pairs, model_dir);
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint8_t pair = static_cast<uint8_t>(packed.bytes()[i / 2]);
    const int value = i % 2 == 0 ? pair & 15 : pair >> 4;
    bytes[i] = static_cast<std::byte>(is_signed && value > 7 ? value - 16 : value);
  }
  return Literal(is_signed ? ElementType::i8 : ElementType::u8, tensor.dims, std::move(bytes));
}

MappedFile map_file(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    const std::string reason =
        descriptor < 0 ? std::strerror(errno) : std::string("not a regular file");
    if (descriptor >= 0) close(descriptor);
    throw CompileError(fmt::format("cannot read \"{}\": {}", path.string(), reason));
  }
  const size_t size = static_cast<size_t>(status.st_size);
  if (size == 0) {
    close(descriptor);
    return {};
  }
  void* const address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const std::string reason = address == MAP_FAILED ? std::strerror(errno) : "";
  close(descriptor);
  if (address == MAP_FAILED) {
    throw CompileError(fmt::format("cannot map \"{}\": {}", path.string(), reason));
  }
  return {{static_cast<const std::byte*>(address), size},
          std::shared_ptr<const void>(
              address, [size](const void* mapped) { munmap(const_cast<void*>(mapped), size); })};
}

Literal read_tensor_pb(const std::string& path) {
  try {
    const MappedFile file = map_file(path);
    const std::string_view bytes(reinterpret_cast<const char*>(file.bytes.data()),
                                 file.bytes.size());
    return to_literal(parse_tensor_proto(bytes), {});
  } catch (const CompileError& error) {
    throw CompileError(path + ": " + error.what());
  }
}

void write_tensor_pb(const std::string& path, const std::string& name, const Literal& value) {
  const std::string bytes = serialize_tensor_proto(name, onnx_data_type_of(value.element()),
                                                   value.shape(), value.bytes());
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw CompileError(path + ": cannot write the tensor");
}

}  // namespace backcast
