"""Detection: how strange an image is, and from which score on an alarm is raised."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _core
from ._core import Calibration, EvenkeelError
from ._image import Batch, Images, as_truth
from ._model import Model
from ._progress import Progress, reported
from ._settings import Setting, Spec, documented, spec_of

File = Union[str, "os.PathLike[str]", None]

#: The share of images on which an interval may fail by default.
DELTA: float = _core.DELTA


@dataclass(frozen=True)
class Detection:
    """What a detector finds."""

    #: The score; greater for stranger images.
    score: float
    #: How wrong the answer probably is: the share of wrong cells, or for values the mean error in their unit; None for objects.
    expected_error: Optional[float]
    #: Scores above this raise the alarm, if there is a calibration.
    threshold: Optional[float] = None
    #: Whether the score is above the threshold, if there is one.
    alarm: Optional[bool] = None
    #: What the error lies between on a share 1 - delta of images like those of the calibration; None without truths in it, and with an alarm.
    error_interval: Optional[tuple[float, float]] = None


def _scoring(model: Model, detector: Union[str, Spec, None], settings: dict[str, Setting], **more: Any) -> dict[str, Any]:
    """What decides how images are scored, as the library takes it."""
    if not isinstance(model, Model):
        raise EvenkeelError(f"a detector looks at a model, not at a {type(model).__name__}")
    calibration = more.pop("calibration", None)
    if calibration is not None and (detector is not None or settings):
        what = "detector" if detector is not None else next(iter(settings))
        raise EvenkeelError(f"{what}: has no effect, because the calibration says how images are scored")
    if isinstance(calibration, (str, os.PathLike)):
        calibration = load_calibration(calibration, model)
    spec = spec_of("detector", _core.DETECTOR if detector is None else detector, settings)
    assert spec is not None
    return {"detector": spec.pair, "calibration": calibration, "bias": None, "delta": DELTA, "head": None, "bank": None, **more}


@documented(detector="")
def detect(
    model: Model,
    image: Images,
    detector: Union[str, Spec, None] = None,
    *,
    calibration: Union[Calibration, File] = None,
    bias: Optional[float] = None,
    delta: float = DELTA,
    head: File = None,
    bank: File = None,
    progress: Progress = False,
    **settings: Setting,
) -> Any:
    """How strange an image is to a model, and how wrong its answer probably is: a `Detection`, or a list for several images, which run in parallel.

    >>> import evenkeel as ek
    >>> model = ek.shipped("classifier")
    >>> ek.detect(model, ek.scenes.render(7, size=(64, 64)).image).score >= 0
    True

    detector: a name, or a spec made by `ek.detector`; variance if left out
    calibration: a calibration, or its file: detector and threshold in one, and with truths in it the interval of the error
    bias: the bias of the error estimate, where there is no calibration
    delta: the share of images on which the interval of the error may fail
    head, bank: files, for detectors that need a head
    """
    scoring = _scoring(model, detector, settings, calibration=calibration, bias=bias, delta=delta, head=head, bank=bank)
    batch = Batch(image)
    with reported(progress, len(batch), "detect") as bar:
        seen = _core.detect(model._core, batch.images, scoring, bar)
    return batch.answer([Detection(**one) for one in seen])


@documented(detector="")
def calibrate(
    model: Model,
    images: Images,
    detector: Union[str, Spec, None] = None,
    *,
    false_alarms: float = _core.FALSE_ALARMS,
    truths: Any = None,
    delta: float = DELTA,
    head: File = None,
    bank: File = None,
    progress: Progress = False,
    **settings: Setting,
) -> Calibration:
    """A threshold from clean images that at most a share of them exceeds; with truths the error estimate and its interval are fitted as well.

    >>> import evenkeel as ek
    >>> model = ek.shipped("classifier")
    >>> clean = [ek.scenes.render(seed, size=(64, 64)).image for seed in range(4)]
    >>> calibration = ek.calibrate(model, clean, false_alarms=0.25)
    >>> shield = ek.Pipeline(model, defence="equivariance", calibration=calibration)

    images: clean images
    detector: a name, or a spec made by `ek.detector`; variance if left out
    false_alarms: the share of them that may raise an alarm
    truths: what is true of each
    delta: the share of images on which the interval of the error may fail
    head, bank: files, for detectors that need a head
    """
    scoring = _scoring(model, detector, settings, delta=delta, head=head, bank=bank)
    batch = Batch(images)
    known = None if truths is None else [as_truth(one) for one in batch.spread(truths)]
    with reported(progress, len(batch), "calibrate") as bar:
        return _core.calibrate(model._core, batch.images, scoring, false_alarms, known, bar)


def load_calibration(path: Union[str, "os.PathLike[str]"], model: Model) -> Calibration:
    """A calibration from its file, for the model that it was made for."""
    return _core.load_calibration(os.fspath(path), model._core)
