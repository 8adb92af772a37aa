// Tensor decoding: typed fields, raw bytes, external files, and what must be refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "frontend/onnx_tensors.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A folder of its own, removed afterwards.
class ExternalData : public ::testing::Test {
 protected:
  ExternalData() {
    std::string pattern = (fs::temp_directory_path() / "backcast-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    fs::create_directories(root_ / "model" / "sub");
    const std::vector<float> values = {1, 2, 3, 4};
    for (const fs::path& file : {root_ / "model" / "w.bin", root_ / "secret.bin"}) {
      std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(values.data()), 16);
    }
  }
  ~ExternalData() override { fs::remove_all(root_); }

  OnnxTensor tensor(const std::string& location, std::vector<int64_t> dims) const {
    OnnxTensor t;
    t.name = "w";
    t.data_type = onnx_type::kFloat;
    t.dims = std::move(dims);
    t.external = true;
    t.external_data["location"] = location;
    return t;
  }
  std::string complaint(const OnnxTensor& t) const {
    try {
      static_cast<void>(to_literal(t, root_ / "model"));
    } catch (const CompileError& error) {
      return error.what();
    }
    return "";
  }

  fs::path root_;
};

TEST_F(ExternalData, IsMappedWithOffsetAndLength) {
  OnnxTensor t = tensor("w.bin", {2});
  t.external_data["offset"] = "4";
  t.external_data["length"] = "8";
  const Literal value = to_literal(t, root_ / "model");
  EXPECT_EQ(value.as_double(0), 2);
  EXPECT_EQ(value.as_double(1), 3);
}

TEST_F(ExternalData, UnalignedOffsetIsCopied) {
  OnnxTensor t = tensor("w.bin", {1});
  t.external_data["offset"] = "3";
  EXPECT_EQ(to_literal(t, root_ / "model").element_count(), 1);
}

TEST_F(ExternalData, StaysInsideTheModelsDirectory) {
  fs::create_symlink(root_ / "secret.bin", root_ / "model" / "link.bin");
  EXPECT_THAT(complaint(tensor("../secret.bin", {4})), HasSubstr("is refused"));
  EXPECT_THAT(complaint(tensor("sub/../../secret.bin", {4})), HasSubstr("is refused"));
  EXPECT_THAT(complaint(tensor((root_ / "model" / "w.bin").string(), {4})),
              HasSubstr("is refused"));
  EXPECT_THAT(complaint(tensor("link.bin", {4})), HasSubstr("leaves the model's directory"));
  EXPECT_THAT(complaint(tensor("sub", {4})), HasSubstr("not a regular file"));
  EXPECT_THAT(complaint(tensor("absent.bin", {4})), HasSubstr("cannot open"));
}

TEST_F(ExternalData, BoundsAreChecked) {
  EXPECT_THAT(complaint(tensor("w.bin", {5})), HasSubstr("runs past the end"));
  OnnxTensor t = tensor("w.bin", {4});
  t.external_data["offset"] = "9223372036854775807";
  EXPECT_THAT(complaint(t), HasSubstr("runs past the end"));
  t.external_data["offset"] = "-4";
  EXPECT_THAT(complaint(t), HasSubstr("no size"));
  t.external_data["offset"] = "0";
  t.external_data["length"] = "12";
  EXPECT_THAT(complaint(t), HasSubstr("holds 12 bytes where its extents and type need 16"));
}

TEST(Tensor, TypedFieldsNarrow) {
  const std::vector<int32_t> values = {-1, 300};
  OnnxTensor t;
  t.data_type = onnx_type::kInt8;
  t.dims = {2};
  t.int32_data = values;
  EXPECT_EQ(to_literal(t, {}).as_int(0), -1);
  t.data_type = onnx_type::kBool;
  EXPECT_EQ(to_literal(t, {}).as_int(1), 1);
}

TEST(Tensor, LengthsAreChecked) {
  OnnxTensor t;
  t.name = "w";
  t.data_type = onnx_type::kFloat;
  t.dims = {2, 3};
  EXPECT_THROW(to_literal(t, {}), CompileError);  // no data at all
  t.dims = {-1};
  EXPECT_THROW(to_literal(t, {}), CompileError);
  t.dims = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THROW(to_literal(t, {}), CompileError);
  t.dims = {0, int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(to_literal(t, {}).element_count(), 0);
}

TEST(Tensor, NewerTypesAreNamed) {
  OnnxTensor t;
  t.name = "w";
  for (const auto& [type, name] : std::vector<std::pair<int64_t, std::string>>{
           {17, "float8e4m3fn"}, {22, "int4"}, {99, "type 99"}, {8, "string"}}) {
    t.data_type = type;
    try {
      static_cast<void>(to_literal(t, {}));
      ADD_FAILURE() << name;
    } catch (const CompileError& error) {
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
  }
}

TEST(Tensor, FileRoundTrip) {
  const std::string path = (fs::temp_directory_path() / "backcast_round_trip.pb").string();
  const Literal value = Literal::from_doubles(ElementType::bf16, {2, 1}, {1.5, -2});
  write_tensor_pb(path, "v", value);
  EXPECT_EQ(read_tensor_pb(path), value);
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_THROW(read_tensor_pb(path), CompileError);
  fs::remove(path);
}

}  // namespace
}  // namespace backcast
