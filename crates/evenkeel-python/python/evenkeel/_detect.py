"""Detection: how strange an image is, and from which score on an alarm is raised."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _core
from ._core import Calibration, EvenkeelError
from ._image import Batch, Images, as_truth
from ._model import Model
from ._progress import Progress, told
from ._settings import Setting, Spec, documented, spec_of

File = Union[str, "os.PathLike[str]", None]


@dataclass(frozen=True)
class Detection:
    """What a detector finds."""

    #: The score; greater for stranger images.
    score: float
    #: How wrong the answer probably is, from 0 to 1; None for objects.
    expected_error: Optional[float]


def _spec(model: Model, detector: Union[str, Spec], settings: dict[str, Setting]) -> tuple[str, dict[str, Setting]]:
    if not isinstance(model, Model):
        raise EvenkeelError(f"a detector looks at a model, not at a {type(model).__name__}")
    spec = spec_of("detector", detector, settings)
    if spec is None:
        raise EvenkeelError("detector: a name is needed")
    return spec.pair


@documented(detector="")
def detect(
    model: Model,
    image: Images,
    detector: Union[str, Spec] = "variance",
    *,
    bias: Optional[float] = None,
    delta: float = 0.1,
    head: File = None,
    bank: File = None,
    progress: Progress = False,
    **settings: Setting,
) -> Any:
    """How strange an image is to a model: a `Detection`, or a list for several images, which run in parallel.

    >>> import evenkeel as ek
    >>> model = ek.shipped("classifier")
    >>> ek.detect(model, ek.scenes.render(7, size=(64, 64)).image).score >= 0
    True

    bias: the bias of the error estimate, from a calibration with labels
    delta: the share of images on which an interval of the error may fail
    head, bank: files, for detectors that need a head
    """
    pair = _spec(model, detector, settings)
    batch = Batch(image)
    with told(progress, len(batch), "detect") as bar:
        seen = _core.detect(model._core, batch.images, pair, bias, delta, head, bank, bar)
    return batch.answer([Detection(score, error) for score, error in seen])


@documented(detector="")
def calibrate(
    model: Model,
    images: Images,
    detector: Union[str, Spec] = "variance",
    *,
    false_alarms: float = 0.05,
    truths: Any = None,
    head: File = None,
    bank: File = None,
    progress: Progress = False,
    **settings: Setting,
) -> Calibration:
    """A threshold from clean images that at most a share of them exceeds; with truths the error estimate is fitted as well.

    >>> import evenkeel as ek
    >>> model = ek.shipped("classifier")
    >>> clean = [ek.scenes.render(seed, size=(64, 64)).image for seed in range(4)]
    >>> calibration = ek.calibrate(model, clean, false_alarms=0.25)
    >>> shield = ek.Pipeline(model, defence="equivariance", calibration=calibration)

    images: clean images
    false_alarms: the share of them that may raise an alarm
    truths: what is true of each
    head, bank: files, for detectors that need a head
    """
    pair = _spec(model, detector, settings)
    batch = Batch(images)
    known = None if truths is None else [as_truth(one) for one in batch.spread(truths)]
    with told(progress, len(batch), "calibrate") as bar:
        return _core.calibrate(model._core, batch.images, pair, false_alarms, known, head, bank, bar)


def load_calibration(path: Union[str, "os.PathLike[str]"], model: Model) -> Calibration:
    """A calibration from its file, for the model that it was made for."""
    return _core.load_calibration(os.fspath(path), model._core)
