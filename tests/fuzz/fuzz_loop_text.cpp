// Feeds text to loop IR's parser: a CompileError, or a program whose text parses to the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "ir/graph/error.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string printed, constants;
  try {
    const backcast::loop::Program program = backcast::loop::parse_program(text);
    printed = backcast::loop::print(program);
    constants = backcast::loop::print_constants(program);
  } catch (const backcast::CompileError&) {
    return 0;
  }
  // Outside of the try: what was printed has to parse.
  if (backcast::loop::print(backcast::loop::parse_program(printed, constants)) != printed) abort();
  return 0;
}
