// One line on a terminal that says what takes long, and goes when it is over.
#pragma once

#include <chrono>
#include <cstdio>
#include <string_view>

namespace backcast {

/// Writes to `stream` only while that is a terminal: logs and pipes get nothing.
class ProgressLine {
 public:
  explicit ProgressLine(std::FILE* stream);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Clears the line.
  ~ProgressLine();

  /// Replaces the line, a few times per second at most.
  void show(std::string_view text);

 private:
  std::FILE* stream_;
  bool terminal_ = false, shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace backcast
