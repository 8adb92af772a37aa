// A trip's adjoint needs the carries before the trip: the forward scan is asked for its trajectory.
// The backward scan then carries the adjoints of the carries and the sums of those of the
// invariants, over the executed trips in the opposite order.
#include "ir/ops/scan_gradient.h"

#include "ir/graph/builder.h"
#include "ir/ops/adjoint.h"
#include "ir/ops/ops.h"
#include "ir/ops/scan_layout.h"
#include "ir/ops/scan_segments.h"

namespace backcast::ops {
namespace {

/// A trajectory of more rows is no use on any device: such a length stands for "no bound".
constexpr int64_t kMostTrips = int64_t{1} << 30;

bool is_float_tensor(const Type& type) {
  return type.is_tensor() && is_float(type.tensor().element);
}

bool has_float_leaf(const Type& type) {
  for (const TensorType& tensor : flatten(type)) {
    if (is_float(tensor.element)) return true;
  }
  return false;
}

/// Which elements of a function's tuple result depend on the parameters that `active` marks.
std::vector<bool> active_results(const Function& function, const std::vector<bool>& active) {
  std::vector<bool> on(function.nodes.size(), false);
  for (size_t i = 0; i < active.size(); ++i) on[i] = active[i];
  for (size_t i = active.size(); i < on.size(); ++i) {
    const Node& node = function.nodes[i];
    if (node.op->gradient.is_zero() || !has_float_leaf(node.type)) continue;
    for (ValueId operand : node.operands) {
      on[i] = on[i] || on[static_cast<size_t>(operand.index)];
    }
  }
  const Node& result = function.node(function.result);
  const std::vector<Type>& types = result.type.elements();
  std::vector<bool> elements;
  for (size_t i = 0; i < types.size(); ++i) {
    const ValueId source = result.op == &tuple ? result.operands[i] : function.result;
    elements.push_back(on[static_cast<size_t>(source.index)] && is_float_tensor(types[i]));
  }
  return elements;
}

class ScanGradient {
 public:
  explicit ScanGradient(GradientContext& context)
      : context_(context),
        builder_(context.builder),
        attrs_(context.node.attrs.as<ScanAttrs>()),
        layout_(scan_layout(context.node)),
        body_(builder_.module().function(attrs_.body.name)) {}

  std::vector<Adjoint> run() {
    if (attrs_.length.is_constant() && attrs_.length.constant() > kMostTrips) {
      throw CompileError(context_.node.loc,
                         "has no bound on its trips, whose values a gradient keeps; give the loop "
                         "one with --max-trips");
    }
    find_active();
    const std::string vjp = context_.services.vjp_function(attrs_.body.name, active_);
    const ValueId forward = emit_forward();
    const std::string backward = context_.services.add_function(backward_body(vjp));
    return emit_backward(forward, backward);
  }

 private:
  int64_t params() const { return static_cast<int64_t>(body_.params.size()); }
  const Type& param_type(int64_t i) const {
    return body_.type(body_.params[static_cast<size_t>(i)]);
  }
  bool is_carry(int64_t param) const { return param < layout_.carries; }
  bool is_x(int64_t param) const {
    return param >= layout_.carries && param < layout_.carries + layout_.xs;
  }
  bool active(int64_t param) const { return active_[static_cast<size_t>(param)]; }
  /// The cotangent of element i of the scan's result.
  Adjoint cotangent(int64_t i) const {
    const std::vector<Adjoint>& elements = context_.cotangent.elements;
    return elements.empty() ? Adjoint() : elements[static_cast<size_t>(i)];
  }
  /// Whether carry c had a cotangent for each of its earlier values.
  Adjoint trajectory_cotangent(int64_t c) const {
    return attrs_.trajectory ? cotangent(layout_.first_trajectory() + c) : Adjoint();
  }

  /// A carry is active when it starts from something wanted or becomes something active.
  void find_active() {
    active_.assign(static_cast<size_t>(params()), false);
    for (int64_t p = 0; p < params(); ++p) {
      active_[static_cast<size_t>(p)] =
          context_.wanted[static_cast<size_t>(p + 1)] && is_float_tensor(param_type(p));
    }
    for (bool grown = true; grown;) {
      grown = false;
      const std::vector<bool> results = active_results(body_, active_);
      for (int64_t c = 0; c < layout_.carries; ++c) {
        if (!results[static_cast<size_t>(c)] || active(c)) continue;
        active_[static_cast<size_t>(c)] = true;
        grown = true;
      }
    }
  }

  ValueId emit_forward() {
    if (attrs_.trajectory) return context_.result;
    ScanAttrs attrs = attrs_;
    attrs.trajectory = true;
    return builder_.emit(scan, context_.node.operands, attrs);
  }

  /// Parameters: adjoints of active carries; sums of the adjoints of active invariants; rows of the
  /// xs, of the trajectory, of the cotangents of ys, of those of the trajectory; the invariants.
  Function backward_body(const std::string& vjp) {
    Builder b(builder_.module(), attrs_.body.name + "_backward");
    b.set_loc(builder_.loc());
    std::vector<ValueId> adjoints(static_cast<size_t>(params()));
    for (int64_t p = 0; p < params(); ++p) {
      if (active(p) && is_carry(p)) {
        adjoints[static_cast<size_t>(p)] = b.parameter(fmt::format("adjoint{}", p), param_type(p));
      }
    }
    for (int64_t p = layout_.carries + layout_.xs; p < params(); ++p) {
      if (active(p)) {
        adjoints[static_cast<size_t>(p)] = b.parameter(fmt::format("sum{}", p), param_type(p));
      }
    }
    std::vector<ValueId> operands(static_cast<size_t>(params()));
    for (int64_t p = 0; p < params(); ++p) {
      const int64_t param = p < layout_.xs ? layout_.carries + p : p - layout_.xs;
      if (p >= layout_.xs + layout_.carries) break;
      operands[static_cast<size_t>(param)] =
          b.parameter(fmt::format("value{}", param), param_type(param));
    }
    std::vector<ValueId> seeds(static_cast<size_t>(layout_.carries + layout_.ys));
    const std::vector<Type>& results = body_.result_type().elements();
    for (int64_t i = layout_.carries; i < layout_.carries + layout_.ys; ++i) {
      if (!has_cotangent(i)) continue;
      const Type& type = results[static_cast<size_t>(i)];
      seeds[static_cast<size_t>(i)] = b.parameter(fmt::format("cotangent{}", i), type);
    }
    std::vector<ValueId> earlier(static_cast<size_t>(layout_.carries));
    for (int64_t c = 0; c < layout_.carries; ++c) {
      if (!has_earlier(c)) continue;
      earlier[static_cast<size_t>(c)] = b.parameter(fmt::format("earlier{}", c), param_type(c));
    }
    for (int64_t p = layout_.carries + layout_.xs; p < params(); ++p) {
      operands[static_cast<size_t>(p)] = b.parameter(fmt::format("value{}", p), param_type(p));
    }
    for (int64_t c = 0; c < layout_.carries; ++c) seeds[size_t(c)] = adjoints[size_t(c)];
    for (size_t i = 0; i < seeds.size(); ++i) {
      if (!is_float_tensor(results[i])) continue;
      operands.push_back(seeds[i].valid() ? seeds[i] : emit_zeros(b, results[i].tensor()));
    }
    return finish_backward(b, b.emit(call, operands, CallAttrs{{vjp}}), adjoints, earlier);
  }

  bool has_cotangent(int64_t result) const {
    const std::vector<Type>& results = body_.result_type().elements();
    return is_float_tensor(results[static_cast<size_t>(result)]) && !cotangent(result).is_zero();
  }
  bool has_earlier(int64_t c) const { return active(c) && !trajectory_cotangent(c).is_zero(); }

  /// Gives the new adjoints of the carries, the grown sums, and the adjoints of the rows of xs.
  Function finish_backward(Builder& b, ValueId given, const std::vector<ValueId>& adjoints,
                           const std::vector<ValueId>& earlier) const {
    std::vector<ValueId> carries, sums, rows;
    int64_t next = 0;
    for (int64_t p = 0; p < params(); ++p) {
      if (!active(p)) continue;
      ValueId part = b.emit(get, {given}, GetAttrs{next++});
      if (is_carry(p)) {
        const ValueId more = earlier[static_cast<size_t>(p)];
        carries.push_back(more.valid() ? b.emit(ops::add, {part, more}) : part);
      } else if (is_x(p)) {
        rows.push_back(part);
      } else {
        sums.push_back(b.emit(ops::add, {adjoints[static_cast<size_t>(p)], part}));
      }
    }
    carries.insert(carries.end(), sums.begin(), sums.end());
    carries.insert(carries.end(), rows.begin(), rows.end());
    return b.finish(b.emit(tuple, carries));
  }

  std::vector<Adjoint> emit_backward(ValueId forward, const std::string& backward) {
    const auto part = [&](int64_t i) { return builder_.emit(get, {forward}, GetAttrs{i}); };
    ScanAttrs attrs;
    attrs.body = {backward};
    attrs.length = attrs_.length;
    attrs.reverse = !attrs_.reverse;
    // Both scans clamp the number of trips alike; only a condition makes it another one.
    std::vector<ValueId> operands{attrs_.conditional ? part(layout_.executed())
                                                     : context_.operand(0)};
    for (int64_t p = 0; p < params(); ++p) {
      if (!active(p) || is_x(p)) continue;
      const Adjoint seed = is_carry(p) ? cotangent(p) : Adjoint();
      const Type type = builder_.type(context_.operand(static_cast<size_t>(p + 1)));
      operands.push_back(materialize(builder_, seed, type));
      ++attrs.carries;
    }
    const auto scanned = [&](ValueId id) {
      operands.push_back(id);
      ++attrs.xs;
    };
    for (int64_t x = 0; x < layout_.xs; ++x) {
      scanned(context_.operand(static_cast<size_t>(layout_.first_x() + x)));
    }
    for (int64_t c = 0; c < layout_.carries; ++c) scanned(part(layout_.first_trajectory() + c));
    for (int64_t i = layout_.carries; i < layout_.carries + layout_.ys; ++i) {
      if (has_cotangent(i)) scanned(*cotangent(i).value);
    }
    for (int64_t c = 0; c < layout_.carries; ++c) {
      if (has_earlier(c)) scanned(*trajectory_cotangent(c).value);
    }
    for (int64_t p = layout_.carries + layout_.xs; p < params(); ++p) {
      operands.push_back(context_.operand(static_cast<size_t>(p + 1)));
    }
    return adjoints_from(builder_.emit(scan, operands, attrs));
  }

  std::vector<Adjoint> adjoints_from(ValueId backward) const {
    std::vector<Adjoint> result(context_.node.operands.size());
    int64_t next = 0;
    for (const bool rows : {false, true}) {
      for (int64_t p = 0; p < params(); ++p) {
        if (!active(p) || is_x(p) != rows) continue;
        const ValueId part = builder_.emit(get, {backward}, GetAttrs{next++});
        if (context_.wanted[static_cast<size_t>(p + 1)]) result[static_cast<size_t>(p + 1)] = part;
      }
    }
    return result;
  }

  GradientContext& context_;
  Builder& builder_;
  const ScanAttrs attrs_;
  const ScanLayout layout_;
  const Function& body_;
  std::vector<bool> active_;  // per parameter of the body
};

}  // namespace

std::vector<Adjoint> gradient_of_scan(GradientContext& context) {
  if (has_segments(context.node.attrs.as<ScanAttrs>())) return gradient_of_segments(context);
  return ScanGradient(context).run();
}

}  // namespace backcast::ops
