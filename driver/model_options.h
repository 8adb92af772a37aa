// The options by which compile, run and verify change what a model's computation looks like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/compiler.h"

namespace CLI {
class App;
}

namespace backcast {

class ModelOptions {
 public:
  /// Adds --winograd, --threads, --skip-zeros, --bands and --input-range; this object must
  /// outlive the parsing.
  void add_to(CLI::App& app);
  /// CompileError for a word or a range that is none.
  void apply_to(CompileRequest& request) const;

 private:
  std::string winograd_ = "off", skip_zeros_ = "auto", bands_ = "auto";
  std::optional<int64_t> threads_;
  std::vector<std::string> ranges_;
};

}  // namespace backcast
