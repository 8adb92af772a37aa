/* SPDX-License-Identifier: 0BSD */
/* Classifies a file of images on this machine and prints "key value" lines:
 *   host IMAGES [LOGITS]    LOGITS: what device.c wrote for the same images, to be compared */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "classify.h"

static int argmax(const float *values) {
  int best = 0;
  for (int i = 1; i < kClasses; ++i) {
    if (values[i] > values[best]) best = i;
  }
  return best;
}

int main(int argc, char **argv) {
  FILE *images = argc > 1 ? fopen(argv[1], "rb") : NULL;
  FILE *device = argc > 2 ? fopen(argv[2], "rb") : NULL;
  if (images == NULL || (argc > 2 && device == NULL)) {
    fprintf(stderr, "usage: host IMAGES [LOGITS]\n");
    return 1;
  }
  unsigned char record[kRecord];
  int count = 0, right = 0, same = 0;
  double seconds = 0, difference = 0;
  while (fread(record, 1, kRecord, images) == kRecord) {
    float logits[kClasses], other[kClasses];
    struct timespec begin, end;
    timespec_get(&begin, TIME_UTC);
    int best = classify(record, logits);
    timespec_get(&end, TIME_UTC);
    if (best < 0) return 1;
    seconds += (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    ++count;
    right += best == record[kPixels];
    if (device != NULL) {
      if (fread(other, sizeof other[0], kClasses, device) != kClasses) {
        fprintf(stderr, "%s ends after %d images\n", argv[2], count - 1);
        return 1;
      }
      same += argmax(other) == best;
      for (int i = 0; i < kClasses; ++i) {
        difference = fmax(difference, fabs((double)other[i] - (double)logits[i]));
      }
    }
  }
  if (count == 0) return 1;
  printf("images %d\nright %d\n", count, right);
  printf("arena %d\nweights %d\nstack_bound %d\n", DIGITS_ARENA_BYTES, DIGITS_WEIGHT_BYTES,
         DIGITS_STACK_BYTES);
  printf("microseconds %.1f\n", 1e6 * seconds / count);
  if (device != NULL) printf("same %d\ndifference %.2g\n", same, difference);
  return 0;
}
