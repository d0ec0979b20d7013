"""What `bench/python.py` measures holds: agreement with an export, strength and time beside torchattacks and the module. `-m slow` runs it, in minutes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "bench" / "python.py"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench():
    if not BENCH.exists():
        pytest.skip("the tests were taken out of the repository")
    spec = importlib.util.spec_from_file_location("bench_python", BENCH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def needs(*names):
    for name in names:
        pytest.importorskip(name, reason=f"{name} is not installed")


def test_a_real_module_and_its_export_agree(bench, data):
    needs("torch", "onnx")
    found = bench.measured("agreement", data)
    bench.show("agreement", found)
    assert found["features"] < 1e-4 and found["gradients"] < 1e-3 and found["identity"] < 1e-3
    assert set(found["outcomes"]) == set(bench.SITUATIONS)
    for ours, theirs, _ in found["outcomes"].values():
        assert abs(ours - theirs) <= 0.02 * 50


def test_as_strong_and_as_quick_as_torchattacks(bench, data):
    needs("torch", "torchattacks")
    found = bench.measured("steps", data)
    bench.show("steps", found)
    assert found["ours"] <= found["theirs"] + 0.02
    assert found["ratio"] < 1.3


def test_the_engine_defends_faster_than_the_module(bench, data):
    needs("torch", "torchvision", "onnx")
    found = bench.measured("engine", data)
    bench.show("engine", found)
    assert found["ResNet-20, 32x32"][0] > 2.5


def test_the_package_adds_less_than_two_percent(bench):
    found = bench.measured("overhead", None)
    bench.show("overhead", found)
    assert found["inside"] < 0.02
