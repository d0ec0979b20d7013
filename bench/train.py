"""Times a training step of the compact segmenter in PyTorch and in evenkeel in turns, and prints the ratio of medians.

    pip install numpy torch
    cargo build --release -p evenkeel-train && python bench/train.py [--threads 2] [--rounds 5] [--cpu-time]

The same architecture, batch, window and number of classes: forward, cross-entropy on scores enlarged to the window, backward, gradient
clipping, AdamW. PyTorch runs as the better of its default layout and channels-last, on one batch that lies ready; evenkeel's step also draws
and augments its batch. Both take numbers below the smallest normal one for zero.

--cpu-time takes processor time on one thread instead of wall-clock time: for machines on which something else runs too.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
BINARY = HERE.parent / "target" / "release" / "evenkeel-train"
CLASSES = 19


def compact(width):
    import torch.nn as nn

    def plain(i, o, stride=1, dilation=1):
        return nn.Sequential(nn.Conv2d(i, o, 3, stride, dilation, dilation, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

    class Residual(nn.Module):
        def __init__(self, i, o, stride=1, dilation=1):
            super().__init__()
            self.a = plain(i, o, stride, dilation)
            self.b = nn.Sequential(nn.Conv2d(o, o, 3, 1, dilation, dilation, bias=False), nn.BatchNorm2d(o))
            alike = i == o and stride == 1
            self.skip = nn.Identity() if alike else nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

        def forward(self, x):
            return nn.functional.relu(self.b(self.a(x)) + self.skip(x), inplace=True)

    wide = 4 * width
    layers = [plain(3, width, 2), Residual(width, 2 * width, 2), Residual(2 * width, wide, 2)]
    layers += [Residual(wide, wide, 1, dilation) for dilation in (1, 2, 2, 4, 4)]
    layers += [plain(wide, wide, 1, 2), plain(wide, wide, 1, 1), nn.Conv2d(wide, CLASSES, 1)]
    return nn.Sequential(*layers)


class Torch:
    def __init__(self, args, channels_last):
        import torch

        torch.manual_seed(0)
        torch.set_num_threads(args.threads)
        torch.set_flush_denormal(True)
        self.torch = torch
        self.format = torch.channels_last if channels_last else torch.contiguous_format
        self.net = compact(args.width).to(memory_format=self.format).train()
        self.optimiser = torch.optim.AdamW(self.net.parameters(), 1e-3, (0.9, 0.99), weight_decay=0.02)
        self.x = torch.randn(args.batch, 3, args.crop, args.crop).to(memory_format=self.format)
        self.y = torch.randint(0, CLASSES, (args.batch, args.crop, args.crop))

    def step(self):
        functional = self.torch.nn.functional
        scores = functional.interpolate(self.net(self.x), scale_factor=8, mode="bilinear", align_corners=False)
        loss = functional.cross_entropy(scores, self.y, ignore_index=255)
        self.optimiser.zero_grad()
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.net.parameters(), 5.0)
        self.optimiser.step()

    def round(self, steps, clock):
        self.step()
        start = clock()
        for _ in range(steps):
            self.step()
        return 1e3 * (clock() - start) / steps


def ours(args):
    words = [BINARY, "bench", "--width", args.width, "--batch", args.batch, "--crop", args.crop, "--steps", args.steps, "--json"]
    environment = dict(os.environ, RAYON_NUM_THREADS=str(args.threads))
    done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    return told["processor_ms"] if args.cpu_time else told["wall_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--crop", type=int, default=256)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--cpu-time", action="store_true")
    args = parser.parse_args()
    if args.cpu_time:
        args.threads = 1
    clock = time.process_time if args.cpu_time else time.perf_counter
    peers = {"PyTorch": Torch(args, False), "PyTorch channels-last": Torch(args, True)}
    times = {name: [] for name in [*peers, "evenkeel"]}
    for _ in range(args.rounds):
        for name, peer in peers.items():
            times[name].append(peer.round(args.steps, clock))
        times["evenkeel"].append(ours(args))
    kind = "processor time, 1 thread" if args.cpu_time else f"wall clock, {args.threads} threads"
    print(f"a step of {args.batch} windows of {args.crop}x{args.crop}, width {args.width}, {kind}; medians of {args.rounds} rounds")
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        print(f"  {name:24} {median:8.0f} ms   {1e3 * args.batch / median:6.1f} images/s")
    best = min(median for name, median in medians.items() if name != "evenkeel")
    print(f"  evenkeel is {best / medians['evenkeel']:.2f}x the better PyTorch")


if __name__ == "__main__":
    main()
