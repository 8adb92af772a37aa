/* SPDX-License-Identifier: 0BSD */
/* Saving and loading a state (format: bc_runtime.h), byte after byte through the caller's
 * functions. */
#include "bc_bytes.h"
#include "bc_runtime.h"

#define BC_CHECKPOINT_MAGIC 0x50434342u /* "BCCP" */
#define BC_CHECKPOINT_VERSION 1u
#define BC_CHECKPOINT_HEAD 24u
#define BC_CHECKPOINT_RECORD 20u
#define BC_CHECKPOINT_PART 128u /* bytes of a variable that the state has in another order */

static inline int bc_is_big_endian(void) {
  const uint32_t one = 1;
  unsigned char first;
  BC_COPY(&first, &one, 1);
  return first == 0;
}

/* Are the bytes of a variable in a checkpoint those of the state, in their order? */
static inline int bc_checkpoint_is_plain(const bc_variable *v) {
  return v->runs[0] == 0 && !bc_is_big_endian();
}

/* Elements as this machine has them into little-endian ones, or back. */
static inline void bc_checkpoint_turn(const bc_variable *v, unsigned char *bytes, uint32_t count) {
  const uint32_t unit = v->element & 15u;
  if (!bc_is_big_endian()) return;
  for (uint32_t at = 0; at < count; at += unit) {
    for (uint32_t low = at, high = at + unit - 1; low < high; ++low, --high) {
      const unsigned char byte = bytes[low];
      bytes[low] = bytes[high];
      bytes[high] = byte;
    }
  }
}

static void bc_checkpoint_head(const bc_layout *layout, unsigned char *to) {
  bc_put32(to, BC_CHECKPOINT_MAGIC);
  bc_put32(to + 4, BC_CHECKPOINT_VERSION);
  bc_put64(to + 8, layout->hash);
  bc_put32(to + 16, layout->count);
  bc_put32(to + 20, 0);
}

static void bc_checkpoint_record(const bc_variable *v, unsigned char *to) {
  bc_put64(to, v->name);
  bc_put32(to + 8, v->bytes);
  bc_put32(to + 12, v->start);
  to[16] = (unsigned char)v->axis;
  to[17] = v->role;
  to[18] = v->element;
  to[19] = 0;
}

static bc_status bc_checkpoint_put(const bc_writer *writer, const void *bytes, size_t count,
                                   uint32_t *crc) {
  *crc = bc_crc32(*crc, bytes, count);
  return writer->write(writer->user, bytes, count) == BC_OK ? BC_OK : BC_ERROR_IO;
}

/* The elements of a variable as the model has them. */
static bc_status bc_checkpoint_put_values(const bc_writer *writer, const bc_variable *v,
                                          const void *state, uint32_t *crc) {
  unsigned char part[BC_CHECKPOINT_PART];
  if (bc_checkpoint_is_plain(v)) {
    return bc_checkpoint_put(writer, (const unsigned char *)state + v->offset, v->bytes, crc);
  }
  for (uint32_t at = 0; at < v->bytes; at += BC_CHECKPOINT_PART) {
    const uint32_t left = v->bytes - at;
    const uint32_t count = left < BC_CHECKPOINT_PART ? left : BC_CHECKPOINT_PART;
    bc_state_move(v, (void *)(uintptr_t)state, at, count, part, 0);
    bc_checkpoint_turn(v, part, count);
    const bc_status status = bc_checkpoint_put(writer, part, count, crc);
    if (status != BC_OK) return status;
  }
  return BC_OK;
}

BC_RUNTIME bc_status bc_state_save(const bc_layout *layout, const void *state,
                                   const bc_writer *writer) {
  unsigned char block[BC_CHECKPOINT_HEAD];
  uint32_t crc = 0;
  if (writer == NULL || writer->write == NULL) return BC_ERROR_NULL;
  bc_status status = bc_state_check(layout, state);
  if (status != BC_OK) return status;
  bc_checkpoint_head(layout, block);
  status = bc_checkpoint_put(writer, block, BC_CHECKPOINT_HEAD, &crc);
  for (uint32_t i = 0; i < layout->count && status == BC_OK; ++i) {
    const bc_variable *const v = &bc_variables(layout)[i];
    bc_checkpoint_record(v, block);
    status = bc_checkpoint_put(writer, block, BC_CHECKPOINT_RECORD, &crc);
    if (status == BC_OK && v->bytes > 0) {
      status = bc_checkpoint_put_values(writer, v, state, &crc);
    }
  }
  if (status != BC_OK) return status;
  bc_put32(block, crc);
  return bc_checkpoint_put(writer, block, 4, &crc);
}

/* Reads a block that must hold exactly `expected`. */
static bc_status bc_checkpoint_match(const bc_reader *reader, const unsigned char *expected,
                                     size_t count, uint32_t *crc) {
  unsigned char block[BC_CHECKPOINT_HEAD];
  if (reader->read(reader->user, block, count) != BC_OK) return BC_ERROR_IO;
  for (size_t i = 0; i < count; ++i) {
    if (block[i] != expected[i]) return BC_ERROR_CHECKPOINT;
  }
  *crc = bc_crc32(*crc, block, count);
  return BC_OK;
}

static bc_status bc_checkpoint_take_values(const bc_reader *reader, const bc_variable *v,
                                           void *state, uint32_t *crc) {
  unsigned char part[BC_CHECKPOINT_PART];
  if (bc_checkpoint_is_plain(v)) {
    unsigned char *const values = (unsigned char *)state + v->offset;
    if (reader->read(reader->user, values, v->bytes) != BC_OK) return BC_ERROR_IO;
    *crc = bc_crc32(*crc, values, v->bytes);
    return BC_OK;
  }
  for (uint32_t at = 0; at < v->bytes; at += BC_CHECKPOINT_PART) {
    const uint32_t left = v->bytes - at;
    const uint32_t count = left < BC_CHECKPOINT_PART ? left : BC_CHECKPOINT_PART;
    if (reader->read(reader->user, part, count) != BC_OK) return BC_ERROR_IO;
    *crc = bc_crc32(*crc, part, count);
    bc_checkpoint_turn(v, part, count);
    bc_state_move(v, state, at, count, part, 1);
  }
  return BC_OK;
}

BC_RUNTIME bc_status bc_state_load(const bc_layout *layout, void *state, const bc_reader *reader) {
  unsigned char block[BC_CHECKPOINT_HEAD];
  uint32_t crc = 0, unused = 0;
  bc_status status = bc_state_check_place(layout, state);
  if (status != BC_OK) return status;
  if (reader == NULL || reader->read == NULL) return BC_ERROR_NULL;
  BC_FILL(state, 0, layout->bytes); /* uninitialised until the last byte has been checked */
  bc_checkpoint_head(layout, block);
  status = bc_checkpoint_match(reader, block, BC_CHECKPOINT_HEAD, &crc);
  for (uint32_t i = 0; i < layout->count && status == BC_OK; ++i) {
    const bc_variable *const v = &bc_variables(layout)[i];
    bc_checkpoint_record(v, block);
    status = bc_checkpoint_match(reader, block, BC_CHECKPOINT_RECORD, &crc);
    if (status != BC_OK || v->bytes == 0) continue;
    status = bc_checkpoint_take_values(reader, v, state, &crc);
  }
  if (status != BC_OK) return status;
  bc_put32(block, crc);
  status = bc_checkpoint_match(reader, block, 4, &unused);
  if (status == BC_OK) bc_state_open(layout, state, 1);
  return status;
}
