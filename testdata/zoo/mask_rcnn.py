"""Writes the fixtures of Mask R-CNN: what torchvision detects, and its five losses with the image gradient.

    python testdata/zoo/mask_rcnn.py            (needs torch, torchvision, numpy)

Weights follow rule.py, but for the last layers, which are scaled (SCALES, twice that in v2) so that boxes move little and classes come out apart. NAME.npz holds, for each of two
sizes i: `size{i}`, `boxes{i}`, `labels{i}`, `scores{i}`, and `masks{i}` sampled; and, for the losses at the first size: the true boxes and labels, `anchors` and
`regions` that were sampled, the five `losses`, and `gradient` sampled. True masks are the boxes' lower left halves, below the diagonal. Batch norms stay frozen in training.
"""

import pathlib
import sys

import numpy as np
import torch
from torchvision.models import detection

import rule

HERE = pathlib.Path(__file__).parent
SCALES = {"rpn.head.bbox_pred.weight": 0.05, "rpn.head.cls_logits.weight": 0.05, "box_predictor.cls_score.weight": 0.2,
          "box_predictor.bbox_pred.weight": 0.2, "mask_fcn_logits.weight": 0.5}
SIZES = [(128, 160), (120, 150)]
BOXES = [[10.0, 20.0, 70.0, 110.0], [60.0, 30.0, 150.0, 90.0], [100.0, 80.0, 140.0, 124.0]]
LABELS = [3, 17, 62]
# How many regions the losses count: torchvision's default is 512, which double precision is too slow for.
REGIONS = 16


def make(name, size, dtype):
    module = getattr(detection, name)(weights=None, weights_backbone=None, min_size=min(size), max_size=max(size),
                                      image_mean=[0.0] * 3, image_std=[1.0] * 3, box_batch_size_per_image=REGIONS)
    rule.fill(module)
    state = module.state_dict()
    for key in state:
        for ending, scale in SCALES.items():
            if key.endswith(ending):
                state[key] *= scale * (2 if name.endswith("v2") else 1)
    module.load_state_dict(state)
    return module.to(dtype).eval()


def detections(name, kept):
    for i, size in enumerate(SIZES):
        module = make(name, size, torch.float64)
        with torch.no_grad():
            found = module([rule.field(f"image{i}", (3, *size)).double()])[0]
        print(name, size, len(found["labels"]), found["scores"][:5], float(-found["scores"].diff().max()), found["labels"][:8].tolist(), found["boxes"][:3])
        kept |= {f"size{i}": np.array(size, np.int64), f"boxes{i}": found["boxes"].float().numpy(),
                 f"labels{i}": found["labels"].numpy(), f"scores{i}": found["scores"].float().numpy(),
                 f"masks{i}": rule.sample(found["masks"], 4000)}


def true_masks(size):
    masks = torch.zeros(len(BOXES), *size, dtype=torch.uint8)
    for mask, (x1, y1, x2, y2) in zip(masks, BOXES):
        y, x = torch.meshgrid(torch.arange(size[0]), torch.arange(size[1]), indexing="ij")
        inside = (x >= x1) & (x < x2) & (y >= y1) & (y < y2)
        mask[inside & ((y - y1) * (x2 - x1) >= (x - x1) * (y2 - y1))] = 1
    return masks


class Recorder:
    """A sampler that remembers what it sampled."""

    def __init__(self, sampler):
        self.sampler, self.chosen = sampler, None

    def __call__(self, matched):
        self.chosen = self.sampler(matched)
        return self.chosen


def train(name, dtype, salt=0):
    """The losses and the image's gradient, with what was sampled for them."""
    torch.manual_seed(0)
    size = SIZES[0]
    module = make(name, size, dtype)
    module.train()
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.eval()
    module.rpn.fg_bg_sampler = Recorder(module.rpn.fg_bg_sampler)
    regions = {}
    select = module.roi_heads.select_training_samples

    def selecting(*arguments):
        regions["answer"] = select(*arguments)
        return regions["answer"]

    module.roi_heads.select_training_samples = selecting
    image = rule.field("image0" + "+" * salt, (3, *size)).to(dtype).requires_grad_()
    target = {"boxes": torch.tensor(BOXES, dtype=dtype), "labels": torch.tensor(LABELS), "masks": true_masks(size)}
    answer = module([image], [target])
    sum(answer.values()).backward()
    positive, negative = module.rpn.fg_bg_sampler.chosen
    anchors = torch.cat([torch.where(positive[0])[0], torch.where(negative[0])[0]])
    return answer, image.grad, anchors, regions["answer"][0][0].detach()


def losses(name, kept):
    answer, gradient, anchors, regions = train(name, torch.float64)
    names = ["loss_objectness", "loss_rpn_box_reg", "loss_classifier", "loss_box_reg", "loss_mask"]
    values = np.array([float(answer[key].detach()) for key in names], np.float32)
    print(name, dict(zip(names, values)), float(gradient.abs().max()))
    kept |= {"true_boxes": np.array(BOXES, np.float32), "true_labels": np.array(LABELS, np.int64),
             "anchors": anchors.numpy(), "regions": regions.float().numpy(), "losses": values,
             "gradient": rule.sample(gradient)}


def agreement(name):
    """Prints for some images how far single precision is from double: where a kink lies close, far."""
    for salt in range(6):
        single, double = (train(name, dtype, salt) for dtype in (torch.float32, torch.float64))
        apart = float((single[1] - double[1]).abs().max() / double[1].abs().max())
        print(name, salt, apart, single[3].shape == double[3].shape and float((single[3] - double[3]).abs().max()), flush=True)


def main():
    for name in sys.argv[1:] or ("maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2"):
        digest = rule.digest(make(name, SIZES[0], torch.float32))
        kept = {"digest": np.array([digest & 0xFFFFFFFF, digest >> 32], np.int64)}
        detections(name, kept)
        losses(name, kept)
        np.savez_compressed(HERE / f"{name}.npz", **kept)


if __name__ == "__main__":
    main()
