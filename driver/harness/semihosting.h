/* Semihosting: a trap with the operation in one register and its argument in another, BKPT 0xAB on
 * Arm (Arm IHI 0100), an EBREAK between two shifts that do nothing on RISC-V (its specification of
 * semihosting takes over Arm's operations). */
#ifndef BACKCAST_HARNESS_SEMIHOSTING_H
#define BACKCAST_HARNESS_SEMIHOSTING_H

#include <stdint.h>

enum {
  kSysOpen = 0x01,
  kSysClose = 0x02,
  kSysWrite0 = 0x04,
  kSysWrite = 0x05,
  kSysRead = 0x06,
  kSysGetCommandLine = 0x15,
  kSysExitExtended = 0x20,
  kApplicationExit = 0x20026,
};

static inline int32_t semihost(int32_t operation, const void *argument) {
#ifdef __riscv
  register int32_t a0 __asm__("a0") = operation;
  register const void *a1 __asm__("a1") = argument;
  __asm__ volatile(
      ".balign 16\n\t.option push\n\t.option norvc\n\t" /* all three in one page */
      "slli x0, x0, 0x1f\n\tebreak\n\tsrai x0, x0, 7\n\t.option pop"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
  return a0;
#else
  register int32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
#endif
}

__attribute__((noreturn)) static inline void semihost_exit(uint32_t status) {
  uint32_t block[2] = {kApplicationExit, status};
  for (;;) semihost(kSysExitExtended, block);
}

#endif
