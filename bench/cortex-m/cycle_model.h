/* Instruction classes of Thumb-2 and AArch64, and a model of the cycles a Cortex-M4F takes. The
 * model ranks code; it is never a latency. README.md has its table.
 *
 * Source of the figures: Arm's Cortex-M4 Technical Reference Manual, "Instruction set summary" and
 * "FPU instruction set". Memory answers without wait states. */
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
  kVectorFused, /* AArch64 only, like the next */
  kVectorOther,
  kClassCount
} InstructionClass;

extern const char *const class_names[kClassCount];

/* What an instruction leaves to the next one of its block. Starts as {.written = -1, .loaded = -1}.
 */
typedef struct {
  int written; /* the single-precision register that arithmetic wrote, or -1 */
  bool memory; /* a load or store of one core register, whose data phase the next one overlaps */
  int loaded;  /* the core register it loaded, or -1 */
} Pipeline;

typedef struct {
  InstructionClass kind;
  unsigned cycles; /* a branch that is taken costs kTakenBranch more */
  bool branches;   /* may change the program counter */
} Modelled;

enum { kTakenBranch = 2 };

/* `bytes`: 2 or 4, little-endian, as in memory. */
Modelled model_thumb(const void *bytes, size_t size, Pipeline *pipeline);
/* Classes only: cycles are 0. */
Modelled classify_aarch64(const void *bytes);

#endif
