// Transfer rules of elementwise operators. Most are monotone in each operand: the operator's own
// evaluation at the right ends gives the bounds.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "ir/ops/interval.h"
#include "ir/ops/ops.h"

namespace backcast::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// How far a computed result may be from the mathematical one.
enum class Rounding { exact, once, approximate };

struct Monotone {
  std::string_view directions;  // per operand: + where the result grows with it, - where it falls
  Rounding rounding;
  double domain_low = -kInfinity;  // operands below are not covered
  bool integers = false;           // also means the same for integers, evaluated in double
  bool jumps = false;              // however near two operands are, results may be apart
};

const std::map<const OpDef*, Monotone>& monotone_operators() {
  static const std::map<const OpDef*, Monotone> table{
      {&relu, {"+", Rounding::exact, -kInfinity, true}},
      {&neg, {"-", Rounding::exact, -kInfinity, true}},
      {&sign, {"+", Rounding::exact, -kInfinity, true, true}},
      {&min, {"++", Rounding::exact, -kInfinity, true}},
      {&max, {"++", Rounding::exact, -kInfinity, true}},
      {&clamp, {"+++", Rounding::exact, -kInfinity, true}},
      {&floor, {"+", Rounding::exact, -kInfinity, false, true}},
      {&ceil, {"+", Rounding::exact, -kInfinity, false, true}},
      {&round_even, {"+", Rounding::exact, -kInfinity, false, true}},
      {&sqrt, {"+", Rounding::once, 0}},
      {&exp, {"+", Rounding::approximate}},
      {&log, {"+", Rounding::approximate, 1e-37}},
      {&sinh, {"+", Rounding::approximate}},
      {&asinh, {"+", Rounding::approximate}},
      {&atan, {"+", Rounding::approximate}},
      {&tanh, {"+", Rounding::approximate}},
      {&sigmoid, {"+", Rounding::approximate}},
      {&erf, {"+", Rounding::approximate}},
  };
  return table;
}

bool is_finite(const Bounds& bounds, size_t i) {
  return std::isfinite(bounds.planes[Bounds::low][i]) &&
         std::isfinite(bounds.planes[Bounds::high][i]);
}

void set_unknown(Bounds& bounds, size_t i) {
  bounds.planes[Bounds::low][i] = -kInfinity;
  bounds.planes[Bounds::high][i] = kInfinity;
  bounds.planes[Bounds::varies][i] = 1;
}

/// The operands with equally many entries each.
std::vector<Bounds> aligned(const IntervalContext& context) {
  const size_t rank = static_cast<size_t>(context.node.type.tensor().rank());
  std::vector<int64_t> shape(rank, 1);
  std::vector<Bounds> operands;
  for (const Bounds* operand : context.operands) {
    operands.push_back(*operand);
    if (operand->shape.empty()) operands.back().shape.assign(rank, 1);
    for (size_t d = 0; d < rank; ++d) shape[d] = std::max(shape[d], operands.back().shape[d]);
  }
  for (Bounds& operand : operands) operand = expand(operand, shape);
  return operands;
}

/// Without bounds yet: fixed where all operands are, unknown where one is.
Bounds result_for(const std::vector<Bounds>& operands) {
  Bounds result;
  result.shape = operands[0].shape;
  const size_t count = operands[0].planes[Bounds::low].size();
  for (std::vector<double>& plane : result.planes) plane.assign(count, 0);
  for (const Bounds& operand : operands) {
    for (size_t i = 0; i < count; ++i) {
      double& varies = result.planes[Bounds::varies][i];
      varies = std::max(varies, operand.planes[Bounds::varies][i]);
    }
  }
  return result;
}

void finish(const IntervalContext& context, Bounds& result, const std::vector<Bounds>& operands,
            Rounding rounding) {
  const ElementType element = context.node.type.tensor().element;
  const double unit = rounding == Rounding::exact  ? 0
                      : rounding == Rounding::once ? 4 * rounding_unit(element)
                                                   : kRoundingSlack * rounding_unit(element);
  for (size_t i = 0; i < result.planes[Bounds::low].size(); ++i) {
    for (const Bounds& operand : operands) {
      if (!is_finite(operand, i)) set_unknown(result, i);
    }
    double& low = result.planes[Bounds::low][i];
    double& high = result.planes[Bounds::high][i];
    if (unit != 0 && (low != 0 || high != 0)) {
      const double error = unit * std::max(std::abs(low), std::abs(high)) + flushed_below(element);
      low -= error;
      high += error;
    }
    result.planes[Bounds::reach][i] = std::max(std::abs(low), std::abs(high));
  }
}

std::vector<double> at_ends(const IntervalContext& context, const std::vector<Bounds>& operands,
                            std::string_view directions, bool upper) {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<const std::vector<double>*> planes;
  for (size_t k = 0; k < operands.size(); ++k) {
    shapes.push_back(operands[k].shape);
    planes.push_back(
        &operands[k].planes[(directions[k] == '+') == upper ? Bounds::high : Bounds::low]);
  }
  return evaluate_planes(context, context.node.attrs, shapes, planes);
}

std::optional<Bounds> monotone_interval(const IntervalContext& context) {
  const Monotone& rule = monotone_operators().at(context.node.op);
  if (!rule.integers && !is_float(context.types[0]->element)) return std::nullopt;
  const std::vector<Bounds> operands = aligned(context);
  for (const double low : operands[0].planes[Bounds::low]) {
    if (low < rule.domain_low) return std::nullopt;
  }
  Bounds result = result_for(operands);
  result.planes[Bounds::low] = at_ends(context, operands, rule.directions, false);
  result.planes[Bounds::high] = at_ends(context, operands, rule.directions, true);
  for (size_t i = 0; rule.jumps && i < result.planes[Bounds::low].size(); ++i) {
    if (result.planes[Bounds::low][i] != result.planes[Bounds::high][i]) {
      result.planes[Bounds::varies][i] = 1;
    }
  }
  finish(context, result, operands, rule.rounding);
  return result;
}

/// Half the distance from |c| to the next smaller number: what is less leaves c as it is.
double half_gap(double c, ElementType element) {
  const double size = std::abs(c);
  if (element == ElementType::f64) return (size - std::nextafter(size, 0.0)) / 2;
  const float single = static_cast<float>(size);
  if (!is_float(element) || static_cast<double>(single) != size) return 0;
  return (size - static_cast<double>(std::nextafter(single, 0.0F))) / 2;
}

/// a + sign · b
std::optional<Bounds> sum_interval(const IntervalContext& context, double sign) {
  const ElementType element = context.node.type.tensor().element;
  const std::vector<Bounds> operands = aligned(context);
  const Bounds &a = operands[0], &b = operands[1];
  Bounds result = result_for(operands);
  result.terms = a.terms + b.terms;
  for (size_t i = 0; i < result.planes[Bounds::low].size(); ++i) {
    const double b_low = b.planes[sign > 0 ? Bounds::low : Bounds::high][i];
    const double b_high = b.planes[sign > 0 ? Bounds::high : Bounds::low][i];
    result.planes[Bounds::low][i] = a.planes[Bounds::low][i] + sign * b_low;
    result.planes[Bounds::high][i] = a.planes[Bounds::high][i] + sign * b_high;
    result.planes[Bounds::reach][i] = a.planes[Bounds::reach][i] + b.planes[Bounds::reach][i];
  }
  widen_sums(result, element);
  // What rounds away, or is nothing, leaves the other operand.
  const auto rounds_away = [&](const Bounds& kept, const Bounds& other, double factor) {
    for (size_t i = 0; i < result.planes[Bounds::low].size(); ++i) {
      const double value = kept.planes[Bounds::low][i], reach = other.planes[Bounds::reach][i];
      if (value != kept.planes[Bounds::high][i]) continue;
      if (reach != 0 && !(reach * kRoundingSlack < half_gap(value, element))) continue;
      result.planes[Bounds::low][i] = result.planes[Bounds::high][i] = factor * value;
      result.planes[Bounds::reach][i] = std::abs(value);
      result.planes[Bounds::varies][i] = 0;
    }
  };
  rounds_away(a, b, 1);
  rounds_away(b, a, sign);
  for (const Bounds& operand : operands) {
    for (size_t i = 0; i < result.planes[Bounds::low].size(); ++i) {
      if (!is_finite(operand, i)) set_unknown(result, i);
    }
  }
  return result;
}
std::optional<Bounds> add_interval(const IntervalContext& context) {
  return sum_interval(context, 1);
}
std::optional<Bounds> sub_interval(const IntervalContext& context) {
  return sum_interval(context, -1);
}

/// Monotone in each operand, whatever the other is: the extremes lie at corners.
std::optional<Bounds> corner_interval(const IntervalContext& context) {
  const bool floating = is_float(context.types[0]->element);
  const bool divides = context.node.op == &div;
  if (divides && !floating) return std::nullopt;
  const std::vector<Bounds> operands = aligned(context);
  for (size_t i = 0; divides && i < operands[1].planes[Bounds::low].size(); ++i) {
    const double low = operands[1].planes[Bounds::low][i];
    const double high = operands[1].planes[Bounds::high][i];
    if (!(low > 0x1p-126) && !(high < -0x1p-126)) return std::nullopt;
  }
  Bounds result = result_for(operands);
  const size_t count = result.planes[Bounds::low].size();
  result.planes[Bounds::low].assign(count, kInfinity);
  result.planes[Bounds::high].assign(count, -kInfinity);
  for (const std::string_view corner : {"++", "+-"}) {
    for (const bool upper : {false, true}) {
      const std::vector<double> values = at_ends(context, operands, corner, upper);
      for (size_t i = 0; i < count; ++i) {
        result.planes[Bounds::low][i] = std::min(result.planes[Bounds::low][i], values[i]);
        result.planes[Bounds::high][i] = std::max(result.planes[Bounds::high][i], values[i]);
      }
    }
  }
  finish(context, result, operands, floating ? Rounding::once : Rounding::exact);
  return result;
}

std::optional<Bounds> abs_interval(const IntervalContext& context) {
  const std::vector<Bounds> operands = aligned(context);
  Bounds result = result_for(operands);
  for (size_t i = 0; i < result.planes[Bounds::low].size(); ++i) {
    const double low = operands[0].planes[Bounds::low][i];
    const double high = operands[0].planes[Bounds::high][i];
    result.planes[Bounds::low][i] =
        low <= 0 && high >= 0 ? 0 : std::min(std::abs(low), std::abs(high));
    result.planes[Bounds::high][i] = std::max(std::abs(low), std::abs(high));
  }
  finish(context, result, operands, Rounding::exact);
  return result;
}

std::optional<Bounds> wave_interval(const IntervalContext& context) {
  const std::vector<Bounds> operands = aligned(context);
  Bounds result = result_for(operands);
  for (size_t i = 0; i < result.planes[Bounds::low].size(); ++i) {
    result.planes[Bounds::low][i] = -1;
    result.planes[Bounds::high][i] = 1;
  }
  finish(context, result, operands, Rounding::approximate);
  return result;
}

std::optional<Bounds> compare_interval(const IntervalContext& context) {
  const std::vector<Bounds> operands = aligned(context);
  const Comparison direction = context.node.attrs.as<CompareAttrs>().direction;
  const bool falls = direction == Comparison::lt || direction == Comparison::le;
  const std::string_view directions = falls ? "-+" : "+-";
  Bounds result = result_for(operands);
  result.planes[Bounds::low] = at_ends(context, operands, directions, false);
  result.planes[Bounds::high] = at_ends(context, operands, directions, true);
  const bool equality = direction == Comparison::eq || direction == Comparison::ne;
  for (size_t i = 0; i < result.planes[Bounds::low].size(); ++i) {
    bool open = false;
    for (const Bounds& operand : operands) {
      const bool point = operand.planes[Bounds::low][i] == operand.planes[Bounds::high][i];
      open = open || !is_finite(operand, i) || (equality && !point);
    }
    if (open) {
      result.planes[Bounds::low][i] = 0;
      result.planes[Bounds::high][i] = 1;
    }
    result.planes[Bounds::reach][i] = 1;
  }
  return result;
}

std::optional<Bounds> select_interval(const IntervalContext& context) {
  const std::vector<Bounds> operands = aligned(context);
  const Bounds &condition = operands[0], &yes = operands[1], &no = operands[2];
  Bounds result = result_for(operands);
  for (size_t i = 0; i < result.planes[Bounds::low].size(); ++i) {
    const bool always = condition.planes[Bounds::low][i] == 1;
    const bool never = condition.planes[Bounds::high][i] == 0;
    for (const Bounds::Plane plane : {Bounds::low, Bounds::high, Bounds::varies}) {
      const double a = yes.planes[plane][i], b = no.planes[plane][i];
      double both = plane == Bounds::low ? std::min(a, b) : std::max(a, b);
      if (plane == Bounds::varies) both = std::max(both, condition.planes[plane][i]);
      result.planes[plane][i] = always ? a : never ? b : both;
    }
    result.planes[Bounds::reach][i] =
        std::max(yes.planes[Bounds::reach][i], no.planes[Bounds::reach][i]);
  }
  result.terms = std::max(yes.terms, no.terms);
  return result;
}

std::optional<Bounds> cast_interval(const IntervalContext& context) {
  const ElementType from = context.types[0]->element;
  const ElementType to = context.node.type.tensor().element;
  if (from == ElementType::boolean || to == ElementType::boolean) return std::nullopt;
  const std::vector<Bounds> operands = aligned(context);
  Bounds result = result_for(operands);
  if (is_integer(from) && is_integer(to)) {
    // Inside of the new type's range nothing changes; outside it wraps around.
    result.planes = operands[0].planes;
    return result;
  }
  result.planes[Bounds::low] = at_ends(context, operands, "+", false);
  result.planes[Bounds::high] = at_ends(context, operands, "+", true);
  finish(context, result, operands, Rounding::exact);
  return result;
}

std::optional<Bounds> same_interval(const IntervalContext& context) { return *context.operands[0]; }

}  // namespace

IntervalRule elementwise_interval(const OpDef& op) {
  if (monotone_operators().count(&op)) return monotone_interval;
  static const std::map<const OpDef*, IntervalRule> table{
      {&add, add_interval},
      {&sub, sub_interval},
      {&mul, corner_interval},
      {&div, corner_interval},
      {&abs, abs_interval},
      {&sin, wave_interval},
      {&cos, wave_interval},
      {&cast, cast_interval},
      {&compare, compare_interval},
      {&select, select_interval},
      {&stop_gradient, same_interval},
  };
  const auto found = table.find(&op);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace backcast::ops
