"""The weights of the zoo's fixtures, by a rule that a few lines of any language can follow.

Element i of the tensor called `name` is drawn from u(name, i) in [-1, 1): the upper 24 bits of splitmix64 at position i of the sequence
seeded with the 64-bit FNV-1a hash of the name. Matrices and filters are u * sqrt(6 / fan_in) with fan_in the product of all extents but the first; a
norm's weight is 0.8 + 0.1 u, its variance 1 + 0.3 u, its mean and every bias 0.2 u. Everything is computed in double and kept in single precision.
"""

import math

import numpy as np
import torch

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def fnv(text):
    hashed = 0xCBF29CE484222325
    for byte in text.encode():
        hashed = ((hashed ^ byte) * 0x100000001B3) & MASK
    return hashed


def uniform(name, count):
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN) + np.uint64(fnv(name))
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) / float(1 << 23) - 1.0


def tensor(name, shape):
    u = uniform(name, math.prod(shape)).reshape(shape)
    if name.endswith("running_var"):
        u = 1.0 + 0.3 * u
    elif name.endswith("running_mean") or name.endswith("bias"):
        u = 0.2 * u
    elif len(shape) >= 2:
        u = u * math.sqrt(6.0 / math.prod(shape[1:]))
    else:
        u = 0.8 + 0.1 * u
    return torch.from_numpy(u.astype(np.float32))


def field(name, shape):
    """Numbers in [-1, 1): inputs and cotangents."""
    return torch.from_numpy(uniform(name, math.prod(shape)).reshape(shape).astype(np.float32))


def fill(module):
    """Gives a module the weights of the rule, in double precision, and sets it to evaluation."""
    state = {name: tensor(name, tuple(old.shape)) if old.is_floating_point() else old
             for name, old in module.state_dict().items()}
    module.load_state_dict(state)
    return module.double().eval()


def digest(module, ignored=()):
    """The sum of the hashes of all names with shapes, but for what a reader does not need."""
    total = 0
    for name, value in module.state_dict().items():
        if not name.endswith("num_batches_tracked") and not name.startswith(tuple(ignored)):
            total += fnv(name + str(list(value.shape)))
    return total & MASK


def sample(values, count=400):
    """Up to `count` values, evenly spaced."""
    flat = values.detach().reshape(-1)
    count = min(count, flat.numel())
    at = torch.arange(count) * flat.numel() // count
    return flat[at].to(torch.float32).numpy()
