/* Classes of the instructions of Arm's Linux: A64 and A32 (cycle_model.h). */
#include <string.h>

#include "cycle_model.h"

static uint32_t word_at(const void *bytes) {
  uint32_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

/* --- A64 -------------------------------------------------------------------------------------- */

static bool loads_aarch64(uint32_t word) {
  if ((word & 0x3B000000u) == 0x18000000u) return true; /* literal */
  if ((word & 0x3A000000u) == 0x38000000u && (word >> 26 & 1) == 0) return (word >> 22 & 3) != 0;
  return word >> 22 & 1;
}

Modelled classify_aarch64(const void *bytes) {
  uint32_t word = word_at(bytes);
  bool floating = word >> 26 & 1;
  Modelled result = {kInteger, 0, false};
  if ((word & 0x0A000000u) == 0x08000000u) {
    bool load = loads_aarch64(word);
    result.kind = floating ? (load ? kFloatLoad : kFloatStore) : (load ? kLoad : kStore);
  } else if ((word & 0x1C000000u) == 0x14000000u) {
    result.kind = kBranch;
    result.branches = true;
  } else if ((word & 0xBF20FC00u) == 0x0E20CC00u || (word & 0xBF80B400u) == 0x0F801000u) {
    result.kind = kVectorFused; /* fmla, fmls: of vectors, by an element */
  } else if ((word & 0xFF000000u) == 0x1F000000u || (word & 0xFF80B400u) == 0x5F801000u) {
    result.kind = kFloatFused;
  } else if ((word & 0x9E000000u) == 0x0E000000u) {
    result.kind = kVectorOther;
  } else if ((word & 0x0E000000u) == 0x0E000000u) {
    result.kind = kFloatOther;
  }
  return result;
}

/* --- A32 -------------------------------------------------------------------------------------- */

static bool matches(uint32_t word, uint32_t mask, uint32_t bits) { return (word & mask) == bits; }

static Modelled of_kind(InstructionClass kind) {
  Modelled result = {kind, 0, kind == kBranch};
  return result;
}

/* What has no condition: NEON, branches to Thumb, preloads. */
static InstructionClass classify_unconditional(uint32_t word) {
  if (matches(word, 0x0E000000u, 0x0A000000u)) return kBranch;
  if (matches(word, 0x0F100000u, 0x04000000u)) {
    return word >> 21 & 1 ? kFloatLoad : kFloatStore;
  }
  if (!matches(word, 0x0E000000u, 0x02000000u)) return kInteger;
  bool fused = matches(word, 0x0F900F10u, 0x02000C10u) || /* vfma, vfms */
               matches(word, 0x0F900F10u, 0x02000D10u) || /* vmla, vmls of f32 */
               matches(word, 0x0E800F10u, 0x02000900u) || /* of integers */
               matches(word, 0x0E800D50u, 0x02800800u) || /* vmlal, vmlsl */
               matches(word, 0x0E800A50u, 0x02800040u) || /* by an element */
               matches(word, 0x0E800B50u, 0x02800240u);   /* long, by an element */
  return fused ? kVectorFused : kVectorOther;
}

/* Of the unit of scalars, and copies between registers of both kinds. */
static InstructionClass classify_float(uint32_t word) {
  if (matches(word, 0x02000000u, 0)) { /* vldr, vldm, vstr, vstm */
    if (matches(word, 0x01E00000u, 0x00400000u)) return kFloatOther;
    return word >> 20 & 1 ? kFloatLoad : kFloatStore;
  }
  if (word & 0x10u) return kFloatOther;
  uint32_t operation = (word >> 21 & 4) | (word >> 20 & 3);
  if (operation == 2) return kFloatMultiply;
  if (operation == 4) return kFloatDivide;
  return operation == 3 || operation == 7 ? kFloatOther : kFloatFused;
}

Modelled classify_arm(const void *bytes) {
  uint32_t word = word_at(bytes);
  if (word >> 28 == 15) return of_kind(classify_unconditional(word));
  bool load = word >> 20 & 1;
  switch (word >> 25 & 7) {
    case 0: {
      if (matches(word, 0x0FFFFFD0u, 0x012FFF10u)) return of_kind(kBranch); /* bx, blx */
      if (!matches(word, 0x90u, 0x90u) || matches(word, 0x60u, 0)) return of_kind(kInteger);
      bool pair = !load && matches(word, 0x60u, 0x40u); /* ldrd */
      return of_kind(load || pair ? kLoad : kStore);
    }
    case 3:
      if (word & 0x10u) return of_kind(kInteger);
      return of_kind(load ? kLoad : kStore);
    case 2:
      return of_kind(load ? kLoad : kStore);
    case 4:
      return of_kind(kMultiple);
    case 5:
      return of_kind(kBranch);
    case 6:
    case 7:
      if (matches(word, 0xE00u, 0xA00u) && !matches(word, 0x0F000000u, 0x0F000000u)) {
        return of_kind(classify_float(word));
      }
      return of_kind(kInteger);
    default:
      return of_kind(kInteger);
  }
}
