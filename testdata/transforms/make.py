"""Writes transforms.json: what SciPy and Pillow make of a small picture, for the input transforms.

Run from this folder with NumPy, SciPy and Pillow: python make.py
"""

import io
import json

import numpy as np
from PIL import Image
from scipy import ndimage

rng = np.random.default_rng(5)
height, width = 20, 26
y, x = np.mgrid[:height, :width]
planes = [0.5 + 0.4 * np.sin(0.3 * y + 0.2 * c + 0.25 * x) for c in range(3)]
image = np.clip(np.stack(planes) + 0.1 * rng.normal(size=(3, height, width)), 0, 1)
eight = np.round(255 * image).astype(np.uint8)
image = (eight / 255).astype(np.float32)


def each(change):
    return np.stack([change(plane.astype(np.float64)) for plane in image])


def flat(values):
    return [round(float(v), 7) for v in values.ravel()]


cases = {"height": height, "width": width, "image": eight.ravel().tolist()}
cases["gaussian"] = [
    {"sigma": s, "values": flat(each(lambda p: ndimage.gaussian_filter(p, s, mode="nearest", radius=int(np.ceil(3 * s)))))}
    for s in (0.8, 1.7)
]
cases["median"] = [
    {"window": w, "values": flat(each(lambda p: ndimage.median_filter(p, size=w, mode="nearest")))} for w in (3, 5)
]
cases["jpeg"] = []
for quality in (30, 75, 95):
    file = io.BytesIO()
    # grey, because decoders differ in how they bring halved colours back
    Image.fromarray(eight[0]).save(file, "JPEG", quality=quality)
    back = np.asarray(Image.open(file))
    cases["jpeg"].append({"quality": quality, "values": back.ravel().tolist()})
with open("transforms.json", "w") as out:
    json.dump(cases, out)
