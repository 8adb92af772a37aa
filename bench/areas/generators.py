"""An ONNX-to-C generator as a side: its C compiled by gcc, the call wrapped like a library's."""

import math
import re
import time

import common
import workers
from rounds import Side

EMX = "emx-onnx-cgen, -ffast-math"
FLAGS = ["-std=gnu11", "-O3", "-ffast-math", "-march=native", "-w"]
ELEMENT_BYTES = {"float": 4, "double": 8, "int64_t": 8, "int32_t": 4, "int8_t": 1, "uint8_t": 1,
                 "bool": 1}
# What worker.c needs of a library: a status, and a context that is not used here.
GLUE = """#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef int32_t bc_status;
#define BC_OK 0
typedef void (*bc_loop_body)(void *, int64_t, int64_t);
typedef struct {
  size_t struct_bytes;
  void (*before_kernel)(void *, int32_t, const char *);
  void (*after_kernel)(void *, int32_t, const char *);
  void (*parallel_for)(void *, int64_t, int64_t, bc_loop_body, void *);
} bc_context;
#define GLUE_ARENA_BYTES 64
#define GLUE_ARENA_ALIGN 64
"""


def generate(python, folder, model):
    """model.c, and model.bin when the weights are large."""
    folder.mkdir(parents=True, exist_ok=True)
    program = common.pathlib.Path(python).parent / "emx-onnx-cgen"
    common.run_tool([program, "compile", model, "model.c", "--model-name", "model"], folder)
    return folder / "model.c"


def heap_bytes(source):
    """What the generated function takes from the heap, which it does not reuse."""
    total = 0
    for element, dims, count in re.findall(
            r"^ *(\w+) \(\*\w+\)((?:\[\d+\])+) = malloc\(sizeof\(\*\w+\) \* (\d+)\)",
            source.read_text(), re.M):
        extents = [int(extent) for extent in re.findall(r"\d+", dims)]
        total += ELEMENT_BYTES.get(element, 4) * math.prod(extents) * int(count)
    return total


def write_glue(folder, library, source):
    """glue.h for worker.c: the generated function called with buffers by position."""
    text = source.read_text()
    declaration = re.search(r"^void model\((.*?)\) \{", text, re.M | re.S).group(1)
    types = [re.match(r"\s*(?:const )?(\w+)", part).group(1) for part in declaration.split(",")]
    count = len(library.inputs)
    lines = [GLUE, f"#define GLUE_INPUTS {count}",
             f"#define GLUE_OUTPUTS {len(library.outputs)}"]
    for kind, tensors in (("input", library.inputs), ("output", library.outputs)):
        sizes = ", ".join(str(tensor.bytes) for tensor in tensors)
        lines.append(f"static const size_t glue_{kind}_bytes[] = {{{sizes}}};")
    loads = re.search(r"^(?:_Bool|bool|int) model_load\(", text, re.M)
    arguments = [f"(void *){'i' if k < count else 'o'}[{k if k < count else k - count}]"
                 for k in range(len(types))]
    lines += ["extern void model();"]
    if loads:
        lines += ["extern bool model_load(const char *path);"]
    lines += ["static bc_status glue_call(void *const *i, void *const *o, void *arena,",
              "                           const bc_context *context) {",
              "  static int ready;", "  (void)arena, (void)context;"]
    if loads:
        weights = next(folder.glob("*.bin"), "")  # none where all constants stand in the C
        lines += [f'  if (!ready && !model_load("{weights}")) return 1;']
    lines += ["  ready = 1;", f"  model({', '.join(arguments)});", "  return ready ? BC_OK : 1;",
              "}", ""]
    (folder / "glue.h").write_text("\n".join(lines))


def emx_side(python, folder, model, library, options):
    """emx-onnx-cgen with its defaults; RuntimeError when it cannot compile the model."""
    own = folder / "emx"
    source = generate(python, own, model)
    write_glue(own, library, source)
    started = time.monotonic()
    common.run_tool(["gcc", *FLAGS, "-c", source, "-o", own / "model.o"],
                    limit=options.compile_limit)
    common.run_tool(["cc", "-std=gnu11", "-O2", "-I", own, workers.HOST / "worker.c",
                     own / "model.o", "-lm", "-o", own / "worker"])
    return Side(EMX, [own / "worker", folder / "inputs", own / "outputs"], own / "outputs",
                build_seconds=time.monotonic() - started)
