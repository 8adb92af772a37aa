/* The runtime of training libraries on a made-up model: damaged checkpoints are refused, and two
 * slots survive a loss of power at any byte. Built with sanitizers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bc_bytes.h"
#include "bc_runtime.h"
#include "bc_slots.h"

static int faults;

#define EXPECT(condition)                                        \
  do {                                                           \
    if (!(condition)) {                                          \
      faults++;                                                  \
      printf("%s:%d: not %s\n", __FILE__, __LINE__, #condition); \
    }                                                            \
  } while (0)

/* --- a model ---------------------------------------------------------------------------------- */

enum { kVariables = 6, kStateBytes = 1024, kSaved = 4096 };

static const struct {
  float w[90];
  double seen;
} initial = {{1.5f, -2.5f}, 0.125};

static const struct {
  bc_layout layout;
  bc_variable variables[kVariables];
} model = {{0x0123456789abcdef, kVariables, kStateBytes, 16, 0},
           {{11, 32, 360, 5, 1, BC_ROLE_PARAMETER, 0x34, 0, 0, {3, 5, 6}},
            {12, 392, 8, 0, -1, BC_ROLE_STATISTIC, 0x38, 0, 360, {0, 0, 0}},
            {13, 400, 360, 0, -1, BC_ROLE_SLOT, 0x38, 0, BC_ZEROS, {5, 1, 9}},
            {14, 768, 0, 0, -1, BC_ROLE_SLOT, 0x34, 0, BC_ZEROS, {0, 0, 0}}, /* of no elements */
            {15, 800, 8, 0, -1, BC_ROLE_GENERATOR, 0x14, 0, BC_ZEROS, {0, 0, 0}},
            {16, 808, 4, 0, -1, BC_ROLE_RATE, 0x34, 0, BC_ZEROS, {0, 0, 0}}}};
static const bc_layout *const layout = (const bc_layout *)(const void *)&model;

static uint32_t seed = 1;

static uint32_t random_below(uint32_t limit) {
  seed = seed * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)seed * limit >> 32);
}

typedef struct {
  _Alignas(16) unsigned char bytes[kStateBytes];
} State;

static void make_state(State *state) {
  EXPECT(bc_state_init(layout, &initial, state, sizeof *state, 99) == BC_OK);
  for (int i = 0; i < kVariables; ++i) {
    for (uint32_t k = 0; k < model.variables[i].bytes; ++k) {
      state->bytes[model.variables[i].offset + k] = (unsigned char)random_below(256);
    }
  }
}

static int is_initialised(const State *state) { return bc_state_check(layout, state) == BC_OK; }

/* --- checkpoints ------------------------------------------------------------------------------ */

typedef struct {
  unsigned char *bytes; /* on the heap and of this size, so that a sanitizer sees its end */
  size_t count, at;
} Stream;

static bc_status stream_write(void *user, const void *bytes, size_t count) {
  Stream *stream = user;
  stream->bytes = realloc(stream->bytes, stream->count + count);
  memcpy(stream->bytes + stream->count, bytes, count);
  stream->count += count;
  return BC_OK;
}

static bc_status stream_read(void *user, void *bytes, size_t count) {
  Stream *stream = user;
  if (count > stream->count - stream->at) return BC_ERROR_VALUE;
  memcpy(bytes, stream->bytes + stream->at, count);
  stream->at += count;
  return BC_OK;
}

static Stream saved_state(const State *state) {
  Stream stream = {0};
  const bc_writer writer = {&stream, stream_write};
  EXPECT(bc_state_save(layout, state, &writer) == BC_OK);
  return stream;
}

static bc_status load(State *state, const unsigned char *bytes, size_t count) {
  Stream stream = {malloc(count + 1), count, 0};
  memcpy(stream.bytes, bytes, count);
  const bc_reader reader = {&stream, stream_read};
  const bc_status status = bc_state_load(layout, state, &reader);
  free(stream.bytes);
  return status;
}

static void mend_checksum(unsigned char *bytes, size_t count) {
  bc_put32(bytes + count - 4, bc_crc32(0, bytes, count - 4));
}

/* Changes a checkpoint in one of seven ways; returns how many bytes it has then. */
static size_t damage(unsigned char *bytes, size_t count, int kind) {
  const uint32_t at = random_below((uint32_t)count);
  switch (kind) {
    case 0: /* cut off */
      return at;
    case 1: /* a bit */
      bytes[at] ^= (unsigned char)(1u << random_below(8));
      return count;
    case 2: /* a byte */
      bytes[at] ^= (unsigned char)(1 + random_below(255));
      return count;
    case 3: /* a byte is missing */
      memmove(bytes + at, bytes + at + 1, count - at - 1);
      return count - 1;
    case 4: /* another model's, complete */
      bytes[8 + random_below(8)] ^= (unsigned char)(1 + random_below(255));
      mend_checksum(bytes, count);
      return count;
    case 5: /* another variable where the second is due, complete */
      bytes[24 + 20 + 360 + random_below(19)] ^= (unsigned char)(1 + random_below(255));
      mend_checksum(bytes, count);
      return count;
    default: /* another version, count or magic, complete */
      bytes[random_below(2) == 0 ? random_below(8) : 16 + random_below(8)] ^=
          (unsigned char)(1 + random_below(255));
      mend_checksum(bytes, count);
      return count;
  }
}

static void check_damage(void) {
  State state, other;
  unsigned char bytes[kSaved];
  int refused = 0;
  make_state(&state);
  Stream good = saved_state(&state);
  EXPECT(load(&other, good.bytes, good.count) == BC_OK);
  EXPECT(memcmp(other.bytes, state.bytes, sizeof state) == 0);
  for (int i = 0; i < 1000; ++i) {
    memcpy(bytes, good.bytes, good.count);
    const size_t count = damage(bytes, good.count, i % 7);
    if (count == good.count && memcmp(bytes, good.bytes, count) == 0) continue;
    make_state(&other);
    const bc_status status = load(&other, bytes, count);
    EXPECT(status == BC_ERROR_CHECKPOINT || status == BC_ERROR_IO);
    EXPECT(!is_initialised(&other));
    refused++;
  }
  printf("%d damaged checkpoints refused\n", refused);
  EXPECT(refused > 950);
  EXPECT(load(&other, good.bytes, good.count) == BC_OK);
  EXPECT(memcmp(other.bytes, state.bytes, sizeof state) == 0);
  free(good.bytes);
}

/* --- the order of the model ------------------------------------------------------------------ */

/* Byte `b` of element (i, j, k) of the model, as the state has it the other way round. */
static unsigned char turned(const State *state, const bc_variable *v, uint32_t unit, uint32_t at,
                            uint32_t b) {
  const uint32_t k = at % v->runs[2], j = at / v->runs[2] % v->runs[1],
                 i = at / v->runs[2] / v->runs[1];
  return state->bytes[v->offset + ((k * v->runs[1] + j) * v->runs[0] + i) * unit + b];
}

/* Flat vectors and checkpoints have the model's order, whatever the state's is. */
static void check_order(void) {
  State state, other;
  unsigned char flat[368], slots[360];
  make_state(&state);
  const bc_variable *const w = &model.variables[0], *const slot = &model.variables[2];
  EXPECT(bc_state_get(layout, &state, BC_ROLES_PARAMETERS, flat) == BC_OK);
  for (uint32_t n = 0; n < 360; ++n) EXPECT(flat[n] == turned(&state, w, 4, n / 4, n % 4));
  EXPECT(memcmp(flat + 360, state.bytes + 392, 8) == 0);
  EXPECT(bc_state_get(layout, &state, 1u << BC_ROLE_SLOT, slots) == BC_OK);
  for (uint32_t n = 0; n < 360; ++n) EXPECT(slots[n] == turned(&state, slot, 8, n / 8, n % 8));
  Stream saved = saved_state(&state);
  EXPECT(memcmp(saved.bytes + 24 + 20, flat, 360) == 0);
  EXPECT(memcmp(saved.bytes + 24 + 20 + 360 + 20 + 8 + 20, slots, 360) == 0);
  free(saved.bytes);
  other = state;
  memset(other.bytes + 32, 0, 360 + 8 + 360);
  EXPECT(bc_state_set(layout, &other, BC_ROLES_PARAMETERS, flat) == BC_OK);
  EXPECT(bc_state_set(layout, &other, 1u << BC_ROLE_SLOT, slots) == BC_OK);
  EXPECT(memcmp(other.bytes, state.bytes, sizeof state) == 0);
}

/* --- two slots ------------------------------------------------------------------------------- */

/* Memory that loses power after so many bytes have changed. */
typedef struct {
  unsigned char slots[2][2048];
  unsigned char fresh[2][2048]; /* may be written: erased and not written since */
  int is_flash;                 /* bits only go from 1 to 0 between erasures */
  long budget;                  /* of bytes; below 0: the power is off */
} Memory;

static bc_status memory_read(void *user, uint32_t slot, size_t offset, void *bytes, size_t count) {
  Memory *memory = user;
  if (memory->budget < 0) return BC_ERROR_VALUE;
  memcpy(bytes, memory->slots[slot] + offset, count);
  return BC_OK;
}

static bc_status memory_write(void *user, uint32_t slot, size_t offset, const void *bytes,
                              size_t count) {
  Memory *memory = user;
  for (size_t i = 0; i < count; ++i) {
    if (memory->budget-- <= 0) {
      memory->budget = -1;
      return BC_ERROR_VALUE;
    }
    if (memory->is_flash) EXPECT(memory->fresh[slot][offset + i]);
    memory->fresh[slot][offset + i] = 0;
    memory->slots[slot][offset + i] = ((const unsigned char *)bytes)[i];
  }
  return BC_OK;
}

static bc_status memory_erase(void *user, uint32_t slot) {
  Memory *memory = user;
  for (size_t i = 0; i < sizeof memory->slots[slot]; ++i) {
    if (memory->budget-- <= 0) {
      memory->budget = -1;
      return BC_ERROR_VALUE;
    }
    memory->slots[slot][i] = 0xff;
    memory->fresh[slot][i] = 1;
  }
  return BC_OK;
}

static bc_status memory_sync(void *user, uint32_t slot) {
  (void)slot;
  return ((Memory *)user)->budget < 0 ? BC_ERROR_VALUE : BC_OK;
}

static bc_status model_save(const void *state, const bc_writer *writer) {
  return bc_state_save(layout, state, writer);
}

static bc_status model_load(void *state, const bc_reader *reader) {
  return bc_state_load(layout, state, reader);
}

static bc_slots slots_of(Memory *memory) {
  const bc_slots slots = {memory,
                          sizeof memory->slots[0],
                          memory_read,
                          memory_write,
                          memory->is_flash ? memory_erase : 0,
                          memory_sync};
  return slots;
}

/* Saves states one after the other until the power fails, then looks what is there. */
static void check_kill(int is_flash, long budget) {
  static Memory memory;
  State last = {{0}}, next, found;
  long completed = 0;
  memset(&memory, 0, sizeof memory);
  memory.is_flash = is_flash;
  memory.budget = budget;
  const bc_slots slots = slots_of(&memory);
  for (;;) {
    make_state(&next);
    if (bc_slots_save(&slots, model_save, &next) != BC_OK) break;
    last = next;
    completed++;
  }
  EXPECT(memory.budget < 0);
  memory.budget = 1L << 30; /* the power is back */
  const bc_status status = bc_slots_load(&slots, model_load, &found);
  if (completed == 0 && status != BC_OK) {
    EXPECT(status == BC_ERROR_CHECKPOINT);
  } else {
    EXPECT(status == BC_OK);
    EXPECT(memcmp(found.bytes, last.bytes, sizeof found) == 0 ||
           memcmp(found.bytes, next.bytes, sizeof found) == 0);
  }
  /* Saving goes on as if nothing had happened. */
  for (int i = 0; i < 3; ++i) {
    make_state(&next);
    EXPECT(bc_slots_save(&slots, model_save, &next) == BC_OK);
    EXPECT(bc_slots_load(&slots, model_load, &found) == BC_OK);
    EXPECT(memcmp(found.bytes, next.bytes, sizeof found) == 0);
  }
}

static void check_slots(void) {
  static Memory memory;
  State state, found;
  for (int i = 0; i < 100; ++i) {
    check_kill(0, (long)random_below(6000));
    check_kill(1, (long)random_below(20000));
  }
  /* The last bytes of a save, one after the other: the head, where slots change. */
  for (long budget = 2 * 900; budget < 2 * 900 + 60; ++budget) check_kill(0, budget);
  memset(&memory, 0, sizeof memory);
  memory.budget = 1L << 30;
  bc_slots slots = slots_of(&memory);
  EXPECT(bc_slots_load(&slots, model_load, &found) == BC_ERROR_CHECKPOINT);
  make_state(&state);
  slots.slot_bytes = 100;
  EXPECT(bc_slots_save(&slots, model_save, &state) == BC_ERROR_IO);
  slots.slot_bytes = 10;
  EXPECT(bc_slots_save(&slots, model_save, &state) == BC_ERROR_IO);
  EXPECT(bc_slots_save(0, model_save, &state) == BC_ERROR_NULL);
  EXPECT(bc_slots_load(&slots, 0, &state) == BC_ERROR_NULL);
  /* A newest slot that the model refuses gives way to the older one. */
  slots.slot_bytes = sizeof memory.slots[0];
  EXPECT(bc_slots_save(&slots, model_save, &state) == BC_OK);
  EXPECT(bc_slots_save(&slots, model_save, &state) == BC_OK);
  unsigned char *const newest = memory.slots[1];
  newest[BC_SLOT_HEAD_BYTES + 8] ^= 1; /* the model's hash, in a slot that is complete */
  const uint32_t bytes = (uint32_t)newest[8] | (uint32_t)newest[9] << 8;
  bc_put32(newest + 12, bc_crc32(0, newest + BC_SLOT_HEAD_BYTES, bytes));
  bc_put32(newest + 16, bc_crc32(0, newest, 16));
  EXPECT(bc_slots_load(&slots, model_load, &found) == BC_OK);
  EXPECT(memcmp(found.bytes, state.bytes, sizeof found) == 0);
}

/* The newest checkpoint has decayed: the next save must spare the older one, which is the last. */
static void check_decay(void) {
  static Memory memory;
  State first, second, found;
  memset(&memory, 0, sizeof memory);
  memory.budget = 1L << 30;
  const bc_slots slots = slots_of(&memory);
  make_state(&first);
  make_state(&second);
  EXPECT(bc_slots_save(&slots, model_save, &first) == BC_OK);
  EXPECT(bc_slots_save(&slots, model_save, &second) == BC_OK);
  memory.slots[1][BC_SLOT_HEAD_BYTES + 100] ^= 4;
  memory.budget = 200;
  EXPECT(bc_slots_save(&slots, model_save, &second) == BC_ERROR_IO);
  memory.budget = 1L << 30;
  EXPECT(bc_slots_load(&slots, model_load, &found) == BC_OK);
  EXPECT(memcmp(found.bytes, first.bytes, sizeof found) == 0);
}

int main(void) {
  State state;
  EXPECT(bc_crc32(0, "123456789", 9) == 0xcbf43926u);
  EXPECT(bc_state_init(layout, &initial, &state, sizeof state, 0x0807060504030201u) == BC_OK);
  EXPECT(memcmp(state.bytes + 32, initial.w, sizeof initial.w) == 0);
  EXPECT(memcmp(state.bytes + 392, &initial.seen, 8) == 0);
  EXPECT(state.bytes[800] == 1 && state.bytes[807] == 8 && state.bytes[400] == 0);
  check_order();
  check_damage();
  check_slots();
  check_decay();
  printf("%d faults\n", faults);
  return faults != 0;
}
