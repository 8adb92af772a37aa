"""Worker processes of the host benchmarks: builds them, starts them pinned, takes their times."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading

import common
import environments

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
    common.run_tool(["cc", "-std=gnu11", "-O2", "-I", folder, HOST / "worker.c", code,
                     "-pthread", "-o", folder / "worker"])
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


def take_priority(process):
    """Ahead of every ordinary program on the core, where that is allowed."""
    try:
        os.sched_setscheduler(process, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass


def cores_from(core, count):
    """So many of the cores there are, `core` among them."""
    others = sorted(os.sched_getaffinity(0) - {core})
    return {core, *others[:count - 1]}


class Worker:
    """A process on one core, or one per thread, that sleeps until it is told to run a batch.

    RuntimeError when it ends or does not answer in time; it is ended then. `log` is a file for what
    it says on standard error.
    """

    def __init__(self, command, core, start_limit=600, answer_limit=120, log=None, threads=1):
        self.answer_limit, self.log, self.batch = answer_limit, log, 1
        with open(log or os.devnull, "w") as errors:
            self.process = subprocess.Popen(
                [str(word) for word in command], text=True, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=errors if log else None, start_new_session=True,
                env={**environments.variables(), "BENCH_THREADS": str(threads)},
                preexec_fn=lambda: os.sched_setaffinity(0, cores_from(core, threads)))
        try:
            word = ""
            while word != "ready":  # libraries may say something before
                word, _, facts = self.read(start_limit).strip().partition(" ")
        except RuntimeError:
            self.close()
            raise
        self.facts = json.loads(facts or "{}")
        take_priority(self.process.pid)

    def kill(self):
        """With whatever it has started, a compiler for instance."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def read(self, limit):
        """A line, within `limit` seconds."""
        expired = threading.Event()
        alarm = threading.Timer(limit, lambda: (expired.set(), self.kill()))
        alarm.start()
        answer = self.process.stdout.readline()
        alarm.cancel()
        if answer:
            return answer
        if expired.is_set():
            raise RuntimeError(f"no answer within {limit} s")
        raise RuntimeError(f"the worker ended with status {self.process.wait()}{self.last_words()}")

    def last_words(self):
        """The last line of the log that looks like an error's."""
        if self.log is None:
            return ""
        text = pathlib.Path(self.log).read_text(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        errors = [line for line in lines
                  if re.match(r"\w*(\.\w+)*(Error|Exception)\b|error:", line)]
        last = (errors or lines or [""])[-1]
        short = last if len(last) < 250 else f"{last[:60]} … {last[-180:]}"
        return f": {short}" if short else ""

    def close(self):
        """Ends the process, by force if it does not end by itself."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ask(self, line):
        with contextlib.suppress(BrokenPipeError):  # reading finds out why
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        return self.read(self.answer_limit)

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
        self.seconds_per_turn = each * (self.batch + self.batch // 8 + 1)  # with untimed calls

    def profile(self, count):
        """Nanoseconds per kernel, a list per call."""
        rows = [self.ask(f"profile {count}")]
        rows += [self.process.stdout.readline() for _ in range(count - 1)]
        return [[int(word) for word in row.split()] for row in rows]
