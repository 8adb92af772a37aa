/* SPDX-License-Identifier: 0BSD */
/* What JavaScript calls: buffers to write images to, and the training of ../digits/learn.c. Numbers
 * and addresses are all that passes between the two. */
#include "learn.h"

#define EXPORT(name) __attribute__((export_name(name)))


enum { kTrain, kTest, kDrawn, kSets };
static unsigned char records[kSets][kMaxImages * kRecord];

static void ignore(float loss) { (void)loss; }

EXPORT("images") unsigned char *images_of(int set) { return records[set]; }
EXPORT("start") bc_status start(void) { return learn_start(); }

/* The mean loss of a pass over the images; negative where the library refuses. */
EXPORT("epoch") float epoch(int number, int count) {
  float loss;
  const bc_status status = learn_epoch((Images){records[kTrain], count}, number, ignore, &loss);
  return status == BC_OK ? loss : -(float)status;
}

EXPORT("right") int right(int count) { return learn_right((Images){records[kTest], count}, 0); }

EXPORT("classify") int classify(void) {
  unsigned char digit;
  return learn_right((Images){records[kDrawn], 1}, &digit) < 0 ? -1 : digit;
}
