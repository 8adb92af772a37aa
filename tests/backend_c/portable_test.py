#!/usr/bin/env python3
"""C for a target without vectors is for every compiler of C99: portable_test.py BACKCAST

A network learns the same bits whatever compiles it: gcc with its extensions and without them,
clang, tcc, which has none, and gcc for a PowerPC, whose words begin with the other byte. Exit 77
if one of them is not installed.
"""

import pathlib
import shutil
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "support"))
from commands import run, skip_without  # noqa: E402

MODELS = TESTS / "training/models"
STRICT = ["-std=c99", "-O2", "-pedantic-errors", "-Wall", "-Wextra", "-Werror"]
ISO_C = ["-DBC_ISO_C", "-Wno-unknown-pragmas"]  # gcc knows no FP_CONTRACT
EMULATOR = "qemu-ppc" if shutil.which("qemu-ppc") else "qemu-ppc-static"
# compiler and options, what runs the program
GNU_C = (["gcc", *STRICT], [])
OTHERS = [
    (["gcc", *STRICT, *ISO_C, "-ffp-contract=off"], []),
    (["clang-19", *STRICT, *ISO_C], []),
    (["tcc", "-Wall", "-Werror"], []),
    (["powerpc-linux-gnu-gcc", *STRICT, *ISO_C, "-ffp-contract=off", "-static"], [EMULATOR]),
]
NETWORKS = [["digits_cnn", "--optimizer", "adam"],
            ["digits_cnn", "--optimizer", "momentum", "--winograd", "on"]]
# With GNU C the code of processors has instructions of their own.
TARGETS = {"c99": [GNU_C, *OTHERS], "cortex-m4": OTHERS, "riscv32f": OTHERS}


def main():
    skip_without(tool for compiler, runner in TARGETS["c99"] for tool in [compiler[0], *runner])
    faults = []
    for target, compilers in TARGETS.items():
        for model, *options in NETWORKS:
            with tempfile.TemporaryDirectory() as folder:
                run(sys.argv[1], "compile", MODELS / f"{model}.onnx", "--name", "net", "--emit",
                    "c", "--target", target, "--train", *options, "-o", ".", folder=folder)
                shutil.copy(TESTS / "support/learns.c", folder)
                expected = None
                for compiler, runner in compilers:
                    run(*compiler, "-o", "net", "net.c", "learns.c", "-lm", folder=folder)
                    printed = run(*runner, "./net", folder=folder)
                    if not printed.endswith("status 0\n"):
                        sys.exit(f"{target}, {model}, {compiler[0]}:\n{printed}")
                    expected = expected or printed
                    if printed != expected:
                        faults.append(f"{target}, {model}: {' '.join(compiler)} differs")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
