"""What the tests share: the networks that come with the package, a scene, and the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import _core


@pytest.fixture(scope="session")
def classifier() -> ek.Model:
    return ek.shipped("classifier")


@pytest.fixture(scope="session")
def segmenter() -> ek.Model:
    return ek.shipped("segmenter")


@pytest.fixture(scope="session")
def finder() -> ek.Model:
    return ek.shipped("instances")


@pytest.fixture(scope="session")
def crop() -> np.ndarray:
    """An image at the classifier's size."""
    return ek.scenes.render(7, size=(64, 64)).image


@pytest.fixture(scope="session")
def scene() -> ek.scenes.Scene:
    return ek.scenes.render(7)


@pytest.fixture(scope="session")
def data() -> Path:
    return data_folder()


def data_folder() -> Path:
    """Real networks and images, which are not part of the project."""
    places = [Path(os.environ.get("EVENKEEL_DATA", "")), *(up / "shared" / "data" for up in Path(__file__).resolve().parents)]
    for place in places:
        if str(place) != "." and (place / "models").is_dir():
            return place
    pytest.skip("shared/data (or $EVENKEEL_DATA) is not there")


class Commands:
    """The command line in a folder, as a person uses it, on files of the same networks and images."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.classifier = _core.write_shipped("classifier", folder)
        self.segmenter = _core.write_shipped("segmenter", folder)
        self.instances = _core.write_shipped("instances", folder)
        self.crop = self.save("crop.png", ek.scenes.render(7, size=(64, 64)).image)
        self.scene = self.save("scene.png", ek.scenes.render(7).image)

    def save(self, name: str, image: np.ndarray) -> Path:
        path = self.folder / name
        path.write_bytes(_core.Image.from_array(image, True).png())
        return path

    def run(self, *words: Any) -> list[dict[str, Any]]:
        """The lines of JSON that a command prints."""
        command = [sys.executable, "-m", "evenkeel", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    return Commands(tmp_path_factory.mktemp("commands"))


@pytest.fixture
def read() -> Callable[[Path], np.ndarray]:
    return lambda path: _core.Image.load(path).to_uint8(True)
