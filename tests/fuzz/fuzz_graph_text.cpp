// Feeds text to graph IR's parser: a CompileError, or a module whose text parses to the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "ir/graph/error.h"
#include "ir/graph/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string printed;
  try {
    printed = backcast::print(backcast::parse_module(text), {.max_inline_elements = 1 << 20});
  } catch (const backcast::CompileError&) {
    return 0;
  }
  // Outside of the try: what was printed has to parse.
  if (backcast::print(backcast::parse_module(printed), {.max_inline_elements = 1 << 20}) !=
      printed) {
    abort();
  }
  return 0;
}
