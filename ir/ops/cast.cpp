// cast: y = x in another element type; floats to integers truncate and saturate, NaN gives 0.
#include <limits>

#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_cast(const InferContext& c) {
  return TensorType{c.attrs.as<CastAttrs>().to, c.tensor(0).shape};
}

/// Toward zero, saturating; NaN gives 0.
template <class To>
To saturate(double x) {
  if (std::isnan(x)) return 0;
  double low = static_cast<double>(std::numeric_limits<To>::min());
  double above = std::ldexp(1.0, std::numeric_limits<To>::digits);
  if (x <= low) return std::numeric_limits<To>::min();
  if (x >= above) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

Value evaluate_cast(const EvalContext& c) {
  TensorWriter out = result_writer(c);
  const Literal& x = c.tensor(0);
  ElementType to = c.node.type.tensor().element;
  visit_compute_type(x.element(), [&]<class From>(From) {
    visit_compute_type(to, [&]<class To>(To) {
      for (int64_t i = 0; i < out.count(); ++i) {
        From value = element<From>(x, i);
        if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                      !std::is_same_v<To, bool>) {
          out.set(i, saturate<To>(static_cast<double>(value)));
        } else {
          out.set(i, value);
        }
      }
    });
  });
  return out.finish();
}

}  // namespace

const OpDef cast = {
    .name = "cast",
    .documentation =
        "y = x in another element type; floats to integers truncate and saturate, NaN gives 0.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = CastAttrs{},
    .infer = infer_cast,
    .evaluate = evaluate_cast};

}  // namespace backcast::ops
