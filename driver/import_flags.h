// The options by which every command says what a model's inputs are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/import.h"

namespace CLI {
class App;
}

namespace backcast {

class ImportFlags {
 public:
  /// Adds --dim, --constant and --max-trips; this object must outlive the parsing.
  void add_to(CLI::App& app);
  /// CompileError for a word that is none: `--dim N=8` or `N=1..8`, `--constant sr=16000`.
  ImportOptions options() const;

 private:
  std::vector<std::string> dims_, constants_;
  std::optional<int64_t> max_trips_;
};

}  // namespace backcast
