#!/usr/bin/env python3
"""Shows that the device harness tells the truth: harness_test.py TARGET.

Builds it with fake_library.c for the target, runs it there (natively or under QEMU) and checks the
answers: outputs, measured stack, every kind of overrun, faults, refused requests. Exit 77 if this
machine lacks the target's compiler or emulator.
"""

import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HARNESS = HERE.parents[1] / "driver/harness"
COMMON = ["harness.c"]
POSIX = COMMON + ["harness_io_posix.c"]
BARE = COMMON + ["harness_io_semihosting.c", "harness_memory.c"]


def cortex_m(cpu, board, floating="-mfloat-abi=soft"):
    return {"compiler": "arm-none-eabi-gcc", "sources": [*BARE, "startup_cortex_m.c"],
            "flags": [f"-mcpu={cpu}", "-mthumb", *floating.split(), "-ffreestanding"],
            "link": ["-nostdlib", "-nostartfiles", "-T", f"{board}.ld", f"-L{HARNESS}",
                     "-lgcc", "-Wl,--no-enum-size-warning"],
            "emulator": "qemu-system-arm", "board": [board, "-nic", "user,restrict=on"]}


def riscv32(flags):
    return {"compiler": "riscv64-unknown-elf-gcc", "sources": [*BARE, "startup_riscv32.c"],
            "flags": [*flags.split(), "-ffreestanding"],
            "link": ["-nostdlib", "-nostartfiles", "-T", "virt.ld", f"-L{HARNESS}", "-lgcc"],
            "emulator": "qemu-system-riscv32", "board": ["virt", "-bios", "none", "-net", "none"]}


def linux(compiler, emulator=None, flags=()):
    return {"compiler": compiler, "sources": POSIX, "flags": list(flags),
            "link": [] if emulator is None else ["-static"], "emulator": emulator, "board": None}


# A compiler of WebAssembly is a clang with its linker, another package.
WASM = {"compiler": "clang-19", "linker": "wasm-ld-19",
        "sources": ["harness.c", "harness_io_wasm.c", "harness_memory.c"],
        "flags": ["--target=wasm32", "-msimd128", "-mbulk-memory", "-ffreestanding"],
        "link": ["-nostdlib", "-Wl,--no-entry", "-Wl,--stack-first",
                 "-Wl,-z,stack-size=1048576"],
        "emulator": "node", "script": [str(HARNESS / "harness.mjs"), "harness"], "board": None}

TARGETS = {
    "wasm32": WASM,
    "native": linux("gcc"),
    "aarch64": linux("aarch64-linux-gnu-gcc", "qemu-aarch64-static"),
    "armv7hf": linux("arm-linux-gnueabihf-gcc", "qemu-arm-static",
                     ["-march=armv7-a", "-marm", "-mfpu=vfpv4", "-mfloat-abi=hard"]),
    "riscv64": linux("riscv64-linux-gnu-gcc", "qemu-riscv64-static"),
    "riscv32": riscv32("-march=rv32imac -mabi=ilp32"),
    "riscv32f": riscv32("-march=rv32imafc -mabi=ilp32f"),
    "cortex-m0": cortex_m("cortex-m0", "mps2-an385"),
    "cortex-m3": cortex_m("cortex-m3", "mps2-an385"),
    "cortex-m4": cortex_m("cortex-m4", "mps2-an386", "-mfpu=fpv4-sp-d16 -mfloat-abi=hard"),
    "cortex-m7": cortex_m("cortex-m7", "mps2-an500", "-mfpu=fpv5-d16 -mfloat-abi=hard"),
    "cortex-m33": cortex_m("cortex-m33", "mps2-an505", "-mfpu=fpv5-sp-d16 -mfloat-abi=hard"),
    "cortex-m55": cortex_m("cortex-m55", "mps3-an547", "-mfloat-abi=hard"),
}

(AFFINE, HOG, HOG_BOUND, ARENA_OVER, ARENA_UNDER, OUTPUT_OVER, INPUT_CHANGE, BAD_ACCESS,
 BAD_INSTRUCTION, DEEP, UNALIGNED, HUGE, NULL_WRITE, WEIGHTS) = range(14)
OUTPUT_OVERRUN, ARENA_OVERRUN, INPUT_CHANGED, STACK_BOUND, STACK_SHORT = 1, 2, 4, 8, 16
EXIT_FAULT, EXIT_IO, EXIT_MEMORY = 70, 71, 72
NULL = 2**64 - 1
VALUES = [0.25 * i - 1 for i in range(12)]


def missing_tool(target):
    """The first program that the target needs and this machine lacks, or None."""
    tools = (TARGETS[target].get(part) for part in ("compiler", "linker", "emulator"))
    return next((tool for tool in tools if tool and not shutil.which(tool)), None)


def order(case, values=VALUES, dims=(), arena=NULL, offset=0, null_outputs=0, fill=0xA5):
    """One run of the request file; values None makes the input a null pointer."""
    data = b"" if values is None else struct.pack(f"<{len(values)}f", *values)
    return (struct.pack("<IIIIQII", case, len(dims), 1, fill, arena, offset, null_outputs)
            + struct.pack(f"<{len(dims)}q", *dims)
            + struct.pack("<Q", NULL if values is None else len(data)) + data)


def replies(data):
    """(status, flags, stack, arena used, outputs) of each run of a response file."""
    found, at = [], 0
    while at < len(data):
        status, flags, stack, used, count, _ = struct.unpack_from("<iIQQII", data, at)
        at += 32
        outputs = []
        for _ in range(count):
            (size,) = struct.unpack_from("<Q", data, at)
            outputs.append(data[at + 8:at + 8 + size])
            at += 8 + size
        found.append((status, flags, stack, used, outputs))
    return found


class Harness:
    def __init__(self, target, folder):
        self.target = TARGETS[target]
        self.folder = pathlib.Path(folder)
        self.failures = []

    def build(self):
        target = self.target
        warnings = "-Wall -Wextra -Werror".split()
        subprocess.run(
            [target["compiler"], "-std=gnu11", "-O2", *warnings, "-Wno-infinite-recursion",
             *target["flags"], f"-I{HARNESS}", str(HERE / "fake_library.c"),
             *(str(HARNESS / source) for source in target["sources"]),
             "-o", str(self.folder / "harness"), *target["link"]], check=True, timeout=300)

    def send(self, *orders, magic=b"BCRQ"):
        """(exit status, replies, what was printed)."""
        request = magic + struct.pack("<III", 1, len(orders), 0) + b"".join(orders)
        (self.folder / "request").write_bytes(request)
        (self.folder / "response").unlink(missing_ok=True)
        emulator, board = self.target["emulator"], self.target["board"]
        if board:
            command = [emulator, "-M", *board, "-nodefaults", "-display", "none",
                       "-chardev", "stdio,id=console,signal=off", "-semihosting-config", "enable=on,target=native,chardev=console,"
                       "arg=harness,arg=request,arg=response",
                       "-kernel", "harness"]
        else:
            program = self.target.get("script", ["./harness"])
            command = ([emulator] if emulator else []) + [*program, "request", "response"]
        run = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120,
                             stdin=subprocess.DEVNULL)
        response = self.folder / "response"
        data = response.read_bytes() if response.exists() else b""
        return run.returncode, replies(data), run.stdout + run.stderr

    def expect(self, what, condition, seen):
        if not condition:
            self.failures.append(f"{what}: {seen}")

    def one(self, what, status, flags, *args, **keywords):
        """Sends one run, checks exit 0, status and flags; returns its reply."""
        code, found, printed = self.send(order(*args, **keywords))
        good = code == 0 and len(found) == 1 and found[0][:2] == (status, flags)
        self.expect(what, good, f"exit {code}, {found}, {printed}")
        return found[0] if found else (0, 0, 0, 0, [b""])

    def check_good_runs(self):
        code, found, printed = self.send(order(AFFINE, dims=[4]), order(AFFINE, VALUES[:6], [2]),
                                         order(AFFINE, dims=[4], fill=0xFF))
        self.expect("three runs", code == 0 and len(found) == 3, f"{code} {printed}")
        if len(found) != 3:
            return
        want = struct.pack("<12f", *(2 * x + 0.5 for x in VALUES))
        for index, rows, fill in ((0, 4, b"\xa5"), (1, 2, b"\xa5"), (2, 4, b"\xff")):
            status, flags, stack, used, (output,) = found[index]
            self.expect(f"run {index}", (status, flags) == (0, 0), found[index])
            size = 12 * rows
            self.expect(f"output {index}", output == want[:size] + fill * (48 - size), output)
            self.expect(f"stack {index}", 0 < stack <= 400, stack)
            self.expect(f"arena use {index}", used > 512 - 48 and used <= 512, used)

    def check_refusals(self):
        self.one("null input", 1, 0, AFFINE, None, [4])
        self.one("null output", 1, 0, AFFINE, dims=[4], null_outputs=1)
        self.one("null arena", 1, 0, AFFINE, dims=[4], arena=0)
        self.one("short arena", 2, 0, AFFINE, dims=[4], arena=511)
        self.one("long arena", 0, 0, AFFINE, dims=[4], arena=1024)
        self.one("misaligned arena", 3, 0, AFFINE, dims=[4], offset=4)
        self.one("too many rows", 4, 0, AFFINE, dims=[5])

    def check_findings(self):
        stack = self.one("stack use", 0, 0, HOG)[2]
        self.expect("stack is measured", 3000 <= stack < 3400, stack)
        again = self.one("stack bound", 0, STACK_BOUND, HOG_BOUND)[2]
        self.expect("stack is measured alike", again == stack, (stack, again))
        self.one("arena overrun", 0, ARENA_OVERRUN, ARENA_OVER)
        self.one("arena overrun of a short arena", 0, ARENA_OVERRUN, ARENA_OVER, arena=100)
        self.one("arena underrun", 0, ARENA_OVERRUN, ARENA_UNDER)
        self.one("output overrun", 0, OUTPUT_OVERRUN, OUTPUT_OVER)
        self.one("input change", 0, INPUT_CHANGED, INPUT_CHANGE)
        self.one("large output", 0, INPUT_CHANGED, HUGE)
        self.one("large constants and output", 9, 0, WEIGHTS)

    def check_faults(self, target):
        for what, case in (("bad access", BAD_ACCESS), ("bad instruction", BAD_INSTRUCTION),
                           ("stack overflow", DEEP)):
            code, found, printed = self.send(order(AFFINE, dims=[4]), order(case),
                                             order(AFFINE, dims=[4]))
            self.expect(what, code == EXIT_FAULT and len(found) == 1 and "run_" in printed,
                        f"exit {code}, {len(found)} replies, {printed}")
        if self.target["board"]:
            code, _, printed = self.send(order(NULL_WRITE))
            self.expect("write through null", code == EXIT_FAULT, f"exit {code}, {printed}")
        if target.startswith("cortex-m"):
            code, _, printed = self.send(order(UNALIGNED))
            want = EXIT_FAULT if target == "cortex-m0" else 0
            self.expect("unaligned access", code == want, f"exit {code}, {printed}")

    def check_bad_requests(self):
        for what, code, orders, magic in (
                ("wrong magic", EXIT_IO, [order(AFFINE, dims=[4])], b"BCRX"),
                ("unknown case", EXIT_IO, [order(99)], b"BCRQ"),
                ("wrong number of dimensions", EXIT_IO, [order(AFFINE)], b"BCRQ"),
                ("oversized input", EXIT_IO, [order(AFFINE, VALUES + [0.0], [4])], b"BCRQ"),
                ("truncated request", EXIT_IO, [order(AFFINE, dims=[4])[:-4]], b"BCRQ"),
                ("no such memory", EXIT_MEMORY, [order(AFFINE, dims=[4], arena=1 << 62)], b"BCRQ")):
            seen, found, printed = self.send(*orders, magic=magic)
            self.expect(what, seen == code and not found and printed, f"exit {seen}, {printed}")


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in TARGETS:
        print(f"usage: harness_test.py {'|'.join(TARGETS)}", file=sys.stderr)
        return 2
    name = sys.argv[1]
    if tool := missing_tool(name):
        print(f"{tool} is not installed: skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        harness = Harness(name, folder)
        harness.build()
        harness.check_good_runs()
        harness.check_refusals()
        harness.check_findings()
        harness.check_faults(name)
        harness.check_bad_requests()
        for failure in harness.failures:
            print(failure, file=sys.stderr)
        print(f"{name}: {len(harness.failures)} failures")
        return 1 if harness.failures else 0


if __name__ == "__main__":
    sys.exit(main())
