"""Writes figures.json.gz: rankings, label maps and bootstrap intervals by scikit-learn 1.9 and numpy.

The bootstrap's weights are drawn here as evenkeel draws them (splitmix64 of seed, image and replicate, then the inverse
Poisson(1) distribution) and handed to scikit-learn as sample weights. Run: python make_figures.py
"""
import gzip, json, math
import numpy as np
from sklearn.metrics import average_precision_score, confusion_matrix, roc_auc_score, roc_curve

rng = np.random.default_rng(95)
WORD = (1 << 64) - 1


def mix(x):
    z = (x + 0x9E3779B97F4A7C15) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def poisson(draw):
    u, k, p = draw / 2.0**64, 0, math.exp(-1)
    total = p
    while u >= total and k < 30:
        k += 1
        p /= k
        total += p
    return k


def weights(seed, keys, replicate):
    return np.array([poisson(mix((mix(seed ^ mix(k)) + replicate) & WORD)) for k in keys])


def interval(values):
    return [float(v) for v in np.percentile([v for v in values if v is not None], [2.5, 97.5])]


def ranking(labels, scores, w=None):
    kept = labels if w is None else labels[w > 0]
    if len(set(kept)) < 2:
        return None
    fpr, tpr, _ = roc_curve(labels, scores, sample_weight=w)
    return [float(roc_auc_score(labels, scores, sample_weight=w)),
            float(average_precision_score(labels, scores, sample_weight=w)),
            float(fpr[np.argmax(tpr >= 0.95)])]


rankings = []
for n in range(300):
    size = int(rng.integers(2, 90))
    labels = (rng.random(size) < rng.choice([0.1, 0.5, 0.9])).astype(int)
    labels[:2] = [0, 1]
    scores = rng.normal(labels * rng.random() * 2, 1).round(int(rng.integers(0, 5)))
    seed, keys = int(rng.integers(0, 1 << 40)), [int(k) for k in rng.integers(0, 1 << 50, size)]
    case = dict(labels=labels.tolist(), scores=scores.tolist(), expected=ranking(labels, scores))
    if n % 10 == 0:
        draws = [ranking(labels, scores, weights(seed, keys, b)) for b in range(60)]
        case["bootstrap"] = dict(seed=seed, keys=keys, replicates=60,
                                 intervals=[interval([d and d[k] for d in draws]) for k in range(3)])
    rankings.append(case)


def overlap(matrix):
    right, union = np.diag(matrix), matrix.sum(0) + matrix.sum(1) - np.diag(matrix)
    iou = [float(r / u) if u else None for r, u in zip(right, union)]
    present = [v for v in iou if v is not None]
    if not present:
        return None
    return float(np.mean(present)), float(right.sum() / matrix.sum()), iou


segmentations = []
for n in range(60):
    classes, images = int(rng.integers(2, 8)), int(rng.integers(1, 12))
    maps = []
    for _ in range(images):
        size = int(rng.integers(1, 60))
        truth = rng.integers(0, max(1, classes - n % 2), size)
        guess = np.where(rng.random(size) < 0.6, truth, rng.integers(0, classes, size))
        truth[rng.random(size) < 0.1] = 255
        maps.append((truth, guess))
    matrices = [confusion_matrix(t[t != 255], g[t != 255], labels=range(classes)) if (t != 255).any()
                else np.zeros((classes, classes), int) for t, g in maps]
    whole = sum(matrices)
    if not whole.sum():
        continue
    seed, keys = int(rng.integers(0, 1 << 40)), [int(k) for k in rng.integers(0, 1 << 50, images)]
    draws = []
    for b in range(40):
        w = weights(seed, keys, b)
        draws.append(overlap(sum(k * m for k, m in zip(w, matrices))))
    miou, accuracy, iou = overlap(whole)
    segmentations.append(dict(classes=classes, truth=[t.tolist() for t, _ in maps], guess=[g.tolist() for _, g in maps],
                              matrix=whole.ravel().tolist(), miou=miou, accuracy=accuracy, iou=iou, seed=seed, keys=keys,
                              replicates=40, intervals=[interval([d and d[k] for d in draws]) for k in range(2)]))

means = []
for n in range(20):
    values = (rng.normal(0, 1, int(rng.integers(1, 40))) * 10.0 ** rng.integers(-6, 6)).tolist()
    seed, keys = n, [int(k) for k in rng.integers(0, 1 << 50, len(values))]
    draws = []
    for b in range(40):
        w = weights(seed, keys, b)
        draws.append(float(np.dot(w, values) / w.sum()) if w.sum() else None)
    means.append(dict(values=values, mean=float(np.mean(values)), seed=seed, keys=keys, replicates=40,
                      interval=interval(draws)))

with gzip.GzipFile("figures.json.gz", "wb", 9, mtime=0) as f:
    f.write(json.dumps(dict(rankings=rankings, segmentations=segmentations, means=means), separators=(",", ":")).encode())
