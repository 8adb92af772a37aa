// The inputs, targets, weights and orders of the training references, from a counter: the rules of
// batches.py (README.md states them in words), so that a test repeats the batches PyTorch saw. The
// static_asserts at the end are values that batches.py gives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace backcast::training {

/// Distinct batches of the generated data: step s uses batch s mod kCycle.
inline constexpr int64_t kCycle = 5;

/// Projections stored for a tensor.
inline constexpr int64_t kProjections = 16;

/// The seed of a named stream: FNV-1a, 64 bits.
constexpr uint64_t stream(std::string_view name) {
  uint64_t seed = 0xCBF29CE484222325u;
  for (const char byte : name) {
    seed = (seed ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  }
  return seed;
}

/// Output `index` (from 0) of splitmix64 (Steele, Lea and Flood, 2014) seeded with `seed`.
constexpr uint64_t bits(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// In [-1, 1): a multiple of 2^-23, which single precision holds exactly.
constexpr double uniform(uint64_t seed, uint64_t index) {
  return static_cast<double>(bits(seed, index) >> 40) / 8388608.0 - 1.0;
}

/// A class in [0, number).
constexpr int64_t class_of(uint64_t seed, uint64_t index, int64_t number) {
  return static_cast<int64_t>((bits(seed, index) >> 32) % static_cast<uint64_t>(number));
}

/// +1 or -1, the factor of element `index` in a projection; `seed` is stream(NAME + "#" + k).
constexpr double sign(uint64_t seed, uint64_t index) {
  return bits(seed, index) >> 63 == 0 ? 1.0 : -1.0;
}

/// Projection k of the tensor `name` whose elements, row by row, are values[0 … count).
inline double project(const std::string& name, int64_t k, const double* values, int64_t count) {
  const uint64_t seed = stream(name + "#" + std::to_string(k));
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += sign(seed, static_cast<uint64_t>(i)) * values[i];
  return sum;
}

/// The elements of one generated batch of `elements` values in all; NAME/input of the network.
inline std::vector<double> batch_inputs(const std::string& network, int64_t step,
                                        int64_t elements) {
  const uint64_t seed = stream(network + "/input");
  const uint64_t first = static_cast<uint64_t>(step % kCycle * elements);
  std::vector<double> result(static_cast<size_t>(elements));
  for (size_t i = 0; i < result.size(); ++i) result[i] = uniform(seed, first + i);
  return result;
}

/// The `size` labels of one generated batch; NAME/target of the network.
inline std::vector<int64_t> batch_classes(const std::string& network, int64_t step, int64_t size,
                                          int64_t number) {
  const uint64_t seed = stream(network + "/target");
  const uint64_t first = static_cast<uint64_t>(step % kCycle * size);
  std::vector<int64_t> result(static_cast<size_t>(size));
  for (size_t i = 0; i < result.size(); ++i) result[i] = class_of(seed, first + i, number);
  return result;
}

/// The permutation `name` of 0 … count - 1: Fisher and Yates from the end.
inline std::vector<int64_t> order(std::string_view name, int64_t count) {
  const uint64_t seed = stream(name);
  std::vector<int64_t> result(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) result[static_cast<size_t>(i)] = i;
  uint64_t step = 0;
  for (int64_t i = count - 1; i > 0; --i, ++step) {
    const uint64_t j = bits(seed, step) % static_cast<uint64_t>(i + 1);
    std::swap(result[static_cast<size_t>(i)], result[static_cast<size_t>(j)]);
  }
  return result;
}

static_assert(stream("kws/input") == 0xF73ECC387067478Fu);
static_assert(bits(stream("kws/input"), 0) == 0x5B4DCE5CABD505AFu);
static_assert(bits(stream("kws/input"), 1) == 0xA6562A3F46913E39u);
static_assert(uniform(stream("kws/input"), 0) == -0.28668808937072754);
static_assert(uniform(stream("kws/input"), 2) == 0.7007300853729248);
static_assert(class_of(stream("kws/target"), 0, 12) == 8);
static_assert(class_of(stream("kws/target"), 3, 12) == 11);
static_assert(sign(stream("fc.weight#3"), 0) == 1 && sign(stream("fc.weight#3"), 1) == -1);
// order("digits/epoch/0", 10) is 6 8 7 4 9 3 5 1 2 0; projections 0 to 3 of the tensor fc.weight
// with the elements 1 2 3 4 are 10, 2, 10 and -2.

}  // namespace backcast::training
