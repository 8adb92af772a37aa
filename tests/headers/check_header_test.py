#!/usr/bin/env python3
"""Tests the judge of headers: the examples pass, and each way of breaking one is noticed."""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# (what is broken, text, replacement, part of the message)
BREAKS = (
    ("licence", "SPDX-License-Identifier: 0BSD", "no licence", "licence line"),
    ("shared types", "#define BC_ERROR_STATE 7 ", "#define BC_ERROR_STATE 70", "verbatim"),
    ("cast in a size", "KWS_ARENA_BYTES 64000", "KWS_ARENA_BYTES ((size_t)64000)", "-std=c99"),
    ("missing size", "#define KWS_STACK_BYTES", "#define KWS_STACK", "KWS_STACK_BYTES"),
    ("odd alignment", "KWS_ARENA_ALIGN 16", "KWS_ARENA_ALIGN 24", "not a power of two"),
    ("guard", "#define KWS_H\n", "#define KWS_HH\n", "-std=c11"),
    ("foreign macro", "#define KWS_MODEL_HASH", "#define SIZE 1\n#define KWS_MODEL_HASH", "SIZE"),
    ("foreign function", "bc_status kws_run(", "int helper(int x);\nbc_status kws_run(", "helper"),
    ("include", "#include <stddef.h>", "#include <stddef.h>\n#include <stdlib.h>", "stdlib.h"),
    ("C only", "const float *input;", "const float *this;", "-std=c++17"),
    ("undeclared type", "const float *input;", "const bool *input;", "-std=c99"),
    ("element type", "/* f32[1,49,10,1] */", "/* f64[1,49,10,1] */", "form, type or comment"),
    ("member's comment", "/* f32[1,12] */", "", "form, type or comment"),
    ("buffer size", "KWS_RUN_OUT_OUTPUT_ELEMENTS", "KWS_RUN_OUTPUT_ELEMENTS", "_ELEMENTS"),
    ("mutable input", "  const float *input;", "  float *input;", "form, type or comment"),
    ("C++ linkage missing", "#ifdef __cplusplus\n} /* extern",
     "#ifdef __cplusplusplus\n} /* extern", "-std=c++17"),
)
SIZE_BREAKS = (
    ("range", "#define MLP_N_MAX 8", "#define MLP_N_MAX 9", "N lacks macros"),
    ("size function", "size_t mlp_run_arena_bytes(int64_t N);", "", "no …_run_arena_bytes"),
)


def judge(*headers):
    return subprocess.run([sys.executable, str(HERE / "check_header.py"), *map(str, headers)],
                          capture_output=True, text=True, timeout=300)


def main():
    failures = []
    good = judge(*sorted(HERE.glob("*_model.h")))
    if good.returncode != 0:
        failures.append(f"the examples: {good.stdout}{good.stderr}")
    with tempfile.TemporaryDirectory() as folder:
        for example, what, old, new, message in (
                *(("static", *row) for row in BREAKS),
                *(("symbolic", *row) for row in SIZE_BREAKS)):
            text = (HERE / f"{example}_model.h").read_text()
            if old not in text:
                failures.append(f"{what}: the example no longer holds {old!r}")
                continue
            broken = pathlib.Path(folder) / "broken.h"
            # The last place: the model's own part comes after the shared types.
            broken.write_text(new.join(text.rsplit(old, 1)))
            run = judge(broken)
            if run.returncode != 1 or message not in run.stderr:
                failures.append(f"{what}: exit {run.returncode}, no {message!r} in {run.stderr}")
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(BREAKS) + len(SIZE_BREAKS) + 1} cases, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
