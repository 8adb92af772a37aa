// RNN, GRU and LSTM (also DynamicQuantizeLSTM): one scan per direction. What the input contributes
// to the gates is one product for all steps in front of the scan; its body holds what depends on
// the state.
#include <functional>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "frontend/rules/named_activation.h"
#include "frontend/rules/quantization.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

enum class Cell { rnn, gru, lstm };

struct CellTraits {
  int64_t gates;
  std::vector<std::string> activations;
};
CellTraits traits_of(Cell cell) {
  switch (cell) {
    case Cell::rnn:
      return {1, {"Tanh"}};
    case Cell::gru:
      return {3, {"Sigmoid", "Tanh"}};
    case Cell::lstm:
      return {4, {"Sigmoid", "Tanh", "Tanh"}};
  }
  BC_CHECK(false, "cell {}", static_cast<int>(cell));
}

/// The attributes and extents of a node.
struct Setting {
  Cell cell;
  CellTraits traits;
  std::vector<NamedActivation> activations;  // per direction
  Dim steps, batch, hidden;
  int64_t directions = 1;
  bool reversed = false;  // the only direction
  bool batch_first = false;
  double clip = 0;  // 0: none
  bool input_forget = false, linear_before_reset = false;
  bool training = false;
  bool quantised = false;  // W and R are, and stand as [directions, k, gates·hidden]
};

Setting setting_of(NodeContext& n, Cell cell, bool quantised) {
  Setting s{cell, traits_of(cell), {}, {}, {}, {}};
  s.training = is_training(n);
  s.quantised = quantised;
  if (quantised) note_rounding(n);
  const std::string direction = n.attr_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    n.fail(fmt::format("direction \"{}\" is not known", direction));
  }
  s.directions = direction == "bidirectional" ? 2 : 1;
  s.reversed = direction == "reverse";
  s.activations = recurrent_activations(n, s.traits.activations, s.directions);
  s.batch_first = n.attr_int("layout", 0) != 0;
  s.clip = n.attr_float("clip", 0);
  if (s.clip < 0) n.fail("attribute \"clip\" is negative");
  s.input_forget = n.attr_int("input_forget", 0) != 0;
  s.linear_before_reset = n.attr_int("linear_before_reset", 0) != 0;
  const Shape x = n.shape(0);
  Shape w = n.shape(1), r = n.shape(2);
  if (x.size() != 3 || w.size() != 3 || r.size() != 3) n.fail("X, W and R have to be of rank 3");
  if (quantised) {
    std::swap(w[1], w[2]);
    std::swap(r[1], r[2]);
  }
  s.steps = x[s.batch_first ? 1 : 0];
  s.batch = x[s.batch_first ? 0 : 1];
  s.hidden = r[2];
  const Dim rows = s.hidden * Dim(s.traits.gates);
  const Shape wanted_w = {Dim(s.directions), rows, x[2]},
              wanted_r = {Dim(s.directions), rows, r[2]};
  if (!(w == wanted_w) || !(r == wanted_r)) {
    n.fail(fmt::format("W has the shape {} and R {}; {} and {} fit the input and the direction",
                       to_string(w), to_string(r), to_string(wanted_w), to_string(wanted_r)));
  }
  const int64_t size = n.attr_int("hidden_size", -1);
  if (size >= 0 && !(s.hidden == Dim(size))) {
    n.fail(fmt::format("attribute \"hidden_size\" is {} and R has {}", size, s.hidden.to_string()));
  }
  return s;
}

/// Parts of a value along an axis, each `hidden` long.
ValueId part(Emitter& e, ValueId x, int64_t axis, const Dim& hidden, int64_t first,
             int64_t count = 1) {
  return e.slice_axis(x, axis, hidden * Dim(first), hidden * Dim(first + count));
}

/// A matrix [rows, k]; with a scale and a zero point where it is quantised.
struct Weights {
  ValueId values, scale, zero;
};

/// x[batch, k] · r[rows, k]ᵀ
ValueId times(Emitter& e, ValueId x, ValueId r) {
  DotGeneralAttrs attrs;
  attrs.lhs_contract = {e.rank(x) - 1};
  attrs.rhs_contract = {1};
  return e.dot(x, r, attrs);
}
ValueId times(Emitter& e, ValueId x, const Weights& r, bool training) {
  return r.scale.valid() ? dynamic_product(e, x, r.values, r.scale, r.zero, training)
                         : times(e, x, r.values);
}

/// The body of one direction's scan.
class CellBody {
 public:
  /// Operands behind the carries and the row: what the cell uses of these.
  struct Operands {
    Weights r;
    ValueId bias, peephole;
  };

  CellBody(const Setting& s, size_t direction, Emitter& e, Operands operands)
      : s_(s), first_(direction * s.traits.activations.size()), e_(e), o_(operands) {}

  /// The next states of h (and c) from those before; x holds the gates' parts of the input.
  std::vector<ValueId> step(ValueId x, const std::vector<ValueId>& states) {
    switch (s_.cell) {
      case Cell::rnn:
        return {activate(0, e_.add(x, times(e_, states[0], o_.r, s_.training)))};
      case Cell::gru:
        return {gru(x, states[0])};
      case Cell::lstm:
        return lstm(x, states[0], states[1]);
    }
    BC_CHECK(false, "cell {}", static_cast<int>(s_.cell));
  }

 private:
  ValueId activate(size_t which, ValueId x) {
    if (s_.clip > 0) x = e_.clamp(x, -s_.clip, s_.clip);
    return s_.activations[first_ + which].apply(e_, x);
  }
  ValueId gate(ValueId x, int64_t i, int64_t count = 1) {
    return part(e_, x, 1, s_.hidden, i, count);
  }

  /// Gates z, r, h.
  ValueId gru(ValueId x, ValueId h) {
    const ValueId r_zr = part(e_, o_.r.values, 0, s_.hidden, 0, 2);
    const ValueId r_h = part(e_, o_.r.values, 0, s_.hidden, 2);
    const ValueId zr = activate(0, e_.add(gate(x, 0, 2), times(e_, h, r_zr)));
    const ValueId z = gate(zr, 0), r = gate(zr, 1);
    ValueId candidate;
    if (s_.linear_before_reset) {
      ValueId state = times(e_, h, r_h);
      if (o_.bias.valid()) state = e_.add(state, o_.bias);
      candidate = e_.mul(r, state);
    } else {
      candidate = times(e_, e_.mul(r, h), r_h);
    }
    candidate = activate(1, e_.add(gate(x, 2), candidate));
    return e_.add(e_.mul(e_.sub(e_.like(z, 1), z), candidate), e_.mul(z, h));
  }

  /// Gates i, o, f, c.
  std::vector<ValueId> lstm(ValueId x, ValueId h, ValueId c) {
    const ValueId gates = e_.add(x, times(e_, h, o_.r, s_.training));
    const auto peep = [&](ValueId value, int64_t which, ValueId cell) {
      if (!o_.peephole.valid()) return value;
      return e_.add(value, e_.mul(part(e_, o_.peephole, 0, s_.hidden, which), cell));
    };
    const ValueId i = activate(0, peep(gate(gates, 0), 0, c));
    const ValueId f =
        s_.input_forget ? e_.sub(e_.like(i, 1), i) : activate(0, peep(gate(gates, 2), 2, c));
    const ValueId next = e_.add(e_.mul(f, c), e_.mul(i, activate(1, gate(gates, 3))));
    const ValueId o = activate(0, peep(gate(gates, 1), 1, next));
    return {e_.mul(o, s_.activations[first_ + 2].apply(e_, next)), next};
  }

  const Setting& s_;
  size_t first_;  // activation
  Emitter& e_;
  Operands o_;
};

class Recurrence {
 public:
  Recurrence(NodeContext& n, Cell cell, bool quantised = false)
      : n_(n), e_(n.e), s_(setting_of(n, cell, quantised)), holds_weights_(knows_recurrence()) {}

  void run() {
    x_ = s_.batch_first ? e_.transpose(n_.input(0), {1, 0, 2}) : n_.input(0);
    if (n_.has(4)) {
      const ValueId lengths = e_.cast(n_.input(4), ElementType::i64);
      if (!(e_.shape(lengths) == Shape{s_.batch}))
        n_.fail("sequence_lens needs a length per sequence");
      if (may_end_early()) lengths_ = lengths;
    }
    std::vector<std::vector<ValueId>> results;  // per direction: h, (c,) rows
    for (int64_t d = 0; d < s_.directions; ++d) results.push_back(direction(d));
    const size_t states = s_.cell == Cell::lstm ? 2 : 1;
    if (n_.wants(0)) n_.set(0, sequence(results));
    for (size_t k = 0; k < states; ++k) {
      if (n_.wants(k + 1)) n_.set(k + 1, final_state(results, k));
    }
  }

 private:
  /// The inputs as values of a function.
  struct Inputs {
    Emitter& e;
    std::function<ValueId(size_t)> value;
  };

  Inputs outside() {
    return {e_, [this](size_t i) { return n_.input(i); }};
  }

  /// Those inputs that are constants, inside of a body.
  Inputs constants(Emitter& e) {
    return {e, [this, &e](size_t i) { return e.constant(*n_.known_literal(i)); }};
  }

  /// The part of input i for a direction, without that axis; invalid when the input is absent.
  ValueId of_direction(size_t i, int64_t d) { return of_direction(outside(), i, d); }
  ValueId of_direction(const Inputs& inputs, size_t i, int64_t d) {
    if (!n_.has(i)) return {};
    const bool is_state = i == 5 || (i == 6 && s_.cell == Cell::lstm);
    const int64_t axis = is_state && s_.batch_first ? 1 : 0;
    if (n_.rank(i) <= axis) n_.fail(fmt::format("input {} has too few dimensions", i));
    Shape shape = n_.shape(i);
    if (!(shape[static_cast<size_t>(axis)] == Dim(s_.directions))) {
      n_.fail(fmt::format("input {} has the shape {}; its dimension {} has to be {}", i,
                          to_string(shape), axis, s_.directions));
    }
    shape.erase(shape.begin() + axis);
    Emitter& e = inputs.e;
    return e.reshape(e.slice_axis(inputs.value(i), axis, d, d + 1), shape);
  }

  /// W or R of a direction; its scale is input `scale`, and behind that stands its zero point.
  Weights weights(const Inputs& inputs, size_t i, size_t scale, int64_t d) {
    const ValueId values = of_direction(inputs, i, d);
    if (!s_.quantised) return {values, {}, {}};
    return {inputs.e.transpose(values, {1, 0}), parameter(inputs, scale, d),
            parameter(inputs, scale + 1, d)};
  }
  /// One number per direction, or one per row of the weights.
  ValueId parameter(const Inputs& inputs, size_t i, int64_t d) {
    if (!n_.has(i)) n_.fail(fmt::format("input {} is missing", i));
    scale_input(n_, i);
    Emitter& e = inputs.e;
    const ValueId x = of_direction(inputs, i, d);
    if (e.type(x).element_count() == Dim(1)) return e.reshape(x, {});
    if (!(e.shape(x) == Shape{s_.hidden * Dim(s_.traits.gates)})) {
      n_.fail(fmt::format("input {} has to hold a number per direction or one per row", i));
    }
    return x;
  }

  ValueId initial(size_t i, int64_t d) {
    const TensorType type{n_.element(0), {s_.batch, s_.hidden}};
    const ValueId given = of_direction(i, d);
    if (!given.valid()) return e_.filled(type, 0);
    if (!(e_.type(given) == type)) {
      n_.fail(fmt::format("input {} holds {} per direction and needs {}", i,
                          to_string(e_.type(given)), to_string(type)));
    }
    return given;
  }

  /// X·Wᵀ and the biases that simply add up, for all steps: [steps, batch, gates·hidden].
  ValueId input_gates(const Weights& w, ValueId bias, ValueId& late_bias) {
    const ValueId product = times(e_, x_, w, s_.training);
    if (!bias.valid()) return product;
    const int64_t gates = s_.traits.gates;
    if (!(e_.shape(bias) == Shape{s_.hidden * Dim(2 * gates)})) {
      n_.fail("B has to hold a bias of W and one of R for every gate");
    }
    const ValueId of_w = part(e_, bias, 0, s_.hidden, 0, gates);
    if (s_.cell != Cell::gru || !s_.linear_before_reset) {
      return e_.add(product, e_.add(of_w, part(e_, bias, 0, s_.hidden, gates, gates)));
    }
    // The reset gate multiplies this one.
    late_bias = part(e_, bias, 0, s_.hidden, 5);
    const ValueId early =
        e_.add(part(e_, of_w, 0, s_.hidden, 0, 2), part(e_, bias, 0, s_.hidden, gates, 2));
    return e_.add(product, e_.concat({early, part(e_, of_w, 0, s_.hidden, 2)}, 0));
  }

  /// Unless all lengths are known to be that of the input.
  bool may_end_early() const {
    const std::optional<Literal> known = n_.known_literal(4);
    if (!known || !s_.steps.is_constant()) return true;
    for (int64_t i = 0; i < known->element_count(); ++i) {
      if (known->as_int(i) < s_.steps.constant()) return true;
    }
    return false;
  }

  std::vector<ValueId> direction(int64_t d) {
    ValueId late_bias;
    const ValueId gates = input_gates(weights(outside(), 1, 8, d), of_direction(3, d), late_bias);
    const ValueId peephole = s_.cell == Cell::lstm ? of_direction(7, d) : ValueId();
    std::vector<ValueId> operands{e_.dimension(s_.steps), initial(5, d)};
    if (s_.cell == Cell::lstm) operands.push_back(initial(6, d));
    ScanAttrs attrs;
    attrs.carries = s_.cell == Cell::lstm ? 2 : 1;
    attrs.length = s_.steps;
    attrs.reverse = s_.reversed || d == 1;
    operands.push_back(gates);
    attrs.xs = 1;
    if (lengths_.valid()) {
      operands.push_back(e_.iota(ElementType::i64, {s_.steps}, 0));
      attrs.xs = 2;
    }
    const Weights r = holds_weights_ ? Weights() : weights(outside(), 2, 10, d);
    for (const ValueId operand : {r.values, r.scale, r.zero, late_bias, peephole, lengths_}) {
      if (operand.valid()) operands.push_back(operand);
    }
    attrs.body = body(d, attrs, operands, late_bias.valid(), peephole.valid());
    const ValueId scan = e_.emit(ops::scan, operands, attrs);
    std::vector<ValueId> results;
    for (int64_t i = 0; i <= attrs.carries; ++i) results.push_back(e_.get(scan, i));
    return results;
  }

  /// Whether the quantised weights of the state are constants, which the body then holds: products
  /// of integers need to know their zero points.
  bool knows_recurrence() const {
    if (!s_.quantised || !n_.has(10) || !n_.has(11)) return false;
    return n_.known_literal(2) && n_.known_literal(10) && n_.known_literal(11);
  }

  FunctionRef body(int64_t d, const ScanAttrs& attrs, const std::vector<ValueId>& operands,
                   bool has_bias, bool has_peephole) {
    return n_.scan_body(e_, operands, attrs, [&](Emitter& e, const std::vector<ValueId>& p) {
      const size_t states = static_cast<size_t>(attrs.carries);
      size_t next = states;
      const ValueId x = p[next++];
      const ValueId now = lengths_.valid() ? p[next++] : ValueId();
      CellBody::Operands operands_of_cell;
      Weights& r = operands_of_cell.r;
      if (holds_weights_) {
        r = weights(constants(e), 2, 10, d);
      } else if (s_.quantised) {
        r = {p[next], p[next + 1], p[next + 2]};
        next += 3;
      } else {
        r.values = p[next++];
      }
      if (has_bias) operands_of_cell.bias = p[next++];
      if (has_peephole) operands_of_cell.peephole = p[next++];
      const std::vector<ValueId> before(p.begin(), p.begin() + attrs.carries);
      CellBody cell(s_, static_cast<size_t>(d), e, operands_of_cell);
      std::vector<ValueId> after = cell.step(x, before);
      ValueId row = after[0];
      if (lengths_.valid()) {
        // A sequence that has ended keeps its state and gives zeros.
        const ValueId lasts = e.compare(Comparison::lt, e.broadcast_to(now, {s_.batch}), p[next]);
        const ValueId mask = e.broadcast_in(lasts, {s_.batch, s_.hidden}, {0});
        row = e.select(mask, row, e.like(row, 0));
        for (size_t k = 0; k < states; ++k) after[k] = e.select(mask, after[k], before[k]);
      }
      after.push_back(row);
      return e.emit(ops::tuple, after);
    });
  }

  /// Y: [steps, directions, batch, hidden], or [batch, steps, directions, hidden].
  ValueId sequence(const std::vector<std::vector<ValueId>>& results) {
    std::vector<ValueId> parts;
    for (const std::vector<ValueId>& result : results) {
      parts.push_back(e_.unsqueeze(result.back(), 1));
    }
    const ValueId y = e_.concat(parts, 1);
    return s_.batch_first ? e_.transpose(y, {2, 0, 1, 3}) : y;
  }

  ValueId final_state(const std::vector<std::vector<ValueId>>& results, size_t k) {
    std::vector<ValueId> parts;
    for (const std::vector<ValueId>& result : results) parts.push_back(e_.unsqueeze(result[k], 0));
    const ValueId state = e_.concat(parts, 0);
    return s_.batch_first ? e_.transpose(state, {1, 0, 2}) : state;
  }

  NodeContext& n_;
  Emitter& e_;
  const Setting s_;
  const bool holds_weights_;
  ValueId x_, lengths_;
};

void rnn(NodeContext& n) { Recurrence(n, Cell::rnn).run(); }
void gru(NodeContext& n) { Recurrence(n, Cell::gru).run(); }
void lstm(NodeContext& n) { Recurrence(n, Cell::lstm).run(); }
/// X and, at every step, the state are quantised with a scale each.
void dynamic_quantize_lstm(NodeContext& n) { Recurrence(n, Cell::lstm, true).run(); }

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"RNN", 7, 13, 3, 6, rnn,
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i"},
    {"RNN", 14, kNew, 3, 6, rnn,
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
     "layout:i"},
    {"GRU", 7, 13, 3, 6, gru,
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
     "linear_before_reset:i"},
    {"GRU", 14, kNew, 3, 6, gru,
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i layout:i "
     "linear_before_reset:i"},
    {"LSTM", 7, 13, 3, 8, lstm,
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
     "input_forget:i"},
    {"LSTM", 14, kNew, 3, 8, lstm,
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
     "input_forget:i layout:i"},
    {"DynamicQuantizeLSTM", 1, kMicrosoftOpset, 12, 12, dynamic_quantize_lstm,
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
     "input_forget:i",
     kMicrosoftDomain},
};

}  // namespace

std::span<const OperatorRule> recurrent_rules() { return kRules; }

}  // namespace backcast
