"""PyTorch modules that the tests and `bench/python.py` put behind the bridge, and their exports behind the engine."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import evenkeel as ek

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Small(nn.Module):
    """Convolutions with a ReLU in place after each, pooling, and a linear layer."""

    def __init__(self, classes=5):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.second = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        x = self.relu(self.norm(self.first(x)))
        x = self.relu(self.second(x))
        return self.fc(x.mean((2, 3)))


class Maps(nn.Module):
    """A segmenter that gives a dict, as torchvision's do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU())
        self.classifier = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        scores = self.classifier(self.backbone(x))
        return {"out": nn.functional.interpolate(scores, x.shape[2:], mode="bilinear"), "aux": scores}


def exported(module, path, size, **fields):
    """The module as an ONNX file behind the engine, with the names of the tensors asked for."""

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x):
            kept = []
            handle = module.get_submodule(fields["feature"]).register_forward_hook(lambda _m, _i, o: kept.append(o.clone()))
            scores = module(x)
            handle.remove()
            return scores["out"] if isinstance(scores, dict) else scores, kept[0]

    example = torch.rand(1, 3, *size)
    torch.onnx.export(Named().eval(), (example,), str(path), input_names=["x"], output_names=["scores", "kept"], dynamo=False)
    plain = {"order": "rgb", "scale": 1.0, "resize": "stretch", "size": size}
    return ek.load(path, **{**plain, **fields, "output": "scores", "feature": "kept"})


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        if x.shape != y.shape:
            more = (y.shape[1] - x.shape[1]) // 2
            x = nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, more, more))
        return torch.relu(x + y)


class Resnet20(nn.Module):
    """The CIFAR network of He et al., with zero padding where the size changes."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*[Block(16, 16, 1) for _ in range(3)])
        self.layer2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
        self.layer3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


def trained(data):
    module = Resnet20()
    state = torch.load(data / "models" / "resnet20-12fca82f.th", map_location="cpu", weights_only=True)["state_dict"]
    module.load_state_dict({name.removeprefix("module."): value for name, value in state.items()})
    return module.eval()


def cifar(data, count):
    folder = data / "cifar10"
    pixels = np.fromfile(next(folder.glob("*images*")), np.uint8, count=count * 3072).reshape(count, 32, 32, 3)
    return pixels, np.fromfile(folder / "labels_u8.bin", np.uint8)[:count].astype(int)
