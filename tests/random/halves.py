"""Random networks of half floats, which are computed in single precision."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import networks


def keeps_single(node, index):
    """Whether an operand is f32 whatever type the data have."""
    return node.op_type == "Resize" and index > 0


class Half(networks.Network):
    """A network that turns its input to f16 and its result back, with weights in f16.

    `reference` is the same in f32 with weights and input rounded alike."""

    def model(self):
        model = super().model()
        weights = {tensor.name for tensor in model.graph.initializer
                   if tensor.data_type == TensorProto.FLOAT}
        for node in model.graph.node:
            weights -= {name for i, name in enumerate(node.input) if keeps_single(node, i)}
        self.reference = self.between_casts(model, weights, TensorProto.FLOAT)
        return self.between_casts(model, weights, TensorProto.FLOAT16)

    def between_casts(self, model, weights, element):
        """A copy that computes in this type on what is rounded to f16."""
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        graph = copy.graph
        kind = helper.tensor_dtype_to_np_dtype(element)
        for tensor in graph.initializer:
            if tensor.name in weights:
                rounded = numpy_helper.to_array(tensor).astype(np.float16).astype(kind)
                tensor.CopyFrom(numpy_helper.from_array(rounded, tensor.name))
        for node in graph.node:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    if name in (*self.inputs, "y"):
                        names[i] = name + "_between"
        nodes = list(graph.node)
        del graph.node[:]
        for name, (outside, _) in self.inputs.items():
            inside = element if outside == TensorProto.FLOAT else outside
            rounded = TensorProto.FLOAT16 if inside == element else outside
            graph.node.extend([
                helper.make_node("Cast", [name], [name + "_rounded"], to=rounded),
                helper.make_node("Cast", [name + "_rounded"], [name + "_between"], to=inside)])
        graph.node.extend(nodes)
        graph.node.append(helper.make_node("Cast", ["y_between"], ["y"], to=TensorProto.FLOAT))
        onnx.checker.check_model(copy)
        return copy
