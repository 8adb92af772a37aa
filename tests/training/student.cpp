// See student.h.
#include "tests/training/student.h"

#include <cmath>
#include <cstring>

#include "ir/graph/error.h"
#include "runtime-c/include/bc_types.h"
#include "tests/backend_c/compiled.h"

namespace backcast::training {
namespace {

CompiledModel compiled(const std::string& model_path, const TrainingRequest& training,
                       const PassOptions& passes, const std::string& target) {
  CompileRequest request;
  request.model = model_path;
  request.name = "net";
  request.target = target.empty() ? c_test::host_target().name : target;
  request.training = training;
  request.pipeline.passes = passes;
  return compile_model(request);
}

bc_status append(void* user, const void* bytes, size_t count) {
  static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), count);
  return BC_OK;
}

struct Source {
  const std::string& bytes;
  size_t at;
};

bc_status take(void* user, void* bytes, size_t count) {
  Source& source = *static_cast<Source*>(user);
  if (count > source.bytes.size() - source.at) return BC_ERROR_IO;
  std::memcpy(bytes, source.bytes.data() + source.at, count);
  source.at += count;
  return BC_OK;
}

void expect_ok(const std::string& function, int32_t status) {
  BC_CHECK(status == BC_OK, "{} answers {}", function, status);
}

}  // namespace

TrainingLibrary::TrainingLibrary(const std::string& model_path, const TrainingRequest& request,
                                 const std::string& form, const PassOptions& passes,
                                 const std::string& scheduled_for)
    : model(compiled(model_path, request, passes, scheduled_for)),
      library(model.result.program, form) {}

std::string reference_model(const std::string& name) {
  return std::string(BACKCAST_TRAINING_REFERENCES) + "/models/" + name + ".onnx";
}

const Digits& training_digits() {
  static const Digits digits = read_digits(BACKCAST_DIGITS_TRAIN);
  return digits;
}

const Digits& test_digits() {
  static const Digits digits = read_digits(BACKCAST_DIGITS_TEST);
  return digits;
}

Student::Student(const TrainingLibrary& library, uint64_t seed)
    : library_(library), state_(library.model.result.program) {
  using Init = int32_t(void*, size_t, uint64_t);
  expect_ok("init", library_.library.function<Init>("init")(state_.data(), state_.bytes(), seed));
}

std::vector<Literal> Student::call(const std::string& entry, const std::vector<Literal>& inputs) {
  std::vector<Literal> outputs;
  expect_ok(entry, library_.library.call(entry, state_.data(), inputs, outputs));
  return outputs;
}

double Student::step(const std::vector<Literal>& batch) {
  return call("train_step", batch).at(0).as_double(0);
}

int32_t Student::try_step(const std::vector<Literal>& batch) {
  std::vector<Literal> outputs;
  return library_.library.call("train_step", state_.data(), batch, outputs);
}

void Student::apply() { call("apply", {}); }

std::vector<Literal> Student::run(const std::vector<Literal>& inputs) {
  return call("run", inputs);
}

Literal Student::parameters() const {
  const StateAbi& abi = library_.model.abi.state;
  const ElementType element = abi.flat_type == "double" ? ElementType::f64 : ElementType::f32;
  std::vector<std::byte> bytes(static_cast<size_t>(abi.parameter_count * byte_size(element)));
  using Get = int32_t(const void*, void*);
  expect_ok("get_parameters",
            library_.library.function<Get>("get_parameters")(state_.data(), bytes.data()));
  return Literal(element, {abi.parameter_count}, std::move(bytes));
}

void Student::set_parameters(const Literal& flat) {
  using Set = int32_t(void*, const void*);
  expect_ok("set_parameters",
            library_.library.function<Set>("set_parameters")(state_.data(), flat.bytes().data()));
}

std::string Student::save() const {
  std::string result;
  const bc_writer writer{&result, append};
  using Save = int32_t(const void*, const bc_writer*);
  expect_ok("save", library_.library.function<Save>("save")(state_.data(), &writer));
  return result;
}

int32_t Student::load(const std::string& checkpoint) {
  Source source{checkpoint, 0};
  const bc_reader reader{&source, take};
  using Load = int32_t(void*, const bc_reader*);
  return library_.library.function<Load>("load")(state_.data(), &reader);
}

double relative_distance(const Literal& a, const Literal& b) {
  double difference = 0, all = 0;
  for (int64_t i = 0; i < b.element_count(); ++i) {
    const double d = a.as_double(i) - b.as_double(i);
    difference += d * d;
    all += b.as_double(i) * b.as_double(i);
  }
  return std::sqrt(difference / all);
}

}  // namespace backcast::training
