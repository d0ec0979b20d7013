"""Trains a small convolutional net on made-up textures and writes what torchattacks does to it.

    python make.py            (writes net.json, images.bin and results.json beside itself)

The net is the tests' toy: two 3x3 convolutions (stride 2, padding 1) with ReLU, mean over space, one linear layer.
images.bin holds 100 images, u8, [100, 3, 16, 16]; results.json, per attack, which images it broke.
"""
import json, os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchattacks

torch.manual_seed(0)
np.random.seed(0)
HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES = 6


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, 2, 1)
        self.b = nn.Conv2d(8, 12, 3, 2, 1)
        self.c = nn.Linear(12, CLASSES)

    def forward(self, x):
        return self.c(F.relu(self.b(F.relu(self.a(x)))).mean((2, 3)))


def textures(count):
    """Waves whose direction, frequency and tint depend on the class, under noise; rounded to bytes."""
    labels = torch.randint(0, CLASSES, (count,))
    y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    angle = labels.float() * np.pi / CLASSES + 0.15 * torch.randn(count)
    frequency = 0.7 + 0.12 * labels.float() + 0.05 * torch.randn(count)
    phase = 2 * np.pi * torch.rand(count)
    along = torch.cos(angle)[:, None, None] * x + torch.sin(angle)[:, None, None] * y
    wave = torch.sin(frequency[:, None, None] * along + phase[:, None, None])
    tint = 0.12 + 0.03 * torch.randn(count, 3)
    images = 0.5 + tint[:, :, None, None] * wave[:, None] + 0.06 * torch.randn(count, 3, 16, 16)
    return (images.clamp(0, 1) * 255).round() / 255, labels


net = Net()
optimiser = torch.optim.Adam(net.parameters(), 5e-3)
for step in range(600):
    x, y = textures(128)
    loss = F.cross_entropy(net(x), y)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
net.eval()
x, y = textures(400)
right = (net(x).argmax(1) == y).nonzero().flatten()[:100]
print("clean accuracy", (net(x).argmax(1) == y).float().mean().item())
x, y = x[right], y[right]
(x * 255).round().byte().numpy().tofile(os.path.join(HERE, "images.bin"))
weights = {k: [float(f"{v:.8g}") for v in p.flatten().tolist()] for k, p in net.state_dict().items()}
json.dump(weights, open(os.path.join(HERE, "net.json"), "w"), separators=(",", ":"))

eps = 4 / 255
attacks = {
    "pgd": torchattacks.PGD(net, eps=eps, alpha=1 / 255, steps=20),
    "mim": torchattacks.MIFGSM(net, eps=eps, alpha=1 / 255, steps=20, decay=1.0),
    "apgd-ce": torchattacks.APGD(net, norm="Linf", eps=eps, steps=50, loss="ce"),
    "apgd-dlr": torchattacks.APGD(net, norm="Linf", eps=eps, steps=50, loss="dlr"),
    "apgd-t": torchattacks.APGDT(net, norm="Linf", eps=eps, steps=50, n_classes=CLASSES),
    "fab": torchattacks.FAB(net, norm="Linf", eps=eps, steps=50, n_classes=CLASSES),
    "square": torchattacks.Square(net, norm="Linf", eps=eps, n_queries=1000),
    "cw-l2": torchattacks.CW(net, c=1, kappa=0, steps=200, lr=0.01),
}
results = {"epsilon_255": 4, "labels": y.tolist(), "broken": {}, "cw_l2_distance": None}
for name, attack in attacks.items():
    torch.manual_seed(1)
    out = attack(x, y)
    broken = net(out).argmax(1) != y
    results["broken"][name] = broken.nonzero().flatten().tolist()
    print(name, len(results["broken"][name]), (out - x).abs().max().item() * 255)
    if name == "cw-l2":
        results["cw_l2_distance"] = float((out - x).flatten(1).norm(dim=1)[broken].mean())
json.dump(results, open(os.path.join(HERE, "results.json"), "w"), separators=(",", ":"))
