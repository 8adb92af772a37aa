/* SPDX-License-Identifier: 0BSD */
/* Compares the compiled kernel with the same sums written plainly, for every batch size. */
#include <math.h>
#include <stdio.h>

#include "gated_dense.h"

enum { kRows = GATED_DENSE_N_MAX, kIn = 24, kOut = 10 };

static _Alignas(GATED_DENSE_ARENA_ALIGN) unsigned char arena[GATED_DENSE_ARENA_BYTES + 1];
static float x[kRows * kIn], w[kIn * kOut], v[kIn * kOut], y[kRows * kOut];

static void fill(float *values, int count, unsigned seed) {
  for (int i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
  }
}

int main(void) {
  fill(x, kRows * kIn, 1);
  fill(w, kIn * kOut, 2);
  fill(v, kIn * kOut, 3);
  double worst = 0;
  for (int rows = 1; rows <= kRows; ++rows) {
    const gated_dense_run_inputs in = {.N = rows, .x = x, .w = w, .v = v};
    const gated_dense_run_outputs out = {.y = y};
    if (gated_dense_run(&in, &out, arena, GATED_DENSE_ARENA_BYTES, NULL) != BC_OK) return 1;
    for (int i = 0; i < rows * kOut; ++i) {
      double a = 0, b = 0;
      for (int k = 0; k < kIn; ++k) {
        a += (double)x[i / kOut * kIn + k] * (double)w[k * kOut + i % kOut];
        b += (double)x[i / kOut * kIn + k] * (double)v[k * kOut + i % kOut];
      }
      worst = fmax(worst, fabs((double)y[i] - a / (1 + exp(-b))));
    }
  }
  printf("largest error over batches of 1 to %d: %.2g\n", (int)kRows, worst);
  return !(worst < 1e-5);
}
