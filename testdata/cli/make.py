"""Writes tiny networks for the tests of the command line: segmenter.onnx (any size; external.onnx is the same with external data), classifier.onnx (16x16 only), and instances.onnx
(32x32 only), which has the outputs of a YOLO-seg head: one anchor in each 8x8 cell that tells red from green.

    python make.py
"""
import os
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(0)


def weights(name, *shape, scale=0.4):
    return numpy_helper.from_array((scale * rng.standard_normal(shape)).astype(np.float32), name)


def save(name, nodes, size, output, shape, initialisers):
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, *size])
    scores = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, name, [image], [scores], initialisers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="")
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(HERE, name + ".onnx"))


body = [
    helper.make_node("Conv", ["image", "w0", "b0"], ["c0"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["c0"], ["features"]),
]
first = [weights("w0", 6, 3, 3, 3), weights("b0", 6, scale=0.1)]
dense = body + [helper.make_node("Conv", ["features", "w1", "b1"], ["scores"], kernel_shape=[1, 1])]
save("segmenter", dense, ["h", "w"], "scores", [1, 4, "a", "b"], first + [weights("w1", 4, 6, 1, 1, scale=2), weights("b1", 4)])
# the same network with its weights in a file of their own
external = onnx.load(os.path.join(HERE, "segmenter.onnx"))
onnx.save(external, os.path.join(HERE, "external.onnx"), save_as_external_data=True, location="external.bin", size_threshold=0)
flat = body + [
    helper.make_node("GlobalAveragePool", ["features"], ["pooled"]),
    helper.make_node("Flatten", ["pooled"], ["flat"]),
    helper.make_node("Gemm", ["flat", "w2", "b2"], ["scores"], transB=1),
]
save("classifier", flat, [16, 16], "scores", [1, 3], first + [weights("w2", 3, 6, scale=3), weights("b2", 3)])
poisoned = [weights("w0", 6, 3, 3, 3), weights("b0", 6)]
bad = numpy_helper.from_array(np.full((3, 6), np.nan, np.float32), "w2")
save("poisoned", flat, [16, 16], "scores", [1, 3], poisoned + [bad, weights("b2", 3)])

def values(name, array):
    return numpy_helper.from_array(np.asarray(array, np.float32), name)


centres = [[8 * x + 4, 8 * y + 4, 8, 8] for y in range(4) for x in range(4)]
head = [
    helper.make_node("AveragePool", ["image"], ["coarse"], kernel_shape=[8, 8], strides=[8, 8]),
    helper.make_node("AveragePool", ["image"], ["fine"], kernel_shape=[4, 4], strides=[4, 4]),
    helper.make_node("Conv", ["coarse", "w3", "b3"], ["logits"], kernel_shape=[1, 1]),
    helper.make_node("Sigmoid", ["logits"], ["chances"]),
    helper.make_node("Reshape", ["chances", "flat_shape"], ["classes"]),
    helper.make_node("Concat", ["boxes", "classes", "coefficients"], ["predictions"], axis=1),
    helper.make_node("Conv", ["fine", "w4", "b4"], ["prototypes"], kernel_shape=[1, 1]),
]
constants = [
    values("w3", np.reshape([10, -10, 0, -10, 10, 0], (2, 3, 1, 1))),
    values("b3", [-4.5, -4.5]),
    numpy_helper.from_array(np.array([1, 2, 16], np.int64), "flat_shape"),
    values("boxes", np.transpose(centres)[None]),
    values("coefficients", np.ones((1, 1, 16))),
    values("w4", np.reshape([1, 1, 0], (1, 3, 1, 1))),
    values("b4", [-0.6]),
]
image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 32, 32])
answers = [
    helper.make_tensor_value_info("predictions", TensorProto.FLOAT, [1, 7, 16]),
    helper.make_tensor_value_info("prototypes", TensorProto.FLOAT, [1, 1, 8, 8]),
]
graph = helper.make_graph(head, "instances", [image], answers, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="")
model.ir_version = 8
onnx.checker.check_model(model)
onnx.save(model, os.path.join(HERE, "instances.onnx"))
