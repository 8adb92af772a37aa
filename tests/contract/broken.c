/* A library that keeps every promise (BREAK undefined) or breaks the one that BREAK names. */
#include "broken.h"

#include <math.h>
#include <stdlib.h>

enum {
  NONE,
  OUTPUT_OVERRUN,
  ARENA_UNDERRUN,
  INPUT_OVERREAD,
  INPUT_WRITE,
  DIRTY_ARENA,
  SHARED_STATE,
  WRONG_STATUS,
  EARLY_WRITE,
  NO_ALIGNMENT_CHECK,
  LIBM,
  HEAP,
  NO_PREFIX,
  CONSTANT_OUTPUT
};
#ifndef BREAK
#define BREAK NONE
#endif

#if BREAK == SHARED_STATE_NUMBER
static float shared[16];
#endif
#if BREAK == NO_PREFIX_NUMBER
int helper(int x) { return x + 1; }
#endif

bc_status broken_run(const broken_run_inputs *in, const broken_run_outputs *out, void *arena,
                     size_t arena_bytes, const bc_context *context) {
  (void)context;
  if (!in || !out || !in->x || !out->y || !arena) {
    return BREAK == WRONG_STATUS ? BC_ERROR_ARENA_SIZE : BC_ERROR_NULL;
  }
  if (BREAK == EARLY_WRITE && (uintptr_t)out->y % 4 == 0) out->y[0] = 0;
  if (arena_bytes < BROKEN_ARENA_BYTES) return BC_ERROR_ARENA_SIZE;
  if (BREAK != NO_ALIGNMENT_CHECK && (uintptr_t)arena % BROKEN_ARENA_ALIGN) {
    return BC_ERROR_ALIGNMENT;
  }
  if ((uintptr_t)in->x % 4 || (uintptr_t)out->y % 4) return BC_ERROR_ALIGNMENT;
  volatile float *work = arena;
#if BREAK == SHARED_STATE_NUMBER
  work = shared;
#endif
  for (int i = 0; i < 16; i++) {
    work[i] = (BREAK == DIRTY_ARENA ? work[i] * 0.5f : 0.0f) + in->x[i];
    if (BREAK == CONSTANT_OUTPUT) work[i] = 1;
  }
#if BREAK == SHARED_STATE_NUMBER
  for (volatile int wait = 0; wait < 20000; wait++) {
  }
#endif
  for (int i = 0; i < 16; i++) out->y[i] = work[i];
  if (BREAK == OUTPUT_OVERRUN) out->y[16] = 1;
  if (BREAK == ARENA_UNDERRUN) ((volatile char *)arena)[-1] = 1;
  if (BREAK == INPUT_OVERREAD) out->y[0] += 0 * ((const volatile float *)in->x)[16];
  if (BREAK == INPUT_WRITE) *(volatile float *)(uintptr_t)in->x = 0;
#if BREAK == LIBM_NUMBER
  out->y[0] = expf(out->y[0]);
#endif
#if BREAK == HEAP_NUMBER
  free(malloc((size_t)out->y[0] + arena_bytes));
#endif
  return BC_OK;
}
