/* Trains digits_cnn, compiled as net, for a few steps and prints whatever it computes, bit by bit:
 * machines and compilers agree, or differ in a line. C99. */
#include <stdio.h>
#include <string.h>

#include "net.h"

enum { STEPS = 20 };

static unsigned char state_memory[NET_STATE_BYTES + NET_STATE_ALIGN];
static unsigned char arena_memory[NET_ARENA_BYTES + NET_ARENA_ALIGN];

static void *aligned(unsigned char *memory, uintptr_t alignment) {
  return memory + (alignment - (uintptr_t)memory % alignment) % alignment;
}

static void print_bits(const char *what, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  printf("%s %08lx\n", what, (unsigned long)bits);
}

static unsigned char checkpoint[2 * NET_STATE_BYTES];

/* At the place in the checkpoint that `user` counts. */
static bc_status write_bytes(void *user, const void *bytes, size_t count) {
  size_t *at = user;
  if (count > sizeof checkpoint - *at) return BC_ERROR_IO;
  memcpy(checkpoint + *at, bytes, count);
  *at += count;
  return BC_OK;
}

static bc_status read_bytes(void *user, void *bytes, size_t count) {
  size_t *at = user;
  memcpy(bytes, checkpoint + *at, count);
  *at += count;
  return BC_OK;
}

/* Through a checkpoint, whose FNV-1a hash is printed. */
static bc_status save_and_load(void *state) {
  size_t written = 0, read = 0;
  uint32_t hash = 0x811c9dc5u;
  const bc_writer writer = {&written, write_bytes};
  const bc_reader reader = {&read, read_bytes};
  const bc_status status = net_save(state, &writer);
  if (status != BC_OK) return status;
  for (size_t i = 0; i < written; ++i) hash = (hash ^ checkpoint[i]) * 0x01000193u;
  printf("checkpoint %08lx\n", (unsigned long)hash);
  memset(state, 0, NET_STATE_BYTES);
  return net_load(state, &reader);
}

int main(void) {
  static float image[NET_TRAIN_STEP_IN_IMAGE_ELEMENTS];
  static int32_t target[NET_TRAIN_STEP_IN_TARGET_ELEMENTS];
  static float logits[NET_RUN_OUT_LOGITS_ELEMENTS], loss[1];
  const net_train_step_inputs in = {image, target};
  const net_train_step_outputs out = {loss, NULL};
  const net_run_inputs run_in = {image};
  const net_run_outputs run_out = {logits};
  void *const state = aligned(state_memory, NET_STATE_ALIGN);
  void *const arena = aligned(arena_memory, NET_ARENA_ALIGN);
  uint32_t random = 1;
  bc_status status = net_init(state, NET_STATE_BYTES, 1);
  for (int step = 0; step < STEPS && status == BC_OK; ++step) {
    for (size_t i = 0; i < sizeof image / sizeof image[0]; ++i) {
      random = random * 1664525u + 1013904223u;
      image[i] = (float)(random >> 8) / 16777216.0f;
    }
    target[0] = step % 10;
    if (step == STEPS / 2) status = save_and_load(state);
    if (step == STEPS / 2 + 1) status = net_set_learning_rate(state, 0.25f);
    if (status != BC_OK) break;
    status = net_train_step(state, &in, &out, arena, NET_ARENA_BYTES, NULL);
    print_bits("loss", loss[0]);
  }
  if (status == BC_OK) {
    status = net_run(state, &run_in, &run_out, arena, NET_ARENA_BYTES, NULL);
  }
  for (size_t i = 0; i < sizeof logits / sizeof logits[0]; ++i) print_bits("logit", logits[i]);
  printf("status %d\n", (int)status);
  return 0;
}
