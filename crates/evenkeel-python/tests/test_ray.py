"""Studies on a Ray cluster of two nodes on this machine, whose workers and one node are killed. Needs ray; skipped where it is not installed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

import evenkeel as ek
from evenkeel import EvenkeelError

pytest.importorskip("ray")

STUDY = """
name = "small"
[[subject]]
name = "crops"
model = "embedded:classifier"
data = "scenes-objects"
path = "40@64x64"
[[attack]]
kind = "pgd"
steps = 10
[[defence]]
kind = "equivariance"
steps = 4
[[detector]]
kind = "variance"
"""


def workers(mark: str) -> list[int]:
    """Processes of this cluster that run a work item now."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            at_work = (folder / "cmdline").read_bytes().startswith(b"ray::_item")
            if at_work and f"EVENKEEL_TEST_CLUSTER={mark}\0".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found


@pytest.fixture
def nodes(monkeypatch):
    import ray
    from ray.cluster_utils import Cluster

    mark = str(os.getpid())
    monkeypatch.setenv("EVENKEEL_TEST_CLUSTER", mark)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    node = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster, node, mark
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="workers are found in /proc")
def test_killed_workers_and_a_killed_node_leave_the_records_of_one_process(nodes, tmp_path):
    from evenkeel.ray import run_study

    cluster, node, mark = nodes
    file = tmp_path / "small.toml"
    file.write_text(STUDY)
    whole = ek.study.run(file, out=tmp_path / "whole", threads=1)
    killed, stop, chance = [], threading.Event(), random.Random(4)

    def kill():
        while len(killed) < 20 and not stop.wait(chance.uniform(0.05, 0.6)):
            for worker in chance.sample(found := workers(mark), min(1, len(found))):
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)
            if len(killed) == 10:
                cluster.remove_node(node, allow_graceful=False)
                killed.append(-1)

    thread = threading.Thread(target=kill)
    thread.start()
    began = time.monotonic()
    try:
        with pytest.raises(EvenkeelError, match="the widest node"):
            run_study(file, store=tmp_path / "far", address=None, cpus_per_task=99)
        ran = run_study(file, store=tmp_path / "far", address=None, cpus_per_task=1, item_minutes=0.01, retries=30)
    finally:
        stop.set()
        thread.join()
    print(f"{ran.items} items, {len(killed)} kills, {ran.again} begun again, {ran.most_tries} tries at most, {time.monotonic() - began:.0f} s")
    assert len(killed) >= 11 and ran.again > 0 and ran.most_tries <= 31
    for name in ["records.parquet", "detections.parquet"]:
        assert (ran.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    assert run_study(file, store=tmp_path / "far", address=None, cpus_per_task=1).items == 0
