// See prelude.h.
#include "backend/c/prelude.h"

#include "backend/library/abi.h"
#include "ir/graph/error.h"

namespace backcast::c_backend {

using loop::Scalar;

bool is_signed(Scalar s) {
  switch (s) {
    case Scalar::i8:
    case Scalar::i16:
    case Scalar::i32:
    case Scalar::i64:
    case Scalar::index:
      return true;
    default:
      return loop::is_float(s);
  }
}

int Prelude::bits(Scalar s) const {
  if (s == Scalar::index) return target_.pointer_bits;
  return static_cast<int>(8 * byte_size(loop::element_of(s)));
}

namespace {

/// The scalar that stands for `s` inside vectors and memory.
Scalar storage_scalar(Scalar s, int pointer_bits) {
  switch (s) {
    case Scalar::boolean:
      return Scalar::u8;
    case Scalar::f16:
    case Scalar::bf16:
      return Scalar::u16;
    case Scalar::index:
      return pointer_bits == 64 ? Scalar::i64 : Scalar::i32;
    default:
      return s;
  }
}

}  // namespace

std::string Prelude::vector_type(Scalar s, int32_t lanes) {
  const Scalar element = storage_scalar(s, target_.pointer_bits);
  const std::string name = fmt::format("{}x{}", loop::name_of(element), lanes);
  has_vectors_ = true;
  if (known_.insert(name).second) {
    BC_CHECK((lanes & (lanes - 1)) == 0, "vectors of {} lanes do not exist in C", lanes);
    typedefs_.push_back(fmt::format("typedef {} {} __attribute__((vector_size({})));\n",
                                    c_type_of(loop::element_of(element)), name,
                                    lanes * bits(element) / 8));
  }
  return name;
}

std::string Prelude::type(loop::Type t, int mask_bits) {
  if (t.is_vector()) {
    if (t.scalar == Scalar::boolean) return mask_type(mask_bits, t.lanes);
    return vector_type(t.scalar, t.lanes);
  }
  if (t.scalar == Scalar::boolean) return "int";
  if (t.scalar == Scalar::index) return "index_t";
  return std::string(c_type_of(loop::element_of(t.scalar)));
}

std::string Prelude::memory_type(loop::Type t) {
  if (t.scalar == Scalar::boolean) t.scalar = Scalar::u8;
  return type(t);
}

std::string Prelude::unsigned_type(loop::Type t) {
  constexpr Scalar kUnsigned[] = {Scalar::u8, Scalar::u16, Scalar::u32, Scalar::u64};
  const int width = bits(t.scalar);
  return type({kUnsigned[width == 8 ? 0 : width == 16 ? 1 : width == 32 ? 2 : 3], t.lanes});
}

std::string Prelude::mask_type(int mask_bits, int32_t lanes) {
  constexpr Scalar kSigned[] = {Scalar::i8, Scalar::i16, Scalar::i32, Scalar::i64};
  return vector_type(kSigned[mask_bits == 8    ? 0
                             : mask_bits == 16 ? 1
                             : mask_bits == 32 ? 2
                                               : 3],
                     lanes);
}

std::string Prelude::tag(loop::Type t, int mask_bits) const {
  if (!t.is_vector()) return std::string(loop::name_of(t.scalar));
  if (t.scalar == Scalar::boolean) return fmt::format("mask{}x{}", mask_bits, t.lanes);
  return fmt::format("{}x{}", loop::name_of(storage_scalar(t.scalar, target_.pointer_bits)),
                     t.lanes);
}

std::string Prelude::helper(const std::string& name, const std::function<std::string()>& make) {
  if (known_.insert(name).second) helpers_.push_back(make());
  return name;
}

std::string Prelude::text() const {
  std::string result;
  for (const std::string& line : typedefs_) result += line;
  if (!typedefs_.empty()) result += '\n';
  for (const std::string& text : helpers_) result += text + "\n";
  return result;
}

std::string inline_function(const std::string& result, const std::string& name,
                            const std::string& params) {
  return fmt::format("BC_INLINE {} {}({})", result, name, params);
}

}  // namespace backcast::c_backend
