#!/usr/bin/env python3
"""Holds compiled libraries to what the header and the README promise.

    contract_test.py PROGRAM TARGET [--types bc_types.h]

Compiles every model of tests/models (and, when BACKCAST_MODELS names a folder, its float reference
models) for TARGET and judges archive, header and behaviour; README.md lists the checks. Exit status
77 when the machine lacks what runs code for TARGET.
"""

import argparse
import os
import pathlib
import random
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

SYMBOLIC = {"perceptron_dynN": ["--dim", "N=1..8"], "shape_arithmetic": ["--dim", "N=1..8"],
            "any_batch": ["--dim", "N=1..8"], "any_length": ["--dim", "N=1..64"],
            "fused_decoder": ["--dim", "N=1..8"], "packed_weights": ["--dim", "N=1..8"]}
JOINED_ROWS = ("any_length",)  # whose rows of results depend on all rows
REFERENCE = ("ad01_fp32", "kws_fp32", "resnet8_fp32", "vww_fp32")
# Slow machines (emulated, some without an FPU) run only the small ones of the reference models.
EMULATED_REFERENCE = ("ad01_fp32", "kws_fp32")
DIMENSION = 4  # BC_ERROR_DIMENSION
FINDINGS = {1: "wrote beside an output", 2: "wrote beside the arena", 4: "changed an input",
            8: "took more stack than promised", 16: "took more stack than could be measured"}


def model_folders(target):
    """(folder, run it?) of every model to be judged."""
    found = [(path.parent, True) for path in sorted((ROOT / "tests/models").glob("*/model.onnx"))]
    reference = os.environ.get("BACKCAST_MODELS")
    for name in REFERENCE if reference else ():
        folder = pathlib.Path(reference) / name
        if (folder / "model.onnx").exists():
            emulated_too = target != "cortex-m0" and name in EMULATED_REFERENCE
            found.append((folder, target == "native" or emulated_too))
    return found


class Contract:
    def __init__(self, program, target, folder):
        self.program, self.target = program, target
        self.folder = pathlib.Path(folder)
        self.faults, self.checked = [], 0

    def expect(self, where, what, condition):
        self.checked += 1
        if not condition:
            self.faults.append(f"{where}: {what}")

    # --- the files -----------------------------------------------------------------------------

    def compile(self, model, emit, output):
        command = [self.program, "compile", str(model / "model.onnx"), "--target", self.target,
                   "--emit", emit, "-o", str(output), *SYMBOLIC.get(model.name, [])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}: {done.stderr}")

    def judge_files(self, model):
        """Compiles twice both ways; the library as its header describes it."""
        name = model.name
        for emit in ("lib", "c"):
            first, second = (self.folder / f"{name}-{emit}-{turn}" for turn in (1, 2))
            self.compile(model, emit, first)
            self.compile(model, emit, second)
            differences = archive_checks.same_files(first, second)
            self.expect(f"{name} --emit {emit}", "; ".join(differences), not differences)
        folder = self.folder / f"{name}-lib-1"
        library = library_of.Library(folder, name)
        arm = self.target.startswith(("cortex", "arm")) and "-a" not in self.target
        faults = archive_checks.check_archive((folder / f"lib{name}.a").read_bytes(), name, arm,
                                              library.macros)
        self.expect(name, "; ".join(faults), not faults)
        return library

    def judge_headers(self, libraries, types):
        command = [sys.executable, str(ROOT / "tests/headers/check_header.py"), "--types", types]
        done = subprocess.run(
            command + [str(each.folder / f"{each.prefix}.h") for each in libraries],
            capture_output=True, text=True, timeout=600)
        self.expect("headers", done.stdout + done.stderr, done.returncode == 0)

    # --- the behaviour, on the machine itself ---------------------------------------------------

    def build(self, libraries, output, sources, extra=(), link=()):
        target = harness_test.TARGETS[self.target]
        (self.folder / "table.c").write_text(library_of.table_source(libraries))
        includes = [f"-I{each.folder}" for each in libraries]
        archives = [str(each.folder / f"lib{each.prefix}.a") for each in libraries]
        subprocess.run(
            [target["compiler"], "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror",
             *target["flags"], *extra, f"-I{harness_test.HARNESS}", *includes, "table.c",
             *map(str, sources), *archives, "-o", output, *target["link"], *link],
            cwd=self.folder, check=True, timeout=600)

    def random_bytes(self, element, count, seed):
        """Of floats, or of integers that are zeros and ones."""
        generator = random.Random(seed)
        if element == "f32":
            return struct.pack(f"<{count}f", *(generator.uniform(-1, 1) for _ in range(count)))
        return struct.pack(f"<{count}i", *(generator.randint(0, 1) for _ in range(count)))

    def order(self, case, library, sizes, inputs, **keywords):
        """harness_test.order for any number of inputs, each as bytes."""
        head = harness_test.order(case, [], list(sizes.values()), **keywords)[:-8]
        head = head[:8] + struct.pack("<I", len(inputs)) + head[12:]
        return head + b"".join(struct.pack("<Q", len(values)) + values for values in inputs)

    def inputs_for(self, library, sizes, seed):
        for tensor in library.inputs:
            if tensor.element not in ("f32", "i32"):
                raise SystemExit(f"{library.prefix}: inputs of type {tensor.element} are not known")
        return [self.random_bytes(tensor.element, tensor.count(sizes),
                                  f"{library.prefix} {seed} {k}")
                for k, tensor in enumerate(library.inputs)]

    def judge_runs(self, libraries):
        """Canaries, painted stack, dirty memory, refusals, symbolic sizes."""
        harness = harness_test.Harness(self.target, self.folder)
        target = harness.target
        link = ["-Wl,-z,now"] if self.target == "native" else []
        self.build(libraries, "harness",
                   [harness_test.HARNESS / source for source in target["sources"]], link=link)
        orders, meanings = [], []
        for index, library in enumerate(libraries):
            sizes = library.largest()
            inputs = self.inputs_for(library, sizes, 0)
            for fill in (0xA5, 0xFF, 0x00):
                orders.append(self.order(2 * index, library, sizes, inputs, fill=fill))
                meanings.append((library, "run", fill))
            orders.append(self.order(2 * index + 1, library, sizes, inputs))
            meanings.append((library, "refuse", 0xA5))
        code, replies, printed = harness.send(*orders)
        self.expect("harness", f"exit {code} after {len(replies)} of {len(orders)} runs: {printed}",
                    code == 0 and len(replies) == len(orders))
        first = {}
        for (library, kind, fill), (status, flags, stack, used, outputs) in zip(meanings, replies):
            where = f"{library.prefix}, memory filled with {fill:#04x}"
            found = ", ".join(text for bit, text in FINDINGS.items() if flags & bit)
            promised = library.macros["STACK_BYTES"]
            self.expect(where, f"{found} (stack {stack} of {promised})", flags == 0)
            if kind == "refuse":
                self.expect(where, f"bad call number {status} got the wrong status",
                            status == library_of.REFUSED)
                self.expect(where, "a refused call wrote memory", used == 0 and all(
                    set(output) <= {fill} for output in outputs))
                continue
            self.expect(where, f"status {status}", status == 0)
            # WebAssembly keeps return addresses and registers where no address reaches.
            least = 0 if self.target == "wasm32" else 1
            self.expect(where, f"stack {stack} of {promised}", least <= stack <= promised)
            self.expect(where, "what memory held before changes the outputs",
                        first.setdefault(library.prefix, outputs) == outputs)
            print(f"  {library.prefix}: stack {stack} of {promised}, arena used to {used} of "
                  f"{library.macros['ARENA_BYTES']}") if fill == 0xA5 else None
        self.judge_sizes(harness, libraries)

    def judge_sizes(self, harness, libraries):
        """One library serves every size of its range and refuses the sizes beside it."""
        for index, library in enumerate(libraries):
            if list(library.sizes) != ["N"] or len(library.inputs) > 1:
                continue
            low, high = library.sizes["N"]
            tensor, result = library.inputs[0], library.outputs[0]
            rows = [self.random_bytes("f32", tensor.count({"N": 1}), f"row {n}")
                    for n in range(high)]
            counts = [*range(low, high + 1), high + 1, low - 1]
            orders = [self.order(2 * index, library, {"N": n}, [b"".join(rows[:n])])
                      for n in counts]
            orders += [self.order(2 * index, library, {"N": 1}, [row]) for row in rows]
            code, replies, printed = harness.send(*orders)
            self.expect(library.prefix, f"exit {code}: {printed}",
                        code == 0 and len(replies) == len(orders))
            size = result.bytes({"N": 1})
            alone = [reply[4][0][:size] for reply in replies[len(counts):]]
            for n, (status, flags, _, _, outputs) in zip(counts, replies):
                where, output = f"{library.prefix}, N = {n}", outputs[0]
                if not low <= n <= high:
                    self.expect(where, f"status {status} where BC_ERROR_DIMENSION is due",
                                status == DIMENSION and set(output) <= {0xA5})
                    continue
                self.expect(where, f"status {status}, findings {flags}", (status, flags) == (0, 0))
                self.expect(where, "rows past N were written", set(output[n * size:]) <= {0xA5})
                for row in range(0 if library.prefix in JOINED_ROWS else n):
                    got, want = (struct.unpack(f"<{size // 4}f", data[:size])
                                 for data in (output[row * size:], alone[row]))
                    self.expect(where, f"row {row} is not what it is alone: {got}, {want}",
                                all(abs(a - b) <= 1e-5 * (1 + abs(b)) for a, b in zip(got, want)))
            self.expect(library.prefix, "rows do not depend on inputs", len(set(alone)) > 1)

    def judge_host(self, libraries):
        """Forbidden pages around every buffer, two threads."""
        self.build(libraries, "host", [HERE / "contract_host.c"], ["-DCONTRACT_HOST", "-pthread"])
        done = subprocess.run([str(self.folder / "host")], capture_output=True, text=True,
                              timeout=600)
        self.expect("host", f"exit {done.returncode}: {done.stdout}{done.stderr}",
                    done.returncode == 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("target", choices=harness_test.TARGETS)
    parser.add_argument("--types", default=str(ROOT / "runtime-c/include/bc_types.h"))
    options = parser.parse_args()
    if tool := harness_test.missing_tool(options.target):
        print(f"{tool} is not installed: skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        contract = Contract(options.program, options.target, folder)
        models = model_folders(options.target)
        libraries = {model: contract.judge_files(model) for model, _ in models}
        contract.judge_headers(libraries.values(), options.types)
        to_run = [libraries[model] for model, run in models if run]
        contract.judge_runs(to_run)
        if options.target == "native":
            contract.judge_host(to_run)
    for fault in contract.faults:
        print(fault, file=sys.stderr)
    print(f"{options.target}: {len(libraries)} models, {contract.checked} checks, "
          f"{len(contract.faults)} faults")
    return 1 if contract.faults or not contract.checked else 0


if __name__ == "__main__":
    sys.exit(main())
