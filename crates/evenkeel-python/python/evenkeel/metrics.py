"""Metrics that agree with the field's official tools."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence

import numpy as np

from . import _core
from ._core import EvenkeelError, Instance, Prediction
from ._image import as_labels


class Segmentation(NamedTuple):
    """The figures of a semantic segmentation over all images together."""

    miou: Optional[float]
    #: IoU of each class; None for classes that are nowhere.
    iou: list[Optional[float]]
    pixel_accuracy: Optional[float]


class Ranking(NamedTuple):
    """The figures of a detection score."""

    auroc: float
    average_precision: float
    fpr95: float


def _maps(given: Any) -> list[Any]:
    several = isinstance(given, (list, tuple)) or getattr(given, "ndim", 0) == 3
    maps = list(given) if several else [given]
    return [as_labels(one.labels if isinstance(one, Prediction) else one) for one in maps]


def segmentation(predictions: Any, truths: Any, classes: int, *, ignore: int = 255) -> Segmentation:
    """Mean IoU, IoU of each class and pixel accuracy, from one confusion of all images; pixels whose truth is `ignore` do not count.

    >>> import numpy as np, evenkeel as ek
    >>> ek.metrics.segmentation(np.array([[0, 1, 1]]), np.array([[0, 1, 0]]), 2)
    Segmentation(miou=0.5, iou=[0.5, 0.5], pixel_accuracy=0.6666666666666666)
    """
    if isinstance(classes, bool) or not isinstance(classes, (int, np.integer)) or classes < 1:
        raise EvenkeelError(f"classes: a whole number of at least 1 is needed, not {classes!r}")
    return Segmentation(*_core.segmentation(_maps(predictions), _maps(truths), int(classes), ignore))


def miou(predictions: Any, truths: Any, classes: int, *, ignore: int = 255) -> Optional[float]:
    """Mean over classes of intersection over union.

    >>> import numpy as np, evenkeel as ek
    >>> ek.metrics.miou(np.array([[0, 1, 1]]), np.array([[0, 1, 0]]), 2)
    0.5
    """
    return segmentation(predictions, truths, classes, ignore=ignore).miou


def pixel_accuracy(predictions: Any, truths: Any, classes: int, *, ignore: int = 255) -> Optional[float]:
    """Share of labelled pixels whose class is right."""
    return segmentation(predictions, truths, classes, ignore=ignore).pixel_accuracy


def accuracy(predictions: Sequence[Any], truths: Sequence[int]) -> float:
    """Share of images whose class is right; predictions are classes or `Prediction`s.

    >>> import evenkeel as ek
    >>> ek.metrics.accuracy([1, 2, 3, 3], [1, 2, 3, 4])
    0.75
    """
    said = [one.label if isinstance(one, Prediction) else int(one) for one in predictions]
    if len(said) != len(truths) or not said:
        raise EvenkeelError(f"{len(said)} predictions, but {len(truths)} truths")
    return sum(int(a == int(b)) for a, b in zip(said, truths) if a is not None) / len(said)


def _instances(given: Any) -> list[Instance]:
    found = given.instances if isinstance(given, Prediction) else given
    if found is None or not all(isinstance(one, Instance) for one in found):
        raise EvenkeelError("coco: each image has a list of instances, or a prediction of them")
    return list(found)


def coco(predictions: Sequence[Any], truths: Sequence[Any]) -> dict[str, Optional[float]]:
    """COCO's twelve figures of masks, as its tool prints them; those that do not exist are None.

    >>> import evenkeel as ek
    >>> scene = ek.scenes.render(7)
    >>> ek.metrics.coco([scene.instances], [scene.instances])["ap"]
    1.0
    """
    return _core.coco([_instances(one) for one in predictions], [_instances(one) for one in truths])


def ranking(scores: Any, anomalous: Any) -> Ranking:
    """AUROC, average precision and FPR95 of scores that should be greater for what is anomalous.

    >>> import evenkeel as ek
    >>> ek.metrics.ranking([0.1, 0.2, 0.8, 0.7], [False, False, True, True]).auroc
    1.0
    """
    values = np.ascontiguousarray(scores, dtype=np.float64)
    marks = np.ascontiguousarray(anomalous, dtype=bool)
    if values.ndim != 1 or marks.ndim != 1:
        raise EvenkeelError("a ranking takes a list of scores and a list of as many marks")
    return Ranking(*_core.ranking(values, marks))


def auroc(scores: Any, anomalous: Any) -> float:
    """Area under the ROC curve, by ranks with ties."""
    return ranking(scores, anomalous).auroc


def names() -> dict[str, str]:
    """Every metric of studies with a line about it."""
    return dict(_core.metrics())
