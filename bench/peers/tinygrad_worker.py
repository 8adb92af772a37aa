"""tinygrad: tinygrad_worker.py MODEL INPUTS OUTPUTS.

Its processor backend, one thread, the whole network captured by TinyJit.
"""

import os
import shutil
import sys
from importlib.metadata import version

os.environ.setdefault("CC", shutil.which("clang") or "clang-19")  # what it compiles with

import onnx  # noqa: E402
import protocol  # noqa: E402
from tinygrad import Device, Tensor, TinyJit  # noqa: E402
from tinygrad.nn.onnx import OnnxRunner  # noqa: E402


def main():
    model, input_file, output_file = sys.argv[1:]
    protocol.imports_done()
    arrays = protocol.read_inputs(input_file, protocol.onnx_signature(model))
    graph = onnx.load(model).graph
    weights = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name not in weights]
    outputs = [value.name for value in graph.output]
    runner, device = OnnxRunner(model), Device[Device.DEFAULT]

    @TinyJit
    def network(*tensors):
        results = runner(dict(zip(names, tensors)))
        return tuple(results[name].realize() for name in outputs)
    arguments = [Tensor(array).realize() for array in arrays]

    def step():
        results = network(*arguments)
        device.synchronize()
        return results
    for _ in range(4):
        results = step()
    protocol.write_outputs(output_file, [result.numpy() for result in results])
    protocol.serve(step, version=version("tinygrad"))


if __name__ == "__main__":
    main()
