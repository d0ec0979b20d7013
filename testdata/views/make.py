"""Writes views.json: what PyTorch's interpolate, grid_sample and flip, and torchvision's colour changes, answer.

    python make.py > views.json

Each case: the image [3, h, w], the view, the seen image, a cotangent on it and the gradient that autograd leads back.
"""
import json, math
import torch
import torch.nn.functional as F
import torchvision.transforms.functional as TF

torch.manual_seed(0)


def flat(t):
    return [round(float(v), 7) for v in t.detach().double().flatten()]


def case(name, size, change, **view):
    x = torch.rand(1, 3, *size, dtype=torch.float64).round(decimals=4).requires_grad_()
    y = change(x)
    c = torch.randn_like(y).round(decimals=4)
    (y * c).sum().backward()
    return dict(name=name, view=view, size=list(size), image=flat(x), seen_size=list(y.shape[2:]), seen=flat(y),
                cotangent=flat(c), gradient=flat(x.grad))


def resize(fh, fw):
    return lambda x: F.interpolate(x, size=(int(x.shape[2] * fh), int(x.shape[3] * fw)), mode="bilinear", align_corners=False)


def rotate(degrees, normalised):
    def change(x):
        h, w = x.shape[2:]
        a, r = math.radians(degrees), 1.0 if normalised else h / w
        theta = torch.tensor([[[math.cos(a), -math.sin(a) * r, 0], [math.sin(a) / r, math.cos(a), 0]]], dtype=torch.float64)
        return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)
    return change


def colour(name, factor):
    return lambda x: getattr(TF, "adjust_" + name)(x, factor)


cases = [
    case("resize", (9, 14), resize(2, 2.3), height=2.0, width=2.3),
    case("resize", (20, 17), resize(0.3, 0.27), height=0.3, width=0.27),
    case("resize", (13, 11), resize(1, 0.8), height=1.0, width=0.8),
    case("rotate", (12, 12), rotate(14, False), degrees=14.0, normalised=False),
    case("rotate", (9, 16), rotate(-11.5, False), degrees=-11.5, normalised=False),
    case("rotate", (9, 16), rotate(8, True), degrees=8.0, normalised=True),
    case("flip", (7, 10), lambda x: resize(1, 1.25)(x).flip(3), width=1.25),
    case("turn", (5, 8), lambda x: torch.rot90(x, 1, (2, 3)), quarters=1),
    case("turn", (5, 8), lambda x: torch.rot90(x, 2, (2, 3)), quarters=2),
    case("brightness", (5, 6), colour("brightness", 1.6), factor=1.6),
    case("contrast", (5, 6), colour("contrast", 1.7), factor=1.7),
    case("saturation", (5, 6), colour("saturation", 0.3), factor=0.3),
    case("hue", (5, 6), colour("hue", 0.17), factor=0.17),
    case("hue", (5, 6), colour("hue", -0.2), factor=-0.2),
]
print(json.dumps(cases, separators=(",", ":")))
