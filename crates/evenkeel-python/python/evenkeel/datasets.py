"""Data sets of the field, read where they lie."""

from __future__ import annotations

import os
from typing import Any, Iterator, NamedTuple, Optional, Union

from . import _core


class Sample(NamedTuple):
    """An image with its truth."""

    #: Its name in the data set.
    id: str
    #: The image, height x width x 3 of uint8.
    image: Any
    #: A class, a label map, a list of instances, or None.
    truth: Any


class Dataset:
    """A data set opened at a path: samples are read when they are asked for.

    >>> import evenkeel as ek
    >>> scenes = ek.datasets.open("scenes", "3@64x32")
    >>> len(scenes), scenes[0].image.shape, scenes[0].truth.shape
    (3, (32, 64, 3), (32, 64))
    """

    def __init__(self, core: _core.Dataset, kind: str) -> None:
        self._core = core
        self.kind = kind

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in index order; empty if the data set names none."""
        return self._core.classes

    @property
    def ids(self) -> list[str]:
        """The names of the samples."""
        return self._core.ids

    def __len__(self) -> int:
        return len(self._core)

    def __getitem__(self, position: int) -> Sample:
        place = position + len(self) if position < 0 else position
        if not 0 <= place < len(self):
            raise IndexError(f"sample {position} of {len(self)}")
        name, image, truth = self._core.sample(place)
        return Sample(name, image.to_uint8(True), truth)

    def __iter__(self) -> Iterator[Sample]:
        return (self[position] for position in range(len(self)))

    def __repr__(self) -> str:
        return f"Dataset({self.kind}, {len(self)} samples)"


def open(
    kind: str,
    path: Union[str, "os.PathLike[str]"],
    *,
    split: Optional[str] = None,
    classes: Optional[int] = None,
    limit: Optional[int] = None,
    every: Optional[int] = None,
    seed: Optional[int] = None,
    size: Optional[str] = None,
) -> Dataset:
    """Opens the data set of a kind under a path; `ek.datasets.kinds()` lists them.

    split: the part to read, `val` say
    classes: how many classes there are, for layouts that do not say
    limit, every, seed: at most this many samples; every n-th; drawn at random from a seed instead of the first
    size: WIDTHxHEIGHT, or `native`, instead of the kind's usual size
    """
    core = _core.Dataset.open(kind, os.fspath(path), split, classes, limit, every, seed, size)
    return Dataset(core, kind)


def kinds() -> dict[str, str]:
    """Every kind of data set with a line about it.

    >>> import evenkeel as ek
    >>> "cityscapes" in ek.datasets.kinds()
    True
    """
    return {name: f"{about} ({layout})" for name, about, layout in _core.dataset_kinds()}
