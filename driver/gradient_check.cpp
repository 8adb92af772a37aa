#include "driver/gradient_check.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "backend/library/abi.h"
#include "driver/npy.h"
#include "ir/graph/error.h"

namespace backcast {

namespace fs = std::filesystem;

bool GradientReport::passed() const {
  for (const GradientError& error : parameters) {
    if (!error.passed()) return false;
  }
  return !has_expected_loss ||
         std::abs(loss - expected_loss) <= 1e-4 * std::max(1.0, std::abs(expected_loss));
}

uint64_t random_bits(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double random_uniform(uint64_t seed, uint64_t index) {
  return static_cast<double>(random_bits(seed, index) >> 40) / 8388608.0 - 1.0;
}

namespace {

constexpr int64_t kProjections = 16;

double norm_of(const Literal& tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    sum += tensor.as_double(i) * tensor.as_double(i);
  }
  return std::sqrt(sum);
}

double distance_between(const Literal& a, const Literal& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.element_count(); ++i) {
    const double d = a.as_double(i) - b.as_double(i);
    sum += d * d;
  }
  return std::sqrt(sum);
}

/// The sum of the elements with the signs of projection k.
double project(const std::string& name, int64_t k, const Literal& tensor) {
  const uint64_t seed = name_hash(fmt::format("{}#{}", name, k));
  double sum = 0;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    const bool negative = random_bits(seed, static_cast<uint64_t>(i)) >> 63 != 0;
    sum += negative ? -tensor.as_double(i) : tensor.as_double(i);
  }
  return sum;
}

GradientError against_digest(const std::string& name, const Literal& gradient,
                             const Literal& digest) {
  GradientError error{name, digest.as_double(0), 0, 0};
  double sum = 0;
  for (int64_t k = 0; k < kProjections; ++k) {
    const double d = project(name, k, gradient) - digest.as_double(k + 1);
    sum += d * d;
  }
  error.distance = std::sqrt(sum / kProjections);
  return error;
}

void allow(GradientReport& report, double relative) {
  double all = 0;
  for (const GradientError& error : report.parameters) all += error.norm * error.norm;
  all = std::sqrt(all);
  for (GradientError& error : report.parameters) {
    error.allowed = relative * std::max(error.norm, 1e-2 * all);
  }
}

}  // namespace

GradientReport check_against_files(const LossFunctionUnderTest& function,
                                   const std::vector<std::string>& names,
                                   const std::vector<Literal>& parameters,
                                   const std::string& folder, double relative) {
  const std::vector<Literal> results = function.evaluate(parameters);
  GradientReport report;
  report.loss = results[0].as_double(0);
  if (fs::exists(fs::path(folder) / "loss.pb")) {
    report.has_expected_loss = true;
    report.expected_loss = read_tensor(folder + "/loss.pb").as_double(0);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const Literal& gradient = results[i + 1];
    const std::string whole = folder + "/gradient_" + names[i] + ".pb";
    const std::string digest = folder + "/digest_" + names[i] + ".pb";
    if (fs::exists(whole)) {
      const Literal expected = read_tensor(whole);
      if (expected.shape() != gradient.shape()) {
        throw CompileError(
            fmt::format("{}: the gradient is {}", whole, to_string(gradient.type())));
      }
      report.parameters.push_back(
          {names[i], norm_of(expected), distance_between(gradient, expected), 0});
    } else if (fs::exists(digest)) {
      report.parameters.push_back(against_digest(names[i], gradient, read_tensor(digest)));
    } else {
      throw CompileError(fmt::format("{}: neither it nor {} exists", whole, digest));
    }
  }
  allow(report, relative);
  return report;
}

namespace {

/// One to step along from a parameter.
struct Direction {
  std::vector<double> elements;
  double length = 0, slope = 0;  // slope: of the loss, by the gradient
};

Direction random_direction(uint64_t seed, const Literal& gradient) {
  Direction direction;
  double squares = 0;
  for (int64_t i = 0; i < gradient.element_count(); ++i) {
    const double element = random_uniform(seed, static_cast<uint64_t>(i));
    direction.elements.push_back(element);
    direction.slope += element * gradient.as_double(i);
    squares += element * element;
  }
  direction.length = std::sqrt(squares);
  return direction;
}

Literal moved(const Literal& tensor, const std::vector<double>& direction, double step) {
  std::vector<double> values(direction.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = tensor.as_double(static_cast<int64_t>(i)) + step * direction[i];
  }
  return Literal::from_doubles(tensor.element(), tensor.shape(), values);
}

/// How far the gradient along a direction of some length is from a difference of losses with this
/// step, which is of the same length whatever the parameter's size; per unit of length.
double difference_error(const LossFunctionUnderTest& function, std::vector<Literal> parameters,
                        size_t p, const Direction& direction, double step) {
  const double length = std::max(direction.length, 1e-30);
  const double h = step / length;
  const Literal middle = parameters[p];
  parameters[p] = moved(middle, direction.elements, h);
  const double up = function.evaluate(parameters)[0].as_double(0);
  parameters[p] = moved(middle, direction.elements, -h);
  const double down = function.evaluate(parameters)[0].as_double(0);
  return std::abs((up - down) / (2 * h) - direction.slope) / length;
}

/// How far losses are from what the gradient says along steps so short that nothing but rounding,
/// and an error of the gradient a thousand times over, would show.
double noise_of(const LossFunctionUnderTest& function, std::vector<Literal> parameters, size_t p,
                const Direction& direction, double step, double loss) {
  const double length = std::max(direction.length, 1e-30);
  const Literal middle = parameters[p];
  double noise = 0;
  for (int part = -16; part <= 16; ++part) {
    if (part == 0) continue;
    const double h = part * step / 16384 / length;
    parameters[p] = moved(middle, direction.elements, h);
    const double there = function.evaluate(parameters)[0].as_double(0);
    noise = std::max(noise, std::abs(there - loss - h * direction.slope));
  }
  return noise;
}

}  // namespace

GradientReport check_against_differences(const LossFunctionUnderTest& function,
                                         const std::vector<std::string>& names,
                                         const std::vector<Literal>& parameters, double step,
                                         double relative) {
  constexpr uint64_t kDirections = 2;
  const std::vector<Literal> results = function.evaluate(parameters);
  GradientReport report;
  report.loss = results[0].as_double(0);
  for (size_t p = 0; p < names.size(); ++p) {
    const Literal& gradient = results[p + 1];
    GradientError error{names[p], norm_of(gradient), 0, 0};
    for (uint64_t k = 0; k < kDirections; ++k) {
      const Direction direction = random_direction(name_hash(names[p]) + k, gradient);
      double distance = difference_error(function, parameters, p, direction, step);
      // An activation may bend within the step, where both sides' slopes are right.
      for (double smaller : {step / 16, step / 256}) {
        if (distance <= relative * error.norm) break;
        distance =
            std::min(distance, difference_error(function, parameters, p, direction, smaller));
      }
      if (!(distance <= error.distance)) error.distance = distance;  // one that is no number stays
    }
    report.parameters.push_back(error);
  }
  allow(report, relative);
  // A loss is no nearer to the truth than it is rounded, and no difference of two tells more.
  const double rounding = results[0].element() == ElementType::f64
                              ? std::numeric_limits<double>::epsilon()
                              : static_cast<double>(std::numeric_limits<float>::epsilon());
  for (size_t p = 0; p < names.size(); ++p) {
    GradientError& error = report.parameters[p];
    error.allowed = std::max(error.allowed, rounding * std::abs(report.loss) / (2 * step));
    if (error.distance <= error.allowed) continue;
    // What it is computed of may be larger: (sum(softmax(x)) - t)^2 depends on nothing.
    const Direction direction = random_direction(name_hash(names[p]), results[p + 1]);
    const double noise = noise_of(function, parameters, p, direction, step, report.loss);
    error.allowed = std::max(error.allowed, noise / step);
  }
  return report;
}

}  // namespace backcast
