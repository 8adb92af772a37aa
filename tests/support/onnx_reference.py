"""What ONNX Runtime computes of a model, and data sets for `backcast verify`."""

from onnx import numpy_helper


def run_in_both_ways(path, feeds):
    """Lists of outputs: as the model stands, and optimised, unless its optimizer refuses the model
    (it may join a padding with a pooling and then find this too wide)."""
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    levels = onnxruntime.GraphOptimizationLevel
    results = []
    for level in (levels.ORT_DISABLE_ALL, levels.ORT_ENABLE_ALL):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        try:
            session = onnxruntime.InferenceSession(str(path), options,
                                                   providers=["CPUExecutionProvider"])
        except Exception:  # of several kinds
            if level == levels.ORT_DISABLE_ALL:
                raise
            continue
        results.append(session.run(None, feeds))
    return results


def optimise(path, optimised):
    """Writes the model as ONNX Runtime's optimiser leaves it, short of what is for one machine;
    whether it could."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(optimised)
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception:  # of several kinds
        return False
    return True


def write_tensor(path, array, name=""):
    path.write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def write_data(folder, inputs, outputs, number=0):
    """Arrays by name as FOLDER/test_data_set_NUMBER."""
    folder = folder / f"test_data_set_{number}"
    folder.mkdir(parents=True, exist_ok=True)
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for i, (name, array) in enumerate(tensors.items()):
            write_tensor(folder / f"{kind}_{i}.pb", array, name)
