"""Supplies PyPI imagecorruptions with the interfaces that newer numpy, scipy, scikit-image and setuptools dropped."""
import importlib.util, os, sys, types
import numpy as np
import scipy.ndimage
import skimage.filters

home = os.path.dirname(importlib.util.find_spec("imagecorruptions").origin)
resources = types.ModuleType("pkg_resources")
resources.resource_filename = lambda _, path: os.path.join(home, path)
sys.modules["pkg_resources"] = resources
interpolation = types.ModuleType("scipy.ndimage.interpolation")
interpolation.map_coordinates = scipy.ndimage.map_coordinates
sys.modules["scipy.ndimage.interpolation"] = interpolation
if not hasattr(np, "float_"):
    np.float_ = np.float64
plain = skimage.filters.gaussian
skimage.filters.gaussian = lambda image, sigma=1, multichannel=False, **rest: plain(
    image, sigma=sigma, channel_axis=-1 if multichannel else None, **rest
)

import imagecorruptions  # noqa: E402  (only now can it be imported)
