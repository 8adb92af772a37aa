/* Start-up of a program without operating system or C library on QEMU's RISC-V machine `virt`:
 * floating-point unit, memory protection, data and bss, then harness_start(); its result becomes
 * QEMU's exit status. A trap prints one line and exits with HARNESS_EXIT_FAULT. */
#include "bare.h"

extern unsigned char __code_start[], __code_end[], __constants_start[], __pool1_start[];

void harness_reset(void);
void start_program(void);
void report_trap(uint32_t cause, uint32_t pc, uint32_t address);

__attribute__((used)) static uint64_t trap_stack[128];
__asm__(".global trap_stack_top\n.set trap_stack_top, trap_stack + 1024");

/* Runs on trap_stack. */
__attribute__((used, noreturn)) void report_trap(uint32_t cause, uint32_t pc, uint32_t address) {
  static char line[96];
  char *at = put_hex(put(line, "harness: trap, mcause "), cause);
  at = put_hex(put(at, ", pc "), pc);
  const int below = address >= (uintptr_t)__code_end && address < (uintptr_t)__stack_low;
  at = below ? put(at, ", stack overflow") : put_hex(put(at, ", address "), address);
  *at = 0;
  end_in_fault(line);
}

/* The stack pointer may be what is broken: the report gets a stack of its own. */
__attribute__((naked, aligned(4))) static void trap_handler(void) {
  __asm__ volatile(
      ".option push\n\t.option arch, +zicsr\n\t"
      "la sp, trap_stack_top\n\t"
      "csrr a0, mcause\n\t"
      "csrr a1, mepc\n\t"
      "csrr a2, mtval\n\t"
      "j report_trap\n\t"
      ".option pop");
}

/* QEMU lets code and constants be overwritten and the stack grow into what lies below it. Entries
 * of the physical memory protection that are locked hold for machine mode too: code is read and
 * executed, between it and the stack lies nothing, constants are read. Whole pages are quick. */
static void protect_memory(void) {
  enum { kRead = 1, kExecute = 4, kUpTo = 8, kLocked = 128, kPage = 4096 };
  const uint32_t constants_end = (uint32_t)(uintptr_t)__pool1_start & ~(uint32_t)(kPage - 1);
  const uint32_t code = kLocked | kUpTo | kRead | kExecute, gap = kLocked | kUpTo;
  const uint32_t constants = kLocked | kUpTo | kRead;
  __asm__ volatile(
      ".option push\n\t.option arch, +zicsr\n\t"
      "csrw pmpaddr0, %0\n\t"
      "csrw pmpaddr1, %1\n\t"
      "csrw pmpaddr2, %2\n\t"
      "csrw pmpaddr3, %3\n\t"
      "csrw pmpaddr4, %4\n\t"
      "csrw pmpcfg1, %6\n\t"
      "csrw pmpcfg0, %5\n\t"
      ".option pop" ::"r"((uint32_t)(uintptr_t)__code_start >> 2),
      "r"((uint32_t)(uintptr_t)__code_end >> 2), "r"((uint32_t)(uintptr_t)__stack_low >> 2),
      "r"((uint32_t)(uintptr_t)__constants_start >> 2), "r"(constants_end >> 2),
      "r"(code << 8 | gap << 16), "r"(constants)
      : "memory");
}

__attribute__((used, noreturn)) void start_program(void) {
  protect_memory();
  run_harness();
}

/* The machine starts at the first byte of memory. */
__attribute__((naked, section(".vectors"))) void harness_reset(void) {
  __asm__ volatile(
      ".option push\n\t.option arch, +zicsr\n\t"
      "la sp, __stack_top\n\t"
      "la t0, %0\n\t"
      "csrw mtvec, t0\n\t"
#ifdef __riscv_flen
      "li t0, 0x2000\n\t" /* mstatus.FS: the floating-point unit is on */
      "csrs mstatus, t0\n\t"
      "csrw fcsr, zero\n\t"
#endif
      "j start_program\n\t"
      ".option pop" ::"i"(trap_handler));
}
