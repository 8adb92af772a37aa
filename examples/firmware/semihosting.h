/* SPDX-License-Identifier: 0BSD */
/* Console, files and exit through the debugger (Arm semihosting), which QEMU answers. A product
 * would have its own drivers instead; the rest of this folder stays as it is. */
#ifndef FIRMWARE_SEMIHOSTING_H
#define FIRMWARE_SEMIHOSTING_H

#include <stddef.h>
#include <stdint.h>

enum { kReadBinary = 1, kWriteBinary = 5 };

static inline int32_t semihost(int32_t operation, const void *argument) {
  register int32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static inline void semihost_print(const char *text) { semihost(0x04, text); }

/* A handle, or -1. */
static inline int32_t semihost_open(const char *path, int32_t mode) {
  size_t length = 0;
  while (path[length] != 0) ++length;
  const uint32_t block[3] = {(uint32_t)(uintptr_t)path, (uint32_t)mode, (uint32_t)length};
  return semihost(0x01, block);
}

/* How many bytes were read. */
static inline size_t semihost_read(int32_t file, void *bytes, size_t count) {
  const uint32_t block[3] = {(uint32_t)file, (uint32_t)(uintptr_t)bytes, (uint32_t)count};
  return count - (size_t)semihost(0x06, block);
}

/* Whether everything was written. */
static inline int semihost_write(int32_t file, const void *bytes, size_t count) {
  const uint32_t block[3] = {(uint32_t)file, (uint32_t)(uintptr_t)bytes, (uint32_t)count};
  return semihost(0x05, block) == 0;
}

static inline void semihost_close(int32_t file) { semihost(0x02, &file); }

__attribute__((noreturn)) static inline void semihost_exit(uint32_t status) {
  const uint32_t block[2] = {0x20026, status};
  for (;;) semihost(0x20, block);
}

#endif
