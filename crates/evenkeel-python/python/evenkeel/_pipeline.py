"""Pipelines: a model and what protects it, and what they make of images."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Optional, Union

from . import _core
from ._core import Calibration, EvenkeelError, Prediction
from ._image import Batch, Images
from ._model import Model
from ._picture import figure, side_by_side
from ._progress import Progress, reported
from ._settings import Setting, Spec, documented, spec_of, taken_apart


class Record(NamedTuple):
    """One evaluation of an attack or a defence."""

    restart: int
    step: int
    #: The value that is raised.
    value: float
    #: The task's loss, where it is known.
    loss: Optional[float]
    #: How right the answer was.
    score: float
    #: Distance from the image, in the budget's norm.
    distance: float


class Certificate(NamedTuple):
    """What is certain about a classifier's vote over noise."""

    label: int
    #: The L2 radius within which the answer stays; None if it abstains.
    radius: Optional[float]
    #: The lower bound of the probability of the class.
    probability: float
    #: The chance that the certificate does not hold.
    alpha: float


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """What a pipeline makes of an image."""

    #: The answer.
    prediction: Prediction
    #: The detection score, if there is a detector; greater for stranger images.
    score: Optional[float]
    #: Scores above this raise the alarm.
    threshold: Optional[float]
    #: Whether the score is above the threshold, if there is one.
    alarm: Optional[bool]
    #: Whether the image was defended.
    defended: bool
    #: Whether the answer is a vote.
    voted: bool
    #: The image that was shown to the network, in the type that came in.
    image: Any
    #: The defence's steps.
    trace: list[Record]
    #: The expected error of the answer, if the calibration had labels.
    expected_error: Optional[float]
    #: What it lies between on a share 1 - delta of images like those of the calibration; None with an alarm.
    error_interval: Optional[tuple[float, float]]
    #: What is certain about the answer, for a vote over noise.
    certificate: Optional[Certificate]
    #: How long the library took.
    seconds: float
    _given: _core.Image = field(repr=False)
    _shown: _core.Image = field(repr=False)
    _pipeline: _core.Pipeline = field(repr=False)

    @cached_property
    def disagreement(self) -> Any:
        """Where the views of the image disagree: the variance of the probability of its answer, a cell of the scores each; for objects, the
        share of views that see something else at a pixel. Costs a pass over the views when it is first asked for."""
        return self._pipeline.disagreement(self._given)

    def __repr__(self) -> str:
        return f"Verdict({self._sentence()})"

    def _sentence(self) -> str:
        words = repr(self.prediction)
        if self.score is not None:
            words += f"; detection score {self.score:.4f}"
        if self.alarm is not None:
            words += f" is {'above' if self.alarm else 'not above'} the threshold {self.threshold:.4f}"
        return words + ("; defended" if self.defended else "") + ("; by a vote" if self.voted else "")

    def _repr_html_(self) -> str:
        pictures = [("given", self._given), ("answer", self.prediction.draw(self._shown))]
        return figure(pictures, self._sentence())

    def _repr_png_(self) -> bytes:
        return self.prediction.draw(self._shown).png()


class Pipeline:
    """A model and what protects it: a detector with its threshold, a defence, and a way to read the answer off."""

    @documented(defence="defence_", answer="answer_", detector="detector_")
    def __init__(
        self,
        model: Model,
        defence: Union[str, Spec, None] = None,
        answer: Union[str, Spec, None] = None,
        detector: Union[str, Spec, None] = None,
        threshold: Optional[float] = None,
        *,
        calibration: Union[Calibration, str, "os.PathLike[str]", None] = None,
        delta: float = _core.DELTA,
        seed: int = 0,
        head: Union[str, "os.PathLike[str]", None] = None,
        bank: Union[str, "os.PathLike[str]", None] = None,
        **settings: Setting,
    ) -> None:
        """A pipeline in front of a model. Where there is a threshold, only images that raise the alarm are defended and voted on.

        >>> import evenkeel as ek
        >>> model = ek.shipped("classifier")
        >>> shield = ek.Pipeline(model, defence="equivariance", detector="variance", threshold=0.2, defence_steps=2)
        >>> verdict = shield(ek.scenes.render(7, size=(64, 64)).image)
        >>> verdict.defended == verdict.alarm
        True

        model: what is protected
        defence, answer, detector: a name, or a spec made by `ek.defence`, `ek.answer`, `ek.detector`
        threshold: scores above it raise the alarm
        calibration: a calibration, or its file: detector and threshold in one
        delta: the share of images on which the interval of the error may fail, for a calibration with truths
        seed: the seed of the defence and of votes
        head, bank: files of a head that was trained for the network, and of other images' embeddings
        """
        if not isinstance(model, Model):
            raise EvenkeelError(f"a pipeline stands in front of a model, not of a {type(model).__name__}")
        apart = taken_apart(settings)
        chosen = {"defence": defence, "answer": answer, "detector": detector}
        specs = {table: spec_of(table, chosen[table], given) for table, given in apart.items()}
        if calibration is not None and detector is not None:
            raise EvenkeelError("calibration: brings its own detector; leave detector out")
        if threshold is not None and calibration is None and detector is None:
            raise EvenkeelError("threshold: has no effect without detector=NAME")
        if isinstance(calibration, (str, os.PathLike)):
            calibration = _core.load_calibration(os.fspath(calibration), model._core)
        parts = {
            **{table: spec.pair if spec else None for table, spec in specs.items()},
            "calibration": calibration,
            "threshold": threshold,
            "delta": delta,
            "seed": seed,
            "head": head,
            "bank": bank,
        }
        #: The model that is protected.
        self.model = model
        self._about = ", ".join(f"{table}={spec.name}" for table, spec in specs.items() if spec)
        self._core = _core.Pipeline(model._core, parts)

    @classmethod
    def from_policy(cls, model: Model, path: Union[str, "os.PathLike[str]", None] = None) -> Pipeline:
        """The pipeline that a policy asks for, as `ek.tune` writes it: `net.policy.toml` beside the network if no file is given."""
        if path is None:
            if model._path is None:
                raise EvenkeelError("from_policy: this model has no file that a policy could lie beside; give the policy's path")
            path = os.path.splitext(model._path)[0] + ".policy.toml"
        pipeline = cls.__new__(cls)
        pipeline.model = model
        pipeline._core, pipeline._about = _core.Pipeline.of_policy(model._core, os.fspath(path))
        return pipeline

    @property
    def threshold(self) -> Optional[float]:
        """Scores above this raise the alarm."""
        return self._core.threshold

    def run(self, image: Images, *, seed: Optional[int] = None, progress: Progress = False) -> Any:
        """A `Verdict` for one image, a list for several, which run in parallel."""
        batch = Batch(image)
        with reported(progress, len(batch), "verdicts") as bar:
            all_said = self._core.run(batch.images, seed, bar)
        verdicts = []
        for said, given, back in zip(all_said, batch.images, batch.backs):
            shown = said.pop("image")
            records = [Record(*record) for record in said.pop("trace")]
            certain = said.pop("certificate")
            verdicts.append(
                Verdict(
                    image=back(shown),
                    trace=records,
                    certificate=Certificate(*certain) if certain else None,
                    _given=given,
                    _shown=shown,
                    _pipeline=self._core,
                    **said,
                )
            )
        return batch.answer(verdicts)

    __call__ = run

    def predict(self, image: Images, *, progress: Progress = False) -> Any:
        """The answers alone."""
        verdicts = self.run(image, progress=progress)
        return [v.prediction for v in verdicts] if isinstance(verdicts, list) else verdicts.prediction

    def __repr__(self) -> str:
        return f"Pipeline({self.model!r}" + (f", {self._about})" if self._about else ")")

    def _repr_html_(self) -> str:
        return figure([], repr(self))


__all__ = ["Certificate", "Pipeline", "Record", "Verdict", "side_by_side"]
