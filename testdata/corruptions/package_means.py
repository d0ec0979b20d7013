"""Writes package_means.csv: what PyPI imagecorruptions does to one 224x224 image, mean over twelve seeds (spatter: 100).

    python package_means.py CLEAN.png [NAME...] > package_means.csv

Columns: name, severity, mean absolute difference to the clean image, PSNR (both on values in [0, 1]).
"""
import sys
import numpy as np
from shim import imagecorruptions
from PIL import Image

clean = np.asarray(Image.open(sys.argv[1]))
unit = clean / 255.0
print("name,severity,difference,psnr")
for name in sys.argv[2:] or imagecorruptions.get_corruption_names("all"):
    for severity in (1, 3, 5):
        differences, noises = [], []
        for seed in range(100 if name == "spatter" else 12):
            np.random.seed(seed)
            out = imagecorruptions.corrupt(clean, corruption_name=name, severity=severity) / 255.0
            differences.append(np.abs(out - unit).mean())
            noises.append(-10 * np.log10(((out - unit) ** 2).mean()))
        print(f"{name},{severity},{np.mean(differences):.6f},{np.mean(noises):.4f}", flush=True)
