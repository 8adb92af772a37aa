/* What start-up code of every bare machine ends in, and what it prints of a fault. */
#ifndef BACKCAST_HARNESS_BARE_H
#define BACKCAST_HARNESS_BARE_H

#include "harness.h"
#include "semihosting.h"

extern unsigned char __data_load[], __data_start[], __data_end[], __bss_start[], __bss_end[];
extern unsigned char __stack_low[], __stack_top[];

void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memset(void *to, int value, size_t count);
int harness_start(void);

/* Data and bss, then the harness, whose result becomes QEMU's exit status. */
__attribute__((noreturn)) static inline void run_harness(void) {
  memcpy(__data_start, __data_load, (size_t)(__data_end - __data_start));
  memset(__bss_start, 0, (size_t)(__bss_end - __bss_start));
  semihost_exit((uint32_t)harness_start());
}

static inline char *put(char *at, const char *text) {
  while (*text != 0) *at++ = *text++;
  return at;
}

static inline char *put_hex(char *at, uint32_t value) {
  for (int shift = 28; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[value >> shift & 15u];
  return at;
}

/* Prints what happened and in which function of the library. */
__attribute__((noreturn)) static inline void end_in_fault(const char *what) {
  harness_print(what);
  const char *name = harness_running;
  harness_print(", in ");
  harness_print(name != 0 ? name : "the harness");
  harness_print("\n");
  semihost_exit(HARNESS_EXIT_FAULT);
}

#endif
