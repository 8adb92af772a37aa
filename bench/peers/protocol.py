"""How a peer's worker talks to the program that commands it; the same as in host/worker.c.

A worker prepares itself, prints "ready" with a JSON object of what is known about it, then answers
"time N" with the nanoseconds of wall clock and of processor time that N steps took.
"""

import json
import pathlib
import resource
import sys
import time

import numpy as np

def resident_bytes():
    """What of this process is in memory now."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


started, resident_before = time.perf_counter(), resident_bytes()


def imports_done():
    """Called after the peer's modules are loaded: memory and time are counted from here on."""
    global started, resident_before
    started, resident_before = time.perf_counter(), resident_bytes()


def read_inputs(path, signature):
    """Arrays of the given [(shape, dtype)], one after the other in a file."""
    arrays = []
    with open(path, "rb") as stream:
        for shape, dtype in signature:
            dtype = np.dtype(dtype)
            data = stream.read(int(np.prod(shape)) * dtype.itemsize)
            arrays.append(np.frombuffer(data, dtype).reshape(shape).copy())
    return arrays


def onnx_signature(model):
    """[(shape, dtype)] of the inputs of an ONNX file that are not weights."""
    import onnx
    graph = onnx.load(model).graph
    weights = {tensor.name for tensor in graph.initializer}
    result = []
    for value in graph.input:
        if value.name in weights:
            continue
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if not all(shape):
            sys.exit(f"only static shapes can be measured: {value.name} {shape}")
        result.append((shape,
                       onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)))
    return result


def write_outputs(path, arrays):
    with open(path, "wb") as stream:
        for array in arrays:
            stream.write(np.ascontiguousarray(array).tobytes())


def serve(step, **facts):
    """Runs `step` at command until standard input ends."""
    facts["prepared_seconds"] = time.perf_counter() - started
    facts["resident_bytes"] = resident_bytes() - resident_before
    print("ready", json.dumps(facts), flush=True)
    clock, processor_clock = time.perf_counter_ns, time.process_time_ns
    for line in sys.stdin:
        count = int(line.split()[1])
        for _ in range(count // 8 + 1):
            step()
        processor, wall, each = processor_clock(), clock(), range(count)
        for _ in each:
            step()
        wall, processor = clock() - wall, processor_clock() - processor
        print(wall, processor, flush=True)
