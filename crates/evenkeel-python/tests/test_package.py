"""The package itself: its documentation runs, its types hold, its examples work."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import evenkeel as ek

EXAMPLES = Path(__file__).parent.parent / "examples"
MODULES = [name for _, name, _ in pkgutil.iter_modules(ek.__path__) if name not in ("_core", "__main__")]


@pytest.mark.parametrize("module", ["", *MODULES])
def test_examples_in_the_documentation(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = importlib.import_module(f"evenkeel.{module}" if module else "evenkeel")
    outcome = doctest.testmod(loaded, optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0


def test_everything_public_is_documented():
    for name in ek.__all__:
        thing = getattr(ek, name)
        assert getattr(thing, "__doc__", None) or isinstance(thing, str), name


def test_numpy_is_all_that_is_imported():
    names = "'torch', 'PIL', 'pandas', 'polars', 'tqdm', 'ray'"
    script = f"import sys, evenkeel; print([name for name in ({names}) if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("script", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_examples_run(script, tmp_path, monkeypatch, capsys):
    if "torch" in script:
        pytest.importorskip("torchvision", reason="torchvision is not installed")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert capsys.readouterr().out


def test_the_lines_of_the_front_page_run(tmp_path, monkeypatch, capsys):
    page = Path(__file__).parents[3] / "README.md"
    if not page.exists():
        pytest.skip("the tests were taken out of the repository")
    lines = page.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    assert len(lines.strip().splitlines()) == 6
    monkeypatch.chdir(tmp_path)
    exec(compile(lines, "README.md", "exec"), {})
    assert "Prediction(" in capsys.readouterr().out


def test_the_notebook_runs(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    notebook = nbformat.read(EXAMPLES / "tour.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    assert any("image/png" in out.get("data", {}) for out in shown)
    assert any("text/html" in out.get("data", {}) for out in shown)


def test_types_agree_with_the_module():
    pytest.importorskip("mypy", reason="mypy is not installed")
    for command in (["mypy.stubtest", "evenkeel._core"], ["mypy", "--strict", "--ignore-missing-imports", "-p", "evenkeel"]):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
