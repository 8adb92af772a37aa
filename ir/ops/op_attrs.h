// The attribute structs of the core operators: the contract that importers, gradients and lowering
// share. Axes are never negative here; importers normalise them.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "ir/graph/attributes.h"

namespace backcast {

using Ints = std::vector<int64_t>;

/// parameter: an input of the function, number `index`.
struct ParameterAttrs {
  std::string name;
  int64_t index = 0;
  static constexpr auto fields() {
    return std::tuple{field("name", &ParameterAttrs::name), field("index", &ParameterAttrs::index)};
  }
};

struct ConstantAttrs {
  Literal value;
  static constexpr auto fields() { return std::tuple{field("value", &ConstantAttrs::value)}; }
};

/// get: element `index` of a tuple.
struct GetAttrs {
  int64_t index = 0;
  static constexpr auto fields() { return std::tuple{field("index", &GetAttrs::index)}; }
};

/// call: the function applied to the operands.
struct CallAttrs {
  FunctionRef function;
  static constexpr auto fields() { return std::tuple{field("function", &CallAttrs::function)}; }
};

/// composite: a call with a well-known name ("softmax"), which lowering may claim; otherwise the
/// body is inlined. `gradient` may name a function that takes the operands, the result and one
/// cotangent per floating-point tensor of the result, and gives a tuple with the adjoint of every
/// floating-point tensor operand; without one the body is differentiated.
struct CompositeAttrs {
  std::string name;
  FunctionRef function;
  FunctionRef gradient = {};
  static constexpr auto fields() {
    return std::tuple{field("name", &CompositeAttrs::name),
                      field("function", &CompositeAttrs::function),
                      field("gradient", &CompositeAttrs::gradient)};
  }
};

/// if_else(condition, operands…): `then` or `otherwise` applied to the operands; the condition is a
/// bool scalar. Both give the same type.
struct IfElseAttrs {
  FunctionRef then, otherwise;
  static constexpr auto fields() {
    return std::tuple{field("then", &IfElseAttrs::then),
                      field("otherwise", &IfElseAttrs::otherwise)};
  }
};

/// scan(trips, carries…, xs…, invariants…): applies body(carries…, xs[i]…, invariants…), which
/// gives the tuple (carries…, ys…), for i = 0, 1, …, executed-1 (`reverse`: downwards). `trips` is
/// an i64 scalar; executed = min(max(trips, 0), length). `conditional`: the first carry is a bool
/// scalar that is read before every trip and ends the scan when false (not with `reverse`: the
/// number of trips would have to be known first). The first dimension of each of the `xs` is
/// `length`. The result is the tuple (carries…, ys stacked along a new first dimension `length`…);
/// rows of trips that are not executed are zero. `trajectory` adds what a gradient reads: the
/// carries as they were before each trip, stacked like ys, and the i64 scalar `executed`.
/// `segments` above one makes the gradient cut a scan of constant length into that many parts: it
/// keeps the carries at their beginnings only and runs each part forward once more.
struct ScanAttrs {
  FunctionRef body;
  int64_t carries = 0, xs = 0;
  Dim length;
  bool reverse = false, conditional = false, trajectory = false;
  int64_t segments = 1;
  static constexpr auto fields() {
    return std::tuple{field("body", &ScanAttrs::body),
                      field("carries", &ScanAttrs::carries),
                      field("xs", &ScanAttrs::xs),
                      field("length", &ScanAttrs::length),
                      field("reverse", &ScanAttrs::reverse),
                      field("conditional", &ScanAttrs::conditional),
                      field("trajectory", &ScanAttrs::trajectory),
                      field("segments", &ScanAttrs::segments)};
  }
};

/// dimension: the value of a dimension expression as an i64 scalar.
struct DimensionAttrs {
  Dim value;
  static constexpr auto fields() { return std::tuple{field("value", &DimensionAttrs::value)}; }
};

/// is_inf
struct IsInfAttrs {
  bool positive = true;
  bool negative = true;
  static constexpr auto fields() {
    return std::tuple{field("positive", &IsInfAttrs::positive),
                      field("negative", &IsInfAttrs::negative)};
  }
};

enum class Rounding { toward_zero, nearest_even };
BACKCAST_ENUM_NAMES(Rounding, "toward_zero", "nearest_even");
/// cast: float to integer rounds (out-of-range values saturate, NaN gives 0); integer to integer
/// wraps; to bool: x != 0; float to float rounds to nearest even. `within`: floats are known to be
/// numbers of at most this size, 0: nothing is known.
struct CastAttrs {
  ElementType to = ElementType::f32;
  Rounding rounding = Rounding::toward_zero;
  double within = 0;
  static constexpr auto fields() {
    return std::tuple{field("to", &CastAttrs::to), field("rounding", &CastAttrs::rounding),
                      field("within", &CastAttrs::within)};
  }
};

enum class Comparison { eq, ne, lt, le, gt, ge };
BACKCAST_ENUM_NAMES(Comparison, "eq", "ne", "lt", "le", "gt", "ge");
/// compare: bool; false for NaN except ne.
struct CompareAttrs {
  Comparison direction = Comparison::eq;
  static constexpr auto fields() {
    return std::tuple{field("direction", &CompareAttrs::direction)};
  }
};

/// iota: counts 0, 1, … along `axis`; no operands.
struct IotaAttrs {
  ElementType element = ElementType::i64;
  Dims shape;
  int64_t axis = 0;
  static constexpr auto fields() {
    return std::tuple{field("element", &IotaAttrs::element), field("shape", &IotaAttrs::shape),
                      field("axis", &IotaAttrs::axis)};
  }
};

/// broadcast: operand dimension i becomes result dimension dims[i] (strictly increasing); its
/// extent equals the result's or is 1. The other dimensions are new.
struct BroadcastAttrs {
  Dims shape;
  Ints dims;
  static constexpr auto fields() {
    return std::tuple{field("shape", &BroadcastAttrs::shape), field("dims", &BroadcastAttrs::dims)};
  }
};

struct ReshapeAttrs {
  Dims shape;
  static constexpr auto fields() { return std::tuple{field("shape", &ReshapeAttrs::shape)}; }
};

/// transpose: result dimension i is operand dimension permutation[i].
struct TransposeAttrs {
  Ints permutation;
  static constexpr auto fields() {
    return std::tuple{field("permutation", &TransposeAttrs::permutation)};
  }
};

/// slice: elements start, start+stride, … below limit, per dimension; 0 <= start <= limit <=
/// extent, stride >= 1.
struct SliceAttrs {
  Dims start, limit;
  Ints stride;
  static constexpr auto fields() {
    return std::tuple{field("start", &SliceAttrs::start), field("limit", &SliceAttrs::limit),
                      field("stride", &SliceAttrs::stride)};
  }
};

/// pad(x, value): `low`/`high` elements of the scalar `value` at the edges (negative crops) and
/// `interior` between neighbours, per dimension.
struct PadAttrs {
  Dims low, high;
  Ints interior;
  static constexpr auto fields() {
    return std::tuple{field("low", &PadAttrs::low), field("high", &PadAttrs::high),
                      field("interior", &PadAttrs::interior)};
  }
};

struct ConcatAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{field("axis", &ConcatAttrs::axis)}; }
};

/// prefix(x, count): the first `count` positions along `axis`; `extent`, a symbol of the module,
/// has this value from here on.
struct PrefixAttrs {
  int64_t axis = 0;
  Dim extent;
  static constexpr auto fields() {
    return std::tuple{field("axis", &PrefixAttrs::axis), field("extent", &PrefixAttrs::extent)};
  }
};

struct ReverseAttrs {
  Ints axes;
  static constexpr auto fields() { return std::tuple{field("axes", &ReverseAttrs::axes)}; }
};

/// gather(x, indices), as StableHLO's gather: the result has the offset dimensions at positions
/// `offset_dims` (a window of x of size `slice_sizes` less the collapsed and the batching
/// dimensions) and, in the remaining positions, the dimensions of `indices` less `index_vector_dim`
/// (which may equal rank(indices): then an index vector of one element). Component k of an index
/// vector addresses x's dimension start_index_map[k]; x's dimension operand_batching_dims[j] is
/// addressed by the position along indices' dimension indices_batching_dims[j]. Start indices are
/// clamped so that the window fits. Indices are of an integer type.
struct GatherAttrs {
  Ints offset_dims, collapsed_slice_dims, operand_batching_dims, indices_batching_dims,
      start_index_map;
  int64_t index_vector_dim = 0;
  Dims slice_sizes;
  static constexpr auto fields() {
    return std::tuple{field("offset_dims", &GatherAttrs::offset_dims),
                      field("collapsed_slice_dims", &GatherAttrs::collapsed_slice_dims),
                      field("operand_batching_dims", &GatherAttrs::operand_batching_dims),
                      field("indices_batching_dims", &GatherAttrs::indices_batching_dims),
                      field("start_index_map", &GatherAttrs::start_index_map),
                      field("index_vector_dim", &GatherAttrs::index_vector_dim),
                      field("slice_sizes", &GatherAttrs::slice_sizes)};
  }
};

enum class Combiner { assign, add, mul, min, max };
BACKCAST_ENUM_NAMES(Combiner, "assign", "add", "mul", "min", "max");
/// scatter(x, indices, updates), gather's twin (StableHLO): x with windows of `updates` combined
/// in, in row-major order of `updates`; windows that do not fit are skipped.
struct ScatterAttrs {
  Combiner combiner = Combiner::assign;
  Ints update_window_dims, inserted_window_dims, input_batching_dims, indices_batching_dims,
      scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
  static constexpr auto fields() {
    return std::tuple{
        field("combiner", &ScatterAttrs::combiner),
        field("update_window_dims", &ScatterAttrs::update_window_dims),
        field("inserted_window_dims", &ScatterAttrs::inserted_window_dims),
        field("input_batching_dims", &ScatterAttrs::input_batching_dims),
        field("indices_batching_dims", &ScatterAttrs::indices_batching_dims),
        field("scatter_dims_to_operand_dims", &ScatterAttrs::scatter_dims_to_operand_dims),
        field("index_vector_dim", &ScatterAttrs::index_vector_dim)};
  }
};

/// dot_general(a, b): result dimensions are the batch dimensions, a's free ones, b's free ones.
struct DotGeneralAttrs {
  Ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
  static constexpr auto fields() {
    return std::tuple{field("lhs_batch", &DotGeneralAttrs::lhs_batch),
                      field("rhs_batch", &DotGeneralAttrs::rhs_batch),
                      field("lhs_contract", &DotGeneralAttrs::lhs_contract),
                      field("rhs_contract", &DotGeneralAttrs::rhs_contract)};
  }
};

/// conv(x, w) with StableHLO's dimension numbers; no kernel flip (cross-correlation). Per spatial
/// dimension: x is dilated by `input_dilation`, padded by pad_low/pad_high (negative crops), w is
/// dilated by `kernel_dilation`, the window moves by `strides`.
struct ConvAttrs {
  int64_t input_batch = 0, input_feature = 1;
  Ints input_spatial;
  int64_t kernel_output = 0, kernel_input = 1;
  Ints kernel_spatial;
  int64_t output_batch = 0, output_feature = 1;
  Ints output_spatial;
  Ints strides;
  Dims pad_low, pad_high;
  Ints input_dilation, kernel_dilation;
  int64_t feature_groups = 1, batch_groups = 1;
  static constexpr auto fields() {
    return std::tuple{field("input_batch", &ConvAttrs::input_batch),
                      field("input_feature", &ConvAttrs::input_feature),
                      field("input_spatial", &ConvAttrs::input_spatial),
                      field("kernel_output", &ConvAttrs::kernel_output),
                      field("kernel_input", &ConvAttrs::kernel_input),
                      field("kernel_spatial", &ConvAttrs::kernel_spatial),
                      field("output_batch", &ConvAttrs::output_batch),
                      field("output_feature", &ConvAttrs::output_feature),
                      field("output_spatial", &ConvAttrs::output_spatial),
                      field("strides", &ConvAttrs::strides),
                      field("pad_low", &ConvAttrs::pad_low),
                      field("pad_high", &ConvAttrs::pad_high),
                      field("input_dilation", &ConvAttrs::input_dilation),
                      field("kernel_dilation", &ConvAttrs::kernel_dilation),
                      field("feature_groups", &ConvAttrs::feature_groups),
                      field("batch_groups", &ConvAttrs::batch_groups)};
  }
};

enum class Reduction { sum, prod, max, min, bit_and, bit_or };
BACKCAST_ENUM_NAMES(Reduction, "sum", "prod", "max", "min", "bit_and", "bit_or");
/// reduce: over `axes`, which disappear. An empty axis gives the identity (max: -inf or the lowest
/// integer). f16/bf16 accumulate in f32.
struct ReduceAttrs {
  Reduction kind = Reduction::sum;
  Ints axes;
  static constexpr auto fields() {
    return std::tuple{field("kind", &ReduceAttrs::kind), field("axes", &ReduceAttrs::axes)};
  }
};

/// arg_reduce: i64 position of the first (or last) maximum or minimum along `axis`, which
/// disappears.
struct ArgReduceAttrs {
  Reduction kind = Reduction::max;  // max or min
  int64_t axis = 0;
  bool last = false;
  static constexpr auto fields() {
    return std::tuple{field("kind", &ArgReduceAttrs::kind), field("axis", &ArgReduceAttrs::axis),
                      field("last", &ArgReduceAttrs::last)};
  }
};

/// reduce_window: the window slides over every dimension of x (extent 1 where it does not matter);
/// positions outside x are left out (they count as the identity).
struct ReduceWindowAttrs {
  Reduction kind = Reduction::max;
  Ints window, strides, dilation;
  Dims pad_low, pad_high;
  static constexpr auto fields() {
    return std::tuple{field("kind", &ReduceWindowAttrs::kind),
                      field("window", &ReduceWindowAttrs::window),
                      field("strides", &ReduceWindowAttrs::strides),
                      field("dilation", &ReduceWindowAttrs::dilation),
                      field("pad_low", &ReduceWindowAttrs::pad_low),
                      field("pad_high", &ReduceWindowAttrs::pad_high)};
  }
};

/// cumulative: running sum or product along `axis`.
struct CumulativeAttrs {
  Reduction kind = Reduction::sum;
  int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto fields() {
    return std::tuple{field("kind", &CumulativeAttrs::kind), field("axis", &CumulativeAttrs::axis),
                      field("exclusive", &CumulativeAttrs::exclusive),
                      field("reverse", &CumulativeAttrs::reverse)};
  }
};

/// top_k: tuple (values, i64 indices) of the k largest or smallest along `axis`, best first; of
/// equal elements the lower index first.
struct TopKAttrs {
  Dim k = 1;
  int64_t axis = 0;
  bool largest = true;
  static constexpr auto fields() {
    return std::tuple{field("k", &TopKAttrs::k), field("axis", &TopKAttrs::axis),
                      field("largest", &TopKAttrs::largest)};
  }
};

}  // namespace backcast
