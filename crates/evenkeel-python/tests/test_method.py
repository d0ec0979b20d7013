"""The method as a person uses it: verdicts, attacks, truths, pictures, objects of other tasks."""

from __future__ import annotations

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import EvenkeelError


def test_a_verdict_says_what_was_done(segmenter, scene):
    shield = ek.Pipeline(segmenter, defence="equivariance", detector="variance", threshold=0.0, defence_steps=2)
    verdict = shield(scene.image)
    assert verdict.alarm and verdict.defended and not verdict.voted
    assert verdict.score > verdict.threshold == shield.threshold == 0.0
    assert len(verdict.trace) == 2 and verdict.trace[0].step == 0
    assert verdict.image.shape == scene.image.shape and verdict.image.dtype == np.uint8
    change = np.abs(verdict.image.astype(int) - scene.image.astype(int)).max()
    epsilon = ek.defence("equivariance").values["epsilon_255"]
    assert 0 < change <= epsilon
    assert verdict.disagreement.ndim == 2 and (verdict.disagreement >= 0).all()
    silent = ek.Pipeline(segmenter, defence="equivariance", detector="variance", threshold=1e9)(scene.image)
    assert silent.alarm is False and not silent.defended and silent.prediction == segmenter.predict(scene.image)
    with pytest.raises(AttributeError):
        verdict.score = 0.0


def test_seeds_decide(segmenter, scene):
    shield = ek.Pipeline(segmenter, defence="random", seed=1)
    assert np.array_equal(shield(scene.image).image, shield(scene.image).image)
    assert not np.array_equal(shield(scene.image).image, shield.run(scene.image, seed=2).image)
    many = shield([scene.image] * 3)
    assert all(np.array_equal(one.image, shield(scene.image).image) for one in many)


def test_truths_of_every_task(segmenter, classifier, finder, scene, crop):
    attacked = ek.attack(segmenter, scene.image, scene.labels, "pgd", steps=2)
    assert 0 <= attacked.score <= attacked.score_before <= 1
    assert ek.attack(segmenter, scene.image, scene.labels.astype(np.int64), steps=2).score == attacked.score
    assert ek.attack(finder, scene.image, scene.instances, "pgd", steps=1).before.instances is not None
    label = classifier.predict(crop).label
    for truth in [label, np.int64(label), classifier.predict(crop)]:
        assert ek.attack(classifier, crop, truth, steps=1).score_before == 1.0
    for wrong in [-1, 1000, True, 1.5, "no such class", np.zeros((3, 3), int), [1, 2], object()]:
        with pytest.raises(EvenkeelError):
            ek.attack(classifier, crop, wrong, steps=1)
    for wrong in [3, np.zeros((5, 5), int), np.full((128, 256), 200), np.zeros((128, 256)), np.full((128, 256), -1)]:
        with pytest.raises(EvenkeelError):
            ek.attack(segmenter, scene.image, wrong, steps=1)


def test_a_target_is_what_the_attacker_wants(classifier, crop):
    label = classifier.predict(crop).label
    other = (label + 1) % classifier.classes
    attacked = ek.attack(classifier, crop, label, "pgd", target=other, epsilon=32 / 255, steps=20)
    assert attacked.success == (attacked.prediction.label == other)
    with pytest.raises(EvenkeelError, match="targeted"):
        ek.attack(classifier, crop, label, "apgd-dlr", target=other, steps=1)


def test_several_attacks_keep_the_worst(classifier, crop):
    each = [ek.attack(classifier, crop, None, "fgsm"), ek.attack(classifier, crop, None, "pgd", steps=2)]
    worst = ek.attack(classifier, crop, None, ["fgsm", "pgd"], steps=2)
    assert worst.score == min(one.score for one in each)
    with pytest.raises(EvenkeelError, match="aim through"):
        ek.attack(classifier, crop, None, "bpda")


def test_batches_of_attacks_are_the_single_ones(classifier):
    images = np.stack([ek.scenes.render(seed, size=(64, 64)).image for seed in range(3)])
    labels = [classifier.predict(image).label for image in images]
    done = []
    batch = ek.attack(classifier, images, labels, "pgd", steps=2, progress=done.append)
    for image, label, one in zip(images, labels, batch):
        alone = ek.attack(classifier, image, label, "pgd", steps=2)
        assert np.array_equal(alone.image, one.image) and alone.trace == one.trace
    assert done and done[-1] == 3
    with pytest.raises(EvenkeelError, match="3 images, but 2 truths"):
        ek.attack(classifier, images, labels[:2])


def test_heads_come_with_the_shipped_networks(segmenter, scene):
    for name in ("rotation", "contrastive"):
        verdict = ek.Pipeline(segmenter, defence=ek.defence(name, steps=1), detector=name)(scene.image)
        assert verdict.defended and verdict.score is not None


def test_objects(finder, scene):
    said = finder.predict(scene.image)
    assert said.labels is None and said.label is None and said.task == "instance"
    for one in said.instances:
        assert one.mask.shape == (128, 256) and one.mask.dtype == bool and one.mask.sum() == one.area
        left, top, right, bottom = one.box
        assert left <= right and top <= bottom and 0 <= one.score <= 1
    mask = np.zeros((128, 256), bool)
    mask[4:9, 10:30] = True
    own = ek.Instance(1, mask)
    assert own.box == (10.0, 4.0, 30.0, 9.0) and own.area == 100
    with pytest.raises((EvenkeelError, TypeError)):
        ek.Instance(1, np.zeros((3, 3)))


def test_where_views_disagree_for_every_task(segmenter, classifier, finder, scene, crop):
    for model, image in ((segmenter, scene.image), (classifier, crop), (finder, scene.image)):
        verdict = ek.Pipeline(model, detector="variance")(image)
        there = verdict.disagreement
        assert there.ndim == 2 and there.dtype == np.float32 and 0 <= there.min() and 0 < there.max() <= 1
        assert verdict.disagreement is there
    edges = ek.Pipeline(finder, detector="variance")(scene.image).disagreement
    assert edges.shape == (128, 256)
    found = np.any([one.mask for one in finder.predict(scene.image).instances if one.score > 0.5], axis=0)
    assert edges[found].mean() > edges[~found].mean(), "views disagree about objects, not about the empty street"


def test_label_maps_are_read_only(segmenter, scene):
    labels = segmenter.predict(scene.image).labels
    with pytest.raises(ValueError):
        labels[0, 0] = 3
    assert labels is not None and labels.dtype == np.uint16


def test_pictures_for_notebooks(segmenter, classifier, finder, scene, crop):
    shield = ek.Pipeline(segmenter, defence="random")
    things = [
        shield(scene.image),
        ek.attack(segmenter, scene.image, steps=1),
        ek.attack(classifier, crop, steps=1),
        ek.Pipeline(finder)(scene.image),
    ]
    for thing in things:
        assert thing._repr_png_().startswith(b"\x89PNG")
        page = thing._repr_html_()
        assert page.count("data:image/png;base64,") == 2 and "http" not in page and len(page) < 400_000
    for model in (segmenter, classifier, finder):
        page = model._repr_html_()
        assert page.count("<img") == model.classes and model.feature[0] in page and "http" not in page and len(page) < 50_000
        assert model._repr_png_().startswith(b"\x89PNG")
    assert repr(shield).startswith("Pipeline(Model(segmenter")


class Brightness(ek.Network):
    """Two classes, dark and light, by the mean of the pixels; the image itself is the feature."""

    def run(self, inputs, names):
        return [[self.tensor(one, name) for name in names] for one in inputs]

    @staticmethod
    def tensor(one, name):
        mean = np.float32(one.mean())
        return np.array([[1 - mean, mean]], np.float32) if name == "scores" else one

    def trace(self, inputs, names):
        def pullback(cotangents):
            made = []
            for one, row in zip(inputs, cotangents):
                gradient = np.zeros_like(one)
                for name, cotangent in zip(names, row):
                    if cotangent is not None and name == "scores":
                        gradient += (cotangent[0, 1] - cotangent[0, 0]) / one.size
                    elif cotangent is not None:
                        gradient += cotangent
                made.append(gradient)
            return made

        return self.run(inputs, names), pullback


def test_a_network_of_ones_own():
    model = ek.from_network(Brightness(), task="classification", output="scores", feature="image", names=["dark", "light"])
    dark = np.full((32, 32, 3), 125, np.uint8)
    assert model.predict(dark).name == "dark"
    attacked = ek.attack(model, dark, 0, "pgd", epsilon=8 / 255, steps=8)
    assert attacked.success and attacked.prediction.label == 1
    verdict = ek.Pipeline(model, defence=ek.defence("equivariance", steps=2), detector="variance")(dark)
    assert verdict.defended and verdict.score is not None
    cotangents = {"scores": np.array([[0.0, 1.0]], np.float32)}
    assert np.allclose(model.gradient(dark, cotangents), 1 / dark.size)


def test_what_a_network_of_ones_own_raises_is_the_cause():
    class Broken(Brightness):
        def run(self, inputs, names):
            raise ZeroDivisionError("on purpose")

    class Wrong(Brightness):
        def __init__(self, answer):
            self.answer = answer

        def run(self, inputs, names):
            return self.answer

    fields = {"task": "classification", "output": "scores", "feature": "image"}
    with pytest.raises(EvenkeelError, match="on purpose") as raised:
        ek.from_network(Broken(), **fields)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    for answer in [None, [], [[]], [[3]], [["x"]], [[np.zeros(2)]], [[np.zeros((1, 2), np.float32)] * 2], [[np.full((1, 2), np.nan, np.float32)]]]:
        with pytest.raises(EvenkeelError):
            ek.from_network(Wrong(answer), **fields)
    with pytest.raises(EvenkeelError):
        ek.from_network(ek.Network(), **fields)


def test_contracts_as_arguments(commands, tmp_path):
    model = ek.load(commands.classifier)
    assert ek.load(commands.classifier, names=[f"class {k}" for k in range(model.classes)]).class_names[2] == "class 2"
    alone = tmp_path / "alone.onnx"
    alone.write_bytes(commands.classifier.read_bytes())
    with pytest.raises(EvenkeelError, match="alone.evenkeel.toml"):
        ek.load(alone)
    with pytest.raises(EvenkeelError, match="order .*scale .*mean .*std"):
        ek.load(alone, task="classification")
    guessed = ek.load(alone, task="classification", pixels="imagenet", feature="auto")
    assert guessed.classes == model.classes and guessed.feature
    with pytest.raises(EvenkeelError, match="is not one of"):
        ek.load(alone, task="classification", pixels="magic")
    fields = {"task": "classification", "output": model.output, "feature": model.feature, "order": "rgb", "scale": 1.0}
    own = ek.load(alone, **fields, mean=(0, 0, 0), std=np.ones(3), resize="stretch", size=(64, 64))
    assert own.output == model.output and own.class_names == []
    for wrong in [{"colour": 3}, {"task": "magic"}, {"std": (0, 0, 0)}, {"output": "nothing"}, {"mean": object()}, {"scale": float("nan")}]:
        with pytest.raises(EvenkeelError):
            ek.load(commands.classifier, **wrong)
    for missing in ["no.onnx", tmp_path]:
        with pytest.raises(EvenkeelError):
            ek.load(missing)


def test_what_is_reported_is_what_a_second_look_finds(classifier):
    """Success and scores hold for the eight-bit image that is given back, on its own and through the pipeline."""
    images = [ek.scenes.render(seed, size=(64, 64)).image for seed in range(4)]
    labels = [classifier.predict(image).label for image in images]
    shield = ek.Pipeline(classifier, defence=ek.defence("equivariance", steps=1), answer="vote")
    for target, steps in ((classifier, 8), (shield, 2)):
        for image, label, attacked in zip(images, labels, ek.attack(target, images, labels, "pgd", epsilon=8 / 255, steps=steps)):
            again = target.predict(attacked.image)
            assert again == attacked.prediction and attacked.score == float(again.label == label)
            assert attacked.success == (attacked.before.label == label and again.label != label)
            assert np.abs(attacked.image.astype(int) - image.astype(int)).max() <= 8
            assert attacked.distance == pytest.approx(np.abs(attacked.image / 255 - image / 255).max(), abs=1e-6)


def test_more_steps_and_a_wider_budget_are_no_weaker(segmenter, scene):
    scores = [ek.attack(segmenter, scene.image, scene.labels, "pgd", epsilon=e / 255, steps=s).score_before_rounding for e, s in ((1, 1), (1, 8), (8, 8))]
    assert scores[0] >= scores[1] >= scores[2]


def test_an_unaware_attacker_and_a_knowing_one_are_told_apart(segmenter):
    scene = ek.scenes.render(3, size=(64, 128))
    shield = ek.Pipeline(segmenter, defence=ek.defence("equivariance", steps=1))
    plain = ek.attack(segmenter, scene.image, scene.labels, "pgd", steps=2)
    unaware = ek.attack(shield, scene.image, scene.labels, "pgd", steps=2, estimator=None)
    knowing = ek.attack(shield, scene.image, scene.labels, "pgd", steps=2)
    assert np.array_equal(plain.image, unaware.image), "the bare network was attacked"
    assert not np.array_equal(knowing.image, unaware.image)
    assert unaware.prediction == shield(unaware.image).prediction != plain.prediction


def test_reprs_are_one_short_line(segmenter, classifier, finder, scene, crop):
    shield = ek.Pipeline(segmenter, defence="random", detector="variance", threshold=0.0)
    for thing in [
        shield,
        shield(scene.image),
        ek.attack(classifier, crop, steps=1),
        segmenter.predict(scene.image),
        finder.predict(scene.image),
        ek.detect(classifier, crop),
        ek.views.standard(),
        ek.datasets.open("scenes", "3@64x32"),
        scene.instances[0],
    ]:
        assert "\n" not in repr(thing) and len(repr(thing)) < 300, repr(thing)
    assert repr(ek.views.standard()) == "Views(resize, resize, resize, resize, rotate, rotate, colour, flip)"
