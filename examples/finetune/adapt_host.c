/* SPDX-License-Identifier: 0BSD */
/* Teaches the network two words on this machine and prints "key value" lines. */
#include <stdio.h>

#include "adapt.h"
#include "full.h"

enum { kTests = 100 };

static void print_right(const char *when) {
  printf("known_%s %d\nnew_%s %d\n", when, adapt_right(0, kKnownWords, kTests), when,
         adapt_right(kKnownWords, kWords, kTests));
}

int main(void) {
  if (adapt_start() != BC_OK) return 1;
  print_right("before");
  for (int update = 0; update < kUpdates; ++update) {
    float loss;
    const bc_status status = adapt_update(update, &loss);
    if (status != BC_OK) {
      fprintf(stderr, "training ended with status %d\n", (int)status);
      return 1;
    }
    if (update % 5 == 0 || update + 1 == kUpdates)
      printf("update %d loss %.4f\n", update + 1, loss);
  }
  printf("trained %d\narena %d\nstate %d\n", NET_PARAMETER_COUNT, NET_ARENA_BYTES, NET_STATE_BYTES);
  printf("all_trained %d\nall_arena %d\nall_state %d\n", FULL_PARAMETER_COUNT, FULL_ARENA_BYTES,
         FULL_STATE_BYTES);
  print_right("after");
  return 0;
}
