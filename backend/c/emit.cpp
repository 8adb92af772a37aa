// Assembles the C file (emit.h).
#include "backend/c/emit.h"

#include "backend/c/constants.h"
#include "backend/c/entry_writer.h"
#include "backend/c/file_settings.h"
#include "backend/c/kernel_writer.h"
#include "backend/c/pieces.h"
#include "backend/c/state_writer.h"
#include "ir/graph/error.h"
#include "ir/loop/liveness.h"

namespace backcast {

namespace {

using c_backend::KernelText;
using c_backend::Prelude;

/// What math functions call comes before them.
void append_functions(const loop::Program& program, Prelude& prelude,
                      const std::set<std::string>& roots, std::set<std::string>& written,
                      std::string& text) {
  std::vector<std::pair<std::string, bool>> pending;
  for (const std::string& root : roots) pending.emplace_back(root, false);
  std::map<std::string, KernelText> texts;
  while (!pending.empty()) {
    const auto [name, is_open] = pending.back();
    pending.pop_back();
    if (written.contains(name)) continue;
    if (is_open) {
      written.insert(name);
      text += texts.at(name).definition + "\n";
      continue;
    }
    const KernelText& function =
        texts
            .try_emplace(
                name, c_backend::math_text(prelude, program.functions.at(name), program.functions))
            .first->second;
    pending.emplace_back(name, true);
    for (const std::string& called : function.called) {
      BC_CHECK(called != name, "math function {} calls itself", name);
      pending.emplace_back(called, false);
    }
  }
}

std::string opening(const loop::Program& program, const CSource& result, const TargetInfo& target,
                    const COptions& options) {
  const HeaderOptions& header = options.header;
  std::string text = "/* SPDX-License-Identifier: 0BSD */\n";
  text += fmt::format("/* {}: made by Backcast {} from {} for {}.\n", program.name, header.version,
                      comment_text(header.model_file), header.target);
  text += fmt::format(" * Compile with: {}\n", result.command);
  text +=
      " * Integers wrap, floats are IEEE, nothing is fused or reassociated: every compiler gives\n"
      " * the same bits on a machine. GNU C (gcc 12, clang 19 or later) needs no library";
  text += target.vector_bits > 0 ? ". */\n"
                                 : "; other\n"
                                   " * compilers of C99 take memcpy, memmove, memset, and fma and "
                                   "sqrt if it has them. */\n";
  return text + fmt::format("#include \"{}.h\"\n\n", program.name);
}

std::string command_of(const loop::Program& program, const TargetInfo& target) {
  std::string command = target.c_command;
  if (command.empty()) {
    command = target.cross_compiler.empty() ? "cc" : target.cross_compiler;
    if (!target.compiler_flags.empty()) command += " " + target.compiler_flags;
  }
  const bool is_any = target.architecture == Architecture::any;
  return fmt::format("{} -std={} -O2 -c {}.c", command, is_any ? "c99" : "c11", program.name);
}

}  // namespace

CSource emit_c(const loop::Program& program, const TargetInfo& target, const COptions& options) {
  const Abi abi = abi_of(program);
  CSource result;
  result.command = command_of(program, target);
  result.constants_name = program.name + ".constants.bin";
  // Only GNU C includes a file's bytes.
  const int64_t inline_constants =
      target.architecture == Architecture::any ? INT64_MAX : options.inline_constants;
  c_backend::ConstantsText constants =
      c_backend::constants_text(program, abi, target, inline_constants, result.constants_name);
  result.constants_bin = std::move(constants.binary);

  Prelude prelude(target);
  const std::map<std::string, c_backend::KernelUse> uses = c_backend::kernel_uses(program);
  std::map<std::string, std::string> names;
  Identifiers identifiers;
  std::string functions, kernels, entries;
  std::set<std::string> used, written, cut;
  bool has_steps = false;
  for (const loop::EntryPoint& entry : program.entries) {
    has_steps = has_steps || !entry.steps.empty();
    for (const loop::Step* step : loop::flat_steps(entry.steps)) {
      if (step->kind == loop::StepKind::call) used.insert(step->kernel);
      if (step->grain > 0) cut.insert(step->kernel);
    }
  }
  for (const auto& [name, kernel] : program.kernels) {
    if (!used.contains(name)) continue;
    names[name] = identifiers.make("kernel_" + sanitize(name));
    const auto use = uses.find(name);
    const KernelText text = c_backend::kernel_text(
        prelude, kernel, names[name], use == uses.end() ? c_backend::KernelUse{} : use->second,
        program.functions);
    append_functions(program, prelude, text.called, written, functions);
    kernels += text.definition + "\n";
    if (cut.contains(name)) kernels += c_backend::piece_text(kernel, names[name]) + "\n";
    result.stack_bytes = std::max(result.stack_bytes, text.stack_bytes);
  }
  const c_backend::EntryContext context = {program, names, constants.names, options.names};
  for (size_t i = 0; i < program.entries.size(); ++i) {
    entries += c_backend::entry_text(prelude, context, program.entries[i], abi.entries[i]);
    if (i + 1 < program.entries.size()) entries += '\n';
  }
  // The frames of entry point and kernel: saved registers, arguments, some spilled values.
  constexpr int64_t kFrames = 1536;
  result.stack_bytes += kFrames;
  result.source = opening(program, result, target, options) +
                  (options.needs_options ? c_backend::options_check(target) : "") +
                  c_backend::file_settings(target, prelude.has_vectors());
  result.source += c_backend::wrap_lines(constants.text + prelude.text() + functions + kernels +
                                         (has_steps ? c_backend::hooks_text() : "") +
                                         (cut.empty() ? "" : c_backend::pieces_text()) +
                                         c_backend::state_text(abi, program, constants) + entries +
                                         c_backend::state_functions_text(abi, constants));
  HeaderOptions header = options.header;
  header.stack_bytes = result.stack_bytes;
  header.stack_is_estimate = true;
  result.header = header_text(abi, header);
  return result;
}

}  // namespace backcast
