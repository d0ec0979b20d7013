"""Work items on a Ray cluster: a bounded number in flight, those whose worker or node died begun again, nodes that fail passed by.

A node on which items fail one after the other (its disk is full, a folder is not mounted) would take all work, since it fails fast. So an item
that failed is tried on another node, and a node that failed gets nothing for a minute, then two, then four.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any, Callable, Optional

from . import _core
from ._core import EvenkeelError

#: How often an item may fail by itself; deaths of workers and nodes do not count.
ERRORS = 3
#: How long a node that failed gets nothing, the first time.
PAUSE = 60.0

#: What a task gives: its node, the results made, the seconds it took, and what went wrong.
Said = tuple[str, int, float, Optional[str]]


def run_item(part: dict[str, Any], folder: str, store: str, item: str, threads: int) -> Said:
    """One work item, in a worker of the cluster."""
    import ray

    node, began = str(ray.get_runtime_context().get_node_id()), time.monotonic()
    made, wrong = 0, None
    try:
        if os.getcwd() != folder:
            os.chdir(folder)
        made = _core.study_item(part, store, item, threads)
    except OSError as error:
        wrong = f"{folder}: {error.strerror}; paths of an experiment are those of the folder it was started in, which all nodes share"
    except EvenkeelError as error:
        wrong = str(error)
    return node, made, time.monotonic() - began, wrong


class Nodes:
    """The nodes of a cluster, and which of them fail."""

    def __init__(self, ray: Any, cpus: int) -> None:
        self.ray, self.cpus = ray, cpus
        self.places: dict[str, int] = {}
        self.seen = float("-inf")
        #: For each node how often it failed since it last did something, and until when it is passed by.
        self.failing: dict[str, tuple[int, float]] = {}
        #: Nodes that tasks could not reach any more: the cluster may list them for a while.
        self.gone: set[str] = set()

    def look(self) -> None:
        if time.monotonic() - self.seen > 2.0:
            self.seen = time.monotonic()
            alive = [node for node in self.ray.nodes() if node["Alive"] and node["NodeID"] not in self.gone]
            self.places = {node["NodeID"]: int(node["Resources"].get("CPU", 0) // self.cpus) for node in alive}

    def sound(self) -> dict[str, int]:
        """Nodes that may get work, with how many tasks run on each at a time; all of them if none is sound."""
        self.look()
        now = time.monotonic()
        sound = {node: places for node, places in self.places.items() if places and self.failing.get(node, (0, 0.0))[1] < now}
        return sound or {node: places for node, places in self.places.items() if places}

    def failed(self, node: str) -> None:
        times = self.failing.get(node, (0, 0.0))[0] + 1
        self.failing[node] = (times, time.monotonic() + PAUSE * 2 ** min(times - 1, 6))

    def did(self, node: str) -> None:
        self.failing.pop(node, None)

    def left(self, node: str) -> None:
        self.gone.add(node)
        self.places.pop(node, None)


class Schedule:
    """Items on a cluster. `start(item, node)` begins one, on that node if one is named."""

    def __init__(
        self, ray: Any, items: list[tuple[str, float]], start: Callable[[str, Optional[str]], Any], cpus: int, retries: int
    ) -> None:
        self.ray, self.items, self.start, self.retries = ray, items, start, retries
        self.nodes = Nodes(ray, cpus)
        # the longest first, so that none is left alone at the end
        self.queue = deque(sorted(range(len(items)), key=lambda number: -items[number][1]))
        self.flying: dict[Any, tuple[int, Optional[str]]] = {}
        self.tries = [0] * len(items)
        #: For each item the nodes it failed on.
        self.failed_on: dict[int, list[str]] = {}
        self.made = self.ended = 0
        #: Of the items that ended: seconds by the probe, and of their tasks.
        self.seconds = self.busy = 0.0

    def fill(self) -> None:
        sound = self.nodes.sound()
        # twice what the cluster, as it is now, runs at a time
        room = 2 * max(1, sum(sound.values()))
        while self.queue and len(self.flying) < room:
            number = self.queue.popleft()
            self.tries[number] += 1
            node = self.node_for(number, sound)
            self.flying[self.start(self.items[number][0], node)] = (number, node)

    def node_for(self, number: int, sound: dict[str, int]) -> Optional[str]:
        """The node an item has to go to: any while all are sound, else the least busy of those that are and where it did not fail."""
        hurt = self.failed_on.get(number, [])
        if len(sound) == len(self.nodes.places) and not hurt:
            return None
        busy = [node for _, node in self.flying.values()]
        others = {node: places for node, places in sound.items() if node not in hurt}
        return min(others, key=lambda node: busy.count(node) / others[node], default=None)

    def wait(self, seconds: float) -> None:
        """Takes in what ended."""
        if not self.flying:
            time.sleep(min(1.0, seconds))
            return
        ended, _ = self.ray.wait(list(self.flying), num_returns=1, timeout=seconds)
        for task in ended:
            number, meant = self.flying.pop(task)
            try:
                node, made, took, error = self.ray.get(task)
            except self.ray.exceptions.RayTaskError as error:
                # not an error of the item, which it says itself, but of what is around it
                self.again(number, self.failure(number, "", str(error.cause or error)), error)
            except self.ray.exceptions.TaskUnschedulableError as error:
                # never begun: the node it was meant for is no more
                if meant is None:
                    self.again(number, None if self.tries[number] <= self.retries else str(error), error)
                    continue
                self.nodes.left(meant)
                self.tries[number] -= 1
                self.queue.append(number)
            except self.ray.exceptions.RayError as error:
                self.again(number, None if self.tries[number] <= self.retries else str(error), error)
            else:
                if error is not None:
                    self.again(number, self.failure(number, node, error), None)
                    continue
                self.nodes.did(node)
                self.made += made
                self.ended += 1
                self.busy += took
                self.seconds += self.items[number][1]

    def failure(self, number: int, node: str, words: str) -> Optional[str]:
        """Notes that an item failed on a node; gives the words if it is not to be tried again."""
        hurt = self.failed_on.setdefault(number, [])
        hurt.append(node)
        self.nodes.failed(node)
        elsewhere = any(other not in hurt for other in self.nodes.sound())
        return words if len(hurt) > ERRORS and not elsewhere or self.tries[number] > self.retries else None

    def again(self, number: int, over: Optional[str], cause: Optional[Exception]) -> None:
        if over is not None:
            raise EvenkeelError(f"a work item failed {self.tries[number]} times; what is done is kept. The last time: {over}") from cause
        self.queue.append(number)

    def cancel(self) -> None:
        for task in self.flying:
            self.ray.cancel(task, force=True)

    def words(self, began: float) -> str:
        """How far it is."""
        total = sum(seconds for _, seconds in self.items)
        words = f"{self.ended} of {len(self.items)} work items, {100 * self.seconds / total if total else 100:.0f} %"
        # an estimate from the clock, and only from items that ended: the probe knows how they compare, not how fast this cluster is
        if self.ended >= 3 and self.seconds > 0:
            left = (total - self.seconds) * (time.monotonic() - began) / self.seconds
            words += f", about {left / 60:.0f} min left" if left >= 90 else f", about {left:.0f} s left"
        again = sum(max(0, tries - 1) for tries in self.tries)
        failing = sum(until > time.monotonic() for _, until in self.nodes.failing.values())
        return words + (f", {again} begun again" if again else "") + (f", {failing} nodes fail and are passed by" if failing else "")
