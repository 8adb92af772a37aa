/* See cycle_model.h. Encodings after the ARMv7-M Architecture Reference Manual, chapter A5 and A6,
 * and the Arm Architecture Reference Manual for A-profile, chapter C4. */
#include "cycle_model.h"

#include <string.h>

const char *const class_names[kClassCount] = {
    "integer",  "load",       "store",        "multiple",     "branch",
    "fp-load",  "fp-store",   "fp-fma",       "fp-divide",    "fp-multiply",
    "fp-other", "vector-fma", "vector-other", "vector-memory"};

/* A decoded instruction: what the model wants to know of it. */
typedef struct {
  Modelled result;
  int base;       /* core register a load or store forms its address from, or -1 */
  int loaded;     /* core register of a load, or -1 */
  int reads[3];   /* single-precision registers whose value is needed at once, or -1 */
  int writes;     /* single-precision register of arithmetic, or -1 */
  bool ends_loop; /* LE */
} Decoded;

static unsigned bits(unsigned word, unsigned high, unsigned low) {
  return word >> low & ((1u << (high - low + 1)) - 1);
}

static Decoded decoded(InstructionClass kind, unsigned cycles) {
  Decoded d = {{kind, cycles, kind == kBranch}, -1, -1, {-1, -1, -1}, -1, false};
  return d;
}

static Decoded transfer(bool load, unsigned base, unsigned data, unsigned cycles) {
  Decoded d = decoded(load ? kLoad : kStore, cycles);
  d.base = (int)base;
  if (load) d.loaded = (int)data;
  d.result.branches = load && data == 15;
  return d;
}

static Decoded multiple(unsigned registers, bool to_counter) {
  Decoded d = decoded(kMultiple, 1 + registers);
  d.result.branches = to_counter;
  return d;
}

static unsigned count_ones(unsigned word) {
  unsigned count = 0;
  for (; word != 0; word &= word - 1) ++count;
  return count;
}

/* --- 16 bits ---------------------------------------------------------------------------------- */

static Decoded decode_special(unsigned h) { /* with any register: add, cmp, mov, bx */
  unsigned operation = bits(h, 9, 8), target = bits(h, 7, 7) << 3 | bits(h, 2, 0);
  bool branch = operation == 3 || (operation != 1 && target == 15);
  return decoded(branch ? kBranch : kInteger, 1);
}

static Decoded decode_short_misc(unsigned h) {
  if (bits(h, 11, 8) % 2 == 1 && bits(h, 10, 10) == 0) return decoded(kBranch, 1); /* cbz, cbnz */
  if (bits(h, 11, 9) == 2) return multiple(count_ones(bits(h, 8, 0)), false);      /* push */
  if (bits(h, 11, 9) == 6) return multiple(count_ones(bits(h, 8, 0)), bits(h, 8, 8)); /* pop */
  return decoded(kInteger, 1);
}

static Decoded decode_short(unsigned h) {
  bool load = bits(h, 11, 11);
  switch (bits(h, 15, 12)) {
    case 4:
      if (load) return transfer(true, 15, bits(h, 10, 8), 2); /* from the literal pool */
      return bits(h, 10, 10) ? decode_special(h) : decoded(kInteger, 1);
    case 5: /* register offset: a store takes a second cycle */
      return transfer(bits(h, 11, 9) > 2, bits(h, 5, 3), bits(h, 2, 0), 2);
    case 6:
    case 7:
    case 8:
      return transfer(load, bits(h, 5, 3), bits(h, 2, 0), load ? 2 : 1);
    case 9:
      return transfer(load, 13, bits(h, 10, 8), load ? 2 : 1);
    case 11:
      return decode_short_misc(h);
    case 12:
      return multiple(count_ones(bits(h, 7, 0)), false);
    case 13:
      return decoded(kBranch, 1);
    case 14:
      return decoded(kBranch, 1);
    default:
      return decoded(kInteger, 1);
  }
}

/* --- 32 bits ---------------------------------------------------------------------------------- */

static Decoded decode_multiple_or_dual(unsigned h, unsigned l) {
  bool load = bits(h, 4, 4);
  if (bits(h, 6, 6) == 0) return multiple(count_ones(l), load && bits(l, 15, 15));
  if (bits(h, 8, 4) == 0x0D && bits(l, 7, 5) == 0) return decoded(kBranch, 2); /* tbb, tbh */
  if (bits(h, 8, 8) == 0 && bits(h, 5, 5) == 0) {                              /* exclusive */
    return transfer(load, bits(h, 3, 0), bits(l, 15, 12), 2);
  }
  return multiple(2, false); /* ldrd, strd */
}

static Decoded decode_float_transfer(unsigned h, unsigned l) {
  if (bits(h, 8, 5) == 2) return decoded(kFloatOther, 2); /* two core registers */
  bool load = bits(h, 4, 4);
  if (bits(h, 8, 8) == 0 || bits(h, 5, 5) == 1) return multiple(bits(l, 7, 0), false);
  Decoded d = decoded(load ? kFloatLoad : kFloatStore, bits(l, 8, 8) ? 3 : 2);
  if (!load) d.reads[0] = (int)(bits(l, 15, 12) << 1 | bits(h, 6, 6));
  return d;
}

/* Conversions, comparisons, moves, square root. */
static Decoded decode_float_unary(unsigned h, unsigned l, int target, int source) {
  unsigned operation = bits(h, 3, 0);
  if (bits(l, 6, 6) == 0) return decoded(kFloatOther, 1); /* an immediate */
  bool root = operation == 1 && bits(l, 7, 7);
  bool compares = operation == 4 || operation == 5;
  Decoded d = decoded(root ? kFloatDivide : kFloatOther, root ? 14 : 1);
  if (operation != 5) d.reads[0] = source;
  if (compares) d.reads[1] = target;
  if (root || (operation > 1 && !compares)) d.writes = target;
  return d;
}

static Decoded decode_float(unsigned h, unsigned l) {
  int target = (int)(bits(l, 15, 12) << 1 | bits(h, 6, 6));
  int first = (int)(bits(h, 3, 0) << 1 | bits(l, 7, 7));
  int second = (int)(bits(l, 3, 0) << 1 | bits(l, 5, 5));
  if (bits(l, 4, 4)) { /* between a core register and one of these */
    Decoded d = decoded(kFloatOther, 1);
    if (bits(h, 4, 4)) d.reads[0] = first;
    return d;
  }
  Decoded d;
  switch (bits(h, 7, 7) << 2 | bits(h, 5, 4)) {
    case 2:
      d = decoded(kFloatMultiply, 1);
      break;
    case 3:
      d = decoded(kFloatOther, 1); /* addition, subtraction */
      break;
    case 4:
      d = decoded(kFloatDivide, 14);
      break;
    case 7:
      return decode_float_unary(h, l, target, second);
    default: /* the addend is read a cycle later */
      d = decoded(kFloatFused, 3);
      break;
  }
  d.reads[0] = first;
  d.reads[1] = second;
  d.writes = target;
  return d;
}

static Decoded decode_single(unsigned h, unsigned l) {
  bool load = bits(h, 4, 4);
  bool by_register = bits(h, 7, 7) == 0 && bits(l, 11, 6) == 0 && bits(h, 3, 0) != 15;
  return transfer(load, bits(h, 3, 0), bits(l, 15, 12), load || by_register ? 2 : 1);
}

/* MVE (Armv8.1-M Architecture Reference Manual, C2.4): coprocessors 14 and 15, and what A32 has of
 * SIMD. */
static bool is_vector(unsigned h, unsigned l) {
  return bits(h, 11, 10) == 3 && bits(h, 15, 13) == 7 &&
         (bits(h, 9, 8) == 3 || bits(l, 11, 9) == 7);
}

static Decoded decode_vector(unsigned h, unsigned l) {
  if (bits(h, 9, 9) == 0) return decoded(kVectorMemory, 2);
  bool fused = (l & 0x1F51u) == 0x0C50u && bits(h, 9, 8) == 3;           /* vfma, vfms */
  bool by_scalar = (l & 0x0F70u) == 0x0E40u && (h & 0xEF81u) == 0xEE01u; /* vfma, vmla, vmlas */
  bool across = (l & 0x0E10u) == 0x0E00u && (h & 0xEF81u) == 0xEE80u;    /* vmladav, vmlava, … */
  return decoded(fused || by_scalar || across ? kVectorFused : kVectorOther, 2);
}

static Decoded decode_long(unsigned h, unsigned l) {
  if (is_vector(h, l)) return decode_vector(h, l);
  if (h == 0xF00Fu && bits(l, 15, 12) == 12 && bits(l, 0, 0) == 1) { /* le lr */
    Decoded d = decoded(kBranch, 1);
    d.ends_loop = true;
    return d;
  }
  bool floating = bits(h, 11, 10) == 3 && bits(l, 11, 9) == 5;
  switch (bits(h, 12, 11)) {
    case 1:
      if (floating) return bits(h, 9, 9) ? decode_float(h, l) : decode_float_transfer(h, l);
      if (bits(h, 10, 9) == 0) return decode_multiple_or_dual(h, l);
      return decoded(kInteger, 1);
    case 2: {
      bool control = bits(l, 15, 15) == 1; /* branches; and barriers, special registers */
      bool conditional = bits(l, 14, 14) == 0 && bits(l, 12, 12) == 0;
      bool other = conditional && bits(h, 9, 7) == 7;
      return decoded(control && !other ? kBranch : kInteger, 1);
    }
    default: {
      if (floating) return decode_float(h, l);
      if (bits(h, 10, 9) == 0) return decode_single(h, l);
      bool divides = bits(h, 10, 7) == 7 && bits(h, 4, 4) == 1 && bits(l, 7, 4) == 15;
      return decoded(kInteger, divides ? 7 : 1);
    }
  }
}

/* Cortex-M55: every instruction that is no branch, division or transfer of several registers takes
 * one cycle, a vector's two, of which the second overlaps one on the other unit. */
static Modelled model_m55(Decoded d, Pipeline *pipeline) {
  Modelled m = d.result;
  VectorUnit unit = kNoVector;
  switch (m.kind) {
    case kLoad:
    case kStore:
    case kFloatLoad:
    case kFloatStore:
    case kFloatFused:
      m.cycles = 1;
      break;
    case kMultiple: /* two words at a time */
      m.cycles = m.cycles / 2;
      break;
    case kVectorMemory:
      unit = kVectorLoads;
      break;
    case kVectorFused:
    case kVectorOther:
      unit = kVectorComputes;
      break;
    default:
      break;
  }
  if (unit != kNoVector && pipeline->vector != kNoVector && pipeline->vector != unit) m.cycles = 1;
  if (d.ends_loop) {
    m.cycles = 0;
    m.branches = false;
  }
  pipeline->vector = unit;
  return m;
}

Modelled model_thumb(const void *bytes, size_t size, Pipeline *pipeline) {
  uint16_t halves[2] = {0, 0};
  memcpy(halves, bytes, size < sizeof halves ? size : sizeof halves);
  Decoded d = size == 2 ? decode_short(halves[0]) : decode_long(halves[0], halves[1]);
  if (pipeline->core == kCortexM55) return model_m55(d, pipeline);
  for (int i = 0; i < 3; i++) {
    if (d.reads[i] < 0 || d.reads[i] != pipeline->written) continue;
    d.result.cycles++;
    break;
  }
  bool memory = d.result.kind == kLoad || d.result.kind == kStore;
  if (d.result.kind == kLoad && pipeline->memory && pipeline->loaded != d.base) {
    d.result.cycles = 1;
  }
  Pipeline next = {pipeline->core, d.writes, memory, d.loaded, kNoVector};
  *pipeline = next;
  return d.result;
}
