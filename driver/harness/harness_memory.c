/* memcpy, memmove and memset for programs without a C library. Sixteen bytes at a time where both
 * ends are word-aligned, which is what generated code asks for. The empty asm keeps the compiler
 * from recognising a loop as the very function it implements. */
#include <stddef.h>
#include <stdint.h>

#define KEEP_LOOP() __asm__ volatile("")

typedef uint32_t __attribute__((may_alias)) Word;

void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);

void *memcpy(void *restrict to, const void *restrict from, size_t count) {
  unsigned char *t = to;
  const unsigned char *f = from;
  if ((((uintptr_t)t | (uintptr_t)f) & 3u) == 0) {
    for (; count >= 16; count -= 16, t += 16, f += 16) {
      const Word *source = (const Word *)f;
      Word a = source[0], b = source[1], c = source[2], d = source[3];
      Word *target = (Word *)t;
      target[0] = a;
      target[1] = b;
      target[2] = c;
      target[3] = d;
      KEEP_LOOP();
    }
    for (; count >= 4; count -= 4, t += 4, f += 4) {
      *(Word *)t = *(const Word *)f;
      KEEP_LOOP();
    }
  }
  for (; count > 0; count--) {
    *t++ = *f++;
    KEEP_LOOP();
  }
  return to;
}

void *memmove(void *to, const void *from, size_t count) {
  unsigned char *t = to;
  const unsigned char *f = from;
  if ((uintptr_t)t - (uintptr_t)f >= count) return memcpy(to, from, count);
  t += count;
  f += count;
  if ((((uintptr_t)t | (uintptr_t)f) & 3u) == 0) {
    for (; count >= 4; count -= 4) {
      t -= 4;
      f -= 4;
      *(Word *)t = *(const Word *)f;
      KEEP_LOOP();
    }
  }
  for (; count > 0; count--) {
    *--t = *--f;
    KEEP_LOOP();
  }
  return to;
}

void *memset(void *to, int value, size_t count) {
  unsigned char *t = to;
  for (; count > 0 && ((uintptr_t)t & 3u) != 0; count--) {
    *t++ = (unsigned char)value;
    KEEP_LOOP();
  }
  Word word = (unsigned char)value * (Word)0x01010101u;
  for (; count >= 16; count -= 16, t += 16) {
    Word *target = (Word *)t;
    target[0] = word;
    target[1] = word;
    target[2] = word;
    target[3] = word;
    KEEP_LOOP();
  }
  for (; count > 0; count--) {
    *t++ = (unsigned char)value;
    KEEP_LOOP();
  }
  return to;
}

#ifdef __ARM_EABI__
/* The names under which compilers for the Arm EABI call them; memset's arguments are swapped. */
#define EABI_NAMES(suffix)                                                                     \
  void __aeabi_memcpy##suffix(void *to, const void *from, size_t count);                       \
  void __aeabi_memcpy##suffix(void *to, const void *from, size_t count) {                      \
    memcpy(to, from, count);                                                                   \
  }                                                                                            \
  void __aeabi_memmove##suffix(void *to, const void *from, size_t count);                      \
  void __aeabi_memmove##suffix(void *to, const void *from, size_t count) {                     \
    memmove(to, from, count);                                                                  \
  }                                                                                            \
  void __aeabi_memset##suffix(void *to, size_t count, int value);                              \
  void __aeabi_memset##suffix(void *to, size_t count, int value) { memset(to, value, count); } \
  void __aeabi_memclr##suffix(void *to, size_t count);                                         \
  void __aeabi_memclr##suffix(void *to, size_t count) { memset(to, 0, count); }

EABI_NAMES()
EABI_NAMES(4)
EABI_NAMES(8)
#endif
