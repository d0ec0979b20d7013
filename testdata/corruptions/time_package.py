"""Prints `name,milliseconds` for PyPI imagecorruptions on one image at severity 3: the best of three.

    python time_package.py IMAGE.png
"""
import sys, time
import numpy as np
from PIL import Image
from shim import imagecorruptions

image = np.asarray(Image.open(sys.argv[1]).convert("RGB"))
for name in imagecorruptions.get_corruption_names("all"):
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        imagecorruptions.corrupt(image, corruption_name=name, severity=3)
        best = min(best, time.perf_counter() - start)
    print(f"{name},{1000 * best:.2f}", flush=True)
