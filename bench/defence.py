"""Times one step of the equivariance defence beside PyTorch doing the same, and prints ratios and peak memory.

    cargo build --release -p evenkeel --example defence_step && python bench/defence.py [--size 340x680] [--threads 2] [--rounds 3]

needs torch, torchvision, onnx. The network is peers.py's drn_d_22 with seeded random weights, frozen. A step is the gradient, with respect
to the image, of the sum of eight cosines between the network's map of the image and of its eight views, undone: resizes by 2, 0.3, 2 and 0.5,
two rotations, a change of colours, a flip. PyTorch takes the better of its default and channels-last with folded batch norm. The first
line is one plain forward + gradient, so that the step's ratio can be held against the engine's own in the same run.
"""

import argparse
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import peers

STEP = peers.HERE.parent / "target" / "release" / "examples" / "defence_step"


class Ours:
    def __init__(self, path, size, threads):
        command = [STEP, path, *map(str, size), str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def once(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


class Torch:
    def __init__(self, size, threads, folded):
        import torch

        torch.set_num_threads(threads)
        self.torch = torch
        net, _ = peers.build("drn_d_22")
        self.x = torch.rand((1, 3, *size), generator=torch.Generator().manual_seed(1))
        if folded:
            from torch.fx.experimental.optimization import fuse

            net = fuse(net).to(memory_format=torch.channels_last)
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        self.net = net

    def turned(self, x, degrees):
        from torch.nn import functional as F

        sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
        ratio = x.shape[-2] / x.shape[-1]
        matrix = self.torch.tensor([[[cosine, -sine * ratio, 0.0], [sine / ratio, cosine, 0.0]]])
        grid = F.affine_grid(matrix, x.shape, align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    def views(self):
        from torch.nn import functional as F
        from torchvision.transforms import ColorJitter

        def resized(x, size):
            return F.interpolate(x, size=size, mode="bilinear", align_corners=False)

        def scaled(factor):
            size = [int(side * factor) for side in self.x.shape[-2:]]
            return (lambda x: resized(x, size)), resized

        def rotated(degrees):
            return (lambda x: self.turned(x, degrees)), (lambda f, _: self.turned(f, -degrees))

        jitter = ColorJitter(0.8, 0.8, 0.8, 0.2)
        colour = jitter, (lambda f, _: f)
        flip = (lambda x: x.flip(-1)), (lambda f, _: f.flip(-1))
        return [scaled(2), scaled(0.3), scaled(2), scaled(0.5), rotated(11.0), rotated(-7.0), colour, flip]

    def step(self):
        torch = self.torch
        x = self.x.clone().requires_grad_(True)
        base = self.net(x)
        size = base.shape[-2:]
        total = 0.0
        for apply, undo in self.views():
            back = undo(self.net(apply(x)), size)
            with torch.no_grad():
                mask = (undo(apply(torch.ones_like(base[:, :3])), size)[:, :1] > 0.5).float()
            norms = (back.norm() + 1e-10) * (base.norm() + 1e-10)
            total = total + (back * base * mask).sum() / norms
        torch.autograd.grad(total, x)

    def gradient(self):
        x = self.x.clone().requires_grad_(True)
        y = self.net(x)
        self.torch.autograd.grad(y, x, 2 * y.detach())

    def once(self, order):
        start = time.perf_counter()
        getattr(self, order)()
        return (time.perf_counter() - start) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="340x680", metavar="HEIGHTxWIDTH")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--network", help="an exported drn_d_22, to save exporting it")
    parser.add_argument("--alone", action="store_true", help="leave PyTorch out")
    options = parser.parse_args()
    size = [int(side) for side in options.size.split("x")]
    with tempfile.TemporaryDirectory() as folder:
        path = options.network or peers.export("drn_d_22", pathlib.Path(folder))[0]
        ours = Ours(path, size, options.threads)
        all_peers = {"evenkeel": ours}
        if not options.alone:
            default, folded = (Torch(size, options.threads, f) for f in (False, True))
            plain = [min(peer.once("gradient") for _ in range(2)) for peer in (default, folded)]
            all_peers["PyTorch"] = default if plain[0] < plain[1] else folded
        ours.once("gradient")
        medians = {}
        for order in ["gradient", "step"]:
            times = {label: [] for label in all_peers}
            for _ in range(options.rounds):
                for label, peer in all_peers.items():
                    time.sleep(0.2)
                    times[label].append(peer.once(order))
            medians[order] = {label: statistics.median(values) for label, values in times.items()}
            line = ", ".join(f"{label} {value:.0f} ms" for label, value in medians[order].items())
            if "PyTorch" in medians[order]:
                line += f": {medians[order]['PyTorch'] / medians[order]['evenkeel']:.2f}x PyTorch"
            print(f"{order:9} {line}", flush=True)
        print(f"views     {ours.once('views'):.0f} ms of a step")
        print(f"memory    evenkeel {ours.once('memory'):.0f} MB in all, weights included", end="")
        print("" if options.alone else f"; PyTorch {peers.status_mb('VmHWM'):.0f} MB, its import included")


sys.exit(main())
