// Text round trips: what prints parses to an equal module and prints the same again.
#include "ir/graph/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/graph/verifier.h"
#include "tests/graph/test_module.h"

namespace backcast {
namespace {

void expect_round_trip(const Module& module, const PrintOptions& options = {}) {
  const std::string text = print(module, options);
  const Module again = parse_module(text, print_constants(module, options));
  EXPECT_TRUE(equal(module, again)) << text << "\nbecame\n" << print(again, options);
  EXPECT_EQ(print(again, options), text);
  EXPECT_EQ(print_constants(again, options), print_constants(module, options));
}

Module module_of(const Literal& literal) {
  Module module;
  Builder builder(module, "main");
  builder.set_loc(loc("c"));
  module.functions["main"] = builder.finish(builder.constant(literal));
  return module;
}

TEST(Text, PrintsAsDocumented) {
  EXPECT_EQ(print(doubling_module()),
            "symbol N in 1..8\n"
            "\n"
            "func @double(%y: f32[N,2]) -> f32[N,2] {\n"
            "  %0 = add %y, %y : f32[N,2] loc(\"twice\", \"Test\")\n"
            "  return %0\n"
            "}\n"
            "\n"
            "func @main(%x: f32[N,2]) -> f32[N,2] results(\"y\") {\n"
            "  %0 = relu %x : f32[N,2] loc(\"act\", \"Test\")\n"
            "  %1 = call %0 {function=@double} : f32[N,2] loc(\"act\", \"Test\")\n"
            "  %2 = add %1, %x : f32[N,2] loc(\"skip\", \"Test\")\n"
            "  return %2\n"
            "}\n");
}

TEST(Text, ModulesRoundTrip) {
  expect_round_trip(doubling_module());
  expect_round_trip(doubling_module(), {.locations = false});
  expect_round_trip({});
}

TEST(Text, LocationsRoundTrip) {
  Module module;
  Builder builder(module, "main");
  const ValueId x = builder.parameter("x", TensorType{ElementType::f32, {}});
  builder.set_loc({"a \"b\"\n\\", "Op", Origin::adjoint_of});
  const ValueId y = builder.emit(ops::relu, {x});
  builder.set_loc({"c", "", Origin::made});
  const ValueId z = builder.emit(ops::relu, {y});
  module.functions["main"] = builder.finish(z);
  const Module again = parse_module(print(module));
  for (const ValueId id : {x, y, z}) {
    EXPECT_EQ(again.function("main").node(id).loc, module.function("main").node(id).loc);
  }
}

TEST(Text, AnyNameRoundTrips) {
  Module module;
  module.symbols["batch size"] = {0, INT64_MAX};
  const Type type = TensorType{ElementType::i8, {Dim::symbol("batch size") * 2}};
  Builder builder(module, "while \"\x01\t");
  const ValueId a = builder.parameter("data/in:0", type);
  builder.parameter("data/in:0", type);
  builder.parameter("arg0", type);
  builder.parameter("0", type);
  builder.parameter("", type);
  builder.set_loc(loc("t"));
  const ValueId t = builder.emit(ops::tuple, {a, a});
  module.functions["while \"\x01\t"] = builder.finish(t, {"out 1", "\xc3\xa9"});
  verify(module);
  expect_round_trip(module);
}

TEST(Text, FloatsRoundTripToTheBit) {
  const double inf = std::numeric_limits<double>::infinity();
  expect_round_trip(module_of(Literal::from_doubles(
      ElementType::f64, {8},
      {0.1, -0.0, inf, -inf, NAN, std::numeric_limits<double>::denorm_min(), 1e308, 1.0 / 3})));
  const std::vector<uint32_t> f32_bits = {0x7fc00000, 0xffc00000, 0x7f800001, 0x00000001,
                                          0x3dcccccd, 0x7f7fffff, 0x80000000, 0x00800000};
  std::vector<std::byte> bytes(f32_bits.size() * 4);
  std::memcpy(bytes.data(), f32_bits.data(), bytes.size());
  expect_round_trip(module_of(Literal(ElementType::f32, {8}, bytes)));
}

TEST(Text, EveryHalfRoundTrips) {
  std::vector<uint16_t> bits(0x10000);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<std::byte> bytes(bits.size() * 2);
  std::memcpy(bytes.data(), bits.data(), bytes.size());
  const PrintOptions everything = {.max_inline_elements = 0x10000};
  for (const ElementType element : {ElementType::f16, ElementType::bf16}) {
    expect_round_trip(module_of(Literal(element, {0x10000}, bytes)), everything);
  }
}

TEST(Text, EveryElementTypeRoundTrips) {
  for (int i = 0; i < kElementTypeCount; ++i) {
    const ElementType element = static_cast<ElementType>(i);
    const std::vector<double> extremes = {-0x1p63, 0x1p64, 1, 0};
    expect_round_trip(module_of(Literal::from_doubles(element, {2, 2}, extremes)));
    expect_round_trip(module_of(Literal::scalar(element, 1)));
    expect_round_trip(module_of(Literal::from_doubles(element, {0, 3}, {})));
  }
}

TEST(Text, BigConstantsLieInTheSideFile) {
  std::vector<double> values(100);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) / 7;
  Module module = module_of(Literal::from_doubles(ElementType::f32, {10, 10}, values));
  module.functions["other"] = module.functions["main"];
  module.functions["other"].name = "other";
  const PrintOptions options = {.side_file = "w \"1\".bin"};
  const std::string text = print(module, options);
  expect_round_trip(module, options);
  EXPECT_EQ(side_file_of(text), "w \"1\".bin");
  EXPECT_EQ(side_file_of("func @f"), "");
  const std::string constants = print_constants(module, options);
  EXPECT_EQ(constants.size(), 16u + 400u);  // once, though used twice
  const uint64_t hash = Literal::from_doubles(ElementType::f32, {10, 10}, values).hash();
  EXPECT_NE(text.find(fmt::format("{{value=f32[10,10] #{:016x}}}", hash)), std::string::npos);
  EXPECT_THROW(parse_module(text), CompileError);
  EXPECT_THROW(parse_module(text, constants.substr(0, 300)), CompileError);
  EXPECT_THROW(parse_module(text, constants.substr(0, 7)), CompileError);
  std::string damaged = constants;
  damaged[100] ^= 1;
  EXPECT_THROW(parse_module(text, damaged), CompileError);
}

TEST(Text, EveryKindOfAttributeRoundTrips) {
  Module module;
  module.symbols["N"] = {1, 8};
  const Dim n = Dim::symbol("N");
  Builder builder(module, "main");
  const ValueId x = builder.parameter("x", TensorType{ElementType::f32, {n * 2 + 1, 3}});
  builder.set_loc(loc("n"));
  const Dims shape = {n * 2 + 1, 3};
  const ValueId iota = builder.emit(ops::iota, {}, IotaAttrs{ElementType::f32, shape, 1});
  const ValueId less = builder.emit(ops::compare, {x, iota}, CompareAttrs{Comparison::lt});
  const ValueId size = builder.emit(ops::dimension, {}, DimensionAttrs{Dim::ceil_div(n, 2)});
  const ValueId inf = builder.emit(ops::is_inf, {x}, IsInfAttrs{true, false});
  const ValueId top = builder.emit(ops::top_k, {x}, TopKAttrs{Dim::min(n, 2), 0, false});
  const ValueId turned = builder.emit(ops::transpose, {x}, TransposeAttrs{{1, 0}});
  const ValueId all = builder.emit(ops::tuple, {less, size, inf, top, turned});
  module.functions["main"] = builder.finish(all);
  verify(module);
  expect_round_trip(module);
  expect_round_trip(module, {.locations = false});
}

TEST(Text, HandWrittenTextMayLeaveTypesAndLocationsOut) {
  const Module module = parse_module(R"(
    // A comment, then a symbol without an upper bound.
    symbol N in 1..
    func @f(%x: f32[N]) -> f32[N] {
      %h = relu %x   // no type
      %0 = add %h, %x
      return %0
    })");
  verify(module);
  EXPECT_EQ(module.symbols.at("N"), (DimRange{1, INT64_MAX}));
  EXPECT_EQ(module.function("f").node(ValueId(1)).loc.node, "%h");
  expect_round_trip(module);
}

}  // namespace
}  // namespace backcast
