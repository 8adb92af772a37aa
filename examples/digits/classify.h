/* SPDX-License-Identifier: 0BSD */
/* What host.c and device.c share: one image through the model. */
#ifndef DIGITS_CLASSIFY_H
#define DIGITS_CLASSIFY_H

#include "digits.h"

enum { kPixels = 64, kRecord = 65, kClasses = 10 };

/* `record` is one of digits_test.bin: 64 pixels, then the label. Fills `logits` and returns the
 * most likely class, or -1 when the model refuses. */
int classify(const unsigned char record[kRecord], float logits[kClasses]);

#endif
