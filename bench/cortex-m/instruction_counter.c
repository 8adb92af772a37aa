/* QEMU TCG plugin that counts the instructions a guest executes: all of them, and those between two
 * marker functions.
 *
 *   -plugin instruction_counter.so,out=FILE[,begin=ADDRESS,end=ADDRESS]
 *
 * FILE gets "region N" for each pass from `begin` to `end`, and "total N" when the guest ends. The
 * markers are told by the address of their first instruction, in a callback of that instruction
 * alone: neither the instruction's bytes nor the extent of a translation block matters. A marker is
 * a bare return; a region holds neither the markers nor their calls.
 *
 * Debian ships no qemu-plugin.h, so what is used of its version 1 is declared here. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
                               char **argv);

static const uint64_t kNowhere = UINT64_MAX;
static FILE *out;
static uint64_t begin_address, end_address;
static uint64_t total, at_begin;
static bool inside;

/* A callback runs before its own instruction is counted. The first 1 is the begin marker's return,
 * the second the call of the end marker. */
static void on_begin(unsigned cpu, void *data) {
  (void)cpu, (void)data;
  inside = true;
  at_begin = total + 1;
}

static void on_end(unsigned cpu, void *data) {
  (void)cpu, (void)data;
  if (!inside) return;
  inside = false;
  fprintf(out, "region %" PRIu64 "\n", total - at_begin - 1);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
  (void)id;
  size_t count = qemu_plugin_tb_n_insns(tb);
  for (size_t i = 0; i < count; i++) {
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
    uint64_t address = qemu_plugin_insn_vaddr(insn);
    if (address == begin_address) {
      qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin, QEMU_PLUGIN_CB_NO_REGS, NULL);
    } else if (address == end_address) {
      qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
    qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &total, 1);
  }
}

static void on_exit_guest(qemu_plugin_id_t id, void *data) {
  (void)id, (void)data;
  fprintf(out, "total %" PRIu64 "\n", total);
  fclose(out);
}

/* The address after `key` in `argument`, without Thumb's lowest bit. */
static bool take_address(const char *argument, const char *key, uint64_t *address) {
  size_t length = strlen(key);
  if (strncmp(argument, key, length) != 0) return false;
  char *rest;
  *address = strtoull(argument + length, &rest, 0) & ~UINT64_C(1);
  return rest != argument + length && *rest == 0;
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
                        char **argv) {
  (void)info;
  begin_address = end_address = kNowhere;
  for (int i = 0; i < argc; i++) {
    if (strncmp(argv[i], "out=", 4) == 0) {
      out = fopen(argv[i] + 4, "w");
    } else if (!take_address(argv[i], "begin=", &begin_address) &&
               !take_address(argv[i], "end=", &end_address)) {
      fprintf(stderr, "instruction_counter: cannot use %s\n", argv[i]);
      return 1;
    }
  }
  if (out == NULL) {
    fprintf(stderr, "instruction_counter: out=FILE is missing or cannot be written\n");
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
  qemu_plugin_register_atexit_cb(id, on_exit_guest, NULL);
  return 0;
}
