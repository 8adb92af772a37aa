/* Stands in for a compiled model in the harness's own test: one entry point behaves, each of the
 * others breaks one promise. The table at the end is what the driver generates. */
#include "harness.h"

enum { kOk = 0, kArenaSize = 2, kAlignment = 3, kDimension = 4, kNull = 1 };
enum { kMaxRows = 4, kColumns = 3, kArenaBytes = 512, kArenaAlignment = 16, kHogBytes = 3000 };

/* y[N,3] = 2 x + 0.5, by way of the arena; the last row of the arena's 512 bytes is used too. */
__attribute__((noinline)) static int32_t affine(const float *x, float *y, int64_t rows, void *arena,
                                                size_t arena_bytes) {
  if (x == 0 || y == 0 || arena == 0) return kNull;
  if (rows < 1 || rows > kMaxRows) return kDimension;
  if (arena_bytes < kArenaBytes) return kArenaSize;
  if (((uintptr_t)arena & (kArenaAlignment - 1)) != 0) return kAlignment;
  float *scratch = (float *)arena + kArenaBytes / 4 - kMaxRows * kColumns;
  for (int64_t i = 0; i < rows * kColumns; i++) scratch[i] = 2.0f * x[i];
  volatile float shift[16];
  shift[rows] = 0.5f;
  for (int64_t i = 0; i < rows * kColumns; i++) y[i] = scratch[i] + shift[rows];
  return kOk;
}

/* Sums through kHogBytes of stack. */
__attribute__((noinline)) static int32_t hog(const float *x, float *y) {
  volatile unsigned char hogged[kHogBytes];
  unsigned sum = 0;
  for (int i = 0; i < kHogBytes; i++) hogged[i] = (unsigned char)(i + (int)x[0]);
  for (int i = 0; i < kHogBytes; i++) sum += hogged[i];
  *y = (float)sum;
  return kOk;
}

__attribute__((noinline)) static int32_t descend(volatile int32_t depth) {
  volatile int32_t here[64];
  here[0] = depth;
  return depth == INT32_MAX ? 0 : descend(depth + 1) + here[0];
}

static int32_t run_affine(const void *const *in, void *const *out, const int64_t *dims, void *arena,
                          size_t arena_bytes) {
  int32_t status;
  HARNESS_CALL(status, affine(in[0], out[0], dims[0], arena, arena_bytes));
  return status;
}

static int32_t run_hog(const void *const *in, void *const *out, const int64_t *dims, void *arena,
                       size_t arena_bytes) {
  (void)dims, (void)arena, (void)arena_bytes;
  int32_t status;
  HARNESS_CALL(status, hog(in[0], out[0]));
  return status;
}

static int32_t run_arena_overrun(const void *const *in, void *const *out, const int64_t *dims,
                                 void *arena, size_t arena_bytes) {
  (void)in, (void)out, (void)dims;
  ((unsigned char *)arena)[arena_bytes] ^= 0x40;
  return kOk;
}

static int32_t run_arena_underrun(const void *const *in, void *const *out, const int64_t *dims,
                                  void *arena, size_t arena_bytes) {
  (void)in, (void)out, (void)dims, (void)arena_bytes;
  ((volatile unsigned char *)arena)[-1] ^= 0x40;
  return kOk;
}

static int32_t run_output_overrun(const void *const *in, void *const *out, const int64_t *dims,
                                  void *arena, size_t arena_bytes) {
  (void)in, (void)dims, (void)arena, (void)arena_bytes;
  ((float *)out[0])[kMaxRows * kColumns] = 1.0f;
  return kOk;
}

static int32_t run_input_change(const void *const *in, void *const *out, const int64_t *dims,
                                void *arena, size_t arena_bytes) {
  (void)out, (void)dims, (void)arena, (void)arena_bytes;
  *(unsigned char *)(uintptr_t)in[0] ^= 1;
  return kOk;
}

/* An address that no machine of ours maps. */
static int32_t run_bad_access(const void *const *in, void *const *out, const int64_t *dims,
                              void *arena, size_t arena_bytes) {
  (void)in, (void)out, (void)dims, (void)arena, (void)arena_bytes;
  volatile uintptr_t address = (uintptr_t)0xFFFFFFFFu - 0xFFFu - 0x10000000u;
  return *(volatile int32_t *)address;
}

static int32_t run_bad_instruction(const void *const *in, void *const *out, const int64_t *dims,
                                   void *arena, size_t arena_bytes) {
  (void)in, (void)out, (void)dims, (void)arena, (void)arena_bytes;
  __builtin_trap();
}

static int32_t run_deep(const void *const *in, void *const *out, const int64_t *dims, void *arena,
                        size_t arena_bytes) {
  (void)in, (void)out, (void)dims, (void)arena, (void)arena_bytes;
  return descend(0);
}

/* Reads a word from an odd address, as code wrongly compiled for a core without such loads would.
 */
static int32_t run_unaligned(const void *const *in, void *const *out, const int64_t *dims,
                             void *arena, size_t arena_bytes) {
  (void)out, (void)dims, (void)arena, (void)arena_bytes;
  int32_t value;
#if defined(__arm__)
  __asm__ volatile("ldr %0, [%1]" : "=r"(value) : "r"((uintptr_t)in[0] + 1));
#else
  __builtin_memcpy(&value, (const unsigned char *)in[0] + 1, 4);
#endif
  return value;
}

static int32_t run_null_write(const void *const *in, void *const *out, const int64_t *dims,
                              void *arena, size_t arena_bytes) {
  (void)in, (void)out, (void)dims, (void)arena, (void)arena_bytes;
  int32_t *volatile null = 0;
  *(volatile int32_t *)null = 1;
  return kOk;
}

/* Constants larger than a small board's code memory, and their last byte. */
static const unsigned char kWeights[6 << 20] = {[(6 << 20) - 1] = 9};

static int32_t run_weights(const void *const *in, void *const *out, const int64_t *dims,
                           void *arena, size_t arena_bytes) {
  (void)in, (void)out, (void)dims, (void)arena, (void)arena_bytes;
  volatile size_t last = sizeof kWeights - 1;
  return kWeights[last] + kWeights[last - 1];
}

static const size_t kRows[] = {kMaxRows * kColumns * sizeof(float)};
static const size_t kOne[] = {sizeof(float)};
/* More than the small memories hold. */
static const size_t kHuge[] = {(size_t)5 << 20};

#define CASE(function, stack, output) \
  { #function, function, kArenaBytes, kArenaAlignment, 4, stack, 0, 1, kRows, 1, output }

const harness_case harness_cases[] = {
    {"run_affine", run_affine, kArenaBytes, kArenaAlignment, 4, 400, 1, 1, kRows, 1, kRows},
    CASE(run_hog, 0, kOne),
    CASE(run_hog, kHogBytes - 8, kOne), /* promises too little */
    CASE(run_arena_overrun, 0, kRows),
    CASE(run_arena_underrun, 0, kRows),
    CASE(run_output_overrun, 0, kRows),
    CASE(run_input_change, 0, kRows),
    CASE(run_bad_access, 0, kRows),
    CASE(run_bad_instruction, 0, kRows),
    CASE(run_deep, 0, kRows),
    CASE(run_unaligned, 0, kRows),
    CASE(run_input_change, 0, kHuge),
    CASE(run_null_write, 0, kRows),
    CASE(run_weights, 0, kHuge),
};
const size_t harness_case_count = sizeof harness_cases / sizeof harness_cases[0];
