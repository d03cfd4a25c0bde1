"""ONNX Runtime: a session over a graph of one matrix product."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"])],
    "product",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])],
    [helper.make_tensor("w", TensorProto.FLOAT, [3, 2], [1, 2, 3, 4, 5, 6])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
for _ in range(7):
    (answer,) = session.run(None, {"x": np.ones((2, 3), np.float32)})
    print(answer.tolist())
