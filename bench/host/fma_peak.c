/* The machine's rate of multiply-accumulates: independent vector FMAs on registers, nothing else.
 *
 * Answers lines "time N" as worker.c does, for N rounds of PEAK_ROUND_MACS. Twelve chains keep two
 * FMA pipes of latency up to six busy. Vectors are as wide as the machine has, or
 * PEAK_VECTOR_BYTES. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#ifndef PEAK_VECTOR_BYTES
#if defined(__AVX512F__)
#define PEAK_VECTOR_BYTES 64
#elif defined(__AVX__)
#define PEAK_VECTOR_BYTES 32
#else
#define PEAK_VECTOR_BYTES 16
#endif
#endif

typedef float Vector __attribute__((vector_size(PEAK_VECTOR_BYTES)));

enum { kChains = 12, kRepeats = 2048, kLanes = PEAK_VECTOR_BYTES / 4 };

static int64_t nanoseconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static volatile float sink;

__attribute__((noinline)) static void run_round(float factor) {
  Vector a0 = {factor}, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0, a8 = a0,
         a9 = a0, a10 = a0, a11 = a0;
  Vector x = a0 + 0.5f, y = a0 * 0.25f;
  for (int i = 0; i < kRepeats; i++) {
    a0 = a0 * x + y, a1 = a1 * x + y, a2 = a2 * x + y, a3 = a3 * x + y;
    a4 = a4 * x + y, a5 = a5 * x + y, a6 = a6 * x + y, a7 = a7 * x + y;
    a8 = a8 * x + y, a9 = a9 * x + y, a10 = a10 * x + y, a11 = a11 * x + y;
    /* Keeps the chains apart: the compiler sees that they are equal otherwise. */
#if defined(__x86_64__)
    __asm__ volatile("" : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5));
    __asm__ volatile("" : "+v"(a6), "+v"(a7), "+v"(a8), "+v"(a9), "+v"(a10), "+v"(a11));
#else
    __asm__ volatile("" : "+w"(a0), "+w"(a1), "+w"(a2), "+w"(a3), "+w"(a4), "+w"(a5));
    __asm__ volatile("" : "+w"(a6), "+w"(a7), "+w"(a8), "+w"(a9), "+w"(a10), "+w"(a11));
#endif
  }
  Vector sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
  sink = sum[0];
}

int main(void) {
  printf("ready {\"round_macs\": %d}\n", kChains * kRepeats * kLanes);
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) {
    long count = 0;
    if (sscanf(line, "time %ld", &count) != 1 || count <= 0) return 2;
    for (long i = 0; i <= count / 8; i++) run_round(0.5f);
    int64_t processor = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    int64_t wall = nanoseconds(CLOCK_MONOTONIC);
    for (long i = 0; i < count; i++) run_round(0.5f);
    wall = nanoseconds(CLOCK_MONOTONIC) - wall;
    processor = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - processor;
    printf("%lld %lld\n", (long long)wall, (long long)processor);
    fflush(stdout);
  }
  return 0;
}
