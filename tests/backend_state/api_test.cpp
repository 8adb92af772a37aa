// The functions of the state: what they refuse, flat vectors, checkpoints.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime-c/include/bc_types.h"
#include "tests/backend_state/built_library.h"

namespace backcast::state_test {
namespace {

struct Bytes {
  std::string text;
  size_t at = 0;
  size_t limit = SIZE_MAX;  // of bytes until the device fails

  static bc_status write(void* user, const void* bytes, size_t count) {
    Bytes& self = *static_cast<Bytes*>(user);
    if (self.text.size() + count > self.limit) return BC_ERROR_VALUE;
    self.text.append(static_cast<const char*>(bytes), count);
    return BC_OK;
  }
  static bc_status read(void* user, void* bytes, size_t count) {
    Bytes& self = *static_cast<Bytes*>(user);
    if (self.at + count > self.text.size()) return BC_ERROR_VALUE;
    memcpy(bytes, self.text.data() + self.at, count);
    self.at += count;
    return BC_OK;
  }
};

class Api : public ::testing::TestWithParam<std::string> {
 protected:
  Api() : program_(training_program()), library_(program_, GetParam()), state_(program_) {
    EXPECT_EQ(init(state_), BC_OK);
  }

  int32_t init(const StateBlock& state, uint64_t seed = 7) const {
    return library_.function<int32_t(void*, size_t, uint64_t)>("init")(state.data(), state.bytes(),
                                                                       seed);
  }
  int32_t set_rate(void* state, float rate) const {
    return library_.function<int32_t(void*, float)>("set_learning_rate")(state, rate);
  }
  int32_t get(const std::string& what, const void* state, float* flat) const {
    return library_.function<int32_t(const void*, float*)>("get_" + what)(state, flat);
  }
  int32_t set(const std::string& what, void* state, const float* flat) const {
    return library_.function<int32_t(void*, const float*)>("set_" + what)(state, flat);
  }
  int32_t save(const void* state, Bytes& bytes) const {
    const bc_writer writer = {&bytes, Bytes::write};
    return library_.function<int32_t(const void*, const bc_writer*)>("save")(state, &writer);
  }
  int32_t load(void* state, const std::string& text) const {
    Bytes bytes = {text};
    const bc_reader reader = {&bytes, Bytes::read};
    return library_.function<int32_t(void*, const bc_reader*)>("load")(state, &reader);
  }
  int32_t run(const void* state) const {
    std::vector<Literal> outputs;
    return library_.call("run", const_cast<void*>(state),
                         {Literal::from_doubles(ElementType::f32, {1, 2}, {1, 2})}, outputs);
  }

  loop::Program program_;
  BuiltLibrary library_;
  StateBlock state_;
};

TEST_P(Api, InitMakesTheInitialState) {
  EXPECT_EQ(state_.values(program_), loop::initial_state(program_, 7));
  const auto init_of = library_.function<int32_t(void*, size_t, uint64_t)>("init");
  EXPECT_EQ(init_of(nullptr, state_.bytes(), 0), BC_ERROR_NULL);
  EXPECT_EQ(init_of(state_.data(), state_.bytes() - 1, 0), BC_ERROR_STATE_SIZE);
  EXPECT_EQ(init_of(state_.data() + 4, state_.bytes(), 0), BC_ERROR_ALIGNMENT);
}

TEST_P(Api, EveryCallChecksTheState) {
  const StateBlock blank(program_);
  float flat[3] = {};
  Bytes bytes;
  const auto expect_all = [&](const unsigned char* state, int32_t status) {
    void* at = const_cast<unsigned char*>(state);
    EXPECT_EQ(run(at), status);
    EXPECT_EQ(set_rate(at, 1), status);
    EXPECT_EQ(get("parameters", at, flat), status);
    EXPECT_EQ(set("parameters", at, flat), status);
    EXPECT_EQ(get("gradients", at, flat), status);
    EXPECT_EQ(save(at, bytes), status);
    std::vector<Literal> outputs;
    EXPECT_EQ(library_.call("apply", at, {}, outputs), status == BC_OK ? BC_ERROR_STATE : status);
  };
  expect_all(state_.data(), BC_OK);
  expect_all(nullptr, BC_ERROR_NULL);
  expect_all(state_.data() + 4, BC_ERROR_ALIGNMENT);
  expect_all(blank.data(), BC_ERROR_STATE);
  // Each word of the header counts: magic, version, hash, generation.
  for (const size_t at : {size_t{0}, size_t{4}, size_t{8}, size_t{15}}) {
    state_.data()[at] ^= 1;
    expect_all(state_.data(), BC_ERROR_STATE);
    state_.data()[at] ^= 1;
  }
  memset(state_.data() + 16, 0, 8);
  expect_all(state_.data(), BC_ERROR_STATE);
}

TEST_P(Api, RateMustBeANumber) {
  for (const float bad : {-1.0f, INFINITY, -INFINITY, NAN, -1e-40f}) {
    EXPECT_EQ(set_rate(state_.data(), bad), BC_ERROR_VALUE) << bad;
  }
  EXPECT_EQ(state_.values(program_).at("rate").as_double(0), 0.0625);
  for (const float good : {0.0f, -0.0f, 1e-40f, 0.5f}) {
    EXPECT_EQ(set_rate(state_.data(), good), BC_OK);
    EXPECT_EQ(state_.values(program_).at("rate").as_double(0), good);
  }
}

TEST_P(Api, FlatVectorsHoldParametersThenStatistics) {
  float flat[3] = {};
  EXPECT_EQ(get("parameters", state_.data(), flat), BC_OK);
  EXPECT_EQ(std::vector<float>(flat, flat + 3), (std::vector<float>{0.5f, -0.25f, 0.125f}));
  const float other[3] = {NAN, INFINITY, 3};
  EXPECT_EQ(set("parameters", state_.data(), other), BC_OK);
  float back[3] = {};
  EXPECT_EQ(get("parameters", state_.data(), back), BC_OK);
  EXPECT_EQ(memcmp(back, other, sizeof other), 0);
  const float gradients[2] = {5, 6};
  EXPECT_EQ(set("gradients", state_.data(), gradients), BC_OK);
  EXPECT_EQ(get("gradients", state_.data(), flat), BC_OK);
  EXPECT_EQ(std::vector<float>(flat, flat + 3), (std::vector<float>{5, 6, 0.125f}));
  loop::StateValues expected = loop::initial_state(program_, 7);
  expected["w"] = Literal::from_doubles(ElementType::f32, {2}, {NAN, INFINITY});
  expected["seen"] = Literal::from_doubles(ElementType::f32, {1}, {3});
  expected["g"] = Literal::from_doubles(ElementType::f32, {2}, {5, 6});
  EXPECT_EQ(state_.values(program_), expected) << "nothing else changes";
  EXPECT_EQ(get("parameters", state_.data(), nullptr), BC_ERROR_NULL);
  EXPECT_EQ(set("parameters", state_.data(), nullptr), BC_ERROR_NULL);
}

TEST_P(Api, CheckpointsKeepEverything) {
  const float other[3] = {1.5f, -2.5f, 3.5f};
  ASSERT_EQ(set("parameters", state_.data(), other), BC_OK);
  Bytes saved;
  ASSERT_EQ(save(state_.data(), saved), BC_OK);
  const StateBlock second(program_);
  memset(second.data(), 0xee, second.bytes());
  EXPECT_EQ(load(second.data(), saved.text), BC_OK);
  EXPECT_EQ(second.values(program_), state_.values(program_));
  EXPECT_EQ(run(second.data()), BC_OK);
  // Byte for byte what another form of the library writes.
  Bytes again;
  const BuiltLibrary jit(program_, "jit");
  const bc_writer writer = {&again, Bytes::write};
  EXPECT_EQ(jit.function<int32_t(const void*, const bc_writer*)>("save")(second.data(), &writer),
            BC_OK);
  EXPECT_EQ(again.text, saved.text);
}

/// Memory that ends at a forbidden page and can be made read-only.
class GuardedPage {
 public:
  explicit GuardedPage(size_t bytes) {
    map_ = static_cast<unsigned char*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(map_ + kPage, kPage, PROT_NONE);
    data_ = map_ + (kPage - bytes) / 64 * 64;
  }
  ~GuardedPage() { munmap(map_, 2 * kPage); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  unsigned char* data() const { return data_; }
  void make_read_only() { mprotect(map_, kPage, PROT_READ); }

 private:
  static constexpr size_t kPage = 4096;
  unsigned char* map_ = nullptr;
  unsigned char* data_ = nullptr;
};

TEST_P(Api, CallsWithAConstStateOnlyRead) {
  GuardedPage page(state_.bytes());
  memcpy(page.data(), state_.data(), state_.bytes());
  page.make_read_only();
  float flat[3] = {};
  Bytes bytes;
  std::vector<Literal> outputs;
  const std::vector<Literal> batch = {
      Literal::from_doubles(ElementType::f32, {4, 2}, std::vector<double>(8, 0.5)),
      Literal::from_doubles(ElementType::i32, {4}, {0, 1, 2, 3})};
  EXPECT_EQ(run(page.data()), BC_OK);
  EXPECT_EQ(library_.call("evaluate", page.data(), batch, outputs), BC_OK);
  EXPECT_EQ(get("parameters", page.data(), flat), BC_OK);
  EXPECT_EQ(save(page.data(), bytes), BC_OK);
  // A refused step writes no state either.
  const std::vector<Literal> endless = {
      Literal::from_doubles(ElementType::f32, {4, 2}, std::vector<double>(8, HUGE_VAL)), batch[1]};
  EXPECT_EQ(library_.call("train_step", page.data(), endless, outputs), BC_ERROR_NONFINITE);
  EXPECT_EQ(library_.call("apply", page.data(), {}, outputs), BC_ERROR_STATE);
}

TEST_P(Api, DamagedCheckpointsAreRefused) {
  Bytes saved;
  ASSERT_EQ(save(state_.data(), saved), BC_OK);
  const StateBlock second(program_);
  const auto expect_refused = [&](const std::string& text, int32_t status) {
    ASSERT_EQ(init(second), BC_OK);
    EXPECT_EQ(load(second.data(), text), status);
    EXPECT_EQ(run(second.data()), BC_ERROR_STATE) << "a failed load leaves no state";
  };
  for (size_t bit = 0; bit < saved.text.size() * 8; bit += 13) {
    std::string damaged = saved.text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    expect_refused(damaged, BC_ERROR_CHECKPOINT);
  }
  for (size_t size = 0; size < saved.text.size(); size += 7) {
    expect_refused(saved.text.substr(0, size), BC_ERROR_IO);
  }
  EXPECT_EQ(load(nullptr, saved.text), BC_ERROR_NULL);
  EXPECT_EQ(load(second.data() + 4, saved.text), BC_ERROR_ALIGNMENT);
  const auto load_of = library_.function<int32_t(void*, const bc_reader*)>("load");
  EXPECT_EQ(load_of(second.data(), nullptr), BC_ERROR_NULL);
  for (size_t limit = 0; limit < saved.text.size(); limit += 11) {
    Bytes full = {"", 0, limit};
    EXPECT_EQ(save(state_.data(), full), BC_ERROR_IO);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Api, ::testing::ValuesIn(forms()));

}  // namespace
}  // namespace backcast::state_test
