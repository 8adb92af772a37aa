/* SPDX-License-Identifier: 0BSD */
/* The state of a training library: what every library does with it in the same way, told what the
 * model keeps there by a constant table. Linked into each archive, internal to it. The table holds
 * no pointers, so that it needs no relocation and stays in read-only memory.
 *
 * A state starts with a header of 32 bytes: u32 magic, u32 ABI version, u64 model hash,
 * u64 generation (0 while it is not initialised), u64 reserved. */
#ifndef BC_RUNTIME_H
#define BC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "bc_types.h"

#ifndef BC_RUNTIME
#define BC_RUNTIME
#endif

#define BC_STATE_MAGIC 0x54534342u /* "BCST" */
#define BC_STATE_ABI 1u

/* What a variable is for. */
#define BC_ROLE_PARAMETER 0
#define BC_ROLE_STATISTIC 1
#define BC_ROLE_SLOT 2
#define BC_ROLE_GRADIENT 3
#define BC_ROLE_STEP 4
#define BC_ROLE_RATE 5
#define BC_ROLE_GENERATOR 6

/* Sets of roles. */
#define BC_ROLES_PARAMETERS (1u << BC_ROLE_PARAMETER | 1u << BC_ROLE_STATISTIC)
#define BC_ROLES_GRADIENTS (1u << BC_ROLE_GRADIENT)

typedef struct bc_variable {
  uint64_t name;   /* FNV-1a of the initializer's name */
  uint32_t offset; /* from the start of the state */
  uint32_t bytes;
  uint32_t start; /* where a part of an initializer begins along its axis */
  int8_t axis;    /* -1: the whole initializer */
  uint8_t role;
  uint8_t element; /* 16·kind + bytes; kinds: 0 bool, 1 unsigned, 2 signed, 3 float, 4 bfloat */
  uint8_t reserved;
  uint32_t initial; /* where the initial values begin, from the start of all; or BC_ZEROS */
  /* Where the state has another order than the model: elements of three runs of the model's axes,
   * which the state has the other way round. Element (i, j, k) of the model is (k, j, i) of the
   * state. Initial values are in the order of the state. runs[0] is 0 where both have one order. */
  uint32_t runs[3];
} bc_variable;

#define BC_ZEROS 0xffffffffu

/* Followed in memory by its variables. */
typedef struct bc_layout {
  uint64_t hash; /* of the model */
  uint32_t count;
  uint32_t bytes; /* of the state */
  uint32_t alignment;
  uint32_t reserved;
} bc_layout;

/* Initial values, zeros where there are none; generators keyed by the seed. */
BC_RUNTIME bc_status bc_state_init(const bc_layout *layout, const void *initial, void *state,
                                   size_t state_bytes, uint64_t seed);
/* BC_ERROR_NULL, BC_ERROR_ALIGNMENT or BC_ERROR_STATE unless this is an initialised state of the
 * model. */
BC_RUNTIME bc_status bc_state_check(const bc_layout *layout, const void *state);
/* The bits of a rate of the model's type (f32: the upper half is zero); BC_ERROR_VALUE unless it is
 * finite and at least 0. */
BC_RUNTIME bc_status bc_state_set_rate(const bc_layout *layout, void *state, uint64_t bits);
/* The variables of the roles one after the other, bit for bit; any values are allowed. */
BC_RUNTIME bc_status bc_state_get(const bc_layout *layout, const void *state, uint32_t roles,
                                  void *flat);
BC_RUNTIME bc_status bc_state_set(const bc_layout *layout, void *state, uint32_t roles,
                                  const void *flat);

/* `bytes` of a variable from where the model has byte `at`, both of whole elements: from the state
 * to `plain`; or `inwards`, from `plain` to the state. */
BC_RUNTIME void bc_state_move(const bc_variable *v, void *state, uint32_t at, uint32_t bytes,
                              void *plain, int inwards);

/* A checkpoint, little-endian: "BCCP", u32 format version, u64 model hash, u32 count of variables,
 * u32 0; per variable u64 name, u32 bytes, u32 start, i8 axis, u8 role, u8 element, u8 0 and its
 * bytes in the model's order; u32 CRC-32 of all before. Written and read in order, with no buffer
 * beyond a record. */
BC_RUNTIME bc_status bc_state_save(const bc_layout *layout, const void *state,
                                   const bc_writer *writer);
/* Whatever fails, the state is left uninitialised: BC_ERROR_IO when the reader did,
 * BC_ERROR_CHECKPOINT when the bytes are no checkpoint of this model. */
BC_RUNTIME bc_status bc_state_load(const bc_layout *layout, void *state, const bc_reader *reader);

/* What the files of the runtime share. Compilers know these two without a header; the functions
 * behind them are memcpy and memset. */
#define BC_COPY __builtin_memcpy
#define BC_FILL __builtin_memset
static inline const bc_variable *bc_variables(const bc_layout *layout) {
  return (const bc_variable *)(layout + 1);
}
BC_RUNTIME void bc_state_open(const bc_layout *layout, void *state, uint64_t generation);
BC_RUNTIME bc_status bc_state_check_place(const bc_layout *layout, const void *state);

#endif /* BC_RUNTIME_H */
