"""Writes masks.json.gz: masks and polygons with what pycocotools 2.0.11 makes of them.

Floats are stored as the 64 bits they have. Run: python make_masks.py
"""
import gzip, json, struct
import numpy as np
from pycocotools import mask as coco

rng = np.random.default_rng(5)


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", float(x)))[0]


def text(rle):
    return rle["counts"].decode()


def raster(h, w, kind):
    if kind == 0:
        return np.zeros((h, w), np.uint8)
    if kind == 1:
        return np.ones((h, w), np.uint8)
    if kind == 2:
        return (rng.random((h, w)) < rng.random()).astype(np.uint8)
    m = np.zeros((h, w), np.uint8)
    y, x = sorted(rng.integers(0, h + 1, 2)), sorted(rng.integers(0, w + 1, 2))
    m[y[0]:y[1], x[0]:x[1]] = 1
    return m


masks, groups = [], []
for g in range(60):
    h, w = int(rng.integers(1, 40)), int(rng.integers(1, 40))
    ms = [raster(h, w, int(rng.integers(0, 6))) for _ in range(5)]
    rles = [coco.encode(np.asfortranarray(m)) for m in ms]
    for m, r in zip(ms, rles):
        masks.append(dict(h=h, w=w, rows=["".join(map(str, row)) for row in m.tolist()], counts=text(r),
                          area=int(coco.area(r)), box=[bits(v) for v in coco.toBbox(r)]))
    crowd = [int(c) for c in rng.integers(0, 2, 3)]
    iou = coco.iou(rles[:2], rles[2:], crowd)
    boxes = np.round(rng.random((5, 4)) * 20, int(rng.integers(0, 4)))
    boxes[0] = boxes[2]
    box_iou = coco.iou(boxes[:2], boxes[2:], crowd)
    groups.append(dict(h=h, w=w, counts=[text(r) for r in rles], union=text(coco.merge(rles)),
                       intersection=text(coco.merge(rles, intersect=True)), crowd=crowd,
                       iou=[[bits(v) for v in row] for row in iou],
                       boxes=[[bits(v) for v in b] for b in boxes],
                       box_iou=[[bits(v) for v in row] for row in box_iou]))

polygons = []
for k in range(900):
    h, w = int(rng.integers(1, 64)), int(rng.integers(1, 64))
    n = int(rng.integers(3, 12))
    xy = rng.random((n, 2)) * [w, h]
    kind = k % 9
    if kind == 1:
        xy = xy * 3 - [w, h]                      # far outside, negative coordinates
    if kind == 2:
        xy = np.round(xy)                         # on pixel corners
    if kind == 3:
        xy = np.repeat(xy[:1], n, 0)              # a single point
    if kind == 4:
        xy[:, int(rng.integers(0, 2))] = xy[0, 0]  # a line along an axis
    if kind == 5:
        xy = np.round(xy * 2) / 2
    if kind == 6:
        xy[-1] = xy[0]                            # explicitly closed
    if kind == 7:
        xy = xy[:1] + rng.random((n, 2)) * 0.6    # smaller than a pixel
    if kind == 8:
        xy = np.round(xy * 5) / 5 + 0.1           # on the fine grid's own ties
    flat = [float(v) for v in xy.ravel()]
    r = coco.frPyObjects([flat], h, w)[0]
    polygons.append(dict(h=h, w=w, xy=[bits(v) for v in flat], counts=text(r), area=int(coco.area(r)),
                         box=[bits(v) for v in coco.toBbox(r)]))

unions = []
for k in range(60):
    h, w = int(rng.integers(4, 50)), int(rng.integers(4, 50))
    parts = [[float(v) for v in (rng.random((int(rng.integers(3, 7)), 2)) * [w, h]).round(2).ravel()] for _ in range(3)]
    r = coco.merge(coco.frPyObjects(parts, h, w))
    unions.append(dict(h=h, w=w, parts=[[bits(v) for v in p] for p in parts], counts=text(r)))

with gzip.GzipFile("masks.json.gz", "wb", 9, mtime=0) as f:
    f.write(json.dumps(dict(masks=masks, groups=groups, polygons=polygons, unions=unions), separators=(",", ":")).encode())
