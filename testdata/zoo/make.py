"""Writes the zoo's fixtures: for each network with the weights of rule.py, samples of what PyTorch answers and of the input gradient.

    python testdata/zoo/make.py [NAME ...]            (needs torch, torchvision, numpy)

NAME.npz holds, for each of two input sizes i: `size{i}`, `y{i}` sampled from the logits, and `g{i}` sampled from the gradient of the sum of logits times a
cotangent with respect to the image; and `digest` of the names and shapes of the weights. Image and cotangent are the fields `image{i}` and
`cotangent{i}` of the rule. Values are computed in double precision.
"""

import pathlib
import sys

import numpy as np
import torch
from torchvision.models import resnet, segmentation

import modules
import rule

HERE = pathlib.Path(__file__).parent
SQUARE, WIDE, ODD, EIGHTHS = (48, 48), (64, 96), (33, 49), (32, 40)


def tv(name, **options):
    return lambda: getattr(segmentation if hasattr(segmentation, name) else resnet, name)(
        weights=None, **({"weights_backbone": None} if hasattr(segmentation, name) else {}), **options)


DEPTHS = {"22": ([1, 1, 2, 2, 2, 2, 1, 1], False), "38": ([1, 1, 3, 4, 6, 3, 1, 1], False),
          "54": ([1, 1, 3, 4, 6, 3, 1, 1], True), "105": ([1, 1, 3, 4, 23, 3, 1, 1], True)}


def drn(variant, depth):
    return lambda: modules.DRN(*DEPTHS[depth], variant)


def drnseg(variant, depth):
    return lambda: modules.DRNSeg(modules.DRN(*DEPTHS[depth], variant))


def networks():
    for name in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2"):
        yield name, tv(name), (SQUARE, WIDE)
    yield "cifar_resnet20", lambda: modules.CifarResNet([3, 3, 3], 16, "zeros"), ((32, 32), (40, 32))
    yield "cifar_resnet56", lambda: modules.CifarResNet([9, 9, 9], 16, "zeros"), ((32, 32), (40, 32))
    yield "cifar_resnet18", lambda: modules.CifarResNet([2, 2, 2, 2], 64, "shortcut"), ((32, 32), (40, 32))
    yield "cifar_resnet50", lambda: modules.CifarResNet([3, 4, 6, 3], 64, "shortcut", True), ((32, 32), (40, 32))
    for name, variant, depth in (("c_26", "C", "22"), ("d_22", "D", "22"), ("d_38", "D", "38"), ("d_54", "D", "54"),
                                 ("d_105", "D", "105")):
        yield f"drn_{name}", drn(variant, depth), (SQUARE, EIGHTHS)
        yield f"drnseg_{name}", drnseg(variant, depth), (SQUARE, EIGHTHS)
    for name in ("fcn_resnet50", "fcn_resnet101", "deeplabv3_resnet50", "deeplabv3_resnet101",
                 "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"):
        yield name, tv(name, num_classes=21), (SQUARE, ODD)
    for trunk in ("resnet50", "resnet101", "mobilenet"):
        yield f"deeplabv3plus_{trunk}", lambda trunk=trunk: modules.DeepLabV3Plus(trunk, 16), (SQUARE, ODD)
        yield f"deeplabv3plus_{trunk}_os8", lambda trunk=trunk: modules.DeepLabV3Plus(trunk, 8), (SQUARE, ODD)
    for trunk in ("resnet50", "resnet101", "mobilenet"):
        yield f"deeplabv3plus_jfzhang_{trunk}", lambda trunk=trunk: modules.AlignedDeepLabV3Plus(trunk), (SQUARE, ODD)


def main():
    asked = set(sys.argv[1:])
    for name, make, sizes in networks():
        if asked and name not in asked:
            continue
        module = rule.fill(make())
        digest = rule.digest(module, ["aux_classifier.", "backbone.features."])
        kept = {"digest": np.array([digest & 0xFFFFFFFF, digest >> 32], np.int64)}
        for i, (h, w) in enumerate(sizes):
            image = rule.field(f"image{i}", (1, 3, h, w)).double().requires_grad_()
            logits = module(image)
            logits = logits["out"] if isinstance(logits, dict) else logits
            (logits * rule.field(f"cotangent{i}", tuple(logits.shape)).double()).sum().backward()
            kept |= {f"size{i}": np.array([h, w], np.int64), f"y{i}": rule.sample(logits), f"g{i}": rule.sample(image.grad)}
            print(name, (h, w), tuple(logits.shape), float(logits.detach().abs().max()), float(image.grad.abs().max()), flush=True)
        np.savez_compressed(HERE / f"{name}.npz", **kept)


if __name__ == "__main__":
    main()
