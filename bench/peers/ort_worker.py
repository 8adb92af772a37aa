"""ONNX Runtime: ort_worker.py MODEL INPUTS OUTPUTS.

One thread or $BENCH_THREADS, all graph optimisations, inputs and outputs bound once to buffers of our own; the call
goes to the C++ object beneath the Python class, which saves ORT a Python frame per call.
"""

import functools
import os
import sys

import numpy as np
import onnxruntime as ort
import protocol

NUMPY_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64,
               "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8,
               "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}


def static(shape):
    if not all(isinstance(extent, int) for extent in shape):
        sys.exit(f"only static shapes can be measured: {shape}")
    return shape


def main():
    model, input_file, output_file = sys.argv[1:]
    protocol.imports_done()
    options = ort.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("BENCH_THREADS", "1"))
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    signature = [(static(value.shape), NUMPY_TYPES[value.type]) for value in session.get_inputs()]
    kept = [ort.OrtValue.ortvalue_from_numpy(array)
            for array in protocol.read_inputs(input_file, signature)]
    for value, array in zip(session.get_inputs(), kept):
        binding.bind_ortvalue_input(value.name, array)
    results = []
    for value in session.get_outputs():
        results.append(ort.OrtValue.ortvalue_from_numpy(
            np.zeros(static(value.shape), NUMPY_TYPES[value.type])))
        binding.bind_ortvalue_output(value.name, results[-1])

    run, bound = session._sess.run_with_iobinding, binding._iobinding
    run(bound, None)
    protocol.write_outputs(output_file, [result.numpy() for result in results])
    protocol.serve(functools.partial(run, bound, None), version=ort.__version__)


if __name__ == "__main__":
    main()
