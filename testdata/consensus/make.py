"""Writes consensus.json: PyTorch's value and gradient of the objectives in which views teach.

Views leave the image where it is, so that scores are on one grid; tau is the temperature of the views' softmax. Run from this folder: python make.py
"""

import json

import torch

torch.manual_seed(3)
cases = []


def flat(tensor):
    return [float(v) for v in tensor.detach().flatten()]


def agreement(kind, says):
    """The weight of each view in each cell: how far it agrees with the mean of the others."""
    weights = []
    for i, own in enumerate(says):
        other = torch.stack([s for j, s in enumerate(says) if j != i]).mean(0)
        if kind == "classes":
            weights.append((own * other).sum(0).clamp(min=0))
        elif kind == "features":
            weights.append(torch.nn.functional.cosine_similarity(own, other, dim=0).clamp(min=0))
        else:
            size, far = (other**2).sum(0), ((own - other) ** 2).sum(0)
            weights.append(size / (size + far))
    return torch.stack(weights) + 1e-6


for kind in ("classes", "values", "features"):
    for leave_out in (False, True):
        for tau in (1.0, 0.5) if kind == "classes" else (1.0,):
            for shape in ((5, 3, 4), (5, 1, 1)):
                own = torch.randn(shape, dtype=torch.float64).requires_grad_()
                seen = [2 * torch.randn(shape, dtype=torch.float64) + 0.5 for _ in range(3)]
                says = [torch.softmax(z / tau, 0) if kind == "classes" else z for z in seen]
                weights = agreement(kind, says) if leave_out else torch.ones(3, *shape[1:], dtype=torch.float64)
                target = sum(w * s for w, s in zip(weights, says)) / weights.sum(0)
                if kind == "classes":
                    target = target / target.sum(0)
                    value = (target * torch.log_softmax(own, 0)).sum(0).mean()
                elif kind == "values":
                    value = -0.5 * ((own - target) ** 2).mean()
                else:
                    value = torch.nn.functional.cosine_similarity(own.flatten(), target.flatten(), dim=0)
                value.backward()
                cases.append(
                    {
                        "kind": kind,
                        "leave_out": leave_out,
                        "temperature": tau,
                        "shape": [1, *shape] if shape[1] > 1 else [1, shape[0]],
                        "own": flat(own),
                        "seen": [flat(z) for z in seen],
                        "value": float(value.detach()),
                        "gradient": flat(own.grad),
                    }
                )
with open("consensus.json", "w") as out:
    json.dump(cases, out)
