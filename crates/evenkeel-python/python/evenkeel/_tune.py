"""Tuning: what to use on a network, found by trying."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

from . import _core
from ._core import EvenkeelError
from ._progress import Progress, reported

File = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Tuned:
    """What tuning came to."""

    #: The policy's file, for `ek.Pipeline.from_policy`.
    policy: Path
    #: The page that shows why.
    page: Path
    #: What the policy does and what it withstands.
    about: str
    #: Whether the time ran out before every stage was complete; the same call goes on from there.
    cut_short: bool


def tune(
    network: File,
    kind: str,
    path: File,
    *,
    minutes: float = _core.TUNE_MINUTES,
    epsilon: Union[float, str] = _core.TUNE_EPSILON,
    clean_loss: float = _core.TUNE_CLEAN_LOSS,
    split: Optional[str] = None,
    classes: Optional[int] = None,
    size: Optional[str] = None,
    limit: Optional[int] = None,
    policy: Optional[File] = None,
    folder: Optional[File] = None,
    threads: Optional[int] = None,
    seed: int = 0,
    progress: Progress = False,
) -> Tuned:
    """Finds what to use on a network, by trying defences, answers and detectors under attackers of increasing knowledge, and writes a policy.

    Half of the images choose, the other half judge. Interrupted or out of time, the same call goes on from there.

    network: an ONNX file with its contract beside it, or "embedded:NAME" for one of the package's
    kind, path: the data set, as for `ek.datasets.open`; it has labels
    minutes: how long it may take
    epsilon: the attacks' radius
    clean_loss: how many points of the clean score may be lost
    policy, folder: where the policy and the results go; beside the network if left out
    """
    name = os.fspath(network)
    if kind == "folder":
        raise EvenkeelError("tune: a data set with labels is needed here; `python -m evenkeel tune` takes a plain folder")
    stem = os.path.splitext(name.replace(":", "-"))[0]
    file = os.fspath(policy) if policy is not None else f"{stem}.policy.toml"
    where = os.fspath(folder) if folder is not None else f"{stem}.tune"
    wanted = {
        "network": name,
        "kind": kind,
        "path": path,
        "split": split,
        "classes": classes,
        "size": size,
        "limit": limit,
        "minutes": minutes,
        "epsilon": epsilon if isinstance(epsilon, str) else repr(float(epsilon)),
        "clean_loss": clean_loss,
        "policy": file,
        "folder": where,
        "threads": threads,
        "seed": seed,
    }
    with reported(progress, 0, "tune") as bar:
        about, cut_short = _core.tune_network(wanted, bar)
    return Tuned(Path(file), Path(where) / "index.html", about, cut_short)
