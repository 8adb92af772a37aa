// Runs a program and collects what it prints.
#pragma once

#include <string>
#include <vector>

namespace backcast {

struct SubprocessResult {
  int status = 0;      // exit status; 124: time limit; 127: no such program
  std::string output;  // stdout and stderr together
};

/// Runs argv in `folder` without standard input, for at most `seconds`.
SubprocessResult run_subprocess(const std::vector<std::string>& argv, const std::string& folder,
                                int seconds);

/// Is there a program of this name on PATH?
bool program_exists(const std::string& name);

}  // namespace backcast
