"""Memory: arena and state beside the planner's bound, flash, and what the peers take.

Arenas of an inference are those of the host, of the host with one thread, where results may lie
partly over their operands, and of a Cortex-M4.

A generator's heap is the sum of what its function allocates; a peer's resident memory is what its
process grew by from loading the model to the end of the first runs. Both are of the last runs of
the areas host and training.
"""

import common
import goals
import networks
import store
from areas import generators, training
from tables import DASH, Table, number

NAME = "memory"
TITLE = "memory"
HEAP = "emx-onnx-cgen, heap"
# Arenas beside that of the host's library, with other arguments of common.compile_model.
OTHERS = {"arena, one thread": {"options": ("--threads", "1")},
          "arena, Cortex-M4": {"target": "cortex-m4"}}
CASES = [f"{name}:{batch}" for name in training.ROWS for batch in training.BATCHES]


def sizes(report):
    flash = sum(report[key] for key in ("weight_bytes", "code_bytes", "table_bytes"))
    return {key: report[key] for key in ("arena_bytes", "arena_bound", "stack_bytes")} | {
        "flash_bytes": flash, "state_bytes": report.get("state_bytes", 0)}


def inference(program, name):
    def report(folder, **others):
        return common.compile_model(program, networks.path_of(name),
                                    common.OUT / "memory" / folder, "m", **others).report

    arenas = {title: report(f"{name}-other", **others)["arena_bytes"]
              for title, others in OTHERS.items()}
    return {"kind": "inference", **sizes(report(name)), "others": arenas}


def train(program, case, optimizer):
    network, batch = case.split(":")
    report = training.compile_library(program, network, int(batch), optimizer,
                                      common.OUT / "memory" / case.replace(":", "-"))
    return {"kind": "training", **sizes(report)}


def run(program, options, kept):
    for name in options.chosen(networks.ROWS):
        kept.attempt(name, lambda name=name: inference(program, name))
    for case in options.chosen(CASES):
        kept.attempt(case, lambda case=case: train(program, case, options.optimizer))


def wrong(row):
    return []


def resident(area, name, key):
    """{peer: bytes} of the last results of another area."""
    row = ((store.read(area) or {"rows": {}})["rows"]).get(name, {})
    if key is None:
        return {side: values["resident_bytes"] for side, values in row.get("sides", {}).items()
                if "resident_bytes" in values}
    return row.get(key, {})


def of_peers(name):
    """What the peers of the inference area take for a row."""
    found = resident("host", name, None)
    source = common.OUT / "host" / name / "emx/model.c"
    if source.exists():
        found[HEAP] = generators.heap_bytes(source)
    return {f"{peer}, resident" if peer != HEAP else peer: size for peer, size in found.items()}


def of_training_peers(name):
    return {f"{peer}, resident": size
            for peer, size in resident("training", name, "resident_bytes").items()}


def bytes_cell(value):
    return DASH if value is None else f"{value:,}"


def table(content, kind, title, peers, others):
    rows = []
    for name, row in content["rows"].items():
        if row["kind"] != kind:
            continue
        planned = row["arena_bytes"] + row["state_bytes"]
        bound = row["arena_bound"] + row["state_bytes"]
        found = others(name)
        ratio = planned / bound if bound else 1.0
        cells = [name, f"{row['arena_bytes']:,}", f"{row['arena_bound']:,}"]
        cells += [f"{row['state_bytes']:,}"] if kind == "training" else []
        cells += [number(ratio, 3), *goals.verdict(NAME, name, "planned / bound", ratio),
                  f"{row['flash_bytes']:,}", f"{row['stack_bytes']:,}"]
        if kind == "inference":
            cells += goals.verdict(NAME, name, "arena", row["arena_bytes"])
            cells += [bytes_cell(row.get("others", {}).get(title)) for title in OTHERS]
        else:
            cells += [f"{planned:,}", *goals.verdict(NAME, name, "training bytes", planned)]
        rows.append(cells + [bytes_cell(found.get(peer)) for peer in peers])
    header = ["model", "arena", "bound"] + (["state"] if kind == "training" else []) + \
        ["planned / bound", "goal", "", "flash", "stack"]
    header += ["arena's goal", "", *OTHERS] if kind == "inference" else \
        ["state + arena", "goal", ""]
    return Table(title, header + list(peers), rows)


def tables(content):
    inferring = [f"{peer}, resident" for peer in ("ORT", "PyTorch eager", "IREE", "TVM")] + [HEAP]
    learning = [f"{peer}, resident" for peer in training.PEERS]
    return [table(content, "inference", "Inference, bytes", inferring, of_peers),
            table(content, "training", "Training, bytes", learning, of_training_peers)]


def bars(content):
    return None
