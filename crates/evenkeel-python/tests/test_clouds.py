"""Studies on Azure's and Google's object stores, emulated on loopback behind a front that refuses, loses answers and falls silent. Needs a wheel with the feature `remote` and
the emulators that `clouds` names; skipped elsewhere.

    AZURITE=.../azurite-blob STORAGE_TESTBENCH=.../gunicorn full/bin/python -m pytest -m slow -s crates/evenkeel-python/tests/test_clouds.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

import pytest

import clouds
from faulty_s3 import has_network

STUDY = """
name = "small"
[[subject]]
name = "crops"
model = "embedded:classifier"
data = "scenes-objects"
path = "12@64x64"
[[attack]]
kind = "pgd"
steps = 2
[[defence]]
kind = "random"
"""


pytestmark = [pytest.mark.slow, pytest.mark.skipif(not has_network(), reason="this wheel was built without the feature remote")]


@pytest.fixture(params=["az", "gs"])
def place(request, monkeypatch):
    """The front and the URL of a place behind it."""
    found, start = {"az": (clouds.azurite, clouds.azure), "gs": (clouds.testbench, clouds.google)}[request.param]
    if not found():
        pytest.skip(f"the emulator for {request.param}:// is not installed")
    with start("bucket") as (front, env):
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        yield front, f"{request.param}://bucket/studies"


def run(folder, *words, machine="one"):
    """On a machine, which is known by its cache."""
    env = {**os.environ, "EVENKEEL_CACHE": str(folder / f"machine {machine}")}
    done = subprocess.run([sys.executable, "-m", "evenkeel", *map(str, words)], capture_output=True, text=True, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_machines_that_do_the_same_items_keep_each_once(place, tmp_path):
    front, url = place
    (tmp_path / "small.toml").write_text(STUDY)
    run(tmp_path, "study", "run", "small.toml", "--out", "whole", "--threads", 1)
    whole = (tmp_path / "whole" / "records.parquet").read_bytes()
    run(tmp_path, "study", "plan", "small.toml", "--out", f"{url}/items", "--items", "my.items", "--item-minutes", 0.0001, "--cpus-per-task", 1)
    count = len((tmp_path / "my.items").read_text().splitlines())
    assert count > 3
    front.share = 0.2

    def machine(name, order):
        for item in order:
            run(tmp_path, "study", "run", "small.toml", "--out", f"{url}/items", "--items", "my.items", "--item", item, machine=name)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(machine, ["one", "two"], [range(1, count + 1), range(count, 0, -1)]))
    for part in ["1/2", "2/2"]:
        run(tmp_path, "study", "run", "small.toml", "--shard", part, "--out", f"{url}/shards", machine=part[0])
    front.share = 0.0
    made = {unquote(path): times for path, times in front.created.items() if "/item-" in unquote(path)}
    print(f"\n{url}: {count} items, faults {dict(front.faults)}")
    assert len([path for path in made if "/items/" in path]) == count and set(made.values()) == {1}, "each item is made once"
    assert sum(front.faults.values()) > 3
    for name in ["items", "shards"]:
        assert "nothing is missing" in run(tmp_path, "study", "merge", f"{url}/{name}", "--out", name, machine="third")
        assert (tmp_path / name / "records.parquet").read_bytes() == whole
