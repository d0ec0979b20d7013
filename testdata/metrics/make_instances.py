"""Writes instances.json.gz: 1000 small ground-truth/result pairs and the twelve numbers of pycocotools 2.0.11 on each.

Crowds, images with nothing in them, tied scores, degenerate masks, polygons, both kinds of run lengths, more than a
hundred detections, annotation id 0, categories nobody annotated. Run: python make_instances.py
"""
import contextlib, copy, gzip, io, json
import numpy as np
from pycocotools import mask as coco
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

rng = np.random.default_rng(2023)


def box_of(h, w):
    x, y = sorted(rng.integers(0, w + 1, 2).tolist()), sorted(rng.integers(0, h + 1, 2).tolist())
    return [x[0], y[0], x[1] - x[0], y[1] - y[0]]


def jitter(box, h, w):
    x0, y0 = box[0] + int(rng.integers(-2, 3)), box[1] + int(rng.integers(-2, 3))
    x1, y1 = box[0] + box[2] + int(rng.integers(-2, 3)), box[1] + box[3] + int(rng.integers(-2, 3))
    x0, x1, y0, y1 = max(0, x0), min(w, x1), max(0, y0), min(h, y1)
    return [x0, y0, max(0, x1 - x0), max(0, y1 - y0)]


def raster(box, h, w):
    m = np.zeros((h, w), np.uint8, order="F")
    m[box[1]:box[1] + box[3], box[0]:box[0] + box[2]] = 1
    return m


def text(m):
    r = coco.encode(m)
    return dict(size=r["size"], counts=r["counts"].decode())


def runs(m):
    flat, out, last, n = m.ravel(order="F"), [], 0, 0
    for v in flat:
        if v != last:
            out.append(n)
            n, last = 0, v
        n += 1
    return dict(size=list(m.shape), counts=[int(c) for c in out + [n]])


def polygon(b):
    x0, y0, x1, y1 = b[0], b[1], b[0] + b[2], b[1] + b[3]
    return [[x0, y0, x0, y1, x1, y1, x1, y0]]


FORMS = [lambda b, h, w: text(raster(b, h, w)), lambda b, h, w: runs(raster(b, h, w)), lambda b, h, w: polygon(b),
         lambda b, h, w: [[round(float(v), 1) for v in (rng.random((4, 2)) * [w, h]).ravel()]]]


def case(n):
    images = [dict(id=int(i), height=int(rng.integers(4, 28)), width=int(rng.integers(4, 28)))
              for i in rng.permutation(50)[:int(rng.integers(1, 5))]]
    cats = [dict(id=int(c)) for c in rng.permutation(9)[:int(rng.integers(1, 4))]]
    levels = int(rng.integers(2, 8)) if n % 2 else 1000
    boxed, gts, dts = n % 3 == 0, [], []
    for im in images:
        h, w = im["height"], im["width"]
        truths = []
        for _ in range(int(rng.integers(0, 5))):
            b = box_of(h, w)
            truths.append((b, cats[int(rng.integers(0, len(cats)))]["id"]))
            area = float(rng.choice([b[2] * b[3], 500, 1024, 1024.5, 3000, 9216, 9216.5, 20000]))
            gts.append(dict(id=len(gts) + (0 if n % 10 == 0 else 1), image_id=im["id"], category_id=truths[-1][1],
                            iscrowd=int(rng.random() < 0.2), area=area, bbox=b, segmentation=FORMS[int(rng.integers(0, 4))](b, h, w)))
        many = n % 50 == 7 and im is images[0]
        for _ in range(120 if many else int(rng.integers(0, 7))):
            if truths and rng.random() < 0.7:
                b, c = truths[int(rng.integers(0, len(truths)))]
                b = jitter(b, h, w)
                c = c if rng.random() < 0.85 else cats[0]["id"]
            else:
                b, c = box_of(h, w), cats[int(rng.integers(0, len(cats)))]["id"]
            if rng.random() < 0.03:
                c = 77
            d = dict(image_id=im["id"], category_id=c, score=int(rng.integers(0, levels)) / levels,
                     segmentation=text(raster(b, h, w)))
            if boxed:
                d["bbox"] = [v * 8 for v in b] if rng.random() < 0.3 else b
            dts.append(d)
    if not dts:
        dts.append(dict(image_id=images[0]["id"], category_id=cats[0]["id"], score=0.5,
                        segmentation=text(raster([0, 0, 1, 1], images[0]["height"], images[0]["width"]))))
        if boxed:
            dts[0]["bbox"] = [0, 0, 1, 1]
    return dict(images=images, categories=cats, annotations=gts), dts


def official(gt, dt, kind):
    with contextlib.redirect_stdout(io.StringIO()):
        g = COCO()
        g.dataset = copy.deepcopy(gt)
        g.createIndex()
        e = COCOeval(g, g.loadRes(copy.deepcopy(dt)), kind)
        e.evaluate()
        e.accumulate()
        e.summarize()
    return [float(repr(float(s))) for s in e.stats]


cases = []
for n in range(1000):
    gt, dt = case(n)
    cases.append(dict(truth=gt, results=dt, segm=official(gt, dt, "segm"), bbox=official(gt, dt, "bbox")))
with gzip.GzipFile("instances.json.gz", "wb", 9, mtime=0) as f:
    f.write(json.dumps(cases, separators=(",", ":")).encode())
