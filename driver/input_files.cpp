#include "driver/input_files.h"

#include <fmt/format.h>

#include "driver/npy.h"
#include "ir/graph/error.h"

namespace backcast {

std::vector<Literal> read_inputs(const std::string& option, const std::vector<std::string>& words,
                                 const std::vector<std::string>& names) {
  std::vector<Literal> inputs(names.size());
  std::vector<char> given(names.size(), 0);
  size_t next = 0;
  for (const std::string& word : words) {
    size_t equals = word.find('='), at = names.size();
    for (size_t i = 0; equals != std::string::npos && i < names.size(); ++i) {
      if (names[i] == word.substr(0, equals)) at = i;
    }
    std::string path = at < names.size() ? word.substr(equals + 1) : word;
    if (at == names.size()) at = next++;
    if (at >= names.size()) {
      throw CompileError(fmt::format("{} {}: the model has {} inputs", option, word, names.size()));
    }
    inputs[at] = read_tensor(path);
    given[at] = 1;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!given[i])
      throw CompileError(
          fmt::format("input \"{}\" is missing: {} {}=FILE.npy", names[i], option, names[i]));
  }
  return inputs;
}

}  // namespace backcast
