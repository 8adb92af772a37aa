/* SPDX-License-Identifier: 0BSD */
#include "learn.h"

_Alignas(NET_ARENA_ALIGN) unsigned char learn_arena[NET_ARENA_BYTES + kGuard];
_Alignas(NET_STATE_ALIGN) unsigned char learn_state[NET_STATE_BYTES + kGuard];

/* A batch; static, for the stack to hold little more than the library's own frames. */
static float images[kBatch * kPixels];
static int32_t labels[kBatch];

static void load(const unsigned char *record, int place) {
  for (int i = 0; i < kPixels; ++i) images[place * kPixels + i] = (float)record[i] / 16.0f;
  labels[place] = record[kPixels];
}

/* Output `index` of splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t random_bits(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static uint64_t hash(uint64_t value, const char *text) { /* FNV-1a */
  while (*text != 0) value = (value ^ (unsigned char)*text++) * 0x100000001B3u;
  return value;
}

/* The permutation "digits/epoch/<epoch>" of 0 … count - 1: Fisher and Yates from the end. Every
 * machine, and the references of the tests, see the images in this order. */
static void shuffle(uint16_t *order, int count, int epoch) {
  char number[4] = {0};
  if (epoch >= 10) number[0] = (char)('0' + epoch / 10 % 10);
  number[epoch >= 10] = (char)('0' + epoch % 10);
  const uint64_t seed = hash(hash(0xCBF29CE484222325u, "digits/epoch/"), number);
  for (int i = 0; i < count; ++i) order[i] = (uint16_t)i;
  uint64_t drawn = 0;
  for (int i = count - 1; i > 0; --i) {
    const int j = (int)(random_bits(seed, drawn++) % (uint64_t)(i + 1));
    const uint16_t other = order[j];
    order[j] = order[i];
    order[i] = other;
  }
}

bc_status learn_start(void) { return net_init(learn_state, NET_STATE_BYTES, 0); }

bc_status learn_epoch(Images train, int epoch, void (*step)(float loss), float *loss) {
  static uint16_t order[kMaxImages];
  if (train.count < kBatch || train.count > kMaxImages) return BC_ERROR_VALUE;
  shuffle(order, train.count, epoch);
  const int steps = train.count / kBatch;
  float sum = 0, value;
  const net_train_step_inputs in = {.image = images, .target = labels};
  const net_train_step_outputs out = {.loss = &value};
  for (int i = 0; i < steps; ++i) {
    for (int k = 0; k < kBatch; ++k) load(train.records + order[i * kBatch + k] * kRecord, k);
    const bc_status status =
        net_train_step(learn_state, &in, &out, learn_arena, NET_ARENA_BYTES, NULL);
    if (status != BC_OK) return status;
    sum += value;
    step(value);
  }
  *loss = sum / (float)steps;
  return BC_OK;
}

int learn_right(Images test, unsigned char *classes) {
  float logits[kClasses];
  const net_run_inputs in = {.image = images};
  const net_run_outputs out = {.logits = logits};
  int right = 0;
  for (int i = 0; i < test.count; ++i) {
    load(test.records + i * kRecord, 0);
    if (net_run(learn_state, &in, &out, learn_arena, NET_ARENA_BYTES, NULL) != BC_OK) return -1;
    int best = 0;
    for (int k = 1; k < kClasses; ++k) {
      if (logits[k] > logits[best]) best = k;
    }
    if (classes != NULL) classes[i] = (unsigned char)best;
    right += best == labels[0];
  }
  return right;
}
