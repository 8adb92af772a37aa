/* SPDX-License-Identifier: 0BSD */
/* Trains the network on this machine and prints "key value" lines:
 *   learn EPOCHS TRAIN TEST [LOSSES CLASSES]
 * LOSSES and CLASSES: what learn_device.c wrote for the same images, to be compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "learn.h"

enum { kMaxSteps = 100 * kMaxImages / kBatch };

static float losses[kMaxSteps];
static int steps;

static void keep(float loss) {
  if (steps < kMaxSteps) losses[steps++] = loss;
}

static Images read_images(const char *path) {
  static unsigned char bytes[2][kMaxImages * kRecord];
  static int files;
  Images images = {bytes[files++], 0};
  FILE *file = fopen(path, "rb");
  if (file != NULL) {
    images.count = (int)(fread((void *)images.records, 1, sizeof bytes[0], file) / kRecord);
    fclose(file);
  }
  return images;
}

/* The device's losses of all steps and classes of all test images, beside this machine's. */
static int compare(const char *losses_path, const char *classes_path, const unsigned char *classes,
                   int images) {
  static float other[kMaxSteps];
  unsigned char other_classes[kMaxImages];
  FILE *file = fopen(losses_path, "rb");
  if (file == NULL || fread(other, sizeof other[0], kMaxSteps, file) != (size_t)steps) return 1;
  fclose(file);
  file = fopen(classes_path, "rb");
  if (file == NULL || fread(other_classes, 1, kMaxImages, file) != (size_t)images) return 1;
  fclose(file);
  double difference = 0;
  for (int i = 0; i < steps; ++i) difference = fmax(difference, fabs(other[i] - losses[i]));
  int same = 0;
  for (int i = 0; i < images; ++i) same += classes[i] == other_classes[i];
  printf("same %d\ndifference %.2g\n", same, difference);
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 4 && argc != 6) {
    fprintf(stderr, "usage: learn EPOCHS TRAIN TEST [LOSSES CLASSES]\n");
    return 1;
  }
  const int epochs = atoi(argv[1]);
  const Images train = read_images(argv[2]), test = read_images(argv[3]);
  unsigned char classes[kMaxImages];
  if (epochs < 1 || epochs > 100 || train.count == 0 || test.count == 0) return 1;
  if (learn_start() != BC_OK) return 1;
  printf("images %d\nbefore %d\n", test.count, learn_right(test, NULL));
  double seconds = 0;
  int right = -1;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    struct timespec begin, end;
    float loss;
    timespec_get(&begin, TIME_UTC);
    const bc_status status = learn_epoch(train, epoch, keep, &loss);
    timespec_get(&end, TIME_UTC);
    if (status != BC_OK) {
      fprintf(stderr, "training ended with status %d\n", (int)status);
      return 1;
    }
    seconds += (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    right = learn_right(test, classes);
    printf("epoch %d loss %.4f right %d\n", epoch + 1, loss, right);
  }
  printf("arena %d\nstate %d\nstack_bound %d\nweights %d\n", NET_ARENA_BYTES, NET_STATE_BYTES,
         NET_STACK_BYTES, NET_WEIGHT_BYTES);
  printf("microseconds %.0f\n", 1e6 * seconds / steps);
  printf("after %d\n", right);
  return argc == 6 ? compare(argv[4], argv[5], classes, test.count) : 0;
}
