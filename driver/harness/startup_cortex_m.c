/* Start-up of a program without operating system or C library on any Cortex-M board of QEMU:
 * vector table, floating-point unit, data and bss, then harness_start(); its result becomes QEMU's
 * exit status. A CPU fault prints one line and exits with HARNESS_EXIT_FAULT. */
#include "bare.h"

void harness_reset(void);
void report_fault(uint32_t exception, const uint32_t *frame);
void start_program(void);

/* --- faults ---------------------------------------------------------------------------------- */

/* Runs on fault_stack. The stacked pc is readable unless the stack itself was the fault. */
__attribute__((used, noreturn)) void report_fault(uint32_t exception, const uint32_t *frame) {
  static char line[96];
  char *at = put(line, "harness: exception ");
  *at++ = (char)('0' + exception / 10 % 10);
  *at++ = (char)('0' + exception % 10);
  at = put_hex(put(at, ", cfsr "), *(volatile uint32_t *)0xE000ED28u);
  if ((uintptr_t)frame >= (uintptr_t)__stack_low &&
      (uintptr_t)frame + 32 <= (uintptr_t)__stack_top) {
    at = put_hex(put(at, ", pc "), frame[6]);
  } else {
    at = put(at, ", stack overflow");
  }
  *at = 0;
  end_in_fault(line);
}

__attribute__((used)) static uint64_t fault_stack[128];
__asm__(".global fault_stack_top\n.set fault_stack_top, fault_stack + 1024");

/* The stack pointer may be what is broken: the report gets a stack of its own. */
__attribute__((naked)) static void fault_handler(void) {
  __asm__ volatile(
      ".syntax unified\n\t"
      "mrs r0, ipsr\n\t"
      "mrs r1, msp\n\t"
#if __ARM_ARCH >= 8 && defined(__ARM_ARCH_8M_MAIN__)
      "movs r2, #0\n\t"
      "msr msplim, r2\n\t"
#endif
      "ldr r2, =fault_stack_top\n\t"
      "mov sp, r2\n\t"
      "ldr r3, =report_fault\n\t"
      "bx r3\n\t"
      ".ltorg\n");
}

/* --- reset ----------------------------------------------------------------------------------- */

typedef void (*Vector)(void);
__attribute__((section(".vectors"), used)) static const Vector vectors[16 + 64] = {
    [0] = (Vector)(uintptr_t)__stack_top,
    [1] = harness_reset,
    [2 ... 79] = fault_handler, /* nothing is enabled, so whatever comes is a fault */
};

/* QEMU's boards let code be overwritten, take writes through a null pointer, and (MPS2) ignore
 * writes to unused addresses. The memory protection unit makes code and address 0 read-only; on
 * ARMv7-M it also closes the 256 MB below RAM, so that a stack overflow faults. */
static void protect_memory(void) {
  volatile uint32_t *const mpu = (volatile uint32_t *)0xE000ED94u;
#if __ARM_ARCH < 8
  mpu[2] = 0x00000010u; /* region 0: from 0x00000000 */
  mpu[3] = 0x0602002Bu; /* 4 MB, read-only, executable */
  mpu[2] = 0x10000011u; /* region 1: from 0x10000000 */
  mpu[3] = 0x10000037u; /* 256 MB, no access */
#else
  mpu[11] = 0x000000FFu; /* attribute 0: normal memory */
  mpu[1] = 0u;           /* region 0: from 0x00000000, read-only, not executable */
  mpu[2] = 0x00000005u;
  mpu[3] = 0x0FFFFFE1u; /* to 0x0FFFFFFF */
  mpu[1] = 1u;          /* region 1: from 0x10000000, read-only, executable */
  mpu[2] = 0x10000004u;
  mpu[3] = 0x103FFFE1u; /* to 0x103FFFFF */
#endif
  mpu[0] = 5u; /* on, with the default map behind the regions */
  __asm__ volatile("dsb\n\tisb" ::: "memory");
}

__attribute__((used, noreturn)) void start_program(void) {
  protect_memory();
  run_harness();
}

/* Nothing here may use the stack's contents or a floating-point register before CPACR is written.
 */
__attribute__((naked)) void harness_reset(void) {
  __asm__ volatile(
      ".syntax unified\n\t"
#ifdef __ARM_FP
      "ldr r0, =0xE000ED88\n\t" /* CPACR: coprocessors 10 and 11, also MVE */
      "ldr r1, =0x00F00000\n\t"
      "ldr r2, [r0]\n\t"
      "orrs r2, r1\n\t"
      "str r2, [r0]\n\t"
#endif
      "ldr r0, =0xE000ED24\n\t" /* SHCSR: MemManage, BusFault, UsageFault (ARMv6-M: ignored) */
      "ldr r1, =0x00070000\n\t"
      "str r1, [r0]\n\t"
#ifndef __ARM_FEATURE_UNALIGNED
      "ldr r0, =0xE000ED14\n\t" /* CCR: trap unaligned accesses, which this core would not do */
      "ldr r1, [r0]\n\t"
      "movs r2, #8\n\t"
      "orrs r1, r2\n\t"
      "str r1, [r0]\n\t"
#endif
      "dsb\n\t"
      "isb\n\t"
      "ldr r0, =start_program\n\t"
      "bx r0\n\t"
      ".ltorg\n");
}
