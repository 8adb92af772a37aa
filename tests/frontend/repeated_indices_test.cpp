// GatherElements and ScatterElements whose indices are one vector, repeated: they name whole rows.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "ir/ops/ops.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

using Numbers = std::vector<double>;

Literal counted(const std::vector<int64_t>& shape, double factor) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  Numbers values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i) * factor + 1);
  return Literal::from_doubles(ElementType::f32, shape, values);
}

/// Data of 4 × 5, three indices along `axis`; of the other extent only `kept` places are touched.
struct Case {
  std::string op;
  int64_t axis, kept;
};

class RepeatedIndices : public ::testing::TestWithParam<Case> {
 protected:
  /// `expanded`: of three indices in the model, else of the whole tensor that they would fill.
  ImportedModel model(bool expanded) const {
    const Case& c = GetParam();
    const std::string e = "3", k = std::to_string(c.kept);
    const std::vector<std::string> whole = c.axis == 0 ? std::vector{e, k} : std::vector{k, e};
    const std::vector<std::string> vector =
        c.axis == 0 ? std::vector<std::string>{e, "1"} : std::vector<std::string>{"1", e};
    ModelBuilder m;
    m.input("x", {"4", "5"}).input("i", expanded ? vector : whole, onnx_type::kInt64);
    m.ints("shape",
           c.axis == 0 ? std::vector<int64_t>{3, c.kept} : std::vector{c.kept, int64_t{3}});
    if (expanded) m.node("expand", "Expand", {"i", "shape"}, {"all"});
    std::vector<std::string> inputs{"x", expanded ? "all" : "i"};
    std::vector<OnnxAttribute> attributes{ModelBuilder::integer("axis", c.axis)};
    if (c.op == "ScatterElements") {
      m.input("u", whole);
      inputs.push_back("u");
      attributes.push_back(ModelBuilder::string("reduction", "add"));
    }
    m.output("y").node("op", c.op, inputs, {"y"}, attributes);
    return m.import();
  }

  Numbers result(bool expanded, const Numbers& places) const {
    const Case& c = GetParam();
    const std::vector<int64_t> whole =
        c.axis == 0 ? std::vector<int64_t>{3, c.kept} : std::vector<int64_t>{c.kept, 3};
    Numbers indices = places;
    std::vector<int64_t> shape =
        c.axis == 0 ? std::vector<int64_t>{3, 1} : std::vector<int64_t>{1, 3};
    if (!expanded) {
      shape = whole;
      indices.clear();
      for (int64_t a = 0; a < whole[0]; ++a) {
        for (int64_t b = 0; b < whole[1]; ++b) {
          indices.push_back(places[static_cast<size_t>(c.axis == 0 ? a : b)]);
        }
      }
    }
    std::vector<Value> inputs{counted({4, 5}, 1),
                              Literal::from_doubles(ElementType::i64, shape, indices)};
    if (c.op == "ScatterElements") inputs.emplace_back(counted(whole, 0.25));
    const ImportedModel imported = model(expanded);
    verify(imported.module);
    return evaluate(imported.module, imported.module.function("main"), inputs).tensor.as_doubles();
  }
};

TEST_P(RepeatedIndices, NameRows) {
  for (const Numbers& places : {Numbers{2, 0, 3}, Numbers{1, 1, -1}}) {
    EXPECT_EQ(result(true, places), result(false, places));
  }
  const ImportedModel imported = model(true);
  for (const Node& node : imported.module.function("main").nodes) {
    if (node.op == &ops::scatter) {
      EXPECT_EQ(node.attrs.as<ScatterAttrs>().update_window_dims.size(), 1u);
    }
    if (node.op == &ops::gather) {
      EXPECT_EQ(node.attrs.as<GatherAttrs>().offset_dims.size(), 1u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RepeatedIndices,
    ::testing::Values(Case{"GatherElements", 0, 5}, Case{"GatherElements", 0, 2},
                      Case{"GatherElements", 1, 4}, Case{"GatherElements", 1, 3},
                      Case{"ScatterElements", 0, 5}, Case{"ScatterElements", 0, 2},
                      Case{"ScatterElements", 1, 4}, Case{"ScatterElements", 1, 3}));

}  // namespace
}  // namespace backcast
