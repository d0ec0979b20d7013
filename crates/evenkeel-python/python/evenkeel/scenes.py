"""Street scenes drawn from a seed, with exact truths."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _core
from ._core import Instance


class Scene(NamedTuple):
    """A rendered scene and what is true of it."""

    #: Height x width x 3 of uint8.
    image: Any
    #: A class for every pixel, height x width of uint16.
    labels: Any
    #: Its people and cars.
    instances: list[Instance]


def render(seed: int, *, size: tuple[int, int] = (128, 256)) -> Scene:
    """The scene of a seed at a (height, width); the same seed shows the same street at every size.

    >>> import evenkeel as ek
    >>> ek.scenes.render(7).image.shape
    (128, 256, 3)
    """
    image, labels, instances = _core.render(seed, *size)
    return Scene(image.to_uint8(True), labels, instances)


def classes() -> list[str]:
    """The names of the classes of label maps."""
    return _core.scene_classes()
