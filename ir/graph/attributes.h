// Attributes of a node: one plain struct per operator with a field list, so that printing, parsing,
// hashing and comparing are written once for all operators.
//
//   struct ConcatAttrs {
//     int64_t axis = 0;
//     static constexpr auto fields() { return std::tuple{field("axis", &ConcatAttrs::axis)}; }
//   };
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <variant>
#include <vector>

#include "ir/graph/dim.h"
#include "ir/graph/error.h"
#include "ir/graph/literal.h"
#include "ir/graph/type.h"

namespace backcast {

/// The name of a function of the module; prints as `@name`.
struct FunctionRef {
  std::string name;
  friend bool operator==(const FunctionRef&, const FunctionRef&) = default;
};

/// What a field may hold. An enum field is a string here (see BACKCAST_ENUM_NAMES).
using AttrValue = std::variant<bool, int64_t, double, std::string, ElementType, FunctionRef,
                               std::vector<int64_t>, Dims, Dim, Literal>;

struct AttrField {
  std::string name;
  AttrValue value;
  friend bool operator==(const AttrField&, const AttrField&) = default;
};

/// Equality of values, doubles by their bits; NaN equals itself.
bool same_value(const AttrValue& a, const AttrValue& b);

template <class S, class T>
struct FieldDescriptor {
  std::string_view name;
  T S::*member;
};
template <class S, class T>
constexpr FieldDescriptor<S, T> field(std::string_view name, T S::*member) {
  return {name, member};
}

/// Specialised by BACKCAST_ENUM_NAMES for every enum that is a field: its names in order of value.
template <class E>
struct EnumNames;
#define BACKCAST_ENUM_NAMES(E, ...)                            \
  template <>                                                  \
  struct EnumNames<E> {                                        \
    static constexpr std::string_view names[] = {__VA_ARGS__}; \
  }

template <class E>
std::string_view enum_name(E value) {
  return EnumNames<E>::names[static_cast<size_t>(value)];
}

/// A shared, immutable, type-erased attribute struct; empty for operators without attributes.
class Attrs {
 public:
  Attrs() = default;
  template <class T>
  requires requires { T::fields(); }
  Attrs(T value) : impl_(std::make_shared<Model<T>>(std::move(value))) {}  // NOLINT

  bool empty() const { return impl_ == nullptr; }
  template <class T>
  const T& as() const {
    BC_CHECK(impl_ && impl_->type() == typeid(T), "attributes are not a {}", typeid(T).name());
    return static_cast<const Model<T>*>(impl_.get())->value;
  }
  template <class T>
  const T* get_if() const {
    return impl_ && impl_->type() == typeid(T) ? &static_cast<const Model<T>*>(impl_.get())->value
                                               : nullptr;
  }

  /// The fields in declaration order.
  std::vector<AttrField> fields() const {
    return impl_ ? impl_->fields() : std::vector<AttrField>{};
  }
  /// The same struct with some fields replaced. CompileError for an unknown field, a value of the
  /// wrong kind or an unknown enumerator.
  Attrs with(const std::vector<AttrField>& replaced) const;
  /// The same struct with every dimension substituted.
  Attrs substitute(const std::map<std::string, Dim>& replacement) const;

  /// Whether both hold the same struct, or none.
  bool same_struct(const Attrs& other) const {
    return empty() || other.empty() ? empty() == other.empty()
                                    : impl_->type() == other.impl_->type();
  }
  uint64_t hash() const;
  /// Same struct and same fields; doubles are compared by their bits.
  friend bool operator==(const Attrs& a, const Attrs& b);

 private:
  struct Base {
    virtual ~Base() = default;
    virtual const std::type_info& type() const = 0;
    virtual std::vector<AttrField> fields() const = 0;
    virtual std::shared_ptr<const Base> with(const std::vector<AttrField>& replaced) const = 0;
  };
  template <class T>
  struct Model;
  std::shared_ptr<const Base> impl_;
};

// ---- implementation ----------------------------------------------------------------------------

template <class T>
AttrValue to_attr_value(const T& value) {
  if constexpr (std::is_same_v<T, ElementType>) {
    return AttrValue(value);
  } else if constexpr (std::is_enum_v<T>) {
    return AttrValue(std::string(enum_name(value)));
  } else {
    return AttrValue(value);
  }
}

/// False when the value is of another kind or not an enumerator.
template <class T>
bool from_attr_value(const AttrValue& value, T& out) {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, ElementType>) {
    const std::string* name = std::get_if<std::string>(&value);
    if (!name) return false;
    for (size_t i = 0; i < std::size(EnumNames<T>::names); ++i) {
      if (EnumNames<T>::names[i] == *name) {
        out = static_cast<T>(i);
        return true;
      }
    }
    return false;
  } else {
    const T* held = std::get_if<T>(&value);
    if (held) out = *held;
    return held != nullptr;
  }
}

template <class T>
struct Attrs::Model final : Attrs::Base {
  explicit Model(T v) : value(std::move(v)) {}
  const std::type_info& type() const override { return typeid(T); }
  std::vector<AttrField> fields() const override {
    std::vector<AttrField> result;
    std::apply(
        [&](const auto&... f) {
          (result.push_back({std::string(f.name), to_attr_value(value.*(f.member))}), ...);
        },
        T::fields());
    return result;
  }
  std::shared_ptr<const Base> with(const std::vector<AttrField>& replaced) const override {
    T copy = value;
    for (const AttrField& r : replaced) {
      bool known = false;
      bool fits = false;
      std::apply(
          [&](const auto&... f) {
            ((f.name == r.name ? (known = true, fits = from_attr_value(r.value, copy.*(f.member)))
                               : false),
             ...);
          },
          T::fields());
      if (!known) throw CompileError("unknown attribute \"" + r.name + "\"");
      if (!fits) throw CompileError("attribute \"" + r.name + "\" has the wrong kind of value");
    }
    return std::make_shared<Model<T>>(std::move(copy));
  }
  T value;
};

}  // namespace backcast
