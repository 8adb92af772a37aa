// Attributes from unchecked text: random ones either infer or give a CompileError, and what infers
// also evaluates or gives one. Run under the sanitizers this finds reads outside of vectors and
// overflows.
#include <gtest/gtest.h>

#include <random>

#include "tests/ops/cases.h"

namespace backcast {
namespace {

class Hostile {
 public:
  explicit Hostile(unsigned seed) : engine_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }

  int64_t number() {
    static constexpr int64_t kNumbers[] = {0,
                                           1,
                                           2,
                                           3,
                                           4,
                                           -1,
                                           -2,
                                           7,
                                           int64_t{1} << 20,
                                           (int64_t{1} << 30) + 1,
                                           INT64_MAX,
                                           INT64_MIN,
                                           INT64_MAX / 2};
    return below(4) != 0 ? below(4) : kNumbers[below(std::size(kNumbers))];
  }

  AttrValue value(const AttrValue& like) {
    if (std::holds_alternative<int64_t>(like)) return number();
    if (std::holds_alternative<bool>(like)) return below(2) == 0;
    if (std::holds_alternative<Dim>(like)) return Dim(number());
    if (std::holds_alternative<Ints>(like)) {
      Ints list;
      for (int64_t n = below(5); n > 0; --n) list.push_back(number());
      return list;
    }
    if (std::holds_alternative<Dims>(like)) {
      Dims list;
      for (int64_t n = below(5); n > 0; --n) list.push_back(number());
      return list;
    }
    return like;
  }

  Literal operand() {
    static constexpr ElementType kElements[] = {ElementType::f32, ElementType::i64,
                                                ElementType::boolean, ElementType::f16};
    std::vector<int64_t> shape;
    int64_t count = 1;
    for (int64_t n = below(4); n > 0; --n) {
      shape.push_back(below(4));
      count *= shape.back();
    }
    std::vector<double> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(number()));
    return tensor(kElements[below(8) == 0 ? below(4) : below(2)], shape, numbers);
  }

 private:
  std::mt19937_64 engine_;
};

TEST(Hostile, RandomAttributesNeverDoHarm) {
  Hostile hostile(7);
  int64_t inferred = 0, evaluated = 0;
  for (int round = 0; round < 400; ++round) {
    for (const OpDef* op : all_ops()) {
      if (op->name == "parameter" || op->name == "dimension") continue;
      std::vector<AttrField> fields = op->default_attrs.fields();
      for (AttrField& f : fields) f.value = hostile.value(f.value);
      const Attrs attrs = fields.empty() ? Attrs() : op->default_attrs.with(fields);
      std::vector<Value> operands;
      for (int i = 0; i < op->min_operands; ++i) {
        const bool same = i > 0 && hostile.below(2) == 0;
        operands.push_back(same ? operands[0] : Value(hostile.operand()));
      }
      std::vector<Type> types;
      for (const Value& operand : operands) types.push_back(type_of(operand));
      try {
        infer(*op, types, attrs);
        ++inferred;
        run(*op, operands, attrs);
        ++evaluated;
      } catch (const CompileError& error) {
        EXPECT_GT(std::string(error.what()).size(), 10u) << op->name;
      }
    }
  }
  EXPECT_GT(inferred, 1000);
  EXPECT_GT(evaluated, 1000);
}

TEST(Hostile, HugeResultsAreRefusedBeforeTheyAreAllocated) {
  const int64_t huge = int64_t{1} << 45;
  EXPECT_THROW(run(ops::iota, {}, IotaAttrs{ElementType::i64, {huge}, 0}), CompileError);
  EXPECT_THROW(run(ops::broadcast, {f32({}, {1})}, BroadcastAttrs{{huge, huge, huge}, {}}),
               CompileError);
  EXPECT_THROW(run(ops::pad, {f32({1}, {1}), f32({}, {0})}, PadAttrs{{huge}, {0}, {0}}),
               CompileError);
}

}  // namespace
}  // namespace backcast
