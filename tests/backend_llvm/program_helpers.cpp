// See program_helpers.h.
#include "tests/backend_llvm/program_helpers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/llvm/host.h"
#include "backend/llvm/jit.h"
#include "ir/graph/error.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/math_library.h"
#include "ir/loop/verifier.h"

namespace backcast::testing {

using loop::AccessMode;
using loop::Buffer;
using loop::BufferClass;
using loop::BufferParam;

loop::BufferParam read_buffer(const std::string& name, loop::Scalar element, Dims shape) {
  return {name, element, std::move(shape), AccessMode::read, {}};
}

loop::BufferParam write_buffer(const std::string& name, loop::Scalar element, Dims shape) {
  return {name, element, std::move(shape), AccessMode::write, {}};
}

loop::Program single_kernel(loop::Kernel kernel, const SymbolRanges& symbols) {
  loop::Program program;
  program.name = "t";
  program.symbols = symbols;
  loop::EntryPoint entry;
  loop::Step step;
  step.kernel = kernel.name;
  for (const BufferParam& param : kernel.buffers) {
    Buffer buffer;
    buffer.name = param.name;
    buffer.element = loop::element_of(param.element);
    buffer.shape = param.shape;
    const bool input = param.mode == AccessMode::read;
    buffer.kind = input ? BufferClass::input : BufferClass::output;
    const loop::BufferId id = static_cast<loop::BufferId>(program.buffers.size());
    (input ? entry.inputs : entry.outputs).push_back(id);
    step.buffers.push_back(id);
    program.buffers.push_back(std::move(buffer));
  }
  for (const std::string& size : kernel.sizes) step.sizes.push_back(Dim::symbol(size));
  entry.steps.push_back(std::move(step));
  program.entries.push_back(std::move(entry));
  program.kernels.emplace(kernel.name, std::move(kernel));
  program.functions = loop::functions_for(program.kernels, host_target().has_fma);
  return program;
}

std::vector<TargetInfo> runnable_targets() {
  std::vector<TargetInfo> targets = {host_target()};
  if (targets[0].architecture == Architecture::x86_64) targets.push_back(*find_target("x86-64"));
  return targets;
}

namespace {

template <class T>
void expect_equal_floats(const Literal& actual, const Literal& expected, const std::string& where) {
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    const T a = actual.data<T>()[i];
    const T e = expected.data<T>()[i];
    if (std::isnan(a) && std::isnan(e)) continue;
    EXPECT_EQ(std::memcmp(&a, &e, sizeof(T)), 0)
        << where << " element " << i << ": " << a << " instead of " << e;
    if (std::memcmp(&a, &e, sizeof(T)) != 0) return;
  }
}

void expect_equal(const Literal& actual, const Literal& expected, const std::string& where) {
  ASSERT_EQ(actual.shape(), expected.shape()) << where;
  ASSERT_EQ(actual.element(), expected.element()) << where;
  if (expected.element() == ElementType::f32) {
    return expect_equal_floats<float>(actual, expected, where);
  }
  if (expected.element() == ElementType::f64) {
    return expect_equal_floats<double>(actual, expected, where);
  }
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    ASSERT_EQ(actual.as_int(i), expected.as_int(i)) << where << " element " << i;
  }
}

/// Whether the target has what the kernel uses; a baseline without fma cannot run every program.
bool fits(const loop::Program& program, const TargetInfo& target) {
  try {
    emit_object(program, target, {.level = 0});
    return true;
  } catch (const InternalError&) {
    return false;
  }
}

}  // namespace

void expect_agreement(const loop::Program& program, const std::vector<Literal>& inputs) {
  loop::verify(program, "test");
  const std::vector<Literal> expected = loop::interpret(program, "run", inputs);
  for (const TargetInfo& target : runnable_targets()) {
    if (target.name != "native" && !fits(program, target)) continue;
    for (const int level : {0, 2}) {
      const CompiledProgram compiled(program, target, {.level = level});
      const std::vector<Literal> actual = compiled.run("run", inputs);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        const std::string& name = program.buffer(program.entries[0].outputs[i]).name;
        expect_equal(actual[i], expected[i],
                     fmt::format("{} level {} output {}", target.name, level, name));
      }
    }
  }
}

namespace {

/// Deterministic everywhere, unlike the distributions of <random>.
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed * 2654435761U + 88172645463325252U) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  uint64_t state_;
};

template <class T>
std::vector<T> corner_cases() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    return {T(0),
            -T(0),
            T(1),
            T(-1),
            T(0.5),
            T(-2.5),
            T(3.5),
            T(1e9),
            Limits::max(),
            Limits::lowest(),
            Limits::min(),
            Limits::denorm_min(),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN(),
            T(1) + Limits::epsilon()};
  } else {
    return {T(0), T(1), T(2), T(-1), T(7), Limits::max(), Limits::min(), T(Limits::max() - 1)};
  }
}

template <class T>
T random_value(Generator& generator) {
  const uint64_t bits = generator.next();
  if constexpr (std::is_floating_point_v<T>) {
    const int exponent = static_cast<int>(bits % 24) - 12;
    return std::ldexp(static_cast<T>(static_cast<int64_t>(bits >> 20) - (int64_t{1} << 43)),
                      exponent - 40);
  } else {
    return static_cast<T>(bits >> (bits % 40));
  }
}

}  // namespace

Literal special_values(ElementType element, int64_t count, uint64_t seed) {
  Generator generator(seed);
  return visit_compute_type(element, [&](auto zero) {
    using T = decltype(zero);
    std::vector<std::byte> bytes(static_cast<size_t>(count * byte_size(element)));
    for (int64_t i = 0; i < count; ++i) {
      std::byte* at = bytes.data() + i * byte_size(element);
      if (element == ElementType::f16 || element == ElementType::bf16) {
        const uint16_t half = static_cast<uint16_t>(generator.next());
        std::memcpy(at, &half, 2);
      } else if constexpr (std::is_same_v<T, bool>) {
        *at = static_cast<std::byte>(generator.next() >> 11 & 1);
      } else {
        const std::vector<T> corners = corner_cases<T>();
        const uint64_t pick = generator.next() >> 7;
        const T value =
            pick % 2 == 0 ? corners[pick / 2 % corners.size()] : random_value<T>(generator);
        std::memcpy(at, &value, sizeof(T));
      }
    }
    return Literal(element, {count}, std::move(bytes));
  });
}

}  // namespace backcast::testing
