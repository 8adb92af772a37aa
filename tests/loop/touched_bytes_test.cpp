// Parts of one tensor: which steps touch none of the others' bytes.
#include "ir/loop/touched_bytes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/loop/kernels.h"

namespace backcast::loop {
namespace {

/// Two steps, each a kernel on %all, f32[6,8], or a copy between it and %x.
Program two_steps(const std::string& kernels, const std::string& steps) {
  const Program program = parse_program(
      "program @net\nsymbol N in 1..8\nbuffer %x : f32[48] input\nbuffer %y : f32[48] output\n"
      "buffer %all : f32[6,8] arena\nbuffer %row : f32[8] arena view of %all at 16\n"
      "buffer %head : f32[16] arena view of %all at 0\n" +
      kernels + "entry @run(%x) -> (%y) {\n" + steps + "}\n");
  return program;
}

/// Whether what the first step writes of %all is apart from what the second one reads.
bool apart(const std::string& kernels, const std::string& steps) {
  const Program program = two_steps(kernels, steps);
  const std::vector<Step>& all = program.entries[0].steps;
  const TouchedBytes written(program, all[0], 2, true), read(program, all[1], 2, false);
  EXPECT_EQ(written.is_apart_from(read), read.is_apart_from(written));
  return written.is_apart_from(read);
}

/// Writes columns [first, first + 3), and reads those from `from` on.
std::string columns(int64_t first, int64_t from) {
  return fmt::format(R"(kernel @w(a: f32[6,8] write) {{
  for i in 0 .. 6 {{
    for j in 0 .. 3 {{
      store a[8*i + j + {}] = 0:f32
    }}
  }}
}}
kernel @r(a: f32[6,8] read, y: f32[48] write) {{
  for i in 0 .. 6 {{
    for j in 0 .. {} {{
      let c = j + {}
      store y[8*i + j] = load f32 a[8*i + c]
    }}
  }}
}}
)",
                     first, 8 - from, from);
}

const char kCalls[] = "  call @w(%all)\n  call @r(%all, %y)\n";

TEST(TouchedBytes, TellColumnsApart) {
  EXPECT_TRUE(apart(columns(0, 3), kCalls));
  EXPECT_TRUE(apart(columns(2, 5), kCalls));
  EXPECT_FALSE(apart(columns(0, 2), kCalls));
  EXPECT_FALSE(apart(columns(3, 5), kCalls));
}

TEST(TouchedBytes, SeeDefinitionsAndVectors) {
  const std::string kernels = R"(kernel @w(a: f32[6,8] write) {
  define [i in 6, j in 4] {
    a[i, j] = 0:f32
  }
}
kernel @r(a: f32[6,8] read, y: f32[48] write) {
  for i in 0 .. 6 {
    store y[4*i] = load f32x4 a[8*i + FROM]
  }
}
)";
  const auto from = [&](const std::string& place) {
    std::string text = kernels;
    return text.replace(text.find("FROM"), 4, place);
  };
  EXPECT_TRUE(apart(from("4"), kCalls));
  EXPECT_FALSE(apart(from("3"), kCalls));
  EXPECT_FALSE(apart(from("5"), kCalls));  // the last lane is in the next row
}

TEST(TouchedBytes, SeeCopiesAndViews) {
  const std::string reads = R"(kernel @r(a: f32[8] read, y: f32[48] write) {
  for j in 0 .. 8 {
    store y[j] = load f32 a[j]
  }
}
)";
  const std::string copies = "  copy %x, %head\n";
  EXPECT_TRUE(apart(reads, copies + "  call @r(%row, %y)\n"));
  EXPECT_FALSE(apart(reads, copies + "  call @r(%head, %y)\n"));
  EXPECT_FALSE(apart(reads, "  copy %x, %all\n  call @r(%row, %y)\n"));
}

TEST(TouchedBytes, TakeWhatTheyDoNotKnowForAll) {
  std::string looked_up = R"(kernel @w(a: f32[6,8] write) {
  for i in 0 .. 6 {
    store a[8*i] = 0:f32
  }
}
kernel @r(a: f32[6,8] read, y: f32[48] write) {
  for i in 0 .. 6 {
    store y[8*i] = load f32 a[INDEX]
  }
}
)";
  const auto index = [&](const std::string& place) {
    std::string text = looked_up;
    return text.replace(text.find("INDEX"), 5, place);
  };
  EXPECT_TRUE(apart(index("8*i + 1"), kCalls));
  EXPECT_FALSE(apart(index("8*i + i % 7 + 1"), kCalls));
  EXPECT_FALSE(apart(index("min(8*i + 1, 7)"), kCalls));
}

}  // namespace
}  // namespace backcast::loop
