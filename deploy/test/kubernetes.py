"""Holds the manifests to the schemas of Kubernetes, and their scripts to a shell, without a cluster or a network.

    pip install kubernetes-validate && python deploy/test/kubernetes.py

The package brings the schemas of every release; unknown keys are errors. Says so and ends well where it is not installed.
"""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "kubernetes"
#: The first with limits of one index, and the newest that the package knows.
FIRST = "1.29"


def offences(manifest: dict[str, Any], version: str) -> list[str]:
    import kubernetes_validate

    try:
        kubernetes_validate.validate(manifest, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{'.'.join(map(str, error.path))}: {error.message}"]
    return []


def scripts(manifest: dict[str, Any]) -> list[str]:
    pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
    return [text for container in pod.get("containers", []) for text in container.get("args", [])]


def strided(script: str) -> list[int]:
    """The items that all indexes of the study's script run, with a stand-in for the program."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "my.items").write_text("x\n" * 37)
        (folder / "evenkeel").write_text(f'#!/bin/sh\nwhile [ "$1" != --item ]; do shift; done; echo "$2" >> {folder}/ran\n')
        (folder / "evenkeel").chmod(0o755)
        for index in range(16):
            env = {"PATH": f"{folder}:/usr/bin:/bin", "PLACE": "p", "COMPLETIONS": "16", "JOB_COMPLETION_INDEX": str(index)}
            subprocess.run(["sh", "-ceu", script.replace("/studies/", f"{folder}/")], env=env, check=True)
        return sorted(int(line) for line in (folder / "ran").read_text().split())


def main() -> int:
    try:
        import kubernetes_validate
        import yaml
    except ImportError:
        print("NOT TESTED: kubernetes-validate is not installed (pip install kubernetes-validate)")
        return 0
    versions = [FIRST, kubernetes_validate.latest_version()]
    found = []
    for file in sorted(FOLDER.glob("*.yaml")):
        for manifest in yaml.safe_load_all(file.read_text()):
            found += [f"{file.name}: {version}: {words}" for version in versions for words in offences(manifest, version)]
            for script in scripts(manifest):
                subprocess.run(["sh", "-n", "-c", script], check=True)
            if file.name == "study.yaml":
                # a check that finds nothing has to be one that would
                broken = copy.deepcopy(manifest)
                broken["spec"]["template"]["spec"]["containers"][0]["comand"] = ["evenkeel"]
                assert offences(broken, versions[0]), "a misspelt key is not found"
                assert strided(scripts(manifest)[0]) == list(range(1, 38)), "items are lost or run twice"
    print("\n".join(found) or f"PASSED: manifests of {FOLDER.name} hold for Kubernetes {' and '.join(versions)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
