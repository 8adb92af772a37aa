// Feeds bytes to the importer: whatever they are, it answers with a module that verifies or with a
// CompileError that says something; external data is refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "frontend/import.h"
#include "ir/graph/error.h"
#include "ir/graph/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  backcast::ImportOptions options;
  options.dims["N"] = {1, 8};
  try {
    backcast::verify(backcast::import_model_bytes(bytes, "", options).module);
  } catch (const backcast::CompileError& error) {
    if (error.what()[0] == '\0') abort();
  }
  return 0;
}
