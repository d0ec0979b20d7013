"""A PyTorch module as a network: against its own ONNX export through the engine, and against another library's attack.

`pytest tests/test_torch.py` runs what is quick, `-m slow` what is measured on real networks and takes minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import EvenkeelError

torch = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Small(nn.Module):
    """Convolutions with a ReLU in place after each, pooling, and a linear layer."""

    def __init__(self, classes=5):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.second = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        x = self.relu(self.norm(self.first(x)))
        x = self.relu(self.second(x))
        return self.fc(x.mean((2, 3)))


class Maps(nn.Module):
    """A segmenter that gives a dict, as torchvision's do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU())
        self.classifier = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        scores = self.classifier(self.backbone(x))
        return {"out": nn.functional.interpolate(scores, x.shape[2:], mode="bilinear"), "aux": scores}


def of_small(module=None, **more):
    fields = {"task": "classification", "output": "fc", "feature": "second", "mean": MEAN, "std": STD}
    return ek.from_torch(module or Small().eval(), **{**fields, **more})


def exported(module, path, size, **fields):
    """The module as an ONNX file behind the engine, with the names of the tensors asked for."""

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x):
            kept = []
            handle = module.get_submodule(fields["feature"]).register_forward_hook(lambda _m, _i, o: kept.append(o.clone()))
            scores = module(x)
            handle.remove()
            return scores["out"] if isinstance(scores, dict) else scores, kept[0]

    pytest.importorskip("onnx", reason="onnx is not installed")
    example = torch.rand(1, 3, *size)
    torch.onnx.export(Named().eval(), (example,), str(path), input_names=["x"], output_names=["scores", "kept"], dynamo=False)
    plain = {"order": "rgb", "scale": 1.0, "resize": "stretch", "size": size}
    return ek.load(path, **{**plain, **fields, "output": "scores", "feature": "kept"})


def images_of(count, size):
    return [ek.scenes.render(seed, size=size).image for seed in range(count)]


def test_tensors_come_in_and_go_out():
    model = of_small()
    image = torch.rand(3, 32, 32)
    same = (image.permute(1, 2, 0) * 255).round().to(torch.uint8).numpy()
    eight = (image * 255).round().to(torch.uint8)
    assert model.predict(eight) == model.predict(same)
    attacked = ek.attack(model, image, 0, steps=1)
    assert attacked.image.shape == image.shape and attacked.image.dtype == image.dtype
    assert (attacked.image - image).abs().max() < 5 / 255
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.uint8):
        given = eight if dtype == torch.uint8 else image.to(dtype)
        assert model.fit(given).dtype == dtype
    assert len(model.predict(torch.rand(3, 3, 32, 32))) == 3
    assert model.predict(image.clone().requires_grad_()) == model.predict(image)
    flipped = torch.rand(32, 3, 32).transpose(0, 1)
    assert model.fit(flipped).shape == (3, 32, 32)
    for wrong in [torch.rand(32, 32, 3), torch.rand(3), torch.zeros(3, 32, 32, dtype=torch.int64), torch.full((3, 32, 32), 2.0)]:
        with pytest.raises(EvenkeelError):
            model.predict(wrong)
    with pytest.raises(EvenkeelError):
        model.predict(torch.rand(3, 32, 32).to_sparse())
    with pytest.raises(EvenkeelError):
        model.predict(torch.empty(3, 32, 32, device="meta"))


def test_labels_may_be_tensors():
    model = ek.from_torch(Maps().eval(), task="semantic", output="out", feature="backbone")
    image = torch.rand(3, 32, 48)
    labels = torch.zeros(32, 48, dtype=torch.long)
    assert ek.attack(model, image, labels, "segpgd", steps=1).prediction.labels.shape == (32, 48)
    batch = ek.attack(of_small(), torch.rand(2, 3, 32, 32), torch.tensor([0, 1]), steps=1)
    assert len(batch) == 2


def test_what_is_kept_is_not_changed_in_place():
    module = Small().eval()
    model = of_small(module)
    image = images_of(1, (32, 32))[0]
    x = (torch.from_numpy(image).permute(2, 0, 1)[None] / 255 - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)
    with torch.no_grad():
        expected = module.second(module.relu(module.norm(module.first(x))))
    assert np.allclose(model.tensors(image)["second"], expected.numpy(), atol=1e-5)
    assert expected.min() < 0, "the ReLU in place behind it would have made this 0"


def test_the_module_is_left_as_it_was():
    module = Small().eval()
    module.first.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    flags = [p.requires_grad for p in module.parameters()]
    model = of_small(module)
    image = images_of(1, (32, 32))[0]
    shield = ek.Pipeline(model, defence=ek.defence("equivariance", steps=2), detector="variance")
    ek.attack(shield, image, 0, "pgd", steps=2)
    assert [p.requires_grad for p in module.parameters()] == flags
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())
    assert all(not one._forward_hooks for one in module.modules()) and not module.training


def test_what_cannot_be_meant_is_refused():
    shared = Small().eval()
    module = Small().eval()
    for bad, words, fields in [
        (Small(), "training mode", {}),
        (nn.DataParallel(Small().eval()), "DataParallel", {}),
        ("module", "nn.Module", {}),
        (module, "no submodule", {"feature": "third"}),
        (module, "2 times", {"feature": "relu"}),
        (module, "only 2 times", {"feature": "relu#2"}),
        (module, "after #", {"feature": "relu#x"}),
        (module, "no such part", {"feature": "second:map"}),
    ]:
        with pytest.raises(EvenkeelError, match=words):
            model = of_small(bad, **fields)
            model.tensors(images_of(1, (32, 32))[0])
    assert of_small(module, feature="relu#1").tensors(images_of(1, (32, 32))[0])["relu#1"].min() >= 0
    with pytest.raises(EvenkeelError, match="name a part"):
        ek.from_torch(Maps().eval(), task="semantic", feature="backbone")
    model = of_small(shared)
    shared.train()
    with pytest.raises(EvenkeelError, match="training mode"):
        model.predict(images_of(1, (32, 32))[0])
    partly = Small().eval()
    partly.norm.train()
    with pytest.raises(EvenkeelError, match="training mode .norm"):
        of_small(partly)


def test_an_exception_of_the_module_is_the_cause():
    class Broken(Small):
        def forward(self, x):
            if x.shape[-1] > 70:
                raise MemoryError("too large on purpose")
            return super().forward(x)

    model = of_small(Broken().eval())
    with pytest.raises(EvenkeelError, match="too large on purpose") as raised:
        model.predict(images_of(1, (32, 96))[0])
    assert isinstance(raised.value.__cause__, MemoryError)


def test_views_of_a_step_go_through_together():
    sizes = []

    class Counted(Small):
        def forward(self, x):
            sizes.append(tuple(x.shape))
            return super().forward(x)

    model = of_small(Counted().eval())
    sizes.clear()
    image = images_of(1, (32, 32))[0]
    views = ek.views.of([{"kind": "rotate", "degrees": [-10, 10]}] * 6)
    ek.Pipeline(model, defence=ek.defence("equivariance", steps=1, views=views))(image)
    assert (6, 3, 32, 32) in sizes, sizes
    sizes.clear()
    ek.Pipeline(model, defence=ek.defence("equivariance", steps=1))(image)
    assert len(sizes) < 1 + 8 + 1, sizes


def test_the_inner_product_identity_holds():
    """<J v, c> by differences in double precision is <v, J' c> by the bridge."""
    module = Small().eval()
    model = of_small(module)
    random = np.random.default_rng(0)
    image = images_of(1, (32, 32))[0]
    double = Small().eval().double()
    double.load_state_dict(module.state_dict())
    x = torch.from_numpy(image).permute(2, 0, 1)[None].double() / 255

    def tensors(x):
        kept = {}
        handle = double.second.register_forward_hook(lambda _m, _i, o: kept.update(second=o.clone()))
        normal = (x - torch.tensor(MEAN).double().view(1, 3, 1, 1)) / torch.tensor(STD).double().view(1, 3, 1, 1)
        with torch.no_grad():
            kept["fc"] = double(normal)
        handle.remove()
        return kept

    direction = torch.from_numpy(random.standard_normal(x.shape))
    step = 1e-6
    up, down = tensors(x + step * direction), tensors(x - step * direction)
    for names in (["fc"], ["second"], ["fc", "second"]):
        cotangents = {name: random.standard_normal(up[name].shape).astype(np.float32) for name in names}
        left = sum(float(((up[n] - down[n]) / (2 * step) * torch.from_numpy(c)).sum()) for n, c in cotangents.items())
        right = float((model.gradient(image, cotangents) * direction[0].numpy()).sum())
        assert left == pytest.approx(right, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("make", ["classifier", "segmenter"])
def test_a_module_and_its_export_agree(make, tmp_path):
    if make == "classifier":
        module, size, feature = Small().eval(), (32, 32), "second"
        fields = {"task": "classification", "feature": feature, "mean": MEAN, "std": STD}
        ours = ek.from_torch(module, output="fc", size=size, **fields)
    else:
        module, size, feature = Maps().eval(), (32, 48), "backbone"
        fields = {"task": "semantic", "feature": feature, "mean": MEAN, "std": STD}
        ours = ek.from_torch(module, output="out", size=size, **fields)
    engine = exported(module, tmp_path / "net.onnx", size, **fields)
    random = np.random.default_rng(0)
    images = images_of(6, size)
    for image in images:
        a, b = ours.tensors(image), engine.tensors(image)
        for mine, theirs in zip(a.values(), b.values()):
            assert np.allclose(mine, theirs, atol=1e-4)
        cotangents = [random.standard_normal(one.shape).astype(np.float32) for one in a.values()]
        mine = ours.gradient(image, dict(zip(a, cotangents)))
        theirs = engine.gradient(image, dict(zip(b, cotangents)))
        assert np.abs(mine - theirs).max() <= 1e-3 * max(1.0, np.abs(theirs).max())
    for settings in ({"steps": 3}, {"steps": 3, "schedule": "paper", "views": "reference"}):
        defence = ek.defence("equivariance", **settings)
        for image in images[:2]:
            mine, theirs = (ek.Pipeline(m, defence=defence)(image) for m in (ours, engine))
            assert mine.trace[0].value == pytest.approx(theirs.trace[0].value, abs=1e-3)
    mine, theirs = (ek.attack(m, images, None, "pgd", steps=5) for m in (ours, engine))
    assert sum(a.success != b.success for a, b in zip(mine, theirs)) <= 1


def test_threads_share_a_module():
    model = of_small()
    images = images_of(8, (32, 32))
    shield = ek.Pipeline(model, defence=ek.defence("equivariance", steps=2))
    alone = [shield(image) for image in images]
    for one, other in zip(alone, shield(images)):
        assert np.array_equal(one.image, other.image)


def test_torchvision_networks():
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
    torch.manual_seed(0)
    image = torch.rand(3, 64, 64)
    lraspp = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5).eval()
    model = ek.from_torch(lraspp, task="semantic", output="out", feature="backbone:high", mean=MEAN, std=STD)
    verdict = ek.Pipeline(model, defence=ek.defence("equivariance", steps=1), answer="vote")(image)
    assert verdict.prediction.labels.shape == (64, 64) and model.classes == 5
    resnet = torchvision.models.resnet18(weights=None).eval()
    model = ek.from_torch(resnet, task="classification", output="fc", feature=["layer3", "layer4"], mean=MEAN, std=STD)
    assert ek.Pipeline(model, defence=ek.defence("equivariance", steps=1))(image).prediction.label is not None


SETTINGS = {
    "default": ("equivariance", {}),
    "published": ("equivariance", {"schedule": "paper", "views": "reference"}),
    "all pairs": ("equivariance", {"pairing": "all-pairs"}),
    "some cells": ("equivariance", {"cells": 0.5}),
    "averages": ("invariance", {}),
    "averages, all pairs": ("invariance", {"pairing": "all-pairs"}),
}


@pytest.mark.parametrize("what", SETTINGS)
def test_features_compared_on_the_device_give_what_the_library_gives(what):
    name, settings = SETTINGS[what]
    image = images_of(1, (32, 48))[0]
    for make in (Small, Maps):
        module = make().eval()
        fields = {"task": "classification", "output": "fc", "feature": ["second", "norm"]}
        fields = fields if make is Small else {"task": "semantic", "output": "out", "feature": "backbone"}
        verdicts = []
        for on_device in (True, False):
            model = ek.from_torch(module, mean=MEAN, std=STD, on_device=on_device, **fields)
            verdicts.append(ek.Pipeline(model, defence=ek.defence(name, steps=1, **settings))(image))
        there, here = verdicts
        assert there.trace[0].value == pytest.approx(here.trace[0].value, rel=1e-5)
        # steps are signs of gradients: rounding may turn those that are next to nothing
        assert np.mean(there.image != here.image) < 0.01
        assert there.trace[0].score == here.trace[0].score


def test_gradients_of_a_comparison_on_the_device_are_the_librarys():
    """Losses and the objective together, as an attacker who knows the defence's objective raises them."""
    image = images_of(1, (32, 32))[0]
    attacked = []
    for on_device in (True, False):
        model = of_small(on_device=on_device)
        attacked.append(ek.attack(model, image, 0, "adaptive", norm="l2", epsilon=1.0, steps=3))
    there, here = attacked
    assert [r.value for r in there.trace] == pytest.approx([r.value for r in here.trace], rel=1e-4)
    assert np.abs(there.image.astype(int) - here.image.astype(int)).max() <= 1


def test_features_that_are_compared_on_the_device_do_not_cross():
    crossed = []

    class Watched(ek._torch.TorchNetwork):
        def _rows(self, tensors, names, count):
            crossed.append(list(names))
            return super()._rows(tensors, names, count)

    fields = {"task": "classification", "output": "fc", "feature": "second", "mean": MEAN, "std": STD}
    network = Watched(Small().eval(), None, False, None, True)
    model = ek.from_network(network, **fields)
    crossed.clear()
    shield = ek.Pipeline(model, defence=ek.defence("equivariance", steps=3))
    shield(images_of(1, (32, 32))[0])
    assert crossed and all("second" not in names for names in crossed), crossed


def test_objects_of_mask_rcnn():
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
    torch.manual_seed(0)
    sizes = {"min_size": 64, "max_size": 128, "box_score_thresh": 0.05, "box_detections_per_img": 4, "rpn_post_nms_top_n_test": 20}
    module = torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=3, **sizes).eval()
    model = ek.from_torch(module, task="instance", feature=["backbone:0", "backbone:1"], multiple=32)
    images = images_of(2, (64, 128))
    assert model.classes == 3 and model.output == ["output:boxes", "output:labels", "output:scores", "output:masks"]
    with torch.no_grad():
        theirs = module([torch.from_numpy(images[0]).permute(2, 0, 1) / 255])[0]
    ours = model.predict(images[0]).instances
    assert len(ours) == len(theirs["scores"]) > 0
    assert [one.score for one in ours] == pytest.approx(theirs["scores"].tolist(), rel=1e-5)
    assert [one.label for one in ours] == theirs["labels"].tolist()
    assert np.mean(ours[0].mask != (theirs["masks"][0, 0].numpy() >= 0.5)) < 0.01
    verdict = ek.Pipeline(model, defence=ek.defence("equivariance", steps=1), detector="variance")(images[0])
    assert verdict.defended and verdict.prediction.instances is not None and verdict.score is not None
    attacked = ek.attack(model, images[1], None, "pgd", epsilon=8 / 255, steps=2)
    assert attacked.score < attacked.score_before, "what was found is lost"


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        if x.shape != y.shape:
            more = (y.shape[1] - x.shape[1]) // 2
            x = nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, more, more))
        return torch.relu(x + y)


class Resnet20(nn.Module):
    """The CIFAR network of He et al., with zero padding where the size changes."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*[Block(16, 16, 1) for _ in range(3)])
        self.layer2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
        self.layer3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


@pytest.fixture
def resnet20(data):
    return trained(data)


def trained(data):
    module = Resnet20()
    state = torch.load(data / "models" / "resnet20-12fca82f.th", map_location="cpu", weights_only=True)["state_dict"]
    module.load_state_dict({name.removeprefix("module."): value for name, value in state.items()})
    return module.eval()


def cifar(data, count):
    folder = data / "cifar10"
    pixels = np.fromfile(next(folder.glob("*images*")), np.uint8, count=count * 3072).reshape(count, 32, 32, 3)
    return pixels, np.fromfile(folder / "labels_u8.bin", np.uint8)[:count].astype(int)


def cpu_time(work):
    """Processor seconds of the process, all threads together."""
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


@pytest.mark.slow
def test_a_real_module_and_its_export_agree(resnet20, data, tmp_path):
    images, labels = cifar(data, 50)
    fields = {"task": "classification", "feature": "layer3", "mean": MEAN, "std": STD}
    ours = ek.from_torch(resnet20, output="linear", size=(32, 32), **fields)
    engine = exported(resnet20, tmp_path / "resnet20.onnx", (32, 32), **fields)
    random = np.random.default_rng(0)
    features, gradients = 0.0, 0.0
    for image in images[:10]:
        a, b = ours.tensors(image), engine.tensors(image)
        features = max(features, *(np.abs(x - y).max() for x, y in zip(a.values(), b.values())))
        cotangents = [random.standard_normal(one.shape).astype(np.float32) for one in a.values()]
        mine, theirs = ours.gradient(image, dict(zip(a, cotangents))), engine.gradient(image, dict(zip(b, cotangents)))
        gradients = max(gradients, np.abs(mine - theirs).max() / np.abs(theirs).max())
    print(f"features differ by {features:.1e}, gradients by {gradients:.1e} of the largest")
    assert features < 1e-4 and gradients < 1e-3
    for what, make in {
        "bare": lambda m: m,
        "default defence": lambda m: ek.Pipeline(m, defence=ek.defence("equivariance", steps=5)),
        "published defence": lambda m: ek.Pipeline(m, defence=ek.defence("equivariance", schedule="paper", views="reference", steps=5)),
    }.items():
        right = []
        for model in (ours, engine):
            attacked = ek.attack(make(model), images, labels, "pgd", epsilon=1 / 255, steps=10, estimator=None)
            right.append(sum(one.prediction.label == label for one, label in zip(attacked, labels)))
        print(f"{what}: {right[0]} of {len(images)} right under PGD with torch, {right[1]} with the engine")
        assert abs(right[0] - right[1]) <= 0.02 * len(images)


@pytest.mark.slow
def test_as_strong_and_as_quick_as_torchattacks(resnet20, data):
    torchattacks = pytest.importorskip("torchattacks", reason="torchattacks is not installed")
    images, labels = cifar(data, 50)
    model = ek.from_torch(resnet20, task="classification", output="linear", feature="layer3", mean=MEAN, std=STD, size=(32, 32))
    theirs = torchattacks.PGD(resnet20, eps=2 / 255, alpha=0.5 / 255, steps=20, random_start=True)
    theirs.set_normalization_used(mean=list(MEAN), std=list(STD))
    tensors = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    truth = torch.from_numpy(labels)
    normal = lambda x: (x - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)  # noqa: E731

    def right(attacked):
        with torch.no_grad():
            return float((resnet20(attacked).argmax(1) == truth).float().mean())

    def one_by_one_theirs():
        return torch.cat([theirs(normal(tensors[k : k + 1]), truth[k : k + 1]) for k in range(len(images))])

    def one_by_one_ours():
        return [ek.attack(model, image, int(label), "pgd", epsilon=2 / 255, step_size=0.5 / 255, steps=20) for image, label in zip(images, labels)]

    torch.manual_seed(0)
    times = {"ours": [], "theirs": []}
    for _ in range(3):
        made, took = cpu_time(one_by_one_theirs)
        times["theirs"].append(took)
        attacked, took = cpu_time(one_by_one_ours)
        times["ours"].append(took)
    strength = (np.mean([a.prediction.label == label for a, label in zip(attacked, labels)]), right(made))
    # ours evaluates once more to judge the last iterate, and twice to answer before and after
    ratio = min(times["ours"]) / min(times["theirs"])
    print(f"accuracy {strength[0]:.2f} under our PGD, {strength[1]:.2f} under torchattacks'; processor time {ratio:.2f} of theirs per image and step")
    assert strength[0] <= strength[1] + 0.02
    assert ratio < 1.3


@pytest.mark.slow
def test_the_engine_defends_faster_than_torch():
    """In a process of one thread each: threads that wait for work would count as processor time."""
    script = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_torch; test_torch.print_ratios()"
    alone = {**os.environ, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    assert float(done.stdout.split()[0]) > 2.5


def print_ratios():
    from conftest import data_folder

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        print_ratio(data_folder(), Path(folder))


def print_ratio(data, tmp_path):
    resnet20 = trained(data)
    images, _ = cifar(data, 4)
    fields = {"task": "classification", "feature": "layer3", "mean": MEAN, "std": STD}
    ours = ek.from_torch(resnet20, output="linear", size=(32, 32), **fields)
    engine = exported(resnet20, tmp_path / "resnet20.onnx", (32, 32), **fields)
    times = {}
    for _ in range(3):
        for name, model in (("torch", ours), ("engine", engine)):
            shield = ek.Pipeline(model, defence=ek.defence("equivariance"))
            _, took = cpu_time(lambda: [shield(image) for image in images])
            times.setdefault(name, []).append(took)
    ratio = min(times["torch"]) / min(times["engine"])
    print(f"{ratio:.2f} times as much processor time for a defence with the torch module as with the engine")
