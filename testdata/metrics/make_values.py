"""Writes values/: maps of values as .npy arrays and 16-bit PNGs, answers of a classifier, and what numpy makes of them (expected.json).

Run: python make_values.py (numpy; the PNGs are written by zlib alone)
"""
import json, pathlib, struct, zlib
import numpy as np

rng = np.random.default_rng(12)
root = pathlib.Path(__file__).parent / "values"


def png16(path, numbers):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = numbers.shape
    lines = b"".join(b"\0" + row.astype(">u2").tobytes() for row in numbers)
    head = struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def figures(pairs):
    p = np.concatenate([a.astype(np.float64).ravel() for a, _ in pairs])
    t = np.concatenate([b.astype(np.float64).ravel() for _, b in pairs])
    known = np.isfinite(t)
    p, t = p[known], t[known]
    off = np.abs(p - t)
    above = t > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.maximum(p[above] / t[above], t[above] / p[above])
    result = {
        "mae": off.mean(),
        "rmse": np.sqrt((off**2).mean()),
        "abs-rel": (off[above] / t[above]).mean(),
        "delta-1.25": ((p[above] > 0) & (ratio < 1.25)).mean(),
        "max-f": None,
    }
    if p.min() >= 0 and p.max() <= 1 and t.min() >= 0 and t.max() <= 1:
        level, true = np.floor(p * 255), t >= 0.5
        best = 0.0
        for k in range(256):
            hits, said = (true & (level >= k)).sum(), (level >= k).sum()
            if said:
                best = max(best, 1.3 * hits / (0.3 * true.sum() + said))
        result["max-f"] = best
    return {k: None if v is None else float(v) for k, v in result.items()}


def folder(name):
    for part in ("truth", "predicted"):
        (root / name / part).mkdir(parents=True, exist_ok=True)
    return root / name


expected = {}
depth = folder("depth")
pairs = []
for i, (h, w) in enumerate([(7, 5), (4, 9), (6, 6)]):
    truth = rng.uniform(0.5, 9, (h, w))
    truth[0, :2] = np.nan
    truth[1, 0] = 0
    said = truth * rng.lognormal(0, 0.25, (h, w)) + 0.01
    said[0, :2] = 3
    said[2, 1] = -0.5
    if i == 0:
        truth, said = truth.astype(np.float32), said.astype(np.float32)[None]
    if i == 1:
        said = np.asfortranarray(said)
    np.save(depth / "truth" / f"d{i}.npy", truth)
    np.save(depth / "predicted" / f"d{i}.values.npy", said)
    pairs.append((said.reshape(truth.shape), truth))
expected["depth"] = figures(pairs)

mattes = folder("mattes")
pairs = []
for i in range(3):
    truth = (rng.uniform(0, 1, (8, 6)) > 0.6) * 65535
    said = np.clip(truth * 0.7 + rng.normal(0.15, 0.2, (8, 6)) * 65535, 0, 65535).astype(int)
    png16(mattes / "truth" / f"m{i}.png", truth)
    if i == 1:
        np.save(mattes / "predicted" / f"m{i}.npy", (said / 65535).astype(np.float32))
        pairs.append(((said / 65535).astype(np.float32), truth / 65535))
    else:
        png16(mattes / "predicted" / f"m{i}.png", said)
        pairs.append((said * (1 / 65535), truth * (1 / 65535)))
expected["mattes"] = figures(pairs)

classes, images = 7, 60
labels = rng.integers(0, classes, images)
scores = rng.normal(0, 1.5, (images, classes))
scores[np.arange(images), labels] += 1
p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
said = p.argmax(1)
order = np.argsort(-p, axis=1, kind="stable")
top5 = np.mean([labels[i] in order[i, :5] for i in range(images)])
confidence = p[np.arange(images), said]
bins = np.clip(np.ceil(confidence * 15).astype(int), 1, 15)
ece = sum(
    abs((said == labels)[bins == b].mean() - confidence[bins == b].mean()) * (bins == b).mean()
    for b in range(1, 16)
    if (bins == b).any()
)
matrix = np.zeros((classes, classes), int)
np.add.at(matrix, (labels, said), 1)
with open(root / "labels.csv", "w") as f:
    f.write("image,label\n" + "".join(f"c{i:02}.png,{labels[i]}\n" for i in range(images)))
with open(root / "answers.csv", "w") as f:
    f.write("image,class," + ",".join(f"p{k}" for k in range(classes)) + "\n")
    for i in range(images):
        f.write(f"c{i:02}.png,{said[i]}," + ",".join(repr(float(v)) for v in p[i]) + "\n")
expected["classes"] = {
    "accuracy": float((said == labels).mean()),
    "top5": float(top5),
    "calibration-error": float(ece),
    "confusion": matrix.tolist(),
}
(root / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
