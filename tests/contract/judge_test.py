#!/usr/bin/env python3
"""Shows that the checks of contract_test.py notice what they are for: each way of breaking the
contract (broken.c) has to be found, and the library that breaks none has to pass."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import archive_checks  # noqa: E402
import contract_test  # noqa: E402
import library as library_of  # noqa: E402

KINDS = ("NONE", "OUTPUT_OVERRUN", "ARENA_UNDERRUN", "INPUT_OVERREAD", "INPUT_WRITE", "DIRTY_ARENA",
         "SHARED_STATE", "WRONG_STATUS", "EARLY_WRITE", "NO_ALIGNMENT_CHECK", "LIBM", "HEAP",
         "NO_PREFIX", "CONSTANT_OUTPUT")
# What the faults have to say: of the files first, then of running it (None: nothing to find).
FINDINGS = {
    "NONE": (None, None), "OUTPUT_OVERRUN": (None, "an access outside of its buffers"),
    "ARENA_UNDERRUN": (None, "wrote beside the arena"),
    "INPUT_OVERREAD": (None, "an access outside of its buffers"),
    "INPUT_WRITE": (None, "an access outside of its buffers"),
    "DIRTY_ARENA": (None, "what memory held before changes outputs"),
    "SHARED_STATE": ("writable section .bss", "outputs differ from those of the instance alone"),
    "WRONG_STATUS": (None, "got the wrong status"),
    "EARLY_WRITE": (None, "a refused call wrote an output"),
    "NO_ALIGNMENT_CHECK": (None, "while refusing bad calls"),
    "LIBM": ("needs expf", None), "HEAP": ("needs malloc", None),
    "NO_PREFIX": ("global symbol helper lacks the prefix", None),
    "CONSTANT_OUTPUT": (None, "outputs do not depend on inputs"),
}


def judge(kind, folder):
    """(faults of the files, faults of running) of one broken library."""
    numbers = [f"-D{name}_NUMBER={number}" for number, name in enumerate(KINDS)]
    types = HERE.parents[1] / "runtime-c/include"
    for name in ("broken.h", "broken.c"):
        shutil.copy(HERE / name, folder)
    shutil.copy(types / "bc_types.h", folder)
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-c", f"-DBREAK={KINDS.index(kind)}", *numbers,
                    "broken.c"], cwd=folder, check=True)
    subprocess.run(["ar", "rcD", "libbroken.a", "broken.o"], cwd=folder, check=True)
    library = library_of.Library(folder, "broken")
    faults = archive_checks.check_archive((folder / "libbroken.a").read_bytes(), "broken", False,
                                          library.macros)
    if kind in ("LIBM", "HEAP"):
        return faults, []
    contract = contract_test.Contract(None, "native", folder)
    contract.judge_host([library])
    return faults, contract.faults


def main():
    if not shutil.which("gcc") or not shutil.which("ar"):
        print("gcc or ar is not installed", file=sys.stderr)
        return 1
    failures = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            found = judge(kind, pathlib.Path(folder))
        for where, wanted, faults in zip(("files", "running"), FINDINGS[kind], found):
            text = "; ".join(faults)
            if (wanted is None) != (text == "") or (wanted and wanted not in text):
                failures.append(f"{kind}, {where}: {wanted!r} is due, found {text!r}")
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(KINDS)} libraries judged, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
