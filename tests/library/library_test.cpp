// ABI derivation, header text and report.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "backend/library/header.h"
#include "backend/library/report.h"
#include "ir/graph/error.h"
#include "tests/library/sample_program.h"

namespace backcast {
namespace {

using Kind = Check::Kind;

std::vector<std::string> identifiers(const std::vector<TensorField>& fields) {
  std::vector<std::string> names;
  for (const TensorField& field : fields) names.push_back(field.identifier);
  return names;
}

TEST(Abi, FieldsOfEntry) {
  const Abi abi = abi_of(sample_program());
  EXPECT_EQ(abi.prefix, "mlp");
  EXPECT_EQ(abi.macro_prefix, "MLP");
  EXPECT_EQ(abi.weight_bytes, 32);
  ASSERT_EQ(abi.entries.size(), 1u);
  const EntryAbi& entry = abi.entries[0];
  EXPECT_EQ(entry.symbol, "mlp_run");
  ASSERT_EQ(entry.sizes.size(), 1u);
  EXPECT_EQ(entry.sizes[0].identifier, "N");
  EXPECT_EQ(entry.sizes[0].range, (DimRange{1, 8}));
  EXPECT_EQ(identifiers(entry.inputs), (std::vector<std::string>{"x"}));
  EXPECT_EQ(identifiers(entry.outputs), (std::vector<std::string>{"y", "positive"}));
  EXPECT_EQ(entry.inputs[0].shape, "f32[N,4]");
  EXPECT_EQ(entry.inputs[0].max_elements, 32);
  EXPECT_EQ(entry.outputs[1].c_type, "uint8_t");
  ASSERT_EQ(entry.steps.size(), 3u);
  EXPECT_EQ(entry.steps[1].name, "fc1+relu1");
  EXPECT_EQ(entry.steps[2].number, 2);
}

TEST(Abi, ChecksInOrder) {
  const Abi abi = abi_of(sample_program());
  std::vector<std::pair<Kind, Status>> checks;
  for (const Check& check : abi.entries[0].checks) checks.emplace_back(check.kind, check.status);
  const std::vector<std::pair<Kind, Status>> expected = {
      {Kind::in_null, Status::null},
      {Kind::out_null, Status::null},
      {Kind::input_null, Status::null},
      {Kind::output_null, Status::null},
      {Kind::output_null, Status::null},
      {Kind::arena_null, Status::null},
      {Kind::arena_size, Status::arena_size},
      {Kind::arena_alignment, Status::alignment},
      {Kind::input_alignment, Status::alignment},
      {Kind::output_alignment, Status::alignment},  // of y; bytes need none
      {Kind::dimension, Status::dimension}};
  EXPECT_EQ(checks, expected);
}

TEST(Abi, NoArenaNoChecksOfIt) {
  loop::Program program = sample_program();
  program.arena_bytes = 0;
  const Abi abi = abi_of(program);
  for (const Check& check : abi.entries[0].checks) {
    EXPECT_TRUE(check.kind != Kind::arena_null && check.kind != Kind::arena_size &&
                check.kind != Kind::arena_alignment);
  }
}

TEST(Abi, NamesAreValidAndUnique) {
  const Abi abi = abi_of(program_with_odd_names());
  const EntryAbi& entry = abi.entries[0];
  const std::vector<std::string> expected = {"int_3",  "a_b_0",   "a_b_0_2", "a_b_0_3", "x1st",
                                             "x_x",    "gr____e", "X",       "x",       "x_2",
                                             "xBC_OK", "errno_2", "x____",   "empty"};
  const std::vector<std::string> actual = identifiers(entry.inputs);
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(std::set<std::string>(actual.begin(), actual.end()).size(), actual.size());
  EXPECT_EQ(entry.sizes[0].identifier, "batch_size");
  EXPECT_EQ(entry.sizes[1].identifier, "int_2");
  std::set<std::string> macros;
  for (const TensorField& field : entry.inputs) {
    EXPECT_TRUE(macros.insert(field.macro_name).second) << field.macro_name;
  }
  EXPECT_TRUE(entry.inputs.back().nullable);  // has no elements
}

TEST(Abi, CallersGiveNoSizesThatOnlyKernelsKnow) {
  loop::Program program = sample_program();
  program.symbols["border"] = {0, 1};
  loop::Kernel& kernel = program.kernels.begin()->second;
  kernel.sizes.insert(kernel.sizes.begin(), "border");
  for (loop::Step& step : program.entries[0].steps) {
    if (step.kernel == kernel.name) step.sizes.insert(step.sizes.begin(), Dim(1));
  }
  const Abi abi = abi_of(program);
  ASSERT_EQ(abi.entries[0].sizes.size(), 1u);
  EXPECT_EQ(abi.entries[0].sizes[0].identifier, "N");
  EXPECT_EQ(abi.model_hash, abi_of(sample_program()).model_hash);
}

TEST(Abi, HashTellsConstantsApart) {
  loop::Program program = sample_program();
  const uint64_t hash = abi_of(program).model_hash;
  EXPECT_EQ(hash, abi_of(sample_program()).model_hash);
  program.buffers[1].value =
      Literal::from_doubles(ElementType::f32, {4, 2}, {0.5, -1, 2, 3, 0.1, 1e-9, -0.0, 8});
  EXPECT_NE(hash, abi_of(program).model_hash);
}

TEST(Abi, RefusesWhatBreaksTheRules) {
  loop::Program program = sample_program();
  program.entries[0].outputs.push_back(program.entries[0].outputs[0]);
  EXPECT_THROW(abi_of(program), InternalError);
  program = sample_program();
  program.entries[0].inputs = {1};  // a constant
  EXPECT_THROW(abi_of(program), InternalError);
  program = sample_program();
  program.name = "not valid";
  EXPECT_THROW(abi_of(program), InternalError);
}

TEST(Header, CommentsCannotEscape) { EXPECT_EQ(comment_text("a*/b/*c\n\\"), "a* /b/ *c??"); }

TEST(Header, CarriesSharedTypes) {
  const std::string text =
      header_text(abi_of(sample_program()), {"mlp.onnx", "x86-64", "0.1.0", 100, false});
  const std::string types(bc_types_text().substr(bc_types_text().find("#ifndef BC_TYPES_H")));
  EXPECT_NE(text.find(types), std::string::npos);
  EXPECT_EQ(text,
            header_text(abi_of(sample_program()), {"mlp.onnx", "x86-64", "0.1.0", 100, false}));
}

/// Judged by the same script that judges the hand-written examples.
TEST(Header, PassesTheJudge) {
  const std::string folder = testing::TempDir();
  const HeaderOptions options = {"mlp.onnx", "x86-64", "0.1.0", 100, true};
  std::string files;
  for (const loop::Program& program : {sample_program(), program_with_odd_names()}) {
    const std::string path = folder + "/library_test_" + program.name + ".h";
    std::ofstream(path) << header_text(abi_of(program), options);
    files += " " + path;
  }
  EXPECT_EQ(std::system(("python3 " SOURCE_DIR "/tests/headers/check_header.py" + files).c_str()),
            0);
}

std::string read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// UPDATE_GOLDEN=1 in the environment rewrites the file.
void expect_golden(const std::string& name, const std::string& actual) {
  const std::string path = std::string(SOURCE_DIR "/tests/library/golden/") + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << actual;
  EXPECT_EQ(actual, read(path)) << path;
}

Report sample_report() {
  ReportOptions options{"mlp.onnx", "cortex-m4", "0.1.0", 1234, 256};
  options.table_bytes = 30;
  options.kernel_bytes = {{"scale", 54}, {"dense", 1020}};
  return report_of(sample_program(), options);
}

TEST(Header, Golden) {
  expect_golden("mlp.h",
                header_text(abi_of(sample_program()), {"mlp.onnx", "x86-64", "0.1.0", 248, false}));
}

TEST(Report, Text) { expect_golden("report.txt", report_text(sample_report())); }

TEST(Report, Json) {
  const std::string text = report_json(sample_report());
  expect_golden("report.json", text);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["schema"], kReportSchema);
  EXPECT_EQ(json["entries"][0]["macs"], 64);
  // `hidden` (128 bytes) and `mask` (16) are live together in the second step only.
  EXPECT_EQ(json["entries"][0]["steps"][0]["live_bytes"], 128);
  EXPECT_EQ(json["entries"][0]["steps"][1]["live_bytes"], 144);
  EXPECT_EQ(json["entries"][0]["steps"][2]["live_bytes"], 16);
  EXPECT_EQ(json["entries"][0]["steps"][1]["weight_bytes"], 32);
}

}  // namespace
}  // namespace backcast
