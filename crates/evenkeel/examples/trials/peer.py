"""One step of the equivariance defence on ESPNet in PyTorch, with its own views, gradients and random numbers: what the trial `cityscapes` is held against.

    python crates/evenkeel/examples/trials/peer.py DATA [ATTACKED] [COUNT]          (needs torch, torchvision, onnx, onnx2torch, Pillow)

DATA is the folder of networks and images. ATTACKED is a folder of attacked images espnet-pgd-0.png and so on, as the trial keeps them in the temporary folder; without it
the images are clean. Prints mIoU before and after over the first COUNT (4) images, and the sum of eight cosines of each.
"""

import pathlib
import sys

import numpy as np
import onnx
import torch
from onnx2torch import convert
from PIL import Image
from torch.nn import functional as F
from torchvision import transforms

EPSILON = 6 / 255
FEATURE = "/conv/act/PRelu_output_0"
MEAN = torch.tensor([72.3923, 82.9089, 73.1584]).view(1, 3, 1, 1)
STD = torch.tensor([45.3192, 46.1529, 44.9148]).view(1, 3, 1, 1)


def load(data):
    model = onnx.load(data / "models" / "espnet_p2_q8_city_dynamic.onnx")
    model.graph.output.append(onnx.helper.make_tensor_value_info(FEATURE, onnx.TensorProto.FLOAT, None))
    net = convert(model).eval().requires_grad_(False)
    return lambda image: net((image.flip(1) * 255 - MEAN) / STD / 255)


def resize(x, size):
    return F.interpolate(x, tuple(size), mode="bilinear", align_corners=False)


def rotate(x, angle):
    h, w = x.shape[2:]
    cos, sin = np.cos(angle), np.sin(angle)
    matrix = torch.tensor([[cos, -sin * h / w, 0], [sin * w / h, cos, 0]], dtype=torch.float32)[None]
    return F.grid_sample(x, F.affine_grid(matrix, x.shape, align_corners=False), align_corners=False)


def views(image):
    """(view, undo, angle) for each of the eight; sides are multiples of eight, as the network wants them."""
    h, w = image.shape[2:]
    side = lambda length: max(8, int(length) // 8 * 8)
    stretch = lambda: 0.8 + 0.4 * torch.rand(1).item()
    for scale in (2, 0.3, 2, 0.5):
        yield resize(image, (side(h * scale), side(w * scale * stretch()))), resize, None
    for _ in range(2):
        angle = np.deg2rad(15 * (2 * torch.rand(1).item() - 1))
        yield rotate(image, angle), lambda f, size, angle=angle: rotate(f, -angle), angle
    coloured = transforms.ColorJitter(0.8, 0.8, 0.8, 0.2)(image)
    if torch.rand(1).item() < 0.2:
        coloured = transforms.functional.rgb_to_grayscale(coloured, 3)
    yield resize(coloured, (h, side(w * stretch()))), resize, None
    yield resize(image, (h, side(w * stretch()))).flip(3), lambda f, size: resize(f.flip(3), size), None


def objective(run, image):
    unit = lambda f: f / (f.norm() + 1e-10)
    own = run(image)[1]
    total = 0
    for view, undo, angle in views(image):
        seen = undo(run(view)[1], own.shape[2:])
        mask = 1
        if angle is not None:
            mask = rotate(rotate(torch.ones(1, 1, *own.shape[2:]), angle), -angle) > 0.5
        total = total + (unit(seen) * unit(own) * mask).sum()
    return total


def defended(run, image):
    start = (image + (2 * torch.rand_like(image) - 1) * EPSILON).clamp(0, 1)
    start.requires_grad_(True)
    before = objective(run, start)
    (gradient,) = torch.autograd.grad(before, start)
    moved = (start.detach() - image + 2 * EPSILON * gradient.sign()).clamp(-EPSILON, EPSILON)
    return (image + moved).clamp(0, 1), before.item()


def mean_iou(confusion):
    right = np.diag(confusion[:, :19])
    union = confusion.sum(1) + confusion[:, :19].sum(0) - right
    return 100 * (right / np.maximum(union, 1))[union > 0].mean()


def main():
    data = pathlib.Path(sys.argv[1])
    attacked = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 and not sys.argv[2].isdigit() else None
    count = int(sys.argv[-1]) if sys.argv[-1].isdigit() else 4
    torch.manual_seed(0)
    run = load(data)
    images = sorted((data / "cityscapes" / "leftImg8bit").iterdir())[:count]
    maps = sorted((data / "cityscapes" / "labelTrainIds").iterdir())[:count]
    bare, after = np.zeros((19, 20)), np.zeros((19, 20))
    for i, (picture, labels) in enumerate(zip(images, maps)):
        file = attacked / f"espnet-pgd-{i}.png" if attacked else picture
        image = torch.from_numpy(np.array(Image.open(file).convert("RGB"))).permute(2, 0, 1)[None].float() / 255
        restored, before = defended(run, image)
        truth = np.array(Image.open(labels))
        known = truth != 255
        with torch.no_grad():
            for confusion, shown in ((bare, image), (after, restored)):
                said = run(shown)[0][0].argmax(0).numpy()
                np.add.at(confusion, (truth[known], said[known]), 1)
            print(f"{i}: cosines {before:.2f}, after {float(objective(run, restored)):.2f}", flush=True)
    print(f"mIoU {mean_iou(bare):.2f}, defended {mean_iou(after):.2f}")


if __name__ == "__main__":
    main()
