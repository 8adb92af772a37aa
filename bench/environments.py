"""The Python environments of the peers: one venv each under build/, made when it is first needed.

Packages come from PyPI, by exact version. A peer that cannot be installed is `Unavailable`, with
the reason; it is no reason to measure nothing.
"""

import os
import re
import shutil
import subprocess
import sys

import common


class Unavailable(RuntimeError):
    """A peer that this machine does not have."""


# What each environment holds; `python` is the newest minor version its wheels are built for.
ENVIRONMENTS = {
    "torch": {"packages": ["torch==2.15.0", "onnx==1.22.0", "numpy==2.4.6", "setuptools"]},
    "ort-training": {"packages": ["onnxruntime-training==1.19.2", "onnx==1.16.2", "numpy==1.26.4",
                                  "protobuf==4.25.8", "h5py", "cerberus", "setuptools<81"],
                     "python": 11},
    "iree": {"packages": ["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0",
                          "onnx==1.22.0", "numpy==2.4.6"]},
    "tvm": {"packages": ["apache-tvm==0.27.0", "onnx==1.22.0", "numpy==2.4.6"]},
    "tinygrad": {"packages": ["tinygrad==0.14.0", "onnx==1.22.0", "numpy==2.4.6"]},
    "emx": {"packages": ["emx-onnx-cgen==1.4.0"]},
}
INSTALL_LIMIT = 1800  # seconds
failed = {}           # what was tried in vain in this run: once is enough


def interpreter(newest):
    """A Python 3 of at most this minor version."""
    if newest is None or sys.version_info[1] <= newest:
        return sys.executable
    for minor in range(newest, newest - 3, -1):
        found = shutil.which(f"python3.{minor}") or shutil.which(f"/usr/bin/python3.{minor}")
        if found:
            return found
    raise Unavailable(f"needs Python 3.{newest}, which is not installed")


def install(name, wanted, folder):
    packages, stamp = wanted["packages"], folder / ".packages"
    python = folder / "bin/python"
    if stamp.exists() and stamp.read_text() == "\n".join(packages):
        return
    print(f"installing {', '.join(packages)} into {folder.relative_to(common.ROOT)}",
          file=sys.stderr, flush=True)
    try:
        if not python.exists():
            common.run_tool([interpreter(wanted.get("python")), "-m", "venv", folder])
        common.run_tool([python, "-m", "pip", "install", "--quiet", "--no-compile",
                         "--disable-pip-version-check",
                         *packages], limit=INSTALL_LIMIT)
    except RuntimeError as error:
        if isinstance(error, Unavailable):
            raise
        last = re.sub(r"\s+", " ", str(error).strip().splitlines()[-1])
        raise Unavailable(f"{name} is not to be had: {last}") from None
    stamp.write_text("\n".join(packages))


def python_of(name):
    """The interpreter of this peer: $BACKCAST_<NAME>_PYTHON, or that of its venv."""
    variable = f"BACKCAST_{name.upper().replace('-', '_')}_PYTHON"
    given = os.environ.get(variable)
    if given:
        return given
    if name in failed:
        raise Unavailable(failed[name])
    folder = common.BUILD / f"bench-venv-{name}"
    try:
        install(name, ENVIRONMENTS[name], folder)
    except Unavailable as error:
        failed[name] = str(error)
        raise
    return str(folder / "bin/python")


def variables():
    """The environment of every worker: one thread, and nothing kept outside build/."""
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS",
                                      "OPENBLAS_NUM_THREADS", "NUM_CPU_THREADS")}
    cache = common.OUT / "caches"
    return {**os.environ, **threads, "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
            "XDG_CACHE_HOME": str(cache), "TORCHINDUCTOR_COMPILE_THREADS": "1"}


if __name__ == "__main__":
    for wanted_name in sys.argv[1:] or ENVIRONMENTS:
        print(f"{wanted_name}: {python_of(wanted_name)}", flush=True)
