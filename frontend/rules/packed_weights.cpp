// Operators of com.microsoft whose weights are packed, 8 / bits of them in a byte with the first in
// its lowest bits, and have a scale for every block of them.
#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "frontend/rules/quantization.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

int64_t bits_of(const NodeContext& n) {
  const int64_t bits = n.attr_int("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) {
    n.fail(fmt::format("attribute \"bits\" is {}; 2, 4 and 8 are supported", bits));
  }
  return bits;
}

/// The numbers in the bytes of x, along its last axis, as u8.
ValueId unpacked(Emitter& e, ValueId x, int64_t bits) {
  if (bits == 8) return x;
  const double mask = static_cast<double>((1 << bits) - 1);
  std::vector<ValueId> parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    const ValueId low = e.binary(ops::shift_right, x, e.like(x, static_cast<double>(shift)));
    parts.push_back(e.unsqueeze(e.binary(ops::bit_and, low, e.like(x, mask)), e.rank(x)));
  }
  Shape shape = e.shape(x);
  shape.back() = shape.back() * Dim(8 / bits);
  return e.reshape(e.concat(parts, e.rank(x)), shape);
}

/// Input i, which has to hold `shape`'s number of elements, in that shape.
ValueId shaped(NodeContext& n, size_t i, const Shape& shape) {
  if (!(n.type(i).element_count() == product(shape, 0, static_cast<int64_t>(shape.size())))) {
    n.fail(fmt::format("input {} is {} and has to hold {}", i, to_string(n.type(i)),
                       to_string(shape)));
  }
  return n.e.reshape(n.input(i), shape);
}

/// A·Wᵀ + bias with W[N, K] in blocks along K. Zero points are packed like the weights, or of A's
/// type and not packed.
void matmul_nbits(NodeContext& n) {
  Emitter& e = n.e;
  const int64_t bits = bits_of(n), block = n.attr_int("block_size", 0);
  const int64_t k = n.attr_int("K", 0), rows = n.attr_int("N", 0);
  if (k < 1 || rows < 1) n.fail("attributes \"K\" and \"N\" have to be positive");
  if (block < 16 || (block & (block - 1)) != 0) {
    n.fail("attribute \"block_size\" has to be a power of two, 16 or more");
  }
  if (n.attr_int("weight_prepacked", 0) != 0) n.fail("weights packed for a GPU are not supported");
  if (n.has(4)) n.fail("an order of groups (g_idx) is not supported; quantise without it");
  scale_input(n, 2);
  const ElementType type = n.element(0);
  if (n.rank(0) < 1 || !(n.shape(0).back() == Dim(k))) {
    n.fail(fmt::format("A is {} and K is {}", to_string(n.type(0)), k));
  }
  const int64_t blocks = (k + block - 1) / block;
  const ValueId packed = shaped(n, 1, {Dim(rows), Dim(blocks), Dim(block * bits / 8)});
  if (e.element(packed) != ElementType::u8) n.fail("the weights have to be packed in u8");
  const Shape per_block = {Dim(rows), Dim(blocks)};
  const Shape whole = {Dim(rows), Dim(blocks), Dim(block)};
  const auto spread = [&](ValueId x) { return e.broadcast_in(x, whole, {0, 1}); };
  // Weights lie around zero, in as many bits as they have; so do their zero points.
  const double middle = static_cast<double>(1 << (bits - 1));
  const auto centred = [&](ValueId x) {  // of u8 from 128 on as well: integers wrap
    const ValueId bytes = e.cast(x, ElementType::i8);
    return e.cast(e.add(bytes, e.filled({ElementType::i8, e.shape(x)}, -middle)), type);
  };
  ValueId w = centred(e.reshape(unpacked(e, packed, bits), whole));
  if (n.has(3) && n.element(3) != ElementType::u8) {
    n.training().scales.insert(n.initializer(3));  // belongs to the format, as scales do
    const ValueId zero = shaped(n, 3, per_block);
    w = e.sub(w, spread(e.sub(zero, e.like(zero, middle))));
  } else if (n.has(3)) {
    const Dim bytes((blocks * bits + 7) / 8);
    const ValueId zeros = unpacked(e, shaped(n, 3, {Dim(rows), bytes}), bits);
    w = e.sub(w, spread(centred(e.slice_axis(zeros, 1, 0, blocks))));
  }
  w = e.mul(w, spread(shaped(n, 2, per_block)));
  // Blocks stay an axis of their own, so that their scales are read where the product is computed.
  const int64_t last = n.rank(0) - 1;
  Dims none(static_cast<size_t>(n.rank(0)), Dim(0)), rest = none;
  rest.back() = Dim(blocks * block - k);
  const ValueId a =
      blocks * block == k ? n.input(0) : e.pad(n.input(0), e.scalar(type, 0), none, rest);
  Shape shape = n.shape(0);
  shape.back() = Dim(blocks);
  shape.push_back(Dim(block));
  const ValueId y = e.dot(e.reshape(a, shape), w, {{}, {}, {last, last + 1}, {1, 2}});
  n.result(n.has(5) ? e.add(y, n.input(5)) : y);
}

/// Rows are taken first and dequantised then, so that the table stays packed.
void gather_block_quantized(NodeContext& n) {
  Emitter& e = n.e;
  const int64_t rank = n.rank(0), block = n.attr_int("block_size", 128);
  const int64_t from = n.attr_axis("gather_axis", 0, rank);
  int64_t axis = n.attr_axis("quantize_axis", 1, rank);
  if (block < 16 || (block & (block - 1)) != 0) {
    n.fail("attribute \"block_size\" has to be a power of two, 16 or more");
  }
  if (axis == from || n.rank(2) != rank) {
    n.fail("scales have to be of the table's rank, and blocks along another axis than rows");
  }
  // Tables of 4-bit integers have been widened already.
  const bool is_packed = n.element(0) == ElementType::u8 && !n.is_narrow(0);
  const int64_t bits = is_packed ? bits_of(n) : 8;
  if (bits < 8 && from != 0) n.fail("rows of a packed table have to be along axis 0");
  const ValueId rows =
      e.wrap_negative(e.cast(n.input(1), ElementType::i64), e.extent(n.input(0), from));
  scale_input(n, 2);
  const ElementType type = n.element(2);
  const auto taken = [&](size_t i) { return e.take(n.input(i), rows, from); };
  const ValueId x = unpacked(e, taken(0), bits);
  if (axis > from) axis += n.rank(1) - 1;
  const auto spread = [&](ValueId v) {
    return repeat_blocks(e, v, axis, block, e.extent(x, axis));
  };
  ValueId y = e.cast(x, type);
  if (n.has(3)) {
    const ValueId zeros = unpacked(e, taken(3), bits);
    y = e.sub(y, spread(e.slice_axis(e.cast(zeros, type), axis, 0, e.extent(taken(2), axis))));
  } else if (is_packed) {
    y = e.sub(y, static_cast<double>(1 << (bits - 1)));
  }
  n.result(e.mul(y, spread(taken(2))));
}

const OperatorRule kRules[] = {
    {"MatMulNBits", 1, kMicrosoftOpset, 3, 6, matmul_nbits,
     "K:i N:i accuracy_level:i bits:i block_size:i weight_prepacked:i", kMicrosoftDomain},
    {"GatherBlockQuantized", 1, kMicrosoftOpset, 3, 4, gather_block_quantized,
     "bits:i block_size:i gather_axis:i quantize_axis:i", kMicrosoftDomain, true},
};

}  // namespace

std::span<const OperatorRule> packed_weights_rules() { return kRules; }

}  // namespace backcast
