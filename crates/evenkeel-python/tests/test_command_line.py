"""Same bytes as the command line for the same settings and seed, over the tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek

#: Few steps, so that the whole table is quick; the same for both.
QUICK = {"steps": 2, "warm_steps": 0, "draws": 2, "targets": 2, "final_draws": 2}


def flags(given, prefix=""):
    words = []
    for name, value in given.items():
        words.append(f"--{prefix}{name.replace('_', '-')}")
        words.append(str(value))
    return words


def settings_for(name):
    entry = next(entry for entry in ek._settings.TABLES["attack"] if entry["name"] == name)
    reads = {knob["name"] for knob in entry["settings"]}
    given = {knob: value for knob, value in QUICK.items() if knob in reads and knob not in ("warm_steps", "draws")}
    return {**given, "seed": 5}


@pytest.mark.parametrize("name", [n for n in ek.names("attack")])
def test_attacks_on_the_bare_network(commands, read, name):
    model = ek.load(commands.classifier)
    given = settings_for(name)
    looks = ek._settings.TABLES["attack"]
    through = name in {"bpda", "bpda-eot", "fixed-seed", "unrolled", "unrolled-eot"}
    assert any(entry["name"] == name for entry in looks)
    defence = {"steps": 1}
    words = ["attack", commands.classifier, commands.crop, "--attack", name, *flags(given), "--json", "--out", "attacked"]
    target = model
    if through:
        words += ["--defence", "equivariance", *flags(defence, "defence-")]
        target = ek.Pipeline(model, defence=ek.defence("equivariance", **defence))
    (told,) = commands.run(*words)
    ours = ek.attack(target, commands.crop, None, name, **given)
    assert np.array_equal(ours.image, read(commands.folder / told["saved"]))
    assert ours.score == told["score_after"] and ours.success == told["still_fools_after_rounding"]
    assert [record.value for record in ours.trace] == [record["value"] for record in told["trace"]]


def test_an_attack_knows_the_pipeline_and_none_attacks_the_bare_network(commands, read):
    model = ek.load(commands.classifier)
    shield = ek.Pipeline(model, defence=ek.defence("equivariance", steps=1))
    words = ["attack", commands.classifier, commands.crop, "--attack", "apgd-ce", "--steps", 2, "--json", "--out", "through"]
    words += ["--defence", "equivariance", "--defence-steps", 1]
    for given, more in [({}, ["--estimator", "identity"]), ({"estimator": None}, []), ({"draws": 2}, ["--draws", 2])]:
        (told,) = commands.run(*words, *more)
        ours = ek.attack(shield, commands.crop, None, "apgd-ce", steps=2, **given)
        assert np.array_equal(ours.image, read(commands.folder / told["saved"])), given


def test_a_segmenter_is_attacked_alike(commands, read, scene):
    model = ek.load(commands.segmenter)
    (told,) = commands.run("attack", commands.segmenter, commands.scene, "--attack", "segpgd", "--steps", 2, "--json", "--out", "maps")
    ours = ek.attack(model, scene.image, None, "segpgd", steps=2)
    assert np.array_equal(ours.image, read(commands.folder / told["saved"]))
    assert ours.score == told["score_after"]


def knobs_of(table, name):
    entry = next(entry for entry in ek._settings.TABLES[table] if entry["name"] == name)
    return {knob["name"] for knob in entry["settings"]}


def heads_for(name):
    """The files of the head that an entry needs, for both."""
    if name not in ("rotation", "contrastive"):
        return {}
    file = Path(__file__).parents[3] / "crates/evenkeel/models" / f"scenes_segmenter.{name}.safetensors"
    if not file.exists():
        pytest.skip("the tests were taken out of the repository")
    return {"head": file, "bank": file} if name == "contrastive" else {"head": file}


@pytest.mark.parametrize("name", ek.names("defence"))
def test_predictions_and_defences(commands, read, name):
    model = ek.load(commands.segmenter)
    heads = heads_for(name)
    given = {"steps": 1} if "steps" in knobs_of("defence", name) else {}
    words = ["predict", commands.segmenter, commands.scene, "--defence", name, *flags(given, "defence-"), *flags(heads), "--seed", 3, "--json"]
    (told,) = commands.run(*words, "--out", f"defended-{name}")
    ours = ek.Pipeline(model, defence=ek.defence(name, **given), seed=3, **heads)(commands.scene)
    shares = np.bincount(ours.prediction.labels.ravel(), minlength=model.classes) / ours.prediction.labels.size
    for entry in told["prediction"]["classes"]:
        assert shares[entry["class"]] == entry["share"]
    assert ours.defended == told["defended"] == (name != "none")
    if ours.defended:
        assert np.array_equal(ours.image, read(commands.folder / f"defended-{name}" / "scene.defended.png"))


@pytest.mark.parametrize("name", ek.names("answer"))
def test_answers(commands, name):
    model = ek.load(commands.classifier)
    given = {"draws": 4} if name == "noise-vote" else {}
    (told,) = commands.run("predict", commands.classifier, commands.crop, "--answer", name, *flags(given, "answer-"), "--json")
    ours = ek.Pipeline(model, answer=ek.answer(name, **given))(commands.crop)
    assert ours.prediction.label == told["prediction"]["class"] and ours.voted == told["voted"]
    if told["certificate"]:
        assert ours.certificate.probability == told["certificate"]["probability"]


@pytest.mark.parametrize("name", ek.names("detector"))
def test_detectors(commands, name):
    model = ek.load(commands.segmenter)
    heads = heads_for(name)
    (told,) = commands.run("detect", commands.segmenter, commands.scene, "--score", name, *flags(heads), "--json")
    ours = ek.detect(model, commands.scene, name, **heads)
    assert (ours.score, ours.expected_error) == (told["score"], told["expected_error"])


DEPTHS = Path(__file__).parents[3] / "testdata" / "regression"


@pytest.fixture(scope="session")
def depth(commands):
    """A network that gives depths, with its contract, and two scenes with theirs."""
    if not DEPTHS.is_dir():
        pytest.skip("the tests were taken out of the repository")
    folder = commands.folder / "depth"
    folder.mkdir()
    for file in [*DEPTHS.glob("*.onnx"), *DEPTHS.glob("*.png"), *DEPTHS.glob("*.npy")]:
        (folder / file.name).write_bytes(file.read_bytes())
    pixels = ["--order", "rgb", "--scale", 1, "--mean", "0,0,0", "--std", "1,1,1", "--resize", "stretch", "--multiple=8"]
    tensors = ["--output", "depth", "--feature", "depth"]
    commands.run("model", "init", folder / "depth.onnx", *tensors, *pixels, "--task", "regression", "--unit", "m", "--range", "2,60")
    return folder


def test_values_of_a_regression(commands, read, depth):
    model = ek.load(depth / "depth.onnx")
    scene, truth = depth / "scene_0.png", np.load(depth / "scene_0.npy")
    assert model.task == "regression"
    commands.run("predict", depth / "depth.onnx", scene, "--out", depth / "out", "--json")
    said = model.predict(scene)
    assert said.labels is None and said.values.shape == truth.shape and not said.values.flags.writeable
    assert np.array_equal(said.values, np.load(depth / "out" / "scene_0.values.npy"))
    (told,) = commands.run(
        "attack", depth / "depth.onnx", scene, "--labels", depth / "scene_0.npy", "--epsilon", "2/255", "--steps", 3, "--json", "--out", depth / "hit"
    )
    for given in (truth, truth.astype(np.float64), str(depth / "scene_0.npy"), depth / "scene_0.npy"):
        ours = ek.attack(model, scene, given, "pgd", epsilon="2/255", steps=3)
        assert np.array_equal(ours.image, read(commands.folder / told["saved"]))
        assert ours.score == told["score_after"] < told["score_before"]
    alone = ek.load(depth / "depth.onnx", regression={"unit": "m", "range": [2.0, 60.0]})
    assert np.array_equal(alone.predict(scene).values, said.values)
    for wrong in (truth[:3], np.zeros((1, 1, 2, 2)), np.zeros(0), 3, truth.astype(int)):
        with pytest.raises(ek.EvenkeelError):
            ek.attack(model, scene, wrong, steps=1)
    verdict = ek.Pipeline(model, defence=ek.defence("consensus", steps=1), answer="vote")(scene)
    assert verdict.prediction.values.shape == truth.shape and verdict.disagreement.ndim == 2


def test_intervals_of_the_error(commands, depth, tmp_path):
    """A calibration with truths gives the interval, the same as the command line's."""
    model = ek.load(commands.segmenter)
    clean = tmp_path / "clean"
    clean.mkdir()
    scenes = [ek.scenes.render(seed, size=(64, 128)) for seed in range(24)]
    for place, scene in enumerate(scenes):
        (clean / f"{place}.png").write_bytes(ek._core.Image.from_array(scene.image, True).png())
    ours = ek.calibrate(model, [s.image for s in scenes], false_alarms=0.25, truths=[s.labels for s in scenes], delta=0.2)
    ours.save(tmp_path / "ours.toml")
    seen = ek.detect(model, clean / "3.png", calibration=ours, delta=0.2)
    words = ["detect", commands.segmenter, clean / "3.png", "--calibration", tmp_path / "ours.toml", "--delta", 0.2, "--json"]
    done = subprocess.run([sys.executable, "-m", "evenkeel", *map(str, words)], capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    told = json.loads(done.stdout.splitlines()[0])
    assert (seen.score, seen.alarm, seen.threshold) == (told["score"], told["alarm"], told["threshold"])
    assert seen.expected_error == told["expected_error"]
    interval = told["estimate"]["interval"]
    assert seen.error_interval == (None if interval is None else (interval["low"], interval["high"]))
    every = ek.detect(model, [s.image for s in scenes], calibration=tmp_path / "ours.toml", delta=0.2)
    assert any(one.error_interval for one in every)
    assert all(one.error_interval is None for one in every if one.alarm)
    for one in every:
        if one.error_interval is not None:
            low, high = one.error_interval
            assert 0 <= low <= one.expected_error <= high
    verdict = ek.Pipeline(model, calibration=ours, delta=0.2)(scenes[3].image)
    assert verdict.error_interval == seen.error_interval
    with pytest.raises(ek.EvenkeelError, match="has no effect"):
        ek.detect(model, scenes[0].image, "variance", calibration=ours)
    with pytest.raises(ek.EvenkeelError):
        ek.detect(model, scenes[0].image, calibration=ours, delta=0.001)


def test_calibrations_are_one_file_for_both(commands, tmp_path):
    model = ek.load(commands.classifier)
    clean = tmp_path / "clean"
    clean.mkdir()
    images = [ek.scenes.render(seed, size=(64, 64)).image for seed in range(4)]
    for place, image in enumerate(images):
        (clean / f"{place}.png").write_bytes(ek._core.Image.from_array(image, True).png())
    theirs = tmp_path / "theirs.toml"
    commands.run("detect", commands.classifier, "--calibrate", clean, "--calibration", theirs, "--false-alarms", 0.25)
    ours = ek.calibrate(model, images, false_alarms=0.25)
    ours.save(tmp_path / "ours.toml")
    assert (tmp_path / "ours.toml").read_text() == theirs.read_text()
    (told,) = commands.run(
        "predict", commands.classifier, commands.crop, "--defence", "random", "--detect", "--calibration", theirs, "--json"
    )
    verdict = ek.Pipeline(model, defence="random", calibration=theirs)(commands.crop)
    assert (verdict.score, verdict.alarm, verdict.defended) == (told["score"], told["alarm"], told["defended"])
    beside = commands.classifier.with_suffix(".calibration.toml")
    assert model.calibration is None
    beside.write_bytes(theirs.read_bytes())
    assert model.calibration.threshold == ours.threshold
    beside.unlink()
    with pytest.raises(ek.EvenkeelError, match="another model"):
        ek.load_calibration(theirs, ek.load(commands.segmenter))


def test_corruptions(commands, read):
    names = ",".join(ek.corruptions())
    told = commands.run("corrupt", commands.scene, "--corruption", names, "--severity", 2, "--seed", 9, "--out", "worse", "--json")
    for line in told:
        ours = ek.corrupt(commands.scene, line["corruption"], 2, seed=9)
        assert np.array_equal(ours, read(commands.folder / line["saved"])), line["corruption"]
    assert len(told) == 19


def test_the_command_line_is_in_the_wheel():
    done = subprocess.run([sys.executable, "-m", "evenkeel", "list", "attacks"], capture_output=True, text=True)
    assert done.returncode == 0 and "apgd-ce" in done.stdout
    wrong = subprocess.run([sys.executable, "-m", "evenkeel", "attack"], capture_output=True, text=True)
    assert wrong.returncode == 2 and wrong.stderr
