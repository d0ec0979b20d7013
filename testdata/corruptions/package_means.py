"""Writes package_means.csv: what PyPI imagecorruptions does to one 224x224 image, mean over twelve seeds (spatter: 100).

    python package_means.py CLEAN.png [NAME...] > package_means.csv

Columns: name, severity, mean absolute difference to the clean image, PSNR (both on values in [0, 1]).
The package asks for interfaces that newer numpy, scipy, scikit-image and setuptools dropped; they are supplied here.
"""
import importlib.util, os, sys, types
import numpy as np
import scipy.ndimage
import skimage.filters

home = os.path.dirname(importlib.util.find_spec("imagecorruptions").origin)
shim = types.ModuleType("pkg_resources")
shim.resource_filename = lambda _, path: os.path.join(home, path)
sys.modules["pkg_resources"] = shim
shim = types.ModuleType("scipy.ndimage.interpolation")
shim.map_coordinates = scipy.ndimage.map_coordinates
sys.modules["scipy.ndimage.interpolation"] = shim
if not hasattr(np, "float_"):
    np.float_ = np.float64
plain = skimage.filters.gaussian
skimage.filters.gaussian = lambda image, sigma=1, multichannel=False, **rest: plain(
    image, sigma=sigma, channel_axis=-1 if multichannel else None, **rest
)

import imagecorruptions
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
