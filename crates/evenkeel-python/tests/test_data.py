"""Data sets, scenes, metrics and studies."""

from __future__ import annotations

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import EvenkeelError


def test_data_sets_are_sequences(data):
    for kind, path in [("cityscapes", data / "cityscapes"), ("camvid", data / "camvid")]:
        try:
            found = ek.datasets.open(kind, path, limit=2)
        except EvenkeelError as other_layout:
            pytest.skip(str(other_layout))
        sample = found[0]
        assert sample.image.dtype == np.uint8 and sample.image.shape[:2] == sample.truth.shape
        assert sample.id == found.ids[0] and len(found) == 2


def test_scenes_as_a_data_set():
    found = ek.datasets.open("scenes", "3@64x32")
    assert [sample.truth.shape for sample in found] == [(32, 64)] * 3
    assert found[-1].id == found.ids[-1] and "road" in found.classes
    with pytest.raises(IndexError):
        found[3]
    for wrong in [("scenery", "3"), ("scenes", "none"), ("cityscapes", "/no/such/folder")]:
        with pytest.raises(EvenkeelError):
            ek.datasets.open(*wrong)


def test_scenes_are_the_same_bytes_every_time(scene):
    again = ek.scenes.render(7)
    assert np.array_equal(again.image, scene.image) and np.array_equal(again.labels, scene.labels)
    for size in [(0, 4), (4, 0), (5000, 4)]:
        with pytest.raises(EvenkeelError):
            ek.scenes.render(7, size=size)


def test_segmentation_figures_against_their_formula():
    random = np.random.default_rng(0)
    said, true = random.integers(0, 4, (3, 9, 7)), random.integers(0, 4, (3, 9, 7))
    true[0, 0] = 255
    counted = true != 255
    iou = []
    for label in range(4):
        both = ((said == label) & (true == label) & counted).sum()
        either = (((said == label) | (true == label)) & counted).sum()
        iou.append(both / either)
    figures = ek.metrics.segmentation(said, true, 4)
    assert np.allclose(figures.iou, iou) and figures.miou == pytest.approx(np.mean(iou))
    assert figures.pixel_accuracy == pytest.approx((said == true)[counted].mean())
    assert ek.metrics.miou(list(said), list(true), 4) == figures.miou
    for wrong in [(said, true[:2], 4), (said[:, :2], true, 4), (said, true, 0), (said * 1.0, true, 4), (said, -true, 4)]:
        with pytest.raises(EvenkeelError):
            ek.metrics.miou(*wrong)


def test_rankings_by_counting_pairs():
    random = np.random.default_rng(1)
    scores, marks = random.integers(0, 9, 60) / 9, random.random(60) < 0.4
    above = [(a > b) + 0.5 * (a == b) for a in scores[marks] for b in scores[~marks]]
    assert ek.metrics.auroc(scores, marks) == pytest.approx(np.mean(above))
    for wrong in [([], []), ([1.0], [True]), ([np.nan, 1], [True, False]), ([1, 2], [True]), ([[1]], [[True]])]:
        with pytest.raises(EvenkeelError):
            ek.metrics.auroc(*wrong)


def test_coco_figures_against_its_own_tool(scene):
    coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed")
    from pycocotools import mask as codec
    from pycocotools.cocoeval import COCOeval

    said, true = [], []
    for seed in range(6):
        objects = ek.scenes.render(seed).instances
        true.append(objects)
        moved = [ek.Instance(o.label, np.roll(o.mask, 1 + k % 4, axis=1), 1 - 0.1 * (k % 7)) for k, o in enumerate(objects)]
        said.append(moved[:-1] if len(moved) > 2 else moved)
    ours = ek.metrics.coco(said, true)

    def coded(one):
        return codec.encode(np.asfortranarray(one.mask.astype(np.uint8)))

    annotations, results = [], []
    for image, (found, objects) in enumerate(zip(said, true), start=1):
        for one in objects:
            box = [float(v) for v in codec.toBbox(coded(one))]
            number = len(annotations) + 1
            annotations.append(
                {"id": number, "image_id": image, "category_id": one.label, "iscrowd": 0, "area": one.area, "bbox": box, "segmentation": coded(one)}
            )
        for one in found:
            results.append({"image_id": image, "category_id": one.label, "score": one.score, "segmentation": coded(one)})
    truth = coco.COCO()
    truth.dataset = {"images": [{"id": k + 1, "height": 128, "width": 256} for k in range(6)], "annotations": annotations}
    truth.dataset["categories"] = [{"id": k} for k in {a["category_id"] for a in annotations}]
    truth.createIndex()
    evaluation = COCOeval(truth, truth.loadRes(results), "segm")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    theirs = [None if figure == -1 else figure for figure in evaluation.stats]
    for name, figure in zip(ours, theirs):
        assert ours[name] == pytest.approx(figure, abs=1e-9) if figure is not None else ours[name] is None, name
    with pytest.raises(EvenkeelError):
        ek.metrics.coco([[]], [])


STUDY = """
name = "small"
epsilon_255 = 4
seeds = [0]

[[subject]]
name = "classifier"
model = "embedded:classifier"
data = "scenes-objects"
path = "4@64x64"

[[attack]]
kind = "fgsm"

[[defence]]
kind = "random"
"""


def test_a_study_runs_resumes_and_reports(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(STUDY)
    seen = []
    first = ek.study.run(path, out=tmp_path / "out", progress=seen.append)
    assert first.made > 0 and first.kept == 0 and first.path.suffix == ".parquet" and first.path.exists()
    assert seen and seen[-1] == ek._core.study_size(path, "1/1")[1]
    again = ek.study.run(path, out=tmp_path / "out")
    assert again.made == 0 and again.kept == first.made and again.rows == first.rows
    report = ek.study.report(tmp_path / "out", gallery=False)
    assert report.page.exists() and "fgsm" in report.markdown
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = again.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == again.rows
    polars = pytest.importorskip("polars", reason="polars is not installed")
    table = again.to_polars()
    assert isinstance(table, polars.DataFrame) and table.height == again.rows and table.columns == list(frame.columns)


def test_a_study_that_cannot_be_run_says_why(tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text(STUDY.replace('kind = "fgsm"', 'kind = "fgsm"\nspeed = 3'))
    with pytest.raises(EvenkeelError, match="speed"):
        ek.study.run(path, out=tmp_path / "out")
    with pytest.raises(EvenkeelError):
        ek.study.run(tmp_path / "none.toml")
    with pytest.raises(EvenkeelError, match="no study"):
        ek.study.report(tmp_path)


def test_tuning_writes_a_policy_that_a_pipeline_obeys(tmp_path, commands):
    tuned = ek.tune(
        commands.classifier, "scenes-objects", "8@64x64", minutes=2, policy=tmp_path / "net.policy.toml", folder=tmp_path / "tune"
    )
    assert tuned.policy.exists() and tuned.page.exists() and tuned.about
    shield = ek.Pipeline.from_policy(ek.load(commands.classifier), tuned.policy)
    assert shield(commands.crop).prediction.label is not None
    with pytest.raises(EvenkeelError, match="another network"):
        ek.Pipeline.from_policy(ek.load(commands.segmenter), tuned.policy)
    with pytest.raises(EvenkeelError, match="no file"):
        ek.Pipeline.from_policy(ek.shipped("classifier"))
