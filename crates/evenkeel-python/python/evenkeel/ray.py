"""Studies on a Ray cluster: `pip install evenkeel[ray]`.

A study is cut into work items of some minutes (`evenkeel study plan` has the same); a Ray task does one and keeps it as a whole, so a task that is killed
anywhere leaves nothing behind and is done again elsewhere.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional, Union

from . import _core
from ._core import EvenkeelError

File = Union[str, "os.PathLike[str]"]

#: How often an item is begun again after an error, which is likely to come again; deaths of workers and nodes do not count.
ERRORS = 3


@dataclass(frozen=True)
class Ran:
    """What a run of a study on a cluster came to."""

    #: The folder with the tables; for a URL, its copy on this machine.
    folder: Path
    #: The table of records in Parquet.
    path: Path
    #: Its rows.
    rows: int
    #: Results made by this run.
    made: int
    #: Work items of this run, and how often one was begun again because its worker or node died or it failed.
    items: int
    again: int
    #: The most often that one item was begun.
    most_tries: int
    #: What the design leaves out, and why.
    left_out: list[str]


def _ray(address: Optional[str]) -> Any:
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise EvenkeelError("evenkeel.ray needs ray: pip install 'evenkeel[ray]'") from error
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, include_dashboard=False if address in (None, "local") else None)
    return ray


def _item(part: dict[str, Any], store: str, item: str, threads: int) -> int:
    """One work item, in a worker of the cluster."""
    return _core.study_item(part, store, item, threads)


class _Schedule:
    """Items on a cluster: so many in flight, those that died or failed begun again."""

    def __init__(self, ray: Any, items: list[tuple[str, float]], start: Callable[[str], Any], cpus: int, retries: int) -> None:
        self.ray, self.items, self.start, self.cpus, self.retries = ray, items, start, cpus, retries
        # the longest first, so that none is left alone at the end
        self.queue = deque(sorted(range(len(items)), key=lambda number: -items[number][1]))
        self.flying: dict[Any, int] = {}
        self.tries, self.errors = [0] * len(items), [0] * len(items)
        self.made = self.ended = 0
        self.seconds = 0.0

    def room(self) -> int:
        """How many tasks may be in flight: twice what the cluster, as it is now, runs at a time."""
        return 2 * max(1, int(self.ray.cluster_resources().get("CPU", 0) // self.cpus))

    def fill(self) -> None:
        room = self.room()
        while self.queue and len(self.flying) < room:
            number = self.queue.popleft()
            self.tries[number] += 1
            self.flying[self.start(self.items[number][0])] = number

    def wait(self, seconds: float) -> None:
        """Takes in what ended."""
        ended, _ = self.ray.wait(list(self.flying), num_returns=1, timeout=seconds)
        for task in ended:
            number = self.flying.pop(task)
            try:
                self.made += self.ray.get(task)
                self.ended += 1
                self.seconds += self.items[number][1]
            except self.ray.exceptions.RayError as error:
                self.again(number, error)

    def again(self, number: int, error: Exception) -> None:
        self.errors[number] += isinstance(error, self.ray.exceptions.RayTaskError)
        if self.errors[number] > ERRORS or self.tries[number] > self.retries:
            cause = getattr(error, "cause", None) or error
            raise EvenkeelError(f"a work item failed {self.tries[number]} times; what is done is kept. The last time: {cause}") from error
        self.queue.append(number)

    def cancel(self) -> None:
        for task in self.flying:
            self.ray.cancel(task, force=True)


def _words(schedule: _Schedule, began: float) -> str:
    total = sum(seconds for _, seconds in schedule.items)
    words = f"{schedule.ended} of {len(schedule.items)} work items, {100 * schedule.seconds / total if total else 100:.0f} %"
    # an estimate from the clock, and only from items that ended: the probe knows how they compare, not how fast this cluster is
    if schedule.ended >= 3 and schedule.seconds > 0:
        left = (total - schedule.seconds) * (time.monotonic() - began) / schedule.seconds
        words += f", about {left / 60:.0f} min left" if left >= 90 else f", about {left:.0f} s left"
    again = sum(max(0, tries - 1) for tries in schedule.tries)
    return words + (f", {again} begun again" if again else "")


def run_study(
    path: File,
    *,
    store: Optional[File] = None,
    address: Optional[str] = "auto",
    cpus_per_task: int = 4,
    item_minutes: float = 5.0,
    retries: int = 20,
    quick: bool = False,
    limit: Optional[int] = None,
    progress: bool = True,
) -> Ran:
    """Runs what is missing of an experiment file on a Ray cluster, and writes its tables when nothing is. Interrupted, it goes on where it was.

    store: a folder that all nodes share, or a URL (s3://bucket/prefix, gs://, az://; a wheel with the feature `remote`); NAME.study if left out
    address: the cluster's, as `ray.init` takes it; "local" starts one on this machine
    cpus_per_task: processors of a work item
    item_minutes: how long an item takes by the probe, on all its processors
    retries: how often an item is begun again when its worker or its node died
    quick, limit: as `evenkeel study run --quick --limit`
    progress: print how far it is, every ten seconds at most
    """
    ray = _ray(address)
    widest = max((node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]), default=0)
    if not 1 <= cpus_per_task <= widest:
        raise EvenkeelError(f"cpus_per_task={cpus_per_task}: the widest node of this cluster has {widest:.0f} processors")
    file = os.path.abspath(os.fspath(path))
    try:
        text = Path(file).read_text()
    except OSError as error:
        raise EvenkeelError(f"{file}: {error.strerror}") from error
    part = {"text": text, "file": file, "quick": quick, "limit": limit}
    place = os.fspath(store) if store is not None else f"{_core.study_size(file, '1/1')[0]}{'-quick' if quick else ''}.study"
    place = place if "://" in place else os.path.abspath(place)
    _, items = _core.study_items(part, place, 60.0 * item_minutes * cpus_per_task)
    task = ray.remote(num_cpus=cpus_per_task, max_retries=0, scheduling_strategy="SPREAD")(_item)
    schedule = _Schedule(ray, items, lambda item: task.remote(part, place, item, cpus_per_task), cpus_per_task, retries)
    _drive(schedule, progress, place)
    done = _core.study_finish(place)
    if done["missing"]:
        raise EvenkeelError(f"{place}: {done['missing']} images lack results though all work items ended; run it again")
    again = sum(schedule.tries) - len(items)
    return Ran(
        Path(done["folder"]), Path(done["records"]), done["rows"], schedule.made, len(items), again, max(schedule.tries, default=0), done["left_out"]
    )


def _drive(schedule: _Schedule, progress: bool, place: str) -> None:
    began = last = time.monotonic()
    try:
        while schedule.queue or schedule.flying:
            schedule.fill()
            schedule.wait(5.0)
            if progress and time.monotonic() - last > 10.0:
                last = time.monotonic()
                print(_words(schedule, began), file=sys.stderr, flush=True)
    except BaseException:
        schedule.cancel()
        if progress:
            print(f"stopped: {schedule.ended} of {len(schedule.items)} work items are kept in {place}; the same call goes on", file=sys.stderr)
        raise
    if progress:
        print(_words(schedule, began), file=sys.stderr, flush=True)


def main(words: Optional[list[str]] = None) -> int:
    """`python -m evenkeel.ray my.toml --store PLACE`."""
    parser = argparse.ArgumentParser(prog="python -m evenkeel.ray", description="Run what is missing of a study on a Ray cluster.")
    parser.add_argument("experiment")
    parser.add_argument("--store", help="a folder that all nodes share, or a URL; NAME.study if left out")
    parser.add_argument("--address", default="auto", help="the cluster's; 'local' starts one on this machine (default: auto)")
    parser.add_argument("--cpus-per-task", type=int, default=4, help="processors of a work item (default: 4)")
    parser.add_argument("--item-minutes", type=float, default=5.0, help="length of a work item (default: 5)")
    parser.add_argument("--retries", type=int, default=20, help="how often an item is begun again when its worker or node died (default: 20)")
    parser.add_argument("--quick", action="store_true", help="few images and steps, as `evenkeel study run --quick`")
    parser.add_argument("--limit", type=int, help="so many images of each subject at most")
    given = vars(parser.parse_args(words))
    try:
        ran = run_study(given.pop("experiment"), **given)
    except EvenkeelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(f"{ran.made} results made in {ran.items} work items, {ran.again} begun again; complete: {ran.rows} rows in {ran.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
