"""Start-up: `evenkeel --help` and `predict` on the shipped classifier, as wall time and as a ratio to `python -c "import onnxruntime"` in the same run.

    cargo build --release && python bench/startup.py

The interpreter that runs this must have onnxruntime. Rounds alternate; the median counts.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 15
PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "target/release/evenkeel"


def seconds(words, folder):
    start = time.perf_counter()
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    commands = {
        "evenkeel --help": [PROGRAM, "--help"],
        "evenkeel predict embedded:classifier": [PROGRAM, "predict", "embedded:classifier", "scenes-objects:1@64x64"],
        'python -c "import onnxruntime"': [sys.executable, "-c", "import onnxruntime"],
    }
    with tempfile.TemporaryDirectory() as folder:
        taken = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, words in commands.items():
                taken[name].append(seconds(words, folder))
    medians = {name: statistics.median(times) for name, times in taken.items()}
    peer = medians['python -c "import onnxruntime"']
    for name, median in medians.items():
        print(f"{name:40} median {1000 * median:7.1f} ms, least {1000 * min(taken[name]):7.1f} ms, {peer / median:5.1f} times as fast as the import")


if __name__ == "__main__":
    main()
