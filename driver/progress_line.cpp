// "\r" and "erase to the end of line" are all that a terminal must understand.
#include "driver/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

namespace backcast {
namespace {

constexpr std::chrono::milliseconds kInterval{200};

}  // namespace

ProgressLine::ProgressLine(std::FILE* stream)
    : stream_(stream),
      terminal_(isatty(fileno(stream)) == 1),
      next_(std::chrono::steady_clock::now() + kInterval) {}

ProgressLine::~ProgressLine() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
}

void ProgressLine::show(std::string_view text) {
  if (!terminal_) return;
  const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  shown_ = true;
  fmt::print(stream_, "\r\x1b[K{}", text);
  std::fflush(stream_);
}

}  // namespace backcast
