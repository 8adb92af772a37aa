/* SPDX-License-Identifier: 0BSD */
/* Starting a state, and reading and writing what lies in it. */
#include "bc_runtime.h"

typedef struct bc_state_header {
  uint32_t magic, abi;
  uint64_t hash, generation, reserved;
} bc_state_header;

BC_RUNTIME void bc_state_open(const bc_layout *layout, void *state, uint64_t generation) {
  const bc_state_header header = {BC_STATE_MAGIC, BC_STATE_ABI, layout->hash, generation, 0};
  BC_COPY(state, &header, sizeof header);
}

BC_RUNTIME bc_status bc_state_check_place(const bc_layout *layout, const void *state) {
  if (state == NULL) return BC_ERROR_NULL;
  if (((uintptr_t)state & (layout->alignment - 1u)) != 0) return BC_ERROR_ALIGNMENT;
  return BC_OK;
}

BC_RUNTIME bc_status bc_state_check(const bc_layout *layout, const void *state) {
  bc_state_header header;
  const bc_status status = bc_state_check_place(layout, state);
  if (status != BC_OK) return status;
  BC_COPY(&header, state, sizeof header);
  if (header.magic != BC_STATE_MAGIC || header.abi != BC_STATE_ABI || header.hash != layout->hash ||
      header.generation == 0) {
    return BC_ERROR_STATE;
  }
  return BC_OK;
}

BC_RUNTIME bc_status bc_state_init(const bc_layout *layout, const void *initial, void *state,
                                   size_t state_bytes, uint64_t seed) {
  unsigned char *const base = (unsigned char *)state;
  if (state == NULL) return BC_ERROR_NULL;
  if (state_bytes < layout->bytes) return BC_ERROR_STATE_SIZE;
  const bc_status status = bc_state_check_place(layout, state);
  if (status != BC_OK) return status;
  BC_FILL(base, 0, layout->bytes);
  for (uint32_t i = 0; i < layout->count; ++i) {
    const bc_variable *const v = &bc_variables(layout)[i];
    if (v->role == BC_ROLE_GENERATOR) {
      const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
      BC_COPY(base + v->offset, key, sizeof key);
    } else if (v->initial != BC_ZEROS) {
      BC_COPY(base + v->offset, (const unsigned char *)initial + v->initial, v->bytes);
    }
  }
  bc_state_open(layout, state, 1);
  return BC_OK;
}

/* Finite and not negative; -0 counts as 0. */
static int bc_is_rate(uint64_t bits, uint32_t bytes) {
  if (bytes == sizeof(uint32_t)) return bits < 0x7f800000u || bits == 0x80000000u;
  return bits < UINT64_C(0x7ff0000000000000) || bits == UINT64_C(0x8000000000000000);
}

BC_RUNTIME bc_status bc_state_set_rate(const bc_layout *layout, void *state, uint64_t bits) {
  unsigned char *const base = (unsigned char *)state;
  const bc_status status = bc_state_check(layout, state);
  if (status != BC_OK) return status;
  for (uint32_t i = 0; i < layout->count; ++i) {
    const bc_variable *const v = &bc_variables(layout)[i];
    if (v->role != BC_ROLE_RATE) continue;
    if (!bc_is_rate(bits, v->bytes)) return BC_ERROR_VALUE;
    const uint32_t low = (uint32_t)bits;
    if (v->bytes == sizeof low) BC_COPY(base + v->offset, &low, sizeof low);
    if (v->bytes == sizeof bits) BC_COPY(base + v->offset, &bits, sizeof bits);
  }
  return BC_OK;
}

BC_RUNTIME void bc_state_move(const bc_variable *v, void *state, uint32_t at, uint32_t bytes,
                              void *plain, int inwards) {
  unsigned char *const base = (unsigned char *)state + v->offset;
  unsigned char *const flat = (unsigned char *)plain;
  const uint32_t unit = v->element & 15u; /* 4 or 8 where the order differs */
  const uint32_t a = v->runs[0], b = v->runs[1], c = v->runs[2];
  if (a == 0) {
    BC_COPY(inwards ? base + at : flat, inwards ? flat : base + at, bytes);
    return;
  }
  uint32_t k = at / unit % c, j = at / unit / c % b, i = at / unit / c / b;
  for (uint32_t done = 0; done < bytes; done += unit) {
    unsigned char *const place = base + (size_t)((k * b + j) * a + i) * unit;
    unsigned char *const to = inwards ? place : flat + done;
    const unsigned char *const from = inwards ? flat + done : place;
    BC_COPY(to, from, 4);
    if (unit == 8) BC_COPY(to + 4, from + 4, 4);
    if (++k < c) continue;
    k = 0;
    if (++j < b) continue;
    j = 0;
    ++i;
  }
}

BC_RUNTIME bc_status bc_state_get(const bc_layout *layout, const void *state, uint32_t roles,
                                  void *flat) {
  unsigned char *to = (unsigned char *)flat;
  if (flat == NULL) return BC_ERROR_NULL;
  const bc_status status = bc_state_check(layout, state);
  if (status != BC_OK) return status;
  for (uint32_t i = 0; i < layout->count; ++i) {
    const bc_variable *const v = &bc_variables(layout)[i];
    if ((roles >> v->role & 1u) == 0) continue;
    bc_state_move(v, (void *)(uintptr_t)state, 0, v->bytes, to, 0);
    to += v->bytes;
  }
  return BC_OK;
}

BC_RUNTIME bc_status bc_state_set(const bc_layout *layout, void *state, uint32_t roles,
                                  const void *flat) {
  const unsigned char *from = (const unsigned char *)flat;
  if (flat == NULL) return BC_ERROR_NULL;
  const bc_status status = bc_state_check(layout, state);
  if (status != BC_OK) return status;
  for (uint32_t i = 0; i < layout->count; ++i) {
    const bc_variable *const v = &bc_variables(layout)[i];
    if ((roles >> v->role & 1u) == 0) continue;
    bc_state_move(v, state, 0, v->bytes, (void *)(uintptr_t)from, 1);
    from += v->bytes;
  }
  return BC_OK;
}
