"""Studies and batch inference on a Ray cluster: `pip install evenkeel[ray]`.

A study is cut into work items of some minutes (`evenkeel study plan` has the same); a Ray task does one and keeps it as a whole, so a task that is killed
anywhere leaves nothing behind and is done again elsewhere. `Judge` is for `map_batches` of Ray Data.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from . import _core
from ._core import EvenkeelError
from ._ray_judge import Judge
from ._ray_schedule import Schedule, run_item

__all__ = ["Judge", "Ran", "run_study"]

File = Union[str, "os.PathLike[str]"]


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
    #: From the first item begun to the last ended, and the seconds of all tasks that ended together.
    seconds: float
    busy_seconds: float
    #: What the design leaves out, and why.
    left_out: list[str]


def _ray(address: Optional[str]) -> Any:
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise EvenkeelError("evenkeel.ray needs ray: pip install 'evenkeel[ray]'") from error
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False if address in (None, "local") else None)
        except (ConnectionError, ValueError) as error:
            words = f'there is no Ray cluster at address="{address}" ({error}); start one with `ray start --head`, or say "local" for this machine'
            raise EvenkeelError(words) from error
    return ray


def run_study(
    path: File,
    *,
    store: Optional[File] = None,
    address: Optional[str] = "auto",
    cpus_per_task: int = _core.CPUS_PER_TASK,
    item_minutes: float = _core.ITEM_MINUTES,
    retries: int = _core.RETRIES,
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
    task = ray.remote(num_cpus=cpus_per_task, max_retries=0)(run_item)
    on = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy

    def start(item: str, node: Optional[str]) -> Any:
        strategy = on(node, soft=False) if node else "SPREAD"
        return task.options(scheduling_strategy=strategy).remote(part, os.getcwd(), place, item, cpus_per_task)

    schedule = Schedule(ray, items, start, cpus_per_task, retries)
    began = time.monotonic()
    _drive(schedule, progress, place)
    seconds = time.monotonic() - began
    done = _core.study_finish(place)
    if done["missing"]:
        raise EvenkeelError(f"{place}: {done['missing']} images lack results though all work items ended; run it again")
    return Ran(
        folder=Path(done["folder"]),
        path=Path(done["records"]),
        rows=done["rows"],
        made=schedule.made,
        items=len(items),
        again=sum(schedule.tries) - len(items),
        most_tries=max(schedule.tries, default=0),
        seconds=seconds,
        busy_seconds=schedule.busy,
        left_out=done["left_out"],
    )


def _drive(schedule: Schedule, progress: bool, place: str) -> None:
    began = last = time.monotonic()
    try:
        while schedule.queue or schedule.flying:
            schedule.fill()
            schedule.wait(5.0)
            if progress and time.monotonic() - last > 10.0:
                last = time.monotonic()
                print(schedule.words(began), file=sys.stderr, flush=True)
    except BaseException:
        schedule.cancel()
        if progress:
            print(f"stopped: {schedule.ended} of {len(schedule.items)} work items are kept in {place}; the same call goes on", file=sys.stderr)
        raise
    if progress:
        print(schedule.words(began), file=sys.stderr, flush=True)


def main(words: Optional[list[str]] = None) -> int:
    """`python -m evenkeel.ray my.toml --store PLACE`."""
    parser = argparse.ArgumentParser(prog="python -m evenkeel.ray", description="Run what is missing of a study on a Ray cluster.")
    parser.add_argument("experiment")
    parser.add_argument("--store", help="a folder that all nodes share, or a URL; NAME.study if left out")
    parser.add_argument("--address", default="auto", help="the cluster's; 'local' starts one on this machine (default: auto)")
    parser.add_argument("--cpus-per-task", type=int, default=_core.CPUS_PER_TASK, help="processors of a work item (default: %(default)s)")
    parser.add_argument("--item-minutes", type=float, default=_core.ITEM_MINUTES, help="length of a work item (default: %(default)g)")
    parser.add_argument("--retries", type=int, default=_core.RETRIES, help="how often an item is begun again when its worker or node died (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="few images and steps, as `evenkeel study run --quick`")
    parser.add_argument("--limit", type=int, help="at most this many images of each subject")
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
