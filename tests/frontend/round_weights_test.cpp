#include "frontend/round_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace backcast {
namespace {

constexpr int64_t kSize = 24;

/// What a channel's weights are multiplied by: rows that are sums of a few directions, so that
/// their elements go together.
std::vector<std::vector<double>> random_rows(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> directions(6, std::vector<double>(kSize));
  for (auto& direction : directions)
    std::ranges::generate(direction, [&] { return normal(random); });
  std::vector<std::vector<double>> rows(200, std::vector<double>(kSize));
  for (auto& row : rows) {
    for (const auto& direction : directions) {
      const double part = normal(random);
      for (size_t k = 0; k < kSize; ++k) row[k] += part * direction[k];
    }
    for (double& x : row) x += 0.1 * normal(random);
  }
  return rows;
}

Moments moments_of(const std::vector<std::vector<double>>& rows) {
  Moments moments{kSize, std::vector<double>(kSize * kSize)};
  for (const auto& row : rows) {
    for (size_t i = 0; i < kSize; ++i) {
      for (size_t j = 0; j < kSize; ++j) moments.sums[i * kSize + j] += row[i] * row[j];
    }
  }
  return moments;
}

Channels random_weights(int64_t channels, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Channels weights{
      {channels, kSize}, 0, std::vector<double>(static_cast<size_t>(channels * kSize))};
  std::ranges::generate(weights.values, [&] { return normal(random); });
  return weights;
}

/// The square error of a channel's results.
double error_of(const Channels& weights, const RoundedWeights& rounded, size_t channel,
                const std::vector<std::vector<double>>& rows) {
  double error = 0;
  for (const auto& row : rows) {
    double difference = 0;
    for (size_t k = 0; k < kSize; ++k) {
      const size_t i = channel * kSize + k;
      difference += row[k] * (weights.values[i] - rounded.steps[i] * rounded.scales[channel]);
    }
    error += difference * difference;
  }
  return error;
}

TEST(RoundWeights, ResultsAreNearerThanThoseOfNearestWeights) {
  const auto rows = random_rows(1);
  const Channels weights = random_weights(8, 2);
  const std::vector<double> least(8, 0);
  const RoundedWeights alone = round_weights(weights, 4, least, {});
  const RoundedWeights together = round_weights(weights, 4, least, {moments_of(rows)});
  double before = 0, after = 0;
  for (size_t c = 0; c < 8; ++c) {
    before += error_of(weights, alone, c, rows);
    after += error_of(weights, together, c, rows);
  }
  EXPECT_LT(after, before / 10);
  for (const double step : together.steps) {
    EXPECT_EQ(step, std::nearbyint(step));
    EXPECT_GE(step, -8);
    EXPECT_LE(step, 7);
  }
}

TEST(RoundWeights, EachWeightByItselfIsNearest) {
  const Channels weights = random_weights(3, 3);
  const RoundedWeights rounded = round_weights(weights, 4, {0, 0, 0}, {});
  for (size_t i = 0; i < weights.values.size(); ++i) {
    const double scale = rounded.scales[i / kSize], exact = weights.values[i] / scale;
    EXPECT_LE(std::abs(std::clamp(exact, -8.0, 7.0) - rounded.steps[i]), 0.5);
  }
}

TEST(RoundWeights, WhatFitsStays) {
  Channels weights{{1, kSize}, 0, {}};
  for (int64_t k = 0; k < kSize; ++k) {
    weights.values.push_back(0.125 * static_cast<double>(k % 15 - 7));
  }
  for (const auto& groups : {std::vector<Moments>{}, {moments_of(random_rows(4))}}) {
    const RoundedWeights rounded = round_weights(weights, 4, {0}, groups);
    EXPECT_EQ(rounded.scales[0], 0.125);
    for (size_t k = 0; k < kSize; ++k) EXPECT_EQ(0.125 * rounded.steps[k], weights.values[k]);
  }
}

TEST(RoundWeights, GroupsOfChannelsHaveTheirOwnMoments) {
  const Moments first = moments_of(random_rows(5)), second = moments_of(random_rows(6));
  const Channels weights = random_weights(4, 7);
  const std::vector<double> least(4, 0);
  const RoundedWeights both = round_weights(weights, 4, least, {first, second});
  const RoundedWeights one = round_weights(weights, 4, least, {first});
  const RoundedWeights other = round_weights(weights, 4, least, {second});
  const auto half = static_cast<std::ptrdiff_t>(both.steps.size() / 2);
  EXPECT_TRUE(std::equal(both.steps.begin(), both.steps.begin() + half, one.steps.begin()));
  EXPECT_TRUE(std::equal(both.steps.begin() + half, both.steps.end(), other.steps.begin() + half));
}

TEST(RoundWeights, NoScaleIsBelowTheLeast) {
  const RoundedWeights rounded = round_weights(random_weights(2, 8), 4, {3, 0}, {});
  EXPECT_EQ(rounded.scales[0], 3);
  EXPECT_LT(rounded.scales[1], 3);
}

TEST(RoundWeights, MomentsOfNothingChangeNothing) {
  const Channels weights = random_weights(2, 9);
  const Moments nothing{kSize, std::vector<double>(kSize * kSize)};
  EXPECT_EQ(round_weights(weights, 4, {0, 0}, {nothing}).steps,
            round_weights(weights, 4, {0, 0}, {}).steps);
}

}  // namespace
}  // namespace backcast
