"""A PyTorch module as a network: what it is taken for, what is refused, and small modules against their own ONNX exports through the engine."""

from __future__ import annotations

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import EvenkeelError

torch = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn

from networks import MEAN, STD, Maps, Small, exported  # noqa: E402


def of_small(module=None, **more):
    fields = {"task": "classification", "output": "fc", "feature": "second", "mean": MEAN, "std": STD}
    return ek.from_torch(module or Small().eval(), **{**fields, **more})


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
    with pytest.raises(EvenkeelError, match="task: what the scores mean"):
        ek.from_torch(module, output="fc", feature="second")
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
    pytest.importorskip("onnx", reason="onnx is not installed")
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
    model = ek.from_torch(module, feature=["backbone:0", "backbone:1"], multiple=32)
    images = images_of(2, (64, 128))
    assert model.task == "instance" and model.classes == 3
    assert model.output == ["output:boxes", "output:labels", "output:scores", "output:masks"]
    said = ek.from_torch(module, task="instance", feature=["backbone:0", "backbone:1"], multiple=32)
    assert said.predict(images[0]) == model.predict(images[0])
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


def test_a_module_that_lets_no_gradient_through_is_not_called_robust():
    class Detached(Small):
        def forward(self, x):
            return super().forward(x.detach())

    class Frozen(Small):
        @torch.no_grad()
        def forward(self, x):
            return super().forward(x)

    image = images_of(1, (32, 32))[0]
    for kind in (Detached, Frozen):
        for on_device in (True, False):
            model = of_small(kind().eval(), on_device=on_device)
            assert model.predict(image).label is not None
            for use in (lambda: ek.attack(model, image, 0, steps=1), lambda: ek.Pipeline(model, defence=ek.defence("equivariance", steps=1))(image)):
                with pytest.raises(EvenkeelError, match="no gradient reaches the image"):
                    use()


def test_a_callers_grad_mode_does_not_matter():
    image = images_of(1, (32, 32))[0]
    model = of_small()
    plain = ek.attack(model, image, 0, steps=2)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            again = ek.attack(model, image, 0, steps=2)
        assert np.array_equal(plain.image, again.image)


def test_precisions_and_layouts_of_modules():
    image = images_of(1, (32, 32))[0]
    plain = of_small().tensors(image, "fc")["fc"]
    for change, close in [
        (lambda m: m.double(), 1e-5),
        (lambda m: m.half(), 1e-2),
        (lambda m: m.bfloat16(), 1e-1),
        (lambda m: m.to(memory_format=torch.channels_last), 1e-5),
    ]:
        model = of_small(change(Small().eval()))
        assert np.allclose(model.tensors(image, "fc")["fc"], plain, atol=close)
        assert ek.attack(model, image, 0, steps=1).distance > 0


def test_how_pixels_become_input_is_said_in_one_way():
    image = images_of(1, (32, 32))[0]
    module = Small().eval()
    plain = of_small(module).tensors(image, "fc")["fc"]
    same = {"task": "classification", "output": "fc", "feature": "second"}
    for fields in ({"pixels": "imagenet"}, {"mean": np.array(MEAN), "std": torch.tensor(STD)}):
        assert np.allclose(ek.from_torch(module, **same, **fields).tensors(image, "fc")["fc"], plain, atol=1e-5)
    grey = ek.from_torch(module, **same, mean=0.5, std=0.25)
    assert np.array_equal(grey.tensors(image, "fc")["fc"], ek.from_torch(module, **same, mean=[0.5] * 3, std=[0.25] * 3).tensors(image, "fc")["fc"])
    assert ek.from_torch(module, **same, size=32).size == (32, 32)
    for wrong, words in [
        ({"mean": (123.7, 116.3, 103.5)}, "divide mean and std by 255"),
        ({"mean": (0.5, 0.5)}, "three numbers"),
        ({"std": "wide"}, "three numbers"),
        ({"size": "32x32"}, "height, width"),
        ({"size": (32,)}, "height, width"),
        ({"size": 0}, "height, width"),
    ]:
        with pytest.raises(EvenkeelError, match=words):
            ek.from_torch(module, **same, **wrong)
    with pytest.raises(EvenkeelError, match="exported to ONNX"):
        ek.from_torch(torch.jit.script(module), **same)


def test_what_is_reported_is_what_the_module_itself_says():
    """No success that a re-run does not confirm, on the eight-bit image, inside the budget."""
    module = Small().eval()
    model = of_small(module)
    mean, std = (torch.tensor(one).view(1, 3, 1, 1) for one in (MEAN, STD))
    images = images_of(6, (32, 32))
    with torch.no_grad():  # near the border, where a random module can be fooled
        module.fc.bias -= module((torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2) / 255 - mean) / std).mean(0)
    labels = [model.predict(image).label for image in images]
    succeeded = 0
    for image, label, attacked in zip(images, labels, ek.attack(model, images, labels, "pgd", epsilon=8 / 255, steps=10)):
        with torch.no_grad():
            said = int(module((torch.from_numpy(attacked.image).permute(2, 0, 1)[None] / 255 - mean) / std).argmax())
        assert attacked.prediction.label == said and attacked.success == (said != label)
        assert attacked.image.dtype == np.uint8 and np.abs(attacked.image.astype(int) - image.astype(int)).max() <= 8
        succeeded += attacked.success
    assert succeeded
