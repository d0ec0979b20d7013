"""Verdicts on batches of Ray Data: images in, answers, scores and alarms out, in columns of plain types that any Parquet reader knows."""

from __future__ import annotations

import io
import math
import os
import struct
import zlib
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

from . import _core
from ._core import EvenkeelError
from ._image import as_image
from ._model import Model, load, shipped
from ._pipeline import Pipeline, Verdict

#: What a verdict says in a number each; NaN where there is none.
_NUMBERS = ("score", "threshold", "expected_error", "seconds")
_FLAGS = ("alarm", "defended", "voted")


def _share_of_threads() -> None:
    """As many threads as the actor has processors, if the library has not begun to work in this process."""
    try:
        import ray

        cpus = ray.get_runtime_context().get_assigned_resources().get("CPU") if ray.is_initialized() else None
    except ImportError:
        cpus = None
    if cpus:
        os.environ.setdefault("RAYON_NUM_THREADS", str(max(1, int(cpus))))


def _model(given: str) -> Model:
    return shipped(given.removeprefix("embedded:")) if given.startswith("embedded:") else load(given)


def _image(cell: Any) -> _core.Image:
    if isinstance(cell, Mapping):
        # as data sets of Hugging Face keep pictures
        cell = cell.get("bytes") or cell.get("path")
    if isinstance(cell, (bytes, bytearray, memoryview)):
        return _core.Image.decode(bytes(cell))
    return as_image(cell)[0]


def _png(labels: np.ndarray[Any, Any]) -> bytes:
    """A label map as a grey PNG, of 8 bits if they do."""
    deep = labels.max(initial=0) > 255
    rows = labels.astype(">u2" if deep else "u1")
    head = struct.pack(">IIBBBBB", labels.shape[1], labels.shape[0], 16 if deep else 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 6)

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _map(prediction: _core.Prediction) -> bytes:
    """The whole answer where it is a map: a PNG of labels, or values as numpy keeps them."""
    if prediction.labels is not None:
        return _png(prediction.labels)
    if prediction.values is not None:
        file = io.BytesIO()
        np.save(file, prediction.values)
        return file.getvalue()
    return b""


class Judge:
    """What a pipeline says of every image of a Ray data set, for `map_batches`.

        photos = ray.data.read_parquet("s3://bucket/photos/")
        judged = photos.map_batches(
            evenkeel.ray.Judge, batch_size=16, num_cpus=4, compute=ray.data.ActorPoolStrategy(size=8),
            fn_constructor_kwargs={"model": "net.onnx", "calibration": "net.calibration.json", "defence": "consensus"},
        )
        judged.write_parquet("s3://bucket/verdicts/")

    model: the path of a network with its contract beside it, on every node, or `embedded:NAME`
    column: where the images are: PNG or JPEG bytes, paths, arrays of height x width x 3 (uint8, or floats in [0, 1]), or `{"bytes": ..., "path": ...}`
    keep: whether the images go on into what comes out
    maps: whether label maps (PNG) and maps of values (.npy) come out whole, in `map`
    skip_bad: whether an image that cannot be read gets its reason in `error`, instead of ending the run
    settings: as `evenkeel.Pipeline` takes them; names and numbers only, since they travel

    Added to the columns that came in: `answer` (JSON), `label` and `name` (a classifier's; -1 and empty else), `score`, `threshold`, `alarm`, `defended`, `voted`, `expected_error`, `error_low`,
    `error_high`, `seconds`, `error`. A number that is not known is NaN, and an alarm that cannot be raised is not raised.
    """

    def __init__(
        self, model: str, *, column: str = "image", keep: bool = False, maps: bool = False, skip_bad: bool = False, **settings: Any
    ) -> None:
        _share_of_threads()
        self.column, self.keep, self.maps, self.skip_bad = column, keep, maps, skip_bad
        self.pipeline = Pipeline(_model(os.fspath(model)), **settings)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(batch, Mapping):
            raise EvenkeelError(f"a Judge takes batches of numpy arrays, not a {type(batch).__name__}; leave batch_format out")
        if self.column not in batch:
            raise EvenkeelError(f"there is no column `{self.column}`, but {', '.join(batch)}; say which with column=NAME")
        images, errors = self._read(batch[self.column])
        sound = [image for image in images if image is not None]
        said = iter(self.pipeline.run(sound) if sound else [])
        verdicts = [None if image is None else next(said) for image in images]
        out = {name: values for name, values in batch.items() if self.keep or name != self.column}
        return {**out, **self._columns(verdicts), "error": np.array(errors, dtype=object)}

    def _read(self, cells: Any) -> tuple[list[Optional[_core.Image]], list[str]]:
        images: list[Optional[_core.Image]] = []
        errors = []
        for number, cell in enumerate(cells):
            try:
                images.append(_image(cell))
                errors.append("")
            except EvenkeelError as error:
                if not self.skip_bad:
                    raise EvenkeelError(f"{self._called(number, cell)}: {error}; skip_bad=True goes on without it") from error
                images.append(None)
                errors.append(str(error))
        return images, errors

    def _called(self, number: int, cell: Any) -> str:
        return cell if isinstance(cell, str) else f"row {number} of a batch, column `{self.column}`"

    def _columns(self, verdicts: list[Optional[Verdict]]) -> dict[str, Any]:
        def numbers(of: Any) -> Any:
            return np.array([math.nan if one is None or of(one) is None else of(one) for one in verdicts], dtype=np.float64)

        def words(of: Any) -> Any:
            return np.array(["" if one is None else of(one) or "" for one in verdicts], dtype=object)

        labels = [-1 if one is None or one.prediction.label is None else one.prediction.label for one in verdicts]
        columns = {
            "answer": words(lambda one: one.prediction.json()),
            "label": np.array(labels, dtype=np.int64),
            "name": words(lambda one: one.prediction.name),
            **{name: numbers(lambda one, name=name: getattr(one, name)) for name in _NUMBERS},
            **{name: np.array([bool(one and getattr(one, name)) for one in verdicts]) for name in _FLAGS},
            "error_low": numbers(lambda one: one.error_interval and one.error_interval[0]),
            "error_high": numbers(lambda one: one.error_interval and one.error_interval[1]),
        }
        if self.maps:
            columns["map"] = np.array([b"" if one is None else _map(one.prediction) for one in verdicts], dtype=object)
        return columns
