// What the top of a C file holds: typedefs and inline helpers, each written when something first
// asks for it. Internal to backend/c.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ir/loop/expr.h"
#include "ir/target/target_info.h"

namespace backcast::c_backend {

bool is_signed(loop::Scalar s);  // floats are

/// How values are held in C:
///   * scalars: stdint's types, float, double; bool as int 0 or 1; f16 and bf16 as their bits;
///     index as ptrdiff_t;
///   * vectors: GNU vectors; index as integers of the pointer's width; bool as a mask of 0 and -1
///     whose lanes have the width of what was compared ("mask bits").
class Prelude {
 public:
  explicit Prelude(const TargetInfo& target) : target_(target) {}
  const TargetInfo& target() const { return target_; }

  /// C type of a value.
  std::string type(loop::Type t, int mask_bits = kMaskBits);
  /// C type of an array's element: bool takes a byte.
  std::string memory_type(loop::Type t);
  /// Bits of a scalar; bool counts as its byte in memory.
  int bits(loop::Scalar s) const;
  /// The type of the same width that wraps: u32x8 for i32x8.
  std::string unsigned_type(loop::Type t);
  std::string mask_type(int mask_bits, int32_t lanes);
  /// Names of types in helper names: "f32", "i32x8", "mask32x8".
  std::string tag(loop::Type t, int mask_bits = kMaskBits) const;

  /// Defines a helper once: `make` returns its whole text and may ask for others, which come first.
  /// Returns `name`.
  std::string helper(const std::string& name, const std::function<std::string()>& make);
  /// What helpers need, in order.
  std::string text() const;
  /// Has any vector type been asked for?
  bool has_vectors() const { return has_vectors_; }

  static constexpr int kMaskBits = 32;

 private:
  std::string vector_type(loop::Scalar s, int32_t lanes);

  const TargetInfo& target_;
  std::set<std::string> known_;
  std::vector<std::string> typedefs_, helpers_;
  bool has_vectors_ = false;
};

/// Opening of a helper: `BC_INLINE f32x8 name(f32x8 a, f32x8 b)`.
std::string inline_function(const std::string& result, const std::string& name,
                            const std::string& params);

}  // namespace backcast::c_backend
