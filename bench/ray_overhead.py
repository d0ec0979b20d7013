"""What Ray adds to the compute of a study: the same study in one process of one thread and as work items on a cluster of one processor, in turn.

    python bench/ray_overhead.py [--items 12] [--images 120] [--rounds 2]        needs the Python package and ray

Everything that is not in the single process counts as Ray's: submitting, serialising, starting workers and loading networks in them. The share at items of a minute is the
seconds an item that were measured, over sixty.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STUDY = """
name = "overhead"
[[subject]]
name = "crops"
model = "embedded:classifier"
data = "scenes-objects"
path = "{images}@64x64"
[[attack]]
kind = "pgd"
steps = 40
[[defence]]
kind = "equivariance"
steps = 10
"""


def alone(file: Path, out: Path) -> float:
    """Seconds of one process, from its start to its end, and what starting takes taken off."""
    words = [sys.executable, "-m", "evenkeel", "study", "run", str(file), "--threads", "1", "--out", str(out)]
    began = time.monotonic()
    subprocess.run(words, check=True, capture_output=True)
    whole = time.monotonic() - began
    began = time.monotonic()
    subprocess.run(words, check=True, capture_output=True)  # nothing is left to do
    return whole - (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=12)
    parser.add_argument("--images", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()

    import ray

    from evenkeel.ray import run_study

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    for number in range(given.rounds):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            file = folder / "overhead.toml"
            file.write_text(STUDY.format(images=given.images))
            single = alone(file, folder / "whole")
            ran = run_study(file, store=folder / "far", cpus_per_task=1, item_minutes=single / given.items / 60, progress=False)
            same = (ran.folder / "records.parquet").read_bytes() == (folder / "whole" / "records.parquet").read_bytes()
            extra = (ran.seconds - single) / ran.items
            between = (ran.seconds - ran.busy_seconds) / ran.items
            print(
                f"round {number + 1}: {single:.1f} s in one process; {ran.seconds:.1f} s in {ran.items} items of {single / ran.items:.1f} s on Ray ({100 * (ran.seconds / single - 1):+.1f} %), "
                f"{extra:+.2f} s an item more, {between:.2f} s of it between tasks: {100 * extra / 60:+.2f} % at items of a minute; records {'the same bytes' if same else 'DIFFER'}"
            )


if __name__ == "__main__":
    main()
