/* SPDX-License-Identifier: 0BSD */
/* Checkpoints in two slots of flash, EEPROM or a file, written in turn: whenever the power fails,
 * one slot holds a complete checkpoint, the newest or the one before. Compile bc_slots.c along. */
#ifndef BC_SLOTS_H
#define BC_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#ifndef BC_TYPES_H
#include "bc_types.h" /* or include a generated header first: it holds the same types */
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a slot that come before the checkpoint. */
#define BC_SLOT_HEAD_BYTES 20

/* Where the slots are. `slot` is 0 or 1, offsets count from the slot's start. Each function answers
 * BC_OK or anything else. Bytes of a slot are written in order, but for its first
 * BC_SLOT_HEAD_BYTES, which are written last; none twice after an erase. */
typedef struct bc_slots {
  void *user;
  size_t slot_bytes; /* that fit in each slot */
  bc_status (*read)(void *user, uint32_t slot, size_t offset, void *bytes, size_t count);
  bc_status (*write)(void *user, uint32_t slot, size_t offset, const void *bytes, size_t count);
  /* Called before a slot is written; a page of flash must be erased by it. May be null. */
  bc_status (*erase)(void *user, uint32_t slot);
  /* Returns when all that was written will survive a loss of power. Null: writing does so. */
  bc_status (*sync)(void *user, uint32_t slot);
} bc_slots;

/* <name>_save and <name>_load of a training library. */
typedef bc_status (*bc_save_function)(const void *state, const bc_writer *writer);
typedef bc_status (*bc_load_function)(void *state, const bc_reader *reader);

/* Saves into the slot that holds the older checkpoint, or none. BC_ERROR_IO when a function of
 * `slots` fails or the checkpoint does not fit; the other slot is then as it was. */
bc_status bc_slots_save(const bc_slots *slots, bc_save_function save, const void *state);

/* Loads the newest complete checkpoint; the older one if the model refuses the newest.
 * BC_ERROR_CHECKPOINT when no slot holds one. */
bc_status bc_slots_load(const bc_slots *slots, bc_load_function load, void *state);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* BC_SLOTS_H */
