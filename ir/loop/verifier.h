// Checks a program: names bound before use and unique, types of operands agree, buffers and ranks
// match, calls fit their kernels, steps read what was written, planned arena buffers inside the
// arena and live ones disjoint.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ir/loop/program.h"

namespace backcast::loop {

/// Throws InternalError naming `after` (a pass), kernel and expression.
void verify(const Program& program, std::string_view after = {});
void verify(const Kernel& kernel, std::string_view after = {});

/// Verifies the program that each pass leaves: kernels that are as they were, which most are, are
/// not looked at again.
class Verifier {
 public:
  void run(const Program& program, std::string_view after = {});

 private:
  void forget_unless_same(const std::map<std::string, MathFunction>& functions);

  std::map<std::string, MathFunction> functions_;
  std::map<std::string, Kernel> verified_;
  std::map<std::string, std::set<std::string>> read_first_;  // see verify_reads.h
};

}  // namespace backcast::loop
