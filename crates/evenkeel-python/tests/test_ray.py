"""Studies on a Ray cluster of two nodes on this machine, whose workers and one node are killed, and batch inference. Needs ray; skipped where it is not installed.

    full/bin/python -m pytest -m slow -s crates/evenkeel-python/tests/test_ray.py
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import EvenkeelError, _core
from ray_nodes import Killer, cluster

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="workers are found in /proc")]

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


def protocol(folder: Path) -> Path:
    """The protocol's template: four subjects under everything."""
    file = folder / "protocol.toml"
    words = [sys.executable, "-m", "evenkeel", "study", "new", "protocol"]
    file.write_text(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return file


def alone(file: Path, folder: Path) -> Path:
    """The same rehearsal in one process."""
    words = [sys.executable, "-m", "evenkeel", "study", "run", str(file), "--quick", "--limit", "2", "--threads", "1", "--out", str(folder)]
    subprocess.run(words, check=True, capture_output=True)
    return folder


def same_tables(one: Path, other: Path) -> None:
    for name in ["records.parquet", "detections.parquet"]:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def test_killed_workers_and_a_killed_node_leave_the_records_of_one_process(tmp_path):
    from evenkeel.ray import run_study

    file = protocol(tmp_path)
    whole = alone(file, tmp_path / "whole")
    again = {"store": tmp_path / "far", "address": None, "quick": True, "limit": 2}
    with cluster([{}]) as (made, (node,), mark):
        with pytest.raises(EvenkeelError, match="the widest node"):
            run_study(file, **again, cpus_per_task=99)
        began = time.monotonic()
        with Killer(made, node, mark, count=20, seed=4, pause=(0.5, 2.5)) as killer:
            ran = run_study(file, **again, cpus_per_task=1, item_minutes=0.04, retries=30)
        print(f"\n{ran.items} items, {killer.workers} workers and {killer.nodes} node killed, {ran.again} begun again,", end=" ")
        print(f"{ran.most_tries} tries at most, {ran.made} results, {time.monotonic() - began:.0f} s")
        assert (killer.workers, killer.nodes) == (20, 1)
        assert ran.again >= 20 and ran.most_tries <= 31
        same_tables(ran.folder, whole)
        logs = list((tmp_path / "far").glob("item-*.log"))
        assert len(logs) == ran.items, "each item is kept once"
        assert run_study(file, **again, cpus_per_task=1).items == 0


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(STUDY)
    words = [sys.executable, "-m", "evenkeel.ray", str(file), "--store", "far", "--address", "local", "--cpus-per-task", "1", "--item-minutes", "0.01"]
    first = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while len(list((tmp_path / "far").glob("item-*.log"))) < 3 and time.monotonic() < end:
        time.sleep(0.1)
    first.send_signal(signal.SIGINT)
    said = first.communicate(timeout=60)[1]
    assert first.returncode == 130 and "the same call goes on" in said, said
    kept = {log.name: log.stat().st_mtime_ns for log in (tmp_path / "far").glob("item-*.log")}
    second = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert second.returncode == 0 and "complete: 160 rows" in second.stdout, second.stdout + second.stderr
    assert all((tmp_path / "far" / name).stat().st_mtime_ns == then for name, then in kept.items()), "nothing is done twice"
    same_tables(tmp_path / "far", ek.study.run(file, out=tmp_path / "whole", threads=1).folder)
    wrong = subprocess.run([*words[:3], "none.toml", *words[4:]], cwd=tmp_path, capture_output=True, text=True)
    assert wrong.returncode == 2 and "none.toml" in wrong.stderr


def test_what_is_wrong_with_an_item_ends_the_run(tmp_path):
    from evenkeel.ray import run_study

    file = tmp_path / "small.toml"
    table = tmp_path / "table.csv"
    for number in range(6):
        crop = ek.scenes.render(number, size=(64, 64)).image
        (tmp_path / f"{number}.png").write_bytes(_core.Image.from_array(crop, True).png())
    table.write_text("image,label\n" + "".join(f"{number}.png,{number}\n" for number in range(6)))
    file.write_text(STUDY.replace("scenes-objects", "manifest").replace("40@64x64", str(table)))
    (tmp_path / "4.png").write_bytes(b"no picture")
    with cluster([{}]):
        with pytest.raises(EvenkeelError, match=r"a work item failed \d times(?s:.*)4\.png"):
            run_study(file, store=tmp_path / "far", address=None, cpus_per_task=1, item_minutes=0.001, progress=False)


@pytest.fixture
def photos(tmp_path):
    """Twenty crops in Parquet, two of them attacked, one that is no picture."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    crops = [ek.scenes.render(number, size=(64, 64)).image for number in range(20)]
    pictures = [_core.Image.from_array(crop, True).png() for crop in crops]
    pictures[7] = b"no picture"
    (tmp_path / "photos").mkdir()
    pq.write_table(pa.table({"id": list(range(20)), "image": pictures}), tmp_path / "photos" / "a.parquet")
    return tmp_path, crops


def test_a_judge_gives_the_verdicts_of_one_process_in_parquet(photos):
    import pyarrow.parquet as pq
    import ray
    from evenkeel.ray import Judge

    folder, crops = photos
    settings = {"detector": "variance", "threshold": 3.0, "defence": "consensus", "seed": 3}
    with cluster([{}]):
        found = ray.data.read_parquet(str(folder / "photos"))
        given = {"model": "embedded:classifier", "skip_bad": True, **settings}
        judged = found.map_batches(
            Judge, fn_constructor_kwargs=given, batch_size=8, num_cpus=1, compute=ray.data.ActorPoolStrategy(size=1)
        )
        judged.write_parquet(str(folder / "verdicts"))
    rows = {row["id"]: row for row in pq.read_table(folder / "verdicts").to_pylist()}
    assert len(rows) == 20 and "image" not in rows[0]
    pipeline = ek.Pipeline(ek.shipped("classifier"), **settings)
    for number, crop in enumerate(crops):
        row = rows[number]
        if number == 7:
            assert row["error"] and row["label"] == -1 and np.isnan(row["score"]) and not row["alarm"]
            continue
        verdict = pipeline(crop)
        assert row["error"] == "" and row["answer"] == verdict.prediction.json()
        assert (row["label"], row["name"]) == (verdict.prediction.label, verdict.prediction.name)
        assert (row["score"], row["threshold"]) == (verdict.score, verdict.threshold)
        assert (row["alarm"], row["defended"], row["voted"]) == (verdict.alarm, verdict.defended, verdict.voted)
        assert row["seconds"] > 0
    assert {row["alarm"] for number, row in rows.items() if number != 7} == {True, False}
