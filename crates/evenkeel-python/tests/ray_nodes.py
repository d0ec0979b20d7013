"""A Ray cluster of several nodes on this machine, and what kills its workers and nodes at random moments."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

#: In the environment of every process of a cluster, so that nothing else is killed.
MARK = "EVENKEEL_TEST_CLUSTER"


def workers(mark: str) -> list[int]:
    """Processes of this cluster that run a work item now."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            at_work = (folder / "cmdline").read_bytes().startswith(b"ray::run_item")
            if at_work and f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found


@contextmanager
def cluster(nodes: list[dict[str, Any]]) -> Iterator[tuple[Any, list[Any], str]]:
    """A head and nodes of one processor each; gives the cluster, the nodes behind the head, and the mark of their processes."""
    import ray
    from ray.cluster_utils import Cluster

    mark = os.environ[MARK] = str(os.getpid())
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        others = [made.add_node(num_cpus=1, **node) for node in nodes]
        ray.init(address=made.address, log_to_driver=False)
        yield made, others, mark
    finally:
        ray.shutdown()
        made.shutdown()


class Killer(threading.Thread):
    """Kills -9 the given number of workers that are in the middle of an item, and in the middle of that one node."""

    def __init__(self, made: Any, node: Any, mark: str, count: int, seed: int, pause: tuple[float, float]) -> None:
        super().__init__(daemon=True)
        self.made, self.node, self.mark, self.count, self.pause = made, node, mark, count, pause
        self.chance, self.over = random.Random(seed), threading.Event()
        self.workers = self.nodes = 0

    def run(self) -> None:
        while (self.workers < self.count or not self.nodes) and not self.over.wait(self.chance.uniform(*self.pause)):
            found = workers(self.mark)
            if found and self.workers < self.count:
                try:
                    os.kill(self.chance.choice(found), signal.SIGKILL)
                    self.workers += 1
                except ProcessLookupError:
                    continue
            if self.workers >= self.count // 2 and not self.nodes:
                self.made.remove_node(self.node, allow_graceful=False)
                self.nodes = 1

    def __enter__(self) -> "Killer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
