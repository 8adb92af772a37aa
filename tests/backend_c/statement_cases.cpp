// Shuffles, reductions, gathers; loops, allocations, laziness; views, symbols; math functions.
#include <fmt/format.h>

#include <algorithm>

#include "ir/loop/math_library.h"
#include "tests/backend_c/cases.h"

namespace backcast::c_test {

using loop::Expr;
using loop::ForKind;
using loop::Memory;
using loop::Op;
using loop::Scalar;
using loop::Stmt;
using loop::Type;

namespace {

const Type kF32 = {Scalar::f32, 1};

Expr f32(double value) { return loop::float_constant(kF32, value); }

Case shuffles() {
  ProgramBuilder b("shuffles");
  b.input("x", interesting(ElementType::f32, 64, 20), {64});
  b.input("k", interesting(ElementType::i16, 64, 21), {64});
  std::vector<Stmt> body;
  int64_t at = 0;
  const Type v8 = {Scalar::f32, 8};
  const Expr v = loop::load(v8, "x", 0), w = loop::load(v8, "x", 11);
  b.output("y", ElementType::f32, {256});
  b.output("z", ElementType::i16, {64});
  b.output("m", ElementType::boolean, {16});
  const auto put = [&](Expr value) {
    const int64_t lanes = value.type().lanes;
    body.push_back(loop::store("y", at, std::move(value)));
    at += lanes;
  };
  put(loop::shuffle({v}, {7, 6, 5, 4, 3, 2, 1, 0}));
  put(loop::shuffle({v, w}, {0, 8, 1, 9, 2, 10, 3, 11}));
  put(loop::shuffle({v, w}, {0, 8, 15, 7}));
  put(loop::shuffle({v}, {5}));
  put(loop::shuffle({v, loop::load(kF32, "x", 40), w}, {8, 9, 0, 16}));
  put(loop::broadcast(loop::load(kF32, "x", 33), 4));
  put(loop::cast(v8, loop::ramp(loop::index_constant(3), loop::index_constant(-2), 8)));
  for (const Op op : {Op::add, Op::mul, Op::min, Op::max}) {
    put(loop::reduce_lanes(op, v));
    put(loop::reduce_lanes(op, loop::load({Scalar::f32, 2}, "x", 5)));
  }
  const Type k8 = {Scalar::i16, 8};
  int64_t slot = 0;
  for (const Op op : {Op::add, Op::mul, Op::min, Op::max, Op::bit_and, Op::bit_or, Op::bit_xor}) {
    body.push_back(loop::store("z", slot, loop::reduce_lanes(op, loop::load(k8, "k", slot))));
    ++slot;
  }
  const Expr mask = loop::binary(Op::lt, loop::load(k8, "k", 8), loop::int_constant(k8, 100));
  body.push_back(loop::store("m", 0, loop::reduce_lanes(Op::bit_and, mask)));
  body.push_back(loop::store("m", 1, loop::reduce_lanes(Op::bit_or, mask)));
  body.push_back(loop::store("m", 2, loop::shuffle({mask}, {3})));
  body.push_back(loop::store("m", 8, loop::shuffle({mask}, {3, 3, 1, 0, 7, 6, 5, 4})));
  for (int64_t i = at; i < 256; ++i) body.push_back(loop::store("y", i, f32(0)));
  for (int64_t i = slot; i < 64; ++i) {
    body.push_back(loop::store("z", i, loop::int_constant({Scalar::i16, 1}, 0)));
  }
  for (int64_t i = 3; i < 8; ++i) {
    body.push_back(loop::store("m", i, loop::int_constant({Scalar::boolean, 1}, 0)));
  }
  return b.finish(loop::block(body));
}

Case gathers() {
  ProgramBuilder b("gathers");
  b.input("x", interesting(ElementType::f32, 64, 22), {64});
  b.input("n", small_values(ElementType::i32, 16, 64, 23), {16});
  b.input("p", interesting(ElementType::boolean, 64, 24), {64});
  b.output("y", ElementType::f32, {16});
  b.output("s", ElementType::f32, {64});
  b.output("q", ElementType::boolean, {32});
  const Type i8lanes = {Scalar::index, 8}, f8 = {Scalar::f32, 8}, b8 = {Scalar::boolean, 8};
  const Expr i = loop::var("i"), base = loop::var("base");
  const Expr at = loop::cast(i8lanes, loop::load({Scalar::i32, 8}, "n", base));
  const Expr strided = loop::ramp(i * 3 + 1, loop::index_constant(7), 8);
  return b.finish(loop::block(
      {loop::for_loop("z", 0, 64, loop::store("s", loop::var("z"), f32(-1))),
       loop::for_loop(
           "i", 0, 2,
           loop::block(
               {loop::let("base", i * 8),
                loop::store("y", base, loop::load(f8, "x", at) + loop::load(f8, "x", strided)),
                loop::store("s", loop::ramp(i, loop::index_constant(5), 8),
                            loop::load(f8, "x", base)),
                loop::store("q", base, loop::load(b8, "p", at)),
                loop::store(
                    "q", loop::ramp(i * 8 + 23, loop::index_constant(-1), 8),
                    loop::load(b8, "p", loop::ramp(base, loop::index_constant(1), 8)))}))}));
}

/// The larger of the least number and of 0 or 1, as a maximum of conditions begins.
Case flags_above_the_least(int32_t lanes) {
  ProgramBuilder b(fmt::format("flags_{}", lanes));
  b.input("x", interesting(ElementType::f32, lanes, 33), {lanes});
  b.output("y", ElementType::i32, {lanes});
  const Type v = {Scalar::f32, lanes}, whole = {Scalar::i32, lanes};
  const Expr zero = loop::broadcast(f32(0), lanes), i = loop::index_constant(0);
  const Expr flags = loop::cast(whole, loop::binary(loop::Op::gt, loop::load(v, "x", i), zero));
  const Expr least = loop::broadcast(loop::int_constant({Scalar::i32, 1}, INT32_MIN), lanes);
  return b.finish(loop::store("y", i, loop::binary(loop::Op::max, least, flags)));
}

/// An unrolled register tile, as contractions have.
Case register_tile(int32_t lanes) {
  ProgramBuilder b(fmt::format("tile_{}", lanes));
  constexpr int64_t kRows = 4, kDepth = 8;
  b.input("x", interesting(ElementType::f32, kRows * kDepth, 25), {kRows, kDepth});
  b.input("w", small_values(ElementType::f32, kDepth * 2 * lanes, 9, 26), {kDepth, 2 * lanes});
  b.output("y", ElementType::f32, {kRows, 2 * lanes});
  const Type v = {Scalar::f32, lanes};
  const Expr r = loop::var("r"), c = loop::var("c"), k = loop::var("k");
  const auto tile = [&](Stmt body) {
    return loop::for_loop("r", 0, kRows,
                          loop::for_loop("c", 0, 2, std::move(body), ForKind::unrolled),
                          ForKind::unrolled);
  };
  const Expr element = r * 2 + c;
  Expr x = loop::load(kF32, "x", r * kDepth + k);
  if (lanes > 1) x = loop::broadcast(x, lanes);
  const Expr product = x * loop::load(v, "w", k * (2 * lanes) + c * lanes);
  return b.finish(
      loop::block({loop::alloc("acc", v, kRows * 2, Memory::registers),
                   tile(loop::store("acc", element, loop::float_constant(v, 0))),
                   loop::for_loop(
                       "k", 0, kDepth,
                       tile(loop::store("acc", element, loop::load(v, "acc", element) + product))),
                   tile(loop::store(
                       "y", r * (2 * lanes) + c * lanes,
                       loop::max(loop::load(v, "acc", element), loop::float_constant(v, 0))))}),
      1000);
}

/// Branches not taken would read outside of their buffer.
Case lazy() {
  ProgramBuilder b("lazy");
  b.input("x", interesting(ElementType::f32, 8, 27), {8});
  b.input("k", small_values(ElementType::i8, 8, 50, 28), {8});
  b.output("y", ElementType::f32, {12});
  b.output("z", ElementType::i8, {12});
  const Expr i = loop::var("i"), at = i - 2;
  const Expr inside = loop::binary(Op::ge, at, 0) && at < 8;
  const Expr load = loop::load(kF32, "x", at), shared = load * load;
  const Expr k = loop::load({Scalar::i8, 1}, "k", at);
  return b.finish(loop::for_loop(
      "i", 0, 12,
      loop::block({loop::store("y", i, loop::if_then_else(inside, shared + shared * load, f32(7))),
                   loop::store("z", i,
                               loop::if_then_else(inside, k + k,
                                                  loop::int_constant({Scalar::i8, 1}, -3)))})));
}

/// Newton's square root until it stops changing; the state lies in a stack array.
Case newton() {
  ProgramBuilder b("newton");
  b.input("x", small_values(ElementType::f64, 8, 1000, 29), {8});
  b.output("y", ElementType::f64, {8});
  b.output("steps", ElementType::i32, {8});
  const Type d = {Scalar::f64, 1}, n = {Scalar::i32, 1};
  const Expr i = loop::var("i"), guess = loop::load(d, "s", 0), last = loop::load(d, "s", 1);
  const Expr x = loop::load(d, "x", i);
  const Expr next = (guess + loop::binary(Op::div, x, guess)) * loop::float_constant(d, 0.5);
  const Expr count = loop::load(n, "count", 0);
  const Expr difference = loop::unary(Op::abs, guess - last);
  const Expr running =
      loop::binary(Op::gt, (difference + difference) * difference, loop::float_constant(d, 1e-18));
  return b.finish(loop::for_loop(
      "i", 0, 8,
      loop::block({loop::alloc("s", d, 2, Memory::stack),
                   loop::alloc("count", n, 1, Memory::registers),
                   loop::alloc("never", n, 3, Memory::registers),
                   loop::store("count", 0, loop::int_constant(n, 0)),
                   loop::store("s", 0, x + loop::float_constant(d, 1)),
                   loop::store("s", 1, loop::float_constant(d, 0)),
                   loop::while_loop(
                       running && count < loop::int_constant(n, 60),
                       loop::block({loop::let("t", next), loop::store("s", 1, guess),
                                    loop::store("s", 0, loop::var("t", d)),
                                    loop::store("count", 0, count + loop::int_constant(n, 1))})),
                   loop::if_branch(count < loop::int_constant(n, 5), loop::store("y", i, guess),
                                   loop::store("y", i, loop::unary(Op::neg, guess))),
                   loop::store("steps", i, count)})));
}

/// Dynamic indices into a register allocation, names that C reserves, unused lets and loops.
Case odd_names() {
  ProgramBuilder b("odd_names");
  b.input("double", interesting(ElementType::u8, 16, 30), {16});
  b.output("a.b/c", ElementType::u8, {16});
  b.output("a b_c", ElementType::i64, {16});
  const Type u8 = {Scalar::u8, 1};
  const Expr i = loop::var("f32x8"), v = loop::load(u8, "double", i);
  return b.finish(loop::block(
      {loop::alloc("int", u8, 16, Memory::registers),
       loop::for_loop("f32x8", 0, 16,
                      loop::block({loop::let("unused", v), loop::let("min_u8", v + v),
                                   loop::store("int", loop::index_constant(15) - i,
                                               loop::min(v, loop::var("min_u8", u8)))})),
       loop::for_loop(
           "for", 0, 16,
           loop::block(
               {loop::store("a.b/c", loop::var("for"), loop::load(u8, "int", loop::var("for"))),
                loop::store("a b_c", loop::var("for"),
                            loop::cast({Scalar::i64, 1}, loop::var("for") * 100000007))}))}));
}

loop::Kernel kernel_of(const std::string& name, std::vector<loop::BufferParam> buffers, Stmt body) {
  loop::Kernel kernel;
  kernel.name = name;
  kernel.buffers = std::move(buffers);
  kernel.body = std::move(body);
  kernel.sizes = {"N"};
  kernel.locs = {{"node*/" + name, "Test", Origin::imported}};
  return kernel;
}

/// Several kernels on an arena: a symbol, constants, views, an overlay of two types, copies.
Case pipeline() {
  using loop::BufferClass;
  const Dim n = Dim::symbol("N");
  const Expr i = loop::var("i"), size = loop::var("N");
  Case result;
  loop::Program& program = result.program;
  program.name = "pipeline";
  program.symbols["N"] = {1, 8};
  const auto add = [&](const std::string& name, ElementType element, Dims shape, BufferClass kind,
                       int64_t offset = -1) {
    loop::Buffer buffer;
    buffer.name = name;
    buffer.element = element;
    buffer.shape = std::move(shape);
    buffer.kind = kind;
    buffer.offset = offset;
    program.buffers.push_back(std::move(buffer));
    return static_cast<loop::BufferId>(program.buffers.size() - 1);
  };
  const auto x = add("x", ElementType::f32, {n, Dim(4)}, BufferClass::input);
  const auto w = add("w", ElementType::f32, {Dim(4)}, BufferClass::constant);
  program.buffers[static_cast<size_t>(w)].value =
      Literal::from_doubles(ElementType::f32, {4}, {0.1, -0.0, 1e-40, 3.4e38});
  const auto h = add("constant half", ElementType::f16, {Dim(4)}, BufferClass::constant);
  program.buffers[static_cast<size_t>(h)].value =
      Literal::from_doubles(ElementType::f16, {4}, {0.1, -0.0, 1e-7, 65504});
  program.buffers[static_cast<size_t>(h)].alignment = 32;
  const auto t = add("t", ElementType::f32, {n, Dim(4)}, BufferClass::arena, 64);
  const auto u = add("u", ElementType::i32, {n, Dim(4)}, BufferClass::arena, 64);  // over t
  const auto last = add("last", ElementType::i32, {Dim(4)}, BufferClass::arena);
  program.buffers[static_cast<size_t>(last)].view_of = u;
  program.buffers[static_cast<size_t>(last)].view_offset = n * Dim(4) - Dim(4);
  const auto y = add("y", ElementType::i32, {n, Dim(4)}, BufferClass::output);
  const auto z = add("z", ElementType::i32, {Dim(4)}, BufferClass::output);
  const auto f16 = add("f16", ElementType::f16, {Dim(4)}, BufferClass::output);
  program.arena_bytes = 64 + 128;
  program.arena_alignment = 64;
  const Dims rows = {n, Dim(4)};
  const auto loops = [&](Stmt body) { return loop::for_loop("i", 0, size * 4, std::move(body)); };
  using loop::AccessMode;
  program.kernels["scale"] = kernel_of(
      "scale",
      {{"x", Scalar::f32, rows},
       {"w", Scalar::f32, {Dim(4)}},
       {"t", Scalar::f32, rows, AccessMode::write, {}}},
      loops(loop::store("t", i,
                        loop::load(kF32, "x", i) * loop::load(kF32, "w", loop::floor_mod(i, 4)))));
  program.kernels["bits"] = kernel_of(
      "bits", {{"t", Scalar::f32, rows}, {"u", Scalar::i32, rows, AccessMode::write, {"t"}}},
      loops(loop::store("u", i, loop::bitcast({Scalar::i32, 1}, loop::load(kF32, "t", i)))));
  const auto step = [&](const std::string& kernel, std::vector<loop::BufferId> buffers) {
    loop::Step s;
    s.kind = kernel.empty() ? loop::StepKind::copy : loop::StepKind::call;
    s.kernel = kernel;
    s.buffers = std::move(buffers);
    if (!kernel.empty()) s.sizes = {n};
    s.loc = {
        "odd \"name\" \\ ?"
        "?/",
        "Copy", Origin::imported};
    return s;
  };
  loop::EntryPoint entry;
  entry.inputs = {x};
  entry.outputs = {y, z, f16};
  entry.steps = {step("scale", {x, w, t}), step("bits", {t, u}), step("", {u, y}),
                 step("", {last, z}), step("", {h, f16})};
  program.entries = {entry};
  result.inputs = {Literal(ElementType::f32, {5, 4}, [] {
    const Literal values = interesting(ElementType::f32, 20, 31);
    return std::vector<std::byte>(values.bytes().begin(), values.bytes().end());
  }())};
  return result;
}

}  // namespace

std::vector<Case> vector_cases() {
  std::vector<Case> cases;
  cases.push_back(shuffles());
  cases.push_back(gathers());
  cases.push_back(register_tile(8));
  for (const int32_t lanes : {2, 4, 8}) cases.push_back(flags_above_the_least(lanes));
  return cases;
}

Case lane_sums(int32_t lanes, int64_t edge) {
  ProgramBuilder b("lane_sums");
  constexpr int64_t kDepth = 64;
  for (const auto& [name, seed] : {std::pair("x", 31u), std::pair("w", 32u)}) {
    b.input(name, small_values(ElementType::f32, edge * kDepth, 9, seed), {edge, kDepth});
  }
  b.output("y", ElementType::f32, {edge, edge});
  const Type v = {Scalar::f32, lanes};
  const Expr r = loop::var("r"), c = loop::var("c"), k = loop::var("k");
  const auto tile = [&](Stmt body) {
    return loop::for_loop("r", 0, edge,
                          loop::for_loop("c", 0, edge, std::move(body), ForKind::unrolled),
                          ForKind::unrolled);
  };
  const Expr element = r * edge + c, acc = loop::load(v, "acc", element);
  const Expr x = loop::load(v, "x", r * kDepth + k * lanes);
  const Expr w = loop::load(v, "w", c * kDepth + k * lanes);
  return b.finish(
      loop::block({loop::alloc("acc", v, edge * edge, Memory::registers),
                   tile(loop::store("acc", element, loop::float_constant(v, 0))),
                   loop::for_loop("k", 0, kDepth / lanes,
                                  tile(loop::store("acc", element, loop::fma(x, w, acc)))),
                   tile(loop::store("y", element, loop::reduce_lanes(Op::add, acc)))}),
      edge * edge * kDepth);
}

std::vector<Case> statement_cases() {
  std::vector<Case> cases;
  cases.push_back(register_tile(1));
  cases.push_back(lazy());
  cases.push_back(newton());
  cases.push_back(odd_names());
  cases.push_back(pipeline());
  return cases;
}

std::vector<Case> math_cases(bool fma) {
  std::vector<Case> cases;
  for (const int32_t lanes : {1, 4}) {
    for (const Scalar s : {Scalar::f32, Scalar::f64}) {
      if (s == Scalar::f64 && lanes > 1) continue;
      ProgramBuilder b(fmt::format("math_{}_{}", loop::name_of(s), lanes));
      const Type type = {s, lanes};
      b.input("x", interesting(loop::element_of(s), 64, 32), {64});
      std::vector<Stmt> stores;
      const Expr at = loop::var("i") * lanes;
      for (const char* name : {"exp", "log", "tanh", "sigmoid", "erf", "sin", "pow", "atan"}) {
        const std::string function = fmt::format("{}.{}", name, loop::name_of(s));
        const Expr x = loop::load(type, "x", at);
        std::vector<Expr> args = {x};
        if (std::string_view(name) == "pow") args.push_back(loop::float_constant(type, 2.5));
        const std::string y = fmt::format("y_{}", name);
        b.output(y, loop::element_of(s), {64});
        stores.push_back(loop::store(y, at, loop::call(function, type, args)));
      }
      Case c = b.finish(loop::for_loop("i", 0, 64 / lanes, loop::block(stores)));
      c.program.functions = loop::functions_for(c.program.kernels, fma);
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

}  // namespace backcast::c_test
