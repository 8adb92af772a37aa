/* SPDX-License-Identifier: 0BSD */
/* Reads images in the form of ../digits/digits_test.bin and prints what each one is. */
#include <stdio.h>

#include "digits.h"

static _Alignas(DIGITS_ARENA_ALIGN) unsigned char arena[DIGITS_ARENA_BYTES];

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (file == NULL) {
    fprintf(stderr, "usage: app IMAGES (for example ../digits/digits_test.bin)\n");
    return 1;
  }
  unsigned char record[65]; /* 64 pixels of 0 to 16, then the label */
  int images = 0, right = 0;
  while (fread(record, 1, sizeof record, file) == sizeof record) {
    float image[DIGITS_RUN_IN_IMAGE_ELEMENTS], logits[DIGITS_RUN_OUT_LOGITS_ELEMENTS];
    for (int i = 0; i < 64; ++i) image[i] = (float)record[i] / 16.0f;
    const digits_run_inputs in = {.image = image};
    const digits_run_outputs out = {.logits = logits};
    bc_status status = digits_run(&in, &out, arena, sizeof arena, NULL);
    if (status != BC_OK) {
      fprintf(stderr, "digits_run: status %d\n", (int)status);
      return 1;
    }
    int best = 0;
    for (int i = 1; i < DIGITS_RUN_OUT_LOGITS_ELEMENTS; ++i) {
      if (logits[i] > logits[best]) best = i;
    }
    printf("%d", best);
    ++images;
    right += best == record[64];
  }
  fclose(file);
  printf("\n%d of %d right, in %d bytes of RAM\n", right, images, DIGITS_ARENA_BYTES);
  return 0;
}
