/* Measures one library at another program's command. glue.h, written per model, supplies the call.
 *
 * worker INPUTS OUTPUTS: reads all inputs from one file, runs once, writes all outputs to the
 * other, then answers lines on standard input: "time N" with the nanoseconds of wall clock and of
 * processor time that N calls took, "profile N" with a line of nanoseconds per kernel for each of N
 * calls. Between commands it sleeps, so that several workers can share a core. With BENCH_THREADS
 * in the environment, calls are shared out among so many threads, which spin while calls are timed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
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

enum { MOST_THREADS = 64, PIECES_PER_THREAD = 4 };
static int threads = 1; /* the caller's own among them */
static pthread_t helpers[MOST_THREADS];
static atomic_int job, busy, next_piece; /* job: counts up; -1 ends the helpers */
static struct {
  bc_loop_body body;
  void *closure;
  int64_t count, piece;
} shared;

static void take_pieces(void) {
  for (;;) {
    const int64_t begin = atomic_fetch_add(&next_piece, 1) * shared.piece;
    if (begin >= shared.count) return;
    const int64_t end = begin + shared.piece;
    shared.body(shared.closure, begin, end < shared.count ? end : shared.count);
  }
}

static void *help(void *unused) {
  int done = 0, now;
  while ((now = atomic_load(&job)) >= 0) {
    if (now == done) continue;
    done = now;
    take_pieces();
    atomic_fetch_sub(&busy, 1);
  }
  return unused;
}

static void share_out(void *user, int64_t count, int64_t grain, bc_loop_body body, void *closure) {
  (void)user;
  const int64_t pieces = (int64_t)threads * PIECES_PER_THREAD, even = (count + pieces - 1) / pieces;
  shared.body = body;
  shared.closure = closure;
  shared.count = count;
  shared.piece = even < grain ? grain : even;
  atomic_store(&next_piece, 0);
  atomic_store(&busy, threads - 1);
  atomic_fetch_add(&job, 1);
  take_pieces();
  while (atomic_load(&busy) > 0) continue;
}

static void start_threads(void) {
  atomic_store(&job, 0);
  for (int t = 1; t < threads; t++) {
    if (pthread_create(&helpers[t], NULL, help, NULL) != 0) exit(3);
  }
}

static void end_threads(void) {
  atomic_store(&job, -1);
  for (int t = 1; t < threads; t++) pthread_join(helpers[t], NULL);
}

static void time_calls(long count, const bc_context *context) {
  /* The last worker left other things cached. */
  for (long i = 0; i <= count / 8; i++) call(context);
  int64_t processor = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  int64_t wall = nanoseconds(CLOCK_MONOTONIC);
  for (long i = 0; i < count; i++) call(context);
  wall = nanoseconds(CLOCK_MONOTONIC) - wall;
  processor = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - processor;
  printf("%lld %lld\n", (long long)wall, (long long)processor);
}

static void measure(long count) {
  if (threads == 1) {
    time_calls(count, NULL);
    return;
  }
  const bc_context context = {.struct_bytes = sizeof context, .parallel_for = share_out};
  start_threads();
  time_calls(count, &context);
  end_threads();
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  const char *wanted = getenv("BENCH_THREADS");
  if (wanted != NULL) threads = atoi(wanted);
  if (threads < 1 || threads > MOST_THREADS) return 2;
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
