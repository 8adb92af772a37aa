/* Instruction classes of Thumb-2, A32 and A64, and models of the cycles that a Cortex-M4F and a
 * Cortex-M55 take. A model ranks code; it is never a latency. README.md has their tables.
 *
 * Source of the figures: Arm's Cortex-M4 Technical Reference Manual, "Instruction set summary" and
 * "FPU instruction set"; for Cortex-M55, Arm's white paper on it (two beats of 64 bits make a
 * vector instruction; loads and arithmetic overlap; loops that end in LE take no branch). Memory
 * answers without wait states. */
#ifndef BACKCAST_CYCLE_MODEL_H
#define BACKCAST_CYCLE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  kInteger,
  kLoad,
  kStore,
  kMultiple, /* several registers from or to memory, of either kind */
  kBranch,
  kFloatLoad,
  kFloatStore,
  kFloatFused, /* multiply-accumulate, fused or not */
  kFloatDivide,
  kFloatMultiply,
  kFloatOther,
  kVectorFused, /* of NEON's and MVE's vectors, like the next; sums of products, too */
  kVectorOther,
  kVectorMemory, /* MVE's alone */
  kClassCount
} InstructionClass;

extern const char *const class_names[kClassCount];

typedef enum { kCortexM4, kCortexM55 } Core;

/* The unit that a vector instruction kept busy: a second one on the other unit overlaps it. */
typedef enum { kNoVector, kVectorLoads, kVectorComputes } VectorUnit;

/* What an instruction leaves to the next one of its block. Starts as {.written = -1, .loaded = -1}.
 */
typedef struct {
  Core core;
  int written; /* the single-precision register that arithmetic wrote, or -1 */
  bool memory; /* a load or store of one core register, whose data phase the next one overlaps */
  int loaded;  /* the core register it loaded, or -1 */
  VectorUnit vector;
} Pipeline;

typedef struct {
  InstructionClass kind;
  unsigned cycles; /* a branch that is taken costs kTakenBranch more */
  bool branches;   /* may change the program counter */
} Modelled;

enum { kTakenBranch = 2 };

/* `bytes`: 2 or 4, little-endian, as in memory. */
Modelled model_thumb(const void *bytes, size_t size, Pipeline *pipeline);
/* Classes only: cycles are 0 (linux_classes.c). */
Modelled classify_aarch64(const void *bytes);
Modelled classify_arm(const void *bytes);

#endif
