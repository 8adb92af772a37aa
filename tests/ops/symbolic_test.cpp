// Shape rules on symbolic dimensions, and that evaluation agrees with them for values of the
// symbols.
#include <gtest/gtest.h>

#include "ir/graph/evaluator.h"
#include "tests/ops/cases.h"

namespace backcast {
namespace {

struct SymbolicCase {
  const OpDef* op;
  std::vector<Type> operands;
  Attrs attrs;
  std::string expected;
};

ConvAttrs conv2d(int64_t stride, int64_t pad) {
  ConvAttrs attrs;
  attrs.input_spatial = attrs.kernel_spatial = attrs.output_spatial = {2, 3};
  attrs.strides = {stride, stride};
  attrs.input_dilation = attrs.kernel_dilation = {1, 1};
  attrs.pad_low = attrs.pad_high = {pad, pad};
  return attrs;
}

std::vector<SymbolicCase> symbolic_cases() {
  const TensorType x = symbolic({"N", "3"});
  const TensorType image = symbolic({"N", "3", "H", "H"});
  const TensorType line = symbolic({"H"});
  const TensorType i64_n = symbolic({"N"}, ElementType::i64);
  const Dim n = Dim::symbol("N"), h = Dim::symbol("H");
  ConvAttrs dilated = conv2d(1, 0);
  dilated.input_dilation = {2, 1};
  // The gradient with respect to the weights: the cotangent [N,8,H,H] is the kernel.
  ConvAttrs gradient = conv2d(1, 1);
  gradient.input_batch = 1, gradient.input_feature = 0;
  gradient.kernel_output = 1, gradient.kernel_input = 0;
  return {
      {&ops::add, {x, x}, {}, "f32[N,3]"},
      {&ops::iota, {}, IotaAttrs{ElementType::i32, {n, 2}, 0}, "i32[N,2]"},
      {&ops::broadcast, {symbolic({"3"})}, BroadcastAttrs{{n, 3}, {1}}, "f32[N,3]"},
      {&ops::reshape, {symbolic({"N", "4", "7"})}, ReshapeAttrs{{n * Dim(28)}}, "f32[N*28]"},
      {&ops::transpose, {x}, TransposeAttrs{{1, 0}}, "f32[3,N]"},
      {&ops::slice, {line}, SliceAttrs{{0}, {h}, {2}}, "f32[(H+1)/2]"},
      {&ops::pad, {line, symbolic({})}, PadAttrs{{1}, {2}, {0}}, "f32[H+3]"},
      {&ops::pad, {line, symbolic({})}, PadAttrs{{0}, {0}, {1}}, "f32[H*2-1]"},
      {&ops::concat, {x, symbolic({"M", "3"}), x}, ConcatAttrs{0}, "f32[M+N*2,3]"},
      {&ops::gather,
       {x, symbolic({"M"}, ElementType::i64)},
       GatherAttrs{{1}, {0}, {}, {}, {0}, 1, {1, 3}},
       "f32[M,3]"},
      {&ops::scatter,
       {x, i64_n, x},
       ScatterAttrs{Combiner::add, {1}, {0}, {}, {}, {0}, 1},
       "f32[N,3]"},
      {&ops::dot_general, {x, symbolic({"3", "M"})}, DotGeneralAttrs{{}, {}, {1}, {0}}, "f32[N,M]"},
      {&ops::conv,
       {image, symbolic({"8", "3", "3", "3"})},
       conv2d(2, 1),
       "f32[N,8,(H+1)/2,(H+1)/2]"},
      {&ops::conv, {image, symbolic({"8", "3", "3", "3"})}, conv2d(1, 1), "f32[N,8,H,H]"},
      {&ops::conv, {image, symbolic({"8", "3", "1", "1"})}, dilated, "f32[N,8,H*2-1,H]"},
      {&ops::conv, {image, symbolic({"N", "8", "H", "H"})}, gradient, "f32[3,8,3,3]"},
      {&ops::reduce, {image}, ReduceAttrs{Reduction::sum, {1, 3}}, "f32[N,H]"},
      {&ops::arg_reduce, {x}, ArgReduceAttrs{Reduction::max, 1, false}, "i64[N]"},
      {&ops::reduce_window,
       {line},
       ReduceWindowAttrs{Reduction::max, {2}, {2}, {1}, {0}, {0}},
       "f32[H/2]"},
      {&ops::top_k, {x}, TopKAttrs{n, 0, true}, "(f32[N,3], i64[N,3])"},
  };
}

std::vector<Value> zeros(const std::vector<Type>& types, const SymbolValues& symbols) {
  std::vector<Value> values;
  for (const Type& type : types) {
    std::vector<int64_t> shape;
    int64_t count = 1;
    for (const Dim& d : type.tensor().shape) {
      shape.push_back(d.evaluate(symbols));
      count *= shape.back();
    }
    values.push_back(
        tensor(type.tensor().element, shape, std::vector<double>(static_cast<size_t>(count), 0.0)));
  }
  return values;
}

TEST(Symbolic, InferenceAgreesWithEvaluation) {
  for (const SymbolicCase& c : symbolic_cases()) {
    Node node;
    node.op = c.op;
    node.attrs = c.attrs.empty() ? c.op->default_attrs : c.attrs;
    node.loc = {"n", "Test", Origin::imported};
    node.type = infer(*c.op, c.operands, c.attrs);
    EXPECT_EQ(node.type.to_string(), c.expected) << c.op->name;
    for (const int64_t n : {1, 2, 5}) {
      for (const int64_t h : {3, 6, 7}) {
        const SymbolValues symbols = {{"N", n}, {"M", 4}, {"H", h}};
        // Throws when the value does not have the type under these symbols.
        EXPECT_NO_THROW(evaluate_node({}, node, zeros(c.operands, symbols), symbols))
            << c.op->name << " " << c.expected << " N=" << n << " H=" << h;
      }
    }
  }
}

TEST(Symbolic, RangesDecideAboutEmptyDimensions) {
  Module module;
  module.symbols["Z"] = {0, 8};
  const TensorType x = symbolic({"Z"});
  EXPECT_EQ(infer(ops::pad, {x, symbolic({})}, PadAttrs{{0}, {0}, {3}}, module).to_string(),
            "f32[Z+max(1, Z)*3-3]");
  EXPECT_NE(infer_error(ops::slice, {x}, SliceAttrs{{9}, {Dim::symbol("Z")}, {1}}, module),
            "no error");
  EXPECT_NE(infer_error(ops::top_k, {x}, TopKAttrs{9, 0, true}, module), "no error");
  EXPECT_EQ(infer_error(ops::top_k, {x}, TopKAttrs{8, 0, true}, module), "no error");
}

TEST(Symbolic, WhatOnlyTheValuesDecideFailsInEvaluation) {
  const auto error = [](const OpDef& op, const std::vector<Type>& types, Attrs attrs,
                        const SymbolValues& symbols) -> std::string {
    Node node;
    node.op = &op;
    node.attrs = attrs;
    node.loc = {"n", "Test", Origin::imported};
    node.type = infer(op, types, attrs);
    try {
      evaluate_node({}, node, zeros(types, symbols), symbols);
    } catch (const CompileError& e) {
      return e.what();
    }
    return "no error";
  };
  const TensorType x = symbolic({"N"});
  const SymbolValues two = {{"N", 2}, {"M", 1}};
  EXPECT_NE(error(ops::slice, {x}, SliceAttrs{{0}, {Dim(3)}, {1}}, two).find("does not lie inside"),
            std::string::npos);
  EXPECT_NE(error(ops::top_k, {x}, TopKAttrs{3, 0, true}, two).find("k = 3"), std::string::npos);
  EXPECT_NE(error(ops::reduce_window, {x},
                  ReduceWindowAttrs{Reduction::max, {5}, {1}, {1}, {0}, {0}}, two)
                .find("negative extent"),
            std::string::npos);
  EXPECT_NE(error(ops::gather, {x, symbolic({"M"}, ElementType::i64)},
                  GatherAttrs{{1}, {}, {}, {}, {0}, 1, {3}}, two)
                .find("a window of 3 does not fit"),
            std::string::npos);
}

}  // namespace
}  // namespace backcast
