// The kernels of a training step on this machine, each beside a loop of nothing but FMAs:
//
//   bench_kernels [--filter TEXT] [--check] [--text] [--target NAME] [--seconds S]
//
// Every case is compiled by the library's own code generator and timed in process, in turn with the
// peak; medians over the rounds. Without products, GB/s over all inputs and outputs. --check also
// compares every result with the definition's, interpreted before it was fused or scheduled; --text
// prints the scheduled loops.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <iostream>
#include <random>

#include "backend/llvm/jit.h"
#include "bench/kernels/cases.h"
#include "driver/compiler.h"
#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "passes/lower/lower.h"
#include "passes/pipeline.h"

extern "C" long peak_macs(long rounds);

namespace backcast::bench {
namespace {

struct Options {
  std::string filter, target = "native";
  bool check = false, text = false;
  double seconds = 0.002;
  int rounds = 15;
};

double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class F>
double seconds_of(int64_t count, const F& f) {
  double begin = processor_seconds();
  for (int64_t i = 0; i < count; ++i) f();
  return (processor_seconds() - begin) / static_cast<double>(count);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<Literal> random_inputs(const loop::Program& program) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<Literal> inputs;
  for (loop::BufferId id : program.entries[0].inputs) {
    const loop::Buffer& buffer = program.buffer(id);
    std::vector<int64_t> shape;
    for (const Dim& dim : buffer.shape) shape.push_back(dim.evaluate({}));
    std::vector<double> values;
    int64_t count = TensorType{buffer.element, buffer.shape}.element_count().evaluate({});
    for (int64_t i = 0; i < count; ++i) values.push_back(real(random));
    inputs.push_back(Literal::from_doubles(buffer.element, shape, values));
  }
  return inputs;
}

/// Largest difference relative to the largest value.
double difference(const Literal& a, const Literal& b) {
  double largest = 1e-30, worst = 0;
  for (int64_t i = 0; i < a.element_count(); ++i) {
    largest = std::max(largest, std::fabs(b.as_double(i)));
    double d = std::fabs(a.as_double(i) - b.as_double(i));
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
  }
  return worst / largest;
}

/// A compiled program with memory to call it on.
class Callable {
 public:
  Callable(const loop::Program& program, const TargetInfo& target,
           const std::vector<Literal>& inputs, int in_place)
      : code_(program, target) {
    for (const Literal& input : inputs) {
      in_.push_back(allocate(static_cast<int64_t>(input.bytes().size())));
      memcpy(in_.back(), input.bytes().data(), input.bytes().size());
    }
    for (loop::BufferId id : program.entries[0].outputs) {
      out_.push_back(in_place >= 0 ? in_[static_cast<size_t>(in_place)]
                                   : allocate(program.storage_bytes(id)));
    }
    arena_bytes_ = program.arena_bytes;
    arena_ = allocate(arena_bytes_);
    in_.push_back(nullptr);
    out_.push_back(nullptr);
    function_ = reinterpret_cast<Function>(code_.symbol(program.name + "_run"));
  }
  ~Callable() {
    for (void* p : memory_) free(p);
  }
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;
  void operator()() const {
    function_(in_.data(), out_.data(), arena_, static_cast<size_t>(arena_bytes_), nullptr);
  }
  const CompiledProgram& code() const { return code_; }
  int64_t bytes() const { return bytes_ - arena_bytes_; }

 private:
  using Function = int32_t (*)(const void*, const void*, void*, size_t, const void*);
  void* allocate(int64_t bytes) {
    bytes_ += bytes;
    memory_.push_back(aligned_alloc(64, static_cast<size_t>((bytes + 127) / 64 * 64)));
    memset(memory_.back(), 0, static_cast<size_t>(bytes));
    return memory_.back();
  }

  CompiledProgram code_;
  std::vector<void*> memory_, in_, out_;
  void* arena_ = nullptr;
  int64_t arena_bytes_ = 0, bytes_ = 0;
  Function function_ = nullptr;
};

std::string schedule_of(const loop::Program& program) {
  std::string text;
  for (const loop::Step& step : program.entries[0].steps) {
    text += (text.empty() ? "" : " ") + step.kernel;
  }
  return text;
}

bool run(const Case& c, const TargetInfo& target, const Options& options) {
  Module module = parse_module(c.text);
  verify(module, "parse");
  const loop::Program lowered = lower(module, "kernel");
  PipelineOptions pipeline;
  if (options.text) pipeline.print_after = {"schedule"};
  pipeline.log = &std::cout;
  const loop::Program program = run_pipeline(lowered, target, pipeline).program;
  std::vector<Literal> inputs = random_inputs(program);
  Callable call(program, target, inputs, c.in_place);
  std::string verdict;
  bool right = true;
  if (options.check) {
    double d = 0;
    std::vector<Literal> expected = loop::interpret(lowered, "run", inputs);
    std::vector<Literal> actual = call.code().run("run", inputs);
    for (size_t i = 0; i < actual.size(); ++i) d = std::max(d, difference(actual[i], expected[i]));
    right = d < 2e-5;
    verdict = fmt::format("  {:.0e}{}", d, right ? "" : " WRONG RESULT");
  }
  int64_t count = 1;
  for (double each = 0; each * static_cast<double>(count) < options.seconds / 2;) {
    count *= 2;
    each = seconds_of(count, call);
  }
  std::vector<double> times, rates;
  for (int round = 0; round < options.rounds; ++round) {
    times.push_back(seconds_of(count, call));
    long macs = 0;
    double peak = seconds_of(1, [&] { macs = peak_macs(20); });
    rates.push_back(static_cast<double>(macs) / peak);
  }
  double time = median(times);
  std::string rate =
      fmt::format("{:7.1f} GB/s      ", static_cast<double>(call.bytes()) / time / 1e9);
  if (c.macs > 0) {
    double macs = static_cast<double>(c.macs) / time;
    rate = fmt::format("{:7.1f} GMAC/s {:3.0f}%", macs / 1e9, 100 * macs / median(rates));
  }
  fmt::print("{:52} {:9.2f} µs {}{}  {}\n", c.name, time * 1e6, rate, verdict,
             schedule_of(program));
  fflush(stdout);
  return right;
}

}  // namespace
}  // namespace backcast::bench

int main(int argc, char** argv) {
  using namespace backcast;
  bench::Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (word == "--check") {
      options.check = true;
    } else if (word == "--text") {
      options.text = true;
    } else if (word == "--filter") {
      options.filter = value();
    } else if (word == "--target") {
      options.target = value();
    } else if (word == "--seconds") {
      options.seconds = std::stod(value());
    } else {
      fmt::print(
          stderr,
          "bench_kernels [--filter TEXT] [--check] [--text] [--target NAME] [--seconds S]\n");
      return 2;
    }
  }
  TargetInfo target = resolve_target(options.target);
  bool right = true;
  for (const bench::Case& c : bench::all_cases()) {
    if (c.name.find(options.filter) == std::string::npos) continue;
    try {
      right = bench::run(c, target, options) && right;
    } catch (const std::exception& error) {
      fmt::print("{:52} {}\n", c.name, error.what());
      right = false;
    }
  }
  return right ? 0 : 1;
}
