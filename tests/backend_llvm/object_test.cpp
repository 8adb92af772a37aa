// The contract of a library, held against the objects of every target.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backend/llvm/archive.h"
#include "backend/llvm/host.h"
#include "backend/llvm/object_reader.h"
#include "ir/graph/error.h"
#include "ir/loop/math_library.h"
#include "ir/loop/visit.h"
#include "tests/backend_llvm/program_helpers.h"

namespace backcast::testing {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::Expr;
using loop::Op;
using loop::Scalar;
using loop::Type;

/// y = max(w·x + b summed over rows, 0), with constants, in the vectors of the target; fused where
/// the target prefers that. Also divides, converts and copies, so that helpers are needed.
loop::Program example(const TargetInfo& target) {
  const int32_t lanes = target.vector_lanes(4);
  const Type vector{Scalar::f32, lanes};
  const Expr i = loop::var("i"), k = loop::var("k");
  Expr x = loop::load({Scalar::f32, 1}, "x", k);
  if (lanes > 1) x = loop::broadcast(x, lanes);
  const Expr w = loop::load(vector, "w", k * 32 + i * lanes);
  const Expr sum = loop::load(vector, "acc", 0);
  const Expr next = target.has_fma ? loop::fma(x, w, sum) : sum + x * w;
  loop::Kernel dense;
  dense.name = "dense";
  dense.buffers = {read_buffer("x", Scalar::f32, {16}), read_buffer("w", Scalar::f32, {16, 32}),
                   write_buffer("t", Scalar::f32, {32})};
  dense.body = loop::for_loop(
      "i", 0, 32 / lanes,
      loop::block({loop::alloc("acc", vector, 1, loop::Memory::registers),
                   loop::store("acc", 0, loop::float_constant(vector, 0)),
                   loop::for_loop("k", 0, 16, loop::store("acc", 0, next)),
                   loop::store("t", i * lanes,
                               loop::binary(Op::max, sum, loop::float_constant(vector, 0)))}));
  loop::Kernel divide;
  divide.name = "divide";
  divide.buffers = {read_buffer("t", Scalar::f32, {32}), write_buffer("y", Scalar::i64, {32})};
  const Expr scaled = loop::load({Scalar::f32, 1}, "t", i);
  const Expr wide = loop::cast({Scalar::f64, 1}, scaled);
  const Expr whole = loop::cast({Scalar::i64, 1}, wide + wide);
  divide.body = loop::for_loop(
      "i", 0, 32,
      loop::store("y", i, loop::binary(Op::div, whole, loop::cast({Scalar::i64, 1}, i + Expr(1)))));

  loop::Program program;
  program.name = "net";
  std::vector<double> weights;
  for (int v = 0; v < 512; ++v) weights.push_back((v * 37 % 101 - 50) / 64.0);
  program.buffers.resize(4);
  const char* names[] = {"x", "y", "w", "t"};
  const BufferClass kinds[] = {BufferClass::input, BufferClass::output, BufferClass::constant,
                               BufferClass::arena};
  const Dims shapes[] = {{16}, {32}, {16, 32}, {32}};
  for (size_t b = 0; b < 4; ++b) {
    program.buffers[b].name = names[b];
    program.buffers[b].kind = kinds[b];
    program.buffers[b].shape = shapes[b];
  }
  program.buffers[1].element = ElementType::i64;
  program.buffers[2].value = Literal::from_doubles(ElementType::f32, {16, 32}, weights);
  program.buffers[2].alignment = 64;
  program.buffers[3].offset = 0;
  program.arena_bytes = 128;
  program.arena_alignment = 16;
  program.kernels = {{"dense", dense}, {"divide", divide}};
  loop::EntryPoint entry;
  entry.inputs = {0};
  entry.outputs = {1};
  entry.steps = {{loop::StepKind::call, "dense", {0, 2, 3}, {}, {}},
                 {loop::StepKind::call, "divide", {3, 1}, {}, {}}};
  program.entries = {entry};
  return program;
}

/// Compiler helpers by the names of the Arm run-time ABI and of libgcc: __aeabi_fadd, __addsf3.
bool is_allowed(const TargetInfo& target, const std::string& name) {
  static const std::set<std::string> kMemory = {"memcpy", "memmove", "memset"};
  if (target.system == System::windows) {
    if (name == "_fltused" || name == "__chkstk") return true;  // of its C library
  } else if (target.system != System::usual && (name == "bzero" || name == "__bzero")) {
    return true;  // of Apple's
  }
  return kMemory.contains(name) || name.starts_with("__aeabi_") ||
         (name.starts_with("__") &&
          (name.ends_with("2") || name.ends_with("3") || name.ends_with("di") ||
           name.ends_with("si") || name.ends_with("df") || name.ends_with("sf")));
}

}  // namespace
}  // namespace backcast::testing

namespace backcast {
/// What a failing test prints of its parameter.
void PrintTo(const TargetInfo& target, std::ostream* stream) { *stream << target.name; }
}  // namespace backcast

namespace backcast::testing {
namespace {

class EveryTarget : public ::testing::TestWithParam<TargetInfo> {};

TEST_P(EveryTarget, ObjectsKeepTheContract) {
  const TargetInfo& target = GetParam();
  const loop::Program program = example(target);
  const ObjectFile object = emit_object(program, target);
  const ObjectSummary summary = read_object(object.bytes);
  EXPECT_EQ(summary.bits, target.pointer_bits);
  std::vector<std::string> exported;
  for (const ObjectSymbol& symbol : summary.symbols) {
    if (!symbol.defined) {
      EXPECT_TRUE(is_allowed(target, symbol.name)) << symbol.name;
      const bool hard = target.has_f32 && target.has_f64 && target.pointer_bits == 64;
      EXPECT_FALSE(hard && symbol.name.starts_with("__")) << symbol.name;
      EXPECT_FALSE(target.has_f32 && symbol.name == "__aeabi_fmul");
    } else if (symbol.global) {
      exported.push_back(symbol.name);
    }
  }
  EXPECT_EQ(exported, std::vector<std::string>{"net_run"});
  int64_t code = 0;
  for (const ObjectSection& section : summary.sections) code += section.bytes * section.executable;
  int64_t kernels = 0;
  for (const auto& [name, kernel] : program.kernels) {
    const std::string wanted = kernel_symbol(program, name);
    const auto symbol = std::ranges::find(summary.symbols, wanted, &ObjectSymbol::name);
    ASSERT_NE(symbol, summary.symbols.end()) << wanted;
    EXPECT_GT(symbol->bytes, 0) << name;
    kernels += symbol->bytes;
  }
  EXPECT_LT(kernels, code);
  const std::string constants = target.system == System::usual     ? ".rodata.net"
                                : target.system == System::windows ? ".rdata$net"
                                                                   : "__const";
  bool has_weights = false;
  for (const ObjectSection& section : summary.sections) {
    EXPECT_FALSE(section.writable && section.bytes > 0) << section.name;
    has_weights = has_weights || (section.name == constants && section.bytes >= 2048);
    EXPECT_FALSE(section.name.starts_with(".eh_frame") && section.bytes > 0);
    EXPECT_FALSE(section.name.starts_with(".ARM.exidx")) << section.name;
  }
  EXPECT_TRUE(has_weights);
  EXPECT_GT(object.stack_bytes, 0);
  EXPECT_LT(object.stack_bytes, 2048);
}

TEST_P(EveryTarget, EqualInputGivesEqualBytes) {
  const TargetInfo& target = GetParam();
  const std::string first = emit_object(example(target), target).bytes;
  EXPECT_EQ(first, emit_object(example(target), target).bytes);
  const std::string archive = write_archive({{"net.o", first}});
  EXPECT_EQ(archive, write_archive({{"net.o", first}}));
  const std::vector<std::pair<std::string, std::string>> members = read_archive(archive);
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members[0].first, "net.o");
  EXPECT_EQ(members[0].second, first);
}

/// A kernel that calls a math function element by element.
loop::Kernel caller(const std::string& name, const loop::MathFunction& function) {
  const Expr i = loop::var("i");
  loop::Kernel kernel;
  kernel.name = "k";
  std::vector<Expr> args;
  for (const loop::MathFunction::Param& param : function.params) {
    kernel.buffers.push_back(read_buffer(param.name, param.type.scalar, {8}));
    args.push_back(loop::load(param.type, param.name, i));
  }
  kernel.buffers.push_back(write_buffer("result", function.result.type().scalar, {8}));
  kernel.body = loop::for_loop(
      "i", 0, 8, loop::store("result", i, loop::call(name, function.result.type(), args)));
  return kernel;
}

/// Whether the function, as the library has it, uses what only legalisation can give this target:
/// square roots and fma on a type without hardware.
bool needs_legalisation(const loop::MathFunction& function, const TargetInfo& target) {
  bool found = false;
  const auto look = [&](const Expr& e) {
    const bool hardware = e.type().scalar == Scalar::f64 ? target.has_f64 : target.has_f32;
    const bool needs = e->kind == loop::ExprKind::fma || e->op == Op::sqrt;
    found = found || (needs && !hardware);
  };
  for (const auto& [name, value] : function.lets) loop::visit(value, look);
  loop::visit(function.result, look);
  return found;
}

/// What the library holds compiles for every target without a math library.
TEST_P(EveryTarget, MathFunctionsNeedNoLibrary) {
  const TargetInfo& target = GetParam();
  int compiled = 0;
  for (const auto& [name, function] : loop::math_library(target.has_fma)) {
    SCOPED_TRACE(name);
    loop::Program program = single_kernel(caller(name, function));
    program.functions = loop::functions_for(program.kernels, target.has_fma);
    bool skip = false;
    for (const auto& [callee, body] : program.functions) {
      skip = skip || needs_legalisation(body, target);
    }
    if (skip) continue;
    ++compiled;
    const ObjectFile object = emit_object(program, target, {.level = 0});
    for (const ObjectSymbol& symbol : read_object(object.bytes).symbols) {
      EXPECT_TRUE(symbol.defined || is_allowed(target, symbol.name)) << symbol.name;
    }
  }
  EXPECT_GE(compiled, 20);
}

TEST_P(EveryTarget, MathFunctionsMayStayFunctions) {
  const TargetInfo& target = GetParam();
  const loop::MathFunction& function = loop::math_library(target.has_fma).at("exp.f32");
  loop::Program program = single_kernel(caller("exp.f32", function));
  program.functions = loop::functions_for(program.kernels, target.has_fma);
  const ObjectFile inlined = emit_object(program, target);
  const ObjectFile outlined = emit_object(program, target, {.outline_math = true});
  EXPECT_EQ(inlined.frames.size(), 3U);  // the entry point, the kernel, the hooks
  EXPECT_EQ(outlined.frames.size(), 4U);
  EXPECT_GE(outlined.stack_bytes, inlined.frames.at("t_k_k"));
}

/// Those that there is machine code for, some under other systems.
std::vector<TargetInfo> targets_with_objects() {
  std::vector<TargetInfo> targets(all_targets().begin(), all_targets().end());
  std::erase_if(targets, [](const TargetInfo& t) { return t.only_c; });
  for (const char* name : {"x86-64-windows", "x86-64-v4-windows", "aarch64-windows",
                           "x86-64-v3-macos", "aarch64-macos", "cortex-a76-ios"}) {
    targets.push_back(*find_target(name));
  }
  return targets;
}

std::string test_name(const ::testing::TestParamInfo<TargetInfo>& info) {
  std::string name = info.param.name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryTarget, ::testing::ValuesIn(targets_with_objects()),
                         test_name);

TEST(Object, HostIsATargetLikeTheOthers) {
  const TargetInfo host = host_target();
  EXPECT_EQ(host.name, "native");
  const ObjectSummary summary = read_object(emit_object(example(host), host).bytes);
  EXPECT_EQ(summary.bits, 64);
}

TEST(Object, ArchitectureAndAbi) {
  const auto summary = [](const char* name) {
    const TargetInfo& target = *find_target(name);
    return read_object(emit_object(example(target), target).bytes);
  };
  EXPECT_EQ(summary("cortex-m4").architecture, "arm");
  EXPECT_EQ(summary("aarch64").architecture, "aarch64");
  EXPECT_EQ(summary("x86-64").architecture, "x86_64");
  EXPECT_EQ(summary("riscv64").architecture, "riscv64");
  EXPECT_EQ(summary("riscv64").elf_flags & 6U, 4U) << "double-float ABI";
  EXPECT_EQ(summary("riscv32").elf_flags & 6U, 0U) << "soft-float ABI";
  EXPECT_EQ(summary("riscv32f").elf_flags & 6U, 2U) << "single-float ABI";
}

TEST(Object, FusedOperationsNeedHardware) {
  const TargetInfo& fused = *find_target("x86-64-v3");
  EXPECT_THROW(emit_object(example(fused), *find_target("x86-64")), InternalError);
}

TEST(Object, TextNamesKernels) {
  const TargetInfo& target = *find_target("aarch64");
  const std::string text = emit_llvm_text(example(target), target);
  EXPECT_NE(text.find("@net_k_dense"), std::string::npos);
  EXPECT_NE(text.find("llvm.fma.v4f32"), std::string::npos);
}

/// Which instruction a sum of pair products asks for.
TEST(Object, PairProductsAreInstructions) {
  const std::pair<const char*, const char*> cases[] = {{"cortex-m4", "@llvm.arm.smlad"},
                                                       {"cortex-m33", "@llvm.arm.smlad"},
                                                       {"wasm32", "@llvm.wasm.dot"},
                                                       {"x86-64", "@llvm.x86.sse2.pmadd.wd"},
                                                       {"x86-64-v3", "@llvm.x86.avx2.pmadd.wd"},
                                                       {"x86-64-v4", "@llvm.x86.avx512.pmaddw.d"}};
  for (const auto& [name, wanted] : cases) {
    const TargetInfo& target = *find_target(name);
    const int32_t lanes = target.vector_lanes(4);
    const auto words = [&](const char* buffer) {
      const Expr at = loop::var("i") * (2 * lanes);
      return loop::bitcast({Scalar::i32, lanes}, loop::load({Scalar::i16, 2 * lanes}, buffer, at));
    };
    const Expr at = loop::var("i") * lanes;
    const Expr sum = loop::load({Scalar::i32, lanes}, "y", at);
    loop::Kernel kernel;
    kernel.name = "k";
    kernel.buffers = {read_buffer("a", Scalar::i16, {128}), read_buffer("b", Scalar::i16, {128}),
                      write_buffer("y", Scalar::i32, {64})};
    kernel.body =
        loop::for_loop("i", 0, 64 / lanes,
                       loop::store("y", at, sum + loop::binary(Op::dot2, words("a"), words("b"))));
    const std::string text = emit_llvm_text(single_kernel(kernel), target);
    EXPECT_NE(text.find(wanted), std::string::npos) << name;
    EXPECT_EQ(text.find("= mul "), std::string::npos) << name;
  }
}

/// The rotation belongs to the instruction, which selection finds.
TEST(Object, BytePairsAreInstructions) {
  const Expr at = loop::var("i"), word = loop::load({Scalar::i32}, "a", at);
  const Expr pairs =
      loop::binary(Op::dot2, loop::unary(Op::even_bytes, word), loop::unary(Op::odd_bytes, word));
  loop::Kernel kernel;
  kernel.name = "k";
  kernel.buffers = {read_buffer("a", Scalar::i32, {64}), write_buffer("y", Scalar::i32, {64})};
  kernel.body = loop::for_loop("i", 0, 64, loop::store("y", at, pairs));
  for (const char* name : {"cortex-m4", "cortex-m33", "cortex-m55-nomve"}) {
    const std::string text = emit_llvm_text(single_kernel(kernel), *find_target(name));
    EXPECT_NE(text.find("@llvm.arm.sxtb16"), std::string::npos) << name;
    EXPECT_NE(text.find("@llvm.fsh"), std::string::npos) << name;
    EXPECT_EQ(text.find("= ashr "), std::string::npos) << name;
  }
}

/// Small integers that become words come into NEON's registers as they lie, not through the stack,
/// and of a mask no lane goes through a general register.
TEST(Object, LoadsAndMasksOfNeonTakeNoStack) {
  const TargetInfo& target = *find_target("armv7-neon");
  const auto frame_of = [&](Scalar from, Scalar to, const Expr& at, const Expr& value) {
    loop::Kernel kernel;
    kernel.name = "k";
    kernel.buffers = {read_buffer("a", from, {128}), write_buffer("y", to, {128})};
    kernel.body = loop::for_loop("i", 0, 4, loop::store("y", at, value));
    return emit_object(single_kernel(kernel), target).frames;
  };
  const Expr i = loop::var("i");
  for (const auto& [from, lanes] : {std::pair(Scalar::i16, 4), std::pair(Scalar::u8, 4),
                                    std::pair(Scalar::i8, 4), std::pair(Scalar::i8, 8)}) {
    const loop::Type small{from, lanes}, word{lanes == 8 ? Scalar::i16 : Scalar::i32, lanes};
    const Expr at = i * lanes;
    const auto frames =
        frame_of(from, word.scalar, at, loop::cast(word, loop::load(small, "a", at)));
    EXPECT_EQ(frames.at("t_k_k"), 0) << loop::name_of(from);
  }
  const loop::Type row{Scalar::f32, 32};
  const Expr differs =
      loop::binary(Op::ne, loop::load(row, "a", i * 32), loop::float_constant(row, 0));
  const auto frames = frame_of(Scalar::f32, Scalar::u32, i, loop::unary(Op::lane_bits, differs));
  EXPECT_LE(frames.at("t_k_k"), 16);
}

/// Loads and stores of WebAssembly take an offset where adding it cannot wrap: not where what it is
/// added to may lie before the buffer.
TEST(Object, OffsetsOfWebAssemblyAreImmediate) {
  for (const int64_t begin : {0, -1}) {
    const Expr at = loop::var("i") * 8 + 8;
    loop::Kernel kernel;
    kernel.name = "k";
    kernel.buffers = {read_buffer("a", Scalar::f32, {128}), write_buffer("y", Scalar::f32, {128})};
    kernel.body = loop::for_loop(
        "i", begin, 8,
        loop::store("y", at,
                    loop::load({Scalar::f32}, "a", at) + loop::load({Scalar::f32}, "a", at + 4)));
    const std::string text = emit_llvm_text(single_kernel(kernel), *find_target("wasm32"));
    EXPECT_EQ(text.find("inbounds nuw") != std::string::npos, begin == 0);
  }
}

/// WebAssembly has as many locals and operands as are asked for, and no address leads to them.
bool keeps_values_in_memory(const TargetInfo& target) {
  return target.architecture != Architecture::wasm32;
}

/// More live vectors than registers: the stack holds those that wait, also where the target counts
/// vectors in units of its own.
TEST(Object, FramesHoldSpilledVectors) {
  constexpr int64_t kLive = 64;
  for (const TargetInfo& target : targets_with_objects()) {
    if (target.vector_bits == 0 || !keeps_values_in_memory(target)) continue;
    const int32_t lanes = target.vector_lanes(4);
    const Type vector{Scalar::f32, lanes};
    const auto acc = [&](int64_t v) { return loop::load(vector, "acc", v); };
    std::vector<loop::Stmt> body{loop::alloc("acc", vector, kLive, loop::Memory::registers)};
    Expr product = loop::float_constant(vector, 1);
    for (int64_t v = 0; v < kLive; ++v) {
      body.push_back(loop::store("acc", v, loop::load(vector, "x", v * lanes)));
      product = product * acc(v);
    }
    // Every result needs all that was loaded and one of them again.
    body.push_back(loop::let("product", product));
    for (int64_t v = 0; v < kLive; ++v) {
      body.push_back(loop::store("y", v * lanes, loop::var("product", vector) + acc(v)));
    }
    loop::Kernel kernel;
    kernel.name = "k";
    kernel.buffers = {read_buffer("x", Scalar::f32, {kLive * lanes}),
                      write_buffer("y", Scalar::f32, {kLive * lanes})};
    kernel.body = loop::block(std::move(body));
    const ObjectFile object = emit_object(single_kernel(std::move(kernel)), target);
    const int64_t waiting = (kLive - target.vector_registers) * target.vector_bits / 8;
    EXPECT_GE(object.stack_bytes, waiting) << target.name;
  }
}

/// A kernel of more buffers than a call has registers, all one tensor: the stack holds the rest of
/// its arguments, also where the call pushes them and no frame has their place.
TEST(Object, FramesHoldArgumentsOfCalls) {
  constexpr int64_t kBuffers = 80, kMostRegisters = 8;
  loop::Kernel kernel;
  kernel.name = "k";
  Expr sum = loop::float_constant({Scalar::f32, 1}, 0);
  for (int64_t b = 0; b < kBuffers; ++b) {
    const std::string name = "x" + std::to_string(b);
    kernel.buffers.push_back(read_buffer(name, Scalar::f32, {1}));
    sum = sum + loop::load({Scalar::f32, 1}, name, 0);
  }
  kernel.buffers.push_back(write_buffer("y", Scalar::f32, {1}));
  kernel.body = loop::store("y", 0, sum);
  loop::Program program = single_kernel(std::move(kernel));
  loop::EntryPoint& entry = program.entries[0];
  entry.inputs.resize(1);
  std::vector<loop::BufferId>& given = entry.steps[0].buffers;
  std::fill(given.begin(), given.end() - 1, entry.inputs[0]);
  for (const TargetInfo& target : targets_with_objects()) {
    if (!keeps_values_in_memory(target)) continue;
    const int64_t pushed = (kBuffers - kMostRegisters) * target.pointer_bits / 8;
    EXPECT_GE(emit_object(program, target).stack_bytes, pushed) << target.name;
  }
}

}  // namespace
}  // namespace backcast::testing
