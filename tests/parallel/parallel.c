/* Trains ResNet8 for a few steps with the caller's parallel_for in several guises, and without:
 * state, losses and outputs must agree to the bit. Prints how many loops were shared out. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

enum { STEPS = 3, MOST_THREADS = 5 };

typedef struct {
  int threads;   /* 0: on the calling thread, the last piece first */
  int64_t times; /* a piece is this many grains, if there are so many */
  int64_t loops, pieces, faults;
} sharing;

typedef struct {
  bc_loop_body body;
  void *closure;
  int64_t count, piece, first, stride;
} share;

static void *do_share(void *argument) {
  const share *s = argument;
  for (int64_t p = s->first; p * s->piece < s->count; p += s->stride) {
    const int64_t begin = p * s->piece, end = begin + s->piece;
    s->body(s->closure, begin, end < s->count ? end : s->count);
  }
  return NULL;
}

static void share_out(void *user, int64_t count, int64_t grain, bc_loop_body body, void *closure) {
  sharing *how = user;
  how->loops++;
  if (grain < 1 || count < 2 * grain) how->faults++;
  const int64_t piece = grain * how->times, pieces = (count + piece - 1) / piece;
  how->pieces += pieces;
  if (how->threads == 0) {
    for (int64_t p = pieces; p-- > 0;) {
      const int64_t end = (p + 1) * piece;
      body(closure, p * piece, end < count ? end : count);
    }
    return;
  }
  pthread_t threads[MOST_THREADS];
  share shares[MOST_THREADS];
  for (int t = 0; t < how->threads; t++) {
    shares[t] = (share){body, closure, count, piece, t, how->threads};
    if (pthread_create(&threads[t], NULL, do_share, &shares[t]) != 0) abort();
  }
  for (int t = 0; t < how->threads; t++) pthread_join(threads[t], NULL);
}

typedef struct {
  unsigned char *state;
  float losses[STEPS], logits[STEPS + 1][NET_RUN_OUT_LOGITS_ELEMENTS];
} result;

static void *aligned(size_t alignment, size_t bytes) {
  void *memory = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == NULL) abort();
  memset(memory, 0, bytes);
  return memory;
}

static void train(const bc_context *context, result *into) {
  static float image[NET_RUN_IN_INPUT_ELEMENTS];
  void *arena = aligned(NET_ARENA_ALIGN, NET_ARENA_BYTES);
  into->state = aligned(NET_STATE_ALIGN, NET_STATE_BYTES);
  memset(arena, 0xA5, NET_ARENA_BYTES);
  uint32_t noise = 1;
  if (net_init(into->state, NET_STATE_BYTES, 7) != BC_OK) abort();
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < NET_RUN_IN_INPUT_ELEMENTS; i++) {
      noise = noise * 1664525u + 1013904223u;
      image[i] = (float)(noise >> 8) / (float)(1 << 24);
    }
    const int32_t target = step;
    const net_train_step_inputs in = {.input = image, .target = &target};
    const net_train_step_outputs out = {.loss = &into->losses[step], .logits = into->logits[step]};
    if (net_train_step(into->state, &in, &out, arena, NET_ARENA_BYTES, context) != BC_OK) abort();
  }
  const net_run_inputs in = {.input = image};
  const net_run_outputs out = {.logits = into->logits[STEPS]};
  if (net_run(into->state, &in, &out, arena, NET_ARENA_BYTES, context) != BC_OK) abort();
  free(arena);
}

int main(void) {
  static result alone;
  int failures = 0;
  train(NULL, &alone);
  const sharing guises[] = {{.threads = 0, .times = 1}, {.threads = 1, .times = 3},
                            {.threads = 2, .times = 1}, {.threads = 3, .times = 2},
                            {.threads = MOST_THREADS, .times = 1}};
  for (size_t g = 0; g < sizeof guises / sizeof guises[0]; g++) {
    sharing how = guises[g];
    const bc_context context = {
        .struct_bytes = sizeof context, .user = &how, .parallel_for = share_out};
    static result shared;
    train(&context, &shared);
    const int same = memcmp(alone.state, shared.state, NET_STATE_BYTES) == 0 &&
                     memcmp(alone.losses, shared.losses, sizeof alone.losses) == 0 &&
                     memcmp(alone.logits, shared.logits, sizeof alone.logits) == 0;
    const int is_shared = how.loops > 0 && how.pieces >= 2 * how.loops / (how.times > 1 ? 2 : 1);
    printf("%d threads, %lld grains a piece: %lld loops in %lld pieces, %s\n", how.threads,
           (long long)how.times, (long long)how.loops, (long long)how.pieces,
           same ? "the same bits" : "OTHER BITS");
    failures += !same || !is_shared || how.faults != 0;
    free(shared.state);
  }
  free(alone.state);
  return failures != 0;
}
