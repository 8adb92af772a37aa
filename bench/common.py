"""What the benchmarks share: where things lie, how a model becomes a library, what its header says.

Needs only the standard library; `ensure_venv` restarts a program inside build/bench-venv for the
rest.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
BUILD = ROOT / "build"
OUT = BUILD / "bench"
VENV = BUILD / "bench-venv"
PACKAGES = ["onnxruntime==1.31.1", "onnx==1.22.0", "numpy"]


def fail(message):
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {message}")


def ensure_venv():
    """Restarts this program with the interpreter of build/bench-venv, made when it is missing."""
    if pathlib.Path(sys.prefix).resolve() == VENV.resolve():
        return
    python = VENV / "bin" / "python"
    stamp = VENV / ".packages"
    if not stamp.exists() or stamp.read_text() != "\n".join(PACKAGES):
        print(f"installing {', '.join(PACKAGES)} into {VENV.relative_to(ROOT)}", file=sys.stderr)
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet",
                        "--disable-pip-version-check", *PACKAGES], check=True)
        stamp.write_text("\n".join(PACKAGES))
    os.execv(python, [str(python), *sys.argv])


def add_program_option(parser):
    parser.add_argument("--backcast", type=pathlib.Path, metavar="PROGRAM", default=None,
                        help="default: $BACKCAST, then build/release/bin/backcast, then PATH")


def find_program(given):
    for candidate in (given, os.environ.get("BACKCAST"), BUILD / "release/bin/backcast",
                      shutil.which("backcast")):
        if candidate is not None and pathlib.Path(candidate).is_file():
            return pathlib.Path(candidate).resolve()
        if candidate is not None and candidate == given:
            fail(f"no such program: {given}")
    fail("no backcast program: build one (cmake --preset release && cmake --build --preset "
         "release --target backcast) or name it with --backcast")


def models_folder():
    folder = os.environ.get("BACKCAST_MODELS")
    return pathlib.Path(folder) if folder else None


def compiler(name, *others):
    """The first of these compilers that is installed, or None."""
    return next((found for found in map(shutil.which, (name, *others)) if found), None)


def version_line(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True,
                          check=True).stdout.split("\n")[0]


def describe_machine():
    name = platform.machine()
    try:
        found = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
        name = found.group(1) if found else name
    except OSError:
        pass
    return {"cpu": name, "cores": os.cpu_count(), "kernel": platform.release(),
            "load": os.getloadavg()[0]}


def run_tool(command, folder=None, limit=600):
    """Runs a tool; RuntimeError with its output in the message when it fails or takes too long."""
    try:
        result = subprocess.run([str(word) for word in command], cwd=folder, text=True,
                                stdin=subprocess.DEVNULL, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{command[0]} took more than {limit} s") from None
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(str(w) for w in command[:3])} … failed with status "
                           f"{result.returncode}:\n{(result.stdout + result.stderr)[-3000:]}")
    return result.stdout


@dataclasses.dataclass
class Tensor:
    field: str    # of the struct in the header
    c_type: str
    bytes: int
    name: str     # in the model
    shape: list   # None where the data decides about it: `bytes` are the most there can be


@dataclasses.dataclass
class Library:
    """A compiled model as its header and its report describe it."""
    folder: pathlib.Path
    prefix: str
    inputs: list
    outputs: list
    report: dict

    @property
    def entry(self):
        return self.report["entries"][0]

    @property
    def macs(self):
        return self.entry["macs"]


ELEMENT_BYTES = {"f64": 8, "i64": 8, "u64": 8, "f32": 4, "i32": 4, "u32": 4, "f16": 2, "bf16": 2,
                 "i16": 2, "u16": 2, "i8": 1, "u8": 1, "bool": 1}


def read_tensors(header, prefix, kind, function="run"):
    body = re.search(r"typedef struct %s_%s_%s \{(.*?)\}" % (prefix, function, kind), header, re.S)
    tensors = []
    for line in body.group(1).splitlines():
        found = re.match(r"\s*(?:const )?(\w+) \*(\w+);\s*/\* (\w+)\[([^\]]*)\](.*)\*/", line)
        extents = [extent for extent in found.group(4).split(",") if extent] if found else []
        is_static = all(extent.isdigit() for extent in extents)
        if found and (is_static or kind == "outputs"):
            shape = [int(extent) for extent in extents] if is_static else None
            most = re.search(r"^#define \w+_OUT_%s_ELEMENTS (\d+)" % found.group(2).upper(),
                             header, re.M)
            count = math.prod(shape) if is_static else int(most.group(1))
            size = ELEMENT_BYTES[found.group(3)] * count
            tensors.append(Tensor(found.group(2), found.group(1), size, found.group(2), shape))
        elif line.strip():
            raise RuntimeError(f"only static shapes can be measured: {line.strip()}")
    return tensors


def compile_model(program, model, folder, prefix, emit="lib", target="native", options=(),
                  function="run"):
    """Runs `backcast compile` into a fresh folder and reads what it wrote."""
    shutil.rmtree(folder, ignore_errors=True)
    run_tool([program, "compile", model, "-o", folder, "--name", prefix, "--emit", emit,
              "--target", target, *options])
    header = (folder / f"{prefix}.h").read_text()
    report = json.loads((folder / f"{prefix}.report.json").read_text())
    return Library(folder, prefix, read_tensors(header, prefix, "inputs", function),
                   read_tensors(header, prefix, "outputs", function), report)


def c_flags(source):
    """Flags that the opening comment of a generated C file asks for, without the -O level."""
    line = re.search(r"Compile with: \S+ (.*) -c \S+", source.read_text()).group(1)
    return [word for word in line.split() if not re.match(r"-O\d", word)]


COMPILE_OPTIONS = "What follows -- goes to backcast compile."


def parse_with_compile_options(parser):
    """The options of a program; those behind `--` as `compile`."""
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    options.compile = words[end + 1:]
    return options


def positive(text):
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be positive")
    return value
