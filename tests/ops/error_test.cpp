// What shape rules refuse, and that the message names the fault.
#include <gtest/gtest.h>

#include "tests/ops/cases.h"

namespace backcast {
namespace {

struct ErrorCase {
  const OpDef* op;
  std::vector<std::string> operands;  // "f32[2,3]" or "(f32[2])"
  Attrs attrs;
  std::string message;  // part of it
};

/// Reads "f32[2,N]".
TensorType type(const std::string& text) {
  const size_t open = text.find('[');
  std::vector<std::string> extents;
  std::string current;
  for (const char c : text.substr(open + 1)) {
    if (c != ',' && c != ']') {
      current += c;
    } else if (!current.empty()) {
      extents.push_back(std::move(current));
      current.clear();
    }
  }
  return symbolic(extents, element_type_from_name(text.substr(0, open)).value());
}

void expect_error(const ErrorCase& c) {
  std::vector<Type> operands;
  for (const std::string& text : c.operands) operands.push_back(type(text));
  const std::string error = infer_error(*c.op, operands, c.attrs);
  EXPECT_NE(error.find(c.message), std::string::npos) << c.op->name << ": " << error;
}

TEST(OpErrors, Elementwise) {
  const std::vector<ErrorCase> cases = {
      {&ops::add,
       {"f32[2]", "f32[3]"},
       {},
       "operands 0 and 1 must have equal types and are f32[2] and f32[3]"},
      {&ops::add, {"f32[2]", "i32[2]"}, {}, "f32[2] and i32[2]"},
      {&ops::add, {"f32[N]", "f32[M]"}, {}, "f32[N] and f32[M]"},
      {&ops::add, {"f32[2]", "f32[]"}, {}, "equal types"},
      {&ops::add, {"bool[2]", "bool[2]"}, {}, "operand 0 must be a numeric tensor and is bool[2]"},
      {&ops::exp, {"i32[2]"}, {}, "a floating-point tensor and is i32[2]"},
      {&ops::bit_not, {"f32[2]"}, {}, "an integer or bool tensor and is f32[2]"},
      {&ops::shift_left, {"bool[2]", "bool[2]"}, {}, "an integer tensor"},
      {&ops::is_nan, {"i64[]"}, {}, "a floating-point tensor"},
      {&ops::compare, {"f32[2]", "f64[2]"}, {}, "equal types"},
      {&ops::select, {"i32[2]", "f32[2]", "f32[2]"}, {}, "operand 0 must be a bool tensor"},
      {&ops::select, {"bool[2]", "f32[2]", "f32[3]"}, {}, "operands 1 and 2"},
      {&ops::select, {"bool[]", "f32[2]", "f32[2]"}, {}, "operands 0 and 1 must have equal shapes"},
      {&ops::clamp, {"f32[2]", "f32[1]", "f32[]"}, {}, "operands 0 and 1"},
      {&ops::clamp,
       {"f32[2]", "f32[]", "i32[]"},
       {},
       "operands 0 and 2 must have equal element types"},
  };
  for (const ErrorCase& c : cases) expect_error(c);
}

TEST(OpErrors, Shapes) {
  const ElementType f32 = ElementType::f32;
  const std::vector<ErrorCase> cases = {
      {&ops::constant, {}, ConstantAttrs{}, "no value"},
      {&ops::iota, {}, IotaAttrs{f32, {2}, 1}, "axis 1 is out of range for 1 dimensions"},
      {&ops::iota, {}, IotaAttrs{f32, {-2}, 0}, "negative"},
      {&ops::iota, {}, IotaAttrs{f32, {}, 0}, "out of range"},
      {&ops::iota, {}, IotaAttrs{ElementType::boolean, {2}, 0}, "bool"},
      {&ops::broadcast,
       {"f32[2]"},
       BroadcastAttrs{{3}, {0}},
       "dimension 0 of operand f32[2] cannot be broadcast to dimension 0 of [3]"},
      {&ops::broadcast, {"f32[2]"}, BroadcastAttrs{{2}, {}}, "dims has 0 entries and needs 1"},
      {&ops::broadcast, {"f32[2,2]"}, BroadcastAttrs{{2, 2}, {1, 0}}, "dims must increase"},
      {&ops::broadcast, {"f32[2]"}, BroadcastAttrs{{2}, {1}}, "dims 1 is out of range"},
      {&ops::reshape,
       {"f32[2,3]"},
       ReshapeAttrs{{5}},
       "f32[2,3] has 6 elements and cannot be reshaped to [5], which has 5"},
      {&ops::reshape, {"f32[N]"}, ReshapeAttrs{{5}}, "has N elements"},
      {&ops::reshape, {"f32[6]"}, ReshapeAttrs{{-2, -3}}, "negative"},
      {&ops::reshape, {"f32[2]"}, ReshapeAttrs{{int64_t{1} << 40, int64_t{1} << 40}}, "64 bits"},
      {&ops::transpose,
       {"f32[2,3]"},
       TransposeAttrs{{0, 0}},
       "permutation names dimension 0 twice"},
      {&ops::transpose, {"f32[2,3]"}, TransposeAttrs{{0}}, "permutation has 1 entries and needs 2"},
      {&ops::transpose, {"f32[2,3]"}, TransposeAttrs{{0, -1}}, "-1 is out of range"},
      {&ops::slice,
       {"f32[4]"},
       SliceAttrs{{1}, {5}, {1}},
       "slice 1 to 5 of dimension 0 does not lie inside f32[4]"},
      {&ops::slice, {"f32[4]"}, SliceAttrs{{3}, {2}, {1}}, "does not lie inside"},
      {&ops::slice, {"f32[4]"}, SliceAttrs{{-1}, {2}, {1}}, "does not lie inside"},
      {&ops::slice, {"f32[4]"}, SliceAttrs{{0}, {2}, {0}}, "stride 0 of dimension 0"},
      {&ops::slice, {"f32[4]"}, SliceAttrs{{0}, {2}, {}}, "stride has 0 entries"},
      {&ops::slice, {"f32[N]"}, SliceAttrs{{0}, {Dim::symbol("N") + Dim(1)}, {1}}, "inside"},
      {&ops::pad, {"f32[4]", "f32[1]"}, PadAttrs{{0}, {0}, {0}}, "must be a scalar"},
      {&ops::pad, {"f32[4]", "i32[]"}, PadAttrs{{0}, {0}, {0}}, "equal element types"},
      {&ops::pad, {"f32[4]", "f32[]"}, PadAttrs{{-3}, {-2}, {0}}, "has the negative extent -1"},
      {&ops::pad, {"f32[4]", "f32[]"}, PadAttrs{{0}, {0}, {-1}}, "interior has the entry -1"},
      {&ops::pad, {"f32[4]", "f32[]"}, PadAttrs{{0}, {}, {0}}, "high has 0 entries"},
      {&ops::concat,
       {"f32[2,3]", "f32[2,4]"},
       ConcatAttrs{0},
       "operands 0 and 1 must be equal but for dimension 0"},
      {&ops::concat, {"f32[2]", "f32[2,1]"}, ConcatAttrs{0}, "f32[2] and f32[2,1]"},
      {&ops::concat, {"f32[2]", "i32[2]"}, ConcatAttrs{0}, "equal element types"},
      {&ops::concat, {"f32[]", "f32[]"}, ConcatAttrs{0}, "out of range"},
      {&ops::reverse, {"f32[2]"}, ReverseAttrs{{0, 0}}, "twice"},
      {&ops::prefix, {"f32[2]", "i64[]"}, PrefixAttrs{1, Dim::symbol("K")}, "out of range"},
      {&ops::prefix, {"f32[2]", "i32[]"}, PrefixAttrs{0, Dim::symbol("K")}, "an i64 scalar"},
      {&ops::prefix, {"f32[2]", "i64[]"}, PrefixAttrs{0, 2}, "is no symbol"},
      {&ops::prefix, {"f32[2]", "i64[]"}, PrefixAttrs{0, Dim::symbol("K")}, "the range of K"},
  };
  for (const ErrorCase& c : cases) expect_error(c);
}

TEST(OpErrors, GatherAndScatter) {
  const GatherAttrs good{{1}, {0}, {}, {}, {0}, 1, {1, 4}};
  const auto gather = [&](void (*change)(GatherAttrs&), const std::string& message,
                          const std::string& indices = "i64[2]") {
    GatherAttrs attrs = good;
    change(attrs);
    expect_error({&ops::gather, {"f32[3,4]", indices}, attrs, message});
  };
  gather([](GatherAttrs&) {}, "an integer tensor and is f32[2]", "f32[2]");
  gather([](GatherAttrs& a) { a.index_vector_dim = 2; }, "index_vector_dim 2 is out of range");
  gather([](GatherAttrs& a) { a.index_vector_dim = 0; }, "an index vector has 2 components and 1");
  gather([](GatherAttrs& a) { a.start_index_map = {5}; }, "the addressed dimension 5");
  gather([](GatherAttrs& a) { a.collapsed_slice_dims = {}; }, "do not make up f32[3,4]");
  gather([](GatherAttrs& a) { a.offset_dims = {2}; }, "the window dimension 2 is out of range");
  gather([](GatherAttrs& a) { a.slice_sizes = {1}; }, "slice_sizes has 1 entries");
  gather([](GatherAttrs& a) { a.slice_sizes = {1, 5}; }, "slice_sizes has 5 for dimension 1");
  gather([](GatherAttrs& a) { a.slice_sizes = {2, 4}; }, "must be 1 in the collapsed");
  gather([](GatherAttrs& a) { a.operand_batching_dims = {1}; }, "batching dimensions");
  gather([](GatherAttrs& a) { a = {{}, {0}, {1}, {0}, {0}, 1, {1, 1}}; }, "differ");
  const ScatterAttrs scatter{Combiner::add, {}, {0}, {}, {}, {0}, 1};
  expect_error({&ops::scatter,
                {"f32[4]", "i64[2]", "f32[3]"},
                scatter,
                "dimension 0 of the updates f32[3] must be 2"});
  expect_error(
      {&ops::scatter, {"f32[4]", "i64[2]", "f32[2,1]"}, scatter, "must have 1 dimensions"});
  expect_error({&ops::scatter, {"f32[4]", "i64[2]", "i32[2]"}, scatter, "equal element types"});
  expect_error({&ops::scatter, {"bool[4]", "i64[2]", "bool[2]"}, scatter, "a numeric tensor"});
  const ScatterAttrs windows{Combiner::assign, {1}, {}, {}, {}, {0}, 1};
  expect_error({&ops::scatter,
                {"f32[4]", "i64[2]", "f32[2,5]"},
                windows,
                "window dimension 1 of the updates f32[2,5] is larger than dimension 0 of f32[4]"});
}

TEST(OpErrors, Contractions) {
  const auto dot = [](DotGeneralAttrs attrs, const std::string& message) {
    expect_error({&ops::dot_general, {"f32[2,3]", "f32[3,4]"}, attrs, message});
  };
  dot({{}, {}, {0}, {0}}, "contracted dimension 0 of f32[2,3] and 0 of f32[3,4] differ");
  dot({{1}, {0}, {0}, {}}, "there are 1 contracted dimensions on the left and 0 on the right");
  dot({{1}, {0}, {1}, {0}}, "the left dimension names dimension 1 twice");
  dot({{}, {}, {2}, {0}}, "the left dimension 2 is out of range");
  ConvAttrs good;
  good.input_spatial = good.kernel_spatial = good.output_spatial = {2};
  good.strides = good.input_dilation = good.kernel_dilation = {1};
  good.pad_low = good.pad_high = {0};
  const auto conv = [&](void (*change)(ConvAttrs&), const std::string& message,
                        const std::string& w = "f32[4,2,3]") {
    ConvAttrs attrs = good;
    change(attrs);
    expect_error({&ops::conv, {"f32[1,2,5]", w}, attrs, message});
  };
  conv([](ConvAttrs&) {}, "has 2 features and the kernel f32[4,3,3] takes 3", "f32[4,3,3]");
  conv([](ConvAttrs&) {}, "equally many dimensions", "f32[4,2]");
  conv([](ConvAttrs&) {}, "equal element types", "f64[4,2,3]");
  conv([](ConvAttrs&) {}, "a window of 6 (after dilation) is larger than the padded input of 5",
       "f32[4,2,6]");
  conv([](ConvAttrs& a) { a.strides = {}; }, "strides has 0 entries");
  conv([](ConvAttrs& a) { a.strides = {0}; }, "strides has the entry 0");
  conv([](ConvAttrs& a) { a.pad_high = {}; }, "pad_high has 0 entries");
  conv([](ConvAttrs& a) { a.pad_low = {-6}; }, "has the negative extent -1");
  conv([](ConvAttrs& a) { a.input_spatial = {1}; }, "the input layout names dimension 1 twice");
  conv([](ConvAttrs& a) { a.output_feature = 7; }, "the output layout 7 is out of range");
  conv([](ConvAttrs& a) { a.feature_groups = 0; }, "feature_groups has the entry 0");
  conv([](ConvAttrs& a) { a.batch_groups = 3; }, "not divisible into 3 groups");
  conv([](ConvAttrs& a) { a.batch_groups = a.feature_groups = 2; }, "cannot both exceed 1");
  expect_error({&ops::conv, {"f32[2]", "f32[2]"}, ConvAttrs{}, "needs a batch and a feature"});
}

TEST(OpErrors, Reductions) {
  const std::vector<ErrorCase> cases = {
      {&ops::reduce, {"f32[2]"}, ReduceAttrs{Reduction::sum, {1}}, "axes 1 is out of range"},
      {&ops::reduce, {"f32[2]"}, ReduceAttrs{Reduction::sum, {0, 0}}, "twice"},
      {&ops::reduce, {"f32[2]"}, ReduceAttrs{Reduction::bit_or, {0}}, "an integer or bool"},
      {&ops::reduce, {"bool[2]"}, ReduceAttrs{Reduction::prod, {0}}, "a numeric"},
      {&ops::arg_reduce,
       {"f32[2]"},
       ArgReduceAttrs{Reduction::sum, 0, false},
       "max or min, not sum"},
      {&ops::arg_reduce, {"f32[0]"}, ArgReduceAttrs{}, "is empty"},
      {&ops::arg_reduce, {"f32[]"}, ArgReduceAttrs{}, "out of range"},
      {&ops::reduce_window,
       {"f32[2]"},
       ReduceWindowAttrs{Reduction::max, {3}, {1}, {1}, {0}, {0}},
       "larger than the padded input"},
      {&ops::reduce_window,
       {"f32[2]"},
       ReduceWindowAttrs{Reduction::max, {0}, {1}, {1}, {0}, {0}},
       "window has the entry 0"},
      {&ops::reduce_window, {"f32[2]"}, ReduceWindowAttrs{}, "window has 0 entries"},
      {&ops::cumulative,
       {"f32[2]"},
       CumulativeAttrs{Reduction::max, 0, false, false},
       "sum or prod, not max"},
      {&ops::cumulative, {"bool[2]"}, CumulativeAttrs{}, "a numeric"},
      {&ops::cumulative,
       {"f32[2]"},
       CumulativeAttrs{Reduction::sum, -1, false, false},
       "out of range"},
      {&ops::top_k,
       {"f32[2]"},
       TopKAttrs{3, 0, true},
       "k = 3 does not lie between 0 and dimension 0 of f32[2]"},
      {&ops::top_k, {"f32[2]"}, TopKAttrs{-1, 0, true}, "k = -1"},
      {&ops::top_k, {"f32[2]"}, TopKAttrs{1, 1, true}, "axis 1 is out of range"},
  };
  for (const ErrorCase& c : cases) expect_error(c);
}

TEST(OpErrors, Tuples) {
  const Type pair =
      Type::tuple({TensorType{ElementType::f32, {2}}, TensorType{ElementType::i64, {}}});
  EXPECT_EQ(infer_error(ops::get, {pair}, GetAttrs{2}),
            "there is no element 2 in (f32[2], i64[]), which has 2");
  EXPECT_EQ(infer_error(ops::get, {pair}, GetAttrs{-1}),
            "there is no element -1 in (f32[2], i64[]), which has 2");
  EXPECT_EQ(infer_error(ops::get, {TensorType{ElementType::f32, {2}}}, GetAttrs{0}),
            "operand 0 must be a tuple and is f32[2]");
}

}  // namespace
}  // namespace backcast
