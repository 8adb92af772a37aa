#!/usr/bin/env python3
"""Writes activation.onnx: y = Relu(x) on f32[9]."""

import pathlib

import onnx
from onnx import helper

VECTOR = (onnx.TensorProto.FLOAT, [9])
graph = helper.make_graph(
    [helper.make_node("Relu", ["x"], ["y"], name="act")], "activation",
    [helper.make_tensor_value_info("x", *VECTOR)], [helper.make_tensor_value_info("y", *VECTOR)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, str(pathlib.Path(__file__).with_name("activation.onnx")))
