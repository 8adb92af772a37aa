/* SPDX-License-Identifier: 0BSD */
/* mlp: made by Backcast 0.1.0 from mlp.onnx for x86-64. */
#ifndef MLP_H
#define MLP_H

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

#define MLP_MODEL_HASH UINT64_C(0xf0bdc354d848b7cc)
#define MLP_ARENA_BYTES 256 /* enough for every size in range; usable in #if */
#define MLP_ARENA_ALIGN 16
#define MLP_STACK_BYTES 248 /* most that a call takes, callees of bc_context not included */
#define MLP_WEIGHT_BYTES 32 /* constants, in section .rodata.mlp */

#define MLP_N_MIN 1
#define MLP_N_MAX 8

/* Elements at the largest size. */
#define MLP_RUN_IN_X_ELEMENTS 32
#define MLP_RUN_OUT_Y_ELEMENTS 16
#define MLP_RUN_OUT_POSITIVE_ELEMENTS 16

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlp_run_inputs {
  int64_t N;      /* 1..8 */
  const float *x; /* f32[N,4] */
} mlp_run_inputs;

typedef struct mlp_run_outputs {
  float *y;          /* f32[N,2] */
  uint8_t *positive; /* bool[N,2] */
} mlp_run_outputs;

/* Bytes of arena that mlp_run needs at this size; 0 if out of range. Places are planned for the
 * largest sizes and do not move, so that every size in range needs the same. */
static inline size_t mlp_run_arena_bytes(int64_t N);
static inline size_t mlp_run_arena_bytes(int64_t N) {
  if (N < MLP_N_MIN || N > MLP_N_MAX) return 0;
  return MLP_ARENA_BYTES;
}

/* Runs the model. `arena` needs MLP_ARENA_BYTES aligned to MLP_ARENA_ALIGN; its contents before
 * and after mean nothing. Tensors must not overlap. `context` may be null. */
bc_status mlp_run(const mlp_run_inputs *in, const mlp_run_outputs *out, void *arena,
                  size_t arena_bytes, const bc_context *context);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* MLP_H */
