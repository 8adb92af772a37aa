#!/usr/bin/env python3
"""Tests the instruction counter on programs whose counts are known by construction.

The begin and end marker, and the calls of them, are moved through the last bytes of a 1 kB page and
the first of the next, where translation blocks end: every position must count the same. A second
program holds a sequence whose modelled cycles are written beside each instruction.
"""

import collections
import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LOADER = importlib.machinery.SourceFileLoader("count_instructions",
                                              str(HERE / "count-instructions"))
COUNTER = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("count_instructions", LOADER))
LOADER.exec_module(COUNTER)

# Three regions of 2 instructions and 100 turns of a loop of 3, then exit through semihosting.
PROGRAM = """
  .syntax unified
  .cpu cortex-m4
  .thumb
  .section .text
  .word 0x20010000, reset + 1
  .org {caller:#x}
  .thumb_func
  .global reset
reset:
  movs r4, #3
outer:
  bl harness_count_begin
  ldr r5, =100
  nop
inner:
  subs r5, r5, #1
  nop.w
  bne inner
  bl harness_count_end
  subs r4, r4, #1
  bne outer
  ldr r1, =exit_block
  movs r0, #0x20
  bkpt 0xab
  .ltorg
  .align 2
exit_block:
  .word 0x20026, 0
  .org {begin:#x}
  .thumb_func
  .global harness_count_begin
harness_count_begin:
  bx lr
  .org {end:#x}
  .thumb_func
  .global harness_count_end
harness_count_end:
  bx lr
"""
REGION = 2 + 3 * 100
REGION_CYCLES = 2 + 100 * 2 + 99 * 3 + 1
# Outside: movs; per region both calls, both returns, subs, bne; ldr, movs. The bkpt ends the guest
# as part of its own instruction and may or may not be counted.
TOTAL = 1 + 3 * (REGION + 6) + 2


# Modelled cycles: what the manual says of each instruction where it stands.
SEQUENCE = [
    ("vldr s0, [r4]", 2, "fp-load"), ("vldr s1, [r4, #4]", 2, "fp-load"),
    ("vldr d1, [r4]", 3, "fp-load"),
    ("vmul.f32 s4, s0, s1", 1, "fp-multiply"),
    ("vadd.f32 s5, s5, s4", 1 + 1, "fp-other"),      # waits for the product
    ("vmul.f32 s6, s0, s1", 1, "fp-multiply"), ("vmul.f32 s7, s0, s1", 1, "fp-multiply"),
    ("vadd.f32 s5, s5, s6", 1, "fp-other"), ("vsub.f32 s8, s7, s0", 1, "fp-other"),
    ("vfma.f32 s9, s0, s1", 3, "fp-fma"), ("vmla.f32 s9, s0, s1", 3, "fp-fma"),  # addend: no wait
    ("vfms.f32 s10, s9, s1", 3 + 1, "fp-fma"),       # factor: waits
    ("vstr s10, [r4, #8]", 2 + 1, "fp-store"), ("vstr d1, [r4, #8]", 3, "fp-store"),
    ("vdiv.f32 s11, s0, s1", 14, "fp-divide"), ("vsqrt.f32 s12, s11", 14 + 1, "fp-divide"),
    ("vcvt.s32.f32 s13, s12", 1 + 1, "fp-other"), ("vcmp.f32 s13, #0", 1 + 1, "fp-other"),
    ("vneg.f32 s14, s13", 1, "fp-other"), ("vmov r0, s14", 1, "fp-other"),  # a move: no wait
    ("vldmia r4, {s16-s19}", 5, "multiple"), ("ldmia r4, {r0-r2}", 4, "multiple"),
    ("ldrd r0, r1, [r4]", 3, "multiple"), ("push {r0-r3}", 5, "multiple"),
    ("pop {r0-r3}", 5, "multiple"), ("nop", 1, "integer"),
    ("ldr r5, [r4, #12]", 2, "load"), ("ldr r6, [r4, #4]", 1, "load"),
    ("ldr.w r7, [r4, #16]", 1, "load"), ("ldr r7, [r7]", 2, "load"),  # waits for its address
    ("str r7, [r4, #12]", 1, "store"), ("ldrh r6, [r4, #4]", 1, "load"),
    ("nop", 1, "integer"), ("ldrb.w r6, [r4, r0]", 2, "load"), ("str.w r6, [r4, r0]", 2, "store"),
    ("mul r0, r0, r1", 1, "integer"), ("smlal r0, r1, r2, r3", 1, "integer"),
    ("udiv r0, r0, r1", 7, "integer"), ("add.w r0, r0, #3", 1, "integer"),
    ("movs r5, #10\n1:\n  subs r5, r5, #1\n  bne 1b", 1 + 10 + 9 * 3 + 1,
     "integer " * 11 + "branch " * 10),
    ("b 2f\n  nop\n2:", 3, "branch"), ("cbz r4, 3f\n  nop\n3:", 1 + 1, "branch integer"),
    ("bl 4f\n  b 5f\n4:\n  bx lr\n5:", 3 + 3 + 3, "branch " * 3)]
# The same of a Cortex-M55: the second cycle of a vector goes on beside one on the other unit.
M55_SEQUENCE = [
    ("ldr r0, [r4]", 1, "load"), ("nop", 1, "integer"), ("vldr s0, [r4]", 1, "fp-load"),
    ("vldrw.u32 q1, [r4]", 2, "vector-memory"), ("vfma.f32 q0, q1, r0", 1, "vector-fma"),
    ("vfma.f32 q2, q1, q0", 2, "vector-fma"), ("vldrb.s32 q3, [r4]", 1, "vector-memory"),
    ("vmla.s32 q2, q3, r0", 1, "vector-fma"), ("vadd.f32 q2, q1, q3", 2, "vector-other"),
    ("nop", 1, "integer"), ("vmladava.s8 r0, q1, q3", 2, "vector-fma"),
    ("vmladava.u8 r0, q1, q3", 2, "vector-fma"), ("vmladava.s16 r0, q1, q3", 2, "vector-fma"),
    ("vmul.f32 q2, q1, q3", 2, "vector-other"), ("vmul.f32 q2, q1, r0", 2, "vector-other"),
    ("vcmp.f32 lt, q1, q3", 2, "vector-other"), ("vpsel q2, q1, q3", 2, "vector-other"),
    # QEMU ends a block behind vpsel, and with it what the model looks back on.
    ("vmul.f32 q2, q1, q3", 2, "vector-other"),
    ("vstrw.32 q2, [r4]", 1, "vector-memory"), ("vld20.32 {q2, q3}, [r4]", 2, "vector-memory"),
    ("vmul.f32 s4, s0, s1", 1, "fp-multiply"), ("vfma.f32 s9, s0, s4", 1, "fp-fma"),
    ("push {r0-r3}", 2, "multiple"), ("pop {r0-r3}", 2, "multiple"),
    ("movs r5, #10\n  dls lr, r5\n1:\n  nop\n  le lr, 1b", 1 + 1 + 10,
     "integer branch " + "integer branch " * 10)]
SEQUENCE_PROGRAM = """
  .syntax unified
  .thumb
  .section .text
  .word {memory} + 0x8000, reset + 1
  .thumb_func
  .global reset
reset:
  ldr r0, =0xE000ED88
  mov.w r1, #0xF00000
  str r1, [r0]
  ldr r4, ={memory} + 0x100
  movs r0, #0
  str r4, [r4, #16]
  bl harness_count_begin
  {sequence}
  bl harness_count_end
  ldr r1, =exit_block
  movs r0, #0x20
  bkpt 0xab
  .ltorg
  .align 2
exit_block:
  .word 0x20026, 0
  .thumb_func
  .global harness_count_begin
harness_count_begin:
  bx lr
  .thumb_func
  .global harness_count_end
harness_count_end:
  bx lr
"""


LINUX_PROGRAM = """
  .text
  .global _start, harness_count_begin, harness_count_end
_start:
  {setup}
  bl harness_count_begin
  {sequence}
  bl harness_count_end
  {exit}
harness_count_begin:
  {end}
harness_count_end:
  {end}
"""

# By compiler: options, QEMU, what surrounds the sequence, each instruction with its class.
LINUX = {
    "arm-linux-gnueabihf-gcc": (
        ["-march=armv7-a", "-marm", "-mfpu=neon-vfpv4", "-mfloat-abi=hard"], "qemu-arm",
        {"setup": "sub sp, sp, #64", "exit": "mov r7, #1\n  mov r0, #0\n  svc #0", "end": "bx lr"},
        [("vld1.32 {d0-d1}, [sp]", "fp-load"), ("vst1.32 {d0-d1}, [sp]", "fp-store"),
         ("vld1.32 {d0[], d1[]}, [sp]", "fp-load"), ("vldr s4, [sp, #4]", "fp-load"),
         ("vstr d3, [sp, #8]", "fp-store"), ("vldmia sp, {d0-d3}", "fp-load"),
         ("vmla.f32 q8, q9, d0[1]", "vector-fma"), ("vmla.f32 q8, q9, q0", "vector-fma"),
         ("vfma.f32 q8, q9, q0", "vector-fma"), ("vmlal.s16 q8, d0, d1", "vector-fma"),
         ("vmlal.s16 q8, d0, d1[2]", "vector-fma"), ("vmla.i32 q8, q9, q0", "vector-fma"),
         ("vadd.f32 q8, q9, q0", "vector-other"), ("vmul.f32 q8, q9, d0[0]", "vector-other"),
         ("vmovl.s16 q8, d0", "vector-other"), ("vorr q8, q9, q0", "vector-other"),
         ("vmla.f32 s0, s1, s2", "fp-fma"), ("vfma.f32 s0, s1, s2", "fp-fma"),
         ("vmul.f32 s0, s1, s2", "fp-multiply"), ("vdiv.f32 s0, s1, s2", "fp-divide"),
         ("vadd.f32 s0, s1, s2", "fp-other"), ("vmov r0, s0", "fp-other"),
         ("vmov r0, r1, d0", "fp-other"), ("ldr r0, [sp]", "load"), ("str r0, [sp, #4]", "store"),
         ("ldrsh r0, [sp, #2]", "load"), ("strh r0, [sp, #2]", "store"),
         ("ldrd r0, r1, [sp]", "load"), ("ldm sp, {r0, r1}", "multiple"),
         ("mul r0, r1, r2", "integer"), ("add r0, r0, #4", "integer"),
         ("sbfx r0, r1, #3, #8", "integer"), ("b 1f\n1:", "branch")]),
    "aarch64-linux-gnu-gcc": (
        ["-march=armv8-a"], "qemu-aarch64",
        {"setup": "sub sp, sp, #64", "exit": "mov x8, #93\n  mov x0, #0\n  svc #0", "end": "ret"},
        [("ldr q0, [sp]", "fp-load"), ("ldp q0, q1, [sp]", "fp-load"),
         ("ld1r {v0.4s}, [sp]", "fp-load"), ("str q0, [sp]", "fp-store"),
         ("fmla v0.4s, v1.4s, v2.4s", "vector-fma"), ("fmla v0.4s, v1.4s, v2.s[1]", "vector-fma"),
         ("fadd v0.4s, v1.4s, v2.4s", "vector-other"), ("fmadd s0, s1, s2, s3", "fp-fma"),
         ("fadd s0, s1, s2", "fp-other"), ("ldr w0, [sp]", "load"), ("str w0, [sp]", "store"),
         ("add x0, x0, #4", "integer"), ("b 1f\n1:", "branch")])}

Machine = collections.namedtuple("Machine", "cpu board core text memory")
M4 = Machine("cortex-m4", "mps2-an386", "m4", "0", "0x20000000")
M55 = Machine("cortex-m55", "mps3-an547", "m55", "0x10000000", "0x30000000")


def run(text, plugin, folder, machine=M4):
    source, elf = pathlib.Path(folder) / "program.S", pathlib.Path(folder) / "program.elf"
    source.write_text(text)
    subprocess.run(["arm-none-eabi-gcc", f"-mcpu={machine.cpu}", "-mthumb", "-nostdlib",
                    "-mfloat-abi=hard", f"-Wl,-Ttext={machine.text}", "-Wl,--entry=reset",
                    "-Wl,-z,max-page-size=4096", str(source), "-o", str(elf)],
                   check=True, timeout=60)
    return COUNTER.count(elf, plugin, machine.board, limit=60, core=machine.core)


def test_sequence(sequence, machine, plugin, folder):
    text = "\n  ".join(text for text, _, _ in sequence)
    program = SEQUENCE_PROGRAM.format(sequence=text, memory=machine.memory)
    regions = run(program, plugin, folder, machine).regions
    cycles = sum(cycles for _, cycles, _ in sequence)
    classes = collections.Counter(" ".join(kinds for _, _, kinds in sequence).split())
    if (len(regions) == 1 and regions[0].cycles == cycles
            and collections.Counter(regions[0].classes) == classes):
        return 0
    print(f"{machine.cpu}: {regions}; expected {cycles} cycles, {dict(classes)}", file=sys.stderr)
    return 1


def test_linux(compiler, plugin, folder):
    """Only QEMU's dynamically linked programs take a plugin; skipped where they are not."""
    options, emulator, around, sequence = LINUX[compiler]
    if not shutil.which(compiler) or not shutil.which(emulator):
        print(f"{compiler} or {emulator} is not installed: skipped")
        return 0
    elf = pathlib.Path(folder) / "linux"
    text = "\n  ".join(text for text, _ in sequence)
    elf.with_suffix(".S").write_text(LINUX_PROGRAM.format(sequence=text, **around))
    subprocess.run([compiler, *options, "-nostdlib", "-static", str(elf.with_suffix(".S")), "-o",
                    str(elf)], check=True, timeout=60)
    regions = COUNTER.count(elf, plugin, limit=60, user="max").regions
    classes = collections.Counter(kind for _, kind in sequence)
    if len(regions) == 1 and collections.Counter(regions[0].classes) == classes:
        return 0
    print(f"{compiler}: {regions}; expected {dict(classes)}", file=sys.stderr)
    return 1


def main():
    if not shutil.which("arm-none-eabi-gcc") or not shutil.which("qemu-system-arm"):
        print("arm-none-eabi-gcc or qemu-system-arm is not installed: skipped")
        return 77
    positions = [(0x100, 0x1000 + at, 0x2000) for at in (-8, -6, -4, -2, 0, 2)]
    positions += [(0x100, 0x1000, 0x2000 + at) for at in (-4, -2, 0)]
    positions += [(0x800 + at, 0x1000, 0x2000) for at in range(-34, 4, 2)]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        plugin = COUNTER.build_plugin(folder)
        failures += test_sequence(SEQUENCE, M4, plugin, folder)
        failures += test_sequence(M55_SEQUENCE, M55, plugin, folder)
        failures += sum(test_linux(compiler, plugin, folder) for compiler in LINUX)
        for caller, begin, end in positions:
            found = run(PROGRAM.format(caller=caller, begin=begin, end=end), plugin, folder)
            counts = [(region.instructions, region.cycles) for region in found.regions]
            if (found.status != 0 or counts != [(REGION, REGION_CYCLES)] * 3
                    or found.total.instructions not in (TOTAL, TOTAL + 1)):
                failures += 1
                print(f"caller {caller:#x}, begin {begin:#x}, end {end:#x}: {counts}, "
                      f"total {found.total.instructions}; expected {REGION} instructions, "
                      f"{REGION_CYCLES} cycles, {TOTAL} in all", file=sys.stderr)
    print(f"{len(SEQUENCE) + len(M55_SEQUENCE)} instructions, {len(positions)} positions, "
          f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
