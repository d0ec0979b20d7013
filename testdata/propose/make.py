"""Skeletons of exports: the graphs that torch.onnx writes for networks of torchvision and timm, with every larger weight replaced by a constant that the
loader makes, so that the files are small. They show what exporters name things and how they lay graphs out; their answers mean nothing.

    python make.py [FOLDER]   # needs torch, torchvision, timm, onnx; into FOLDER, the whole exports with their random weights
"""

import pathlib
import sys
import warnings

import numpy
import onnx
import timm
import torch
import torchvision
from onnx import helper, numpy_helper

warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).parent


def skeleton(path):
    model = onnx.load(path)
    graph = model.graph
    kept, constants = [], []
    for tensor in graph.initializer:
        count = int(numpy.prod(tensor.dims, dtype=numpy.int64))
        if tensor.data_type != onnx.TensorProto.FLOAT or count <= 16:
            kept.append(tensor)
            continue
        shape = numpy_helper.from_array(numpy.array(tensor.dims, dtype=numpy.int64), tensor.name + "_shape")
        kept.append(shape)
        value = helper.make_tensor("value", onnx.TensorProto.FLOAT, [1], [1.0 / max(1, count // tensor.dims[0])])
        constants.append(helper.make_node("ConstantOfShape", [shape.name], [tensor.name], value=value))
    nodes = list(graph.node)
    for node in nodes:
        node.doc_string = ""
        del node.metadata_props[:]
    for field in (graph.initializer, graph.node, graph.value_info, graph.metadata_props, model.metadata_props):
        del field[:]
    graph.initializer.extend(kept)
    graph.node.extend(constants + nodes)
    for value in list(graph.input) + list(graph.output):
        del value.metadata_props[:]
    onnx.checker.check_model(model)
    onnx.save(model, path)


def main(whole=None):
    models = torchvision.models
    networks = {
        "resnet18": models.resnet18(weights=None),
        "deeplabv3_mobilenet_v3_large": models.segmentation.deeplabv3_mobilenet_v3_large(
            weights=None, weights_backbone=None
        ),
        "vit_tiny": timm.create_model("vit_tiny_patch16_224", depth=2),
        "swin_tiny": timm.create_model("swin_tiny_patch4_window7_224", depths=(1, 1, 1, 1)),
        "mobilenetv3_small": timm.create_model("mobilenetv3_small_100"),
    }
    for name, network in networks.items():
        network.eval()
        image = torch.rand(1, 3, 224, 224)
        for exporter in ("dynamo",) if name == "swin_tiny" else ("legacy", "dynamo"):  # its tables make the other large
            path = pathlib.Path(whole or HERE) / f"{name}_{exporter}.onnx"
            torch.onnx.export(network, (image,), str(path), dynamo=exporter == "dynamo", **(
                {"external_data": False} if exporter == "dynamo" else {"opset_version": 17}
            ))
            if not whole:
                skeleton(path)


main(*sys.argv[1:])
