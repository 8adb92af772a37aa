/* SPDX-License-Identifier: 0BSD */
/* net: made by Backcast 0.1.0 from net.onnx for cortex-m4,
 * training with cross-entropy and momentum, batch 4, 2 batches per update. */
#ifndef NET_H
#define NET_H

#ifndef BC_TYPES_H
#define BC_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Raised when a type below gains a member or a code is added; nothing is ever removed. */
#define BC_TYPES_VERSION 1

/* What a call answers. Not an enum: the size of an enum depends on the compiler's options. */
typedef int32_t bc_status;
#define BC_OK 0                /* done */
#define BC_ERROR_NULL 1        /* a pointer that must be set is null */
#define BC_ERROR_ARENA_SIZE 2  /* the arena is shorter than the call needs */
#define BC_ERROR_ALIGNMENT 3   /* arena or state is not aligned as the header says */
#define BC_ERROR_DIMENSION 4   /* a symbolic dimension lies outside its range */
#define BC_ERROR_INDEX 5       /* a run-time index or label lies outside its tensor */
#define BC_ERROR_STATE_SIZE 6  /* the state is shorter than the header says */
#define BC_ERROR_STATE 7       /* the state was not initialised, or belongs to another model */
#define BC_ERROR_NONFINITE 8   /* loss or gradient is infinite or NaN; nothing was updated */
#define BC_ERROR_CHECKPOINT 9  /* saved bytes are damaged, or belong to another model */
#define BC_ERROR_IO 10         /* a bc_writer or bc_reader failed */
#define BC_ERROR_VALUE 11      /* an argument has a value the model does not allow */

#ifdef __cplusplus
extern "C" {
#endif

/* Does the iterations begin <= i < end of a parallel loop. */
typedef void (*bc_loop_body)(void *closure, int64_t begin, int64_t end);

/* What a caller may add to a call. Every member but the first may be zero or null; a null pointer
 * in place of the whole struct means the same. Members are only ever appended. */
typedef struct bc_context {
  uint32_t struct_bytes; /* sizeof(bc_context) as the caller compiled it; what lies past is null */
  uint32_t flags;        /* zero */
  void *user;            /* handed to each function below */
  /* Calls body(closure, begin, end) so that every i in 0 <= i < count is done exactly once, in
   * pieces of at least `grain` (the last may be shorter), in any order and on any thread, and
   * returns when all are done. Null: the loop runs on the calling thread. */
  void (*parallel_for)(void *user, int64_t count, int64_t grain, bc_loop_body body, void *closure);
  /* Called around each kernel. `kernel` numbers the rows of the report; `name` names the model's
   * nodes, or is null if the library was built without names. */
  void (*before_kernel)(void *user, int32_t kernel, const char *name);
  void (*after_kernel)(void *user, int32_t kernel, const char *name);
} bc_context;

/* Where saving puts its bytes, in order. Anything but BC_OK ends the saving with BC_ERROR_IO. */
typedef struct bc_writer {
  void *user;
  bc_status (*write)(void *user, const void *bytes, size_t count);
} bc_writer;

/* Where loading takes its bytes from; `read` fills all `count` or answers something else than
 * BC_OK. */
typedef struct bc_reader {
  void *user;
  bc_status (*read)(void *user, void *bytes, size_t count);
} bc_reader;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* BC_TYPES_H */

#if BC_TYPES_VERSION < 1
#error "a header of an older Backcast was included before this one: change their order"
#endif

#define NET_MODEL_HASH UINT64_C(0xb7720e64c8155fd3)
#define NET_ARENA_BYTES 9216 /* enough for every call; usable in #if */
#define NET_ARENA_ALIGN 16
#define NET_STACK_BYTES 512    /* most that a call takes, callees of bc_context not included */
#define NET_WEIGHT_BYTES 10280 /* constants and first parameters, in section .rodata.net */
#define NET_STATE_BYTES 30888
#define NET_STATE_ALIGN 16
#define NET_STATE_ABI 1
#define NET_PARAMETER_COUNT 2570 /* elements of the flat vector of parameters */
#define NET_BATCH 4
#define NET_ACCUMULATE 2

#define NET_RUN_IN_X_ELEMENTS 64
#define NET_RUN_OUT_LOGITS_ELEMENTS 10
#define NET_EVALUATE_IN_X_ELEMENTS 256
#define NET_EVALUATE_IN_TARGET_ELEMENTS 4
#define NET_EVALUATE_OUT_LOSS_ELEMENTS 1
#define NET_EVALUATE_OUT_LOGITS_ELEMENTS 40
#define NET_TRAIN_STEP_IN_X_ELEMENTS 256
#define NET_TRAIN_STEP_IN_TARGET_ELEMENTS 4
#define NET_TRAIN_STEP_OUT_LOSS_ELEMENTS 1
#define NET_TRAIN_STEP_OUT_LOGITS_ELEMENTS 40

#ifdef __cplusplus
extern "C" {
#endif

typedef struct net_run_inputs {
  const float *x; /* f32[1,64] */
} net_run_inputs;

typedef struct net_run_outputs {
  float *logits; /* f32[1,10] */
} net_run_outputs;

typedef struct net_evaluate_inputs {
  const float *x;        /* f32[4,64] */
  const int32_t *target; /* i32[4], each 0..9 */
} net_evaluate_inputs;

typedef struct net_evaluate_outputs {
  float *loss;   /* f32[], mean over the batch */
  float *logits; /* f32[4,10], or null */
} net_evaluate_outputs;

typedef struct net_train_step_inputs {
  const float *x;        /* f32[4,64] */
  const int32_t *target; /* i32[4], each 0..9 */
} net_train_step_inputs;

typedef struct net_train_step_outputs {
  float *loss;   /* f32[], mean over the batch, before the update */
  float *logits; /* f32[4,10], or null */
} net_train_step_outputs;

/* The state holds parameters, optimizer moments, step and generator: NET_STATE_BYTES aligned to
 * NET_STATE_ALIGN, kept by the caller. Arenas need NET_ARENA_BYTES aligned to NET_ARENA_ALIGN;
 * their contents before and after mean nothing. `context` may be null. */

/* The model's own parameters, moments zero, step 0; `seed` feeds the generator. */
bc_status net_init(void *state, size_t state_bytes, uint64_t seed);

/* Runs the model with the parameters as they are. */
bc_status net_run(const void *state, const net_run_inputs *in, const net_run_outputs *out,
                  void *arena, size_t arena_bytes, const bc_context *context);

/* Loss and outputs on a batch; nothing is updated. */
bc_status net_evaluate(const void *state, const net_evaluate_inputs *in,
                       const net_evaluate_outputs *out, void *arena, size_t arena_bytes,
                       const bc_context *context);

/* Adds the gradient of a batch to the accumulated one. BC_ERROR_NONFINITE: nothing was added. */
bc_status net_train_step(void *state, const net_train_step_inputs *in,
                         const net_train_step_outputs *out, void *arena, size_t arena_bytes,
                         const bc_context *context);

/* Updates the parameters by the mean of what was accumulated, and clears it. BC_ERROR_STATE if
 * there was no step since the last update. */
bc_status net_apply(void *state, void *arena, size_t arena_bytes, const bc_context *context);

bc_status net_set_learning_rate(void *state, float rate);

/* NET_PARAMETER_COUNT values: in the order of the model file's initializers, row-major, running
 * statistics last. */
bc_status net_get_parameters(const void *state, float *flat);
bc_status net_set_parameters(void *state, const float *flat);

/* A checkpoint holds all of the state and a checksum; loading another model's is refused with
 * BC_ERROR_CHECKPOINT, and a failed loading leaves the state uninitialised. */
bc_status net_save(const void *state, const bc_writer *writer);
bc_status net_load(void *state, const bc_reader *reader);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* NET_H */
