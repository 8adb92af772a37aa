/* SPDX-License-Identifier: 0BSD */
#include "classify.h"

static _Alignas(DIGITS_ARENA_ALIGN) unsigned char arena[DIGITS_ARENA_BYTES];

int classify(const unsigned char record[kRecord], float logits[kClasses]) {
  float image[kPixels];
  for (int i = 0; i < kPixels; ++i) image[i] = (float)record[i] / 16.0f;
  const digits_run_inputs in = {.image = image};
  const digits_run_outputs out = {.logits = logits};
  if (digits_run(&in, &out, arena, sizeof arena, NULL) != BC_OK) return -1;
  int best = 0;
  for (int i = 1; i < kClasses; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return best;
}
