"""Compiles random networks in many ways and holds all results against each other, the forward pass
against ONNX Runtime, and gradients against differences. Prints a line per network that fails and
keeps its model; exit status 1 when one does.

    sweep.py BACKCAST FOLDER [--seconds S | --count N] [--first SEED] [--alone | --quick]

Of ten networks two are quantised, whose results are the same bits in every way, two take any
number of examples, one maps of any length, one is of sequences, one has many features and one half
floats, which are held against each other, and roughly against the same in single precision.
Generated C runs under the address and undefined-behaviour sanitizers, a microcontroller's on this
machine. Semantics are judged in double precision; single precision by its own measured noise.
--alone needs neither ONNX Runtime, whose place the evaluator takes, nor emulators; networks of any
number of examples are left out. --quick judges four times as many networks, each in a few libraries of this machine."""

import argparse
import json
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import onnx

import halves
import model
import networks
import quantised
import selected
import sequences
import stretched

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))
from onnx_reference import run_in_both_ways, write_data, write_tensor

EXACT = 1e-9       # of the largest value, in double precision
WINOGRAD = 1e-4    # the same, where sums are transformed; a layer's error stays below 1e-5
ROUNDING = 1e-5    # the same, in single precision, beside the noise that was measured
HALVES = 1e-2      # the same of half floats, whose constants and normalised values are rounded
WORST_SCALE = 1e3  # networks whose values leave this are not judged
SANITIZE = ["-O0", "-fsanitize=address", "-fno-sanitize-recover=all"]
UNDEFINED = "-fsanitize=undefined"  # of the forward pass only: it makes building slow
TRAIN = ["--train", "--rate", "0.002"]
LIMIT = 300
HOSTS = ["native"] + [name for name, flag in (("x86-64", "sse2"), ("x86-64-v3", "avx2"))
                      if re.search(rf"^flags\b.*\b{flag}\b",
                                   pathlib.Path("/proc/cpuinfo").read_text(), re.M)]
EMULATED = ["cortex-m3", "cortex-m4", "cortex-m55", "cortex-m7", "armv7hf", "armv7-neon", "cortex-a53",
            "cortex-a76", "riscv32f", "riscv64", "rv64gcv", "rv64gcv-256",
            "wasm32", "c99"]
OPTIMIZERS = [["--optimizer", "sgd"], ["--optimizer", "momentum"],
              ["--optimizer", "nesterov", "--weight-decay", "0.01"],
              ["--optimizer", "sgd", "--clip-norm", "1.5"],
              ["--optimizer", "rmsprop", "--epsilon", "0.1"]]
KINDS = [networks.Network, networks.Wide, networks.Network, networks.Symbolic,
         quantised.Quantised, sequences.Sequence, selected.Selected,
         stretched.Stretched, quantised.QuantisedSymbolic, halves.Half]  # by the seed's remainder
C_TYPES = {"float32": "ELEMENT", "int64": "int64_t", "int32": "int32_t", "bool": "uint8_t"}
NOTHING_TO_TRAIN = "matches none of the trainable tensors"  # numbers alone, without axes
NOT_FINITE = "train_step: status 8"  # as bc_types.h numbers it


class Fault(Exception):
    pass


def call(command, folder=None):
    try:
        done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True,
                              text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise Fault(f"{command[0]} took more than {LIMIT} s") from None
    if done.returncode != 0:
        text = (done.stdout + done.stderr).strip()
        summary = re.search(r"(ERROR: AddressSanitizer|runtime error)[^\n]*", text)
        raise Fault(f"{' '.join(str(word) for word in command[:2])} … ended with "
                    f"{done.returncode}: {summary.group(0) if summary else text[-2000:]}")
    return done.stdout


class Case:
    """One network: its files, inputs and the ways it is compiled."""

    def __init__(self, backcast, folder, seed):
        self.backcast, self.folder, self.seed = backcast, folder, seed
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.kind = KINDS[seed % len(KINDS)]
        self.network = model.make(seed, self.kind)
        self.path = folder / "network.onnx"
        onnx.save(self.network.model(), self.path)
        self.reference = self.path  # the same for others
        if self.kind is halves.Half:
            self.reference = folder / "reference.onnx"
            onnx.save(self.network.reference, self.reference)
        self.numbers = np.random.default_rng(seed)
        self.inputs = self.feeds()
        self.target = self.network.target(self.numbers)
        self.loss = ["--loss", self.network.loss]
        for i, value in enumerate(self.inputs.values()):
            write_tensor(folder / f"input_{i}.pb", value)
        write_tensor(folder / "target.pb", self.target)
        for kind in (np.float32, np.float64):
            for name, value in self.operands().items():
                floats = value.dtype.kind == "f"
                value.astype(kind if floats else value.dtype).tofile(self.data(name, kind))

    def feeds(self, examples=None):
        return {name: self.network.feed(name, self.numbers, examples)
                for name in self.network.inputs}

    def operands(self):
        """Of a training step, in the order in which driver.c takes them."""
        x, *others = self.inputs.values()
        return {"x": x, "target": self.target, **({"z": others[0]} if others else {})}

    def data(self, name, kind):
        return self.folder / f"{name}.{kind.__name__}"

    def c_types(self):
        """Definitions of macros by which driver.c knows its operands."""
        return [f"-D{name.upper()}_ELEMENT={C_TYPES[value.dtype.name]}"
                for name, value in self.operands().items()]

    def compile(self, emit, target, options, double=False):
        """The folder of the library."""
        folder = self.folder / "library"
        shutil.rmtree(folder, ignore_errors=True)
        call([self.backcast, "compile", self.path, "--name", "net", "--emit", emit, "--target",
              target, "-o", folder, *options, *(["--f64"] if double else [])])
        return folder

    def run(self, emit, target, options, double=False, pieces=True):
        """What driver.c writes, as an array; steps may be cut in pieces."""
        kind = np.float64 if double else np.float32
        folder = self.compile(emit, target, options, double)
        flags = ["-std=gnu11", f"-DELEMENT={'double' if double else 'float'}", "-I.",
                 *self.c_types()]
        flags += ["-DTRAINS"] if "--train" in options else []
        flags += ["-DPIECES"] if pieces else []
        flags += SANITIZE if "--train" in options else [*SANITIZE, UNDEFINED]
        code = "libnet.a"
        if emit == "c":
            code = "net.c"
            source = (folder / code).read_text()
            wanted = re.search(r"Compile with: \S+ (.*) -c \S+", source).group(1).split()
            if target.startswith("cortex"):  # its only instruction by name
                source = re.sub(r'__asm__\("vsqrt\.f\d\d [^;]*;', "r = __builtin_sqrt(a);", source)
                (folder / code).write_text(source)
                wanted = []
            flags += [word for word in wanted if word.startswith("-m")]
        call(["gcc", *flags, HERE / "driver.c", code, "-lm", "-o", "driver"], folder)
        output = folder / "output"
        call([folder / "driver", output, *(self.data(name, kind) for name in self.operands())])
        results = np.fromfile(output, kind)
        count = math.prod(self.network.shape)
        if not np.array_equal(results[:count], results[count:2 * count], equal_nan=True):
            raise Fault("results change with what memory held, or with the order of loops")
        return results.astype(np.float64)

    def verify(self, allowed, way):
        """The fault of what one way of compiling computes of the data sets, if any."""
        try:
            call([self.backcast, "verify", self.path, "--data", self.folder, *way, "--rtol", "0",
                  "--atol", allowed])
        except Fault as fault:
            yield f"forward {' '.join(way)}: {fault}"

    def memory(self, target, options, double=False):
        """(arena, state) in bytes."""
        folder = self.compile("c", target, options, double)
        report = json.loads((folder / "net.report.json").read_text())
        return report["arena_bytes"], report.get("state_bytes", 0)


def scale(expected):
    return max(1.0, float(np.abs(expected).max(initial=0)))


def distance(expected, found):
    if expected.shape != found.shape:
        raise Fault(f"{found.size} results instead of {expected.size}")
    if not np.isfinite(found).all():
        raise Fault("results are not finite")
    return float(np.abs(expected - found).max(initial=0)) / scale(expected)


def noise_of(results):
    """How far the first of several ways is from the last."""
    return max(distance(a.astype(np.float64), b.astype(np.float64))
               for a, b in zip(results[0], results[-1]))


def judge_way(case, emit, target, options, expected, allowed, double=False):
    """The fault of one way of compiling, if any; a budget may be less than can be reached."""
    try:
        if (far := distance(expected, case.run(emit, target, options, double))) > allowed:
            raise Fault(f"{far:.1e} apart, allowed {allowed:.1e}")
    except Fault as fault:
        if "--ram" not in options or "most is live in" not in str(fault):
            precision = "double" if double else "single"
            yield f"{emit} {target} {' '.join(options)} in {precision} precision: {fault}"


def forward_ways(rng, arena):
    """(emission, target, options) that are run on this machine."""
    yield "lib", "native", []
    yield "c", "cortex-m4", []
    budget = ["--ram", str(max(1, int(arena * rng.uniform(0.4, 0.95))))]
    yield "c", rng.choice(["cortex-m4", *HOSTS]), budget
    yield "c", rng.choice(HOSTS), rng.choice(
        [[], ["--winograd", "on"], ["--threads", "1"], ["--bands", "off"]])
    yield "lib", rng.choice(HOSTS), rng.choice(
        [["--winograd", "on"], ["--threads", "1"], ["--input-range", "-8,8"]])


def emulated_ways(rng, targets):
    for target in targets:
        yield ["--target", target, "--emit",
               "c" if target == "c99" else rng.choice(["lib", "lib", "c"])]


def quick_ways(rng, arena, state=0):
    """The same of few libraries, for steps as well."""
    budget = ["--ram", str(state + max(1, int(arena * rng.uniform(0.4, 0.95))))]
    yield "lib", "native", []
    yield "lib", rng.choice(HOSTS), rng.choice(
        [budget, ["--winograd", "on"], ["--threads", "1"], ["--threads", "4"], ["--bands", "off"]])


def judge_forward(case, expected, noise, rng, targets, quick):
    """Faults of the forward pass on this machine, on `targets` and in the evaluator. `noise`: None
    where the same bits are asked for."""
    rounding = 0 if noise is None else ROUNDING + 4 * noise
    arena, _ = case.memory("native" if quick else "cortex-m4", [])
    for emit, target, options in (quick_ways if quick else forward_ways)(rng, arena):
        winograd = "--winograd" in options and noise is not None
        yield from judge_way(case, emit, target, options, np.tile(expected, 2),
                             rounding + (WINOGRAD if winograd else 0))
    if quick:
        return
    result = expected.astype(np.float32).reshape(case.network.shape)
    write_data(case.folder, case.inputs, {"y": result})
    # The evaluator rounds every half float, as ONNX has them.
    evaluator = [] if case.kind is halves.Half else [["--evaluator"]]
    for way in [*evaluator, *emulated_ways(rng, targets)]:
        yield from case.verify(rounding * scale(expected), way)


def run_alone(case, feeds):
    """The results of the library of this machine, as if they came from two others."""
    inputs = []
    for name, value in feeds.items():
        np.save(case.folder / f"{name}.npy", value)
        inputs += ["--input", f"{name}={case.folder / name}.npy"]
    results = case.folder / "results"
    dims = case.network.dims_of(feeds)
    call([case.backcast, "run", case.path, *inputs, *dims, "-o", results])
    found = [np.load(results / f"{name}.npy") for name in ("y", *case.network.outputs)]
    return found, found


def judge_sets(case, rng, sets, dims=(), alone=False):
    """Faults of a network of tensors of any size on several sets of inputs; None where it is not
    judged. What an empty tensor has for a mean or a maximum is not asked."""
    noise, largest, judged = 0, 0, 0
    for feeds in sets:
        results = run_alone(case, feeds) if alone else run_in_both_ways(case.path, feeds)
        if not all(np.isfinite(result).all() for result in results[0]):
            continue
        noise = max(noise, noise_of(results))
        largest = max(largest, *(scale(result) for result in results[0]))
        names = ["y", *case.network.outputs]
        write_data(case.folder, feeds, dict(zip(names, results[0])), judged)
        judged += 1
    if largest > WORST_SCALE or judged == 0:
        return None
    options = [["--winograd", "on"], ["--threads", "1"], ["--bands", "off"], []]
    ways = [["--target", "native"], ["--target", "native", "--emit", "c", *rng.choice(options)],
            ["--target", rng.choice(HOSTS), *rng.choice(options)],
            *emulated_ways(rng, rng.sample(EMULATED, 1 if alone else 3))]
    faults = []
    for way in [["--evaluator"], *ways]:
        allowed = ROUNDING + 4 * noise + (WINOGRAD if "--winograd" in way else 0)
        faults += case.verify(allowed * largest, [*way, *dims])
    return faults


def judge_symbolic(case, rng):
    """Faults of a network of any number of examples; None where it is not judged."""
    most = rng.randint(2, 5)
    sets = [case.feeds(examples) for examples in (1, most, rng.randint(1, most))]
    faults = judge_sets(case, rng, sets, ["--dim", f"N=1..{most}"])
    if faults is None or case.kind is quantised.QuantisedSymbolic:
        return faults
    return faults + list(judge_gradient(case, ["--batch", "2"]))


def judge_stretched(case, rng, alone):
    """Faults of a network of maps of any length; None where it is not judged."""
    most = case.inputs["x"].shape[2]
    sets = [case.feeds(length) for length in (1, most, *rng.sample(range(2, most), 2))]
    return judge_sets(case, rng, sets, ["--dim", f"N=1..{most}"], alone)


def judge_selected(case, rng, alone):
    """Faults of a network that chooses rows; None where it is not judged."""
    faults = judge_sets(case, rng, [case.feeds() for _ in range(4)], alone=alone)
    is_fixed = all(isinstance(extent, int) for extent in case.network.shape)
    return faults + list(judge_gradient(case)) if faults is not None and is_fixed else faults


def training_ways(rng, arena, state):
    yield "c", "cortex-m4", []
    for least, most in ((0.4, 0.7), (0.7, 0.95)):
        budget = ["--ram", str(state + int(arena * rng.uniform(least, most)))]
        yield "c", rng.choice(["cortex-m4", "cortex-m4", HOSTS[-1]]), budget
    yield "lib", "native", rng.choice([[], ["--threads", "1"]])
    yield "c", rng.choice(HOSTS), rng.choice(
        [[], ["--winograd", "on"], ["--threads", "1"], ["--threads", "4"]])


def trained(case, train):
    """What some steps in double precision give; None where it is not judged."""
    try:
        reference = case.run("lib", "native",
                             [*train, "--bands", "off", "--skip-zeros", "off"], True, False)
    except Fault as fault:
        if NOT_FINITE in str(fault):
            return None
        raise
    return reference if np.isfinite(reference).all() and scale(reference) <= WORST_SCALE else None


def judge_training(case, rng, quick):
    """Faults of some steps, in double precision; but for `quick` one library in single precision."""
    train = [*TRAIN, *case.loss, *rng.choice(OPTIMIZERS)]
    if (reference := trained(case, train)) is None:
        return
    memory = case.memory("native" if quick else "cortex-m4", train, True)
    for emit, target, options in (quick_ways if quick else training_ways)(rng, *memory):
        allowed = WINOGRAD if "--winograd" in options else EXACT
        yield from judge_way(case, emit, target, [*train, *options], reference, allowed, True)
    if quick:
        return
    noise = distance(reference, case.run("lib", "native", train))
    yield from judge_way(case, "c", "cortex-m4", train, reference, ROUNDING + 8 * noise)


def judge_gradient(case, options=()):
    try:
        call([case.backcast, "gradcheck", case.path, "--f64", *case.loss, *options])
    except Fault as fault:
        if NOTHING_TO_TRAIN not in str(fault):
            yield f"gradient: {fault}"


def judge(case, alone, quick, rng):
    """Faults of one network; None where it is not judged."""
    if case.kind in (networks.Symbolic, quantised.QuantisedSymbolic):
        return None if alone or quick else judge_symbolic(case, rng)
    if case.kind is stretched.Stretched:
        return None if quick else judge_stretched(case, rng, alone)
    if case.kind is selected.Selected:
        return None if quick else judge_selected(case, rng, alone)
    if alone:
        expected, noise = case.run("lib", "native", []).reshape(2, -1)[0], ROUNDING
    else:
        results = run_in_both_ways(case.reference, case.inputs)
        expected, noise = results[0][0].astype(np.float64).ravel(), noise_of(results)
    if not np.isfinite(expected).all() or scale(expected) > WORST_SCALE:
        return None
    faults = []
    if case.kind is halves.Half and not alone:
        found = case.run("lib", "native", []).reshape(2, -1)[0]
        if (far := distance(expected, found)) > HALVES:
            faults.append(f"{far:.1e} from the network in single precision, allowed {HALVES:.1e}")
        expected = found
    if case.kind is quantised.Quantised:
        noise = None  # the same bits
    targets = [] if alone or quick else rng.sample(EMULATED, 2)
    faults += judge_forward(case, expected, noise, rng, targets, quick)
    if noise is None:
        return faults
    try:
        faults += judge_training(case, rng, quick)
    except Fault as fault:
        faults.append(f"training: {fault}")
    return faults if quick else faults + list(judge_gradient(case, ["--data", case.folder]))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("backcast", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    begin, seed, judged, failed = time.monotonic(), options.first, 0, 0
    while True:
        if options.count is not None and seed - options.first >= options.count:
            break
        if options.seconds is not None and time.monotonic() - begin > options.seconds:
            break
        rng = random.Random(seed)
        folder = options.folder / str(seed)
        case = Case(options.backcast.resolve(), folder.resolve(), seed)
        faults = judge(case, options.alone, options.quick, rng)
        judged += faults is not None
        for fault in faults or []:
            print(f"network {seed}: {fault}", flush=True)
        if faults:
            failed += 1
        else:
            shutil.rmtree(folder)
        seed += 1
    print(f"{judged} networks of {seed - options.first} judged, {failed} with faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
