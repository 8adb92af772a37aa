#!/usr/bin/env python3
"""Gives the program inputs that are wrong in one way each: bad_inputs_test.py PROGRAM.

Each has to end with exit status 1 and a short message that names the file and says what is wrong,
and where; the output folder must hold no file, whole or partial, afterwards. README.md lists what is
covered. With a sanitized PROGRAM a finding changes the exit status, and so fails the case.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

MODELS = pathlib.Path(__file__).resolve().parent / "models"
BATCHES = MODELS.parents[1] / "models/perceptron_dynN/model.onnx"
SECONDS = 60  # for one case, sanitized and on a busy machine
MOST_MEMORY = 8 << 30  # bytes of address space; sanitizers need more and go without the limit

# file of models/ → what the message has to say, in order
BAD_MODELS = {
    "newer_opset": "opset 99.*supported.*convert",
    "no_opset": "opset.*supported.*convert",
    "unknown_domain": 'node "relu1" .*com.example.*not supported',
    "unknown_operators": '"wobble1".*Wobble.*not supported.*\n.*"frob1".*Frobnicate.*\n'
                         '.*"quux1".*Quux',
    "cycle": 'node "add1" .*"b".*"relu1".*cycle',
    "undefined_name": 'node "add1" .*"nowhere" is not defined',
    "undefined_output": 'output "y" is not computed',
    "defined_twice": 'node "sigmoid1" .*"y" is defined twice',
    "no_outputs": "no outputs",
    "short_initializer": 'tensor "w" holds 12 bytes.*need 16',
    "long_initializer": 'tensor "w" holds 20 bytes.*need 16',
    "negative_initializer": 'tensor "w".*negative extent, -1',
    "overflowing_initializer": 'tensor "w" has more elements than fit',
    "huge_initializer": 'tensor "w" holds 16 bytes.*need 4398046511104',
    "string_initializer": 'tensor "w" has string elements.*not supported',
    "unknown_element_type": 'tensor "w" has type 99 elements.*not supported',
    "overflowing_input": "dimension exceeds 64 bits.*smaller",
    "no_shape": 'input "x" has no shape',
    "sequence_input": 'input "x" is of type sequence.*only tensors',
    "external_parent": 'tensor "w".*"../weights.bin" is refused.*inside the model',
    "external_absolute": 'tensor "w".*"/etc/hostname" is refused.*inside the model',
    "external_missing": 'tensor "w".*"nowhere.bin".*No such file.*beside the model',
    "external_link": 'tensor "w".*"link.bin" is a link that leaves',
    "external_short": 'tensor "w".*length 16 runs past the end.*8 bytes',
    "external_offset": 'tensor "w".*runs past the end.*8 bytes',
    "external_negative": 'tensor "w".*offset "-16"',
    "external_no_location": 'tensor "w".*without a location',
    "attribute_type": 'node "softmax1" .*"axis" has to be int and is float',
    "attribute_unknown": 'node "softmax1" .*"colour" is not known.*remove',
    "attribute_missing": 'node "cast1" .*"to" is missing',
    "attribute_undefined": 'node "relu1" .*"axis" is not known',
    "axis_outside": 'node "softmax1" .*axis 7 is out of range.*rank 2',
    "rank": 'node "conv1" .*rank 4.*rank 2',
    "channels": r'node "conv1" .*\[1,3,8,8\].*\[4,5,3,3\]',
    "extents": r'node "matmul1" .*\[1,4\].*\[5,4\]',
    "broadcast": r'node "add1" .*\[1,4\] and \[3\] cannot be broadcast',
    "too_many_inputs": 'node "relu1" .*has 3 inputs and takes 1',
    "too_few_inputs": 'node "add1" .*has 1 inputs and takes 2',
    "zero_stride": 'node "pool1" .*"strides" has the value 0, outside of 1',
    "huge_pads": 'node "pool1" .*"pads".*4611686018427387904.*outside of 0',
    "reshape": r'node "reshape1" .*\[3,5\].*\[1,4\]',
    "huge_length": "not an ONNX model.*cut short",
    "deep": "not an ONNX model",
}

# Models that compile, but cannot be trained as asked for: (file, options, what the message says).
BAD_TRAINING = [
    ("learner", "--loss output", r"f32\[1,4\].*must be a scalar.*choose a loss"),
    ("scalar_output", "", r"output is a scalar.*needs logits"),
    ("label_output", "", r"output is i64\[1\].*needs a floating-point one"),
    ("label_output", "--loss mse", r"output is i64\[1\].*needs a floating-point one"),
    ("learner", "--loss-output logits", 'no output "logits".*its outputs are y'),
    ("learner", "--class-weights 1,2", "2 class weights.*4 classes"),
    ("learner", "--probabilities --ignore-index 1", "no label to ignore"),
    ("learner", "--label-smoothing 2", "smoothing is 2.*between 0 and 1"),
    ("learner", "--trainable nothing", r"nothing: matches none.*w1 f32\[4,4\].*b1 f32\[4\]"),
    ("learner", "--trainable w1[0,2:9]", r"range does not fit w1 f32\[4,4\]"),
    ("learner", "--trainable last:0", "last:N.*from 1 on"),
    ("learner", "--trainable (", "no regular expression"),
    ("weightless", "", "no floating-point initializer.*nothing can be trained"),
    ("quantised", "", "is quantised.*--trainable last:1 keeps"),
    ("quantised", "--trainable nothing", r"nothing: matches none.*w f32\[4,4\]"),
    ("endless_loop", "", r'node "loop1" \(Loop\).*no bound on its trips.*--trainable last:1'),
    ("learner", "--batch 4", 'input "x" has a fixed batch of 1.*symbolic batch'),
    ("learner", "--rate -1", "rate must be a number of 0 or more"),
    ("learner", "--rate nan", "rate must be a number of 0 or more"),
    ("learner", "--optimizer adam --beta1 1.5", "beta1.*beta2"),
    ("learner", "--optimizer rmsprop --alpha 2", "alpha must be in"),
    ("learner", "--clip-norm 0", "clipping must be positive"),
    ("learner", "--weight-decay -1", "decay must not be negative"),
    ("learner", "--warmup -1", "warm-up must not be negative"),
    ("learner", "--schedule step:0", "every="),
    ("learner", "--ram 40", r"the least that recomputation reaches is \d+ bytes.*state"),
]
# Options that are wrong whatever the model is; the message starts with the option.
BAD_TRAINING_WORDS = [
    ("--loss nonsense", "choose one of cross-entropy"),
    ("--optimizer lion", "choose one of sgd"),
    ("--reduction median", "choose one of mean"),
    ("--schedule step", "step:EVERY"),
    ("--schedule cosine:x", "no number"),
    ("--batch -1", "from 1 on"),
    ("--accumulate -1", "from 1 on"),
    ("--ram 0", "above zero"),
    ("--ram -64k", "above zero"),
    ("--ram much", "above zero.*64k"),
    ("--ram 64kB", "above zero.*64k"),
    ("--ram nan", "above zero"),
    ("--bands some", "choose one of off, auto"),
    ("--skip-zeros some", "choose one of off, auto"),
    ("--winograd f3", "choose one of off, auto"),
    ("--names some", "choose one of auto, on, off"),
]


class Run:
    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        self.failures, self.cases = [], 0
        with open(program, "rb") as file:
            self.sanitized = b"__asan_init" in file.read()

    def limit_memory(self):
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))

    def start(self, arguments):
        return subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True,
                              errors="replace", cwd=self.folder, timeout=SECONDS,
                              stdin=subprocess.DEVNULL,
                              preexec_fn=None if self.sanitized else self.limit_memory)

    def case(self, what, pattern, model, *arguments, named=None, output="out", command="compile"):
        """`named`: what every line of the message starts with; default: the model's file name."""
        self.cases += 1
        begin = time.monotonic()
        words = [command, model, *arguments] + (["-o", output] if command == "compile" else [])
        try:
            done = self.start(words)
        except subprocess.TimeoutExpired:
            self.failures.append(f"{what}: not done after {SECONDS} s")
            return
        faults = []
        message = done.stderr.strip()
        if done.returncode != 1:
            faults.append(f"exit status {done.returncode}")
        if not re.search(pattern, message, flags=re.S):
            faults.append(f"the message lacks {pattern!r}")
        if not 0 < len(message.splitlines()) <= 4:
            faults.append(f"{len(message.splitlines())} lines of message")
        start = pathlib.Path(model).name if named is None else named
        if any(not line.startswith(start) for line in message.splitlines()):
            faults.append(f"a line does not start with {start!r}")
        left = [path for path in self.folder.glob("out*/**/*") if path.is_file()]
        if left:
            faults.append(f"left {', '.join(path.name for path in left)}")
            for path in left:
                path.unlink()
        if faults:
            self.failures.append(f"{what}: {'; '.join(faults)}: {message[:2000]}")
        print(f"  {what}: {time.monotonic() - begin:.1f} s: {message.splitlines()[:1]}")

    def bad_models(self):
        (self.folder / "short.bin").write_bytes(b"12345678")
        (self.folder / "link.bin").symlink_to("/etc/hostname")
        for name, pattern in BAD_MODELS.items():
            data = (MODELS / f"{name}.onnx").read_bytes()
            (self.folder / f"{name}.onnx").write_bytes(data)
            self.case(name, pattern, f"{name}.onnx")
        unlisted = {path.stem for path in MODELS.glob("*.onnx")} - set(BAD_MODELS)
        unlisted -= {name for name, _, _ in BAD_TRAINING}
        if unlisted != {"good", "symbolic", "huge_input"}:
            self.failures.append(f"models without a case: {unlisted}")

    def bad_files(self, good):
        files = {"empty": b"", "truncated": good[:len(good) // 2], "one_byte_short": good[:-1],
                 "text": b"This is not a model.\n" * 40, "zeros": bytes(4096),
                 "ones": b"\xff" * 4096, "nested": b"\x3a\x02\x3a\x00" * 1000}
        for name, data in files.items():
            (self.folder / f"{name}.onnx").write_bytes(data)
            self.case(name, "not an ONNX model|empty|no graph|no outputs|opset", f"{name}.onnx")
        self.case("missing file", "No such file", "nowhere.onnx")
        (self.folder / "folder.onnx").mkdir()
        self.case("a folder", "not a regular file|directory", "folder.onnx")
        # 2 GB and more, of which no block exists on the disk.
        for size in (1 << 31, 5 << 30):
            path = self.folder / "sparse.onnx"
            with open(path, "wb") as file:
                file.write(good)
                file.truncate(size)
            self.case(f"{size} bytes", "2 GB|2 GiB|external", "sparse.onnx")
            path.unlink()

    def bad_arguments(self):
        self.case("unknown target", "no-such-machine.*cortex-m4", "good.onnx",
                  "--target", "no-such-machine", named="")
        for name in ("1net", "my-net", "a b", "int", "näme", "bc_net"):
            self.case(f"--name {name}", f"{name}.*not a C identifier", "good.onnx", "--name", name,
                      named="--name")
        self.case("unknown --emit", "--emit wasm.*lib, c", "good.onnx", "--emit", "wasm",
                  named="--emit")
        for word in ("N", "N=", "N=x", "N=-1", "N=8..1", "N=1..", "=4", "N=99999999999999999999"):
            self.case(f"--dim {word}", "--dim", "symbolic.onnx", "--dim", word, named="--dim")
        for word in ("x", "=1", "x=", "x=1,", "x=one"):
            self.case(f"--constant {word}", "--constant.*NUMBER", "symbolic.onnx", "--constant",
                      word, named="--constant")
        self.case("--constant of no input", "y: the model has no such input", "symbolic.onnx",
                  "--constant", "y=1")
        self.case("--dim of no symbol", 'M: the model has no such dimension; it has N', "symbolic.onnx", "--dim", "M=4")
        self.case("--dim beyond 64 bits", "64 bits|address", "symbolic.onnx", "--dim",
                  "N=9223372036854775807")
        self.case("--dim beyond memory", "address.*--dim", "symbolic.onnx", "--dim",
                  f"N={1 << 48}")
        self.case("beyond a small machine", "address", "huge_input.onnx", "--target", "cortex-m4")
        self.case("verify without data", "test_data_set|no such|cannot", "good.onnx", "--data",
                  "nowhere", command="verify", named="")
        if shutil.which("qemu-system-arm") and shutil.which("arm-none-eabi-gcc"):
            self.case("beyond the emulated machine", "too little memory.*native", BATCHES,
                      "--target", "cortex-m4", "--dim", "N=1..100000", command="verify")
        self.case("run without input", "x", "good.onnx", command="run", named="")
        rows = BATCHES.parent / "test_data_set_0/input_0.pb"
        self.case("run with an input of another width", r'"x" is f32\[\d,4\], but f32\[.*was given',
                  "symbolic.onnx", "--input", rows, command="run", named="")
        self.case("run with more than there is", "has 1 inputs", "symbolic.onnx", "--input", rows,
                  "--input", rows, command="run", named="")
        self.case("inspect a bad model", '"wobble1"', "unknown_operators.onnx", command="inspect")

    def bad_training(self):
        names = sorted({name for name, _, _ in BAD_TRAINING})
        for name in names:
            (self.folder / f"{name}.onnx").write_bytes((MODELS / f"{name}.onnx").read_bytes())
        for name, options, pattern in BAD_TRAINING:
            self.case(f"{name} --train {options}", pattern, f"{name}.onnx", "--train",
                      *options.split())
        for ram in ("1", "31"):
            self.case(f"--ram {ram}", r"--ram.*the least that bands of rows reach is \d+ bytes",
                      "scalar_output.onnx", "--ram", ram)
        for options, pattern in BAD_TRAINING_WORDS:
            self.case(f"--train {options}", pattern, "learner.onnx", "--train", *options.split(),
                      named=options.split()[0])
        # What the messages advise is possible.
        for name, options in (("endless_loop", "--trainable last:1"),
                              ("endless_loop", "--max-trips 5"), ("learner", ""),
                              ("scalar_output", "--loss output"), ("label_output", None)):
            words = [] if options is None else ["--train", *options.split()]
            done = self.start(["compile", f"{name}.onnx", *words, "-o", "fine"])
            if done.returncode != 0:
                self.failures.append(f"{name} {words}: exit {done.returncode}: {done.stderr}")

    def bad_checkpoints(self):
        """export; damage of every kind is tests/training's."""
        files = {"no checkpoint": (b"This is no checkpoint.", "learner.onnx.*no checkpoint"),
                 "cut short": (b"BCCP\1\0\0\0", "cut short"),
                 "of another version": (b"BCCP\7" + bytes(40), "version 7.*version 1")}
        for what, (data, pattern) in files.items():
            (self.folder / "state.bin").write_bytes(data)
            self.case(f"a checkpoint {what}", pattern, "learner.onnx", "--checkpoint", "state.bin",
                      "-o", "out/trained.onnx", command="export")
        self.case("a checkpoint that is not there", "nowhere.bin: cannot be read", "learner.onnx",
                  "--checkpoint", "nowhere.bin", "-o", "out/trained.onnx", command="export",
                  named="nowhere.bin")

    def bad_outputs(self):
        (self.folder / "file").write_bytes(b"")
        self.case("output below a file", "file/out.*cannot", "good.onnx", output="file/out",
                  named="file/out")
        self.case("output is a file", "file.*cannot", "good.onnx", output="file", named="file")
        self.case("output below /proc", "/proc/nowhere.*cannot", "good.onnx",
                  output="/proc/nowhere", named="/proc/nowhere")
        # The last of the files cannot be put into its place: the others must not be left there.
        (self.folder / "out2/libgood.a").mkdir(parents=True)
        self.case("a file's place is taken", "libgood.a.*cannot write.*folder", "good.onnx",
                  output="out2", named="out2")
        if os.geteuid() != 0:
            closed = self.folder / "out3"
            closed.mkdir()
            closed.chmod(0o500)
            self.case("closed folder", "out3.*cannot", "good.onnx", output="out3", named="out3")

    def good_model(self):
        """The same command on a good model works, or the cases above would show nothing."""
        done = self.start(["compile", "good.onnx", "-o", "fine"])
        files = sorted(path.name for path in (self.folder / "fine").glob("*"))
        if done.returncode != 0 or "libgood.a" not in files or "good.h" not in files:
            self.failures.append(f"a good model: exit {done.returncode}, {files}, {done.stderr}")


def main():
    if len(sys.argv) != 2:
        print("usage: bad_inputs_test.py PROGRAM", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        run = Run(str(pathlib.Path(sys.argv[1]).resolve()), folder)
        for name in ("good", "symbolic", "huge_input"):
            (run.folder / f"{name}.onnx").write_bytes((MODELS / f"{name}.onnx").read_bytes())
        run.bad_models()
        run.bad_files((MODELS / "good.onnx").read_bytes())
        run.bad_arguments()
        run.bad_training()
        run.bad_checkpoints()
        run.bad_outputs()
        run.good_model()
    for failure in run.failures:
        print(failure, file=sys.stderr)
    print(f"{run.cases} bad inputs{' (sanitized)' if run.sanitized else ''}, "
          f"{len(run.failures)} failures")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
