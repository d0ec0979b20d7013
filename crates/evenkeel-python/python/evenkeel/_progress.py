"""Progress through tqdm, if it is installed and asked for."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Callable, Iterator, Optional, Union

#: False for none, True for a tqdm bar where tqdm is installed, or a function that is called with the number of parts done.
Progress = Union[bool, Callable[[int], object]]


@contextmanager
def reported(progress: Progress, total: int, what: str) -> Iterator[Optional[Callable[[int], object]]]:
    """What the library calls with the number of parts done, or None."""
    if progress is False or progress is None:
        yield None
        return
    if callable(progress):
        yield progress
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    with tqdm(total=total, desc=what) as bar:

        def done(count: int) -> None:
            bar.update(count - bar.n)

        yield done
