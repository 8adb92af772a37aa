/* SPDX-License-Identifier: 0BSD */
/* Classifies digits_test.bin on the device, prints "key value" lines and writes the logits of all
 * images to `logits.bin`. Both files lie where the debugger (QEMU) was started. */
#include "classify.h"
#include "../firmware/firmware.h"
#include "../firmware/semihosting.h"

int main(void) {
  const int32_t images = semihost_open("digits_test.bin", kReadBinary);
  const int32_t results = semihost_open("logits.bin", kWriteBinary);
  if (images < 0 || results < 0) {
    semihost_print("digits_test.bin or logits.bin cannot be opened\n");
    return 1;
  }
  unsigned char record[kRecord];
  unsigned long count = 0, right = 0;
  while (semihost_read(images, record, kRecord) == kRecord) {
    float logits[kClasses];
    int best = classify(record, logits);
    if (best < 0 || !semihost_write(results, logits, sizeof logits)) return 1;
    ++count;
    right += best == record[kPixels];
  }
  semihost_close(results);
  print_line("images", count);
  print_line("right", right);
  print_line("arena", DIGITS_ARENA_BYTES);
  print_line("weights", DIGITS_WEIGHT_BYTES);
  print_line("stack_bound", DIGITS_STACK_BYTES);
  print_line("stack", (unsigned long)stack_used());
  print_line("flash", (unsigned long)flash_used());
  return count == 0;
}
