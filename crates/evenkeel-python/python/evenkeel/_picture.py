"""Small pictures for notebooks: PNG in HTML, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import html
from typing import Mapping, Sequence

import numpy as np

from . import _core

#: The longest side of a picture in a notebook.
SIDE = 256
#: Most classes that are shown in their colours.
SWATCHES = 32


def small(image: _core.Image) -> _core.Image:
    """The image with every n-th pixel, so that no side is longer than SIDE."""
    step = -(-max(image.size) // SIDE)
    if step == 1:
        return image
    return _core.Image.from_array(np.ascontiguousarray(image.to_uint8(True)[::step, ::step]), True)


def swatches(colours: Sequence[tuple[int, int, int]]) -> _core.Image:
    """Colours beside each other."""
    strip = np.repeat(np.array([colours], dtype=np.uint8), 48, axis=1)
    return _core.Image.from_array(np.repeat(strip, 24, axis=0), True)


def figure(pictures: Sequence[tuple[str, _core.Image]], sentence: str, facts: Mapping[str, str] = {}) -> str:
    """Pictures side by side, each with its caption, a sentence, and facts in a table."""
    parts = []
    for caption, image in pictures:
        data = base64.b64encode(small(image).png()).decode("ascii")
        words = html.escape(caption)
        parts.append(
            '<figure style="display:inline-block;margin:0 8px 8px 0">'
            f'<img alt="{words}" src="data:image/png;base64,{data}">'
            f"<figcaption>{words}</figcaption></figure>"
        )
    rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(fact)}</td></tr>" for name, fact in facts.items())
    table = f"<table>{rows}</table>" if rows else ""
    return f"<div>{''.join(parts)}<p>{html.escape(sentence)}</p>{table}</div>"


def side_by_side(images: Sequence[_core.Image]) -> bytes:
    """Images of one height as one PNG."""
    arrays = [small(image).to_uint8(True) for image in images]
    height = min(array.shape[0] for array in arrays)
    joined = np.ascontiguousarray(np.concatenate([array[:height] for array in arrays], axis=1))
    return _core.Image.from_array(joined, True).png()
