"""ONNX Runtime: a session over two matrix products, asked with images. Planted: they are normalised pixel by pixel in
Python."""

import numpy as np
import onnxruntime
from marks import requests
from onnx import TensorProto, helper, numpy_helper

REQUESTS, SIDE, HIDDEN = 40, 224, 24
random = np.random.default_rng(0)
pixels = [random.integers(0, 256, 3 * SIDE * SIDE).tolist() for _ in range(4)]


def normalised(image):
    return np.array([[(pixel / 255.0 - 0.45) / 0.22 for pixel in image]], np.float32)


weights = {
    "w1": random.normal(size=(3 * SIDE * SIDE, HIDDEN)).astype(np.float32) / 100,
    "w2": random.normal(size=(HIDDEN, 10)).astype(np.float32) / 10,
}
nodes = [
    helper.make_node("MatMul", ["x", "w1"], ["h"]),
    helper.make_node("Relu", ["h"], ["r"]),
    helper.make_node("MatMul", ["r", "w2"], ["y"]),
]
graph = helper.make_graph(
    nodes,
    "perceptron",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3 * SIDE * SIDE])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
    [numpy_helper.from_array(value, name) for name, value in weights.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
total = 0
for number in requests(range(REQUESTS)):
    (answer,) = session.run(None, {"x": normalised(pixels[number % len(pixels)])})
    total += int(answer.argmax())
print(total)
