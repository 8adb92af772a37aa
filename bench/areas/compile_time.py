"""Compile time: seconds and peak memory of `backcast compile`, beside the peers' preparation.

What a peer needs from its modules being loaded to the first result is taken from the last results
of the area host: it includes compiling where the peer compiles, and for IREE several variants.
"""

import os
import subprocess
import threading
import time

import common
import goals
import networks
import store
from tables import Table, number

NAME = "compile"
TITLE = "compile time"
ROWS = ["resnet18", "mobilenetv2"]
LIMIT = 1800  # seconds


def measure(program, name, emit):
    """Wall clock, processor time and peak memory of one compilation."""
    folder = common.OUT / "compile" / name
    started = time.monotonic()
    process = subprocess.Popen([program, "compile", networks.path_of(name), "-o", folder, "--name",
                                "m", "--emit", emit], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    alarm = threading.Timer(LIMIT, process.kill)
    alarm.start()
    _, status, used = os.wait4(process.pid, 0)
    alarm.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"backcast ended with status {process.returncode}")
    return {"seconds": time.monotonic() - started, "processor": used.ru_utime + used.ru_stime,
            "peak_bytes": used.ru_maxrss * 1024}


def run(program, options, kept):
    for name in options.chosen(ROWS):
        kept.attempt(name, lambda name=name: {emit: measure(program, name, emit)
                                              for emit in ("lib", "c")})


def wrong(row):
    return []


def tables(content):
    host = (store.read("host") or {"rows": {}})["rows"]
    rows = []
    for name, row in content["rows"].items():
        sides = host.get(name, {"sides": {}})["sides"]
        rows.append([name, number(row["lib"]["seconds"]),
                     *goals.verdict(NAME, name, "seconds", row["lib"]["seconds"]),
                     f"{row['lib']['peak_bytes'] / 1e6:.0f}", number(row["c"]["seconds"]),
                     f"{row['c']['peak_bytes'] / 1e6:.0f}",
                     *(number(sides.get(peer, {}).get("prepared_seconds"))
                       for peer in ("ORT", "PyTorch compiled", "IREE", "TVM", "tinygrad"))])
    return [Table("Compiling, seconds and MB",
                  ["model", "lib, s", "goal", "", "lib, peak MB", "C, s", "C, peak MB", "ORT, s",
                   "torch.compile, s", "IREE, s", "TVM, s", "tinygrad, s"], rows)]


def bars(content):
    return None
