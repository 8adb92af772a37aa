/* SPDX-License-Identifier: 0BSD */
#include "words.h"

#include <stdint.h>

enum { kTracks = 3 };

/* Output `index` of splitmix64 (Steele, Lea and Flood, 2014), as a number in [0, 1). */
static float uniform(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0xD1342543DE82EF95u + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (float)((z ^ (z >> 31)) >> 40) * (1.0f / 16777216.0f);
}

void make_word(int word, int number, float image[kWordElements]) {
  const uint64_t sound = (uint64_t)word + 1;
  const uint64_t voice = 1000 + (uint64_t)word * 1000003 + (uint64_t)number;
  const float shift = 8.0f * uniform(voice, 0) - 4.0f;
  const float stretch = 0.85f + 0.3f * uniform(voice, 1);
  const float pitch = 1.6f * uniform(voice, 2) - 0.8f;
  for (int i = 0; i < kWordElements; ++i) {
    image[i] = 1.2f * (uniform(voice, (uint64_t)i + 16) - 0.5f);
  }
  for (int track = 0; track < kTracks; ++track) {
    const uint64_t at = (uint64_t)track * 4;
    const float begin = 4.0f + 22.0f * uniform(sound, at) + shift;
    const float length = (10.0f + 14.0f * uniform(sound, at + 1)) * stretch;
    const float from = 9.0f * uniform(sound, at + 2) + pitch;
    const float to = 9.0f * uniform(sound, at + 3) + pitch;
    const float loud = 0.6f + 0.8f * uniform(voice, at + 3);
    for (int frame = 0; frame < kFrames; ++frame) {
      const float time = ((float)frame - begin) / length;
      if (time < 0.0f || time > 1.0f) continue;
      const float centre = from + (to - from) * time;
      for (int band = 0; band < kBands; ++band) {
        const float distance = (float)band - centre;
        const float height = 1.0f - 0.5f * (distance < 0.0f ? -distance : distance);
        if (height > 0.0f) image[frame * kBands + band] += loud * height;
      }
    }
  }
}
