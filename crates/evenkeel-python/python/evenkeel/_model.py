"""Models: a frozen network with what must be known to use it."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _core
from ._core import EvenkeelError, Prediction
from ._image import Batch, ImageLike, Images, as_image
from ._picture import SWATCHES, figure, swatches
from ._progress import Progress, reported

Names = Union[str, Sequence[str]]
Array = Any


class Model:
    """A frozen network and what it means; made by `ek.load`, `ek.shipped`, `ek.from_torch` or `ek.from_network`.

    >>> import evenkeel as ek
    >>> model = ek.shipped("classifier")
    >>> model.task, model.classes
    ('classification', 10)
    """

    def __init__(self, core: _core.Model, about: str, path: Optional[str] = None) -> None:
        self._core = core
        self._about = about
        self._path = path

    @property
    def task(self) -> str:
        """What the scores mean: classification, semantic, instance or regression."""
        return self._core.task

    @property
    def classes(self) -> int:
        """How many classes it tells apart."""
        return self._core.classes

    @property
    def class_names(self) -> list[str]:
        """The names of the classes; empty if they have none."""
        return self._core.class_names

    @property
    def output(self) -> list[str]:
        """The tensors of scores."""
        return self._core.output

    @property
    def feature(self) -> list[str]:
        """The tensors of features that views are compared on."""
        return self._core.feature

    @property
    def size(self) -> Optional[tuple[int, int]]:
        """The (height, width) that images are brought to; None keeps theirs."""
        return self._core.size

    @property
    def hash(self) -> str:
        """A fingerprint of the network's file; empty if there is none."""
        return self._core.hash

    @property
    def calibration(self) -> Optional[_core.Calibration]:
        """The calibration of the alarm that came with a shipped network, or lies beside the file (`net.calibration.toml`); None if there is none.

        >>> import evenkeel as ek
        >>> model = ek.shipped("segmenter")
        >>> ek.Pipeline(model, calibration=model.calibration).threshold == model.calibration.threshold
        True
        """
        return self._core.calibration

    def predict(self, image: Images, *, progress: Progress = False) -> Any:
        """What the network says: a `Prediction` for one image, a list for several, which run in parallel.

        >>> import evenkeel as ek
        >>> ek.shipped("segmenter").predict(ek.scenes.render(7).image).labels.shape
        (128, 256)
        """
        batch = Batch(image)
        with reported(progress, len(batch), "predict") as bar:
            return batch.answer(self._core.predict(batch.images, bar))

    __call__ = predict

    def fit(self, image: ImageLike) -> Any:
        """The image at the network's own size, in steps of 1/255: what every use of the model starts from."""
        made, back = as_image(image)
        return back(self._core.fit(made))

    def tensors(self, image: ImageLike, names: Optional[Names] = None) -> dict[str, Array]:
        """Named tensors of an image; the scores and features if no names are given.

        >>> import evenkeel as ek
        >>> model = ek.shipped("classifier")
        >>> scores = model.tensors(ek.scenes.render(7, size=(64, 64)).image, model.output)
        >>> [array.shape for array in scores.values()]
        [(1, 10, 1, 1)]
        """
        wanted = [names] if isinstance(names, str) else list(names) if names else self.output + self.feature
        return dict(zip(wanted, self._core.tensors(as_image(image)[0], wanted)))

    def gradient(self, image: ImageLike, cotangents: Mapping[str, Array]) -> Array:
        """The gradient of the sum of products of named tensors with cotangents, with respect to the image: 3 x height x width."""
        arrays = [np.ascontiguousarray(array, dtype=np.float32) for array in cotangents.values()]
        return self._core.pullback(as_image(image)[0], list(cotangents), arrays)

    def __repr__(self) -> str:
        size = "any size" if self.size is None else f"{self.size[1]}x{self.size[0]}"
        return f"Model({self._about}: {self.task}, {self.classes} classes, {size})"

    def _repr_html_(self) -> str:
        names = self.class_names or [f"class {number}" for number in range(self.classes)]
        more = f", and {self.classes - SWATCHES} more" if self.classes > SWATCHES else ""
        pictures = [(name, swatches([colour])) for name, colour in zip(names[:SWATCHES], self._core.colours)]
        facts = {"scores": ", ".join(self.output), "features": ", ".join(self.feature)}
        return figure(pictures, repr(self) + more, facts)

    def _repr_png_(self) -> Optional[bytes]:
        colours = self._core.colours
        return swatches(colours[:SWATCHES]).png() if colours else None


def _contract(given: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments as the fields of a contract; those that are None are left out."""
    places = {
        "task": (),
        "output": (),
        "feature": (),
        "instance": (),
        "regression": (),
        "order": ("input",),
        "scale": ("input",),
        "mean": ("input",),
        "std": ("input",),
        "channels_last": ("input",),
        "size": ("input",),
        "resize": ("input",),
        "multiple": ("input",),
        "names": ("classes",),
        "palette": ("classes",),
        "ids": ("classes",),
    }
    contract: dict[str, Any] = {}
    given = dict(given)
    if (preset := given.pop("pixels", None)) is not None:
        given = {**json.loads(_core.pixel_preset(str(preset))), **given}
    if isinstance(given.get("feature"), str) and given["feature"] == "auto":
        given.pop("feature")
    for key, value in given.items():
        if value is None:
            continue
        if key not in places:
            raise EvenkeelError(f"`{key}`: is no field of a contract; there are {', '.join(places)}")
        if key in ("mean", "std"):
            value = three(key, value)
        elif key == "size":
            value = size_of(value)
        table = contract
        for part in places[key]:
            table = table.setdefault(part, {})
        table[key] = list(value) if isinstance(value, (tuple, np.ndarray)) else value
    return contract


def three(name: str, given: Any) -> list[float]:
    """A number for each channel, of three or of one for all."""
    try:
        numbers = np.asarray(given.tolist() if hasattr(given, "tolist") else given, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.shape not in ((), (1,), (3,)):
        raise EvenkeelError(f"{name}={given!r}: three numbers are needed, red, green and blue, or one for all")
    return [float(number) for number in np.broadcast_to(numbers, (3,))]


def size_of(given: Any) -> Optional[tuple[int, int]]:
    """A (height, width), of two whole numbers or of one for both."""
    if given is None:
        return None
    sides = [given, given] if isinstance(given, (int, np.integer)) else given
    try:
        height, width = (int(side) if not isinstance(side, bool) and int(side) == side else 0 for side in sides)
    except (TypeError, ValueError, OverflowError):
        height = width = 0
    if min(height, width) < 1:
        raise EvenkeelError(f"size={given!r}: a (height, width) of whole numbers is needed")
    return height, width


def _json(contract: Mapping[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, (np.generic, np.ndarray)):
            return value.tolist()
        raise EvenkeelError(f"a {type(value).__name__} is no value of a contract")

    try:
        return json.dumps(contract, default=plain, allow_nan=False)
    except ValueError as error:
        raise EvenkeelError(f"a contract holds finite numbers only: {error}") from error


def load(path: Union[str, "os.PathLike[str]"], **contract: Any) -> Model:
    """Reads a network (ONNX, or a zoo network's weights) and the contract beside it, `net.onnx` and `net.evenkeel.toml`.

    Keyword arguments are fields of the contract and take the place of what the file says: task, output, feature, order, scale, mean,
    std, channels_last, size, resize, multiple, names, palette, ids, and the tables instance and regression. `pixels` is the name of a usual way from pixels to input, "imagenet" say. Without
    a file, what the graph tells is used for what is not given (`feature="auto"` says so), and the rest is asked for.
    """
    given = _contract(contract)
    core = _core.Model.load(os.fspath(path), _json(given) if given else None)
    return Model(core, os.path.basename(os.fspath(path)), os.fspath(path))


def shipped(name: str) -> Model:
    """A network that comes with the package: small, trained on rendered street scenes.

    >>> import evenkeel as ek
    >>> ek.shipped("segmenter").class_names[:3]
    ['road', 'pavement', 'grass']
    """
    return Model(_core.Model.shipped(name), name)


class Network:
    """A network of one's own: subclass it, and make a model with `ek.from_network`.

    Inputs are float32 arrays `[1, 3, h, w]`, prepared as the contract says; those of one call may differ in size.
    """

    #: The only (height, width) it takes; None for any.
    size: Optional[tuple[int, int]] = None
    #: Whether features of views are compared by its own method `compare`, where its tensors are.
    compares: bool = False

    def check(self, names: Sequence[str]) -> None:
        """Raises if the network does not have a tensor of these names."""

    def run(self, inputs: Sequence[Array], names: Sequence[str]) -> Sequence[Sequence[Array]]:
        """For each input, its named tensors as float32 arrays, the leading dimension of one kept."""
        raise NotImplementedError("a network has a method run")

    def trace(self, inputs: Sequence[Array], names: Sequence[str]) -> tuple[Sequence[Sequence[Array]], Any]:
        """What `run` gives, and a function that leads cotangents back.

        The function takes, for each input, a list with the cotangent of each name (an array, or None for zero), and gives the
        gradient with respect to each input as a float32 array. It may be called more than once.
        """
        raise NotImplementedError("a network that is attacked or defended has a method trace")


def from_network(network: Network, *, task: str, output: Names, feature: Names, **contract: Any) -> Model:
    """A model of a network written in Python. Keyword arguments are fields of the contract, as for `ek.load`; by default pixels in
    [0, 1] are the input as they are."""
    plain: dict[str, Any] = {"resize": "stretch"}
    if contract.get("pixels") is None:
        plain = {"order": "rgb", "scale": 1.0, "mean": (0, 0, 0), "std": (1, 1, 1), **plain}
    given = {**plain, **{key: value for key, value in contract.items() if value is not None}}
    fields = _contract({"task": task, "output": output, "feature": feature, **given})
    core = _core.Model.of_network(network, _json(fields), size_of(network.size))
    return Model(core, type(network).__name__)


__all__ = ["Model", "Network", "Prediction", "from_network", "load", "shipped"]
