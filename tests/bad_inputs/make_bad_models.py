#!/usr/bin/env python3
"""Writes models/*.onnx, each wrong in one way; needs the package onnx 1.22.0. Running it again gives
identical files. What needs no ONNX (empty files, links, folders) is made by bad_inputs_test.py."""

import pathlib

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).resolve().parent / "models"
FLOAT = TensorProto.FLOAT
X = helper.make_tensor_value_info("x", FLOAT, [1, 4])
Y = helper.make_tensor_value_info("y", FLOAT, [1, 4])


def model(nodes, inputs=(X,), outputs=(Y,), initializers=(), opsets=(("", 17),)):
    graph = helper.make_graph(list(nodes), "bad", list(inputs), list(outputs), list(initializers))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in opsets])
    made.ir_version = 8
    return made


def write(name, made):
    data = made if isinstance(made, bytes) else made.SerializeToString(deterministic=True)
    (FOLDER / f"{name}.onnx").write_bytes(data)


def node(op, name, inputs, outputs=("y",), **attributes):
    return helper.make_node(op, list(inputs), list(outputs), name=name, **attributes)


def add_weight(weight, inputs=(X,)):
    """y = x + w, with whatever is wrong with w."""
    return model([node("Add", "add1", ["x", "w"])], inputs, initializers=[weight])


def raw(dims, data, data_type=FLOAT):
    weight = TensorProto(name="w", data_type=data_type, raw_data=data)
    weight.dims.extend(dims)
    return weight


def external(**entries):
    weight = TensorProto(name="w", data_type=FLOAT, data_location=TensorProto.EXTERNAL)
    weight.dims.extend([1, 4])
    for key, value in entries.items():
        weight.external_data.add(key=key, value=str(value))
    return add_weight(weight)


def weight(*shape):
    return numpy_helper.from_array(np.ones(shape, dtype=np.float32), "w")


def image(*shape):
    return [helper.make_tensor_value_info("x", FLOAT, shape)]


def field(number, body):
    """A length-delimited protobuf field."""
    length, size = b"", len(body)
    while size >= 128:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + body


def dense(number, inputs, outputs):
    return node("Gemm", f"dense{number}", [inputs, f"w{number}", f"b{number}"], [outputs])


def dense_weights(*numbers):
    made = []
    for number in numbers:
        values = np.arange(16, dtype=np.float32).reshape(4, 4) / 16
        made.append(numpy_helper.from_array(values, f"w{number}"))
        made.append(numpy_helper.from_array(np.zeros(4, dtype=np.float32), f"b{number}"))
    return made


def training_models():
    """What can be compiled, but not trained, or not as one might ask for."""
    write("learner", model([dense(1, "x", "y")], initializers=dense_weights(1)))
    labels = helper.make_tensor_value_info("y", TensorProto.INT64, [1])
    write("label_output", model([dense(1, "x", "z"), node("ArgMax", "argmax1", ["z"], axis=1,
                                                          keepdims=0)],
                                outputs=[labels], initializers=dense_weights(1)))
    scalar = helper.make_tensor_value_info("y", FLOAT, [])
    write("scalar_output", model(
        [dense(1, "x", "z"), node("Tanh", "tanh1", ["z"], ["t"]),
         node("Mul", "square1", ["t", "t"], ["s"]), node("ReduceSum", "sum1", ["s"], keepdims=0)],
        outputs=[scalar], initializers=dense_weights(1)))
    write("weightless", model([node("Relu", "relu1", "x")]))
    scaled = [numpy_helper.from_array(np.full((4, 4), 3, np.int8), "w"),
              numpy_helper.from_array(np.float32(0.5), "scale"),
              numpy_helper.from_array(np.int8(0), "zero")]
    write("quantised", model(
        [node("DequantizeLinear", "weights1", ["w", "scale", "zero"], ["v"]),
         node("MatMul", "matmul1", ["x", "v"], ["z"]),
         node("QuantizeLinear", "quantize1", ["z", "scale", "zero"])],
        outputs=[helper.make_tensor_value_info("y", TensorProto.INT8, [1, 4])],
        initializers=scaled))
    # A loop that run time stops, between two layers that could learn.
    body = helper.make_graph(
        [node("Mul", "double", ["state", "state"], ["next"]),
         node("ReduceSum", "sum", ["next"], ["total"], keepdims=0),
         node("Constant", "bound", [], ["limit"],
              value=numpy_helper.from_array(np.float32(100), "limit")),
         node("Less", "compare", ["total", "limit"], ["again"])],
        "body", [helper.make_tensor_value_info("trip", TensorProto.INT64, []),
                 helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
                 helper.make_tensor_value_info("state", FLOAT, [1, 4])],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, []),
         helper.make_tensor_value_info("next", FLOAT, [1, 4])])
    start = numpy_helper.from_array(np.array(True), "start")
    write("endless_loop", model(
        [dense(1, "x", "hidden"), node("Loop", "loop1", ["", "start", "hidden"], ["looped"], body=body),
         dense(2, "looped", "y")], initializers=[*dense_weights(1, 2), start]))


def main():
    FOLDER.mkdir(exist_ok=True)
    training_models()
    relu = [node("Relu", "relu1", "x")]
    write("good", model(relu))
    write("newer_opset", model(relu, opsets=[("", 99)]))
    write("no_opset", model(relu, opsets=[]))
    write("unknown_domain", model([helper.make_node("Relu", ["x"], ["y"], "relu1",
                                                    domain="com.example")],
                                  opsets=[("", 17), ("com.example", 1)]))
    write("unknown_operators", model([node("Wobble", "wobble1", "x", "a"),
                                      node("Relu", "relu1", "a", "b"),
                                      node("Frobnicate", "frob1", "b", "c"),
                                      node("Quux", "quux1", "c")]))
    write("cycle", model([node("Add", "add1", ["x", "b"], "a"), node("Relu", "relu1", "a", "b"),
                          node("Relu", "relu2", "b")]))
    write("undefined_name", model([node("Add", "add1", ["x", "nowhere"])]))
    write("undefined_output", model([node("Relu", "relu1", "x", "z")]))
    write("defined_twice", model([node("Relu", "relu1", "x"), node("Sigmoid", "sigmoid1", "x")]))
    write("no_outputs", model(relu, outputs=()))
    write("short_initializer", add_weight(raw([1, 4], b"\0" * 12)))
    write("long_initializer", add_weight(raw([1, 4], b"\0" * 20)))
    write("negative_initializer", add_weight(raw([-1, -4], b"\0" * 16)))
    write("overflowing_initializer", add_weight(raw([2**40, 2**40], b"\0" * 16)))
    write("huge_initializer", add_weight(raw([2**40], b"\0" * 16)))
    write("string_initializer", add_weight(raw([1, 4], b"", TensorProto.STRING)))
    write("unknown_element_type", add_weight(raw([1, 4], b"\0" * 16, 99)))
    write("overflowing_input", model(relu, image(2**40, 2**40)))
    write("huge_input", model(relu, image(2**40, 4)))
    write("no_shape", model(relu, [helper.make_tensor_value_info("x", FLOAT, None)]))
    write("sequence_input", model(relu, [helper.make_tensor_sequence_value_info("x", FLOAT, [4])]))
    write("external_parent", external(location="../weights.bin"))
    write("external_absolute", external(location="/etc/hostname"))
    write("external_missing", external(location="nowhere.bin"))
    write("external_link", external(location="link.bin"))
    write("external_short", external(location="short.bin"))
    write("external_offset", external(location="short.bin", offset=2**62, length=16))
    write("external_negative", external(location="short.bin", offset=-16, length=16))
    write("external_no_location", external(offset=0))
    axis = [node("Softmax", "softmax1", "x", axis=1.5)]
    write("attribute_type", model(axis))
    unknown = model([node("Softmax", "softmax1", "x", axis=1, colour=3)])
    write("attribute_unknown", unknown)
    write("attribute_missing", model([node("Cast", "cast1", "x")]))
    undefined = model(relu)
    undefined.graph.node[0].attribute.add(name="axis", type=AttributeProto.UNDEFINED)
    write("attribute_undefined", undefined)
    write("axis_outside", model([node("Softmax", "softmax1", "x", axis=7)]))
    write("rank", model([node("Conv", "conv1", ["x", "w"])], image(1, 3, 8, 8),
                        [helper.make_tensor_value_info("y", FLOAT, None)], [weight(4, 3)]))
    write("channels", model([node("Conv", "conv1", ["x", "w"])], image(1, 3, 8, 8),
                            [helper.make_tensor_value_info("y", FLOAT, None)],
                            [weight(4, 5, 3, 3)]))
    write("extents", model([node("MatMul", "matmul1", ["x", "w"])], initializers=[weight(5, 4)]))
    write("broadcast", add_weight(weight(3)))
    write("too_many_inputs", model([node("Relu", "relu1", ["x", "x", "x"])]))
    write("too_few_inputs", model([node("Add", "add1", ["x"])]))
    write("zero_stride", model([node("MaxPool", "pool1", "x", kernel_shape=[2, 2], strides=[0, 1])],
                               image(1, 3, 8, 8), [helper.make_tensor_value_info("y", FLOAT, None)]))
    write("huge_pads", model([node("MaxPool", "pool1", "x", kernel_shape=[2, 2],
                                   pads=[2**62, 2**62, 2**62, 2**62])], image(1, 3, 8, 8),
                             [helper.make_tensor_value_info("y", FLOAT, None)]))
    shape = numpy_helper.from_array(np.array([3, 5], dtype=np.int64), "w")
    write("reshape", model([node("Reshape", "reshape1", ["x", "w"])], initializers=[shape]))
    symbolic = [helper.make_tensor_value_info("x", FLOAT, ["N", 4])]
    write("symbolic", model(relu, symbolic, [helper.make_tensor_value_info("y", FLOAT, ["N", 4])]))
    # Field 7 (graph) claiming 2^31 + 5 bytes.
    write("huge_length", bytes([0x08, 0x08, 0x3A, 0x85, 0x80, 0x80, 0x80, 0x08]) + b"\0" * 32)
    # A graph in an attribute of a node of a graph in …, deeper than anyone's stack.
    body = b""
    for _ in range(2000):
        for tag in (6, 5, 1):  # AttributeProto.g, NodeProto.attribute, GraphProto.node
            body = field(tag, body)
    write("deep", b"\x08\x08" + field(7, body))


if __name__ == "__main__":
    main()
