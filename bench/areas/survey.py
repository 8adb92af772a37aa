"""Training steps of networks of many kinds that people train, beside PyTorch's.

A case is NETWORK:BATCH; the networks are those of models/survey_networks.py. They have no goals:
the survey finds what the rows of `training` do not show.
"""

import common
import environments
import networks
import rounds
from areas import training
from rounds import quantiles, ratios
from tables import DASH, Table, explain, median

NAME = "survey"
TITLE = "training steps of many kinds of networks"
ROWS = ["lenet", "vgg", "cuda_convnet", "resnet", "mobilenet_v2", "mobilenet_v3", "efficientnet",
        "convnext", "group_norm_resnet", "unet", "convolutional_autoencoder",
        "resizing_autoencoder", "style_transfer", "shufflenet", "squeezenet", "densenet", "volumes",
        "superresolution", "temporal", "activity", "separation", "lstm", "gru",
        "bidirectional_lstm", "convolutional_recurrent", "vision_transformer", "text", "mixer",
        "gelu_perceptron", "tanh_perceptron", "dense_autoencoder"]
PEERS = ("PyTorch eager", "PyTorch compiled")


def all_cases():
    return [f"{name}:{batch}" for batch in training.BATCHES for name in ROWS]


def measure(program, case, options):
    network = networks.SURVEY + case.split(":")[0]
    batch, folder = int(case.split(":")[1]), common.OUT / NAME / case.replace(":", "-")
    try:
        report = training.compile_library(program, network, batch, options.optimizer, folder)
    except environments.Unavailable as error:  # PyTorch, which exports the network
        raise RuntimeError(str(error)) from error
    ours = training.side_of("train_step", folder, "train_step")
    peers = training.peer_sides(network, batch, folder, options, PEERS)
    done = rounds.run([ours, *peers], options.plan("training"), folder)
    times = done["times"]
    if ours.name not in times:
        raise RuntimeError("; ".join(done["notes"]))
    step = times[ours.name]
    return {"us": {side: quantiles([t * 1e6 for t in values if t is not None])
                   for side, values in times.items()},
            "over_step": {side: ratios(values, step) for side, values in times.items()},
            "absent": {side.name: side.absent for side in peers if side.absent},
            "state_bytes": report["state_bytes"], "arena_bytes": report["arena_bytes"],
            "optimizer": options.optimizer, "notes": done["notes"]}


def run(program, options, kept):
    for case in options.chosen(all_cases()):
        kept.attempt(case, lambda case=case: measure(program, case, options))


def wrong(row):
    """Training has its own tests: nothing is compared here."""
    return []


def tables(content):
    rows, absent = [], []
    for case, row in content["rows"].items():
        cells = []
        for peer in PEERS:
            over = row["over_step"].get(peer)
            cells.append(f"{median(row['us'][peer])} ({over['median']:.2f})" if over else DASH)
            if not over:
                absent.append((case, peer, row["absent"].get(peer, "was not measured")))
        rows.append([*case.split(":"), median(row["us"]["train_step"]), *cells,
                     f"{row['state_bytes'] + row['arena_bytes']:,}"])
    optimizers = {row["optimizer"] for row in content["rows"].values()}
    return [Table("A step, µs (peer / ours)",
                  ["network", "batch", "step", *PEERS, "state + arena, bytes"], rows,
                  explain(absent) + [f"- optimizer: {', '.join(sorted(optimizers))}"])]


def bars(content):
    return "Training step of many kinds: time / Backcast's", {
        case: {peer: row["over_step"][peer]["median"] for peer in PEERS
               if row["over_step"].get(peer)}
        for case, row in content["rows"].items()}
