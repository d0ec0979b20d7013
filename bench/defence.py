"""Times one step of the equivariance defence beside PyTorch doing the same, and prints ratios and peak memory.

    cargo build --release -p evenkeel --example defence_step && python bench/defence.py [--size 340x680] [--threads 2] [--rounds 3]
    python bench/defence.py --memory [--fixed NETWORK.onnx] [--size 340x680] [--threads 2]

needs torch, torchvision, onnx; with --fixed, onnx2torch. The network is peers.py's drn_d_22 with seeded random weights, frozen. A step is the gradient, with respect
to the image, of the sum of eight cosines between the network's map of the image and of its eight views, undone: resizes by 2, 0.3, 2 and 0.5,
two rotations, a change of colours, a flip. PyTorch takes the better of its default and channels-last with folded batch norm. The first
line is one plain forward + gradient, so that the step's ratio can be held against the engine's own in the same run.

--memory prints the peak resident set (VmHWM) of fresh processes instead: ours runs the whole default defence with the standard eight views and
the answer, PyTorch's one step as above (twenty such steps need no more). It does so for drn_d_22 and, with --fixed, for a network whose
input size its file fixes: its views keep the canvas, so that a resize becomes a zoom. Features are the outputs. The last figure of a line
is what PyTorch's process held before the step, its import and the network included.
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
    def __init__(self, net, size, folded=False, fixed=False):
        import torch

        self.torch, self.fixed = torch, fixed
        self.x = torch.rand((1, 3, *size), generator=torch.Generator().manual_seed(1))
        if folded:
            from torch.fx.experimental.optimization import fuse

            net = fuse(net).to(memory_format=torch.channels_last)
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        self.net = net

    def zoomed(self, x, factor):
        from torch.nn import functional as F

        matrix = self.torch.tensor([[[1 / factor, 0.0, 0.0], [0.0, 1 / factor, 0.0]]])
        grid = F.affine_grid(matrix, x.shape, align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

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
            if self.fixed:
                return (lambda x: self.zoomed(x, factor)), (lambda f, _: self.zoomed(f, 1 / factor))
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


def torch_peak(network, size, threads):
    """Run in a fresh process: prints the peak resident set after one step, and what was held before it."""
    import torch

    torch.set_num_threads(threads)
    if network == "drn_d_22":
        peer = Torch(peers.build(network)[0], size)
    else:
        import onnx2torch

        net = onnx2torch.convert(network).eval().requires_grad_(False)
        peer = Torch(net, size, fixed=True)
    before = peers.status_mb("VmRSS")
    peer.step()
    print(peers.status_mb("VmHWM"), before)


def fixed_size(path):
    import onnx

    dims = onnx.load(path, load_external_data=False).graph.input[0].type.tensor_type.shape.dim
    return [dim.dim_value for dim in dims[2:]]


def memory(options, size):
    with tempfile.TemporaryDirectory() as folder:
        drn = options.network or peers.export("drn_d_22", pathlib.Path(folder))[0]
        networks = [("drn_d_22", drn, "drn_d_22", size)]
        if options.fixed:
            networks.append((pathlib.Path(options.fixed).stem, options.fixed, options.fixed, fixed_size(options.fixed)))
        for name, path, network, size in networks:
            ours = Ours(path, size, options.threads)
            ours.once("default")
            line = f"{name} at {size[0]}x{size[1]}: evenkeel {ours.once('memory'):.0f} MB"
            ours.process.kill()
            if not options.alone:
                text = "x".join(map(str, size))
                command = [sys.executable, __file__, "--torch-peak", network, "--size", text]
                command += ["--threads", str(options.threads)]
                peak, before = map(float, subprocess.check_output(command, text=True).split())
                line += f", PyTorch {peak:.0f} MB, {before:.0f} MB of it held before the step"
            print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="340x680", metavar="HEIGHTxWIDTH")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--network", help="an exported drn_d_22, to save exporting it")
    parser.add_argument("--alone", action="store_true", help="leave PyTorch out")
    parser.add_argument("--memory", action="store_true", help="peak memory of the whole default defence")
    parser.add_argument("--fixed", metavar="NETWORK.onnx", help="with --memory: a network of fixed input size as well")
    parser.add_argument("--torch-peak", metavar="NETWORK", help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = [int(side) for side in options.size.split("x")]
    if options.torch_peak:
        return torch_peak(options.torch_peak, size, options.threads)
    if options.memory:
        return memory(options, size)
    with tempfile.TemporaryDirectory() as folder:
        path = options.network or peers.export("drn_d_22", pathlib.Path(folder))[0]
        ours = Ours(path, size, options.threads)
        all_peers = {"evenkeel": ours}
        if not options.alone:
            import torch

            torch.set_num_threads(options.threads)
            default, folded = (Torch(peers.build("drn_d_22")[0], size, f) for f in (False, True))
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
