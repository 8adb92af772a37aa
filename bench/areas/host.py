"""Inference on this machine: the archive and the C of both compilers beside the peers.

Every side has the same inputs; a result that differs from ONNX Runtime's by more than 0.1 % of the
largest output is marked WRONG RESULT. ONNX Runtime is always there: it says what is right. A row
"network:variant" compiles the network with the options of networks.VARIANTS.
"""

import common
import goals
import networks
import rounds
import workers
from areas.host_sides import (OURS, PEERS, WRONG, largest_difference, our_sides, peer_sides,
                              write_inputs)
from rounds import Side, quantiles, ratios
from tables import DASH, Table, explain, median, number, percent, spread

NAME = "host"
TITLE = "inference on the host"


def measure(program, name, model, options):
    """One row: times, ratios, rates and what every side's results are worth."""
    folder, notes = common.OUT / "host" / name.replace(":", "-"), []
    folder.mkdir(parents=True, exist_ok=True)
    flags = networks.options_of(name)
    ours, libraries = our_sides(program, folder, model, flags, options, notes)
    if not libraries:
        raise RuntimeError("; ".join(notes))
    library = next(iter(libraries.values()))
    if any(tensor.shape is None for tensor in library.outputs):
        raise RuntimeError("outputs as large as the data has it are not compared; bench/profile "
                           "and bench/compare measure them")
    write_inputs(folder / "inputs", library)
    sides = peer_sides(folder, model, library, options) + ours
    sides.append(Side("peak", [workers.build_peak(common.OUT / "host")]))
    done = rounds.run(sides, options.plan(NAME), folder)
    times, facts = done["times"], done["facts"]
    if "ORT" not in times or "peak" not in times:
        raise RuntimeError("; ".join(done["notes"]))
    peak = [facts["peak"]["round_macs"] / seconds / 1e9 for seconds in times.pop("peak")]
    expected = next(side.outputs for side in sides if side.name == "ORT")
    rows = {}
    for side in sides:
        if side.name not in times:
            continue
        values = times[side.name]
        rates = [library.macs / t / 1e9 if t else None for t in values]
        rows[side.name] = {
            "us": quantiles([t * 1e6 for t in values if t is not None]),
            "rounds": sum(t is not None for t in values),
            "over": {name: ratios(values, times[name]) for name in libraries if name in times},
            "gmacs": quantiles([rate for rate in rates if rate is not None]),
            "of_peak": ratios(rates, peak), "build_seconds": side.build_seconds,
            "difference": largest_difference(expected, side.outputs),
            **{key: facts[side.name][key] for key in
               ("version", "prepared_seconds", "resident_bytes", "variant")
               if key in facts[side.name]}}
    return {"model": model.name, "options": flags, "macs": library.macs,
            "peak_gmacs": quantiles(peak),
            "disturbed": done["disturbed"], "sides": rows,
            "absent": {side.name: side.absent or "failed while it was measured"
                       for side in sides if side.name not in times and side.name != "peak"},
            "notes": notes + done["notes"]}


def run(program, options, kept):
    for name in options.chosen(networks.rows_with_variants()):
        kept.attempt(name, lambda name=name: measure(program, name, networks.path_of(name),
                                                     options))
    for path in options.files:
        kept.attempt(path.stem if path.stem != "model" else path.parent.name,
                     lambda path=path: measure(
                         program, path.stem if path.stem != "model" else path.parent.name,
                         path.resolve(), options))


def wrong(row):
    """Sides of our own whose results are wrong."""
    return [side for side in OURS if row["sides"].get(side, {"difference": 0})["difference"]
            >= WRONG]


def ours_table(content):
    rows = []
    for name, row in content["rows"].items():
        sides = row["sides"]
        ort, lib = sides["ORT"], sides.get("lib")
        if lib is None:
            continue
        over = ort["over"]["lib"]
        others = [sides.get(side) for side in OURS if side != "lib"]
        rows.append([name, median(ort["us"]), median(lib["us"]), spread(over),
                     *goals.verdict(NAME, name, "ORT / ours", over["median"]),
                     f"{lib['gmacs']['median']:.1f}", percent(lib["of_peak"]["median"]),
                     *(f"{median(side['us'])} ({side['over']['lib']['median']:.2f})" if side
                       else DASH for side in others)])
    return Table("Backcast beside ONNX Runtime, one thread, batch 1, µs",
                 ["model", "ORT", "lib", "ORT / lib (p10–p90)", "goal", "", "lib, GMAC/s",
                  "of FMA peak", "C, gcc (C / lib)", "C, clang (C / lib)",
                  "WebAssembly (/ lib)"], rows)


def peers_table(content):
    others = [name for name in PEERS if name != "ORT" and any(
        name in row["sides"] or name in row["absent"] for row in content["rows"].values())]
    rows, absent = [], []
    for name, row in content["rows"].items():
        sides, cells, best = row["sides"], [], None
        if "lib" not in sides:
            continue
        for other in others:
            side = sides.get(other)
            if side is None:
                cells.append(DASH)
                absent.append((name, other, row["absent"].get(other, "not asked for")))
                continue
            ratio = side["over"]["lib"]
            mark = "" if side["difference"] < WRONG else " WRONG RESULT"
            cells.append(f"{median(side['us'])} ({ratio['median']:.2f}){mark}")
            best = min(best or ratio["median"], ratio["median"])
        rows.append([name, median(sides["lib"]["us"]), *cells, number(best, 2),
                     *goals.verdict(NAME, name, "best other / ours", best)])
    return Table("Beside the other peers, µs (peer / lib)",
                 ["model", "lib", *others, "best / lib", "goal", ""], rows, explain(absent))


def tables(content):
    """Two tables, and what the runs were like."""
    first, second = ours_table(content), peers_table(content)
    versions = {name: side["version"] for row in content["rows"].values()
                for name, side in row["sides"].items() if "version" in side}
    second.notes.append("- versions: " + ", ".join(f"{k} {v}" for k, v in versions.items()))
    variants = {}
    for name, row in content["rows"].items():
        for side, values in row["sides"].items():
            if "variant" in values:
                variants.setdefault(side, []).append(f"{name}: {values['variant']}")
            if values["difference"] >= WRONG and side in OURS:
                first.notes.append(f"- {name}, {side}: WRONG RESULT")
        absent = [(name, side, why) for side, why in row["absent"].items() if side in OURS]
        first.notes += explain(absent)
        if row.get("options"):
            first.notes.append(f"- {name}: compiled with {' '.join(row['options'])}")
        first.notes.append(f"- {name}: FMA peak {row['peak_gmacs']['median']:.1f} GMAC/s, "
                           f"{row['disturbed']} rounds repeated because the core was shared")
    second.notes += [f"- {side}, fastest variant: {'; '.join(found)}"
                     for side, found in variants.items()]
    return [first, second] if len(second.header) > 5 else [first]


def bars(content):
    """(title, {row: {side: time / lib}}) for the plot."""
    return "Inference: time / Backcast's", {
        name: {side: values["over"]["lib"]["median"] for side, values in row["sides"].items()
               if side != "lib" and "lib" in values["over"]}
        for name, row in content["rows"].items()}
