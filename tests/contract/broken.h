/* The interface of broken.c, as a compiled model's header would have it. */
#ifndef BROKEN_H
#define BROKEN_H
#include "bc_types.h"

#define BROKEN_ARENA_BYTES 64
#define BROKEN_ARENA_ALIGN 16
#define BROKEN_STACK_BYTES 400
#define BROKEN_WEIGHT_BYTES 0
#define BROKEN_RUN_IN_X_ELEMENTS 16
#define BROKEN_RUN_OUT_Y_ELEMENTS 16

typedef struct broken_run_inputs {
  const float *x; /* f32[16] */
} broken_run_inputs;

typedef struct broken_run_outputs {
  float *y; /* f32[16] */
} broken_run_outputs;

bc_status broken_run(const broken_run_inputs *in, const broken_run_outputs *out, void *arena,
                     size_t arena_bytes, const bc_context *context);
#endif
