// The part of a header about a state: of a library that trains, or of one that takes streams.
#include "backend/library/header.h"
#include "backend/library/header_format.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

using Kind = StateFunction::Kind;

/// What an entry point with one of the usual names does.
std::string entry_comment(const EntryAbi& entry, bool accumulates, const std::string& stream) {
  if (!stream.empty()) return "Runs the model on the next positions. " + comment_text(stream);
  if (entry.name == "run") return "Runs the model with the parameters as they are.";
  if (entry.name == "evaluate") return "Loss and outputs on a batch; nothing is updated.";
  if (entry.name == "train_step" && accumulates) {
    return "Adds the gradient of a batch to the accumulated one. BC_ERROR_NONFINITE: nothing was "
           "added.";
  }
  if (entry.name == "train_step") {
    return "Updates the parameters by the gradient of a batch. BC_ERROR_NONFINITE: nothing was "
           "updated.";
  }
  if (entry.name == "apply") {
    return "Updates the parameters by the mean of what was accumulated, and clears it. "
           "BC_ERROR_STATE if there was no step since the last update.";
  }
  return fmt::format("Runs {}.{}", entry.name,
                     entry.writes_state ? "" : " The state stays as it is.");
}

std::string entry_text(const EntryAbi& entry, bool accumulates, const std::string& stream) {
  std::vector<std::string> arguments = {entry.writes_state ? "void *state" : "const void *state"};
  if (entry.has_structs) {
    arguments.push_back(fmt::format("const {}_inputs *in", entry.symbol));
    arguments.push_back(fmt::format("const {}_outputs *out", entry.symbol));
  }
  for (const char* rest : {"void *arena", "size_t arena_bytes", "const bc_context *context"}) {
    arguments.push_back(rest);
  }
  return filled_comment(entry_comment(entry, accumulates, stream)) +
         declaration(fmt::format("bc_status {}(", entry.symbol), arguments, ");") + "\n";
}

std::string function_comment(const Abi& abi, const StateFunction& function) {
  const std::string count = fmt::format("{}_PARAMETER_COUNT", abi.macro_prefix);
  switch (function.kind) {
    case Kind::init:
      if (abi.state.parameter_count == 0) {
        return "Wherever a sequence begins; `seed` feeds a generator, if the model has one.";
      }
      return "The model's own parameters, moments zero, step 0; `seed` feeds the generator.";
    case Kind::set_learning_rate:
      return "BC_ERROR_VALUE unless the rate is finite and not negative.";
    case Kind::get:
      if (function.roles == kGradientRoles) {
        return "The accumulated gradients, in the order of the parameters.";
      }
      return count +
             " values: in the order of the model file's initializers, row-major, running "
             "statistics last.";
    case Kind::save:
      return "A checkpoint holds all of the state and a checksum; loading another model's is "
             "refused with BC_ERROR_CHECKPOINT, and a failed loading leaves the state "
             "uninitialised.";
    default:
      return "";
  }
}

std::string function_text(const Abi& abi, const StateFunction& function) {
  const std::string& flat = abi.state.flat_type;
  const bool reads = function.kind == Kind::get || function.kind == Kind::save;
  std::vector<std::string> arguments = {reads ? "const void *state" : "void *state"};
  switch (function.kind) {
    case Kind::init:
      arguments.push_back("size_t state_bytes");
      arguments.push_back("uint64_t seed");
      break;
    case Kind::set_learning_rate:
      arguments.push_back("float rate");
      break;
    case Kind::get:
      arguments.push_back(flat + " *flat");
      break;
    case Kind::set:
      arguments.push_back("const " + flat + " *flat");
      break;
    case Kind::save:
      arguments.push_back("const bc_writer *writer");
      break;
    case Kind::load:
      arguments.push_back("const bc_reader *reader");
      break;
  }
  const std::string comment = function_comment(abi, function);
  const bool ends_group = function.kind != Kind::get && function.kind != Kind::save;
  return (comment.empty() ? "" : filled_comment(comment)) +
         declaration(fmt::format("bc_status {}(", function.symbol), arguments, ");") +
         (ends_group ? "\n" : "");
}

}  // namespace

std::string state_macros(const Abi& abi) {
  const StateAbi& state = abi.state;
  if (state.bytes == 0) return "";
  const std::string& prefix = abi.macro_prefix;
  Aligned lines;
  lines.add(fmt::format("#define {}_STATE_BYTES {}", prefix, state.bytes));
  lines.add(fmt::format("#define {}_STATE_ALIGN {}", prefix, state.alignment));
  lines.add(fmt::format("#define {}_STATE_ABI {}", prefix, kStateAbi));
  if (state.parameter_count > 0) {
    lines.add(fmt::format("#define {}_PARAMETER_COUNT {}", prefix, state.parameter_count),
              "elements of the flat vector of parameters");
  }
  if (state.batch > 0) lines.add(fmt::format("#define {}_BATCH {}", prefix, state.batch));
  if (state.accumulate > 0) {
    lines.add(fmt::format("#define {}_ACCUMULATE {}", prefix, state.accumulate));
  }
  return lines.text();
}

std::string state_declarations(const Abi& abi, const std::string& stream) {
  std::string text = filled_comment(fmt::format(
      "The state holds {2}: {0}_STATE_BYTES aligned "
      "to {0}_STATE_ALIGN, kept by the caller. Arenas need {0}_ARENA_BYTES aligned to "
      "{0}_ARENA_ALIGN{1}; their contents before and after mean nothing. Tensors must not overlap. "
      "`context` may be null.",
      abi.macro_prefix, abi.arena_bytes == 0 ? " and may be null" : "",
      abi.state.parameter_count > 0 ? "parameters, optimizer moments, step and generator"
                                    : "what a call hands on to the next one"));
  text += "\n";
  for (const StateFunction& function : abi.functions) {
    if (function.kind == Kind::init) text += function_text(abi, function);
  }
  for (const EntryAbi& entry : abi.entries) {
    text += entry_text(entry, abi.state.has_gradients, stream);
  }
  for (const StateFunction& function : abi.functions) {
    if (function.kind != Kind::init) text += function_text(abi, function);
  }
  return text;
}

}  // namespace backcast
