/* SPDX-License-Identifier: 0BSD */
/* What learn_host.c and learn_device.c share: the training itself, on images in memory. */
#ifndef DIGITS_LEARN_H
#define DIGITS_LEARN_H

#include "net.h"

enum { kPixels = 64, kRecord = 65, kClasses = 10, kBatch = NET_BATCH, kMaxImages = 2048 };

/* Records as in digits_train.bin: 64 pixels, then the label. */
typedef struct Images {
  const unsigned char *records;
  int count; /* at most kMaxImages */
} Images;

/* All memory of the library, and some behind it that must stay as it was. */
enum { kGuard = 64 };
extern unsigned char learn_arena[NET_ARENA_BYTES + kGuard];
extern unsigned char learn_state[NET_STATE_BYTES + kGuard];

/* Back to the weights in the model's file. */
bc_status learn_start(void);

/* One pass over the images in an order of its own (a last batch that is not full is left out);
 * `step` hears the loss of every batch, `*loss` is their mean. */
bc_status learn_epoch(Images train, int epoch, void (*step)(float loss), float *loss);

/* How many images are classified as their labels say, or -1 when the model refuses. `classes`, one
 * per image, may be null. */
int learn_right(Images test, unsigned char *classes);

#endif
