"""Certificates of randomised smoothing, computed plainly: python make.py > certificates.csv

p: the lower Clopper-Pearson bound at level alpha for k of n, by bisection on the binomial tail (exact binomial coefficients);
radius: sigma times the normal quantile of p, by bisection on math.erf; empty where p <= 1/2.
"""
import math

import numpy as np


def tail(k, n, p):
    i = np.arange(k, n + 1)
    logs = np.array([math.log(math.comb(n, int(j))) for j in i]) + i * np.log(p) + (n - i) * np.log1p(-p)
    return float(np.exp(logs).sum())


def bisect(f, low, high):
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return low


def bound(k, n, alpha):
    return 0.0 if k == 0 else bisect(lambda p: tail(k, n, p) - alpha, 1e-300, 1 - 1e-16)


def quantile(p):
    return bisect(lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))) - p, -10.0, 10.0)


print("count,draws,alpha,sigma,probability,radius")
for n, alpha, sigma in [(10, 0.05, 0.1), (64, 0.001, 8 / 255), (100, 0.001, 0.25), (1000, 0.01, 0.5)]:
    for k in sorted({0, 1, n // 2, n // 2 + 1, (3 * n) // 4, (9 * n) // 10, n - 1, n}):
        p = bound(k, n, alpha)
        radius = repr(sigma * quantile(p)) if p > 0.5 else ""
        print(f"{k},{n},{alpha!r},{sigma!r},{p!r},{radius}")
