// Building blocks of the math library.
#include "ir/loop/math_builder.h"

#include <set>
#include <vector>

#include "ir/graph/error.h"

namespace backcast::loop::math {

Val number(Type type, double value) {
  // Constants are numbers of their type, so that the text form gives the same bits back.
  const double exact = type.scalar == Scalar::f32 ? static_cast<float>(value) : value;
  return {constant(type, exact)};
}
Val number(Type type, int64_t value) {
  return {is_float(type.scalar) ? constant(type, static_cast<double>(value))
                                : int_constant(type, value)};
}
Val apply(Op op, const Val& a, const Val& b) { return {binary(op, a.expr, b.expr)}; }
Val operator-(const Val& a) { return {unary(Op::neg, a.expr)}; }
Val abs(const Val& a) { return {unary(Op::abs, a.expr)}; }
Val sqrt(const Val& a) { return {unary(Op::sqrt, a.expr)}; }
Val choose(const Val& condition, const Val& a, const Val& b) {
  return {select(condition.expr, a.expr, b.expr)};
}
Val cast(Scalar to, const Val& a) { return {loop::cast(Type{to}, a.expr)}; }
Val bitcast(Scalar to, const Val& a) { return {loop::bitcast(Type{to}, a.expr)}; }

const Format& f32_format() {
  static const Format format = {".f32", Scalar::f32, Scalar::i32, 32,       23,
                                127,    0x1.8p23,    0x4b400000,  INT32_MIN};
  return format;
}
const Format& f64_format() {
  static const Format format = {".f64", Scalar::f64, Scalar::i64,        64,       52,
                                1023,   0x1.8p52,    0x4338000000000000, INT64_MIN};
  return format;
}

Body::Body(const std::string& base_name, const Format& format, bool fma)
    : format_(&format), fma_(fma) {
  function_.name = base_name + format.suffix;
}

Val Body::param(const std::string& name) { return param(name, format_->real); }
Val Body::param(const std::string& name, Scalar scalar) {
  names_[name] = 1;
  function_.params.push_back({name, Type{scalar}});
  return {var(name, Type{scalar})};
}

Val Body::let(const std::string& name, const Val& value) {
  const int uses = names_[name]++;
  const std::string unique = uses == 0 ? name : name + "_" + std::to_string(uses + 1);
  function_.lets.emplace_back(unique, value.expr);
  return {var(unique, value.type())};
}

namespace {

/// Every inner node may be evaluated once only: shared ones must have a name.
void check_unshared(const Expr& root, std::set<const ExprNode*>& seen, const std::string& where) {
  std::vector<Expr> work = {root};
  while (!work.empty()) {
    const Expr e = work.back();
    work.pop_back();
    if (e->args.empty()) continue;
    BC_CHECK(seen.insert(e.get()).second, "{}: a value is used twice without a let", where);
    work.insert(work.end(), e->args.begin(), e->args.end());
  }
}

}  // namespace

MathFunction Body::finish(const Val& result) {
  function_.result = result.expr;
  std::set<const ExprNode*> seen;
  for (const auto& [name, value] : function_.lets) check_unshared(value, seen, function_.name);
  check_unshared(function_.result, seen, function_.name);
  return function_;
}

Val Body::mad(const Val& a, const Val& b, const Val& c) const {
  return fma_ ? Val{loop::fma(a.expr, b.expr, c.expr)} : a * b + c;
}

Val Body::polynomial(const Val& x, std::span<const double> c) const {
  Val sum = like(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = mad(sum, x, like(x, c[i]));
  return sum;
}

Val Body::polynomial(const Val& x, const Val& x2, std::span<const double> c) const {
  const auto pair = [&](size_t i) {
    return i + 1 < c.size() ? mad(x, c[i + 1], like(x, c[i])) : like(x, c[i]);
  };
  size_t i = (c.size() - 1) / 2 * 2;
  Val sum = pair(i);
  while (i > 0) {
    i -= 2;
    sum = mad(sum, x2, pair(i));
  }
  return sum;
}

Pair Body::fast_sum(const std::string& name, const Val& a, const Val& b) {
  const Val hi = let(name, a + b);
  return {hi, let(name + "_low", b - (hi - a))};
}

Pair Body::exact_sum(const std::string& name, const Val& a, const Val& b) {
  const Val hi = let(name, a + b);
  const Val part = let(name + "_part", hi - a);
  return {hi, let(name + "_low", (a - (hi - part)) + (b - part))};
}

Val Body::upper_half(const Val& a) const {
  const int64_t mask = format_->is_double() ? -(int64_t{1} << 27) : -(int64_t{1} << 12);
  return from_bits(bits(a) & mask);
}

Pair Body::exact_product(const std::string& name, const Val& a, const Val& b) {
  const Val hi = let(name, a * b);
  if (fma_) return {hi, let(name + "_low", Val{loop::fma(a.expr, b.expr, (-hi).expr)})};
  // Dekker: halves whose products are exact.
  const Val a_up = let(name + "_a_up", upper_half(a));
  const Val b_up = let(name + "_b_up", upper_half(b));
  const Val a_rest = let(name + "_a_rest", a - a_up);
  const Val b_rest = let(name + "_b_rest", b - b_up);
  return {hi, let(name + "_low",
                  (((a_up * b_up - hi) + a_up * b_rest) + a_rest * b_up) + a_rest * b_rest)};
}

Val Body::infinity() const {
  const int64_t exponent = 2 * format_->bias + 1;
  return from_bits(number({format_->integer}, exponent << format_->mantissa));
}
Val Body::nan() const {
  const int64_t exponent = 4 * format_->bias + 3;
  return from_bits(number({format_->integer}, exponent << (format_->mantissa - 1)));
}

Val Body::power_of_two(const Val& exponent) const {
  return from_bits((exponent + format_->bias) << format_->mantissa);
}

Val Body::call(const std::string& base_name, const Val& a) const {
  return {loop::call(base_name + format_->suffix, a.type(), {a.expr})};
}

}  // namespace backcast::loop::math
