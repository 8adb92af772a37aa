// RNN, GRU and LSTM in every option against ONNX's equations, written out as plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

constexpr int64_t kSteps = 4, kInput = 3, kHidden = 2;

struct Setting {
  std::string op;
  std::string direction = "forward";
  bool bias = true, initial = true, peepholes = false, batch_first = false;
  bool input_forget = false, linear_before_reset = false;
  std::vector<double> lengths = {};
  bool known_lengths = false;
  int64_t batch = 2;
  double clip = 0;
  std::string activation = "Tanh";  // of everything but the gates
  double alpha = 0, beta = 0;

  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
  int64_t gates() const { return op == "RNN" ? 1 : op == "GRU" ? 3 : 4; }
};
void PrintTo(const Setting& s, std::ostream* out) {
  *out << s.op << " " << s.direction << " " << s.activation;
}

using Values = std::vector<double>;

/// The operands of a case, in ONNX's layout 0.
struct Operands {
  Values x, w, r, b, h, c, p;
};

Values numbers(int64_t count, double scale, int salt) {
  Values values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(scale * std::sin(1.7 * static_cast<double>(i) + salt));
  }
  return values;
}

Operands operands_of(const Setting& s) {
  const int64_t d = s.directions(), g = s.gates();
  return {numbers(kSteps * s.batch * kInput, 1, 1),
          numbers(d * g * kHidden * kInput, 0.8, 2),
          numbers(d * g * kHidden * kHidden, 0.9, 3),
          numbers(d * 2 * g * kHidden, 0.5, 4),
          numbers(d * s.batch * kHidden, 0.7, 5),
          numbers(d * s.batch * kHidden, 0.6, 6),
          numbers(d * 3 * kHidden, 0.4, 7)};
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One direction by ONNX's equations.
class Reference {
 public:
  Reference(const Setting& s, const Operands& o, int64_t d) : s_(s), o_(o), d_(d) {}

  /// Fills y[t][b][h]; h and c become the last states.
  void run(std::vector<Values>& y, Values& h, Values& c) {
    const bool back = s_.direction == "reverse" || d_ == 1;
    h.assign(s_.batch * kHidden, 0);
    c = h;
    for (size_t i = 0; i < h.size() && s_.initial; ++i) {
      h[i] = o_.h[size_t(d_) * h.size() + i];
      c[i] = o_.c[size_t(d_) * h.size() + i];
    }
    y.assign(kSteps, Values(s_.batch * kHidden, 0));
    for (int64_t b = 0; b < s_.batch; ++b) {
      const int64_t length = s_.lengths.empty()
                                 ? kSteps
                                 : std::min(kSteps, static_cast<int64_t>(s_.lengths[size_t(b)]));
      for (int64_t k = 0; k < length; ++k) {
        const int64_t t = back ? length - 1 - k : k;
        step(t, b, &h[size_t(b * kHidden)], &c[size_t(b * kHidden)]);
        for (int64_t i = 0; i < kHidden; ++i) {
          y[size_t(t)][size_t(b * kHidden + i)] = h[size_t(b * kHidden + i)];
        }
      }
    }
  }

 private:
  double f(double x) const { return sigmoid(clipped(x)); }
  double clipped(double x) const { return s_.clip > 0 ? std::clamp(x, -s_.clip, s_.clip) : x; }
  double g(double x, bool clip = true) const {
    if (clip) x = clipped(x);
    if (s_.activation == "Relu") return std::max(x, 0.0);
    if (s_.activation == "LeakyRelu") return x < 0 ? s_.alpha * x : x;
    if (s_.activation == "ThresholdedRelu") return x > s_.alpha ? x : 0;
    if (s_.activation == "ScaledTanh") return s_.alpha * std::tanh(s_.beta * x);
    if (s_.activation == "HardSigmoid") return std::clamp(s_.alpha * x + s_.beta, 0.0, 1.0);
    if (s_.activation == "Affine") return s_.alpha * x + s_.beta;
    if (s_.activation == "Elu") return x < 0 ? s_.alpha * (std::exp(x) - 1) : x;
    if (s_.activation == "Softsign") return x / (1 + std::fabs(x));
    if (s_.activation == "Softplus") return std::log(1 + std::exp(x));
    return std::tanh(x);
  }

  double of_input(int64_t gate, int64_t i, int64_t t, int64_t b) const {
    double sum = bias(gate, i);
    for (int64_t k = 0; k < kInput; ++k) {
      sum += o_.w[size_t(((d_ * s_.gates() + gate) * kHidden + i) * kInput + k)] *
             o_.x[size_t((t * s_.batch + b) * kInput + k)];
    }
    return sum;
  }
  double of_state(int64_t gate, int64_t i, const double* h) const {
    double sum = bias(gate + s_.gates(), i);
    for (int64_t k = 0; k < kHidden; ++k) {
      sum += o_.r[size_t(((d_ * s_.gates() + gate) * kHidden + i) * kHidden + k)] * h[k];
    }
    return sum;
  }
  double bias(int64_t gate, int64_t i) const {
    return s_.bias ? o_.b[size_t((d_ * 2 * s_.gates() + gate) * kHidden + i)] : 0;
  }
  double peep(int64_t which, int64_t i) const {
    return s_.peepholes ? o_.p[size_t((d_ * 3 + which) * kHidden + i)] : 0;
  }

  void step(int64_t t, int64_t b, double* h, double* c) const {
    double next[kHidden], cell[kHidden], reset[kHidden];
    const auto gate = [&](int64_t which, int64_t i) {
      return of_input(which, i, t, b) + of_state(which, i, h);
    };
    for (int64_t i = 0; s_.op == "GRU" && i < kHidden; ++i) reset[i] = f(gate(1, i)) * h[i];
    for (int64_t i = 0; i < kHidden; ++i) {
      if (s_.op == "RNN") {
        next[i] = g(gate(0, i));
      } else if (s_.op == "GRU") {
        const double z = f(gate(0, i));
        const double state =
            s_.linear_before_reset ? f(gate(1, i)) * of_state(2, i, h) : of_state(2, i, reset);
        next[i] = (1 - z) * g(of_input(2, i, t, b) + state) + z * h[i];
      } else {
        const double in = f(gate(0, i) + peep(0, i) * c[i]);
        const double forget = s_.input_forget ? 1 - in : f(gate(2, i) + peep(2, i) * c[i]);
        cell[i] = forget * c[i] + in * g(gate(3, i));
        next[i] = f(gate(1, i) + peep(1, i) * cell[i]) * g(cell[i], false);
      }
    }
    std::copy(next, next + kHidden, h);
    if (s_.op == "LSTM") std::copy(cell, cell + kHidden, c);
  }

  const Setting& s_;
  const Operands& o_;
  int64_t d_;
};

OnnxAttribute reals(const std::string& name, const std::vector<float>& values) {
  OnnxAttribute a;
  a.name = name;
  a.kind = OnnxAttribute::Kind::reals;
  a.floats = values;
  return a;
}

std::vector<OnnxAttribute> attributes_of(const Setting& s) {
  std::vector<OnnxAttribute> list{ModelBuilder::string("direction", s.direction),
                                  ModelBuilder::integer("hidden_size", kHidden)};
  if (s.batch_first) list.push_back(ModelBuilder::integer("layout", 1));
  if (s.input_forget) list.push_back(ModelBuilder::integer("input_forget", 1));
  if (s.linear_before_reset) list.push_back(ModelBuilder::integer("linear_before_reset", 1));
  if (s.clip > 0) {
    list.emplace_back();
    list.back().name = "clip";
    list.back().kind = OnnxAttribute::Kind::real;
    list.back().f = static_cast<float>(s.clip);
  }
  if (s.activation == "Tanh") return list;
  list.emplace_back();
  list.back().name = "activations";
  list.back().kind = OnnxAttribute::Kind::strings;
  const size_t plain = s.op == "LSTM" ? 2 : 1;
  std::vector<float> alphas, betas;
  for (int64_t d = 0; d < s.directions(); ++d) {
    if (s.op != "RNN") list.back().strings.push_back("sigmoid");
    for (size_t i = 0; i < plain; ++i) {
      list.back().strings.push_back(s.activation);
      alphas.push_back(static_cast<float>(s.alpha));
      betas.push_back(static_cast<float>(s.beta));
    }
  }
  if (s.alpha != 0) list.push_back(reals("activation_alpha", alphas));
  if (s.beta != 0) list.push_back(reals("activation_beta", betas));
  return list;
}

std::string text(int64_t n) { return std::to_string(n); }

/// x[a][b][c] → x[b][a][c]
Values swapped(const Values& x, int64_t a, int64_t b) {
  const int64_t c = static_cast<int64_t>(x.size()) / (a * b);
  Values result(x.size());
  for (int64_t i = 0; i < a; ++i) {
    for (int64_t k = 0; k < b; ++k) {
      for (int64_t j = 0; j < c; ++j) {
        result[size_t((k * a + i) * c + j)] = x[size_t((i * b + k) * c + j)];
      }
    }
  }
  return result;
}

struct Case {
  ModelBuilder model{22};
  std::vector<Value> arguments;
  std::vector<std::string> names;

  void add(const std::string& name, const std::vector<int64_t>& shape, const Values& values,
           ElementType element = ElementType::f32) {
    std::vector<std::string> extents;
    for (int64_t extent : shape) extents.push_back(text(extent));
    model.input(name, extents, element == ElementType::f32 ? onnx_type::kFloat : onnx_type::kInt32);
    arguments.push_back(Literal::from_doubles(element, shape, values));
    names.push_back(name);
  }
};

/// All outputs as computed by the imported graph.
std::vector<Value> imported(const Setting& s, const Operands& o) {
  Case c;
  const int64_t d = s.directions(), g = s.gates();
  const bool front = s.batch_first;
  const auto state = [&](const std::string& name, const Values& values) {
    c.add(name,
          front ? std::vector<int64_t>{s.batch, d, kHidden}
                : std::vector<int64_t>{d, s.batch, kHidden},
          front ? swapped(values, d, s.batch) : values);
  };
  c.add("x",
        front ? std::vector<int64_t>{s.batch, kSteps, kInput}
              : std::vector<int64_t>{kSteps, s.batch, kInput},
        front ? swapped(o.x, kSteps, s.batch) : o.x);
  c.add("w", {d, g * kHidden, kInput}, o.w);
  c.add("r", {d, g * kHidden, kHidden}, o.r);
  const auto absent = [&] { c.names.emplace_back(); };
  s.bias ? c.add("b", {d, 2 * g * kHidden}, o.b) : absent();
  if (s.lengths.empty()) {
    absent();
  } else if (s.known_lengths) {
    c.model.ints("lengths", {s.lengths.begin(), s.lengths.end()});
    c.names.emplace_back("lengths");
  } else {
    c.add("lengths", {s.batch}, s.lengths, ElementType::i32);
  }
  s.initial ? state("h", o.h) : absent();
  if (s.op == "LSTM") {
    s.initial ? state("c", o.c) : absent();
    if (s.peepholes) c.add("p", {d, 3 * kHidden}, o.p);
  }
  std::vector<std::string> outputs{"y", "last_h"};
  if (s.op == "LSTM") outputs.push_back("last_c");
  for (const std::string& name : outputs) c.model.output(name);
  c.model.node("cell", s.op, c.names, outputs, attributes_of(s));
  const ImportedModel model = c.model.import();
  verify(model.module);
  return evaluate(model.module, model.module.function("main"), c.arguments).elements;
}

void expect_near(const Literal& found, const Values& expected, const std::string& what) {
  ASSERT_EQ(found.element_count(), static_cast<int64_t>(expected.size())) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found.as_double(static_cast<int64_t>(i)), expected[i], 2e-6) << what << i;
  }
}

class Recurrent : public testing::TestWithParam<Setting> {};

TEST_P(Recurrent, FollowsTheEquations) {
  const Setting& s = GetParam();
  const Operands o = operands_of(s);
  const std::vector<Value> found = imported(s, o);
  const int64_t d = s.directions();
  Values y(static_cast<size_t>(kSteps * d * s.batch * kHidden)), h, c;
  for (int64_t k = 0; k < d; ++k) {
    std::vector<Values> rows;
    Values last_h, last_c;
    Reference(s, o, k).run(rows, last_h, last_c);
    for (int64_t t = 0; t < kSteps; ++t) {
      std::copy(rows[size_t(t)].begin(), rows[size_t(t)].end(),
                y.begin() + (t * d + k) * s.batch * kHidden);
    }
    h.insert(h.end(), last_h.begin(), last_h.end());
    c.insert(c.end(), last_c.begin(), last_c.end());
  }
  if (s.batch_first) {
    // [steps, directions, batch, hidden] → [batch, steps, directions, hidden]
    y = swapped(y, kSteps * d, s.batch);
    h = swapped(h, d, s.batch);
    c = swapped(c, d, s.batch);
  }
  expect_near(found[0].tensor, y, "y");
  expect_near(found[1].tensor, h, "h");
  if (s.op == "LSTM") expect_near(found[2].tensor, c, "c");
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const char* op : {"RNN", "GRU", "LSTM"}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (const bool batch_first : {false, true}) {
        Setting s{op, direction};
        s.batch_first = batch_first;
        all.push_back(s);
        s.lengths = {2, 4};
        s.peepholes = true;
        all.push_back(s);
        for (const Values& lengths : {Values{1, 3}, Values{0, 0}, Values{7, 4}, Values{3}}) {
          s.lengths = lengths;
          s.batch = static_cast<int64_t>(lengths.size());
          s.known_lengths = !s.known_lengths;
          all.push_back(s);
        }
      }
    }
    Setting plain{op};
    plain.bias = plain.initial = false;
    plain.clip = 0.3;
    all.push_back(plain);
    const std::vector<std::pair<std::string, std::pair<double, double>>> activations = {
        {"Relu", {0, 0}},           {"LeakyRelu", {0.3, 0}},     {"ThresholdedRelu", {0.1, 0}},
        {"ScaledTanh", {0.6, 0.9}}, {"HardSigmoid", {0.3, 0.4}}, {"Affine", {0.5, 0.1}},
        {"Elu", {0.7, 0}},          {"Softsign", {0, 0}},        {"Softplus", {0, 0}}};
    for (const auto& [name, numbers] : activations) {
      Setting s{op, "bidirectional"};
      s.activation = name;
      s.alpha = numbers.first;
      s.beta = numbers.second;
      all.push_back(s);
    }
  }
  Setting coupled{"LSTM"};
  coupled.input_forget = true;
  all.push_back(coupled);
  Setting reset{"GRU", "bidirectional"};
  reset.linear_before_reset = true;
  all.push_back(reset);
  reset.bias = false;
  all.push_back(reset);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Recurrent, testing::ValuesIn(settings()));

std::string complaint(const std::vector<OnnxAttribute>& attributes,
                      const std::vector<std::string>& w = {"1", "2", "3"}) {
  ModelBuilder m{22};
  m.input("x", {"4", "2", "3"}).input("w", w).input("r", {"1", "2", "2"}).output("y");
  m.node("cell", "RNN", {"x", "w", "r"}, {"y"}, attributes);
  return complaint_of(m);
}

TEST(RecurrentErrors, NameWhatDoesNotFit) {
  EXPECT_EQ(complaint({}), "");
  EXPECT_NE(complaint({ModelBuilder::string("direction", "sideways")}).find("sideways"),
            std::string::npos);
  EXPECT_NE(complaint({ModelBuilder::integer("hidden_size", 7)}).find("\"hidden_size\" is 7"),
            std::string::npos);
  EXPECT_NE(complaint({}, {"1", "6", "3"}).find("W has the shape"), std::string::npos);
  OnnxAttribute activations;
  activations.name = "activations";
  activations.kind = OnnxAttribute::Kind::strings;
  activations.strings = {"Gelu"};
  EXPECT_NE(complaint({activations}).find("\"Gelu\" is not known"), std::string::npos);
  activations.strings = {"Tanh", "Tanh"};
  EXPECT_NE(complaint({activations}).find("needs 1"), std::string::npos);
}

}  // namespace
}  // namespace backcast
