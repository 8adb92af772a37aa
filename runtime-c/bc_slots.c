/* SPDX-License-Identifier: 0BSD */
/* Two slots in turn. A slot: "BCSL", u32 sequence number, u32 bytes of the checkpoint, u32 CRC-32
 * of the checkpoint, u32 CRC-32 of these 16 bytes, the checkpoint. The head is written when all
 * else is safe, so a slot is either complete or no slot at all. */
#include "bc_slots.h"

#include "bc_bytes.h"

#define BC_SLOT_MAGIC 0x4c534342u /* "BCSL" */
#define BC_SLOT_CHUNK 64u

typedef struct bc_slot {
  int is_complete;
  uint32_t sequence;
  uint32_t bytes;
} bc_slot;

static uint32_t bc_get32(const unsigned char *from) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= (uint32_t)from[i] << (8 * i);
  return value;
}

/* Unreadable counts as empty: a save must still find a place. */
static bc_slot bc_slot_inspect(const bc_slots *slots, uint32_t number) {
  unsigned char block[BC_SLOT_CHUNK];
  bc_slot slot = {0, 0, 0};
  uint32_t crc = 0;
  if (slots->slot_bytes < BC_SLOT_HEAD_BYTES) return slot;
  if (slots->read(slots->user, number, 0, block, BC_SLOT_HEAD_BYTES) != BC_OK) return slot;
  if (bc_get32(block) != BC_SLOT_MAGIC || bc_get32(block + 16) != bc_crc32(0, block, 16)) {
    return slot;
  }
  slot.sequence = bc_get32(block + 4);
  slot.bytes = bc_get32(block + 8);
  const uint32_t expected = bc_get32(block + 12);
  if (slot.bytes > slots->slot_bytes - BC_SLOT_HEAD_BYTES) return slot;
  for (uint32_t at = 0; at < slot.bytes;) {
    const uint32_t left = slot.bytes - at;
    const uint32_t count = left < BC_SLOT_CHUNK ? left : BC_SLOT_CHUNK;
    const size_t offset = (size_t)BC_SLOT_HEAD_BYTES + at;
    if (slots->read(slots->user, number, offset, block, count) != BC_OK) return slot;
    crc = bc_crc32(crc, block, count);
    at += count;
  }
  slot.is_complete = crc == expected;
  return slot;
}

/* The number of the slot with the newest complete checkpoint; -1: there is none. Sequence numbers
 * may wrap. */
static int bc_slots_newest(const bc_slot found[2]) {
  if (!found[0].is_complete) return found[1].is_complete ? 1 : -1;
  if (!found[1].is_complete) return 0;
  return found[1].sequence - found[0].sequence < UINT32_C(0x80000000) ? 1 : 0;
}

typedef struct bc_slot_stream {
  const bc_slots *slots;
  uint32_t slot;
  uint32_t crc;
  size_t at, end;
} bc_slot_stream;

static bc_status bc_slot_write(void *user, const void *bytes, size_t count) {
  bc_slot_stream *const stream = (bc_slot_stream *)user;
  const bc_slots *const slots = stream->slots;
  if (count > stream->end - stream->at) return BC_ERROR_IO;
  stream->crc = bc_crc32(stream->crc, bytes, count);
  const bc_status status = slots->write(slots->user, stream->slot, stream->at, bytes, count);
  stream->at += count;
  return status;
}

static bc_status bc_slot_read(void *user, void *bytes, size_t count) {
  bc_slot_stream *const stream = (bc_slot_stream *)user;
  const bc_slots *const slots = stream->slots;
  if (count > stream->end - stream->at) return BC_ERROR_IO;
  const bc_status status = slots->read(slots->user, stream->slot, stream->at, bytes, count);
  stream->at += count;
  return status;
}

static int bc_slots_are_usable(const bc_slots *slots) {
  return slots != NULL && slots->read != NULL && slots->write != NULL;
}

static bc_status bc_slot_sync(const bc_slots *slots, uint32_t slot) {
  return slots->sync == NULL || slots->sync(slots->user, slot) == BC_OK ? BC_OK : BC_ERROR_IO;
}

/* Makes sure that what the slot held counts no longer, before any of it changes. */
static bc_status bc_slot_clear(const bc_slots *slots, uint32_t slot) {
  static const unsigned char nothing[BC_SLOT_HEAD_BYTES] = {0};
  bc_status status;
  if (slots->erase != NULL) {
    status = slots->erase(slots->user, slot);
  } else {
    status = slots->write(slots->user, slot, 0, nothing, sizeof nothing);
  }
  return status == BC_OK ? bc_slot_sync(slots, slot) : BC_ERROR_IO;
}

bc_status bc_slots_save(const bc_slots *slots, bc_save_function save, const void *state) {
  unsigned char head[BC_SLOT_HEAD_BYTES];
  if (!bc_slots_are_usable(slots) || save == NULL) return BC_ERROR_NULL;
  if (slots->slot_bytes < BC_SLOT_HEAD_BYTES) return BC_ERROR_IO;
  const bc_slot found[2] = {bc_slot_inspect(slots, 0), bc_slot_inspect(slots, 1)};
  const int newest = bc_slots_newest(found);
  const uint32_t slot = newest == 0 ? 1 : 0;
  bc_slot_stream stream = {slots, slot, 0, BC_SLOT_HEAD_BYTES, slots->slot_bytes};
  const bc_writer writer = {&stream, bc_slot_write};
  bc_status status = bc_slot_clear(slots, slot);
  if (status == BC_OK) status = save(state, &writer);
  if (status == BC_OK) status = bc_slot_sync(slots, slot);
  if (status != BC_OK) return status;
  bc_put32(head, BC_SLOT_MAGIC);
  bc_put32(head + 4, newest < 0 ? 1 : found[newest].sequence + 1);
  bc_put32(head + 8, (uint32_t)(stream.at - BC_SLOT_HEAD_BYTES));
  bc_put32(head + 12, stream.crc);
  bc_put32(head + 16, bc_crc32(0, head, 16));
  if (slots->write(slots->user, slot, 0, head, sizeof head) != BC_OK) return BC_ERROR_IO;
  return bc_slot_sync(slots, slot);
}

bc_status bc_slots_load(const bc_slots *slots, bc_load_function load, void *state) {
  if (!bc_slots_are_usable(slots) || load == NULL) return BC_ERROR_NULL;
  bc_slot found[2] = {bc_slot_inspect(slots, 0), bc_slot_inspect(slots, 1)};
  bc_status status = BC_ERROR_CHECKPOINT;
  for (int turn = 0; turn < 2; ++turn) {
    const int newest = bc_slots_newest(found);
    if (newest < 0) break;
    const uint32_t slot = (uint32_t)newest;
    bc_slot_stream stream = {slots, slot, 0, BC_SLOT_HEAD_BYTES,
                             (size_t)BC_SLOT_HEAD_BYTES + found[newest].bytes};
    const bc_reader reader = {&stream, bc_slot_read};
    status = load(state, &reader);
    if (status != BC_ERROR_CHECKPOINT && status != BC_ERROR_IO) break;
    found[newest].is_complete = 0;
  }
  return status;
}
