// Kernels as text and buffers of plain numbers, for the tests of loop IR.
#pragma once

#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"

namespace backcast::loop {

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

inline std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& v : values) v = uniform(random);
  return values;
}

/// Parses, verifies and runs a kernel.
inline void run_text(const std::string& text, const std::vector<std::span<std::byte>>& buffers,
                     const std::map<std::string, int64_t>& sizes = {}) {
  const Kernel kernel = parse_kernel(text);
  verify(kernel);
  interpret(kernel, {}, buffers, sizes);
}

}  // namespace backcast::loop
