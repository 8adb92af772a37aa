#!/usr/bin/env python3
"""Kernels shared out among threads give the bits they give alone, and most are.

    parallel_test.py PROGRAM

Compiles tests/training/models/ic.onnx for training (library and C; for one thread and for three,
with minimal filtering as well) and runs parallel.c with each; with the C also under
ThreadSanitizer, which sees every access of two threads to one element. How much is shared out is
judged where three threads are announced (--threads), for named targets: it is the same whatever
machine the test runs on.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE.parent / "training/models/ic.onnx"
LEAST_SHARED = 0.9
# A chain of layers, each as large as the one before.
CHAIN = HERE.parents[1] / "examples/finetune/dscnn.onnx"
LEAST_PART = 0.6
SHARING_TARGETS = ["x86-64", "x86-64-v3", "x86-64-v4", "cortex-a53"]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def run(command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=600, **options)
    print(done.stdout, end="")
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n"
                         f"{done.stderr}")


def compile_model(program, emit, target, options, folder):
    run([program, "compile", MODEL, "--name", "net", "--train", "--optimizer", "sgd", "--target",
         target, *options, "--emit", emit, "-o", folder])


def shared_part(report):
    """Of a training step's multiply-accumulates."""
    entry = next(entry for entry in report["entries"] if entry["name"] == "train_step")
    return sum(step["macs"] for step in entry["steps"] if step["shared"]) / entry["macs"]


def judge_sharing(program, target, folder):
    compile_model(program, "c", target, ["--threads", "3"], folder)
    part = shared_part(json.loads((folder / "net.report.json").read_text()))
    print(f"{target}: {100 * part:.0f} % of the products are shared out")
    if part < LEAST_SHARED:
        raise SystemExit(f"{target}: less than {100 * LEAST_SHARED:.0f} %")


def judge_bits(program, options, folder):
    library = folder / "lib"
    compile_model(program, "lib", "native", options, library)
    run(["gcc", "-std=gnu11", "-O1", *WARNINGS, f"-I{library}", HERE / "parallel.c",
         library / "libnet.a", "-pthread", "-o", folder / "with_library"])
    run([folder / "with_library"])
    source = folder / "c"
    compile_model(program, "c", "x86-64", options, source)
    run(["gcc", "-std=gnu11", "-O1", "-fsanitize=thread", *WARNINGS, f"-I{source}",
         HERE / "parallel.c", source / "net.c", "-pthread", "-o", folder / "with_c"], cwd=source)
    run([folder / "with_c"])


def judge_one_thread(program, folder):
    """Nothing is cut, and results lie partly over what they are computed from."""
    reports = []
    for options in ([], ["--threads", "1"]):
        run([program, "compile", CHAIN, "--name", "net", "--target", "x86-64-v3", *options,
             "--emit", "c", "-o", folder])
        reports.append(json.loads((folder / "net.report.json").read_text()))
    many, one = (report["arena_bytes"] for report in reports)
    if any(step["shared"] for entry in reports[1]["entries"] for step in entry["steps"]):
        raise SystemExit("--threads 1: a call is cut")
    if one > LEAST_PART * many:
        raise SystemExit(f"--threads 1: {one} bytes of arena, {many} without")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    for target in SHARING_TARGETS:
        with tempfile.TemporaryDirectory() as folder:
            judge_sharing(program, target, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        judge_one_thread(program, pathlib.Path(folder))
    for options in ([], ["--threads", "3"], ["--winograd", "on"],
                    ["--winograd", "on", "--threads", "3"]):
        with tempfile.TemporaryDirectory() as folder:
            judge_bits(program, options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
