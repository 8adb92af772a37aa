/* SPDX-License-Identifier: 0BSD */
/* Classifies one handwritten digit on the device and prints what it is. */
#include "digits.h"
#include "firmware.h"

/* A three: 8x8, 0 to 16. */
/* clang-format off */
static const unsigned char pixels[64] = {
    0, 2, 10, 12, 16, 8, 0, 0,
    0, 4, 8, 5, 13, 16, 0, 0,
    0, 0, 0, 7, 15, 7, 0, 0,
    0, 0, 6, 16, 10, 0, 0, 0,
    0, 0, 0, 5, 16, 11, 0, 0,
    0, 0, 0, 0, 6, 16, 3, 0,
    0, 0, 0, 0, 10, 16, 5, 0,
    0, 2, 14, 16, 12, 9, 0, 0};
/* clang-format on */

static _Alignas(DIGITS_ARENA_ALIGN) unsigned char arena[DIGITS_ARENA_BYTES];

int main(void) {
  float image[DIGITS_RUN_IN_IMAGE_ELEMENTS];
  float logits[DIGITS_RUN_OUT_LOGITS_ELEMENTS];
  for (int i = 0; i < 64; ++i) image[i] = (float)pixels[i] / 16.0f;

  const digits_run_inputs in = {.image = image};
  const digits_run_outputs out = {.logits = logits};
  bc_status status = digits_run(&in, &out, arena, sizeof arena, NULL);
  if (status != BC_OK) {
    print_line("digits_run failed with status", (unsigned long)status);
    return 1;
  }
  int best = 0;
  for (int i = 1; i < DIGITS_RUN_OUT_LOGITS_ELEMENTS; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  print_line("digit", (unsigned long)best);
  print_line("arena bytes", sizeof arena);
  print_line("flash bytes", (unsigned long)flash_used());
  print_line("stack bytes", (unsigned long)stack_used());
  return 0;
}
