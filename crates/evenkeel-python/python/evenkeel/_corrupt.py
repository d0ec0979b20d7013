"""The corruptions of ImageNet-C."""

from __future__ import annotations

from typing import Any

from . import _core
from ._image import Batch, Images


def corrupt(image: Images, name: str, severity: int = 3, *, seed: int = 0) -> Any:
    """A corrupted image, or a list for several; the type that came in goes out. `ek.corruptions()` lists the names.

    >>> import evenkeel as ek
    >>> ek.corrupt(ek.scenes.render(7).image, "fog", 3).dtype
    dtype('uint8')
    """
    batch = Batch(image)
    made = _core.corrupt(batch.images, name, severity, seed)
    return batch.answer([back(image) for image, back in zip(made, batch.backs)])


def corruptions() -> dict[str, str]:
    """Every corruption with a line about it: the fifteen of the benchmark, then the extras.

    >>> import evenkeel as ek
    >>> len(ek.corruptions())
    19
    """
    return {name: about for name, about, _ in _core.corruptions()}
