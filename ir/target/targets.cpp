// The table of targets. Triples are normalised: LLVM reads an unnormalised one as soft float
// without a word.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "ir/graph/error.h"
#include "ir/target/target_info.h"

namespace backcast {
namespace {

constexpr const char* kArmCompiler = "arm-none-eabi-gcc";

// Cycles a fused multiply-add of a Cortex-M keeps the next instruction waiting. Cortex-M4:
// Technical Reference Manual. Cortex-M33's manual gives no figures; LLVM's table of processors
// marks fused forms as slow on both, and on neither Cortex-M7 nor Cortex-M55, whose units take one
// each cycle.
constexpr int kBlockingFma = 3, kPipelinedFma = 1;
// What a multiplication and an addition take instead.
constexpr int kSeparate = 2;

TargetInfo cortex_m(const char* name, const char* triple, const char* features, const char* machine,
                    int fma_cycles) {
  TargetInfo t;
  t.name = name;
  t.triple = triple;
  t.cpu = name;
  t.features = features;
  t.abi = "hard";
  t.architecture = Architecture::thumb;
  t.pointer_bits = 32;
  t.float_registers = 32;
  t.integer_registers = 13;
  t.has_fma = true;
  t.converts_to_nearest = t.converts_halves = true;
  t.prefers_fma = fma_cycles < kSeparate;
  t.fma_latency = 3;
  t.runner = Runner::qemu_system;
  t.qemu = machine;
  t.cross_compiler = kArmCompiler;
  return t;
}

/// Soft float. The board's Cortex-M3 executes ARMv6-M code.
TargetInfo cortex_m0() {
  TargetInfo t = cortex_m("cortex-m0", "thumbv6m-unknown-none-eabi", "", "mps2-an385", kSeparate);
  t.summary = "ARMv6-M, soft float";
  t.abi = "soft";
  t.has_f32 = t.has_f64 = t.has_fma = t.prefers_fma = false;
  t.converts_to_nearest = t.converts_halves = false;
  t.float_registers = 0;
  t.integer_registers = 8;
  t.unroll_budget = 128;
  t.has_data_cache = false;
  t.compiler_flags = "-mcpu=cortex-m0 -mthumb -mfloat-abi=soft";
  return t;
}

/// And every later core without a floating-point unit: twice the registers, and instructions that
/// multiply into a sum, of which Cortex-M0 has none.
TargetInfo cortex_m3() {
  TargetInfo t = cortex_m0();
  t.name = t.cpu = "cortex-m3";
  t.summary = "ARMv7-M, soft float";
  t.triple = "thumbv7m-unknown-none-eabi";
  t.integer_registers = 13;
  t.compiler_flags = "-mcpu=cortex-m3 -mthumb -mfloat-abi=soft";
  return t;
}

TargetInfo cortex_m4() {
  TargetInfo t = cortex_m("cortex-m4", "thumbv7em-unknown-none-eabihf", "+vfp4d16sp,-fp64",
                          "mps2-an386", kBlockingFma);
  t.summary = "ARMv7E-M, FPv4-SP";
  t.has_f64 = false;
  t.pair_products = true;
  t.has_data_cache = false;
  t.compiler_flags = "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard";
  return t;
}

TargetInfo cortex_m7() {
  TargetInfo t = cortex_m("cortex-m7", "thumbv7em-unknown-none-eabihf", "+fp-armv8d16,+fp64",
                          "mps2-an500", kPipelinedFma);
  t.summary = "ARMv7E-M, FPv5-D16";
  t.has_rounding = true;
  t.pair_products = true;
  t.l1_bytes = 16 << 10;
  t.compiler_flags = "-mcpu=cortex-m7 -mthumb -mfpu=fpv5-d16 -mfloat-abi=hard";
  return t;
}

TargetInfo cortex_m33() {
  TargetInfo t = cortex_m("cortex-m33", "thumbv8m.main-unknown-none-eabihf", "+fp-armv8d16sp,-fp64",
                          "mps2-an505", kBlockingFma);
  t.summary = "ARMv8-M, FPv5-SP";
  t.has_f64 = false;
  t.has_rounding = true;
  t.pair_products = true;
  t.has_data_cache = false;
  t.compiler_flags = "-mcpu=cortex-m33 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard";
  return t;
}

/// A Cortex-M55 that was built without its vector unit.
TargetInfo cortex_m55_nomve() {
  TargetInfo t = cortex_m("cortex-m55-nomve", "thumbv8.1m.main-unknown-none-eabihf",
                          "+fp-armv8d16,+fp64,-mve,-mve.fp", "mps3-an547", kPipelinedFma);
  t.cpu = "cortex-m55";
  t.summary = "ARMv8.1-M, FPv5-D16, without vectors";
  t.has_rounding = true;
  t.pair_products = true;
  t.compiler_flags = "-mcpu=cortex-m55+nomve -mthumb -mfloat-abi=hard";
  return t;
}

/// With MVE (Helium): eight registers that the floating-point unit's are parts of. Two beats of 64
/// bits make a vector instruction, so that a multiply-add takes a unit two cycles while the next
/// load goes on beside it. It flushes denormals of f32 to zero.
TargetInfo cortex_m55() {
  TargetInfo t = cortex_m55_nomve();
  t.name = "cortex-m55";
  t.features = "+fp-armv8d16,+fp64,+mve,+mve.fp";
  t.summary = "ARMv8.1-M with MVE (Helium)";
  t.vector_bits = 128;
  t.vector_registers = 8;
  t.vectors_of_f64 = t.partial_vectors = false;
  t.scalar_factors = t.widening_loads = t.halves_vectors = true;
  t.pair_products = false;
  t.summed_byte_products = true;
  t.fma_latency = 2;
  t.compiler_flags = "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard";
  return t;
}

TargetInfo linux_user(const char* name, const char* gnu, const char* qemu) {
  TargetInfo t;
  t.name = name;
  t.cross_compiler = fmt::format("{}-gcc", gnu);
  t.runner = Runner::qemu_user;
  t.qemu = qemu;
  t.float_registers = 32;
  t.has_fma = true;
  t.prefers_fma = true;
  t.parallel_grain = 1 << 16;
  return t;
}

/// What every ARMv7-A core with a VFPv4 runs, to the bit as in C.
TargetInfo armv7hf() {
  TargetInfo t = linux_user("armv7hf", "arm-linux-gnueabihf", "qemu-arm");
  t.summary = "ARMv7-A, VFPv4, hard float, no NEON";
  t.triple = "armv7-unknown-linux-gnueabihf";
  t.cpu = "generic";
  t.features = "+vfp4,-neon";
  t.abi = "hard";
  t.architecture = Architecture::arm;
  t.pointer_bits = 32;
  t.integer_registers = 13;
  t.converts_to_nearest = t.converts_halves = true;
  t.fma_latency = 8;
  t.qemu_cpu = "cortex-a15";
  t.compiler_flags = "-march=armv7-a -marm -mfpu=vfpv4 -mfloat-abi=hard";
  return t;
}

/// Every ARMv7-A core that has NEON: Cortex-A5 (most), A7, A8, A9, A15, A17, and 64-bit cores under
/// a 32-bit system. NEON computes on no f64, takes denormals of f32 for zeros, and has neither
/// division nor square root; its multiply-add rounds in between, since before Cortex-A7 there is no
/// other, and takes a lane as factor, which the fused one does not.
TargetInfo armv7_neon() {
  TargetInfo t = armv7hf();
  t.name = "armv7-neon";
  t.summary = "ARMv7-A with NEON, hard float";
  t.cpu = "cortex-a8";
  t.features = "+neon,-neonfp,-slowfpvmlx,-vmlx-hazards,+use-misched";
  t.vector_bits = 128;
  t.vector_registers = 16;
  t.vectors_of_f64 = t.has_fma = t.prefers_fma = false;
  t.converts_to_nearest = t.converts_halves = false;
  t.has_mla = t.lane_factors = t.halves_vectors = true;
  t.gathers_lanes = false;
  t.fma_latency = 4;
  t.l2_bytes = 256 << 10;
  t.qemu_cpu = "cortex-a9";
  t.compiler_flags = "-march=armv7-a -marm -mfpu=neon -mfloat-abi=hard";
  return t;
}

TargetInfo aarch64(const char* name, const char* cpu, const char* summary, int latency, int units,
                   const char* flags) {
  TargetInfo t = linux_user(name, "aarch64-linux-gnu", "qemu-aarch64");
  t.summary = summary;
  t.triple = "aarch64-unknown-linux-gnu";
  t.cpu = cpu;
  t.features = "+neon";
  t.architecture = Architecture::aarch64;
  t.vector_bits = 128;
  t.vector_registers = 32;
  t.integer_registers = 29;
  t.has_rounding = t.converts_halves = true;
  t.gathers_lanes = false;
  t.fma_latency = latency;
  t.fma_units = units;
  t.qemu_cpu = "max";
  t.compiler_flags = flags;
  return t;
}

TargetInfo riscv64() {
  TargetInfo t = linux_user("riscv64", "riscv64-linux-gnu", "qemu-riscv64");
  t.summary = "RV64GC, scalar";
  t.triple = "riscv64-unknown-linux-gnu";
  t.cpu = "generic-rv64";
  t.features = "+m,+a,+f,+d,+c";
  t.abi = "lp64d";
  t.architecture = Architecture::riscv64;
  t.integer_registers = 28;
  t.fma_latency = 5;
  t.qemu_cpu = "rv64";
  t.compiler_flags = "-march=rv64gc -mabi=lp64d -mcmodel=medany";
  return t;
}

/// Vectors of a fixed length, which run where registers have as many bits or more, up to the 1024
/// that the backend counts for the stack; `vlen` are those of the emulator. gcc 12 knows no vectors
/// here, so C for these targets is compiled to scalars.
TargetInfo rv64gcv(const std::string& name, const std::string& summary, int bits, int vlen) {
  TargetInfo t = riscv64();
  t.name = name;
  t.summary = summary;
  t.features = fmt::format("+m,+a,+f,+d,+c,+v,+zvl{}b", bits);
  t.vector_bits = bits;
  t.vector_registers = 32;
  t.fma_latency = 4;
  t.qemu_cpu = fmt::format("rv64,v=true,vlen={},elen=64,vext_spec=v1.0", vlen);
  return t;
}

/// A microcontroller without floating-point unit, as most RISC-V ones are.
TargetInfo riscv32() {
  TargetInfo t;
  t.name = "riscv32";
  t.summary = "RV32IMAC, soft float";
  t.triple = "riscv32-unknown-none-elf";
  t.cpu = "generic-rv32";
  t.features = "+m,+a,+c";
  t.abi = "ilp32";
  t.architecture = Architecture::riscv32;
  t.pointer_bits = 32;
  t.integer_registers = 28;
  t.has_f32 = t.has_f64 = false;
  t.unroll_budget = 128;
  t.has_data_cache = false;
  t.runner = Runner::qemu_system;
  t.qemu = "virt";
  t.cross_compiler = "riscv64-unknown-elf-gcc";
  t.compiler_flags = "-march=rv32imac -mabi=ilp32 -ffreestanding";
  return t;
}

/// With a unit for f32, which takes its arguments.
TargetInfo riscv32f() {
  TargetInfo t = riscv32();
  t.name = "riscv32f";
  t.summary = "RV32IMAFC, single precision in hardware";
  t.features = "+m,+a,+f,+c";
  t.abi = "ilp32f";
  t.float_registers = 32;
  t.has_f32 = t.has_fma = t.prefers_fma = true;
  t.unroll_budget = 512;
  t.compiler_flags = "-march=rv32imafc -mabi=ilp32f -ffreestanding";
  return t;
}

/// ESP32 and ESP32-S3: a unit for f32 that multiplies and adds in one instruction, and has neither
/// division nor square root as one. Debian has no compiler for such a core: the C, which has
/// nothing of the machine in it, runs on another one of 32 bits with that instruction.
TargetInfo esp32() {
  TargetInfo t = armv7hf();
  t.name = "esp32";
  t.summary = "Xtensa LX6, LX7 with single precision, C only";
  t.triple = "xtensa-unknown-none-elf";
  t.abi = t.features = "";
  t.architecture = Architecture::xtensa;
  t.only_c = true;
  t.integer_registers = 12;
  t.float_registers = 16;
  t.has_f64 = t.has_sqrt = t.converts_to_nearest = t.converts_halves = false;
  t.has_data_cache = false;
  t.fma_latency = 4;
  t.parallel_grain = 0;
  t.c_command = "xtensa-esp32-elf-gcc -mlongcalls";
  return t;
}

/// Where no description fits, or the compiler is another than gcc and clang: nothing but C99,
/// 32-bit integers and IEEE floats. How many registers there are is a guess.
TargetInfo c99() {
  TargetInfo t;
  t.name = "c99";
  t.summary = "any processor and compiler of C99, C only";
  t.architecture = Architecture::any;
  t.only_c = true;
  t.pointer_bits = 32;
  t.integer_registers = 13;
  t.float_registers = 16;
  t.has_f64 = t.has_sqrt = false;
  t.has_data_cache = false;
  t.runner = Runner::native;
  t.c_command = "cc";
  t.compiler_flags = "-std=c99 -DBC_ISO_C";
  return t;
}

/// Vectors of 128 bits, conversions that never trap and bulk copies: what browsers and Node.js have
/// had since 2021. Engines keep values in the registers of the machine below, of which x86 has the
/// fewest, and V8 needs one or two itself. `fma` is in none but the relaxed instructions, whose
/// results differ from machine to machine.
TargetInfo wasm32() {
  TargetInfo t;
  t.name = "wasm32";
  t.summary = "WebAssembly with 128-bit SIMD";
  t.triple = "wasm32-unknown-unknown";
  t.cpu = "generic";
  t.features = "+simd128,+nontrapping-fptoint,+sign-ext,+bulk-memory,+mutable-globals";
  t.architecture = Architecture::wasm32;
  t.pointer_bits = 32;
  t.vector_bits = 128;
  t.vector_registers = t.float_registers = 14;
  t.has_rounding = true;
  t.pair_products = true;
  t.fma_latency = 4;
  t.fma_units = 2;
  t.l2_bytes = 256 << 10;
  t.runner = Runner::node;
  t.qemu = "node";
  t.cross_compiler = "clang-19";
  t.compiler_flags = "--target=wasm32 -msimd128 -mnontrapping-fptoint -msign-ext -mbulk-memory";
  return t;
}

TargetInfo x86_64(const char* name, const char* summary, int vector_bits, int registers, bool fma) {
  TargetInfo t;
  t.name = name;
  t.summary = summary;
  t.triple = "x86_64-unknown-linux-gnu";
  t.cpu = name;
  t.features = vector_bits == 512 ? "-prefer-256-bit" : "";
  t.architecture = Architecture::x86_64;
  t.vector_bits = vector_bits;
  t.vector_registers = registers;
  t.float_registers = registers;
  t.integer_registers = 15;
  t.has_fma = t.prefers_fma = t.has_rounding = t.converts_halves = fma;
  t.pair_products = t.converts_to_nearest = t.slow_subnormals = true;
  t.parallel_grain = 1 << 18;
  t.fma_latency = 4;
  t.fma_units = 2;
  t.l2_bytes = fma ? 512 << 10 : 256 << 10;
  t.runner = Runner::native;
  t.cross_compiler = "gcc";
  t.compiler_flags = fmt::format("-march={}", name);
  if (vector_bits == 512) t.compiler_flags += " -mprefer-vector-width=512";
  return t;
}

/// The first server cores that multiply bytes.
TargetInfo x86_64_vnni() {
  TargetInfo t = x86_64("cascadelake", "AVX-512 with VNNI", 512, 32, true);
  t.byte_products = true;
  t.l2_bytes = 1 << 20;
  return t;
}

TargetInfo cortex_a76() {
  TargetInfo t = aarch64("cortex-a76", "cortex-a76",
                         "ARMv8.2-A, NEON with signed products of bytes", 4, 2, "-mcpu=cortex-a76");
  t.signed_byte_products = true;
  return t;
}

/// Phones and servers since about 2021: Cortex-A510, A710, X2, Neoverse V1 and N2.
TargetInfo aarch64_i8mm() {
  TargetInfo t = aarch64("aarch64-i8mm", "generic", "ARMv8.6-A, NEON with products of bytes", 4, 2,
                         "-march=armv8.6-a");
  t.features = "+v8.6a";
  t.byte_products = t.signed_byte_products = true;
  return t;
}

std::vector<TargetInfo> make_table() {
  return {
      cortex_m0(),
      cortex_m3(),
      cortex_m4(),
      cortex_m7(),
      cortex_m33(),
      cortex_m55(),
      cortex_m55_nomve(),
      armv7hf(),
      armv7_neon(),
      aarch64("aarch64", "generic", "ARMv8-A, NEON", 4, 2, "-march=armv8-a"),
      aarch64("cortex-a53", "cortex-a53", "ARMv8-A in order, NEON", 4, 1, "-mcpu=cortex-a53"),
      cortex_a76(),
      aarch64_i8mm(),
      riscv64(),
      rv64gcv("rv64gcv", "RV64GCV, any VLEN (RVA23)", 128, 128),
      rv64gcv("rv64gcv-256", "RV64GCV, VLEN 256 or more", 256, 1024),
      riscv32(),
      riscv32f(),
      esp32(),
      wasm32(),
      c99(),
      x86_64("x86-64", "SSE2", 128, 16, false),
      x86_64("x86-64-v3", "AVX2, FMA", 256, 16, true),
      x86_64("x86-64-v4", "AVX-512", 512, 32, true),
      x86_64_vnni(),
  };
}

struct Elsewhere {
  System system;
  const char* name;
  const char* arm;     // what it calls AArch64
  const char* triple;  // behind the architecture
};
constexpr Elsewhere kElsewhere[] = {{System::windows, "windows", "aarch64", "pc-windows-msvc"},
                                    {System::macos, "macos", "arm64", "apple-macosx11.0.0"},
                                    {System::ios, "ios", "arm64", "apple-ios13.0.0"}};

const std::vector<TargetInfo>& table() {
  static const std::vector<TargetInfo> rows = make_table();
  return rows;
}

/// Processors of the table under other systems: their objects, which nothing here runs. The
/// compiler of their C is clang, which takes the same options.
std::vector<TargetInfo> make_elsewhere() {
  std::vector<TargetInfo> result;
  for (const TargetInfo& target : table()) {
    const bool is_arm = target.architecture == Architecture::aarch64;
    if (!is_arm && target.architecture != Architecture::x86_64) continue;
    for (const Elsewhere& to : kElsewhere) {
      if (to.system == System::ios && !is_arm) continue;
      TargetInfo& t = result.emplace_back(target);
      t.name = fmt::format("{}-{}", target.name, to.name);
      t.system = to.system;
      t.triple = fmt::format("{}-{}", is_arm ? to.arm : "x86_64", to.triple);
      t.c_command = fmt::format("clang --target={} {}", t.triple, t.compiler_flags);
      t.runner = Runner::none;
      t.cross_compiler.clear();
    }
  }
  return result;
}

}  // namespace

std::span<const TargetInfo> all_targets() { return table(); }

const TargetInfo* find_target(std::string_view name) {
  if (name == "native") return nullptr;
  std::vector<std::string> known = {"native"};
  for (const TargetInfo& target : table()) {
    if (target.name == name) return &target;
    known.push_back(target.name);
  }
  static const std::vector<TargetInfo> others = make_elsewhere();
  for (const TargetInfo& target : others) {
    if (target.name == name) return &target;
  }
  throw CompileError(fmt::format(
      "unknown target \"{}\"; the targets are {}; those of x86-64 and AArch64 also with "
      "-windows, -macos or (AArch64) -ios behind the name",
      name, fmt::join(known, ", ")));
}

}  // namespace backcast
