// The way of the data in one place: model file → imported module → program → files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/library/abi.h"
#include "driver/derivatives.h"
#include "driver/training.h"
#include "frontend/import.h"
#include "ir/graph/error.h"
#include "ir/loop/program.h"
#include "ir/target/target_info.h"
#include "passes/pipeline.h"

namespace backcast {

enum class Emit { lib, c, obj, llvm, ir };
/// Without a word the library, or C where the target has no other form. CompileError for an unknown
/// word, and for a form that the target has not.
Emit parse_emit(const std::string& word, const TargetInfo& target);

/// A row of the table, or the host for "native". CompileError listing the names.
TargetInfo resolve_target(const std::string& name);

struct CompileRequest {
  std::string model;                 // path
  std::optional<std::string> bytes;  // of the model, where it is no file; not of one that learns
  std::string name;                  // of the library; empty: from the file's name
  std::string target = "native";
  ImportOptions import_options;
  std::optional<TrainingRequest> training;  // the library also trains
  DerivativeRequest derivatives;            // entry points beside `run`; not with training
  PipelineOptions pipeline;
  bool one_thread = false;  // nothing is cut for a parallel_for
};

struct CompiledModel {
  ImportedModel imported;
  TargetInfo target;
  PipelineResult result;
  Abi abi;
  std::string model_file;   // without folders
  int64_t macs_before = 0;  // with the channels that are dropped; 0: there are none
  std::string promise;      // "valid for inputs within ±1e+06"; empty: for all
  std::string training;     // "training with mse and adam"; empty without
};

/// `message` with the file's name (without folders) in front of every line that lacks it.
std::string name_file(const std::string& message, const std::string& path);

/// What `work` gives; its CompileError names the file.
template <typename Work>
auto with_file_named(const std::string& path, const Work& work) {
  try {
    return work();
  } catch (const CompileError& error) {
    throw CompileError(name_file(error.what(), path));
  }
}

/// CompileError, with the file's name in front, for whatever the user has to mend.
CompiledModel compile_model(const CompileRequest& request);

/// A C identifier from a wish or, when that is empty, from the model's file name. CompileError when
/// a wish is none.
std::string library_name(const std::string& wish, const std::string& model_path);

/// Name → bytes of every file that an emission consists of.
using Files = std::map<std::string, std::string>;
struct EmitOptions {
  /// The hooks of bc_context are told names of steps; unless chosen, not on microcontrollers, where
  /// these would take flash.
  std::optional<bool> names;
};
Files emit_files(const CompiledModel& model, Emit emit, const EmitOptions& options = {});

/// Writes all files or none: each goes to a temporary neighbour first. Creates the folder.
/// CompileError when the folder cannot be made or written.
void write_files(const std::string& folder, const Files& files);

std::string read_file(const std::string& path);  // CompileError

}  // namespace backcast
