/* ARM semihosting: BKPT 0xAB with the operation in r0 and its argument in r1 (Arm IHI 0100). */
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
  register int32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

__attribute__((noreturn)) static inline void semihost_exit(uint32_t status) {
  uint32_t block[2] = {kApplicationExit, status};
  for (;;) semihost(kSysExitExtended, block);
}

#endif
