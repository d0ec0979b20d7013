"""The package in a process: threads, signals, memory, and ten thousand calls that make no sense."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import EvenkeelError


def test_eight_threads_give_the_bytes_of_one(segmenter):
    images = [ek.scenes.render(seed, size=(64, 128)).image for seed in range(8)]
    shield = ek.Pipeline(segmenter, defence=ek.defence("equivariance", steps=1), detector="variance")

    def one(image):
        verdict = shield(image)
        return verdict.prediction.labels.tobytes(), verdict.image.tobytes(), verdict.score

    alone = [one(image) for image in images]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, images)) == alone
    assert [(v.prediction.labels.tobytes(), v.image.tobytes(), v.score) for v in shield(images)] == alone


def test_the_interpreter_goes_on_while_the_library_works(segmenter, scene):
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    ek.attack(segmenter, scene.image, scene.labels, "pgd", steps=10)
    took = time.monotonic() - started
    stop.set()
    thread.join()
    during = [t for t in ticks if t < started + took]
    assert len(during) > 3, f"{len(during)} ticks in {took:.2f} s: the GIL was held"


FORK = """
import os, sys, evenkeel as ek
model, scene = ek.shipped("segmenter"), ek.scenes.render(1, size=(64, 128)).image
shield = ek.Pipeline(model, defence=ek.defence("equivariance", steps=1), detector="variance")

def everything():
    verdict = shield(scene)
    seen = ek.views.draw("standard", scene)
    return verdict.image.tobytes(), verdict.score, [v.prediction.labels.tobytes() for v in shield([scene] * 3)], seen[0][1].tobytes()

before = everything()
child = os.fork()
if child == 0:
    grandchild = os.fork()
    same = everything() == before
    if grandchild == 0:
        os._exit(0 if same else 1)
    os._exit(0 if same and os.waitpid(grandchild, 0)[1] == 0 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked as POSIX has it")
def test_a_process_that_was_forked_gives_the_same_bytes():
    """Workers of a data loader are forked; the threads of the library stay with the parent."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], timeout=120)
    assert done.returncode == 0


LONG = """
import time, numpy as np, evenkeel as ek
{setup}
print("ready", flush=True)
try:
    {call}
    print("ended", flush=True)
except KeyboardInterrupt:
    print("interrupted", time.monotonic(), flush=True)
"""

CALLS = {
    "attack": 'ek.attack(ek.shipped("segmenter"), ek.scenes.render(1).image, steps=100000)',
    "defence": 'ek.Pipeline(ek.shipped("segmenter"), defence=ek.defence("equivariance", steps=100000))(ek.scenes.render(1).image)',
    "batch": 'ek.shipped("segmenter").predict([ek.scenes.render(1).image] * 20000)',
    "calibration": 'ek.calibrate(ek.shipped("segmenter"), [ek.scenes.render(1).image] * 20000)',
    "corruption": 'ek.corrupt([ek.scenes.render(1).image] * 20000, "glass_blur", 5)',
    "study": 'ek.study.run(study, out=folder)',
    "tuning": 'ek.tune("embedded:segmenter", "scenes", "400@128x64", policy=folder + "/net.policy.toml", folder=folder)',
    "module": 'ek.attack(module, ek.scenes.render(1, size=(64, 64)).image, 0, steps=10000000)',
    "network in Python": 'ek.attack(model, np.full((32, 32, 3), 125, np.uint8), 0, steps=10000000)',
}

SETUPS = {
    "network in Python": """
class Own(ek.Network):
    def run(self, inputs, names):
        return [[np.array([[1 - one.mean(), one.mean()]], np.float32) if n == "scores" else one for n in names] for one in inputs]
    def trace(self, inputs, names):
        return self.run(inputs, names), lambda rows: [np.ones_like(one) for one in inputs]
model = ek.from_network(Own(), task="classification", output="scores", feature="image")
""",
    "study": """
import tempfile
folder = tempfile.mkdtemp()
study = folder + "/long.toml"
with open(study, "w") as file:
    file.write('name = "long"\\nseeds = [0]\\n[[subject]]\\nname = "segmenter"\\nmodel = "embedded:segmenter"\\ndata = "scenes"\\npath = "400@128x64"\\n')
    file.write('[[attack]]\\nkind = "pgd"\\nsteps = 1000\\n')
""",
    "tuning": "import tempfile; folder = tempfile.mkdtemp()",
    "module": """
import torch
layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 3)).eval()
module = ek.from_torch(layers, task="classification", output="3", feature="0")
""",
}


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX has them")
@pytest.mark.parametrize("what", CALLS)
def test_ctrl_c_ends_a_long_call_within_a_second(what):
    if what == "module":
        pytest.importorskip("torch", reason="torch is not installed")
    script = LONG.format(setup=SETUPS.get(what, ""), call=CALLS[what])
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().strip() == "ready"
        time.sleep(2.0)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        word, _, when = process.stdout.readline().strip().partition(" ")
        process.kill()
    assert word == "interrupted"
    # a busy machine may take its time to run either process
    assert float(when) - sent < 1.0 + os.getloadavg()[0] / (os.cpu_count() or 1)


def odd_value(chance):
    """Something that a function may be given by mistake."""
    shapes = [(), (0,), (3,), (4, 4), (0, 4, 3), (64, 64, 3), (64, 64, 1), (3, 64, 64), (2, 64, 64, 3), (1, 1, 3), (1, 2, 3, 4, 3)]
    dtypes = ["u1", "i1", "i8", "f2", "f4", "f8", ">f4", "?", "c8", "O", "U3", "M8[s]", "u8"]
    made = [
        lambda: None,
        lambda: chance.choice([-1, 0, 1, 10**6, 2**63, -(2**70), 1.5, -0.0, float("nan"), float("inf"), True]),
        lambda: chance.choice(["", "pgd", "equivariance", "4/255", "no/such", "\0", "é" * 50, "a" * 5000, "{}", "1/0"]),
        lambda: chance.choice([[], {}, (), set(), object(), int, len, b"bytes", [None], [[]], {"steps": 1}, slice(3)]),
        lambda: np.full(chance.choice(shapes), chance.choice([0, 1, 255, -3])).astype(chance.choice(["u1", "i8", "f4", "f8", ">f4", "f2", "c8"])),
        lambda: np.empty(chance.choice(shapes), chance.choice(dtypes)),
        lambda: np.full((64, 64, 3), chance.choice([np.nan, np.inf, -1.0, 7.0, 1e300])),
        lambda: np.zeros((64, 64, 3), "u1")[:: chance.choice([-1, 2, 63]), ::-1],
        lambda: np.lib.stride_tricks.as_strided(np.zeros(3, "u1"), (64, 64, 3), (0, 0, 1)),
        lambda: np.ma.masked_all((64, 64, 3)),
        lambda: np.matrix([[1, 2]]),
        lambda: ek.Instance(chance.choice([0, 99]), np.zeros((4, 4), bool)),
    ]
    return chance.choice(made)()


def odd_calls(classifier, chance):
    """A call that makes no sense, or little."""
    odd = lambda: odd_value(chance)  # noqa: E731
    image = np.zeros((64, 64, 3), np.uint8)
    knob = chance.choice(["steps", "epsilon", "norm", "views", "seed", "draws", "nonsense", "cells", "evade"])
    name = chance.choice(["pgd", "fgsm", "apgd-ce", "bpda", "square", odd()])
    calls = [
        lambda: classifier.predict(odd()),
        lambda: classifier.predict([image, odd()]),
        lambda: classifier.fit(odd()),
        lambda: classifier.tensors(image, odd()),
        lambda: classifier.gradient(image, odd()),
        lambda: classifier.gradient(image, {odd(): odd()}),
        lambda: ek.attack(odd(), image),
        lambda: ek.attack(classifier, odd(), odd(), steps=1),
        lambda: ek.attack(classifier, image, odd(), name, **{knob: odd(), "steps": 1}) if knob != "steps" else odd_steps(),
        lambda: ek.attack(classifier, image, 0, name, target=odd(), steps=1),
        lambda: ek.attack(classifier, image, 0, "pgd", views=odd(), steps=1),
        lambda: ek.Pipeline(classifier, odd()),
        lambda: ek.Pipeline(classifier, "equivariance", **{"defence_" + knob: odd()}),
        lambda: ek.Pipeline(classifier, detector="variance", threshold=odd(), seed=odd()),
        lambda: ek.Pipeline(classifier, calibration=odd()),
        lambda: ek.Pipeline(classifier, "rotation", head=odd()),
        lambda: ek.detect(classifier, odd(), odd()),
        lambda: ek.detect(classifier, image, "variance", bias=odd(), delta=odd()),
        lambda: ek.calibrate(classifier, odd(), false_alarms=odd(), truths=odd()),
        lambda: ek.corrupt(odd(), "fog", odd()),
        lambda: ek.corrupt(image, odd(), odd(), seed=odd()),
        lambda: ek.Spec(odd(), odd(), {knob: odd()}),
        lambda: ek.defence(name, **{knob: odd()}),
        lambda: ek.views.as_views(odd()),
        lambda: ek.views.draw(odd(), odd(), odd()),
        lambda: ek.load(odd()),
        lambda: ek.shipped(odd()),
        lambda: ek.datasets.open(odd(), odd(), limit=odd(), split=odd()),
        lambda: ek.scenes.render(odd(), size=odd()),
        lambda: ek.metrics.miou(odd(), odd(), odd()),
        lambda: ek.metrics.auroc(odd(), odd()),
        lambda: ek.metrics.coco(odd(), odd()),
        lambda: ek.Instance(odd(), odd(), odd()),
        lambda: ek.study.report(odd()),
        lambda: ek.from_torch(odd(), task=odd(), feature=odd()),
        lambda: ek.from_network(odd(), task=odd(), output=odd(), feature=odd()),
    ]

    def odd_steps():
        return ek.attack(classifier, image, 0, name, steps=chance.choice([0, -1, 1.5, "x", None, [], 2**70]) if name != "pgd" else -1)

    return chance.choice(calls)


def torment(classifier, count, seed):
    chance = random.Random(seed)
    raised = 0
    for _ in range(count):
        try:
            odd_calls(classifier, chance)()
        except Exception as error:
            raised += 1
            assert "internal error" not in str(error), error
    return raised


@pytest.mark.filterwarnings("ignore")
def test_calls_that_make_no_sense_raise(classifier, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert torment(classifier, 600, 0) > 400
    assert classifier.predict(np.zeros((64, 64, 3), np.uint8)).label is not None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ten_thousand_calls_that_make_no_sense_raise(classifier, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raised = torment(classifier, 10_000, 1)
    print(f"{raised} of 10000 calls raised, none ended the interpreter")
    assert raised > 7_000


def test_an_image_is_copied_once_each_way(classifier):
    """What is held besides an image while it is converted is one image of the library, whatever its form; and back, one array."""
    resource = pytest.importorskip("resource", reason="memory is read as POSIX has it")
    side = 2048
    script = f"""
import resource, numpy as np, evenkeel as ek
from evenkeel._image import as_image
small = np.zeros((8, 8, 3), np.uint8); ek._core.Image.from_array(small, True).to_uint8(True)
image = np.full(({side}, {side}, 3), 7, np.DTYPE)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak(); made, back = as_image(image); between = peak(); out = back(made); after = peak()
assert out.dtype == image.dtype and (out == image).all()
print(between - before, after - between)
"""
    pixels = side * side * 3
    for dtype, size in (("uint8", 1), ("float32", 4)):
        text = script.replace("DTYPE", dtype).replace("7, np", "7, np" if size == 1 else "0.5, np")
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
        there, back = map(int, done.stdout.split())
        slack = 4 << 20
        assert there <= 4 * pixels + slack, (dtype, there / pixels)
        assert back <= size * pixels + slack, (dtype, back / pixels)
    assert resource is not None


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(classifier, count):
    """Bytes that the process grew by over that number of predictions."""
    image = ek.scenes.render(3, size=(64, 64)).image
    shield = ek.Pipeline(classifier, defence="random")
    for _ in range(200):
        classifier.predict(image), shield(image).image
    gc.collect()
    before = resident()
    for number in range(count):
        classifier.predict(image)
        if number % 10 == 0:
            shield(image)
            with pytest.raises(EvenkeelError):
                classifier.predict(image[:2, :2])
    gc.collect()
    return resident() - before


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_memory_is_flat(classifier):
    assert growth(classifier, 600) < 8 << 20


@pytest.mark.slow
def test_memory_is_flat_over_ten_thousand_predictions(classifier):
    grown = growth(classifier, 10_000)
    print(f"10000 predictions: {grown / 2**20:+.1f} MiB")
    assert grown < 16 << 20
