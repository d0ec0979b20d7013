"""Writes the network fixtures: six small networks as ONNX, each with an input, what PyTorch answers, and the input gradient.

    python testdata/networks/make.py            (needs torch, onnx, onnxscript, numpy)

Weights are random but seeded; batch-norm statistics are drawn too, so that folding them is tested. For each network NAME:
NAME.onnx, and NAME.npz with, for each of two input sizes i, `x{i}`, `y{i}`, the cotangent `c{i}` and the gradient `g{i}` of sum(c * y)
with respect to x. Values are computed in float64 and stored in float32.
"""

import pathlib

import numpy as np
import torch
from torch import nn

HERE = pathlib.Path(__file__).parent


def conv_norm(inp, out, k=3, stride=1, dilation=1, groups=1, act=nn.ReLU):
    pad = dilation * (k - 1) // 2
    layers = [nn.Conv2d(inp, out, k, stride, pad, dilation, groups, bias=False), nn.BatchNorm2d(out)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Residual(nn.Module):
    def __init__(self, inp, out, stride=1, dilation=1):
        super().__init__()
        self.a = conv_norm(inp, out, 3, stride, dilation)
        self.b = conv_norm(out, out, 3, 1, dilation, act=None)
        same = inp == out and stride == 1
        self.skip = nn.Identity() if same else conv_norm(inp, out, 1, stride, act=None)

    def forward(self, x):
        return torch.relu(self.b(self.a(x)) + self.skip(x))


class SmallResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_norm(3, 12, 7, 2), nn.MaxPool2d(3, 2, 1))
        self.body = nn.Sequential(Residual(12, 12), Residual(12, 20, 2), Residual(20, 36, 2))
        self.head = nn.Linear(36, 10)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


class Dilated(nn.Module):
    """A small dilated residual segmenter: scores at 1/4, upsampled by a transposed convolution."""

    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(
            conv_norm(3, 8, 7),
            conv_norm(8, 16, 3, 2),
            Residual(16, 24, 2),
            Residual(24, 32, 1, 2),
            Residual(32, 32, 1, 4),
            conv_norm(32, 32, 3, 1, 2),
            conv_norm(32, 32),
        )
        self.seg = nn.Conv2d(32, 11, 1)
        self.up = nn.ConvTranspose2d(11, 11, 8, 4, 2, groups=11, bias=False)

    def forward(self, x):
        return torch.log_softmax(self.up(self.seg(self.base(x))), 1)


class Inverted(nn.Module):
    def __init__(self, inp, out, stride, expand):
        super().__init__()
        mid = inp * expand
        self.body = nn.Sequential(
            conv_norm(inp, mid, 1, act=nn.ReLU6),
            conv_norm(mid, mid, 3, stride, groups=mid, act=nn.ReLU6),
            conv_norm(mid, out, 1, act=None),
        )
        self.same = inp == out and stride == 1

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)

    def forward(self, x):
        scale = torch.sigmoid(self.up(torch.relu(self.down(x.mean((2, 3), keepdim=True)))))
        return x * scale


class Depthwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            conv_norm(3, 9, 3, 2, act=nn.Hardswish),
            Inverted(9, 9, 1, 3),
            Inverted(9, 14, 2, 4),
            SqueezeExcite(14),
            Inverted(14, 14, 1, 4),
            conv_norm(14, 30, 5, 1, groups=2, act=nn.SiLU),
        )
        self.head = nn.Linear(30, 7)

    def forward(self, x):
        return self.head(nn.functional.adaptive_avg_pool2d(self.body(x), 1).flatten(1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        act = lambda: nn.LeakyReLU(0.1)
        self.one = conv_norm(3, 10, act=act)
        self.two = conv_norm(10, 18, act=act)
        self.three = conv_norm(18, 26, act=nn.ELU)
        self.up_two = nn.ConvTranspose2d(26, 18, 2, 2)
        self.up_one = nn.ConvTranspose2d(18, 10, 3, 2, 1, 1)
        self.mix_two = nn.Sequential(nn.Conv2d(36, 18, 3, padding=1), nn.InstanceNorm2d(18, affine=True), nn.PReLU(18))
        self.mix_one = nn.Sequential(nn.Conv2d(20, 10, 3, padding=1), nn.GroupNorm(5, 10), nn.Mish())
        self.head = nn.Conv2d(10, 5, 1)

    def forward(self, x):
        one = self.one(x)
        two = self.two(nn.functional.max_pool2d(one, 2))
        three = self.three(nn.functional.avg_pool2d(two, 2))
        two = self.mix_two(torch.cat([two, self.up_two(three)], 1))
        one = self.mix_one(torch.cat([one, self.up_one(two)], 1))
        return self.head(one)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        attention = torch.softmax(q @ k.transpose(-1, -2) * (d // self.heads) ** -0.5, -1)
        x = x + self.proj((attention @ v).transpose(1, 2).reshape(n, t, d))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 24, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 24))
        self.position = nn.Parameter(torch.randn(1, 17, 24))
        self.blocks = nn.Sequential(Block(24, 3), Block(24, 3))
        self.norm, self.head = nn.LayerNorm(24), nn.Linear(24, 6)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])


class Swish(nn.Module):
    """Blocks of EfficientNet and ConvNeXt: smooth activations after convolutions and products, depthwise kernels of 5 and 7."""

    def __init__(self):
        super().__init__()
        mobile = lambda mid, out, k, stride: nn.Sequential(
            conv_norm(16, mid, 1, act=nn.SiLU),
            conv_norm(mid, mid, k, stride, groups=mid, act=nn.SiLU),
            SqueezeExcite(mid),
            conv_norm(mid, out, 1, act=None),
        )
        self.stem = conv_norm(3, 16, 3, 2, act=nn.SiLU)
        self.one, self.two = mobile(40, 16, 5, 1), mobile(24, 16, 3, 2)
        self.wide, self.norm = nn.Conv2d(16, 16, 7, padding=3, groups=16), nn.LayerNorm(16)
        self.mix = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))
        self.head = conv_norm(16, 11, 3, act=nn.Hardswish)

    def forward(self, x):
        x = self.stem(x)
        x = self.two(x + self.one(x))
        x = x + self.mix(self.norm(self.wide(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)
        return self.head(x)


NETWORKS = {
    "resnet": (SmallResNet, [(1, 3, 40, 48), (2, 3, 33, 31)]),
    "dilated": (Dilated, [(1, 3, 32, 48), (2, 3, 20, 24)]),
    "depthwise": (Depthwise, [(1, 3, 32, 32), (2, 3, 25, 30)]),
    "unet": (UNet, [(1, 3, 24, 32), (2, 3, 16, 12)]),
    "transformer": (VisionTransformer, [(1, 3, 32, 32), (2, 3, 32, 32)]),
    "swish": (Swish, [(1, 3, 32, 56), (2, 3, 21, 27)]),
}


def randomise(net):
    for module in net.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.GroupNorm, nn.InstanceNorm2d, nn.LayerNorm)):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.3, 0.3)
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.3, 0.3)
            nn.init.uniform_(module.running_var, 0.5, 1.5)


def main():
    for seed, (name, (build, sizes)) in enumerate(NETWORKS.items()):
        torch.manual_seed(seed)
        net = build().eval()
        randomise(net)
        net.requires_grad_(False)
        stored = {}
        for i, size in enumerate(sizes):
            x = torch.rand(size)
            exact = x.double().requires_grad_(True)
            y = net.double()(exact)
            c = torch.randn(y.shape, dtype=torch.float64).float()
            (g,) = torch.autograd.grad((y * c.double()).sum(), exact)
            for key, value in {"x": x, "y": y, "c": c, "g": g}.items():
                stored[f"{key}{i}"] = value.detach().float().numpy()
        net.float()
        free = {0: "n", 2: "h", 3: "w"} if name != "transformer" else {0: "n"}
        torch.onnx.export(
            net, torch.rand(sizes[0]), HERE / f"{name}.onnx", input_names=["x"], output_names=["y"], opset_version=17,
            dynamic_axes={"x": free}, do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE, dynamo=False,
        )
        np.savez_compressed(HERE / f"{name}.npz", **stored)
        print(name, [p.stat().st_size for p in HERE.glob(f"{name}.*")])


main()
