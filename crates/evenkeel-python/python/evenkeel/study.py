"""Studies from a TOML file: resumable, with a record for every image."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from . import _core
from ._core import EvenkeelError
from ._progress import Progress, reported

File = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Records:
    """What a run of a study came to."""

    #: Where everything is.
    folder: Path
    #: The table of records in Parquet; None while results are missing.
    path: Optional[Path]
    #: Its rows.
    rows: Optional[int]
    #: Results made by this run, and those that were there.
    made: int
    kept: int
    #: Images that still lack results, with other shards for instance.
    missing: int
    #: What the design leaves out, and why.
    left_out: list[str]

    def _complete(self) -> Path:
        if self.path is None:
            raise EvenkeelError(f"{self.folder}: {self.missing} images still lack results; run the rest of the study first")
        return self.path

    def to_pandas(self) -> Any:
        """The records as a pandas data frame."""
        import pandas

        return pandas.read_parquet(self._complete())

    def to_polars(self) -> Any:
        """The records as a polars data frame."""
        import polars

        return polars.read_parquet(self._complete())


def run(
    path: File,
    *,
    out: Optional[File] = None,
    threads: Optional[int] = None,
    shard: str = "1/1",
    save_images: bool = False,
    progress: Progress = False,
) -> Records:
    """Runs what is missing of an experiment file, and writes its tables when nothing is. Interrupted, it goes on where it was.

    out: where results go; NAME.study if left out
    threads: images at a time; as many as there are processors if left out
    shard: only this part of the images, "3/16" say
    save_images: keep attacked and defended images as PNG files
    """
    name, total = _core.study_size(os.fspath(path), shard)
    folder = os.fspath(out) if out is not None else f"{name}.study"
    with reported(progress, total, name) as bar:
        ran = _core.study_run(os.fspath(path), folder, threads, shard, save_images, bar)
    records = Path(ran.pop("records")) if ran["records"] else ran.pop("records")
    return Records(path=records, **{**ran, "folder": Path(ran["folder"])})


@dataclass(frozen=True)
class Report:
    """The report of a study."""

    #: The page.
    page: Path
    #: The same tables as Markdown.
    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown


def report(folder: File, *, out: Optional[File] = None, compare: Optional[File] = None, gallery: bool = True) -> Report:
    """Writes a page, and the same tables as Markdown, CSV and LaTeX.

    out: where; `report` in the study's folder if left out
    compare: another study's folder, to be set beside this one
    gallery: show images, which loads networks and data again
    """
    where = os.fspath(out) if out is not None else os.path.join(os.fspath(folder), "report")
    page, markdown = _core.study_report(os.fspath(folder), where, compare, gallery)
    return Report(Path(page), markdown)
