/* Measures one library at another program's command. glue.h, written per model, supplies the call.
 *
 * worker INPUTS OUTPUTS: reads all inputs from one file, runs once, writes all outputs to the
 * other, then answers lines on standard input: "time N" with the nanoseconds of wall clock and of
 * processor time that N calls took, "profile N" with a line of nanoseconds per kernel for each of N
 * calls. Between commands it sleeps, so that several workers can share a core. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "glue.h"

#define MAX_KERNELS 65536

static int64_t nanoseconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *allocate(size_t bytes, size_t alignment) {
  if (alignment < 64) alignment = 64;
  void *memory = aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
  if (memory == NULL) exit(3);
  memset(memory, 0, (bytes / alignment + 1) * alignment);
  return memory;
}

static int64_t started;
static int64_t kernel_time[MAX_KERNELS];
static int32_t kernel_count;

static void before(void *user, int32_t kernel, const char *name) {
  (void)user, (void)kernel, (void)name;
  started = nanoseconds(CLOCK_MONOTONIC);
}

static void after(void *user, int32_t kernel, const char *name) {
  int64_t ended = nanoseconds(CLOCK_MONOTONIC);
  (void)user, (void)name;
  if (kernel < 0 || kernel >= MAX_KERNELS) return;
  if (kernel >= kernel_count) kernel_count = kernel + 1;
  kernel_time[kernel] += ended - started;
}

static void *inputs[GLUE_INPUTS + 1];
static void *outputs[GLUE_OUTPUTS + 1];
static void *arena;

static void call(const bc_context *context) {
  if (glue_call(inputs, outputs, arena, context) != BC_OK) exit(4);
}

/* What an empty pair of hooks measures. */
static int64_t hook_cost(void) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < 1000; i++) {
    kernel_time[0] = 0;
    before(NULL, 0, NULL);
    after(NULL, 0, NULL);
    if (kernel_time[0] < least) least = kernel_time[0];
  }
  return least;
}

static void profile(long count) {
  bc_context context = {
      .struct_bytes = sizeof context, .before_kernel = before, .after_kernel = after};
  int64_t cost = hook_cost();
  for (long i = 0; i < count; i++) {
    memset(kernel_time, 0, sizeof(int64_t) * (size_t)(kernel_count + 1));
    call(&context);
    for (int32_t k = 0; k < kernel_count; k++) {
      int64_t spent = kernel_time[k] - cost;
      printf("%lld ", (long long)(spent > 0 ? spent : 0));
    }
    printf("\n");
  }
}

static void measure(long count) {
  for (long i = 0; i <= count / 8; i++) call(NULL); /* the last worker left other things cached */
  int64_t processor = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  int64_t wall = nanoseconds(CLOCK_MONOTONIC);
  for (long i = 0; i < count; i++) call(NULL);
  wall = nanoseconds(CLOCK_MONOTONIC) - wall;
  processor = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - processor;
  printf("%lld %lld\n", (long long)wall, (long long)processor);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  FILE *in = fopen(argv[1], "rb");
  if (in == NULL) return 2;
  for (int i = 0; i < GLUE_INPUTS; i++) {
    inputs[i] = allocate(glue_input_bytes[i], 64);
    if (fread(inputs[i], 1, glue_input_bytes[i], in) != glue_input_bytes[i]) return 2;
  }
  fclose(in);
  for (int i = 0; i < GLUE_OUTPUTS; i++) outputs[i] = allocate(glue_output_bytes[i], 64);
  arena = allocate(GLUE_ARENA_BYTES, GLUE_ARENA_ALIGN);
  call(NULL);
  FILE *out = fopen(argv[2], "wb");
  if (out == NULL) return 2;
  for (int i = 0; i < GLUE_OUTPUTS; i++) fwrite(outputs[i], 1, glue_output_bytes[i], out);
  if (fclose(out) != 0) return 2;

  char line[64];
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    long count = 0;
    if (sscanf(line, "time %ld", &count) == 1 && count > 0) {
      measure(count);
    } else if (sscanf(line, "profile %ld", &count) == 1 && count > 0) {
      profile(count);
    } else {
      return 2;
    }
    fflush(stdout);
  }
  return 0;
}
