"""Times PyTorch, onnxruntime and evenkeel alternately on the same networks and prints ratios of medians.

    cargo build --release && python bench/peers.py [--threads 2] [--rounds 9] [NETWORK ...]

needs torch, torchvision, onnx, onnxruntime. Networks: drn_d_22 (340x680), resnet50 (224), mobilenet_v2 (224), deeplabv3_resnet50
(400), mask_rcnn (400, forward only; weights of testdata/zoo, with which it finds a hundred instances), all with seeded random weights. PyTorch runs with frozen parameters, as the better of its default and channels-last with
batch norm folded into the convolutions. Peers take turns: in each turn one run to wake up and TURN timed ones, as in an attack's
or a defence's loop; before a turn a short pause, because a peer's idle threads spin for a while and would be measured with the next one.
The gradient is that of a sum of the outputs' squares with respect to the image. Memory is
the growth of a process's resident set while it runs forward + gradient: PyTorch's from what it held with the network loaded,
ours from what it holds once weights are packed and everything else is given back.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TURN = 3
HERE = pathlib.Path(__file__).resolve().parent
BINARY = HERE.parent / "target" / "release" / "evenkeel"


def drn_d_22():
    import torch
    from torch import nn

    def conv_norm(inp, out, k=3, stride=1, dilation=1, act=True):
        layers = [nn.Conv2d(inp, out, k, stride, dilation * (k - 1) // 2, dilation, bias=False), nn.BatchNorm2d(out)]
        return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if act else []))

    class Block(nn.Module):
        def __init__(self, inp, out, stride, dilation):
            super().__init__()
            self.a, self.b = conv_norm(inp, out, 3, stride, dilation), conv_norm(out, out, 3, 1, dilation, False)
            self.skip = conv_norm(inp, out, 1, stride, act=False) if stride > 1 or inp != out else nn.Identity()

        def forward(self, x):
            return torch.relu(self.b(self.a(x)) + self.skip(x))

    def level(inp, out, stride, dilation):
        return nn.Sequential(Block(inp, out, stride, dilation), Block(out, out, 1, dilation))

    return nn.Sequential(
        conv_norm(3, 16, 7), conv_norm(16, 16), conv_norm(16, 32, 3, 2),
        level(32, 64, 2, 1), level(64, 128, 2, 1), level(128, 256, 1, 2), level(256, 512, 1, 4),
        conv_norm(512, 512, 3, 1, 2), conv_norm(512, 512), nn.Conv2d(512, 19, 1),
    )  # fmt: skip


def build(name):
    import torch
    import torchvision

    torch.manual_seed(0)
    size = {"drn_d_22": (340, 680), "deeplabv3_resnet50": (400, 400), "mask_rcnn": (400, 400)}.get(name, (224, 224))
    if name == "drn_d_22":
        net = drn_d_22()
    elif name == "mask_rcnn":
        sys.path.insert(0, str(HERE.parent / "testdata" / "zoo"))
        import mask_rcnn

        net = mask_rcnn.make("maskrcnn_resnet50_fpn", size, torch.float32)
    elif name == "deeplabv3_resnet50":
        inner = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None)

        class Scores(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = inner

            def forward(self, x):
                return self.inner(x)["out"]

        net = Scores()
    else:
        net = getattr(torchvision.models, name)(weights=None)
    return net.eval().requires_grad_(False), (1, 3, *size)


def folded(net, name):
    """Batch norms in the convolutions before them."""
    import torch
    from torch.fx.experimental.optimization import fuse
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    if name != "mask_rcnn":
        return fuse(net)
    for module in list(net.backbone.modules()):
        for i in (1, 2, 3):
            conv, norm = getattr(module, f"conv{i}", None), getattr(module, f"bn{i}", None)
            if isinstance(norm, torch.nn.BatchNorm2d):
                setattr(module, f"conv{i}", fuse_conv_bn_eval(conv, norm))
                setattr(module, f"bn{i}", torch.nn.Identity())
        if isinstance(getattr(module, "downsample", None), torch.nn.Sequential):
            module.downsample = fuse_conv_bn_eval(*module.downsample)
    return net


class Peer:
    """Something that runs in this process."""

    def turn(self, mode):
        return [self.once(mode) for _ in range(1 + TURN)][1:]


class Torch(Peer):
    """PyTorch."""

    def __init__(self, name, threads, variant):
        import torch

        torch.set_num_threads(threads)
        self.torch = torch
        net, shape = build(name)
        self.x = torch.rand(shape, generator=torch.Generator().manual_seed(1))
        if variant == "folded":
            net = folded(net, name)
            net = net.to(memory_format=torch.channels_last)
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        # Detectors take a list of images.
        self.net = (lambda x: net(list(x))) if name == "mask_rcnn" else net

    def once(self, mode):
        torch = self.torch
        start = time.perf_counter()
        if mode == "forward":
            with torch.inference_mode():
                self.net(self.x)
        else:
            x = self.x.clone().requires_grad_(True)
            y = self.net(x)
            torch.autograd.grad(y, x, 2 * y.detach())
        return (time.perf_counter() - start) * 1e3


class OnnxRuntime(Peer):
    """onnxruntime; forward only."""

    def __init__(self, path, shape, threads):
        import numpy as np
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.x = np.random.default_rng(1).random(shape, dtype=np.float32)

    def once(self, mode):
        start = time.perf_counter()
        self.session.run(None, {self.session.get_inputs()[0].name: self.x})
        return (time.perf_counter() - start) * 1e3


class Ours:
    """evenkeel, in a process of its own that waits for orders."""

    def __init__(self, path, shape, threads):
        size = f"{shape[3]}x{shape[2]}"
        command = [BINARY, "model", "bench", path, "--size", size, "--threads", str(threads), "--respond"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def turn(self, mode):
        self.process.stdin.write(f"{mode} {1 + TURN}\n")
        self.process.stdin.flush()
        return [float(time) for time in self.process.stdout.readline().split()[1:]]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def export(name, folder):
    import torch

    net, shape = build(name)
    path = folder / f"{name}.onnx"
    if name == "mask_rcnn":
        torch.save(net.state_dict(), folder / "mask_rcnn.pth")
        subprocess.run([BINARY, "model", "import", folder / "mask_rcnn.pth", "--onnx", "-o", path], check=True)
        return path, shape
    free = {0: "n", 2: "h", 3: "w"}
    torch.onnx.export(net, torch.rand(shape), path, input_names=["x"], output_names=["y"], opset_version=17,
                      dynamic_axes={"x": free}, dynamo=False)  # fmt: skip
    return path, shape


def status_mb(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) / 1024


def torch_memory(name, threads):
    """Run in a fresh process: the growth of the resident set from a loaded network through forward + gradient."""
    peer = Torch(name, threads, "default")
    before = status_mb("VmHWM")
    for _ in range(3):
        peer.once("gradient")
    print(json.dumps(status_mb("VmHWM") - before))


def compare(name, threads, rounds, folder):
    path, shape = export(name, folder)
    ours = Ours(path, shape, threads)
    peers = {"pytorch": Torch(name, threads, "default"), "pytorch folded, channels last": Torch(name, threads, "folded")}
    peers["onnxruntime"] = OnnxRuntime(path, shape, threads)
    peers["evenkeel"] = ours
    times = {}
    # What an image's gradient of all a detector's answers would be is nothing anybody asks.
    modes = ["forward"] if name == "mask_rcnn" else ["forward", "gradient"]
    for mode in modes:
        active = {label: peer for label, peer in peers.items() if mode == "forward" or label != "onnxruntime"}
        for peer in active.values():
            peer.turn(mode)
        for _ in range(rounds):
            for label, peer in active.items():
                time.sleep(0.2)
                times.setdefault((mode, label), []).extend(peer.turn(mode))
    ours.close()
    print(f"\n{name} at {shape[2]}x{shape[3]}, {threads} threads, medians of {rounds * TURN} (ms)")
    for mode in modes:
        medians = {label: statistics.median(values) for (m, label), values in times.items() if m == mode}
        mine = medians.pop("evenkeel")
        best_torch = min(value for label, value in medians.items() if label.startswith("pytorch"))
        title = "forward" if mode == "forward" else "forward + gradient"
        rest = ", ".join(f"{label} {value:.1f}" for label, value in medians.items())
        line = f"  {title:18} evenkeel {mine:.1f}, {rest}: {best_torch / mine:.2f}x PyTorch"
        if "onnxruntime" in medians:
            line += f", {medians['onnxruntime'] / mine:.2f}x onnxruntime"
        print(line, flush=True)
    if modes == ["forward"]:
        return
    theirs = json.loads(subprocess.run([sys.executable, __file__, "--torch-memory", name, "--threads", str(threads)],
                                       capture_output=True, text=True, check=True).stdout)  # fmt: skip
    size = f"{shape[3]}x{shape[2]}"
    report = subprocess.run([BINARY, "model", "bench", path, "--size", size, "--threads", str(threads), "--json"],
                            capture_output=True, text=True, check=True).stdout  # fmt: skip
    mine = json.loads(report)["gradient"]["resident_growth_bytes"] / 2**20
    print(f"  memory             evenkeel {mine:.0f} MB, PyTorch {theirs:.0f} MB: {mine / theirs:.2f} of PyTorch's")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=["drn_d_22", "resnet50", "mobilenet_v2", "deeplabv3_resnet50", "mask_rcnn"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--torch-memory", metavar="NETWORK", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch_memory:
        return torch_memory(options.torch_memory, options.threads)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.networks:
            compare(name, options.threads, options.rounds, pathlib.Path(folder))


if __name__ == "__main__":
    main()
