// What passes and emitters know about a machine: plain data, one row per target in targets.cpp, so
// that a new target is a table row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace backcast {

enum class Architecture : uint8_t {
  x86_64,
  aarch64,
  arm,
  thumb,
  riscv32,
  riscv64,
  wasm32,
  xtensa,
  any,  // that a compiler of C is for
};

/// Whose object files and libraries are made: ELF (WebAssembly's), COFF or Mach-O.
enum class System : uint8_t { usual, windows, macos, ios };

/// How `verify` runs a library of this target.
enum class Runner : uint8_t { none, native, qemu_user, qemu_system, node };

/// What MXCSR, the control word of SSE, has beside the usual to flush results to zero and to take
/// denormal operands for zeros.
inline constexpr uint32_t kFlushSubnormals = 0x8040;

struct TargetInfo {
  std::string name;      // what --target takes
  std::string triple;    // normalised LLVM triple
  std::string cpu;       // LLVM's -mcpu
  std::string features;  // LLVM's -mattr
  std::string abi;       // "hard", "soft", "lp64d", …; empty: the triple's default
  Architecture architecture = Architecture::x86_64;
  System system = System::usual;
  std::string summary;  // for tables

  int pointer_bits = 64;
  // Vector unit: bits of a register (0: none), number of registers, element types it computes on.
  int vector_bits = 0;
  int vector_registers = 0;
  bool vectors_of_f64 = true;   // the unit computes on f64 as well
  bool partial_vectors = true;  // and on half a register, a quarter, … as on a whole one
  bool scalar_factors = false;  // a vector operation takes one factor from a general register
  bool widening_loads = false;  // small integers become lanes of 32 bits as they are loaded
  // Scalar floating-point registers (of f32) where there is no vector unit; 0: soft float.
  int float_registers = 0;
  int integer_registers = 16;
  bool has_f32 = true;                // hardware f32
  bool has_f64 = true;                // hardware f64
  bool has_fma = false;               // hardware fused multiply-add in f32 (and f64 where has_f64)
  bool prefers_fma = false;           // it is faster than a multiplication and an addition
  bool has_mla = false;               // a vector instruction that does so, rounding in between
  bool lane_factors = false;          // it takes a lane of a register as one factor
  bool has_sqrt = true;               // square root as an instruction, of types in hardware
  bool has_rounding = false;          // floor, ceil, round as instructions
  bool converts_to_nearest = false;   // an instruction from f32 to the nearest i32
  bool converts_halves = false;       // an instruction between f16 and f32, of vectors if there are
  bool pair_products = false;         // an instruction for dot2: pmaddwd, smuad and smlad
  bool byte_products = false;         // an instruction that adds dot4 to a sum: vpdpbusd, usdot
  bool signed_byte_products = false;  // likewise dot4_signed: sdot
  // An instruction that adds dot4_signed of all lanes of two registers to a scalar: vmladava.
  bool summed_byte_products = false;
  bool gathers_lanes = true;  // an instruction for lane_bits of a register: movmskps, i32x4.bitmask
  bool byte_tables = false;   // an instruction for bytes at places in registers: vpermi2b
  int fma_latency = 4;        // cycles: accumulators needed = latency × units
  int fma_units = 1;
  bool slow_subnormals = false;  // they take a hundred cycles and more, unless they are flushed
  bool halves_vectors = false;   // a register takes a unit twice: AVX-512 on 256-bit units
  int64_t l1_bytes = 32 << 10;   // without a data cache: what blocks are made for all the same
  bool has_data_cache = true;
  int64_t l2_bytes = 0;
  /// Operations (a multiply-accumulate of one lane is one) that are worth a thread; 0: one thread.
  int64_t parallel_grain = 0;
  int unroll_budget = 512;  // statements a fully unrolled register tile may take
  bool only_c = false;      // LLVM makes no whole code for it: --emit c alone
  std::string c_command;    // that compiles the C; empty: cross_compiler and compiler_flags

  // Running under test
  Runner runner = Runner::none;
  std::string qemu;            // qemu_user, node: program; qemu_system: machine ("mps2-an386")
  std::string qemu_cpu;        // qemu_user: -cpu
  std::string cross_compiler;  // for verify's harness: "aarch64-linux-gnu-gcc"
  std::string compiler_flags;  // for --emit c and the harness: "-mcpu=cortex-m4 -mthumb …"

  bool uses_fma() const { return has_fma && prefers_fma; }
  /// Is a product and its addition to a sum one instruction?
  bool fuses_products() const { return uses_fma() || has_mla; }
  /// A machine whose memory is counted in kilobytes.
  bool is_microcontroller() const {
    return architecture == Architecture::thumb || architecture == Architecture::riscv32 ||
           architecture == Architecture::xtensa || architecture == Architecture::any;
  }
  /// Is dot4 (`are_signed`: dot4_signed) of vectors an instruction?
  bool has_dot4(bool are_signed) const {
    return vector_bits > 0 && (are_signed ? signed_byte_products : byte_products);
  }
  /// Are there instructions for factors of integer products that are bytes?
  bool multiplies_bytes(bool are_signed) const {
    if (are_signed && summed_byte_products) return true;
    // Words of bytes are taken apart without vectors.
    return vector_bits == 0 ? pair_products : has_dot4(are_signed);
  }
  /// Are such factors best kept in bytes, where they fit? In 16 bits otherwise.
  bool keeps_bytes(bool are_signed) const {
    return vector_bits == 0 || widening_loads || multiplies_bytes(are_signed);
  }
  /// Does an instruction add up the products of bytes in all lanes of so many words?
  bool sums_byte_products(int lanes) const {
    return summed_byte_products && lanes == vector_lanes(4);
  }
  /// Bytes of a sum that such an instruction takes.
  int bytes_at_once() const { return summed_byte_products ? vector_bits / 8 : 4; }
  /// Loads are vector instructions of their own; others multiply straight from memory.
  bool loads_apart() const { return vector_bits > 0 && architecture != Architecture::x86_64; }
  int vector_lanes(int element_bytes) const {
    return vector_bits == 0 || (element_bytes == 8 && !vectors_of_f64)
               ? 1
               : vector_bits / (8 * element_bytes);
  }
  /// Lanes of the next narrower type that is computed on as a whole; 1 (scalars) at the end.
  int fewer_lanes(int lanes) const { return partial_vectors ? lanes / 2 : 1; }
};

/// The rows of the table (without `native`, which is made from the host).
std::span<const TargetInfo> all_targets();
/// A row of the table; one of x86-64 or AArch64 for another system with "-windows", "-macos" or
/// "-ios" behind its name. CompileError listing the known names when there is none of this name.
/// "native" gives null: it needs the host's description, which the driver supplies through
/// backend/llvm.
const TargetInfo* find_target(std::string_view name);

}  // namespace backcast
