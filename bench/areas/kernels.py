"""Contractions of training steps as fractions of the FMA peak, measured by bench_kernels.

The program is built with -DBACKCAST_BENCH=ON and lies beside `backcast`, or is found through
BACKCAST_BENCH_KERNELS.
"""

import os
import pathlib
import re

import common
import goals
from tables import DASH, Table, percent

NAME = "kernels"
TITLE = "contraction kernels"
# row: ({role: filter of bench_kernels})
ROWS = {
    "3×3, 64→64 of 8×8, batch 1": {
        role: f"conv {role} resnet8 64->64 3x3 of 8x8 s1 b1" for role in ("y", "dx", "dw")},
    "3×3, 64→64 of 8×8, batch 8": {
        role: f"conv {role} resnet8 64->64 3x3 of 8x8 s1 b8" for role in ("y", "dx", "dw")},
    "1×1, 64→64 of 25×5, batch 1": {
        role: f"conv {role} kws 64->64 1x1 of 25x5 s1 b1" for role in ("y", "dx", "dw")},
    "1×1, 64→64 of 25×5, batch 8": {
        role: f"conv {role} kws 64->64 1x1 of 25x5 s1 b8" for role in ("y", "dx", "dw")},
    "GEMM 128×128×128": {
        "y": "dense y=x.W[o,i] gemm 128-128 b128", "dx": "dense dx gemm 128-128 b128",
        "dw": "dense dw gemm 128-128 b128"},
    "dense 128→128, 64 rows": {
        "y": "dense y=x.W[o,i] encoder 128-128 b64", "dx": "dense dx encoder 128-128 b64",
        "dw": "dense dw encoder 128-128 b64"}}
LINE = re.compile(r"^(.*?)\s+([\d.]+) µs\s+([\d.]+) GMAC/s\s+(\d+)%")


def find_kernels(program):
    for candidate in (os.environ.get("BACKCAST_BENCH_KERNELS"), program.parent / "bench_kernels"):
        if candidate and pathlib.Path(candidate).is_file():
            return pathlib.Path(candidate)
    raise RuntimeError("no bench_kernels beside backcast (build it with -DBACKCAST_BENCH=ON)")


def measure(program, filters):
    """{role: {"us", "fraction"}} of what the program has."""
    result = {}
    for role, wanted in filters.items():
        text = common.run_tool([find_kernels(program), "--filter", wanted])
        for line in text.splitlines():
            found = LINE.match(line)
            if found and found.group(1) == wanted:
                result[role] = {"us": float(found.group(2)), "gmacs": float(found.group(3)),
                                "fraction": int(found.group(4)) / 100}
    if not result:
        raise RuntimeError("bench_kernels has no such case")
    return result


def run(program, options, kept):
    for name in options.chosen(list(ROWS)):
        kept.attempt(name, lambda name=name: measure(program, ROWS[name]))


def wrong(row):
    return []


def tables(content):
    rows = []
    for name, row in content["rows"].items():
        cells, fractions = [name], []
        for role in ("y", "dx", "dw"):
            if role not in row:
                cells.append(DASH)
                continue
            fractions.append(row[role]["fraction"])
            cells.append(f"{percent(row[role]['fraction'])} ({row[role]['us']:.1f} µs)")
        rows.append(cells + goals.verdict(NAME, name, "fraction of peak", min(fractions)))
    return [Table("Fraction of the FMA peak, one thread",
                  ["kernel", "forward", "dX", "dW", "goal of the least", ""], rows)]


def bars(content):
    return None
