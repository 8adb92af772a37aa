#!/usr/bin/env python3
"""C compiles for machines and systems that nothing here can run: foreign_test.py BACKCAST

Xtensa, and phones and desktops by clang: without a warning, and with no undefined symbol that a
library may not have. Exit 77 if a compiler is not installed.
"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/contract"), str(ROOT / "tests/support")]
from archive_checks import COPIES  # noqa: E402
from commands import run, skip_without  # noqa: E402

CLANG = ["clang-19", "-ffreestanding"]  # there are no headers of these systems here
# name: target of ours, compiler, its lister of symbols, what it may need beside COPIES and helpers.
MACHINES = {
    # Debian's compiler is for a core whose floating-point unit is missing, and with it fmaf.
    "Xtensa": ("esp32", ["xtensa-lx106-elf-gcc", "-ffreestanding", "-mlongcalls"],
               "xtensa-lx106-elf-nm", {"fmaf"}),
    "iOS": ("aarch64", [*CLANG, "--target=arm64-apple-ios15"], "llvm-nm-19", {"bzero"}),
    "macOS": ("x86-64-v3", [*CLANG, "--target=x86_64-apple-macos13", "-march=x86-64-v3"],
              "llvm-nm-19", {"bzero"}),
    "Android": ("cortex-a76", [*CLANG, "--target=aarch64-linux-android26", "-mcpu=cortex-a76"],
                "llvm-nm-19", set()),
    "Windows": ("x86-64-v3", [*CLANG, "--target=x86_64-pc-windows-msvc", "-march=x86-64-v3"],
                "llvm-nm-19", {"fltused"}),
    "MinGW": ("x86-64", [*CLANG, "--target=x86_64-w64-mingw32", "-march=x86-64"],
              "llvm-nm-19", set()),
    "Windows on Arm": ("aarch64", [*CLANG, "--target=aarch64-pc-windows-msvc"],
                       "llvm-nm-19", {"fltused"}),
}
# The last has more constants than a C file is good for.
MODELS = {"kws": ["--winograd", "on"], "digits_cnn": ["--train", "--optimizer", "adam"],
          "ad": ["--train"]}


def unwanted(listed, extra):
    """Undefined symbols that are neither allowed nor the compiler's helpers. Some systems put an
    underscore before each name."""
    names = {name.removeprefix("_") for name in listed.split()}
    return sorted(name for name in names - COPIES - extra if not name.startswith("_"))


def main():
    skip_without(tool for _, compiler, lister, _ in MACHINES.values()
                 for tool in (compiler[0], lister))
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for machine, (target, compiler, lister, extra) in MACHINES.items():
            for name, options in MODELS.items():
                run(sys.argv[1], "compile", ROOT / f"tests/training/models/{name}.onnx", "--name",
                    "net", "--target", target, "--emit", "c", *options, "-o", ".", folder=folder)
                run(*compiler, "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-c", "net.c",
                    folder=folder)
                needed = unwanted(run(lister, "-u", "-j", "net.o", folder=folder), extra)
                if needed:
                    faults.append(f"{machine}: {name} needs {', '.join(needed)}")
        refused = subprocess.run([sys.argv[1], "compile", ROOT / "tests/training/models/kws.onnx",
                                  "--target", "esp32", "--emit", "lib", "-o", "."], cwd=folder,
                                 capture_output=True, text=True)
        if refused.returncode != 1 or "--emit c" not in refused.stderr:
            faults.append(f"esp32 --emit lib: status {refused.returncode}, {refused.stderr}")
    print("\n".join(faults) or f"{len(MACHINES) * len(MODELS)} libraries are as promised")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
