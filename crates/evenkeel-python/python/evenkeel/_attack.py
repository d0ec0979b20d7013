"""Attacks on a model, or knowingly through a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional, Sequence, Union

from . import _core
from ._core import EvenkeelError, Prediction
from ._image import Batch, Images, as_truth
from ._model import Model
from ._picture import figure, side_by_side
from ._pipeline import Pipeline, Record
from ._progress import Progress, reported
from ._settings import Setting, documented
from .views import ViewsLike, as_views


@dataclass(frozen=True, eq=False, repr=False)
class Attacked:
    """What an attack did to an image. Everything is judged by a fresh pass over the final eight-bit image."""

    #: The attack; of several, the most harmful one.
    attack: str
    #: The attacked image, rounded to eight bits inside the budget, in the type that came in.
    image: Any
    #: Whether the answer became less right, or, targeted, what the attacker wants.
    success: bool
    #: The answer for the attacked image.
    prediction: Prediction
    #: The answer for the image as it was.
    before: Prediction
    #: How right the answer is now, from 0 to 1.
    score: float
    #: How right it was.
    score_before: float
    #: How right it is before rounding, as the attack saw it.
    score_before_rounding: float
    #: Distance from the image, in the budget's norm.
    distance: float
    #: Every evaluation.
    trace: list[Record]
    _given: _core.Image = field(repr=False)
    _image: _core.Image = field(repr=False)

    def __repr__(self) -> str:
        return f"Attacked({self._sentence()})"

    def _sentence(self) -> str:
        fooled = "succeeds" if self.success else "does not succeed"
        return f"{self.attack} {fooled}: score {self.score_before:.3f} -> {self.score:.3f}; {self.before!r} -> {self.prediction!r}"

    def _repr_html_(self) -> str:
        return figure([("given", self._given), ("attacked", self.prediction.draw(self._image))], self._sentence())

    def _repr_png_(self) -> bytes:
        return side_by_side([self.before.draw(self._image), self.prediction.draw(self._image)])


@documented(attack="")
def attack(
    model: Union[Model, Pipeline],
    image: Images,
    truth: Any = None,
    name: Union[str, Sequence[str]] = _core.ATTACK,
    *,
    target: Any = None,
    views: Optional[ViewsLike] = None,
    progress: Progress = False,
    **settings: Setting,
) -> Any:
    """Changes an image, within a budget, so that the answer becomes wrong: an `Attacked`, or a list for several images, which run in parallel.

    A pipeline is attacked knowingly: an attack that can aim through its defence does, with the identity estimator (BPDA) unless another is asked for;
    `estimator=None` attacks the bare network and only judges through the pipeline.

    >>> import evenkeel as ek
    >>> model = ek.shipped("classifier")
    >>> image = ek.scenes.render(7, size=(64, 64)).image
    >>> attacked = ek.attack(model, image, name="apgd-ce", epsilon=4/255, steps=5)
    >>> attacked.distance <= 4/255 + 1e-6
    True

    model: a model, or a pipeline
    image: one image or several
    truth: what is true: a class, a label map, or a list of instances; the model's own answer if left out
    name: an attack, or several, of which the one that hurts most is kept
    target: what the attacker wants said, for a targeted attack
    views: the views that adaptive attacks keep alike where the defence has no objective
    progress: True for a tqdm bar, or a function of the number of images done
    """
    pipeline = model if isinstance(model, Pipeline) else None
    own = pipeline.model if pipeline else model
    if not isinstance(own, Model):
        raise EvenkeelError(f"a model or a pipeline is attacked, not a {type(model).__name__}")
    batch = Batch(image)
    truths = [as_truth(one) for one in batch.spread(truth)]
    targets = [as_truth(one) for one in batch.spread(target)]
    names = [name] if isinstance(name, str) else list(name)
    if not all(isinstance(one, str) for one in names):
        raise EvenkeelError("name: an attack has a name, which is a string")
    seen = as_views(views) if views is not None else None
    core = pipeline._core if pipeline else None
    with reported(progress, len(batch), "attack") as bar:
        made = _core.attack(own._core, core, batch.images, truths, targets, names, settings, seen, bar)
    results = []
    for said, given, back in zip(made, batch.images, batch.backs):
        image = said.pop("image")
        records = [Record(*record) for record in said.pop("trace")]
        results.append(Attacked(image=back(image), trace=records, _given=given, _image=image, **said))
    return batch.answer(results)
