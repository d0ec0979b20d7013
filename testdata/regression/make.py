"""Trains a tiny depth network on made-up streets and writes it with a few of them: depth.onnx, scene_N.png, scene_N.npy (metres).

    python make.py [FOLDER COUNT]     into another folder, so many scenes

A street is a ground plane under a sky with boxes standing on it; what is far is pale and finely textured, and there is little light. The network is fully convolutional, takes RGB in [0, 1] at
sizes that are multiples of 8, and answers in metres, from 2 to 60. Needs numpy, torch, onnx and pillow.
"""
import os
import sys

import numpy as np
import torch
from PIL import Image
from torch import nn

HEIGHT, WIDTH, LOW, HIGH = 48, 64, 2.0, 60.0


def street(rng):
    """An image [h, w, 3] in [0, 1] of 8 bits and its depth [h, w] in metres."""
    horizon = rng.uniform(0.2, 0.7) * HEIGHT
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    eye = rng.uniform(25, 60)
    depth = np.where(rows > horizon, eye / np.maximum(rows - horizon, 0.1), HIGH)
    across = (columns - WIDTH / 2) * depth / eye
    stripes = 0.08 * np.sign(np.sin(across * 3) * np.sin(depth * 2))
    colour = np.where(rows[..., None] > horizon, rng.uniform(0.2, 0.5, 3), rng.uniform(0.6, 0.9, 3))
    image = colour + np.where(rows > horizon, stripes, 0)[..., None]
    for distance in sorted(rng.uniform(3, 40, rng.integers(2, 6)), reverse=True):
        foot = int(horizon + eye / distance)
        tall, wide = 60 / distance * rng.uniform(0.5, 1.2), 60 / distance * rng.uniform(0.4, 1.2)
        left = int(rng.uniform(-5, WIDTH - 5))
        part = np.s_[max(0, int(foot - tall)):min(HEIGHT, foot), max(0, left):max(0, int(left + wide))]
        depth[part] = distance
        image[part] = rng.uniform(0.1, 0.9, 3) + 0.1 * np.sign(np.sin(columns[part] * distance / 4))[..., None]
    depth = np.clip(depth, LOW, HIGH).astype(np.float32)
    fog = 1 - np.exp(-depth / rng.uniform(20, 80))[..., None]
    # dusk: little contrast
    image = 0.4 + 0.22 * (image * (1 - fog) + 0.8 * fog - 0.5)
    return np.round(np.clip(image, 0, 1) * 255) / 255, depth


class Depth(nn.Module):
    def __init__(self):
        super().__init__()
        conv = lambda a, b, **more: nn.Sequential(nn.Conv2d(a, b, 3, bias=False, **({"padding": 1} | more)), nn.BatchNorm2d(b), nn.ReLU())
        self.down = nn.ModuleList([conv(3, 12), conv(12, 16, stride=2), conv(16, 24, stride=2), conv(24, 32, stride=2)])
        self.wide = nn.Sequential(conv(32, 32, padding=2, dilation=2), conv(32, 32, padding=4, dilation=4))
        self.up = nn.ModuleList([conv(56, 24), conv(40, 16)])
        self.out = nn.Conv2d(28, 1, 3, padding=1)

    def forward(self, x):
        skips = []
        for layer in self.down:
            x = layer(x if skips else 4 * (x - 0.4))
            skips.append(x)
        x = self.wide(skips.pop())
        grow = lambda t: nn.functional.interpolate(t, scale_factor=2.0, mode="bilinear", align_corners=False)
        for layer in self.up:
            x = layer(torch.cat([grow(x), skips.pop()], 1))
        return LOW + (HIGH - LOW) * torch.sigmoid(self.out(torch.cat([grow(x), skips.pop()], 1)))


def batch(rng, count):
    pairs = [street(rng) for _ in range(count)]
    images = torch.from_numpy(np.stack([p[0] for p in pairs]).transpose(0, 3, 1, 2).astype(np.float32))
    return images, torch.from_numpy(np.stack([p[1] for p in pairs]))[:, None]


def main(folder, count):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    images, depths = batch(rng, 1500)
    net = Depth()
    optimiser = torch.optim.AdamW(net.parameters(), 3e-3)
    steps = 1400
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 6e-3, steps)
    for step in range(steps):
        pick = torch.from_numpy(rng.integers(0, len(images), 16))
        loss = (torch.log(net(images[pick])) - torch.log(depths[pick])).abs().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if step % 200 == 199:
            print(step, loss.item(), flush=True)
    net.eval()
    test = np.random.default_rng(2)
    images, depths = batch(test, 100)
    with torch.no_grad():
        print("MAE on 100 others", float((net(images) - depths).abs().mean()))
    attacked = images.clone()
    for _ in range(20):
        attacked.requires_grad_(True)
        (gradient,) = torch.autograd.grad((net(attacked) - depths).abs().mean(), attacked)
        attacked = (attacked.detach() + gradient.sign() / 1020).clamp(images - 2 / 255, images + 2 / 255).clamp(0, 1)
    with torch.no_grad():
        print("after PGD at 2/255", float((net(attacked) - depths).abs().mean()))
    example = torch.zeros(1, 3, HEIGHT, WIDTH)
    dynamic = {"image": {2: "h", 3: "w"}, "depth": {2: "h", 3: "w"}}
    path = os.path.join(folder, "depth.onnx")
    torch.onnx.export(net, example, path, input_names=["image"], output_names=["depth"], dynamic_axes=dynamic, opset_version=17, dynamo=False)
    test = np.random.default_rng(3)
    for k in range(count):
        image, depth = street(test)
        Image.fromarray((image * 255).round().astype(np.uint8)).save(os.path.join(folder, f"scene_{k}.png"))
        np.save(os.path.join(folder, f"scene_{k}.npy"), depth)


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    main(*((sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 2 else (here, 2)))
