"""Measures ONNX Runtime at another program's command; see worker.c for the commands.

ort_worker.py MODEL INPUTS OUTPUTS. One thread, all graph optimisations, inputs and outputs bound
once to buffers of our own; the call goes to the C++ object beneath the Python class, which saves
ORT a Python frame per call.
"""

import sys
import time

import numpy as np
import onnxruntime as ort

NUMPY_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64,
               "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8,
               "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}


def static(shape):
    if not all(isinstance(extent, int) for extent in shape):
        sys.exit(f"only static shapes can be measured: {shape}")
    return shape


def main():
    model, input_file, output_file = sys.argv[1:]
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    kept = []
    with open(input_file, "rb") as stream:
        for value in session.get_inputs():
            shape, dtype = static(value.shape), np.dtype(NUMPY_TYPES[value.type])
            data = stream.read(int(np.prod(shape)) * dtype.itemsize)
            kept.append(ort.OrtValue.ortvalue_from_numpy(
                np.frombuffer(data, dtype).reshape(shape).copy()))
            binding.bind_ortvalue_input(value.name, kept[-1])
    results = []
    for value in session.get_outputs():
        results.append(ort.OrtValue.ortvalue_from_numpy(
            np.zeros(static(value.shape), NUMPY_TYPES[value.type])))
        binding.bind_ortvalue_output(value.name, results[-1])

    run, bound = session._sess.run_with_iobinding, binding._iobinding
    run(bound, None)
    with open(output_file, "wb") as stream:
        for result in results:
            stream.write(result.numpy().tobytes())

    print("ready", flush=True)
    clock, processor_clock = time.perf_counter_ns, time.process_time_ns
    for line in sys.stdin:
        count = int(line.split()[1])
        for _ in range(count // 8 + 1):
            run(bound, None)
        processor, wall, each = processor_clock(), clock(), range(count)
        for _ in each:
            run(bound, None)
        wall, processor = clock() - wall, processor_clock() - processor
        print(wall, processor, flush=True)


if __name__ == "__main__":
    main()
