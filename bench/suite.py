"""Times onnxruntime, PyTorch and evenkeel in turns on every network it can find, and prints ratios of medians.

    pip install numpy onnx onnxruntime torch torchvision onnx2torch onnxscript
    cargo build --release && python bench/suite.py [--threads 2] [--rounds 5] [--quick] [NETWORK ...]

Networks: every .onnx of $EVENKEEL_DATA/models (../shared/data/models if that is not set), the shipped networks, DRN-D-22,
and torchvision networks with seeded random weights, exported once into --exports. NETWORK picks those whose name contains it.

PyTorch runs the same ONNX file through onnx2torch (a torchvision network that onnx2torch cannot convert runs as the module it was
exported from), parameters frozen, as the better of its default and channels-last. Both peers take numbers below the smallest normal one
for zero, as we do: ESPNet has many such weights, with which they are ten times as slow. In each turn a peer runs once to wake up and TURN
times timed; before a turn a short pause, because a peer's idle threads spin for a while and would be measured with the next one. The
gradient is that of half the sum of the outputs' squares with respect to the image. Memory is the growth of a process's resident set
while it runs forward + gradient: PyTorch's from what it held with the network loaded, ours from what it holds once weights are packed.
The share of the FMA peak is counted operations over time; Winograd's method needs fewer than are counted, so it can pass 100 %.

--cpu-time takes processor time instead of wall-clock time and one thread: for machines on which something else runs too.
--least takes the least of all rounds instead of the median: what each can do undisturbed, where others keep the machine busy.
--quick takes fewer networks and rounds, and no memory.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
import warnings

TURN = 3
PAUSE_SECONDS = 0.15
HERE = pathlib.Path(__file__).resolve().parent
BINARY = HERE.parent / "target" / "release" / "evenkeel"
TORCHVISION = {
    "resnet18": 224, "resnet50": 224, "mobilenet_v2": 224, "mobilenet_v3_large": 224, "efficientnet_b0": 224,
    "convnext_tiny": 224, "regnet_y_400mf": 224, "shufflenet_v2_x1_0": 224, "densenet121": 224, "vit_b_16": 224,
    "deeplabv3_resnet50": 400, "lraspp_mobilenet_v3_large": 320,
}  # fmt: skip
TRANSFORMERS = ("vit",)
QUICK = ["efficientnet_lite0", "deeplabv3_mnv2", "espnetv2_s1.0", "espnet_p2", "squeezenet", "resnet20", "scenes_segmenter",
         "resnet18", "mobilenet_v3_large", "efficientnet_b0", "shufflenet", "convnext_tiny"]  # fmt: skip
# Where a file leaves height and width free and nothing beside it says what it was made for.
FREE_SIZE = {"scenes_classifier": (64, 64), "scenes_segmenter": (128, 256)}


# ---- networks


def module(name):
    """A network with seeded random weights, as PyTorch has it."""
    import torch
    import torchvision

    torch.manual_seed(0)
    if name == "drn_d_22":
        sys.path.insert(0, str(HERE))
        import peers

        return peers.drn_d_22().eval()
    segmentation = name in ("deeplabv3_resnet50", "lraspp_mobilenet_v3_large")
    kind = torchvision.models.segmentation if segmentation else torchvision.models
    arguments = {"weights_backbone": None} if segmentation else {}
    inner = getattr(kind, name)(weights=None, **arguments).eval()
    # Random batch statistics, so that activations neither vanish nor explode and nothing is computed on denormal numbers.
    for norm in (m for m in inner.modules() if isinstance(m, torch.nn.BatchNorm2d)):
        norm.running_mean.uniform_(-0.1, 0.1)
        norm.running_var.uniform_(0.5, 1.5)
    if not segmentation:
        return inner

    class Scores(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x)["out"]

    return Scores().eval()


def export(name, size, folder):
    path = folder / f"{name}.onnx"
    if not path.is_file():
        import torch

        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module(name), torch.rand(1, 3, *size), part, input_names=["x"], output_names=["y"],
                              opset_version=17, dynamo=False)  # fmt: skip
        part.rename(path)
    return path


def declared(path):
    """The name and shape of a file's input; free dimensions are None."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    given = next(value for value in graph.input if value.name not in constants)
    return given.name, [dim.dim_value or None for dim in given.type.tensor_type.shape.dim]


def shape_of(path):
    import numpy

    _, dims = declared(path)
    stored = path.parent / (path.name[: -len(".onnx")] + ".ref.npz")
    if None in dims and stored.is_file():
        return tuple(numpy.load(stored)["input"].shape)
    free = next((size for name, size in FREE_SIZE.items() if path.name.startswith(name)), (224, 224))
    return tuple(dim or default for dim, default in zip(dims, (1, 3, *free)))


def networks(exports, wanted):
    """(name, path, shape) of every network there is, those of `wanted` only if it is not empty."""
    data = pathlib.Path(os.environ.get("EVENKEEL_DATA", HERE.parent.parent / "shared" / "data"))
    chosen = lambda name: not wanted or any(part in name for part in wanted)  # noqa: E731
    found = [path for folder in (data / "models", HERE.parent / "crates/evenkeel/models") for path in sorted(folder.glob("*.onnx"))]
    # The adversarially trained networks have the architecture of their neighbours.
    found = [path for path in found if not path.stem.endswith("_adv")]
    listed = [(path.stem, path, shape_of(path)) for path in found if chosen(path.stem)]
    random = {"drn_d_22": (340, 680), **{name: (size, size) for name, size in TORCHVISION.items()}}
    for name, size in random.items():
        if chosen(name):
            listed.append((name, export(name, size, exports), (1, 3, *size)))
    return listed


# ---- peers


class Clock:
    """Milliseconds of a piece of work in this process."""

    def __init__(self, cpu_time):
        self.now = time.process_time if cpu_time else time.perf_counter

    def time(self, work):
        start = self.now()
        work()
        return (self.now() - start) * 1e3


class Torch:
    """PyTorch on the same file."""

    def __init__(self, name, path, shape, options, channels_last):
        import torch

        torch.set_num_threads(options.threads)
        torch.set_flush_denormal(True)
        self.torch, self.clock = torch, Clock(options.cpu_time)
        net = converted(name, path).eval().requires_grad_(False)
        self.x = torch.rand(shape, generator=torch.Generator().manual_seed(1))
        if channels_last:
            net = net.to(memory_format=torch.channels_last)
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        self.net = net

    def outputs(self, x):
        y = self.net(x)
        return list(y) if isinstance(y, (list, tuple)) else [y]

    def forward(self):
        with self.torch.inference_mode():
            self.outputs(self.x)

    def gradient(self):
        x = self.x.clone().requires_grad_(True)
        led = [y for y in self.outputs(x) if y.requires_grad]
        self.torch.autograd.grad(led, x, [y.detach() for y in led])

    def turn(self, mode):
        return [self.clock.time(getattr(self, mode)) for _ in range(1 + TURN)][1:]


def converted(name, path):
    import onnx2torch

    try:
        with warnings.catch_warnings(), open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            return onnx2torch.convert(str(path))
    except Exception:
        if name in TORCHVISION or name == "drn_d_22":
            return module(name)
        raise


class OnnxRuntime:
    """onnxruntime; forward only."""

    def __init__(self, path, shape, options):
        import numpy
        import onnxruntime

        self.clock = Clock(options.cpu_time)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = options.threads
        settings.log_severity_level = 3
        settings.add_session_config_entry("session.set_denormal_as_zero", "1")
        self.session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
        x = numpy.random.default_rng(1).random(shape, dtype=numpy.float32)
        self.feed = {self.session.get_inputs()[0].name: x}

    def turn(self, mode):
        return [self.clock.time(lambda: self.session.run(None, self.feed)) for _ in range(1 + TURN)][1:]


def bench_command(path, shape, options):
    size = f"{shape[3]}x{shape[2]}"
    return [options.binary, "model", "bench", path, "--size", size, "--threads", str(options.threads)]


class Ours:
    """evenkeel, in a process of its own that waits for orders."""

    def __init__(self, path, shape, options):
        command = [*bench_command(path, shape, options), "--respond"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.cpu_time = options.cpu_time

    def order(self, mode, count):
        self.process.stdin.write(f"{mode} {count}\n")
        self.process.stdin.flush()
        return [float(time) for time in self.process.stdout.readline().split()]

    def processor_ms(self):
        """What all threads of the process have run for so far."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e6

    def turn(self, mode):
        if not self.cpu_time:
            return self.order(mode, 1 + TURN)[1:]
        self.order(mode, 1)
        times = []
        for _ in range(TURN):
            before = self.processor_ms()
            self.order(mode, 1)
            times.append(self.processor_ms() - before)
        return times

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- measuring


def status_mb(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) / 1024


def torch_memory(name, path, shape, options):
    """Run in a fresh process: the growth of the resident set from a loaded network through forward + gradient."""
    peer = Torch(name, path, shape, options, channels_last=False)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forget the peak of loading
    before = status_mb("VmHWM")
    for _ in range(3):
        peer.gradient()
    print(json.dumps(status_mb("VmHWM") - before))


def peers_of(name, path, shape, options):
    """The peers that can run the file, and why others cannot."""
    makers = {
        "onnxruntime": lambda: OnnxRuntime(path, shape, options),
        "pytorch": lambda: Torch(name, path, shape, options, False),
        "pytorch channels last": lambda: Torch(name, path, shape, options, True),
    }
    peers, refused = {"evenkeel": Ours(path, shape, options)}, {}
    for label, make in makers.items():
        try:
            peers[label] = make()
            peers[label].turn("forward")
            if label != "onnxruntime":
                peers[label].turn("gradient")
        except Exception as error:
            peers.pop(label, None)
            refused[label] = f"{type(error).__name__}: {str(error).splitlines()[0][:100] if str(error) else ''}"
    return peers, refused


def medians(peers, mode, options):
    active = {label: peer for label, peer in peers.items() if mode == "forward" or label != "onnxruntime"}
    times = {label: [] for label in active}
    peers["evenkeel"].turn(mode)
    started = time.perf_counter()
    for _ in range(options.rounds):
        for label, peer in active.items():
            time.sleep(PAUSE_SECONDS)
            times[label].extend(peer.turn(mode))
        if time.perf_counter() - started > options.seconds:
            break
    middle = min if options.least else statistics.median
    return {label: middle(values) for label, values in times.items()}


def memory_ratio(name, path, shape, options):
    command = [sys.executable, __file__, "--torch-memory", name, str(path), *map(str, shape), "--threads", str(options.threads)]
    theirs = subprocess.run(command, capture_output=True, text=True)
    report = subprocess.run([*bench_command(path, shape, options), "--rounds", "3", "--json"],
                            capture_output=True, text=True)  # fmt: skip
    if theirs.returncode or report.returncode:
        return None
    mine = json.loads(report.stdout)["gradient"]["resident_growth_bytes"] / 2**20
    return mine, json.loads(theirs.stdout.splitlines()[-1])


def compare(name, path, shape, options):
    peers, refused = peers_of(name, path, shape, options)
    row = {"network": name, "shape": list(shape), "refused": refused}
    facts = subprocess.run([*bench_command(path, shape, options), "--rounds", "1", "--json"],
                           capture_output=True, text=True, check=True).stdout  # fmt: skip
    flops, peak = (json.loads(facts)[key] for key in ("flops", "fma_peak_gflops_per_second"))
    for mode in ("forward", "gradient"):
        found = medians(peers, mode, options)
        mine = found["evenkeel"]
        torches = [value for label, value in found.items() if label.startswith("pytorch")]
        row[mode] = {"ms": found, "to_pytorch": min(torches) / mine if torches else None}
        row[mode]["to_onnxruntime"] = found["onnxruntime"] / mine if "onnxruntime" in found else None
        row[mode]["share_of_peak"] = flops * (1 if mode == "forward" else 2) / mine / 1e6 / peak
    peers["evenkeel"].close()
    if options.memory and not refused.get("pytorch"):
        row["memory_mb"] = memory_ratio(name, path, shape, options)
    return row


# ---- printing


def ratio(value):
    return "     -" if value is None else f"{value:5.2f}x"


def print_row(row):
    forward, gradient = row["forward"], row["gradient"]
    best = lambda found: min((v for k, v in found.items() if k.startswith("pytorch")), default=math.nan)  # noqa: E731
    memory = row.get("memory_mb")
    told = f"{memory[0]:5.0f} of {memory[1]:5.0f} MB, {memory[0] / memory[1]:.2f}" if memory and memory[1] > 0 else ""
    print(
        f"{row['network'][:30]:30} {'x'.join(map(str, row['shape'][2:])):>8}"
        f" | {forward['ms']['evenkeel']:8.2f} {forward['ms'].get('onnxruntime', math.nan):8.2f} {best(forward['ms']):8.2f}"
        f" {ratio(forward['to_onnxruntime'])} {ratio(forward['to_pytorch'])} {100 * forward['share_of_peak']:4.0f} %"
        f" | {gradient['ms']['evenkeel']:8.2f} {best(gradient['ms']):8.2f} {ratio(gradient['to_pytorch'])}"
        f" {100 * gradient['share_of_peak']:4.0f} % | {told}",
        flush=True,
    )
    for label, why in row["refused"].items():
        print(f"    {label} does not run it: {why}", flush=True)


def mean(values):
    values = [value for value in values if value]
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def summary(rows):
    kinds = {"convolutional": [r for r in rows if not r["network"].startswith(TRANSFORMERS)],
             "transformers": [r for r in rows if r["network"].startswith(TRANSFORMERS)], "all": rows}  # fmt: skip
    print("\ngeometric means (networks)")
    for kind, group in kinds.items():
        pick = lambda mode, key: [r[mode][key] for r in group]  # noqa: B023, E731
        columns = [("forward to onnxruntime", "forward", "to_onnxruntime"), ("forward to PyTorch", "forward", "to_pytorch"),
                   ("forward + gradient to PyTorch", "gradient", "to_pytorch")]  # fmt: skip
        told = [f"{title} {ratio(mean(pick(mode, key))).strip()}, least {ratio(min(filter(None, pick(mode, key)), default=None)).strip()}"
                for title, mode, key in columns]  # fmt: skip
        if group:
            print(f"  {kind} ({len(group)}): {'; '.join(told)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", help="those whose name contains one of these; all if none is given")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each peer")
    parser.add_argument("--seconds", type=float, default=25.0, help="no further round of a network after this long")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cpu-time", action="store_true", help="processor time of one thread")
    parser.add_argument("--least", action="store_true", help="the least time instead of the median")
    parser.add_argument("--exports", type=pathlib.Path, default=HERE.parent / "target" / "suite")
    parser.add_argument("--binary", type=pathlib.Path, default=BINARY, help="the evenkeel to measure")
    parser.add_argument("--json", type=pathlib.Path, help="write everything measured to this file")
    parser.add_argument("--no-memory", dest="memory", action="store_false")
    parser.add_argument("--torch-memory", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.torch_memory:
        name, path, *shape = options.torch_memory
        return torch_memory(name, pathlib.Path(path), tuple(map(int, shape)), options)
    if options.cpu_time:
        options.threads = 1
    if options.quick:
        options.networks, options.memory = options.networks or QUICK, False
        options.rounds, options.seconds = min(options.rounds, 3), min(options.seconds, 3.0)
    found = networks(options.exports, options.networks)
    print(f"{options.threads} threads, {'processor time' if options.cpu_time else 'wall-clock time'}, {'least' if options.least else 'medians'} of up to"
          f" {options.rounds * TURN} (ms); ratios are peer / evenkeel")  # fmt: skip
    print(f"{'':39} | forward: evenkeel, onnxruntime, PyTorch, ratios, of peak | forward + gradient: evenkeel, PyTorch, ratio,"
          " of peak | memory")  # fmt: skip
    rows = []
    for name, path, shape in found:
        rows.append(compare(name, path, shape, options))
        print_row(rows[-1])
    if rows:
        summary(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
