"""Studies, work items and data sets on an S3-compatible server on loopback that refuses, loses answers and falls silent. Needs ray, moto and a wheel with the
feature `remote`; skipped elsewhere.

    full/bin/python -m pytest -m slow -s crates/evenkeel-python/tests/test_ray_store.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import evenkeel as ek
from evenkeel import _core
from faulty_s3 import has_network, store
from ray_nodes import Killer, cluster
from test_ray import alone, protocol, same_tables

pytest.importorskip("moto")


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="workers are found in /proc"),
    pytest.mark.skipif(not has_network(), reason="this wheel was built without the feature remote"),
]


@pytest.fixture
def s3(monkeypatch, tmp_path):
    with store("bucket") as (front, env):
        for name, value in {**env, "EVENKEEL_CACHE": str(tmp_path / "cache")}.items():
            monkeypatch.setenv(name, value)
        yield front


@pytest.fixture
def full_disk(tmp_path):
    """A folder on a disk that is full."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here; run as root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_study_through_faults_kills_and_a_full_disk(s3, full_disk, tmp_path):
    from evenkeel.ray import run_study

    file = protocol(tmp_path)
    whole = alone(file, tmp_path / "whole")
    call = {"store": "s3://bucket/studies/one", "address": None, "cpus_per_task": 1, "quick": True, "limit": 2}
    with cluster([{}, {"env_vars": {"TMPDIR": str(full_disk)}}]) as (made, (node, _), mark):
        s3.share = 0.2
        began = time.monotonic()
        with Killer(made, node, mark, count=20, seed=5, pause=(0.5, 2.5)) as killer:
            ran = run_study(file, **call, item_minutes=0.04, retries=30)
        s3.share = 0.0
        print(f"\n{ran.items} items, {killer.workers} workers and {killer.nodes} node killed, {ran.again} begun again, {ran.most_tries} tries at most,", end=" ")
        print(f"faults {dict(s3.faults)}, {time.monotonic() - began:.0f} s")
        assert (killer.workers, killer.nodes) == (20, 1) and ran.most_tries <= 31
        assert all(s3.faults[kind] > 3 for kind in ["refused", "lost", "silent"])
        same_tables(ran.folder, whole)
        items = {path: times for path, times in s3.created.items() if "/item-" in path}
        assert len(items) == ran.items and set(items.values()) == {1}, "each item is made once"
        assert run_study(file, **call).items == 0
    # another machine, with nothing here
    shutil.rmtree(tmp_path / "cache")
    words = [sys.executable, "-m", "evenkeel", "study", "merge", call["store"], "--out", str(tmp_path / "merged")]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert "nothing is missing" in said
    same_tables(tmp_path / "merged", whole)


def run(*words: str, code: int = 0) -> str:
    done = subprocess.run([sys.executable, "-m", "evenkeel", *words], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


SMALL = """
name = "small"
[[subject]]
name = "crops"
model = "embedded:classifier"
data = "manifest"
path = "s3://bucket/crops/table.csv"
[[defence]]
kind = "random"
"""


def test_data_far_away_is_read_as_it_is_here(s3, tmp_path, monkeypatch):
    import boto3

    client = boto3.client("s3", endpoint_url=s3.url)
    crops = tmp_path / "crops"
    (crops / "pictures").mkdir(parents=True)
    for number in range(12):
        crop = ek.scenes.render(number, size=(64, 64)).image
        (crops / "pictures" / f"a {number}.png").write_bytes(_core.Image.from_array(crop, True).png())
    (crops / "table.csv").write_text("image,label\n" + "".join(f"pictures/a {number}.png,{number % 10}\n" for number in range(12)))
    for path in crops.rglob("*.*"):
        client.upload_file(str(path), "bucket", f"crops/{path.relative_to(crops)}")
    s3.share = 0.2
    here, there = ek.datasets.open("manifest", crops / "table.csv"), ek.datasets.open("manifest", "s3://bucket/crops/table.csv")
    assert len(here) == len(there) == 12
    for one, other in zip(here, there):
        assert one.id == other.id and (one.image == other.image).all() and one.truth == other.truth
    s3.share = 0.0
    assert "12" in run("data", "check", "folder", "s3://bucket/crops/pictures", "--sheet", str(tmp_path / "sheet.png"))
    # a study of them, on two shards that publish to one place
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "here.toml").write_text(SMALL.replace("s3://bucket/crops", str(crops)))
    monkeypatch.chdir(tmp_path)
    run("study", "run", "here.toml", "--out", "whole")
    for part in ["1/2", "2/2"]:
        monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path / f"machine {part[0]}"))
        run("study", "run", "small.toml", "--shard", part, "--out", "s3://bucket/studies/two")
    assert "0 images lack results" in run("study", "status", "s3://bucket/studies/two")
    run("study", "merge", "s3://bucket/studies/two", "--out", "merged")
    assert (tmp_path / "merged" / "records.parquet").read_bytes() == (tmp_path / "whole" / "records.parquet").read_bytes()
    # errors name the URL
    client.put_object(Bucket="bucket", Key="crops/pictures/a 3.png", Body=b"no picture")
    said = run("data", "check", "manifest", "s3://bucket/crops/table.csv", code=2)
    assert "s3://bucket/crops/pictures/a 3.png" in said, said
    assert "there is nothing below it" in run("data", "check", "folder", "s3://bucket/none", code=2)


def test_credentials_come_from_the_environment_alone(s3, monkeypatch):
    said = run("study", "status", "s3://key:secret@bucket/x", code=2)
    assert "from the environment" in said
    assert "is none of s3://" in run("study", "status", "ftp://bucket/x", code=2)
