// What an object (ELF, WebAssembly, COFF or Mach-O) holds: for the size report, and for the tests
// that hold a library to its contract.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace backcast {

struct ObjectSection {
  std::string name;
  int64_t bytes = 0;
  bool allocated = false;  // takes memory on the device
  bool writable = false;
  bool executable = false;
};

struct ObjectSymbol {
  std::string name;
  bool defined = false;
  bool global = false;
  int64_t bytes = 0;
};

struct ObjectSummary {
  std::string architecture;  // LLVM's name: "x86_64", "thumb", "aarch64", …
  int bits = 0;              // 32 or 64
  uint32_t elf_flags = 0;    // e_flags of an ELF header
  std::vector<ObjectSection> sections;
  std::vector<ObjectSymbol> symbols;
};

/// InternalError when the bytes are of another format.
ObjectSummary read_object(std::string_view bytes);

/// Names and bytes of an archive's members, in order; InternalError when it is none.
std::vector<std::pair<std::string, std::string>> read_archive(std::string_view bytes);

}  // namespace backcast
