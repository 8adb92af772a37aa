"""PyTorch: torch_worker.py MODEL INPUTS OUTPUTS eager|compiled.

One thread, inference mode. `compiled` is torch.compile with its weights frozen.
"""

import sys

import protocol
import torch
import torch_network


def main():
    model, input_file, output_file, mode = sys.argv[1:]
    torch.set_num_threads(1)
    protocol.imports_done()
    arrays = protocol.read_inputs(input_file, protocol.onnx_signature(model))
    arguments = [torch.from_numpy(array) for array in arrays]
    network = torch_network.load(model, arguments)
    if mode == "compiled":
        import torch._inductor.config as config
        config.freezing = True
        config.cpp.threads = 1
        network = torch.compile(network, dynamic=False)
    with torch.inference_mode() if mode == "eager" else torch.no_grad():
        def step():
            return network(*arguments)
        for _ in range(3):
            results = step()
        protocol.write_outputs(output_file, [result.numpy() for result in results])
        protocol.serve(step, version=torch.__version__)


if __name__ == "__main__":
    main()
