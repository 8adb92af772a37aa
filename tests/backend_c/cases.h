// Programs that exercise the C emission, built by hand, with inputs of their own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/graph/literal.h"
#include "ir/loop/program.h"

namespace backcast::c_test {

struct Case {
  loop::Program program;  // one entry point, planned
  std::vector<Literal> inputs;
};

/// A program of one kernel: buffers are added as they are asked for.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(const std::string& name);

  /// Adds a parameter of the kernel bound to an input or output of the program.
  std::string input(const std::string& name, ElementType element, std::vector<int64_t> shape,
                    const std::vector<double>& values);
  /// The value's elements, in the order given, in this (constant) shape.
  std::string input(const std::string& name, Literal value, Dims shape);
  std::string output(const std::string& name, ElementType element, Dims shape);
  loop::Program& program() { return result_.program; }
  /// The kernel computes `body`; every parameter is passed, symbols of shapes become sizes.
  Case finish(loop::Stmt body, int64_t macs = 0);

 private:
  void parameter(const std::string& name, ElementType element, Dims shape, loop::BufferClass kind);
  Case result_;
  loop::Kernel kernel_;
  std::vector<loop::BufferId> buffers_;
};

/// Values that catch mistakes: extremes, signed zeros, denormals, infinities, and mixed ones.
Literal interesting(ElementType element, int64_t count, uint32_t seed);
/// Small non-negative values, or what `limit` allows.
Literal small_values(ElementType element, int64_t count, int64_t limit, uint32_t seed);

std::vector<Case> arithmetic_cases();  // all types, scalar and vector
std::vector<Case> pair_product_cases();
std::vector<Case> byte_product_cases();
std::vector<Case> byte_look_up_cases();
/// Without denormals. Need fma and rounding.
std::vector<Case> register_cases();
std::vector<Case> nearest_cases(std::span<const int32_t> lanes);
/// Between f16 and f32. Have to be legalised.
std::vector<Case> half_cases(std::span<const int32_t> lanes);
std::vector<Case> conversion_cases();  // casts, bit casts, selections
std::vector<Case> vector_cases();      // shuffles, reductions, gathers
std::vector<Case> statement_cases();   // loops, allocations, laziness, views, symbols
/// A tile of edge × edge whose lanes lie along the sum: every vector that is loaded has several
/// products. Needs fma.
Case lane_sums(int32_t lanes, int64_t edge);
std::vector<Case> math_cases(bool fma);
std::vector<Case> rounding_cases();
/// The same on vectors of 512 bits.
std::vector<Case> widest_cases();  // fma, sqrt, floor, … as instructions

}  // namespace backcast::c_test
