// The options by which a model is given its sequences piece by piece.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "passes/graph/stream.h"

namespace CLI {
class App;
}

namespace backcast {

class StreamFlags {
 public:
  /// Adds --stream, --hop and --stream-edges; this object must outlive the parsing.
  void add_to(CLI::App& app);
  /// Nothing without --stream. CompileError for a word that is none: `--stream audio=1`.
  std::optional<StreamOptions> options() const;

 private:
  std::vector<std::string> inputs_;
  std::optional<int64_t> hop_;
  std::string edges_ = "exact";
};

}  // namespace backcast
