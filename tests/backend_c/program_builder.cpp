// See cases.h.
#include <cstring>
#include <limits>
#include <set>

#include "tests/backend_c/cases.h"

namespace backcast::c_test {

using loop::BufferClass;

ProgramBuilder::ProgramBuilder(const std::string& name) {
  result_.program.name = name;
  kernel_.name = name + "_kernel";
  kernel_.locs = {{name, "Test", Origin::imported}};
}

void ProgramBuilder::parameter(const std::string& name, ElementType element, Dims shape,
                               BufferClass kind) {
  loop::Buffer buffer;
  buffer.name = name;
  buffer.element = element;
  buffer.shape = shape;
  buffer.kind = kind;
  buffer.loc = kernel_.locs[0];
  buffers_.push_back(static_cast<loop::BufferId>(result_.program.buffers.size()));
  result_.program.buffers.push_back(std::move(buffer));
  kernel_.buffers.push_back(
      {name,
       loop::scalar_of(element),
       std::move(shape),
       kind == BufferClass::input ? loop::AccessMode::read : loop::AccessMode::write,
       {}});
}

std::string ProgramBuilder::input(const std::string& name, Literal value, Dims shape) {
  std::vector<int64_t> extents;
  for (const Dim& d : shape) extents.push_back(d.constant());
  parameter(name, value.element(), std::move(shape), BufferClass::input);
  const std::span<const std::byte> bytes = value.bytes();
  result_.inputs.emplace_back(value.element(), std::move(extents),
                              std::vector<std::byte>(bytes.begin(), bytes.end()));
  return name;
}

std::string ProgramBuilder::input(const std::string& name, ElementType element,
                                  std::vector<int64_t> shape, const std::vector<double>& values) {
  return input(name, Literal::from_doubles(element, shape, values),
               Dims(shape.begin(), shape.end()));
}

std::string ProgramBuilder::output(const std::string& name, ElementType element, Dims shape) {
  parameter(name, element, std::move(shape), BufferClass::output);
  return name;
}

Case ProgramBuilder::finish(loop::Stmt body, int64_t macs) {
  loop::Program& program = result_.program;
  kernel_.body = std::move(body);
  kernel_.macs = macs;
  loop::Step step;
  step.kernel = kernel_.name;
  step.buffers = buffers_;
  step.loc = kernel_.locs[0];
  for (const auto& [symbol, range] : program.symbols) {
    kernel_.sizes.push_back(symbol);
    step.sizes.push_back(Dim::symbol(symbol));
  }
  loop::EntryPoint entry;
  for (const loop::BufferId id : buffers_) {
    (program.buffer(id).kind == BufferClass::input ? entry.inputs : entry.outputs).push_back(id);
  }
  entry.steps.push_back(std::move(step));
  program.kernels[kernel_.name] = kernel_;
  program.entries.push_back(std::move(entry));
  return std::move(result_);
}

namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed * 2654435761u + 12345u) {}
  uint64_t next() {
    state_ = state_ * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state_ >> 17) ^ (state_ << 31);
  }

 private:
  uint64_t state_;
};

template <class T>
T interesting_value(Random& random, int64_t i) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    const T special[] = {0,
                         -T(0),
                         1,
                         -1,
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         Limits::denorm_min(),
                         Limits::max(),
                         T(0.5)};
    if (random.next() % 3 == 0) return special[random.next() % 10];
    return static_cast<T>(static_cast<double>(static_cast<int64_t>(random.next() % 20001) - 10000) /
                          (1 + static_cast<double>(random.next() % 997)));
  } else {
    const T special[] = {0,
                         1,
                         static_cast<T>(-1),
                         Limits::min(),
                         Limits::max(),
                         static_cast<T>(Limits::max() - 1),
                         static_cast<T>(Limits::min() + 1)};
    if (i < 7) return special[i];
    return random.next() % 3 == 0 ? special[random.next() % 7] : static_cast<T>(random.next());
  }
}

}  // namespace

Literal interesting(ElementType element, int64_t count, uint32_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(static_cast<size_t>(count * byte_size(element)));
  visit_compute_type(element, [&]<class T>(T) {
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        bytes[static_cast<size_t>(i)] = static_cast<std::byte>(random.next() % 2);
      } else {
        const T value = interesting_value<T>(random, i);
        if (byte_size(element) == static_cast<int64_t>(sizeof(T))) {
          std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
        }
      }
    }
  });
  return Literal(element, {count}, std::move(bytes));
}

Literal small_values(ElementType element, int64_t count, int64_t limit, uint32_t seed) {
  Random random(seed);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<double>(random.next() % static_cast<uint64_t>(limit)));
  }
  return Literal::from_doubles(element, {count}, values);
}

}  // namespace backcast::c_test
