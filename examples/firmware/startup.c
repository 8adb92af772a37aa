/* SPDX-License-Identifier: 0BSD */
/* From reset to main() on a Cortex-M4F without operating system or C library: vectors,
 * floating-point unit, data, bss; also the memory functions that a compiler may call. The stack is
 * painted, so that stack_used() can tell how much of it was ever written. */
#include <stddef.h>
#include <stdint.h>

#include "firmware.h"
#include "semihosting.h"

extern uint32_t __data_load[], __data_start[], __data_end[], __bss_start[], __bss_end[];
extern uint32_t __stack_low[], __stack_top[], __flash_start[], __flash_end[];

enum { kPaint = 0x5AA55AA5 };

/* The compiler must not turn these loops into calls of themselves. */
#define PLAIN_LOOP __attribute__((optimize("no-tree-loop-distribute-patterns")))

PLAIN_LOOP void *memcpy(void *restrict to, const void *restrict from, size_t count) {
  unsigned char *out = to;
  const unsigned char *in = from;
  while (count-- > 0) *out++ = *in++;
  return to;
}

PLAIN_LOOP void *memmove(void *to, const void *from, size_t count) {
  unsigned char *out = to;
  const unsigned char *in = from;
  if (out < in) {
    while (count-- > 0) *out++ = *in++;
  } else {
    while (count-- > 0) out[count] = in[count];
  }
  return to;
}

PLAIN_LOOP void *memset(void *to, int value, size_t count) {
  unsigned char *out = to;
  while (count-- > 0) *out++ = (unsigned char)value;
  return to;
}

/* The same under the names of the Arm run-time ABI, which libraries refer to; 4 and 8 promise that
 * much alignment. */
#define ARM_NAMES(suffix)                                                                      \
  void __aeabi_memcpy##suffix(void *to, const void *from, size_t count) {                      \
    memcpy(to, from, count);                                                                   \
  }                                                                                            \
  void __aeabi_memmove##suffix(void *to, const void *from, size_t count) {                     \
    memmove(to, from, count);                                                                  \
  }                                                                                            \
  void __aeabi_memset##suffix(void *to, size_t count, int value) { memset(to, value, count); } \
  void __aeabi_memclr##suffix(void *to, size_t count) { memset(to, 0, count); }
ARM_NAMES()
ARM_NAMES(4)
ARM_NAMES(8)

size_t stack_used(void) {
  const uint32_t *low = __stack_low;
  while (low < __stack_top && *low == kPaint) ++low;
  return (size_t)(__stack_top - low) * sizeof *low;
}

size_t flash_used(void) { return (size_t)((uintptr_t)__flash_end - (uintptr_t)__flash_start); }

void print_number(const char *text, unsigned long number, const char *end) {
  char digits[24];
  char *at = digits + sizeof digits;
  *--at = 0;
  do {
    *--at = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  *--at = ' ';
  semihost_print(text);
  semihost_print(at);
  semihost_print(end);
}

void print_line(const char *text, unsigned long number) { print_number(text, number, "\n"); }

void print_fixed(const char *text, float value, const char *end) {
  const unsigned long scaled = (unsigned long)(value * 10000.0f + 0.5f);
  print_number(text, scaled / 10000, ".");
  char digits[5] = {0};
  unsigned long rest = scaled % 10000;
  for (int i = 3; i >= 0; --i, rest /= 10) digits[i] = (char)('0' + rest % 10);
  semihost_print(digits);
  semihost_print(end);
}

static void fault(void) {
  semihost_print("fault\n");
  semihost_exit(70);
}

__attribute__((noreturn)) void reset(void) {
  volatile uint32_t *const cpacr = (volatile uint32_t *)0xE000ED88u;
  *cpacr |= 0xFu << 20; /* floating-point unit on */
  __asm__ volatile("dsb\n\tisb" ::: "memory");
  for (uint32_t *at = __data_start, *from = __data_load; at < __data_end;) *at++ = *from++;
  for (uint32_t *at = __bss_start; at < __bss_end;) *at++ = 0;
  /* Everything below the frame in use; 64 bytes are left for what this loop itself keeps there. */
  uint32_t *const here = (uint32_t *)__builtin_frame_address(0) - 16;
  for (uint32_t *at = __stack_low; at < here;) *at++ = kPaint;
  semihost_exit((uint32_t)main());
}

typedef void (*Vector)(void);
__attribute__((section(".vectors"), used)) static const Vector vectors[16] = {
    [0] = (Vector)(uintptr_t)__stack_top,
    [1] = (Vector)reset,
    [2 ... 15] = fault,
};
