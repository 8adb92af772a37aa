"""IREE: iree_worker.py MODEL INPUTS OUTPUTS.

One thread (local-sync). Its defaults are slow for convolutions, so several sets of flags are
compiled and the fastest on this machine is the one that is measured. The call goes to the virtual
machine with prepared lists of arguments.
"""

import pathlib
import subprocess
import sys
import time
from importlib.metadata import version

import iree.compiler
import iree.runtime as rt
import protocol

TARGET = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
          "--iree-llvmcpu-target-cpu=host"]
FAST = ["--iree-opt-level=O3"]


def preprocessing(name):
    return [f"--iree-preprocessing-pass-pipeline=builtin.module(util.func({name}))"]


VARIANTS = {
    "defaults": [], "O3": FAST, "O3, data tiling": [*FAST, "--iree-opt-data-tiling"],
    "O3, channels last": [*FAST,
                          *preprocessing("iree-preprocessing-convert-conv-to-channels-last")],
    "O3, im2col": [*FAST, "--iree-global-opt-use-im2col-for-convs"]}


class Call:
    """A compiled module with its arguments."""

    def __init__(self, binary, arrays):
        self.config = rt.Config("local-sync")
        self.module = rt.VmModule.copy_buffer(self.config.vm_instance, binary)
        self.context = rt.SystemContext(config=self.config)
        self.context.add_vm_module(self.module)
        name = next(name for name in self.module.function_names
                    if not name.startswith("__") and "$async" not in name)
        self.function = self.module.lookup_function(name)
        self.kept = [rt.asdevicearray(self.config.device, array) for array in arrays]
        self.arguments = rt.VmVariantList(len(arrays))
        for array in self.kept:
            self.arguments.push_ref(array._buffer_view)

    def __call__(self):
        results = rt.VmVariantList(1)
        self.context.vm_context.invoke(self.function, self.arguments, results)
        return results

    def arrays(self):
        results = self()
        return [rt.DeviceArray(self.config.device, results.get_as_object(i, rt.HalBufferView))
                .to_host() for i in range(len(results))]

    def seconds(self):
        """Least time of a few calls."""
        self()
        least = float("inf")
        for _ in range(5):
            began = time.perf_counter()
            self()
            least = min(least, time.perf_counter() - began)
        return least


def main():
    model, input_file, output_file = sys.argv[1:]
    protocol.imports_done()
    arrays = protocol.read_inputs(input_file, protocol.onnx_signature(model))
    text = pathlib.Path(output_file).with_suffix(".mlir")
    subprocess.run([sys.executable, "-m", "iree.compiler.tools.import_onnx", model, "-o", text,
                    "--opset-version", "17"], check=True)
    best, least, chosen = None, float("inf"), None
    for name, flags in VARIANTS.items():
        try:
            binary = iree.compiler.compile_file(str(text), extra_args=[*TARGET, *flags])
            call = Call(binary, arrays)
            spent = call.seconds()
        except (iree.compiler.CompilerToolError, RuntimeError, ValueError) as error:
            print(f"{name}: {str(error)[:300]}", file=sys.stderr)
            continue
        print(f"{name}: {spent * 1e6:.1f} us", file=sys.stderr)
        if spent < least:
            best, least, chosen = call, spent, name
    if best is None:
        sys.exit("error: no set of flags compiles this model")
    protocol.write_outputs(output_file, best.arrays())
    protocol.serve(best, version=version("iree-base-compiler"), variant=chosen)


if __name__ == "__main__":
    main()
