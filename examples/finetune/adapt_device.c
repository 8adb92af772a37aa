/* SPDX-License-Identifier: 0BSD */
/* Teaches the network two words on the device and prints "key value" lines. */
#include "../firmware/firmware.h"
#include "../firmware/semihosting.h"
#include "adapt.h"

enum { kKnownTests = 3, kNewTests = 10 }; /* an emulator is slow */

static void print_right(const char *known, const char *new) {
  print_line(known, (unsigned long)adapt_right(0, kKnownWords, kKnownTests));
  print_line(new, (unsigned long)adapt_right(kKnownWords, kWords, kNewTests));
}

int main(void) {
  if (adapt_start() != BC_OK) return 1;
  print_right("known_before", "new_before");
  for (int update = 0; update < kUpdates; ++update) {
    float loss;
    const bc_status status = adapt_update(update, &loss);
    if (status != BC_OK) {
      print_line("training ended with status", (unsigned long)status);
      return 1;
    }
    if (update % 5 == 0 || update + 1 == kUpdates) {
      print_number("update", (unsigned long)update + 1, "");
      print_fixed(" loss", loss, "\n");
    }
  }
  print_line("arena", NET_ARENA_BYTES);
  print_line("state", NET_STATE_BYTES);
  print_line("stack_bound", NET_STACK_BYTES);
  print_line("stack", (unsigned long)stack_used());
  print_line("flash", (unsigned long)flash_used());
  print_right("known_after", "new_after");
  return 0;
}
