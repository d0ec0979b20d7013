"""Features of views compared where they are: the objective's value by torch, on the module's device, and its gradient by autograd.

The same numbers as the library's own objective, up to rounding: with f0 the image's features, f_i a view's brought back to f0's grid, n = |f| + 1e-10 and m the
cells in sight, a pair adds the sum of m_i m_j f_i f_j / (n_i n_j).
"""

from __future__ import annotations

from typing import Any, Sequence

from ._core import Comparison, EvenkeelError


def _planes(features: Any, name: str) -> tuple[Any, tuple[int, int]]:
    """Features of one image as channels x cells, and the grid of the cells."""
    if features.ndim == 3:
        return features.reshape(features.shape[0], -1), (features.shape[1], features.shape[2])
    if features.ndim == 1:
        return features.reshape(-1, 1), (1, 1)
    raise EvenkeelError(f"tensor {name}: a map [1, c, h, w] or a vector [1, c] is needed, not {[1, *features.shape]}")


def _vectors(rows: Sequence[Any], name: str, asked: Comparison) -> list[tuple[Any, Any]]:
    """The features of the image and of its views on the image's grid, each with the cells that count; None where all do."""
    import torch

    own, to = _planes(rows[0], name)
    if asked.pooled:
        return [(_planes(row, name)[0].mean(1, keepdim=True), None) for row in rows]

    def there(array: Any) -> Any:
        return torch.from_numpy(array).to(own.device)

    kept = asked.kept(to[0] * to[1])
    made = [(own, None if kept is None else there(kept).to(own.dtype))]
    for view, row in enumerate(rows[1:]):
        seen, grid = _planes(row, name)
        if seen.shape[0] != own.shape[0]:
            raise EvenkeelError(f"tensor {name}: {seen.shape[0]} channels in a view, {own.shape[0]} in the image")
        at, weights, mask = asked.undo(view, grid, to)
        four = seen[:, there(at).reshape(-1)].reshape(seen.shape[0], -1, 4)
        made.append(((four * there(weights).to(own.dtype)).sum(-1), there(mask).to(own.dtype)))
    return made


def value(rows: Sequence[Sequence[Any]], asked: Comparison) -> Any:
    """The sum of cosines over names and pairs; `rows` holds, for the image and each of its views, the features of each name."""
    import torch

    total: Any = 0.0
    for place, name in enumerate(asked.features):
        vectors = _vectors([row[place] for row in rows], name, asked)
        # not every device has double precision
        wide = torch.float32 if vectors[0][0].device.type == "mps" else torch.float64
        lengths = [torch.linalg.vector_norm(vector, dtype=wide) + 1e-10 for vector, _ in vectors]
        kept = vectors[0][1]
        last = len(vectors) if asked.all_pairs else 1
        for i in range(last):
            for j in range(i + 1, len(vectors)):
                product = vectors[i][0] * vectors[j][0]
                for mask in [kept] if i == 0 else [kept, vectors[i][1]]:
                    product = product if mask is None else product * mask
                mask = vectors[j][1]
                product = product if mask is None else product * mask
                total = total + product.sum(dtype=wide) / (lengths[i] * lengths[j])
    return total
