// Models that are given their sequences piece by piece give what they give of the whole: of any
// layers, at any number of positions per call, with what is longer than the model; in double.
#include "passes/graph/stream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "ir/ops/narrow.h"
#include "tests/passes/random_sequence_model.h"

namespace backcast {
namespace {

constexpr double kTolerance = 1e-9;  // of values that grow to some hundreds

Literal positions(const Literal& whole, int64_t axis, int64_t first, int64_t count) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) indices.push_back(first + i);
  return keep_indices(whole, {{axis, indices}});
}

Literal random_sequence(const TensorType& type, int64_t axis, int64_t length, unsigned seed) {
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (const Dim& extent : type.shape) shape.push_back(extent.constant());
  shape[static_cast<size_t>(axis)] = length;
  for (const int64_t extent : shape) count *= extent;
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(normal(random));
  return Literal::from_doubles(ElementType::f64, shape, values);
}

/// A module with its state.
class Running {
 public:
  explicit Running(const Module& module) : module_(module) {
    for (const StateVariable& state : module.states) states_[state.name] = state.initial;
  }

  /// The outputs of a call on input `x`.
  std::vector<Literal> call(const Literal& x) {
    const Function& main = module_.function("main");
    std::vector<Value> arguments;
    for (const ValueId id : main.params) {
      const auto state = states_.find(parameter_name(main.node(id)));
      arguments.emplace_back(state == states_.end() ? x : state->second);
    }
    const Value result = evaluate(module_, main, arguments);
    std::vector<Literal> outputs;
    for (size_t i = 0; i < result.elements.size(); ++i) {
      const auto state = states_.find(main.result_names[i]);
      if (state == states_.end()) {
        outputs.push_back(result.elements[i].tensor);
      } else {
        state->second = result.elements[i].tensor;
      }
    }
    if (!result.is_tuple) outputs.push_back(result.tensor);
    return outputs;
  }

 private:
  const Module& module_;
  std::map<std::string, Literal> states_;
};

void expect_near(const Literal& actual, const Literal& expected, const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    const double a = actual.as_double(i), e = expected.as_double(i);
    if (std::abs(a - e) <= kTolerance * std::max(1.0, std::abs(e))) continue;
    ADD_FAILURE() << what << ", element " << i << ": " << a << " instead of " << e;
    return;
  }
}

struct Streamed {
  Module module;
  StreamNotes notes;
  bool ends = false;  // where the sequence ends matters
};

Streamed stream_of(const Module& module, StreamOptions options) {
  Streamed result;
  try {
    result.module = stream(module, options, &result.notes);
  } catch (const CompileError& error) {
    options.edges = StreamEdges::open;
    result.module = stream(module, options, &result.notes);
    result.ends = std::string(error.what()).find("sequence's end") != std::string::npos;
    EXPECT_FALSE(result.notes.exact);
  }
  verify(result.module, "stream");
  EXPECT_TRUE(
      equal(parse_module(print(result.module), print_constants(result.module)), result.module));
  return result;
}

/// Everything that the stream of a sequence promises, against the model on stretches of it.
void check(const Module& module, const Streamed& streamed, int64_t axis, unsigned seed) {
  const StreamNotes& notes = streamed.notes;
  const TensorType type = module.function("main").type(module.function("main").params[0]).tensor();
  const int64_t length = notes.inputs[0].extent, hop = notes.inputs[0].count;
  const int64_t calls = 2 * (length + notes.stretch) / hop + 3;
  const Literal sequence = random_sequence(type, axis, calls * hop, seed);
  const auto whole = [&](int64_t first) {
    const Literal x = positions(sequence, axis, first, length);
    return evaluate(module, module.function("main"), {Value(x)}).elements;
  };
  const std::vector<Value> from_start = whole(0);
  Running running(streamed.module);
  for (int64_t call = 0; call < calls; ++call) {
    const std::vector<Literal> outputs = running.call(positions(sequence, axis, call * hop, hop));
    ASSERT_EQ(outputs.size(), notes.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const StreamNotes::Tensor& output = notes.outputs[i];
      const std::string what = fmt::format("call {} of {}, {}", call, hop, output.name);
      if (output.axis < 0) {
        const int64_t begin = (call + 1) * hop - notes.stretch;
        if (begin < 0 || (!notes.exact && (begin > 0 || streamed.ends))) continue;
        expect_near(outputs[i], whole(begin)[i].tensor, what);
        continue;
      }
      const int64_t first = call * output.count - output.delay;
      for (int64_t k = 0; k < output.count; ++k) {
        if (first + k < 0 || first + k >= output.extent - output.behind) continue;
        expect_near(positions(outputs[i], output.axis, k, 1),
                    positions(from_start[i].tensor, output.axis, first + k, 1), what);
      }
    }
  }
}

class RandomStreams : public testing::TestWithParam<unsigned> {};

TEST_P(RandomStreams, GiveWhatTheWholeGives) {
  for (unsigned i = 0; i < 60; ++i) {
    const unsigned seed = GetParam() * 1000 + i;
    RandomSequenceModel model(seed);
    const Module module = model.make();
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, print(module)));
    StreamOptions options{.inputs = {{"x", model.axis()}}};
    const Streamed fewest = stream_of(module, options);
    check(module, fewest, model.axis(), seed);
    options.hop = fewest.notes.inputs[0].count * model.one_of({2, 3, 5});
    check(module, stream_of(module, options), model.axis(), seed);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomStreams, testing::Range(1u, 25u));

Module parsed(const std::string& text) { return parse_module(text, ""); }

constexpr const char* kCausal =
    "func @main(%x: f64[1,2,8]) -> f64[1,2,8] results(\"y\") {\n"
    "  %w = constant {value=f64[2,2,3] [1,2,3,4,5,6,7,8,9,10,11,12]} : f64[2,2,3] loc(\"w\")\n"
    "  %y = conv %x, %w {input_spatial=[2], kernel_spatial=[2], output_spatial=[2], strides=[1], "
    "pad_low=[2], pad_high=[0], input_dilation=[1], kernel_dilation=[1]} : f64[1,2,8] "
    "loc(\"conv\", \"Conv\")\n"
    "  return %y\n}\n";

TEST(Stream, KeepsWhatAWindowReadsAgain) {
  StreamNotes notes;
  const Module module = stream(parsed(kCausal), {.inputs = {{"x", 2}}}, &notes);
  ASSERT_EQ(module.states.size(), 1u);
  EXPECT_EQ(module.states[0].name, "x.past");
  EXPECT_EQ(module.states[0].role, StateRole::slot);
  EXPECT_TRUE(module.states[0].initial.is_splat(0));
  EXPECT_EQ(notes.outputs[0].delay, 0);
  EXPECT_EQ(notes.outputs[0].behind, 0);
}

std::string message_of(const std::string& text, const StreamOptions& options) {
  try {
    stream(parsed(text), options);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "nothing was wrong";
}

TEST(Stream, NamesWhatIsWrongWithItsArguments) {
  EXPECT_NE(message_of(kCausal, {.inputs = {{"y", 2}}}).find("the model's inputs are x"),
            std::string::npos);
  EXPECT_NE(message_of(kCausal, {.inputs = {{"x", 3}}}).find("axes count from 0"),
            std::string::npos);
  EXPECT_NE(message_of(kCausal, {.inputs = {{"x", 2}, {"x", 2}}}).find("named twice"),
            std::string::npos);
  std::string strided = kCausal;
  strided.replace(strided.find("strides=[1]"), 11, "strides=[2]");
  for (size_t at; (at = strided.find("f64[1,2,8]", strided.find("{\n"))) != std::string::npos;) {
    strided.replace(at, 10, "f64[1,2,4]");
  }
  strided.replace(strided.find("-> f64[1,2,8]"), 13, "-> f64[1,2,4]");
  const std::string message = message_of(strided, {.inputs = {{"x", 2}}, .hop = 3});
  EXPECT_NE(message.find("choose a multiple of 2"), std::string::npos) << message;
  EXPECT_NE(message.find("conv"), std::string::npos) << message;
}

TEST(Stream, RefusesStretchesThatPaddingDecides) {
  std::string pooled = kCausal;
  pooled.replace(pooled.find("-> f64[1,2,8]"), 13, "-> f64[1,2]");
  pooled.replace(pooled.find("  return %y"), 11,
                 "  %z = reduce %y {axes=[2]} : f64[1,2] loc(\"pool\", \"Pool\")\n  return %z");
  const std::string message = message_of(pooled, {.inputs = {{"x", 2}}});
  EXPECT_NE(message.find("node \"conv\""), std::string::npos) << message;
  EXPECT_NE(message.find("the sequence's beginning"), std::string::npos) << message;
  EXPECT_NE(message.find("--stream-edges open"), std::string::npos) << message;
}

}  // namespace
}  // namespace backcast
