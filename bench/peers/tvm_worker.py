"""TVM: tvm_worker.py MODEL INPUTS OUTPUTS.

One thread, its pipeline without tuning, for this machine's processor.
"""

import sys

import numpy as np
import onnx
import protocol
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx


def main():
    model, input_file, output_file = sys.argv[1:]
    protocol.imports_done()
    arrays = protocol.read_inputs(input_file, protocol.onnx_signature(model))
    module = from_onnx(onnx.load(model), keep_params_in_input=False)
    module = relax.get_pipeline("zero")(module)
    processor = tvm.get_global_func("target.llvm_get_system_cpu")()
    executable = tvm.compile(module, target=tvm.target.Target(
        {"kind": "llvm", "mcpu": str(processor)}))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    arguments = [tvm.runtime.tensor(array) for array in arrays]
    function = machine["main"]
    results = function(*arguments)
    results = [results] if hasattr(results, "numpy") else list(results)
    protocol.write_outputs(output_file, [np.asarray(result.numpy()) for result in results])
    protocol.serve(lambda: function(*arguments), version=tvm.__version__)


if __name__ == "__main__":
    main()
