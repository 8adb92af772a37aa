/* SPDX-License-Identifier: 0BSD */
#include "adapt.h"

_Alignas(NET_ARENA_ALIGN) unsigned char adapt_arena[NET_ARENA_BYTES];
_Alignas(NET_STATE_ALIGN) unsigned char adapt_state[NET_STATE_BYTES];

enum { kNewWords = kWords - kKnownWords, kFirstTest = 2000000 };

static float image[kWordElements];

bc_status adapt_start(void) { return net_init(adapt_state, sizeof adapt_state, 0); }

bc_status adapt_update(int update, float *loss) {
  int32_t word;
  float value;
  const net_train_step_inputs in = {.input = image, .target = &word};
  const net_train_step_outputs out = {.loss = &value};
  *loss = 0;
  for (int i = 0; i < NET_ACCUMULATE; ++i) {
    const int turn = (update * NET_ACCUMULATE + i) / 2;
    int number;
    if (i % 2 == 0) {
      word = kKnownWords + turn % kNewWords;
      number = turn / kNewWords % kHeard;
    } else {
      word = turn % kKnownWords;
      number = turn / kKnownWords % kKept;
    }
    make_word(word, number, image);
    const bc_status status =
        net_train_step(adapt_state, &in, &out, adapt_arena, sizeof adapt_arena, NULL);
    if (status != BC_OK) return status;
    *loss += value / NET_ACCUMULATE;
  }
  return net_apply(adapt_state, adapt_arena, sizeof adapt_arena, NULL);
}

int adapt_right(int begin, int end, int tests) {
  float scores[kWords];
  const net_run_inputs in = {.input = image};
  const net_run_outputs out = {.logits = scores};
  int right = 0;
  for (int word = begin; word < end; ++word) {
    for (int i = 0; i < tests; ++i) {
      make_word(word, kFirstTest + i, image);
      if (net_run(adapt_state, &in, &out, adapt_arena, sizeof adapt_arena, NULL) != BC_OK) {
        return -1;
      }
      int best = 0;
      for (int k = 1; k < kWords; ++k) {
        if (scores[k] > scores[best]) best = k;
      }
      right += best == word;
    }
  }
  return right;
}
