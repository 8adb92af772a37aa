/* SPDX-License-Identifier: 0BSD */
/* Trains the network on the device, on images in its flash, and prints "key value" lines. Leaves
 * the loss of every step in `losses.bin` and the classes of the test images in `classes.bin`, where
 * the debugger (QEMU) was started. */
#include "../firmware/firmware.h"
#include "../firmware/semihosting.h"
#include "learn.h"

#ifndef EPOCHS
#define EPOCHS 3
#endif

/* images.S */
extern const unsigned char train_begin[], train_end[], test_begin[], test_end[];

static int32_t losses;

static void keep(float loss) { semihost_write(losses, &loss, sizeof loss); }

/* What the program's own frames may add to the library's stack. */
enum { kPaint = 0xA5, kOwnStack = 128 };

static void paint(unsigned char *memory, size_t count) {
  for (size_t i = 0; i < count; ++i) memory[i] = kPaint;
}

/* How far from its begin painted memory was ever written. */
static size_t written(const unsigned char *memory, size_t count) {
  while (count > 0 && memory[count - 1] == kPaint) --count;
  return count;
}

/* Whether the header kept what it promised. */
static int print_memory(void) {
  const size_t arena = written(learn_arena, sizeof learn_arena);
  const size_t state = written(learn_state, sizeof learn_state);
  const size_t stack = stack_used();
  print_line("arena", NET_ARENA_BYTES);
  print_line("arena_used", (unsigned long)arena);
  print_line("state", NET_STATE_BYTES);
  print_line("state_used", (unsigned long)state);
  print_line("stack_bound", NET_STACK_BYTES);
  print_line("stack", (unsigned long)stack);
  print_line("weights", NET_WEIGHT_BYTES);
  print_line("flash", (unsigned long)flash_used());
  return arena <= NET_ARENA_BYTES && state <= NET_STATE_BYTES &&
         stack <= NET_STACK_BYTES + kOwnStack;
}

int main(void) {
  const Images train = {train_begin, (train_end - train_begin) / kRecord};
  const Images test = {test_begin, (test_end - test_begin) / kRecord};
  static unsigned char classes[kMaxImages];
  losses = semihost_open("losses.bin", kWriteBinary);
  paint(learn_arena, sizeof learn_arena);
  paint(learn_state, sizeof learn_state);
  if (losses < 0 || learn_start() != BC_OK) return 1;
  print_line("images", (unsigned long)test.count);
  int right = learn_right(test, NULL);
  print_line("before", (unsigned long)right);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    float loss;
    const bc_status status = learn_epoch(train, epoch, keep, &loss);
    if (status != BC_OK) {
      print_line("training ended with status", (unsigned long)status);
      return 1;
    }
    right = learn_right(test, classes);
    print_number("epoch", (unsigned long)epoch + 1, "");
    print_fixed(" loss", loss, "");
    print_number(" right", (unsigned long)right, "\n");
  }
  semihost_close(losses);
  const int32_t file = semihost_open("classes.bin", kWriteBinary);
  if (file < 0 || !semihost_write(file, classes, (size_t)test.count)) return 1;
  semihost_close(file);
  if (!print_memory()) {
    semihost_print("more memory was used than the header says\n");
    return 1;
  }
  print_line("after", (unsigned long)right);
  return 0;
}
