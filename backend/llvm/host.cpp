// See host.h.
#include "backend/llvm/host.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <set>

#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Features in alphabetical order, so that equal hosts give equal text.
std::string feature_text(const llvm::StringMap<bool>& features) {
  std::set<std::string> sorted;
  for (const llvm::StringMapEntry<bool>& feature : features) {
    sorted.insert((feature.second ? "+" : "-") + feature.first().str());
  }
  std::string text;
  for (const std::string& feature : sorted) text += (text.empty() ? "" : ",") + feature;
  return text;
}

void describe_x86(TargetInfo& target, const llvm::StringMap<bool>& features) {
  const bool avx512 = features.lookup("avx512f") && features.lookup("avx512vl") &&
                      features.lookup("avx512bw") && features.lookup("avx512dq");
  const bool avx2 = features.lookup("avx2") && features.lookup("fma");
  const TargetInfo* row = find_target(avx512 ? "x86-64-v4" : (avx2 ? "x86-64-v3" : "x86-64"));
  const std::string cpu = target.cpu;
  const std::string triple = target.triple;
  target = *row;
  target.cpu = cpu;
  target.triple = triple;
  target.features = feature_text(features);
  if (avx512) target.features += ",-prefer-256-bit";
  target.byte_products =
      features.lookup("avxvnni") || (features.lookup("avx512vnni") && features.lookup("avx512vl"));
  target.converts_halves = features.lookup("f16c");
  target.byte_tables = avx512 && features.lookup("avx512vbmi");
  target.halves_vectors = avx512 && cpu == "znver4";
  target.l1_bytes = 32 << 10;
  target.l2_bytes = avx512 ? 1 << 20 : 512 << 10;
  target.compiler_flags = "-march=native";
  if (avx512) target.compiler_flags += " -mprefer-vector-width=512";
}

}  // namespace

TargetInfo host_target() {
  TargetInfo target;
  target.triple = llvm::Triple::normalize(llvm::sys::getProcessTriple());
  target.cpu = llvm::sys::getHostCPUName().str();
  const llvm::Triple triple(target.triple);
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (triple.getArch() == llvm::Triple::x86_64) {
    describe_x86(target, features);
  } else if (triple.isAArch64()) {
    const std::string cpu = target.cpu;
    const std::string name = target.triple;
    target = *find_target("aarch64");
    target.cpu = cpu;
    target.triple = name;
    target.features = feature_text(features);
    target.byte_products = features.lookup("i8mm");
    target.signed_byte_products = features.lookup("dotprod");
    target.compiler_flags = "-mcpu=native";
  } else {
    throw CompileError(
        fmt::format("no description of this host ({}); name a --target", target.triple));
  }
  target.name = "native";
  target.summary = fmt::format("this host ({})", target.cpu);
  target.runner = Runner::native;
  target.qemu.clear();
  target.qemu_cpu.clear();
  target.cross_compiler = "gcc";
  return target;
}

}  // namespace backcast
