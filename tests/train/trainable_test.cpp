// What --trainable expressions choose.
#include "passes/train/trainable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph/error.h"
#include "tests/train/mlp.h"

namespace backcast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<TrainableCandidate> candidates() {
  const Module module = mlp::model(2);
  return trainable_candidates(module.function("main"), 0, mlp::models(2).parameters);
}

std::vector<std::string> chosen(const std::string& text) {
  std::vector<std::string> names;
  for (const LiftedTensor& tensor : select_trainable(candidates(), {parse_trainable(text)})) {
    const std::string range =
        tensor.axis < 0 ? "" : fmt::format("[{},{}:{}]", tensor.axis, tensor.begin, tensor.end);
    names.push_back(tensor.name + range);
  }
  return names;
}

TEST(Trainable, Words) {
  EXPECT_THAT(chosen("all"), ElementsAre("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
  EXPECT_EQ(chosen(""), chosen("all"));
  EXPECT_THAT(chosen("bias"), ElementsAre("fc1.bias", "fc2.bias"));
  EXPECT_THAT(chosen("last:1"), ElementsAre("fc2.weight", "fc2.bias"));
  EXPECT_EQ(chosen("last:2"), chosen("all"));
  EXPECT_EQ(chosen("last:9"), chosen("all"));
}

TEST(Trainable, NamesExpressionsAndRanges) {
  EXPECT_THAT(chosen("fc1.weight"), ElementsAre("fc1.weight"));
  EXPECT_THAT(chosen("^fc1"), ElementsAre("fc1.weight", "fc1.bias"));
  EXPECT_THAT(chosen("fc[12]\\.bias"), ElementsAre("fc1.bias", "fc2.bias"));
  EXPECT_THAT(chosen("fc2.weight[1,0:2], bias"),
              ElementsAre("fc1.bias", "fc2.weight[1,0:2]", "fc2.bias"));
  EXPECT_THAT(chosen("fc2.weight[1,0:3]"), ElementsAre("fc2.weight"));
  EXPECT_THAT(chosen("fc2.weight[1,0:2],fc2.*"), ElementsAre("fc2.weight", "fc2.bias"));
  EXPECT_THAT(chosen("fc2.*,fc2.weight[1,0:2]"), ElementsAre("fc2.weight", "fc2.bias"));
}

TEST(Trainable, AFileHasLinesAndComments) {
  EXPECT_THAT(parse_trainable("# the head\n fc2.weight[0,1:2] # in part\n\nbias, last:1\n"),
              ElementsAre("fc2.weight[0,1:2]", "bias", "last:1"));
}

std::string complaint(const std::string& text) {
  try {
    chosen(text);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

TEST(TrainableErrors, SayWhatThereIs) {
  EXPECT_THAT(complaint("norm"), HasSubstr("matches none of the trainable tensors:\n  fc1.weight"));
  EXPECT_THAT(complaint("fc3[0,1:2]"), HasSubstr("\"fc3\" is not among"));
  EXPECT_THAT(complaint("fc2.weight[0,2:9]"), HasSubstr("does not fit fc2.weight f64[4,3]"));
  EXPECT_THAT(complaint("fc2.weight[0,0:1],fc2.weight[0,2:3]"), HasSubstr("one per tensor"));
  EXPECT_THAT(complaint("last:0"), HasSubstr("from 1 on"));
  EXPECT_THAT(complaint("*"), HasSubstr("regular expression"));
}

}  // namespace
}  // namespace backcast
