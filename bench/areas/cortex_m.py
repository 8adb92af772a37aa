"""Cortex-M4 under QEMU: executed instructions and modelled cycles, by bench/run-cortex-m.

One call of that program per row; what it writes is kept here, so that a run can be resumed.
"""

import json
import sys

import common
import goals
import networks
from tables import DASH, Table, explain, number

NAME = "cortex-m-score"  # build/bench/cortex-m.json is the other program's
AREA = "cortex-m"
TITLE = "Cortex-M4F, instructions and modelled cycles"
ROWS = ["ic", "kws", "ad", "vww", "mlp"]
# What a promised range removes is no work, so cycles are per multiply-accumulate that is left;
# Winograd's are per one of the direct form ("auto" takes no layer that raises the arena).
VARIANTS = {"ic:winograd": ("peers/ic_b1.onnx", ["--winograd", "on"]),
            "vww:range": ("vww_fp32/model.onnx", networks.options_of("vww:range"))}
TRAINED = {"ic, training step": ["ic"],
           "ic:winograd, training step": ["ic", "--", "--winograd", "auto"]}
LIMIT = 3600


def measure(program, words, file):
    """The one model's entry in what bench/run-cortex-m writes."""
    path = common.OUT / file
    path.unlink(missing_ok=True)
    try:
        common.run_tool([sys.executable, common.BENCH / "run-cortex-m", "--backcast", program,
                         *words], limit=LIMIT)
    except RuntimeError:
        if not path.exists():  # status 1 also says that a goal was missed
            raise
    written = json.loads(path.read_text())
    if not written["models"]:
        raise RuntimeError("; ".join(written["notes"]) or "nothing was measured")
    return {**next(iter(written["models"].values())), "notes": written["notes"]}


def run(program, options, kept):
    folder = common.models_folder()
    for name in options.chosen(ROWS):
        def count(name=name):
            if folder is None:
                raise RuntimeError("BACKCAST_MODELS is not set")
            return measure(program, [folder / "peers" / f"{name}_b1.onnx"], "cortex-m.json")
        kept.attempt(name, count)
    for row in options.chosen(list(VARIANTS)):
        def count(row=row):
            model, words = VARIANTS[row]
            if folder is None:
                raise RuntimeError("BACKCAST_MODELS is not set")
            return measure(program, [folder / model, "--", *words], "cortex-m.json")
        kept.attempt(row, count)
    for row in options.chosen(list(TRAINED)):
        kept.attempt(row, lambda row=row: measure(program, ["--train", *TRAINED[row]],
                                                  "cortex-m-train.json"))


def wrong(row):
    return []


def tables(content):
    rows, said = [], []
    for name, row in content["rows"].items():
        peer, first = row["peer"] if name in ROWS else None, True
        for side, values in row["sides"].items():
            macs, ratio = max(values["macs"], 1), None
            if peer:
                ratio = peer / values["instructions"]
            beaten = goals.verdict(AREA, name, "peer / ours", ratio) if peer else [DASH, ""]
            cycles = values["cycles"] / macs
            rows.append([name if first else "", side, f"{values['instructions']:,}",
                         number(values["instructions"] / macs, 2),
                         number(cycles, 2), *goals.verdict(AREA, name, "cycles per MAC", cycles),
                         f"{peer / 1e6:.2f} M" if peer and first else "", number(ratio, 2),
                         *beaten])
            first = False
        said += [(name, "note", note) for note in row["notes"]]
    return [Table("Executed instructions per call",
                  ["model", "side", "instructions", "per MAC", "cycles per MAC, modelled", "goal", "",
                   "best peer", "peer / ours", "goal", ""], rows, explain(said))]


def bars(content):
    return None
