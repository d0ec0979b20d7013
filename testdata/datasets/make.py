"""Writes a miniature of every data set layout, and expected.json: what Pillow, numpy and pycocotools read in them.

Pictures are gradients with noise; labels are rectangles. Run: python make.py
"""
import gzip, json, shutil, struct
from pathlib import Path
import numpy as np
from PIL import Image
from pycocotools import mask as coco
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.io import savemat

rng = np.random.default_rng(1)
here = Path(__file__).parent
expected = {}


def picture(h, w):
    y, x = np.mgrid[0:h, 0:w]
    base = np.stack([x * 255 / w, y * 255 / h, (x + y) * 127 / (h + w)], -1)
    return Image.fromarray(np.clip(base + rng.integers(0, 30, 3), 0, 255).astype(np.uint8))


def labels(h, w, values):
    m = np.full((h, w), values[0], np.uint8)
    for v in values[1:]:
        y, x = sorted(rng.integers(0, h + 1, 2)), sorted(rng.integers(0, w + 1, 2))
        m[y[0]:y[1], x[0]:x[1]] = v
    m[0, 0] = values[-1]
    return m


def put(path, thing, **more):
    path = here / path
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(thing, Image.Image):
        thing.save(path, **({"quality": 90} if path.suffix.lower() in (".jpg", ".jpeg") else {"optimize": True}), **more)
    elif isinstance(thing, bytes):
        path.write_bytes(thing)
    else:
        path.write_text(thing)
    return path


def seen(kind, name, path, **truth):
    im = Image.open(here / path) if isinstance(path, str) else path
    im = im.convert("RGB")
    expected.setdefault(kind, []).append(
        dict(id=name, width=im.width, height=im.height, corner=list(im.getpixel((0, 0))), **truth))


def grey(m):
    return Image.fromarray(m)


for old in here.iterdir():
    if old.is_dir():
        shutil.rmtree(old)

# ImageNet, a folder per synset
wnids = ["n01440764", "n01443537", "n01484850"]
put("imagenet-folders/LOC_synset_mapping.txt", "".join(f"{w} some words\n" for w in wnids))
for k, w in enumerate(wnids[:2]):
    p = f"imagenet-folders/val/{w}/ILSVRC2012_val_0000000{k + 1}.JPEG"
    put(p, picture(40, 30 + 20 * k), format="JPEG")
    seen("imagenet-folders", f"{w}/ILSVRC2012_val_0000000{k + 1}", p, **{"class": k})

# ImageNet, flat with the devkit; the devkit numbers synsets in its own order and lists groups after them
devkit = [(1, "n01484850", 0), (2, "n01440764", 0), (3, "n01443537", 0), (4, "n00001740", 3)]
kind = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("num_children", "O")]
rows = np.array([[(float(i), w, "some words", float(c))] for i, w, c in devkit], dtype=kind)
(here / "imagenet-flat/devkit/data").mkdir(parents=True)
savemat(here / "imagenet-flat/devkit/data/meta.mat", {"synsets": rows}, do_compression=True)
put("imagenet-flat/devkit/data/ILSVRC2012_validation_ground_truth.txt", "3\n1\n2\n")
for k, c in enumerate([1, 2, 0]):
    name = f"ILSVRC2012_val_0000000{k + 1}"
    put(f"imagenet-flat/val/{name}.JPEG", picture(24, 32), format="JPEG")
    seen("imagenet-flat", name, f"imagenet-flat/val/{name}.JPEG", **{"class": c})

# Cityscapes
train = {7: 0, 8: 1, 11: 2, 24: 11, 26: 13, 33: 18}
for k in range(2):
    name = f"ulm/ulm_00000{k}_000019"
    put(f"cityscapes/leftImg8bit/val/{name}_leftImg8bit.png", picture(16, 32))
    m = labels(16, 32, [7, 8, 11, 24, 26, 33, 4, 255])
    put(f"cityscapes/gtFine/val/{name}_gtFine_labelIds.png", grey(m))
    ids = np.vectorize(lambda v: train.get(v, 255))(m)
    seen("cityscapes", f"ulm_00000{k}_000019_leftImg8bit", f"cityscapes/leftImg8bit/val/{name}_leftImg8bit.png",
         labels=ids.ravel().tolist())

# VOC: palette PNGs
palette = [0] * 768
for v in range(256):
    for b in range(8):
        for c in range(3):
            palette[3 * v + c] |= ((v >> (3 * b + c)) & 1) << (7 - b) if 3 * b + c < 8 else 0
for k in range(2):
    name = f"2007_00000{k}"
    put(f"voc/JPEGImages/{name}.jpg", picture(18, 20))
    m = labels(18, 20, [0, 15, 20, 255])
    im = Image.fromarray(m).convert("P")
    im.putdata(m.ravel().tolist())
    im.putpalette(palette)
    put(f"voc/SegmentationClass/{name}.png", im)
    seen("voc", name, f"voc/JPEGImages/{name}.jpg", labels=m.ravel().tolist())
put("voc/ImageSets/Segmentation/val.txt", "2007_000000\n2007_000001\n")

# COCO: polygons, uncompressed and compressed run lengths, a crowd, an overlap, a category VOC lacks, an empty image
images, anns = [], []
for k in range(3):
    images.append(dict(id=10 + k, file_name=f"00000000001{k}.jpg", height=20, width=24))
    put(f"coco/val2017/00000000001{k}.jpg", picture(20, 24))


def add(image, category, segmentation, crowd=0):
    rle = coco.frPyObjects(segmentation, 20, 24) if not (isinstance(segmentation, dict) and isinstance(
        segmentation["counts"], str)) else segmentation
    rle = coco.merge(rle) if isinstance(rle, list) else rle
    anns.append(dict(id=len(anns) + 1, image_id=image, category_id=category, iscrowd=crowd, segmentation=segmentation,
                     area=float(coco.area(rle)), bbox=[float(v) for v in coco.toBbox(rle)]))
    return rle


def compact(m):
    r = coco.encode(np.asfortranarray(m))
    return dict(size=r["size"], counts=r["counts"].decode())


block = np.zeros((20, 24), np.uint8)
block[4:12, 10:20] = 1
parts = [add(10, 1, [[2.5, 2.5, 2.5, 15.0, 14.0, 15.0, 14.0, 2.5], [18.0, 16.0, 23.0, 19.0, 18.0, 19.0]]),
         add(10, 18, compact(block)), add(10, 13, [[0.0, 0.0, 0.0, 4.0, 5.0, 4.0]]),
         add(11, 3, dict(size=[20, 24], counts=[100, 60, 320]), 1)]
put("coco/annotations/instances_val2017.json", json.dumps(dict(
    images=images, annotations=anns,
    categories=[dict(id=1, name="person"), dict(id=3, name="car"), dict(id=13, name="stop sign"), dict(id=18, name="dog")])))
voc = {1: 15, 18: 12, 3: 7}
for k in range(3):
    mine = [(a, r) for a, r in zip(anns, parts) if a["image_id"] == 10 + k]
    seen("coco", str(10 + k), f"coco/val2017/00000000001{k}.jpg",
         objects=[dict(category=a["category_id"], crowd=bool(a["iscrowd"]), area=a["area"],
                       counts=r["counts"] if isinstance(r["counts"], str) else r["counts"].decode()) for a, r in mine])
    m, n = np.zeros((20, 24), int), np.zeros((20, 24), int)
    for a, r in mine:
        if a["category_id"] in voc:
            d = coco.decode(r)
            m, n = np.maximum(m, d * voc[a["category_id"]]), n + d
    m[n > 1] = 255
    seen("coco-voc21", str(10 + k), f"coco/val2017/00000000001{k}.jpg", labels=m.ravel().tolist())

# CamVid
for k in range(2):
    put(f"camvid/test/0001TP_00{k}.png", picture(12, 16))
    m = labels(12, 16, [3, 0, 8, 11])
    put(f"camvid/testannot/0001TP_00{k}.png", grey(m))
    seen("camvid", f"0001TP_00{k}", f"camvid/test/0001TP_00{k}.png", labels=np.where(m == 11, 255, m).ravel().tolist())

# CIFAR-10, both layouts
tiles = [np.asarray(picture(32, 32)) for _ in range(2)]
put("cifar10/test_batch.bin", b"".join(bytes([c]) + t.transpose(2, 0, 1).tobytes() for c, t in zip([3, 9], tiles)))
put("cifar10-raw/images_u8_nhwc.bin", b"".join(t.tobytes() for t in tiles))
put("cifar10-raw/labels_u8.bin", bytes([3, 9]))
for kind in ("cifar10", "cifar10-raw"):
    for k, c in enumerate([3, 9]):
        seen(kind, f"{k:05}", Image.fromarray(tiles[k]), **{"class": c})

# MNIST plain, Fashion-MNIST gzipped
digits = rng.integers(0, 8, (2, 28, 28)).astype(np.uint8) * 30
idx = {"images-idx3": struct.pack(">4B3I", 0, 0, 8, 3, 2, 28, 28) + digits.tobytes(),
       "labels-idx1": struct.pack(">4BI", 0, 0, 8, 1, 2) + bytes([7, 2])}
for name, data in idx.items():
    put(f"mnist/t10k-{name}-ubyte", data)
    put(f"fashion-mnist/t10k-{name}-ubyte.gz", gzip.compress(data, mtime=0))
for kind in ("mnist", "fashion-mnist"):
    for k, c in enumerate([7, 2]):
        seen(kind, f"{k:05}", Image.fromarray(digits[k]), **{"class": c})

# Plain folder (grey, alpha, 16 bits of colour kinds), labelled folder, manifests
put("folder/a.png", picture(8, 9))
put("folder/inner/b.jpg", picture(9, 8))
put("folder/grey.png", picture(8, 8).convert("L"))
for name, file in (("a", "a.png"), ("grey", "grey.png"), ("inner/b", "inner/b.jpg")):
    seen("folder", name, f"folder/{file}")
put("labelled-folder/images/one.jpg", picture(10, 12))
m = labels(10, 12, [0, 1, 2, 255])
put("labelled-folder/labels/one.png", grey(m))
seen("labelled-folder", "one", "labelled-folder/images/one.jpg", labels=m.ravel().tolist())
table = [("p0.png", "cat"), ("p1.png", "dog"), ("p2.png", "cat")]
for name, _ in table:
    put(f"manifest/{name}", picture(6, 7))
put("manifest/table.csv", "image,label,note\n" + "".join(f'{a},{b},"x, y"\n' for a, b in table))
pq.write_table(pa.table({"image": [a for a, _ in table], "label": [b for _, b in table]}), here / "manifest/table.parquet")
for a, b in table:
    seen("manifest", a, f"manifest/{a}", **{"class": 0 if b == "cat" else 1})

# Resizing, against Pillow
source = Image.fromarray(rng.integers(0, 256, (17, 24, 3)).astype(np.uint8))
put("resize/source.png", source)
for w, h in ((13, 9), (40, 30), (24, 5), (7, 31)):
    put(f"resize/{w}x{h}.png", source.resize((w, h), Image.BILINEAR))

put("expected.json", json.dumps(expected, separators=(",", ":")))
