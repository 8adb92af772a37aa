// Casts, bit casts, broadcasts, shuffles, lane reductions, memory (operations.h).
#include "backend/c/halves.h"
#include "backend/c/mve.h"
#include "backend/c/operations.h"
#include "ir/graph/error.h"

namespace backcast::c_backend {

using loop::Op;
using loop::Scalar;
using loop::Type;

namespace {

std::string lanes_list(const std::vector<std::string>& lanes) {
  std::string list;
  for (const std::string& lane : lanes) list += (list.empty() ? "" : ", ") + lane;
  return list;
}

/// `(f32x4){a[0], a[1], …}`
Text vector_literal(Prelude& prelude, Type type, const std::vector<std::string>& lanes,
                    int mask_bits) {
  Text result = {fmt::format("({}){{{}}}", prelude.type(type, mask_bits), lanes_list(lanes))};
  result.mask_bits = mask_bits;
  return result;
}

Scalar signed_of(int bits) {
  return bits == 8 ? Scalar::i8 : bits == 16 ? Scalar::i16 : bits == 32 ? Scalar::i32 : Scalar::i64;
}

/// The next type on the way of lanes from one type to another.
Scalar next_scalar(const Prelude& prelude, Scalar from, Scalar to) {
  const int width = prelude.bits(from), wanted = prelude.bits(to);
  if (loop::is_float(from) == loop::is_float(to)) {
    const bool near = loop::is_float(from) || (width <= 2 * wanted && wanted <= 2 * width);
    return near ? to : signed_of(width < wanted ? 2 * width : width / 2);
  }
  if (loop::is_float(from)) return wanted < 32 ? Scalar::i32 : to;
  return width < 32 ? signed_of(2 * width) : to;
}

/// gcc's builtin for 16 lanes between bytes and words at once, applied to `a`; empty for others.
std::string at_once(const Prelude& prelude, Scalar from, Type to) {
  const TargetInfo& target = prelude.target();
  const auto is_byte = [](Scalar s) { return s == Scalar::u8 || s == Scalar::i8; };
  if (target.architecture != Architecture::x86_64 || target.vector_bits < 512 || to.lanes != 16) {
    return {};
  }
  constexpr std::string_view kBytes = "__attribute__((vector_size(16))) char";
  if (is_byte(from) && to.scalar == Scalar::i32) {
    return fmt::format("__builtin_ia32_pmov{}xbd512_mask(({})a, (i32x16){{0}}, 0xffff)",
                       from == Scalar::u8 ? "z" : "s", kBytes);
  }
  if (from == Scalar::i32 && is_byte(to.scalar)) {
    return fmt::format("({})__builtin_ia32_pmovdb512_mask(a, ({}){{0}}, 0xffff)",
                       to.scalar == Scalar::u8 ? "u8x16" : "i8x16", kBytes);
  }
  return {};
}

Text step_by_step(Prelude& prelude, Scalar from, Type to, const Text& a) {
  Text result = a;
  while (from != to.scalar) {
    from = next_scalar(prelude, from, to.scalar);
    result = {fmt::format("__builtin_convertvector({}, {})", result.text,
                          prelude.type({from, to.lanes}))};
  }
  return result;
}

}  // namespace

Text convert_lanes(Prelude& prelude, Scalar from, Type to, const Text& a) {
  const Type type = {from, to.lanes}, words = {Scalar::i32, to.lanes};
  const bool by_words = from != Scalar::i32 && to.scalar != Scalar::i32 &&
                        !mve_conversion(prelude, from, words).empty() &&
                        !mve_conversion(prelude, Scalar::i32, to).empty();
  if (by_words) {
    return convert_lanes(prelude, Scalar::i32, to, convert_lanes(prelude, from, words, a));
  }
  const std::string direct = at_once(prelude, from, to), lines = mve_conversion(prelude, from, to);
  if (direct.empty() && lines.empty()) return step_by_step(prelude, from, to, a);
  const std::string name = fmt::format("convert_{}_{}", prelude.tag(to), prelude.tag(type));
  prelude.helper(name, [&] {
    const std::string result = prelude.type(to);
    // clang 19 joins these with a factor that is a power of two, and then gets this one wrong.
    const bool by_clang = loop::is_float(from) != loop::is_float(to.scalar);
    std::string body = fmt::format("  return {};\n", step_by_step(prelude, from, to, {"a"}).text);
    if (!direct.empty()) {
      body = fmt::format(
          "#if !defined(__clang__) && defined(__AVX512F__)\n  return {};\n#else\n{}#endif\n",
          direct, body);
    }
    return inline_function(result, name, prelude.type(type) + " a") + " {\n" +
           with_mve(prelude, words, lines, body, by_clang) + "}\n";
  });
  return {fmt::format("{}({})", name, a.text)};
}

Text convert_mask(Prelude& prelude, const Text& mask, int32_t lanes, int mask_bits) {
  if (mask.mask_bits == mask_bits) return mask;
  Text result =
      convert_lanes(prelude, signed_of(mask.mask_bits), {signed_of(mask_bits), lanes}, mask);
  result.mask_bits = mask_bits;
  return result;
}

Text cast_text(Prelude& prelude, Type from, Type to, const Text& a) {
  if (from == to) return a;
  if (is_half_conversion(prelude.target(), from.scalar, to.scalar)) {
    return half_conversion_text(prelude, from, to, a);
  }
  BC_CHECK(!loop::is_half(from.scalar) && !loop::is_half(to.scalar),
           "a cast from {} to {} must have been legalised", from.to_string(), to.to_string());
  if (!from.is_vector()) {
    if (to.scalar == Scalar::boolean) return {fmt::format("{} != 0", a.at(kUnary)), kLoose};
    Text result = {fmt::format("({}){}", prelude.type(to), a.at(kUnary)), kUnary};
    return result;
  }
  const int32_t lanes = from.lanes;
  if (to.scalar == Scalar::boolean) {
    const int bits = prelude.bits(from.scalar);
    const Text zero = broadcast_text(prelude, from, {"0"});
    Text result = {
        fmt::format("({})({} != {})", prelude.mask_type(bits, lanes), a.at(kUnary), zero.text),
        kUnary};
    result.mask_bits = bits;
    return result;
  }
  if (from.scalar == Scalar::boolean) {
    // Not of signed numbers: gcc 12 takes -m > INT_MIN to be m < INT_MIN.
    const Scalar element = signed_of(a.mask_bits);
    const Text ones = {fmt::format("({})-({}){}", prelude.type({element, lanes}),
                                   prelude.unsigned_type({element, lanes}), a.at(kPostfix)),
                       kUnary};
    return convert_lanes(prelude, element, to, ones);
  }
  return convert_lanes(prelude, from.scalar, to, a);
}

Text bitcast_text(Prelude& prelude, Type from, Type to, const Text& a) {
  const std::string from_type = prelude.type(from), to_type = prelude.type(to);
  if (from_type == to_type) return a;
  const bool same_shape = from.is_vector() && to.is_vector();
  const bool integers = !from.is_vector() && !to.is_vector() && loop::is_integer(from.scalar) &&
                        loop::is_integer(to.scalar);
  if (same_shape || integers) return {fmt::format("({}){}", to_type, a.at(kUnary)), kUnary};
  const std::string name = fmt::format("bits_{}_{}", prelude.tag(to), prelude.tag(from));
  prelude.helper(name, [&] {
    return inline_function(to_type, name, from_type + " a") +
           fmt::format(" {{\n  {} r;\n  __builtin_memcpy(&r, &a, sizeof r);\n  return r;\n}}\n",
                       to_type);
  });
  return {fmt::format("{}({})", name, a.text)};
}

Text broadcast_text(Prelude& prelude, Type to, const Text& a) {
  if (to.scalar == Scalar::boolean) {
    const Type mask = {Scalar::i32, to.lanes};
    return broadcast_text(prelude, mask, {"-" + a.at(kPostfix), kUnary});
  }
  const std::string name = "splat_" + prelude.tag(to);
  prelude.helper(name, [&] {
    const std::vector<std::string> lanes(static_cast<size_t>(to.lanes), "a");
    return inline_function(prelude.type(to), name, prelude.type(to.with_lanes(1)) + " a") +
           fmt::format(" {{ return {}; }}\n", vector_literal(prelude, to, lanes, 32).text);
  });
  return {fmt::format("{}({})", name, a.text)};
}

Text ramp_text(Prelude& prelude, Type type, const Text& base, const Text& stride) {
  const std::string name = "ramp_" + prelude.tag(type);
  prelude.helper(name, [&] {
    const std::string scalar = prelude.type(type.with_lanes(1));
    std::vector<std::string> lanes;
    for (int32_t lane = 0; lane < type.lanes; ++lane) lanes.push_back(fmt::format("{}", lane));
    const Text steps = vector_literal(prelude, type, lanes, 32);
    const Text product =
        binary_text(prelude, Op::mul, type, steps, broadcast_text(prelude, type, {"stride"}));
    const Text sum =
        binary_text(prelude, Op::add, type, broadcast_text(prelude, type, {"base"}), product);
    return inline_function(prelude.type(type), name, fmt::format("{0} base, {0} stride", scalar)) +
           fmt::format(" {{\n  return {};\n}}\n", sum.text);
  });
  return {fmt::format("{}({}, {})", name, base.text, stride.text)};
}

namespace {

/// Whether lanes are those of one register of two words, again and again.
bool repeats_pair(Type result, const std::vector<Type>& types,
                  const std::vector<int32_t>& indices) {
  const bool pair = types.size() == 1 && types[0].lanes == 2 && result.lanes > 2 &&
                    types[0].scalar == Scalar::f32;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!pair || indices[i] != static_cast<int32_t>(i % 2)) return false;
  }
  return pair;
}

/// The pair as one number of twice the bits, which gcc repeats as it loads it; of a shuffle it
/// makes an insertion per lane.
Text repeated_pair(Prelude& prelude, Type result, Type pair, const Text& a) {
  const Type halves = {Scalar::f64, result.lanes / 2};
  const std::string name = "repeat_" + prelude.tag(result);
  prelude.helper(name, [&] {
    const std::vector<std::string> lanes(static_cast<size_t>(halves.lanes), "pair");
    return inline_function(prelude.type(result), name, prelude.type(pair) + " a") +
           fmt::format(
               " {{\n  double pair;\n  __builtin_memcpy(&pair, &a, sizeof pair);\n"
               "  return ({}){};\n}}\n",
               prelude.type(result), vector_literal(prelude, halves, lanes, 64).text);
  });
  return {fmt::format("{}({})", name, a.text)};
}

}  // namespace

Text shuffle_text(Prelude& prelude, Type result, const std::vector<Type>& types,
                  std::vector<Text> args, const std::vector<int32_t>& indices) {
  if (repeats_pair(result, types, indices)) {
    return repeated_pair(prelude, result, types[0], args[0]);
  }
  int mask_bits = 8;
  for (const Text& arg : args) mask_bits = std::max(mask_bits, arg.mask_bits);
  bool uniform = args.size() <= 2 && types[0].is_vector() && result.is_vector();
  for (size_t i = 0; i < args.size(); ++i) {
    uniform = uniform && types[i].lanes == types[0].lanes;
    if (result.scalar == Scalar::boolean && types[i].is_vector()) {
      args[i] = convert_mask(prelude, args[i], types[i].lanes, mask_bits);
    }
  }
  if (uniform) {
    std::vector<std::string> list;
    for (const int32_t index : indices) list.push_back(fmt::format("{}", index));
    Text shuffled = {fmt::format("__builtin_shufflevector({}, {}, {})", args[0].text,
                                 args.back().text, lanes_list(list))};
    shuffled.mask_bits = mask_bits;
    return shuffled;
  }
  std::vector<std::string> all, lanes;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool negate =
        result.scalar == Scalar::boolean && (types[i].is_vector() != result.is_vector());
    for (int32_t lane = 0; lane < types[i].lanes; ++lane) {
      const std::string element = types[i].is_vector()
                                      ? fmt::format("{}[{}]", args[i].at(kPostfix), lane)
                                      : args[i].at(kPostfix);
      all.push_back(negate ? "-" + element : element);
    }
  }
  for (const int32_t index : indices) lanes.push_back(all.at(static_cast<size_t>(index)));
  if (!result.is_vector()) return {lanes[0], kUnary};
  return vector_literal(prelude, result, lanes, mask_bits);
}

/// Halves by halves down to one lane, as reduce_lanes says.
Text reduce_text(Prelude& prelude, Op op, Type type, const Text& a) {
  const int mask_bits = a.mask_bits;
  const std::string name =
      fmt::format("reduce_{}_{}", loop::name_of(op), prelude.tag(type, mask_bits));
  prelude.helper(name, [&] {
    std::string body;
    std::string value = "a";
    for (int32_t lanes = type.lanes / 2; lanes >= 1; lanes /= 2) {
      const Type half = type.with_lanes(lanes);
      std::vector<int32_t> low, high;
      for (int32_t i = 0; i < lanes; ++i) {
        low.push_back(i);
        high.push_back(lanes + i);
      }
      Text from = {value};
      from.mask_bits = mask_bits;
      const std::vector<Type> types = {type.with_lanes(2 * lanes)};
      const Text sum =
          binary_text(prelude, op, half, shuffle_text(prelude, half, types, {from}, low),
                      shuffle_text(prelude, half, types, {from}, high));
      value = fmt::format("a{}", lanes);
      body += fmt::format("  const {} {} = {};\n", prelude.type(half, mask_bits), value, sum.text);
    }
    return inline_function(prelude.type(type.with_lanes(1)), name,
                           prelude.type(type, mask_bits) + " a") +
           fmt::format(" {{\n{}  return {};\n}}\n", body, value);
  });
  return {fmt::format("{}({})", name, a.text)};
}

namespace {

/// `f32x8` in memory: aligned like its elements, free to overlay other types.
std::string unaligned_type(Prelude& prelude, Type type) {
  const std::string vector = prelude.memory_type(type);
  return prelude.helper(vector + "_u", [&] {
    return fmt::format("typedef {} {}_u __attribute__((aligned({}), may_alias));\n", vector, vector,
                       prelude.bits(type.scalar) / 8);
  });
}

}  // namespace

Text load_vector(Prelude& prelude, Type type, const std::string& pointer) {
  const Type memory = {type.scalar == Scalar::boolean ? Scalar::u8 : type.scalar, type.lanes};
  const std::string name = "load_" + prelude.tag(memory);
  prelude.helper(name, [&] {
    const std::string unaligned = unaligned_type(prelude, memory);
    return inline_function(prelude.type(memory), name,
                           fmt::format("const {} *p", prelude.memory_type(type.with_lanes(1)))) +
           fmt::format(" {{ return *(const {} *)(const void *)p; }}\n", unaligned);
  });
  const Text loaded = {fmt::format("{}({})", name, pointer)};
  return type.scalar == Scalar::boolean ? cast_text(prelude, memory, type, loaded) : loaded;
}

std::string store_vector(Prelude& prelude, Type type, const std::string& pointer,
                         const Text& value) {
  const Type memory = {type.scalar == Scalar::boolean ? Scalar::u8 : type.scalar, type.lanes};
  const std::string name = "store_" + prelude.tag(memory);
  prelude.helper(name, [&] {
    const std::string unaligned = unaligned_type(prelude, memory);
    return inline_function("void", name,
                           fmt::format("{} *p, {} v", prelude.memory_type(type.with_lanes(1)),
                                       prelude.type(memory))) +
           fmt::format(" {{ *({} *)(void *)p = v; }}\n", unaligned);
  });
  Text stored = value;
  if (type.scalar == Scalar::boolean) stored = cast_text(prelude, type, memory, value);
  return fmt::format("{}({}, {})", name, pointer, stored.text);
}

bool converts_in_memory(const Prelude& prelude, Scalar small, Type type) {
  const bool is_word = type.scalar == Scalar::i32 || type.scalar == Scalar::f32;
  return is_word && mve_converts_in_memory(prelude, small, {Scalar::i32, type.lanes});
}

Text load_converted(Prelude& prelude, Scalar from, Type to, const std::string& pointer) {
  const Type words = {Scalar::i32, to.lanes}, memory = {from, to.lanes};
  const std::string name = fmt::format("load_{}_{}", prelude.tag(words), prelude.tag(memory));
  prelude.helper(name, [&] {
    const Text plain = convert_lanes(prelude, from, words, load_vector(prelude, memory, "p"));
    return inline_function(prelude.type(words), name,
                           fmt::format("const {} *p", prelude.memory_type({from, 1}))) +
           " {\n" +
           with_mve(prelude, words, mve_widening_load(prelude, from, words),
                    fmt::format("  return {};\n", plain.text)) +
           "}\n";
  });
  const Text loaded = {fmt::format("{}({})", name, pointer)};
  return to == words ? loaded : convert_lanes(prelude, Scalar::i32, to, loaded);
}

std::string store_converted(Prelude& prelude, Type from, Scalar to, const std::string& pointer,
                            const Text& value) {
  const Type words = {Scalar::i32, from.lanes}, memory = {to, from.lanes};
  const std::string name = fmt::format("store_{}_{}", prelude.tag(memory), prelude.tag(words));
  prelude.helper(name, [&] {
    const Text narrow = convert_lanes(prelude, Scalar::i32, memory, {"v"});
    const std::string plain = store_vector(prelude, memory, "p", narrow);
    return inline_function(
               "void", name,
               fmt::format("{} *p, {} v", prelude.memory_type({to, 1}), prelude.type(words))) +
           " {\n" +
           with_mve(prelude, words, mve_narrowing_store(prelude, to),
                    fmt::format("  {};\n", plain)) +
           "}\n";
  });
  const Text stored = from == words ? value : convert_lanes(prelude, from.scalar, words, value);
  return fmt::format("{}({}, {})", name, pointer, stored.text);
}

}  // namespace backcast::c_backend
