// See stream_flags.h.
#include "driver/stream_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "ir/graph/error.h"

namespace backcast {

void StreamFlags::add_to(CLI::App& app) {
  CLI::Option* stream =
      app.add_option("--stream", inputs_,
                     "NAME=AXIS: calls are given the next positions of this input along this axis "
                     "(counted from 0) and keep in the state what they need of earlier ones. "
                     "Outputs along the sequence give its next positions, others are those of the "
                     "latest stretch of the model's length; once per input that is a sequence")
          ->allow_extra_args(false);
  app.add_option("--hop", hop_,
                 "positions per call, of the first --stream; default: as few as strides allow")
      ->check(CLI::PositiveNumber)
      ->needs(stream);
  app.add_option("--stream-edges", edges_,
                 "where layers pad the model's sequence, or begin at rest: exact: refused where "
                 "that changes the result of a stretch; open: they see the stream's own positions")
      ->capture_default_str()
      ->needs(stream);
}

std::optional<StreamOptions> StreamFlags::options() const {
  if (inputs_.empty()) return std::nullopt;
  StreamOptions options;
  options.hop = hop_;
  if (edges_ != "exact" && edges_ != "open") {
    throw CompileError("--stream-edges " + edges_ + ": choose one of exact, open");
  }
  if (edges_ == "open") options.edges = StreamEdges::open;
  for (const std::string& word : inputs_) {
    const size_t equals = word.rfind('=');
    StreamInput input;
    if (equals != std::string::npos && equals > 0) {
      input.name = word.substr(0, equals);
      const char* end = word.data() + word.size();
      const auto [stop, error] = std::from_chars(word.data() + equals + 1, end, input.axis);
      if (error == std::errc() && stop == end) {
        options.inputs.push_back(input);
        continue;
      }
    }
    throw CompileError(fmt::format("--stream {}: write NAME=AXIS, such as audio=1", word));
  }
  return options;
}

}  // namespace backcast
