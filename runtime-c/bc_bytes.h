/* SPDX-License-Identifier: 0BSD */
/* Little-endian numbers and the CRC-32 of checkpoints and slots. */
#ifndef BC_BYTES_H
#define BC_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline void bc_put32(unsigned char *to, uint32_t value) {
  for (int i = 0; i < 4; ++i) to[i] = (unsigned char)(value >> (8 * i));
}

static inline void bc_put64(unsigned char *to, uint64_t value) {
  bc_put32(to, (uint32_t)value);
  bc_put32(to + 4, (uint32_t)(value >> 32));
}

/* CRC-32 as in IEEE 802.3 (reflected, polynomial 0x04C11DB7), four bits at a time: 64 bytes of
 * table. Starts from 0; goes on from what an earlier call gave. */
static uint32_t bc_crc32(uint32_t crc, const void *bytes, size_t count) {
  static const uint32_t table[16] = {0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu,
                                     0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
                                     0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
                                     0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu};
  const unsigned char *at = (const unsigned char *)bytes;
  crc = ~crc;
  for (size_t i = 0; i < count; ++i) {
    crc = table[(crc ^ at[i]) & 15u] ^ (crc >> 4);
    crc = table[(crc ^ ((uint32_t)at[i] >> 4)) & 15u] ^ (crc >> 4);
  }
  return ~crc;
}

#endif /* BC_BYTES_H */
