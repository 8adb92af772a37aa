/* SPDX-License-Identifier: 0BSD */
/* What adapt_host.c and adapt_device.c share: teaching the network two new words. */
#ifndef FINETUNE_ADAPT_H
#define FINETUNE_ADAPT_H

#include "net.h"
#include "words.h"

/* The device has heard each new word ten times and keeps two utterances of each known one, so that
 * those are not forgotten. Tests are other utterances. */
enum { kUpdates = 30, kHeard = 10, kKept = 2 };

/* All memory of the library. */
extern unsigned char adapt_arena[NET_ARENA_BYTES];
extern unsigned char adapt_state[NET_STATE_BYTES];

/* Back to the weights in the model's file. */
bc_status adapt_start(void);

/* One update by NET_ACCUMULATE utterances, every second one of a new word; `*loss` is their mean
 * before the update. */
bc_status adapt_update(int update, float *loss);

/* How many tests of the words begin … end - 1 are right, of `tests` each; -1 when the model
 * refuses.
 */
int adapt_right(int begin, int end, int tests);

#endif
