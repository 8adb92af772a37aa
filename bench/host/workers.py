"""Worker processes of the host benchmarks: builds them, starts them pinned, takes their times."""

import os
import pathlib
import subprocess
import sys

import common

HOST = pathlib.Path(__file__).resolve().parent


def write_glue(library):
    """glue.h: sizes, and a call of the library with buffers given by position."""
    prefix, upper = library.prefix, library.prefix.upper()
    lines = [f'#include "{prefix}.h"', f"#define GLUE_INPUTS {len(library.inputs)}",
             f"#define GLUE_OUTPUTS {len(library.outputs)}",
             f"#define GLUE_ARENA_BYTES {upper}_ARENA_BYTES",
             f"#define GLUE_ARENA_ALIGN {upper}_ARENA_ALIGN"]
    for kind, tensors in (("input", library.inputs), ("output", library.outputs)):
        sizes = ", ".join(str(tensor.bytes) for tensor in tensors)
        lines.append(f"static const size_t glue_{kind}_bytes[] = {{{sizes}}};")
    lines += ["static bc_status glue_call(void *const *i, void *const *o, void *arena,",
              "                           const bc_context *context) {",
              f"  {prefix}_run_inputs in = {{0}};", f"  {prefix}_run_outputs out = {{0}};"]
    lines += [f"  in.{tensor.field} = i[{k}];" for k, tensor in enumerate(library.inputs)]
    lines += [f"  out.{tensor.field} = o[{k}];" for k, tensor in enumerate(library.outputs)]
    lines += [f"  return {prefix}_run(&in, &out, arena, {upper}_ARENA_BYTES, context);", "}", ""]
    (library.folder / "glue.h").write_text("\n".join(lines))


def build_worker(library, compiler=None, limit=600):
    """A worker around an archive or, given a compiler, around generated C compiled with -O3."""
    write_glue(library)
    folder, prefix = library.folder, library.prefix
    if compiler is None:
        code = folder / f"lib{prefix}.a"
    else:
        code = folder / f"{prefix}.o"
        source = folder / f"{prefix}.c"
        common.run_tool([compiler, *common.c_flags(source), "-O3", "-c", source.name, "-o", code],
                        folder, limit)  # in its folder: it may include a file of constants
    common.run_tool(["cc", "-std=gnu11", "-O2", "-I", folder, HOST / "worker.c", code, "-o",
                     folder / "worker"])
    return folder / "worker"


def build_peak(folder, width=None):
    """The FMA-peak loop, for vectors of `width` bytes or the machine's widest."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"fma_peak{width or ''}"
    flags = [f"-DPEAK_VECTOR_BYTES={width}"] if width else []
    common.run_tool(["cc", "-std=gnu11", "-O3", "-march=native", "-mprefer-vector-width=512"
                     if common.platform.machine() == "x86_64" else "-O3", *flags,
                     HOST / "fma_peak.c", "-o", program])
    return program


def pin(process, core):
    """To one core and, where that is allowed, ahead of every ordinary program on it."""
    os.sched_setaffinity(process, {core})
    try:
        os.sched_setscheduler(process, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass


class Worker:
    """A process that sleeps until it is told to run a batch."""

    def __init__(self, command, core):
        self.process = subprocess.Popen([str(word) for word in command], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        pin(self.process.pid, core)
        answer = self.process.stdout.readline().split()
        if not answer or answer[0] != "ready":
            raise RuntimeError(f"{command[0]} ended with status {self.process.wait()}")
        self.round_macs = int(answer[1]) if len(answer) > 1 else None
        self.batch = 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.process.stdout.close()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"a worker ended with status {self.process.wait()}")
        return answer

    def time(self, count=None):
        """(wall, processor) seconds per call over a batch."""
        count = count or self.batch
        wall, processor = (int(word) for word in self.ask(f"time {count}").split())
        return wall / count / 1e9, processor / count / 1e9

    def calibrate(self, seconds):
        """Chooses the batch so that it takes about `seconds`."""
        count = 1
        while True:
            each = self.time(count)[1]
            if each * count >= seconds / 4 or count >= 1 << 22:
                break
            count *= 4
        self.batch = max(1, round(seconds / max(each, 1e-9)))

    def profile(self, count):
        """Nanoseconds per kernel, a list per call."""
        rows = [self.ask(f"profile {count}")]
        rows += [self.process.stdout.readline() for _ in range(count - 1)]
        return [[int(word) for word in row.split()] for row in rows]


def ort_command(model, inputs, outputs):
    return [sys.executable, HOST / "ort_worker.py", model, inputs, outputs]
