/* Calls one compiled network. `driver OUTPUT X TARGET [Z]`: files of X_ELEMENT and so on; results
 * are ELEMENT, as the library computes. Writes what `run` gives (twice: from an arena of NaN, and
 * of zeros with loops cut in pieces that are done in another order) and, of a training library,
 * the losses of some steps, the parameters behind them and what `run` gives then. Buffers are as
 * large as the header says and no larger, for the address sanitizer. With PIECES defined, steps
 * are cut in pieces as well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

#define STEPS 3

static void *buffer(size_t alignment, size_t bytes, int fill) {
  void *memory = NULL;
  if (posix_memalign(&memory, alignment < 16 ? 16 : alignment, bytes == 0 ? 1 : bytes) != 0)
    abort();
  memset(memory, fill, bytes);
  return memory;
}

static void *read_file(const char *path, size_t bytes) {
  void *memory = buffer(16, bytes, 0);
  FILE *file = fopen(path, "rb");
  if (file == NULL || fread(memory, 1, bytes, file) != bytes) abort();
  fclose(file);
  return memory;
}

/* The last piece first, the first last: what no two threads may depend on. */
static void in_pieces(void *user, int64_t count, int64_t grain, bc_loop_body body, void *closure) {
  (void)user;
  int64_t end = count;
  for (int64_t begin = (count - 1) / grain * grain; begin > 0; begin -= grain) {
    body(closure, begin, end);
    end = begin;
  }
  body(closure, 0, end);
}
static const bc_context pieces = {.struct_bytes = sizeof(bc_context), .parallel_for = in_pieces};
#ifdef PIECES
#define STEP_CONTEXT &pieces
#else
#define STEP_CONTEXT NULL
#endif

static void expect(bc_status status, const char *what) {
  if (status == BC_OK) return;
  fprintf(stderr, "%s: status %d\n", what, (int)status);
  exit(2);
}

int main(int count, char **words) {
  if (count < 4) return 2;
  const size_t y_bytes = NET_RUN_OUT_Y_ELEMENTS * sizeof(ELEMENT);
  X_ELEMENT *x = read_file(words[2], NET_RUN_IN_X_ELEMENTS * sizeof(X_ELEMENT));
  ELEMENT *y = buffer(16, y_bytes, 0xFF);
#ifdef Z_ELEMENT
  Z_ELEMENT *z = read_file(words[4], NET_RUN_IN_Z_ELEMENTS * sizeof(Z_ELEMENT));
#define INPUTS .x = x, .z = z
#else
#define INPUTS .x = x
#endif
  const net_run_inputs in = {INPUTS};
  const net_run_outputs out = {.y = y};
  FILE *file = fopen(words[1], "wb");
  if (file == NULL) return 2;
#ifdef TRAINS
  void *state = buffer(NET_STATE_ALIGN, NET_STATE_BYTES, 0xFF);
  expect(net_init(state, NET_STATE_BYTES, 1), "init");
#define RUN(arena, context) net_run(state, &in, &out, arena, NET_ARENA_BYTES, context)
#else
#define RUN(arena, context) net_run(&in, &out, arena, NET_ARENA_BYTES, context)
#endif
  for (int fill = 0; fill < 2; fill++) {
    void *arena = buffer(NET_ARENA_ALIGN, NET_ARENA_BYTES, fill == 0 ? 0xFF : 0);
    memset(y, 0xFF, y_bytes);
    expect(RUN(arena, fill == 0 ? NULL : &pieces), "run");
    fwrite(y, 1, y_bytes, file);
    free(arena);
  }
#ifdef TRAINS
  TARGET_ELEMENT *target =
      read_file(words[3], NET_TRAIN_STEP_IN_TARGET_ELEMENTS * sizeof(TARGET_ELEMENT));
  const net_train_step_inputs batch = {INPUTS, .target = target};
  void *arena = buffer(NET_ARENA_ALIGN, NET_ARENA_BYTES, 0xFF);
  for (int step = 0; step < STEPS; step++) {
    ELEMENT loss;
    const net_train_step_outputs results = {.loss = &loss, .y = step == 0 ? y : NULL};
    expect(net_train_step(state, &batch, &results, arena, NET_ARENA_BYTES, STEP_CONTEXT),
           "train_step");
    fwrite(&loss, sizeof loss, 1, file);
  }
#ifdef NET_PARAMETER_COUNT
  ELEMENT *parameters = buffer(16, NET_PARAMETER_COUNT * sizeof(ELEMENT), 0xFF);
  expect(net_get_parameters(state, parameters), "get_parameters");
  fwrite(parameters, sizeof(ELEMENT), NET_PARAMETER_COUNT, file);
  free(parameters);
#endif
  expect(RUN(arena, NULL), "run");
  fwrite(y, 1, y_bytes, file);
  free(arena);
  free(state);
  free(target);
#endif
#ifdef Z_ELEMENT
  free(z);
#endif
  free(x);
  free(y);
  return fclose(file) == 0 ? 0 : 2;
}
