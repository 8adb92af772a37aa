/* QEMU TCG plugin that counts the instructions a guest executes: all of them, those between two
 * marker functions, and those in given ranges of addresses.
 *
 *   -plugin instruction_counter.so,out=FILE[,begin=ADDRESS,end=ADDRESS][,isa=m4|m55|aarch64|arm]
 *           [,ranges=FILE]
 *
 * FILE gets a line "region …" for each pass from `begin` to `end`, "range I …" for each line
 * "ADDRESS SIZE" of `ranges`, and "total …" when the guest ends; … is the number of instructions
 * and, with isa=, "cycles=N" (m4, m55; cycle_model.h) and the number of each class. The markers are
 * told by the address of their first instruction, in a callback of that instruction alone: neither
 * its bytes nor the extent of a translation block matters. A marker is a bare return; a region
 * holds neither the markers nor their calls.
 *
 * Debian ships no qemu-plugin.h, so what is used of its version 1 is declared here. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cycle_model.h"

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;
enum { QEMU_PLUGIN_CB_NO_REGS = 0, QEMU_PLUGIN_INLINE_ADD_U64 = 0 };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*callback)(qemu_plugin_id_t,
                                                            struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
                                            void (*callback)(unsigned, void *), int flags,
                                            void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int operation,
                                                void *counter, uint64_t value);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, void *),
                                    void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
                               char **argv);

typedef struct {
  uint64_t instructions, cycles, classes[kClassCount];
} Counters;

/* Counters of one range of addresses; the last one is everything else. */
typedef struct {
  uint64_t begin, end;
  Counters count;
} Range;

/* A translation block: where it starts, and where the next one does if no branch is taken. */
typedef struct {
  uint64_t begin, end;
  Range *range;
  bool branches; /* its last instruction */
} Block;

enum { kNoClasses, kThumb, kAArch64, kArm };
static const uint64_t kNowhere = UINT64_MAX;
static FILE *out;
static int isa = kNoClasses;
static Core core;
static uint64_t begin_address, end_address;
static Range *ranges;
static size_t range_count; /* without the last one */
static Counters at_begin;
static bool inside;
static const Block *previous; /* null: the block before did not end in a branch */

/* --- while the guest runs ----------------------------------------------------------------------*/

static Counters sum_ranges(void) {
  Counters sum = {0};
  for (size_t i = 0; i <= range_count; i++) {
    sum.instructions += ranges[i].count.instructions;
    sum.cycles += ranges[i].count.cycles;
    for (int k = 0; k < kClassCount; k++) sum.classes[k] += ranges[i].count.classes[k];
  }
  return sum;
}

static void print_counters(const Counters *now, const Counters *before) {
  fprintf(out, " %" PRIu64, now->instructions - before->instructions);
  if (isa == kThumb) fprintf(out, " cycles=%" PRIu64, now->cycles - before->cycles);
  for (int k = 0; isa != kNoClasses && k < kClassCount; k++) {
    fprintf(out, " %s=%" PRIu64, class_names[k], now->classes[k] - before->classes[k]);
  }
  fprintf(out, "\n");
}

/* A marker's callback runs before its own instruction is counted. What is not the region's are the
 * begin marker's return and the call of the end marker: branches, of which the first is taken when
 * the region's first block is entered, and the second when the end marker's is. */
static void on_begin(unsigned cpu, void *data) {
  (void)cpu, (void)data;
  inside = true;
  at_begin = sum_ranges();
  at_begin.instructions += 2;
  at_begin.classes[kBranch] += 2;
  at_begin.cycles += 2 * (1 + kTakenBranch);
}

static void on_end(unsigned cpu, void *data) {
  (void)cpu, (void)data;
  if (!inside) return;
  inside = false;
  Counters now = sum_ranges();
  fprintf(out, "region");
  print_counters(&now, &at_begin);
}

static void on_block(unsigned cpu, void *data) {
  (void)cpu;
  const Block *block = data;
  if (previous != NULL && previous->end != block->begin) {
    previous->range->count.cycles += kTakenBranch;
  }
  previous = block->branches ? block : NULL;
}

/* --- when it is translated -------------------------------------------------------------------- */

static void add(struct qemu_plugin_insn *insn, uint64_t *counter, uint64_t value) {
  qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, counter, value);
}

static Range *range_of(uint64_t address) {
  for (size_t i = 0; i < range_count; i++) {
    if (address >= ranges[i].begin && address < ranges[i].end) return &ranges[i];
  }
  return &ranges[range_count];
}

/* Told before the markers' callbacks, so that the branch into a marker has its cycles by then. */
static Block *watch_block(struct qemu_plugin_tb *tb) {
  Block *block = calloc(1, sizeof *block);
  struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
  block->begin = qemu_plugin_insn_vaddr(first);
  block->range = range_of(block->begin);
  qemu_plugin_register_vcpu_insn_exec_cb(first, on_block, QEMU_PLUGIN_CB_NO_REGS, block);
  return block;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
  (void)id;
  size_t count = qemu_plugin_tb_n_insns(tb);
  Block *block = isa == kThumb && count > 0 ? watch_block(tb) : NULL;
  Pipeline pipeline = {core, -1, false, -1, kNoVector};
  for (size_t i = 0; i < count; i++) {
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
    uint64_t address = qemu_plugin_insn_vaddr(insn);
    size_t size = qemu_plugin_insn_size(insn);
    if (address == begin_address) {
      qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin, QEMU_PLUGIN_CB_NO_REGS, NULL);
    } else if (address == end_address) {
      qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
    Range *range = range_of(address);
    add(insn, &range->count.instructions, 1);
    if (isa == kNoClasses) continue;
    const void *bytes = qemu_plugin_insn_data(insn);
    Modelled m = isa == kThumb     ? model_thumb(bytes, size, &pipeline)
                 : isa == kAArch64 ? classify_aarch64(bytes)
                                   : classify_arm(bytes);
    add(insn, &range->count.classes[m.kind], 1);
    if (m.cycles > 0) add(insn, &range->count.cycles, m.cycles);
    if (block == NULL) continue;
    block->end = address + size;
    block->branches = m.branches;
  }
}

static void on_exit_guest(qemu_plugin_id_t id, void *data) {
  (void)id, (void)data;
  const Counters zero = {0};
  Counters sum = sum_ranges();
  for (size_t i = 0; i < range_count; i++) {
    fprintf(out, "range %zu", i);
    print_counters(&ranges[i].count, &zero);
  }
  fprintf(out, "total");
  print_counters(&sum, &zero);
  fclose(out);
}

/* --- options ---------------------------------------------------------------------------------- */

/* The address after `key` in `argument`, without Thumb's lowest bit. */
static bool take_address(const char *argument, const char *key, uint64_t *address) {
  size_t length = strlen(key);
  if (strncmp(argument, key, length) != 0) return false;
  char *rest;
  *address = strtoull(argument + length, &rest, 0) & ~UINT64_C(1);
  return rest != argument + length && *rest == 0;
}

static bool take_isa(const char *argument) {
  if (strcmp(argument, "isa=m4") == 0 || strcmp(argument, "isa=m55") == 0) {
    isa = kThumb;
    core = argument[5] == '5' ? kCortexM55 : kCortexM4;
  }
  if (strcmp(argument, "isa=aarch64") == 0) isa = kAArch64;
  if (strcmp(argument, "isa=arm") == 0) isa = kArm;
  return isa != kNoClasses;
}

static bool take_ranges(const char *argument) {
  if (strncmp(argument, "ranges=", 7) != 0) return false;
  FILE *file = fopen(argument + 7, "r");
  if (file == NULL) return false;
  uint64_t begin, size;
  while (fscanf(file, "%" SCNx64 " %" SCNx64, &begin, &size) == 2) {
    ranges = realloc(ranges, (range_count + 2) * sizeof *ranges);
    Range range = {begin & ~UINT64_C(1), (begin & ~UINT64_C(1)) + size, {0}};
    ranges[range_count++] = range;
  }
  fclose(file);
  return true;
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
                        char **argv) {
  (void)info;
  begin_address = end_address = kNowhere;
  ranges = calloc(1, sizeof *ranges);
  for (int i = 0; i < argc; i++) {
    if (strncmp(argv[i], "out=", 4) == 0) {
      out = fopen(argv[i] + 4, "w");
    } else if (!take_address(argv[i], "begin=", &begin_address) &&
               !take_address(argv[i], "end=", &end_address) && !take_ranges(argv[i]) &&
               !take_isa(argv[i])) {
      fprintf(stderr, "instruction_counter: cannot use %s\n", argv[i]);
      return 1;
    }
  }
  if (out == NULL) {
    fprintf(stderr, "instruction_counter: out=FILE is missing or cannot be written\n");
    return 1;
  }
  memset(&ranges[range_count], 0, sizeof *ranges);
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
  qemu_plugin_register_atexit_cb(id, on_exit_guest, NULL);
  return 0;
}
