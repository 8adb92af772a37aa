/* SPDX-License-Identifier: 0BSD */
/* Shows that the library computes gelu where the model says Relu. */
#include <math.h>
#include <stdio.h>

#include "activation.h"

int main(void) {
  /* A model of one node may need no memory of its own. */
  static _Alignas(ACTIVATION_ARENA_ALIGN) unsigned char arena[ACTIVATION_ARENA_BYTES + 1];
  const float x[9] = {-4.0f, -2.0f, -1.0f, -0.1f, 0.0f, 0.1f, 1.0f, 2.0f, 4.0f};
  float y[9];
  const activation_run_inputs in = {.x = x};
  const activation_run_outputs out = {.y = y};
  if (activation_run(&in, &out, arena, ACTIVATION_ARENA_BYTES, NULL) != BC_OK) return 1;
  int wrong = 0;
  for (int i = 0; i < 9; ++i) {
    double expected = 0.5 * (double)x[i] * (1 + erf((double)x[i] / sqrt(2.0)));
    printf("gelu(%4.1f) = %9.6f\n", (double)x[i], (double)y[i]);
    wrong += !(fabs((double)y[i] - expected) < 1e-6);
  }
  return wrong;
}
