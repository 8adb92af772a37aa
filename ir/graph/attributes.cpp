// What is generic over all attribute structs: replacing, substituting, hashing, comparing.
#include "ir/graph/attributes.h"

#include <bit>

namespace backcast {
namespace {

uint64_t combine(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

uint64_t hash_of(std::string_view text) { return std::hash<std::string_view>()(text); }
uint64_t hash_of(bool value) { return value; }
uint64_t hash_of(int64_t value) { return static_cast<uint64_t>(value); }
uint64_t hash_of(double value) { return std::bit_cast<uint64_t>(value); }
uint64_t hash_of(ElementType value) { return static_cast<uint64_t>(value); }
uint64_t hash_of(const FunctionRef& value) { return hash_of(std::string_view(value.name)); }
uint64_t hash_of(const Dim& value) { return hash_of(std::string_view(value.to_string())); }
uint64_t hash_of(const Literal& value) { return value.hash(); }

template <class T>
uint64_t hash_of(const std::vector<T>& values) {
  uint64_t hash = values.size();
  for (const T& value : values) hash = combine(hash, hash_of(value));
  return hash;
}

}  // namespace

bool same_value(const AttrValue& a, const AttrValue& b) {
  const double* x = std::get_if<double>(&a);
  const double* y = std::get_if<double>(&b);
  if (x && y) return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*y);
  return a == b;
}

Attrs Attrs::with(const std::vector<AttrField>& replaced) const {
  if (replaced.empty()) return *this;
  if (empty()) throw CompileError("unknown attribute \"" + replaced[0].name + "\"");
  Attrs result;
  result.impl_ = impl_->with(replaced);
  return result;
}

Attrs Attrs::substitute(const std::map<std::string, Dim>& replacement) const {
  std::vector<AttrField> changed;
  for (AttrField& field : fields()) {
    if (Dim* dim = std::get_if<Dim>(&field.value)) {
      changed.push_back({std::move(field.name), dim->substitute(replacement)});
    } else if (Dims* dims = std::get_if<Dims>(&field.value)) {
      for (Dim& d : *dims) d = d.substitute(replacement);
      changed.push_back(std::move(field));
    }
  }
  return with(changed);
}

uint64_t Attrs::hash() const {
  uint64_t hash = 0;
  for (const AttrField& field : fields()) {
    hash = combine(hash, hash_of(std::string_view(field.name)));
    hash = combine(hash, field.value.index());
    hash = combine(hash, std::visit([](const auto& value) { return hash_of(value); }, field.value));
  }
  return hash;
}

bool operator==(const Attrs& a, const Attrs& b) {
  if (a.impl_ == b.impl_) return true;
  if (!a.same_struct(b)) return false;
  const std::vector<AttrField> x = a.fields();
  const std::vector<AttrField> y = b.fields();
  for (size_t i = 0; i < x.size(); ++i) {
    if (!same_value(x[i].value, y[i].value)) return false;
  }
  return true;
}

}  // namespace backcast
