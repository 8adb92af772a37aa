"""The training step: forward, loss, backward and update, beside PyTorch's and ONNX Runtime's.

A case is NETWORK:BATCH, or NETWORK:BATCH:VARIANT, which is compiled with the options of VARIANTS;
networks are those of tests/training and `mlp`. "evaluate" is the library's
evaluate() on the same batch (inference mode and loss). "forward" is a forward pass in training
mode: the step of a library that trains the last bias only. Its other weights are constants, so what
it rearranges, it rearranged when compiled.
"""

import array
import json
import random
import re
import shutil
import sys

import common
import environments
import goals
import networks
import rounds
import workers
from rounds import Side, quantiles, ratios
from tables import DASH, Table, explain, median, number

NAME = "training"
TITLE = "the training step"
MODELS = common.ROOT / "tests/training/models"
ROWS = ["mlp", "ad", "kws", "ic", "vww", "enc", "digits_cnn"]
BATCHES = (1, 8)
VARIANTS = {"winograd": ["--winograd", "auto"]}
VARIED = {"ic": ["winograd"]}
REGRESSIONS = {"ad", *(networks.SURVEY + name for name in (
    "unet", "convolutional_autoencoder", "resizing_autoencoder", "style_transfer",
    "superresolution", "dense_autoencoder"))}
OURS = ("forward", "evaluate", "train_step")
PEERS = {"PyTorch eager": ("torch", "torch_train_worker.py", ["eager"]),
         "PyTorch compiled": ("torch", "torch_train_worker.py", ["compiled"]),
         "ORT training": ("ort-training", "ort_train_worker.py", [])}


def all_cases():
    return [case for name in ROWS for batch in BATCHES
            for case in (f"{name}:{batch}",
                         *(f"{name}:{batch}:{variant}" for variant in VARIED.get(name, ())))]


def parts_of(case):
    """(network, batch, options of its variant)."""
    network, batch, *variant = case.split(":")
    return network, int(batch), [word for name in variant for word in VARIANTS[name]]


def model_of(network, batch):
    """The ONNX file in training mode, batch `N`; ad at batch 1 with frozen statistics, as its peers
    have it; networks of the survey with "survey_" in front."""
    if network.startswith(networks.SURVEY):
        return networks.written(network)
    made = {"mlp": "trainable_mlp"}
    if int(batch) == 1:
        made["ad"] = "ad_frozen"
    if network not in made:
        return MODELS / f"{network}.onnx"
    path = common.OUT / f"models/{made[network]}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        common.run_tool([sys.executable, common.BENCH / "models/make_models.py", path.parent,
                         path.stem])
    return path


def loss_of(network):
    return "mse" if network in REGRESSIONS else "cross-entropy"


def fields(header, struct):
    """(field, bytes, is float) of a generated struct."""
    body = re.search(r"typedef struct %s \{(.*?)\}" % struct, header, re.S).group(1)
    found = re.findall(r"(\w+) \*(\w+);\s*/\* (\w+)\[([\d,]*)\]", body)
    result = []
    for _, name, element, shape in found:
        size = common.ELEMENT_BYTES[element]
        for extent in filter(None, shape.split(",")):
            size *= int(extent)
        result.append((name, size, element == "f32"))
    return result


def write_glue(folder, function):
    """glue.h for worker.c: one function of a training library, on a state of its own."""
    header = (folder / "net.h").read_text()
    tensors = {kind: fields(header, f"net_{function}_{kind}") for kind in ("inputs", "outputs")}
    lines = ['#include "net.h"', f"#define GLUE_INPUTS {len(tensors['inputs'])}",
             f"#define GLUE_OUTPUTS {len(tensors['outputs'])}",
             "#define GLUE_ARENA_BYTES NET_ARENA_BYTES", "#define GLUE_ARENA_ALIGN NET_ARENA_ALIGN"]
    for kind, rows in tensors.items():
        sizes = ", ".join(str(size) for _, size, _ in rows)
        lines.append(f"static const size_t glue_{kind[:-1]}_bytes[] = {{{sizes}}};")
    lines += ["static _Alignas(NET_STATE_ALIGN) unsigned char glue_state[NET_STATE_BYTES];",
              "static bc_status glue_call(void *const *i, void *const *o, void *arena,",
              "                           const bc_context *context) {", "  static int ready;",
              "  if (!ready) ready = net_init(glue_state, sizeof glue_state, 1) == BC_OK;",
              f"  net_{function}_inputs in;", f"  net_{function}_outputs out;"]
    lines += [f"  in.{name} = i[{k}];" for k, (name, _, _) in enumerate(tensors["inputs"])]
    lines += [f"  out.{name} = {f'o[{k}]' if name == 'loss' else 'NULL'};"
              for k, (name, _, _) in enumerate(tensors["outputs"])]
    lines += [f"  return net_{function}(glue_state, &in, &out, arena, NET_ARENA_BYTES, context);",
              "}", ""]
    (folder / "glue.h").write_text("\n".join(lines))
    generator = random.Random(1)
    with open(folder / f"{function}.inputs", "wb") as stream:
        for _, size, is_float in tensors["inputs"]:
            data = array.array("f", (generator.uniform(-1, 1) for _ in range(size // 4))) \
                if is_float else bytes(size)
            stream.write(bytes(data))


def compile_library(program, network, batch, optimizer, folder, options=()):
    """The report of a library made in `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    common.run_tool([program, "compile", model_of(network, batch), "--train", "--batch", batch,
                     "--loss", loss_of(network), "--optimizer", optimizer, "--name", "net",
                     "-o", folder, *options])
    return json.loads((folder / "net.report.json").read_text())


def side_of(name, folder, function):
    """A process that runs one function of a library."""
    write_glue(folder, function)
    worker = folder / f"worker_{function}"
    common.run_tool(["cc", "-std=gnu11", "-O2", "-I", folder, workers.HOST / "worker.c",
                     folder / "libnet.a", "-o", worker])
    return Side(name, [worker, folder / f"{function}.inputs", folder / f"{function}.outputs"])


def build(program, case, optimizer):
    """Our sides, the report and the folder."""
    network, batch, words = parts_of(case)
    folder = common.OUT / "train" / f"{case.replace(':', '-')}-{optimizer}"
    report = compile_library(program, network, batch, optimizer, folder, words)
    vectors = [state["name"] for state in report["state"]
               if state["role"] == "parameter" and "," not in state["type"]]
    # The report's names are those of the header: each underscore may stand for another character.
    last = f"^{vectors[-1].replace('_', '.')}$"
    frozen = folder.with_name(folder.name + "-frozen")
    compile_library(program, network, batch, optimizer, frozen, ["--trainable", last, *words])
    sides = [side_of("forward", frozen, "train_step")]
    return sides + [side_of(name, folder, name) for name in ("evaluate", "train_step")], \
        report, folder


def peer_sides(network, batch, folder, options, peers=tuple(PEERS)):
    """Those of `peers` that the options ask for."""
    sides = []
    for name in filter(options.wants, peers):
        environment, worker, words = PEERS[name]
        try:
            python = environments.python_of(environment)
            sides.append(Side(name, [python, common.BENCH / "peers" / worker, network, batch,
                                     loss_of(network), options.optimizer, model_of(network, batch),
                                     folder, *words]))
        except environments.Unavailable as error:
            sides.append(Side(name, absent=str(error)))
    return sides


def measure(program, case, options):
    """One row: times, ratios and bytes."""
    network, batch, _ = parts_of(case)
    ours, report, folder = build(program, case, options.optimizer)
    peers = peer_sides(network, batch, folder, options)
    done = rounds.run(ours + peers, options.plan(NAME), folder)
    times = done["times"]
    for function in OURS:
        if function not in times:
            raise RuntimeError(f"{function} could not be measured: {'; '.join(done['notes'])}")
    step = times["train_step"]
    row = {"us": {name: quantiles([t * 1e6 for t in values if t is not None])
                  for name, values in times.items()},
           "step_over": {name: ratios(step, values) for name, values in times.items()},
           "over_step": {name: ratios(values, step) for name, values in times.items()},
           "absent": {side.name: side.absent for side in peers if side.absent},
           "resident_bytes": {name: facts["resident_bytes"]
                              for name, facts in done["facts"].items()
                              if "resident_bytes" in facts},
           "versions": {name: facts["version"] for name, facts in done["facts"].items()
                        if "version" in facts},
           "state_bytes": report["state_bytes"], "arena_bytes": report["arena_bytes"],
           "arena_bound": report["arena_bound"], "disturbed": done["disturbed"],
           "optimizer": options.optimizer, "notes": done["notes"]}
    return row


def run(program, options, kept):
    """Measures every case that is not in the store yet."""
    for case in options.chosen(all_cases()):
        kept.attempt(case, lambda case=case: measure(program, case, options))


def best_peer(row):
    """(name, peer / ours) of the fastest peer, or None."""
    found = [(ratio["median"], name) for name, ratio in row["over_step"].items()
             if name in PEERS and ratio]
    return min(found)[::-1] if found else None


def wrong(row):
    """Training has its own tests: nothing is compared here."""
    return []


def tables(content):
    peers = [name for name in PEERS if any(name in row["us"] or name in row["absent"]
                                           for row in content["rows"].values())]
    rows, absent = [], []
    for case, row in content["rows"].items():
        network, batch = case.split(":", 1)
        best = best_peer(row)
        cells = []
        for peer in peers:
            if peer in row["over_step"]:
                cells.append(f"{median(row['us'][peer])} "
                             f"({row['over_step'][peer]['median']:.2f})")
            else:
                cells.append(DASH)
                absent.append((case, peer, row["absent"].get(peer, "failed while it was measured")))
        planned = row["state_bytes"] + row["arena_bytes"]
        bound = row["state_bytes"] + row["arena_bound"]
        rows.append([network, batch, median(row["us"]["train_step"]),
                     median(row["step_over"]["forward"], 2),
                     median(row["step_over"]["evaluate"], 2), *cells,
                     number(best[1], 2) if best else DASH,
                     *goals.verdict(NAME, case, "best peer / ours", best[1] if best else None),
                     f"{planned:,}", f"{100 * (planned / bound - 1):.1f} %"])
    versions = {name: version for row in content["rows"].values()
                for name, version in row["versions"].items()}
    optimizers = {row["optimizer"] for row in content["rows"].values()}
    notes = explain(absent) + [f"- versions: {', '.join(f'{k} {v}' for k, v in versions.items())}",
                               f"- optimizer: {', '.join(sorted(optimizers))}"]
    return [Table("A step beside its peers, µs (peer / ours)",
                  ["network", "batch", "step", "step / forward", "step / evaluate", *peers,
                   "best peer / ours", "goal", "", "state + arena, bytes", "above the bound"],
                  rows, notes)]


def bars(content):
    return "Training step: time / Backcast's", {
        case: {peer: ratio["median"] for peer, ratio in row["over_step"].items() if peer in PEERS}
        for case, row in content["rows"].items()}
