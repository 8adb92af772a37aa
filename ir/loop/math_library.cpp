// The library's index: builds every function once, widens functions to lanes, collects what kernels
// call.
#include "ir/loop/math_library.h"

#include <set>
#include <vector>

#include "ir/graph/error.h"
#include "ir/loop/math_builder.h"
#include "ir/loop/visit.h"

namespace backcast::loop {
namespace {

math::Library build(bool fma) {
  math::Library library;
  for (const math::Format* format : {&math::f32_format(), &math::f64_format()}) {
    math::add_exponentials(library, *format, fma);
    math::add_logarithms(library, *format, fma);
    math::add_powers(library, *format, fma);
    math::add_trigonometry(library, *format, fma);
    math::add_rounding(library, *format, fma);
  }
  math::add_roots(library);
  math::add_conversions(library);
  return library;
}

struct Stated {
  const char* name;
  double f32, f64;
};
/// Bounds for both variants; the measured figures are in ir/loop/math/README.md.
constexpr Stated kStated[] = {
    {"exp", 1.5, 1.5}, {"expm1", 2, 2.5}, {"sinh", 3, 3},    {"cosh", 2, 2},  {"tanh", 3, 3},
    {"sigmoid", 3, 3}, {"erf", 2, 2},     {"log", 1.5, 1.5}, {"log1p", 2, 2}, {"asinh", 4, 4},
    {"acosh", 4, 4},   {"atanh", 4, 4},   {"pow", 1, 1},     {"sin", 2, 2},   {"cos", 2, 2},
    {"tan", 4, 4},     {"asin", 3, 3},    {"acos", 3, 3},    {"atan", 3, 3},
};

/// "exp.f32x8" → {"exp.f32", 8}.
std::pair<std::string, int32_t> split_lanes(const std::string& name) {
  const size_t digits = name.find_last_not_of("0123456789");
  const bool wide = digits != std::string::npos && digits + 1 < name.size() && name[digits] == 'x';
  if (!wide) return {name, 1};
  return {name.substr(0, digits), std::stoi(name.substr(digits + 1))};
}

}  // namespace

const std::map<std::string, MathFunction>& math_library(bool fma_variants) {
  static const math::Library plain = build(false);
  static const math::Library fused = build(true);
  return fma_variants ? fused : plain;
}

double stated_ulp(const std::string& function) {
  for (const Stated& row : kStated) {
    if (function == row.name + math::f32_format().suffix) return row.f32;
    if (function == row.name + math::f64_format().suffix) return row.f64;
  }
  BC_CHECK(math_library(false).contains(function), "no math function {}", function);
  return 0;
}

std::string lane_name(const std::string& function, int32_t lanes) {
  return lanes == 1 ? function : function + "x" + std::to_string(lanes);
}

std::string called_name(const ExprNode& call) {
  const auto [scalar, lanes] = split_lanes(call.name);
  BC_CHECK(lanes == 1 || lanes == call.type.lanes, "call of {} on {} lanes", call.name,
           call.type.lanes);
  return lane_name(scalar, call.type.lanes);
}

MathFunction MathFunction::widen(int32_t lanes) const {
  if (lanes == 1) return *this;
  MathFunction wide;
  wide.name = lane_name(name, lanes);
  for (const Param& param : params) {
    wide.params.push_back({param.name, param.type.with_lanes(lanes)});
  }
  // Every node keeps its shape; only the type gains lanes. Constants are splats.
  const std::function<Expr(const Expr&)> widened = [&](const Expr& e) {
    ExprNode node = *e;
    node.type = node.type.with_lanes(lanes);
    if (node.kind == ExprKind::call) node.name = lane_name(node.name, lanes);
    return Expr(std::make_shared<const ExprNode>(std::move(node)));
  };
  for (const auto& [let_name, value] : lets) {
    wide.lets.emplace_back(let_name, rewrite(value, widened));
  }
  wide.result = rewrite(result, widened);
  return wide;
}

std::map<std::string, MathFunction> functions_for(const std::map<std::string, Kernel>& kernels,
                                                  bool fma_variants) {
  return functions_for(kernels, math_library(fma_variants));
}

std::map<std::string, MathFunction> functions_for(
    const std::map<std::string, Kernel>& kernels,
    const std::map<std::string, MathFunction>& library) {
  std::map<std::string, MathFunction> needed;
  std::vector<std::string> wanted;
  const std::function<void(const Expr&)> note_call = [&](const Expr& e) {
    if (e->kind != ExprKind::call) return;
    wanted.push_back(called_name(*e));
  };
  for (const auto& [name, kernel] : kernels) visit(kernel.body, {}, note_call);
  while (!wanted.empty()) {
    const std::string name = wanted.back();
    wanted.pop_back();
    if (needed.contains(name)) continue;
    const auto [scalar, lanes] = split_lanes(name);
    const auto found = library.find(scalar);
    BC_CHECK(found != library.end(), "no math function {}", scalar);
    const MathFunction function = found->second.widen(lanes);
    for (const auto& [let_name, value] : function.lets) visit(value, note_call);
    visit(function.result, note_call);
    needed.emplace(name, function);
  }
  return needed;
}

}  // namespace backcast::loop
