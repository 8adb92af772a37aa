// Compiling emitted C with the compilers of this machine, loading it, and running entry points.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/literal.h"
#include "ir/loop/program.h"
#include "ir/target/target_info.h"
#include "tests/backend_c/cases.h"

namespace backcast::c_test {

struct Compiler {
  std::string name, command;
};
/// gcc and clang as far as they are installed.
std::vector<Compiler> host_compilers();
bool is_installed(const std::string& program);

/// x86-64-v3 where this machine can run it, else plain x86-64.
const TargetInfo& host_target();

/// Runs a shell command; returns its output, `ok` tells whether it ended with 0.
std::string run_command(const std::string& command, bool& ok);

/// A folder of its own that vanishes with the object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

/// The programs' C in one shared library.
class Library {
 public:
  /// `messages` is empty when the compiler was content.
  Library(const Folder& folder, const std::vector<Case>& cases, const TargetInfo& target,
          const std::string& command, std::string& messages);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  void* symbol(const std::string& name) const;

 private:
  void* handle_ = nullptr;
};

/// Calls the first entry point with sizes taken from the inputs' shapes; outputs are filled with a
/// pattern first. `status` is what it returned.
std::vector<Literal> run(const Library& library, const Case& c, int32_t& status);

/// Bits, except that all NaNs are one. Says where they differ.
std::string difference(const Literal& actual, const Literal& expected);

}  // namespace backcast::c_test
