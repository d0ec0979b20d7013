"""The Python package beside its peers: what a PyTorch module and its export agree on, and ratios of time in one run.

    pip install ./crates/evenkeel-python && cargo build --release -p evenkeel --example defence_time
    python bench/python.py [PART ...] [--data DIR]        # PART: agreement, steps, engine, overhead; all of them if left out

needs torch, torchvision, onnx, onnxscript and torchattacks, and for the first three parts `shared/data` (or $EVENKEEL_DATA): ResNet-20 with its trained weights and
CIFAR-10 images. `agreement` holds a module to its own ONNX export through the engine; `steps` is PGD on the module beside torchattacks'; `engine` is a whole
defence with the engine beside the same with the module; `overhead` is a defence through the package beside the library's own. Processor time is that
of the process, all threads together; sides take turns, and the least of the rounds counts, so that a busy machine disturbs little.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import evenkeel as ek

HERE = pathlib.Path(__file__).resolve().parent
TIMER = HERE.parent / "target/release/examples/defence_time"
sys.path.insert(0, str(HERE.parent / "crates/evenkeel-python/tests"))


def data_folder(given=None):
    """Where the networks and images are, or None."""
    places = [given, os.environ.get("EVENKEEL_DATA"), *(up / "shared/data" for up in HERE.parents)]
    return next((pathlib.Path(place) for place in places if place and (pathlib.Path(place) / "models").is_dir()), None)


def in_turns(sides, rounds, clock=time.process_time):
    """For each side what it made last, and the least time that it took."""
    made, took = {}, {name: [] for name in sides}
    for _ in range(rounds):
        for name, work in sides.items():
            started = clock()
            made[name] = work()
            took[name].append(clock() - started)
    return made, {name: min(times) for name, times in took.items()}


def pair(data, folder):
    """ResNet-20 as a module, the model of it, and the model of its export."""
    import networks

    module = networks.trained(data)
    fields = {"task": "classification", "feature": "layer3", "mean": networks.MEAN, "std": networks.STD}
    ours = ek.from_torch(module, output="linear", size=(32, 32), **fields)
    return module, ours, networks.exported(module, pathlib.Path(folder) / "resnet20.onnx", (32, 32), **fields)


#: Steps of the defences that PGD's images are judged through, so that the module's fifty take minutes.
STEPS = 5
SITUATIONS = {
    "bare": lambda model: model,
    "default defence": lambda model: ek.Pipeline(model, defence=ek.defence("equivariance", steps=STEPS)),
    "published defence": lambda model: ek.Pipeline(model, defence=ek.defence("equivariance", schedule="paper", views="reference", steps=STEPS)),
}


def agreement(data, count=50):
    """The greatest difference of features, of gradients (relative to the largest), and of the inner products; and who is right under PGD."""
    import networks

    images, labels = networks.cifar(data, count)
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        module, ours, engine = pair(data, folder)
        found = {"features": 0.0, "gradients": 0.0, "identity": identity(module, ours, images[0])}
        for image in images[:10]:
            a, b = ours.tensors(image), engine.tensors(image)
            found["features"] = max(found["features"], *(float(np.abs(x - y).max()) for x, y in zip(a.values(), b.values())))
            cotangents = [random.standard_normal(one.shape).astype(np.float32) for one in a.values()]
            mine, theirs = ours.gradient(image, dict(zip(a, cotangents))), engine.gradient(image, dict(zip(b, cotangents)))
            found["gradients"] = max(found["gradients"], float(np.abs(mine - theirs).max() / np.abs(theirs).max()))
        outcomes = {}
        for what, make in SITUATIONS.items():
            right = []
            for model in (ours, engine):
                attacked = ek.attack(make(model), images, labels, "pgd", epsilon=1 / 255, steps=10, estimator=None)
                right.append(np.array([one.prediction.label == label for one, label in zip(attacked, labels)]))
            outcomes[what] = (int(right[0].sum()), int(right[1].sum()), int((right[0] != right[1]).sum()))
    return {**found, "outcomes": outcomes}


def identity(module, model, image):
    """<J v, c> by differences in double precision beside <v, J' c> by the bridge: the difference relative to |J v| |c|."""
    import copy

    import networks
    import torch

    random = np.random.default_rng(1)
    double = copy.deepcopy(module).double()
    mean, std = (torch.tensor(one, dtype=torch.float64).view(1, 3, 1, 1) for one in (networks.MEAN, networks.STD))

    def scores(x):
        with torch.no_grad():
            return double((x - mean) / std).numpy()

    x = torch.from_numpy(image).permute(2, 0, 1)[None].double() / 255
    direction = random.standard_normal(tuple(x.shape))
    step = 1e-6
    moved = (scores(x + step * torch.from_numpy(direction)) - scores(x - step * torch.from_numpy(direction))) / (2 * step)
    cotangent = random.standard_normal(moved.shape).astype(np.float32)
    left, right = float((moved * cotangent).sum()), float((model.gradient(image, {"linear": cotangent}) * direction[0]).sum())
    return abs(left - right) / float(np.linalg.norm(moved) * np.linalg.norm(cotangent))


def steps(data, count=50, timed=4, rounds=9):
    """Accuracy under PGD by this package and by torchattacks; our time per image as a share of theirs, and the same for a gradient step more."""
    import networks
    import torch
    import torchattacks

    images, labels = networks.cifar(data, count)
    module = networks.trained(data)
    model = ek.from_torch(module, task="classification", output="linear", feature="layer3", mean=networks.MEAN, std=networks.STD, size=(32, 32))
    mean, std = (torch.tensor(one).view(1, 3, 1, 1) for one in (networks.MEAN, networks.STD))
    truth = torch.from_numpy(labels)

    def normal(images):
        return (torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255 - mean) / std

    def theirs(steps, some):
        attack = torchattacks.PGD(module, eps=2 / 255, alpha=0.5 / 255, steps=steps, random_start=True)
        attack.set_normalization_used(mean=list(networks.MEAN), std=list(networks.STD))
        tensors = normal(images)
        return torch.cat([attack(tensors[k : k + 1], truth[k : k + 1]) for k in range(some)])

    def ours(steps, some):
        settings = {"epsilon": 2 / 255, "step_size": 0.5 / 255, "steps": steps}
        return [ek.attack(model, images[k], int(labels[k]), "pgd", **settings) for k in range(some)]

    def accuracy(tensors):
        with torch.no_grad():
            return float((module(tensors).argmax(1) == truth).float().mean())

    torch.manual_seed(0)
    # the module itself judges both; ours on the eight-bit images that the attack gave
    strength = {"ours": accuracy(normal([one.image for one in ours(20, count)])), "theirs": accuracy(theirs(20, count))}
    sides = {(name, number): (lambda work=work, number=number: work(number, timed)) for name, work in (("ours", ours), ("theirs", theirs)) for number in (20, 60)}
    _, took = in_turns(sides, rounds)
    whole = took["ours", 20] / took["theirs", 20]
    each = {name: 1e3 * (took[name, 60] - took[name, 20]) / (40 * timed) for name in ("ours", "theirs")}
    return {**strength, "ratio": each["ours"] / each["theirs"], "whole": whole, "milliseconds": each}


def engine(data, count=4, rounds=2):
    """How many times the processor time of a whole default defence with the engine the module needs: for ResNet-20 and for two networks of torchvision."""
    import networks
    import torch
    import torchvision

    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        _, ours, theirs = pair(data, folder)
        cases = {"ResNet-20, 32x32": (ours, theirs, networks.cifar(data, count)[0])}
        fields = {"mean": networks.MEAN, "std": networks.STD}
        resnet = torchvision.models.resnet18(weights=None).eval()
        lraspp = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=19).eval()
        for name, module, task, output, feature, size in [
            ("ResNet-18, 128x128", resnet, "classification", "fc", "layer4", (128, 128)),
            ("LR-ASPP MobileNetV3, 256x128", lraspp, "semantic", "out", "classifier.cbr", (128, 256)),
        ]:
            ours = ek.from_torch(module, task=task, output=output, feature=feature, size=size, **fields)
            theirs = networks.exported(module, pathlib.Path(folder) / f"{output}.onnx", size, task=task, feature=feature, **fields)
            cases[name] = (ours, theirs, [ek.scenes.render(1, size=size).image])
        for name, (ours, theirs, images) in cases.items():
            shields = {"torch": ek.Pipeline(ours, defence="equivariance"), "engine": ek.Pipeline(theirs, defence="equivariance")}
            sides = {side: (lambda shield=shield, images=images: [shield(image) for image in images]) for side, shield in shields.items()}
            _, took = in_turns(sides, rounds)
            found[name] = (took["torch"] / took["engine"], took["torch"] / len(images), took["engine"] / len(images))
    return found


def overhead(rounds=8):
    """What the package adds to the default defence of a 256x128 scene: as a share of the library's call inside it (median), and beside a program in Rust."""
    scene = ek.scenes.render(7).image
    shield = ek.Pipeline(ek.shipped("segmenter"), defence="equivariance")
    shares, package, program = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        picture = pathlib.Path(folder) / "scene.png"
        picture.write_bytes(ek._core.Image.from_array(scene, True).png())
        timer = None
        if TIMER.exists():
            timer = subprocess.Popen([TIMER, "segmenter", picture], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(rounds):
            started = time.perf_counter()
            verdict = shield(scene)
            package.append(time.perf_counter() - started)
            shares.append(package[-1] / verdict.seconds - 1)
            if timer is not None:
                timer.stdin.write("\n")
                timer.stdin.flush()
                program.append(float(timer.stdout.readline()))
        if timer is not None:
            timer.stdin.close()
            timer.wait()
    beside = min(package) / min(program) - 1 if program else None
    return {"inside": statistics.median(shares), "beside": beside, "milliseconds": 1e3 * min(package)}


PARTS = {"agreement": agreement, "steps": steps, "engine": engine, "overhead": lambda _: overhead()}


def measured(part, data):
    """What a part finds, in a process of its own with one thread: threads that wait for work would count as processor time."""
    one = {**os.environ, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, part, "--json", *(["--data", str(data)] if data else [])]
    return json.loads(subprocess.run(command, env=one, check=True, stdout=subprocess.PIPE, text=True).stdout)


def show(part, found):
    if part == "agreement":
        print(f"ResNet-20 and its export: features differ by {found['features']:.1e}, gradients by {found['gradients']:.1e} of the largest")
        print(f"inner products of the bridge differ by {found['identity']:.1e} of the lengths")
        for what, (ours, theirs, differ) in found["outcomes"].items():
            print(f"PGD on 50 images, {what}: {ours} right with torch, {theirs} with the engine; {differ} differ")
    elif part == "steps":
        print(f"accuracy {found['ours']:.2f} under our PGD, {found['theirs']:.2f} under torchattacks'")
        each = found["milliseconds"]
        print(f"processor time of an image's gradient step: {each['ours']:.2f} ms, torchattacks {each['theirs']:.2f} ms: {found['ratio']:.2f} times theirs")
        print(f"of a whole attack of twenty steps, with the answers before and after: {found['whole']:.2f} times theirs")
    elif part == "engine":
        for name, (ratio, torch_seconds, engine_seconds) in found.items():
            print(f"{name}: a defence takes {torch_seconds:.2f} s with torch, {engine_seconds:.2f} s with the engine: {ratio:.2f} times as long")
    else:
        beside = "target/release/examples/defence_time is not built" if found["beside"] is None else f"{100 * found['beside']:+.2f} % beside a program in Rust"
        print(f"a defence of a 256x128 scene, {found['milliseconds']:.0f} ms: {100 * found['inside']:+.2f} % on the library's call inside it; {beside}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", help=f"what to measure ({', '.join(PARTS)}); everything if left out")
    parser.add_argument("--data", help="where networks and images are")
    parser.add_argument("--json", action="store_true", help="measure in this process and print what was found as JSON")
    given = parser.parse_args()
    data = data_folder(given.data)
    if unknown := set(given.part) - set(PARTS):
        parser.error(f"{', '.join(unknown)}: is not one of {', '.join(PARTS)}")
    for part in given.part or PARTS:
        if data is None and part != "overhead":
            print(f"{part}: not measured, there is no shared/data (or $EVENKEEL_DATA)", file=sys.stderr)
        elif given.json:
            print(json.dumps(PARTS[part](data)))
        else:
            show(part, measured(part, data))


if __name__ == "__main__":
    main()
