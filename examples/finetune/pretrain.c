/* SPDX-License-Identifier: 0BSD */
/* Trains the whole network on the ten known words, on this machine, and writes its parameters and
 * running statistics as floats:
 *   pretrain STEPS FILE */
#include <stdio.h>
#include <stdlib.h>

#include "net.h"
#include "words.h"

enum { kBatch = NET_BATCH, kTests = 500, kFirstTest = 1000000 };

static _Alignas(NET_ARENA_ALIGN) unsigned char arena[NET_ARENA_BYTES];
static _Alignas(NET_STATE_ALIGN) unsigned char state[NET_STATE_BYTES];
static float images[kBatch * kWordElements], flat[NET_PARAMETER_COUNT];

static int right(void) {
  int count = 0;
  for (int i = 0; i < kTests; ++i) {
    float logits[kWords];
    make_word(i % kKnownWords, kFirstTest + i, images);
    const net_run_inputs in = {.input = images};
    const net_run_outputs out = {.logits = logits};
    if (net_run(state, &in, &out, arena, sizeof arena, NULL) != BC_OK) return -1;
    int best = 0;
    for (int k = 1; k < kWords; ++k) {
      if (logits[k] > logits[best]) best = k;
    }
    count += best == i % kKnownWords;
  }
  return count;
}

int main(int argc, char **argv) {
  if (argc != 3 || net_init(state, sizeof state, 0) != BC_OK) return 1;
  const int steps = atoi(argv[1]);
  for (int step = 0; step < steps; ++step) {
    int32_t labels[kBatch];
    for (int k = 0; k < kBatch; ++k) {
      const int number = step * kBatch + k;
      labels[k] = number * 7 % kKnownWords;
      make_word(labels[k], number, images + k * kWordElements);
    }
    float loss;
    const net_train_step_inputs in = {.input = images, .target = labels};
    const net_train_step_outputs out = {.loss = &loss};
    if (step == steps * 2 / 3) net_set_learning_rate(state, 0.0003f);
    const bc_status status = net_train_step(state, &in, &out, arena, sizeof arena, NULL);
    if (status != BC_OK) {
      fprintf(stderr, "training ended with status %d\n", (int)status);
      return 1;
    }
    if ((step + 1) % 50 == 0) printf("step %d loss %.4f\n", step + 1, loss);
  }
  printf("%d of %d right\n", right(), kTests);
  FILE *file = fopen(argv[2], "wb");
  if (file == NULL || net_get_parameters(state, flat) != BC_OK) return 1;
  return fwrite(flat, sizeof flat[0], NET_PARAMETER_COUNT, file) != NET_PARAMETER_COUNT ||
         fclose(file) != 0;
}
