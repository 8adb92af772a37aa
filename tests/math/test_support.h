// Both variants of the library, compiled once per test program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/loop/math_library.h"
#include "tests/math/c_translation.h"

namespace backcast::testing {

inline const CompiledFunctions& compiled(bool fma) {
  static const CompiledFunctions fused(loop::math_library(true));
  static const CompiledFunctions plain(loop::math_library(false));
  return fma ? fused : plain;
}

template <class Result, class Argument>
std::vector<Result> run(bool fma, const std::string& function, const std::vector<Argument>& x) {
  std::vector<Result> result(x.size());
  const void* arguments[] = {x.data()};
  compiled(fma).batch(function)(arguments, result.data(), static_cast<long>(x.size()));
  return result;
}

template <class Real>
std::vector<Real> run(bool fma, const std::string& function, const std::vector<Real>& x,
                      const std::vector<Real>& y) {
  std::vector<Real> result(x.size());
  const void* arguments[] = {x.data(), y.data()};
  compiled(fma).batch(function)(arguments, result.data(), static_cast<long>(x.size()));
  return result;
}

template <class Real>
const char* suffix() {
  return sizeof(Real) == 4 ? ".f32" : ".f64";
}

}  // namespace backcast::testing
