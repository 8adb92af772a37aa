// scan: a function of the module applied again and again: recurrences, loops with a bound.
#include "ir/graph/evaluator.h"
#include "ir/ops/call_rules.h"
#include "ir/ops/ops.h"
#include "ir/ops/scan_gradient.h"
#include "ir/ops/scan_layout.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {

ScanLayout scan_layout(const Node& node) {
  const ScanAttrs& attrs = node.attrs.as<ScanAttrs>();
  const int64_t operands = static_cast<int64_t>(node.operands.size());
  const int64_t results = static_cast<int64_t>(node.type.elements().size());
  const int64_t saved = attrs.trajectory ? attrs.carries + 1 : 0;
  return {attrs.carries, attrs.xs, operands - 1 - attrs.carries - attrs.xs,
          results - attrs.carries - saved, attrs.trajectory};
}

namespace {

Type stacked(const Dim& length, const TensorType& row) {
  TensorType result = row;
  result.shape.insert(result.shape.begin(), length);
  return result;
}

/// The type of a row of operand i, whose first dimension is the scan's length.
Type row_type(const InferContext& context, int64_t i, const Dim& length) {
  TensorType type = context.tensor(static_cast<size_t>(i));
  if (type.shape.empty() || !(type.shape[0] == length)) {
    fail("operand {} is scanned along its first dimension and must have {} rows; it is {}", i,
         length.to_string(), to_string(type));
  }
  type.shape.erase(type.shape.begin());
  return type;
}

void check_attributes(const InferContext& context, const ScanAttrs& attrs) {
  const TensorType& trips = context.tensor(0);
  if (trips.element != ElementType::i64 || trips.rank() != 0) {
    fail("the number of trips must be i64[] and is {}", to_string(trips));
  }
  const int64_t count = static_cast<int64_t>(context.operands.size()) - 1;
  if (attrs.carries < 0 || attrs.xs < 0 || attrs.carries > count ||
      attrs.xs > count - attrs.carries) {
    fail("{} carries and {} scanned operands, of {} operands behind the trips", attrs.carries,
         attrs.xs, count);
  }
  if (always_negative(attrs.length, context.module.symbols)) {
    fail("the length, {}, is negative", attrs.length.to_string());
  }
  if (attrs.segments < 1) fail("{} segments; there is at least one", attrs.segments);
  if (!attrs.conditional) return;
  if (attrs.reverse) fail("a conditional scan cannot run in reverse");
  if (attrs.carries == 0 || !(context.operands[1] == Type(TensorType{ElementType::boolean, {}}))) {
    fail("the first carry of a conditional scan must be bool[]");
  }
}

Type infer_scan(const InferContext& context) {
  const ScanAttrs& attrs = context.attrs.as<ScanAttrs>();
  check_attributes(context, attrs);
  std::vector<Type> arguments;
  for (int64_t i = 1; i < static_cast<int64_t>(context.operands.size()); ++i) {
    const bool scanned = i > attrs.carries && i <= attrs.carries + attrs.xs;
    const Type whole = context.tensor(static_cast<size_t>(i));
    arguments.push_back(scanned ? row_type(context, i, attrs.length) : whole);
  }
  const Type given = infer_application({context.module, arguments, context.attrs}, attrs.body);
  const size_t carries = static_cast<size_t>(attrs.carries);
  if (!given.is_tuple() || given.elements().size() < carries) {
    fail("@{} must give a tuple that begins with {} carries and gives {}", attrs.body.name, carries,
         given.to_string());
  }
  std::vector<Type> results;
  for (size_t i = 0; i < given.elements().size(); ++i) {
    const Type& element = given.elements()[i];
    if (!element.is_tensor()) {
      fail("element {} of what @{} gives is a tuple", i, attrs.body.name);
    }
    if (i < carries && !(element == arguments[i])) {
      fail("carry {} is {} and becomes {} in @{}; a carry keeps its type", i,
           arguments[i].to_string(), element.to_string(), attrs.body.name);
    }
    results.push_back(i < carries ? element : stacked(attrs.length, element.tensor()));
  }
  if (attrs.trajectory) {
    for (size_t i = 0; i < carries; ++i) {
      results.push_back(stacked(attrs.length, arguments[i].tensor()));
    }
    results.push_back(TensorType{ElementType::i64, {}});
  }
  return Type::tuple(std::move(results));
}

/// Row i of a tensor.
Literal row_of(const Literal& whole, int64_t i) {
  const std::vector<int64_t> shape(whole.shape().begin() + 1, whole.shape().end());
  const size_t bytes = whole.bytes().size() / static_cast<size_t>(whole.shape()[0]);
  const std::span<const std::byte> row =
      whole.bytes().subspan(static_cast<size_t>(i) * bytes, bytes);
  return Literal(whole.element(), shape, std::vector<std::byte>(row.begin(), row.end()));
}

class Execution {
 public:
  explicit Execution(const EvalContext& context)
      : context_(context),
        attrs_(context.node.attrs.as<ScanAttrs>()),
        layout_(scan_layout(context.node)),
        body_(context.module.function(attrs_.body.name)),
        length_(attrs_.length.evaluate(context.symbols)) {
    const std::vector<Type>& types = context.node.type.elements();
    const size_t rows = types.size() - static_cast<size_t>(layout_.carries) - attrs_.trajectory;
    for (size_t i = 0; i < rows; ++i) {
      const TensorType& type = types[static_cast<size_t>(layout_.carries) + i].tensor();
      rows_.emplace_back(type.element, context.evaluate(type.shape));
    }
    carries_.assign(context.operands.begin() + 1, context.operands.begin() + layout_.first_x());
  }

  Value run() {
    const int64_t trips = std::min(std::max<int64_t>(context_.tensor(0).as_int(0), 0), length_);
    int64_t executed = 0;
    for (; executed < trips; ++executed) {
      if (attrs_.conditional && carries_[0].tensor.as_int(0) == 0) break;
      trip(attrs_.reverse ? trips - 1 - executed : executed);
    }
    std::vector<Value> results = carries_;
    for (ResultBuffer& rows : rows_) results.emplace_back(rows.finish());
    if (attrs_.trajectory) results.emplace_back(Literal::from_ints({}, {executed}));
    return Value::make_tuple(std::move(results));
  }

 private:
  void trip(int64_t i) {
    std::vector<Value> arguments = carries_;
    for (int64_t x = 0; x < layout_.xs; ++x) {
      arguments.push_back(row_of(context_.tensor(static_cast<size_t>(layout_.first_x() + x)), i));
    }
    arguments.insert(arguments.end(), context_.operands.begin() + layout_.first_invariant(),
                     context_.operands.end());
    const Value given = backcast::evaluate(context_.module, body_, arguments, context_.symbols);
    for (int64_t y = 0; y < layout_.ys; ++y) {
      store(static_cast<size_t>(y), i, given.elements[static_cast<size_t>(layout_.carries + y)]);
    }
    for (size_t c = 0; attrs_.trajectory && c < carries_.size(); ++c) {
      store(static_cast<size_t>(layout_.ys) + c, i, carries_[c]);
    }
    carries_.assign(given.elements.begin(), given.elements.begin() + layout_.carries);
  }

  void store(size_t which, int64_t i, const Value& row) {
    const std::span<const std::byte> bytes = row.tensor.bytes();
    std::byte* to = rows_[which].data<std::byte>() + static_cast<size_t>(i) * bytes.size();
    std::copy(bytes.begin(), bytes.end(), to);
  }

  const EvalContext& context_;
  const ScanAttrs& attrs_;
  const ScanLayout layout_;
  const Function& body_;
  int64_t length_;
  std::vector<Value> carries_;
  std::vector<ResultBuffer> rows_;  // ys, then the carries of the trajectory
};

Value evaluate_scan(const EvalContext& context) { return Execution(context).run(); }

}  // namespace

const OpDef scan = {
    .name = "scan",
    .documentation =
        "Applies `body` to the carries, one row of each scanned operand and the invariants, as "
        "many "
        "times as there are trips; gives the last carries and what the body gives beside them, "
        "stacked.",
    .min_operands = 1,
    .max_operands = -1,
    .default_attrs = ScanAttrs{},
    .infer = infer_scan,
    .evaluate = evaluate_scan,
    .gradient = gradient_of_scan,
};

}  // namespace backcast::ops
