// Assembles the C file (emit.h).
#include "backend/c/emit.h"

#include "backend/c/constants.h"
#include "backend/c/entry_writer.h"
#include "backend/c/kernel_writer.h"
#include "backend/c/neon.h"
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

std::string opening(const loop::Program& program, const CSource& result, const COptions& options) {
  const HeaderOptions& header = options.header;
  std::string text = "/* SPDX-License-Identifier: 0BSD */\n";
  text += fmt::format("/* {}: made by Backcast {} from {} for {}.\n", program.name, header.version,
                      comment_text(header.model_file), header.target);
  text += fmt::format(" * Compile with: {}\n", result.command);
  text +=
      " * Integers wrap, floats are IEEE, nothing is fused or reassociated: every compiler gives\n"
      " * the same bits on a machine. Needs no library; GNU C (gcc 12, clang 19 or later). */\n";
  return text + fmt::format("#include \"{}.h\"\n\n", program.name);
}

/// A condition on the macros of the options that the code relies on; empty where it needs none.
/// Other machines compile it as far as they can, for tests on a host.
std::string missing_options(const TargetInfo& target) {
  switch (target.architecture) {
    case Architecture::x86_64:
      if (target.vector_bits == 512) return "defined(__x86_64__) && !defined(__AVX512F__)";
      if (target.vector_bits < 256) return "";
      return "defined(__x86_64__) && !(defined(__AVX2__) && defined(__FMA__))";
    case Architecture::aarch64:
      if (target.byte_products)
        return "defined(__aarch64__) && !defined(__ARM_FEATURE_MATMUL_INT8)";
      if (!target.signed_byte_products) return "";
      return "defined(__aarch64__) && !defined(__ARM_FEATURE_DOTPROD)";
    case Architecture::arm:
    case Architecture::thumb:
      return target.has_f32 ? "defined(__arm__) && !defined(__ARM_FP)" : "";
    case Architecture::riscv32:
    case Architecture::riscv64:
      return target.has_f32 ? "defined(__riscv) && !defined(__riscv_flen)" : "";
    case Architecture::wasm32:
      return "defined(__wasm__) && !defined(__wasm_simd128__)";
    case Architecture::xtensa:
      break;
  }
  return "";
}

/// Ends the compilation where an option is missing, before hundreds of messages do.
std::string options_check(const TargetInfo& target) {
  const std::string missing = missing_options(target);
  if (missing.empty()) return "";
  return fmt::format("#if {}\n#error \"made for {}: compile with {}\"\n#endif\n\n", missing,
                     target.name, target.compiler_flags);
}

/// Macros and pragmas that say how the file is compiled.
std::string file_settings(const TargetInfo& target, bool has_vectors) {
  std::string text =
      "#if defined(__clang__)\n"
      "#pragma STDC FP_CONTRACT OFF\n"
      "#else\n"
      "/* A tile needs its registers: no loaded value is carried from one iteration to another.\n"
      " * gcc 12 makes wrong vectors of loops over several sums of small integers. */\n"
      "#pragma GCC optimize(\"fp-contract=off\", \"no-predictive-commoning\", \\\n"
      "  \"no-tree-loop-vectorize\")\n"
      "#if defined(__x86_64__)\n"
      "/* Tuned for one processor (-march=native), gcc reads again from memory what a register\n"
      " * holds for several products. */\n"
      "#pragma GCC target(\"tune=generic\")\n"
      "#endif\n"
      "#endif\n";
  if (has_vectors) {
    if (target.architecture == Architecture::arm) text += c_backend::neon_include();
    text += "#pragma GCC diagnostic ignored \"-Wpsabi\" /* all functions are local */\n";
  }
  return text +
         "\n"
         "typedef ptrdiff_t index_t;\n"
         "#define BC_INLINE static inline __attribute__((always_inline, unused))\n"
         "#define BC_KERNEL static __attribute__((noinline))\n"
         "#if defined(__arm__) && !defined(__clang__)\n"
         "/* For gcc: scheduling before register allocation and its default allocation spill\n"
         " * accumulators, reused registers put an addition behind its product, and a copy for "
         "one\n"
         " * caller's buffers computes every address anew. */\n"
         "#define BC_TILE_KERNEL static __attribute__((noinline, noclone, \\\n"
         "  optimize(\"no-schedule-insns\", \"ira-algorithm=priority\", "
         "\"rename-registers\")))\n"
         "#else\n"
         "#define BC_TILE_KERNEL BC_KERNEL\n"
         "#endif\n\n";
}

std::string command_of(const loop::Program& program, const TargetInfo& target) {
  std::string command = target.c_command;
  if (command.empty()) {
    command = target.cross_compiler.empty() ? "cc" : target.cross_compiler;
    if (!target.compiler_flags.empty()) command += " " + target.compiler_flags;
  }
  return fmt::format("{} -std=c11 -O2 -c {}.c", command, program.name);
}

}  // namespace

CSource emit_c(const loop::Program& program, const TargetInfo& target, const COptions& options) {
  const Abi abi = abi_of(program);
  CSource result;
  result.command = command_of(program, target);
  result.constants_name = program.name + ".constants.bin";
  c_backend::ConstantsText constants = c_backend::constants_text(
      program, abi, target, options.inline_constants, result.constants_name);
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
  result.source = opening(program, result, options) +
                  (options.needs_options ? options_check(target) : "") +
                  file_settings(target, prelude.has_vectors());
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
