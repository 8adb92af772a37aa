#!/usr/bin/env python3
"""What a report says of flash is what the object takes, and names are there where they are wanted.

    flash_test.py PROGRAM

Compiles tests/training/models/digits_cnn.onnx for training and reads the archive with readelf.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

MODEL = pathlib.Path(__file__).resolve().parents[1] / "training/models/digits_cnn.onnx"
STEP = b"/conv2/Conv+/Relu"  # names of steps begin with it


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=True, timeout=300).stdout


def allocated_bytes(archive):
    """Of all sections that stay on the device; none of them is writable."""
    total = 0
    for line in run("readelf", "--section-headers", "--wide", archive).splitlines():
        fields = line.partition("]")[2].split()
        if len(fields) > 9 and fields[1] in ("PROGBITS", "NOBITS", "INIT_ARRAY"):
            flags, size = fields[6], int(fields[4], 16)
            assert not ("W" in flags and size), line
            total += size if "A" in flags else 0
    return total


def measure(program, target, *options):
    with tempfile.TemporaryDirectory() as folder:
        run(program, "compile", MODEL, "--name", "net", "--train", "--target", target, "-o", folder,
            *options)
        folder = pathlib.Path(folder)
        report = json.loads((folder / "net.report.json").read_text())
        flash = report["weight_bytes"] + report["code_bytes"] + report["table_bytes"]
        archive = folder / "libnet.a"
        taken = allocated_bytes(archive)
        assert flash == taken, f"{target} {options}: {flash} bytes reported, {taken} in the archive"
        kernels = sum(step["code_bytes"] for entry in report["entries"] for step in entry["steps"])
        assert 0.5 * report["code_bytes"] < kernels < report["code_bytes"], (target, kernels)
        return report, STEP in archive.read_bytes()


def main():
    program = sys.argv[1]
    for target, by_default in (("cortex-m4", False), ("x86-64", True)):
        named, has_names = measure(program, target, "--names", "on")
        bare, has_none = measure(program, target, "--names", "off")
        assert has_names and not has_none, target
        assert named["table_bytes"] > bare["table_bytes"] > 0, target
        report, is_named = measure(program, target)
        assert is_named == by_default, target
        assert report == (named if by_default else bare), target
    print("flash is as reported")


if __name__ == "__main__":
    main()
