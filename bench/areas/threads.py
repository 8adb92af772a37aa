"""Inference shared out among threads, beside ONNX Runtime with as many.

As many threads as there are cores, at most eight. Our archive is compiled with `--threads` for them; the
one-thread side is compiled without. A result that differs from one thread's by a bit, or from ONNX
Runtime's by more than 0.1 % of the largest output, is marked WRONG RESULT.
"""

import os
import sys

import common
import networks
import rounds
import workers
from areas.host_sides import WRONG, largest_difference, worker_side, write_inputs
from rounds import Side, quantiles, ratios
from tables import DASH, Table, median, spread

NAME = "threads"
TITLE = "inference with threads"
MOST_THREADS = 8
ROWS = ["kws", "ic", "ic:winograd", "vww", "mobilenetv2", "resnet18", "resnet18:winograd", "enc"]


def thread_count():
    return min(len(os.sched_getaffinity(0)), MOST_THREADS)


def our_side(program, name, model, folder, flags, threads):
    """The side and its library."""
    library = common.compile_model(program, model, folder / name, "m", "lib",
                                   options=[*flags, "--threads", str(threads)])
    worker = workers.build_worker(library)
    outputs = library.folder / "outputs"
    return Side(name, [worker, folder / "inputs", outputs], outputs, threads=threads), library


def is_right(expected, alone, together, flags):
    """Threads change no bit; `flags` may choose other forms for other numbers of them."""
    same = bool(flags) or alone.read_bytes() == together.read_bytes()
    return same and largest_difference(expected, together) < WRONG


def measure(program, name, options):
    folder, model = common.OUT / "threads" / name.replace(":", "-"), networks.path_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    flags, threads = networks.options_of(name), thread_count()
    alone, library = our_side(program, "lib", model, folder, flags, 1)
    together, shared = our_side(program, "lib, threads", model, folder, flags, threads)
    write_inputs(folder / "inputs", library)
    peers = [worker_side(side, sys.executable, "ort_worker.py", folder, model, threads=count)
             for side, count in (("ORT", 1), ("ORT, threads", threads))]
    done = rounds.run([*peers, alone, together], options.plan("host"), folder)
    times = done["times"]
    if not {"ORT", alone.name, together.name} <= times.keys():
        raise RuntimeError("; ".join(done["notes"]))
    return {"model": model.name, "options": flags, "threads": threads,
            "arena": [side.report["arena_bytes"] for side in (library, shared)],
            "right": is_right(peers[0].outputs, alone.outputs, together.outputs, flags),
            "sides": {side: {"us": quantiles([t * 1e6 for t in values if t is not None]),
                             "over": ratios(values, times["lib, threads"])}
                      for side, values in times.items()},
            "notes": done["notes"]}


def run(program, options, kept):
    for name in options.chosen(ROWS):
        kept.attempt(name, lambda name=name: measure(program, name, options))


def wrong(row):
    return [] if row["right"] else ["lib, threads"]


def tables(content):
    rows, notes = [], []
    for name, row in content["rows"].items():
        sides = row["sides"]
        ours, ort = sides["lib, threads"], sides.get("ORT, threads")
        over = ort["over"] if ort else None
        rows.append([name, row["threads"], median(sides["lib"]["us"]), median(ours["us"]),
                     spread(sides["lib"]["over"]),
                     f"{row['arena'][0]:,}, {row['arena'][1]:,}",
                     median(ort["us"]) if ort else DASH, spread(over)])
        notes += [f"- {name}: {note}" for note in row["notes"]]
        if row["options"]:
            notes.append(f"- {name}: compiled with {' '.join(row['options'])}")
        if wrong(row):
            notes.append(f"- {name}: WRONG RESULT")
    return [Table("Inference shared out, batch 1, µs",
                  ["model", "threads", "lib, one thread", "lib", "one / all", "arena, bytes",
                   "ORT", "ORT / lib"], rows, notes)]


def bars(content):
    """(title, {row: {side: time / lib with all threads}}) for the plot."""
    return "Inference with threads: time / Backcast's", {
        name: {side: values["over"]["median"] for side, values in row["sides"].items()
               if side != "lib, threads" and values["over"]}
        for name, row in content["rows"].items()}
