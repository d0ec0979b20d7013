"""The Pillow side of benches/loading.rs.

loading.py make FOLDER           writes 100 JPEGs of photographic size
loading.py FOLDER COUNT THREADS  loads COUNT pictures, shorter side 256, centre crop 224; prints the seconds
"""
import sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np
from PIL import Image


def make(folder):
    rng = np.random.default_rng(0)
    for k in range(100):
        coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3)).astype(np.uint8)).resize((500, 375), Image.BICUBIC)
        noise = rng.normal(0, 6, (375, 500, 3))
        image = np.clip(np.asarray(coarse) + noise, 0, 255).astype(np.uint8)
        Image.fromarray(image).save(Path(folder) / f"{k:03}.jpg", quality=92)


def load(path):
    im = Image.open(path).convert("RGB")
    w, h = im.size
    size = (256, 256 * h // w) if w <= h else (256 * w // h, 256)
    im = im.resize(size, Image.BILINEAR)
    left, top = round((size[0] - 224) / 2), round((size[1] - 224) / 2)
    # The network's input: planes of floats in [0, 1], as the other side delivers them.
    return np.asarray(im.crop((left, top, left + 224, top + 224)), np.float32).transpose(2, 0, 1) / np.float32(255)


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    files = sorted(p for p in Path(sys.argv[1]).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    count, threads = int(sys.argv[2]), int(sys.argv[3])
    todo = [files[k % len(files)] for k in range(count)]
    start = time.perf_counter()
    if threads == 1:
        total = sum(float(load(path)[0, 0, 0]) for path in todo)
    else:
        with ThreadPoolExecutor(threads) as pool:
            total = sum(pool.map(lambda path: float(load(path)[0, 0, 0]), todo))
    print(time.perf_counter() - start)
