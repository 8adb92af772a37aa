// Training that is interrupted: saved and loaded, cut off by a loss of power at any byte of the
// two-slot writer, handed a damaged checkpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "runtime-c/include/bc_slots.h"
#include "tests/training/batches.h"
#include "tests/training/student.h"

namespace backcast::training {
namespace {

constexpr int64_t kSteps = 12, kOlder = 4, kNewer = 7;
constexpr int kKills = 100, kCorruptions = 1000;

std::vector<Literal> digits_batch(int64_t step) {
  return batch(network("digits_cnn"), step, ElementType::f32, training_digits());
}

/// The form's library of the digits CNN with Adam, compiled once.
const TrainingLibrary& library_of(const std::string& form) {
  static std::map<std::string, std::unique_ptr<TrainingLibrary>> libraries;
  std::unique_ptr<TrainingLibrary>& library = libraries[form];
  if (!library) {
    library = std::make_unique<TrainingLibrary>(
        reference_model("digits_cnn"), request_for(network("digits_cnn"), "adam", false), form);
  }
  return *library;
}

/// Checkpoints of an uninterrupted training before each step and at the end.
std::vector<std::string> uninterrupted(const TrainingLibrary& library) {
  Student student(library);
  std::vector<std::string> result{student.save()};
  for (int64_t step = 0; step < kSteps; ++step) {
    student.step(digits_batch(step));
    result.push_back(student.save());
  }
  return result;
}

void go_on(Student& student, int64_t from, int64_t to) {
  for (int64_t step = from; step < to; ++step) student.step(digits_batch(step));
}

class Interrupted : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Forms, Interrupted, testing::Values("jit", "archive", "gcc"));

TEST_P(Interrupted, LoadedIsNeverStopped) {
  const TrainingLibrary& library = library_of(GetParam());
  const std::vector<std::string> expected = uninterrupted(library);
  for (int64_t at = 0; at <= kSteps; ++at) {
    Student student(library, 77);
    student.step(digits_batch(40));  // what loading has to replace
    ASSERT_EQ(student.load(expected[static_cast<size_t>(at)]), 0);
    go_on(student, at, kSteps);
    EXPECT_TRUE(student.save() == expected.back()) << "stopped before step " << at;
  }
}

/// Variables that the state has in another order than the model.
int64_t turned(const TrainingLibrary& library) {
  const std::vector<StateVariableAbi>& variables = library.model.abi.state.variables;
  return std::count_if(variables.begin(), variables.end(),
                       [](const StateVariableAbi& v) { return v.runs[0] != 0; });
}

/// A machine with vectors has weights and moments in an order of its own, one without has the
/// model's. Parameters and checkpoints go from one to the other and back, bit for bit.
TEST(Targets, ExchangeWhatTheyHaveInOrdersOfTheirOwn) {
  const TrainingLibrary& vectors = library_of("jit");
  const TrainingLibrary scalars(reference_model("digits_cnn"),
                                request_for(network("digits_cnn"), "adam", false), "gcc", {},
                                "riscv64");
  EXPECT_GE(turned(vectors), 3) << "a weight and its moments";
  EXPECT_EQ(turned(scalars), 0);
  Student one(vectors), other(scalars);
  EXPECT_TRUE(one.save() == other.save()) << "before the first step";
  go_on(one, 0, kOlder);
  ASSERT_EQ(other.load(one.save()), BC_OK);
  EXPECT_TRUE(other.save() == one.save());
  EXPECT_TRUE(other.parameters() == one.parameters());
  go_on(one, kOlder, kNewer);
  go_on(other, kOlder, kNewer);
  EXPECT_LT(relative_distance(other.parameters(), one.parameters()), 1e-5);
  one.set_parameters(other.parameters());
  EXPECT_TRUE(one.parameters() == other.parameters());
  ASSERT_EQ(one.load(other.save()), BC_OK);
  EXPECT_TRUE(one.save() == other.save());
}

/// Two slots of flash that take so many bytes more; a byte beyond is lost, and all after it.
struct Flash {
  std::vector<unsigned char> slots[2];
  int64_t budget = INT64_MAX;

  explicit Flash(size_t bytes) {
    for (std::vector<unsigned char>& slot : slots) slot.assign(bytes, 0xFF);
  }
  bc_status change(uint32_t slot, size_t offset, const unsigned char* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (budget-- <= 0) return BC_ERROR_IO;
      slots[slot][offset + i] = bytes ? bytes[i] : 0xFF;
    }
    return BC_OK;
  }
  bc_slots view();
};

bc_status flash_read(void* user, uint32_t slot, size_t offset, void* bytes, size_t count) {
  std::memcpy(bytes, static_cast<Flash*>(user)->slots[slot].data() + offset, count);
  return BC_OK;
}

bc_status flash_write(void* user, uint32_t slot, size_t offset, const void* bytes, size_t count) {
  return static_cast<Flash*>(user)->change(slot, offset, static_cast<const unsigned char*>(bytes),
                                           count);
}

bc_status flash_erase(void* user, uint32_t slot) {
  Flash& flash = *static_cast<Flash*>(user);
  return flash.change(slot, 0, nullptr, flash.slots[slot].size());
}

bc_slots Flash::view() {
  return {this, slots[0].size(), flash_read, flash_write, flash_erase, nullptr};
}

TEST_P(Interrupted, PowerLossCostsAtMostOneCheckpoint) {
  const TrainingLibrary& library = library_of(GetParam());
  const auto save = library.library.function<bc_status(const void*, const bc_writer*)>("save");
  const auto load = library.library.function<bc_status(void*, const bc_reader*)>("load");
  const std::vector<std::string> expected = uninterrupted(library);
  const size_t slot_bytes = expected[0].size() + BC_SLOT_HEAD_BYTES;
  const int64_t changes = static_cast<int64_t>(2 * slot_bytes);  // of a save: erase, then write
  int older = 0, newer = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    Flash flash(slot_bytes);
    const bc_slots slots = flash.view();
    Student student(library);
    go_on(student, 0, kOlder);
    ASSERT_EQ(bc_slots_save(&slots, save, student.state()), BC_OK);
    go_on(student, kOlder, kNewer);
    // The first points are the edges: nothing done, all but one byte, everything.
    const uint64_t random = bits(stream("kill"), static_cast<uint64_t>(kill));
    flash.budget = kill == 0   ? 0
                   : kill == 1 ? changes - 1
                   : kill == 2 ? changes
                               : static_cast<int64_t>(random % static_cast<uint64_t>(changes + 1));
    const bool complete = flash.budget == changes;
    ASSERT_EQ(bc_slots_save(&slots, save, student.state()) == BC_OK, complete);

    flash.budget = INT64_MAX;
    Student restarted(library, 5);
    ASSERT_EQ(bc_slots_load(&slots, load, restarted.state()), BC_OK) << "kill point " << kill;
    const int64_t at = complete ? kNewer : kOlder;
    ++(complete ? newer : older);
    ASSERT_TRUE(restarted.save() == expected[static_cast<size_t>(at)]) << "kill point " << kill;
    go_on(restarted, at, kSteps);
    ASSERT_TRUE(restarted.save() == expected.back()) << "kill point " << kill;
    ASSERT_EQ(bc_slots_save(&slots, save, restarted.state()), BC_OK);
  }
  EXPECT_GE(newer, 1);
  EXPECT_GE(older, kKills / 2);
}

/// Damage number `i`: bits flipped, bytes overwritten, cut off, blocks cleared or exchanged.
std::string damaged(const std::string& good, uint64_t i) {
  const uint64_t seed = stream("damage");
  const auto random = [&](uint64_t k, size_t below) {
    return static_cast<size_t>(bits(seed, 8 * i + k) % below);
  };
  std::string bytes = good;
  const size_t at = random(0, bytes.size()), block = std::min<size_t>(64, bytes.size() - at);
  switch (i % 5) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << random(1, 8));
      break;
    case 1:
      bytes[at] = static_cast<char>(bytes[at] + 1 + static_cast<char>(random(1, 255)));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.replace(at, block, block, '\xFF');
      break;
    default:
      std::swap_ranges(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(block / 2),
                       bytes.begin() + static_cast<ptrdiff_t>(at));
      if (bytes == good) bytes.erase(at, 1);
      break;
  }
  return bytes;
}

TEST_P(Interrupted, DamagedCheckpointsLeaveNoState) {
  const TrainingLibrary& library = library_of(GetParam());
  Student student(library);
  go_on(student, 0, 2);
  const std::string good = student.save();
  const std::vector<Literal> images = digits_batch(2);
  ASSERT_EQ(student.load(good), BC_OK);
  for (uint64_t i = 0; i < kCorruptions; ++i) {
    const std::string bad = damaged(good, i);
    ASSERT_FALSE(bad == good) << i;
    const int32_t status = student.load(bad);
    ASSERT_TRUE(status == BC_ERROR_CHECKPOINT || status == BC_ERROR_IO) << i << ": " << status;
    ASSERT_EQ(student.try_step(images), BC_ERROR_STATE) << i;
  }
  ASSERT_EQ(student.load(good), BC_OK);
  EXPECT_EQ(student.try_step(images), BC_OK);
}

}  // namespace
}  // namespace backcast::training
