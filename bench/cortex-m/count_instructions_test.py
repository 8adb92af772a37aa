#!/usr/bin/env python3
"""Tests the instruction counter on programs whose counts are known by construction.

The begin and end marker, and the calls of them, are moved through the last bytes of a 1 kB page and
the first of the next, where translation blocks end: every position must count the same.
"""

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
# Outside: movs; per region both calls, both returns, subs, bne; ldr, movs. The bkpt ends the guest
# as part of its own instruction and may or may not be counted.
TOTAL = 1 + 3 * (REGION + 6) + 2


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
        for caller, begin, end in positions:
            source, elf = pathlib.Path(folder) / "program.S", pathlib.Path(folder) / "program.elf"
            source.write_text(PROGRAM.format(caller=caller, begin=begin, end=end))
            subprocess.run(["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-nostdlib",
                            "-Wl,-Ttext=0", "-Wl,--entry=reset", "-Wl,-z,max-page-size=4096",
                            str(source), "-o", str(elf)], check=True, timeout=60)
            status, total, regions = COUNTER.count(elf, plugin, limit=60)
            if status != 0 or regions != [REGION] * 3 or total not in (TOTAL, TOTAL + 1):
                failures += 1
                print(f"caller {caller:#x}, begin {begin:#x}, end {end:#x}: exit {status}, "
                      f"{regions}, total {total}; expected {REGION}, {TOTAL}", file=sys.stderr)
    print(f"{len(positions)} positions, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
