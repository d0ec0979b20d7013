"""Views: transformations of an image that can be undone on a feature map."""

from __future__ import annotations

import json
from typing import Any, Mapping, Sequence, Union

from . import _core
from ._core import EvenkeelError, Views
from ._image import ImageLike, as_image

#: A set of views, the name of one, the path of a TOML file, or a list of rules.
ViewsLike = Union[Views, str, Sequence[Mapping[str, Any]]]


def named(name: str) -> Views:
    """The set of this name, or of a TOML file.

    >>> import evenkeel as ek
    >>> len(ek.views.named("vote"))
    6
    """
    return Views.named(name)


def standard() -> Views:
    """The published eight: four resizes, two rotations, colours, a flip.

    >>> import evenkeel as ek
    >>> len(ek.views.standard())
    8
    """
    return Views.named("standard")


def of(rules: Sequence[Mapping[str, Any]]) -> Views:
    """A set from rules, each a kind with its keys.

    >>> import evenkeel as ek
    >>> len(ek.views.of([{"kind": "rotate", "degrees": [-10, 10]}, {"kind": "flip"}]))
    2
    """
    try:
        return Views.parse(json.dumps([dict(rule) for rule in rules], allow_nan=False))
    except (TypeError, ValueError) as error:
        raise EvenkeelError(f"views: a list of rules is needed, each a kind with its keys: {error}") from error


def as_views(given: ViewsLike) -> Views:
    """A set of views from what stands for one."""
    if isinstance(given, Views):
        return given
    return named(given) if isinstance(given, str) else of(given)


def rules(views: ViewsLike) -> list[dict[str, Any]]:
    """The rules of a set."""
    found: list[dict[str, Any]] = json.loads(as_views(views).rules())
    return found


def draw(views: ViewsLike, image: ImageLike, seed: int = 0) -> list[tuple[str, Any]]:
    """The views that a seed draws: what each is, and the image seen through it.

    >>> import evenkeel as ek
    >>> seen = ek.views.draw("standard", ek.scenes.render(7).image)
    >>> len(seen), seen[-1][0][:4]
    (8, 'flip')
    """
    made, back = as_image(image)
    return [(caption, back(seen)) for caption, seen in as_views(views).draw(made, seed)]


def names() -> dict[str, str]:
    """Every named set with a line about it."""
    return dict(_core.named_views())


def kinds() -> dict[str, str]:
    """Every kind of view with a line about it."""
    return dict(_core.view_kinds())
