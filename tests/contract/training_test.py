#!/usr/bin/env python3
"""Holds training libraries to their contract: training_test.py PROGRAM TARGET.

Compiles tests/models/digits_cnn for training in several ways, and a keyword spotter with batch
normalisation in one, judges archive and header, then runs a short training on TARGET
(training_table.c): memory beside the buffers, stack, statuses of bad calls, a checkpoint half way;
library and C must agree on every bit. Exit status 77 when the machine lacks what runs code for
TARGET.
"""

import argparse
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests/runtime")]
import archive_checks  # noqa: E402
import harness_test  # noqa: E402
import library as library_of  # noqa: E402

DIGITS = ROOT / "tests/models/digits_cnn/model.onnx"
KWS = ROOT / "tests/training/models/kws.onnx"
WAYS = {
    "momentum": (DIGITS, ["--optimizer", "momentum"]),
    "adam": (DIGITS, ["--optimizer", "adam", "--accumulate", "2"]),
    "head": (DIGITS, ["--trainable", "last:1"]),
    "kws": (KWS, ["--optimizer", "sgd"]),
}
IMAGE = {DIGITS: ("IMAGE", 64, 10), KWS: ("INPUT", 490, 12)}  # the input's name, elements, classes
TOO_SLOW = {("kws", "cortex-m0")}  # without an FPU, emulated; files are judged all the same
REFUSED = 1000
ENTRIES = {"run", "evaluate", "train_step", "init", "set_learning_rate", "get_parameters",
           "set_parameters", "save", "load"}
ACCUMULATING = {"apply", "get_gradients", "set_gradients"}


class Training:
    def __init__(self, program, target, folder):
        self.program, self.target, self.folder = program, target, pathlib.Path(folder)
        self.machine = harness_test.TARGETS[target]
        self.faults, self.checked = [], 0

    def expect(self, where, what, condition):
        self.checked += 1
        if not condition:
            self.faults.append(f"{where}: {what}")

    def compile(self, way, emit, turn):
        output = self.folder / f"{way}-{emit}-{turn}"
        model, options = WAYS[way]
        command = [self.program, "compile", str(model), "--name", "net", "--train", *options,
                   "--target", self.target, "--emit", emit, "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}: {done.stderr}")
        return output

    def judge_files(self, way):
        """The folder of each emission, once compiled twice and looked at."""
        folders = {}
        for emit in ("lib", "c"):
            folders[emit], again = (self.compile(way, emit, turn) for turn in (1, 2))
            differences = archive_checks.same_files(folders[emit], again)
            self.expect(f"{way} --emit {emit}", "; ".join(differences), not differences)
            header = folders[emit] / "net.h"
            done = subprocess.run(
                [sys.executable, str(ROOT / "tests/headers/check_header.py"), str(header)],
                capture_output=True, text=True, timeout=600)
            self.expect(f"{way} --emit {emit}", done.stdout + done.stderr, done.returncode == 0)
        macros = library_of.Library(folders["lib"], "net").macros
        data = (folders["lib"] / "libnet.a").read_bytes()
        arm = self.target.startswith(("cortex", "arm"))
        faults = archive_checks.check_archive(data, "net", arm, macros)
        self.expect(way, "; ".join(faults), not faults)
        wanted = ENTRIES | (ACCUMULATING if "--accumulate" in WAYS[way][1] else set())
        offered = archive_checks.offered(data)
        self.expect(way, f"offers {sorted(offered)}", offered == {f"net_{name}" for name in wanted})
        return folders, macros

    def build(self, way, folder, library, output):
        machine = self.machine
        name, _, classes = IMAGE[WAYS[way][0]]
        sources = [HERE / "training_table.c"]
        sources += [harness_test.HARNESS / source for source in machine["sources"]]
        # Runs of the C that the contract compares with the archive are built as its opening says.
        subprocess.run(
            [machine["compiler"], "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror",
             *machine["flags"], f"-DCLASSES={classes}",
             f"-DIMAGE_ELEMENTS=NET_TRAIN_STEP_IN_{name}_ELEMENTS", f"-I{harness_test.HARNESS}",
             f"-I{folder}", *map(str, sources), str(library), "-o", str(output), *machine["link"]]
            + (["-Wl,-z,now"] if self.target == "native" else []),
            cwd=self.folder, check=True, timeout=600)

    def compiled_c(self, folder):
        line = next(line for line in (folder / "net.c").read_text().splitlines()
                    if line.startswith(" * Compile with: "))
        command = line.removeprefix(" * Compile with: ").split()
        subprocess.run([*command, "-Wall", "-Wextra", "-Werror", "-o", "net.o"], cwd=folder,
                       check=True, timeout=600)
        return folder / "net.o"

    def order(self, case, fill, image, label):
        head = harness_test.order(case, image, fill=fill)
        head = head[:8] + struct.pack("<I", 2) + head[12:]
        return head + struct.pack("<Qi", 4, label)

    def run(self, way, emit, folder, library, macros):
        """The outputs of the training."""
        where = f"{way}, {emit}"
        harness = harness_test.Harness(self.target, self.folder)
        self.build(way, folder, library, self.folder / "harness")
        generator = random.Random(5)
        image = [generator.uniform(0, 1) for _ in range(IMAGE[WAYS[way][0]][1])]
        orders = [self.order(0, fill, image, 3) for fill in (0xA5, 0xFF, 0x00)]
        orders.append(self.order(1, 0xA5, image, 3))
        code, replies, printed = harness.send(*orders)
        self.expect(where, f"exit {code}, {len(replies)} runs: {printed}",
                    code == 0 and len(replies) == len(orders))
        if len(replies) != len(orders):
            return None
        promised = macros["STACK_BYTES"]
        for status, flags, stack, _, _ in replies[:3]:
            allowed = harness_test.STACK_BOUND if emit == "c" else 0
            self.expect(where, f"status {status}", status == 0)
            self.expect(where, f"findings {flags}, stack {stack} of {promised}",
                        flags & ~allowed == 0)
        trained = [reply[4] for reply in replies[:3]]
        self.expect(where, "what memory held before changes the training",
                    all(outputs == trained[0] for outputs in trained))
        losses = struct.unpack(f"<{len(trained[0][0]) // 4}f", trained[0][0])
        self.expect(where, f"losses {losses}", losses[-1] < losses[0])
        self.expect(where, f"bad call number {replies[3][0]} got the wrong status",
                    replies[3][0] == REFUSED)
        print(f"  {where}: losses {losses[0]:.5f} .. {losses[-1]:.5f}, state "
              f"{macros['STATE_BYTES']}, arena {macros['ARENA_BYTES']}, stack {replies[0][2]} of "
              f"{promised}")
        return trained[0]

    def judge(self, way):
        folders, macros = self.judge_files(way)
        if (way, self.target) in TOO_SLOW:
            return
        library = folders["lib"] / "libnet.a"
        archive = self.run(way, "lib", folders["lib"], library, macros)
        source = self.run(way, "c", folders["c"], self.compiled_c(folders["c"]), macros)
        self.expect(way, "library and C train differently", archive == source)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("target", choices=harness_test.TARGETS)
    options = parser.parse_args()
    machine = harness_test.TARGETS[options.target]
    for tool in (machine["compiler"], machine["emulator"]):
        if tool and not shutil.which(tool):
            print(f"{tool} is not installed: skipped")
            return 77
    with tempfile.TemporaryDirectory() as folder:
        training = Training(options.program, options.target, folder)
        for way in WAYS:
            training.judge(way)
    for fault in training.faults:
        print(fault, file=sys.stderr)
    print(f"{options.target}: {training.checked} checks, {len(training.faults)} faults")
    return 1 if training.faults or not training.checked else 0


if __name__ == "__main__":
    sys.exit(main())
