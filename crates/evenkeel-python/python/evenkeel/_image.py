"""Images as people have them: arrays, tensors, pictures, files. The type that came in goes out.

numpy is height x width x 3, torch 3 x height x width; bytes, or floats in [0, 1]. How pixels become a network's input is the model's business.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Sequence, Union

import numpy as np

from . import _core
from ._core import EvenkeelError

#: An image: an array, a torch tensor, a PIL image, or the path of a PNG or JPEG file.
ImageLike = Any
#: One image, or several: a list, or an array or tensor with a leading dimension.
Images = Any
Back = Callable[[_core.Image], Any]

_PLAIN = ("uint8", "float32", "float64")


def _is(given: object, module: str, name: str) -> bool:
    """Whether something is of a class of a library that may not be installed."""
    loaded = sys.modules.get(module)
    kind = getattr(loaded, name, None)
    return isinstance(kind, type) and isinstance(given, kind)


def is_tensor(given: object) -> bool:
    return _is(given, "torch", "Tensor")


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array with a dtype and a layout that are read as they are."""
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if not array.dtype.isnative or not array.flags.aligned:
        return np.array(array, dtype=array.dtype.newbyteorder("="))
    return array


def _export(image: _core.Image, dtype: str, channels_last: bool) -> np.ndarray[Any, Any]:
    if dtype == "uint8":
        return image.to_uint8(channels_last)
    if dtype == "float64":
        return image.to_float64(channels_last)
    array = image.to_float32(channels_last)
    return array if dtype == "float32" else array.astype(dtype)


def _from_array(array: np.ndarray[Any, Any]) -> tuple[_core.Image, Back]:
    dtype = array.dtype.newbyteorder("=").name
    made = _core.Image.from_array(_plain(array), True)
    return made, lambda image: _export(image, dtype, True)


def _from_tensor(tensor: Any) -> tuple[_core.Image, Back]:
    import torch

    dtype, device = tensor.dtype, tensor.device
    try:
        held = tensor.detach().to("cpu")
        if held.dtype in (torch.float16, torch.bfloat16):
            held = held.to(torch.float32)
        array = held.numpy()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise EvenkeelError(f"this tensor cannot be read as an image: {error}") from error
    made = _core.Image.from_array(array, False)
    name = "uint8" if dtype == torch.uint8 else "float64" if dtype == torch.float64 else "float32"

    def back(image: _core.Image) -> Any:
        return torch.from_numpy(_export(image, name, False)).to(device=device, dtype=dtype)

    return made, back


def _from_picture(picture: Any) -> tuple[_core.Image, Back]:
    from PIL import Image

    made = _core.Image.from_array(np.asarray(picture.convert("RGB")), True)
    return made, lambda image: Image.fromarray(image.to_uint8(True))


def as_image(given: ImageLike) -> tuple[_core.Image, Back]:
    """The image inside the library, and the way back to the type it came in."""
    if isinstance(given, _core.Image):
        return given, lambda image: image
    if isinstance(given, np.ndarray):
        return _from_array(given)
    if is_tensor(given):
        return _from_tensor(given)
    if _is(given, "PIL.Image", "Image"):
        return _from_picture(given)
    if isinstance(given, (str, os.PathLike)):
        return _core.Image.load(os.fspath(given)), lambda image: image.to_uint8(True)
    if hasattr(given, "__array__") or hasattr(given, "__dlpack__"):
        try:
            array = np.asarray(given) if hasattr(given, "__array__") else np.from_dlpack(given)
        except Exception as error:
            raise EvenkeelError(f"a {type(given).__name__} cannot be read as an image: {error}") from error
        return _from_array(array)
    raise EvenkeelError(
        f"a {type(given).__name__} is no image; an array, a torch tensor, a PIL image or the path of a PNG or JPEG file is"
    )


class Batch:
    """What a call was given: one image or several, and the way back for each."""

    def __init__(self, given: Images) -> None:
        several = isinstance(given, (list, tuple))
        several = several or ((isinstance(given, np.ndarray) or is_tensor(given)) and given.ndim == 4)
        self.single = not several
        pairs = [as_image(one) for one in (given if several else [given])]
        self.images = [image for image, _ in pairs]
        self.backs = [back for _, back in pairs]

    def __len__(self) -> int:
        return len(self.images)

    def answer(self, results: Sequence[Any]) -> Any:
        """One result for one image, a list for several."""
        return results[0] if self.single else list(results)

    def spread(self, given: Any) -> list[Any]:
        """Something that goes with each image: as it is for one, item by item for several."""
        if self.single:
            return [given]
        if given is None:
            return [None] * len(self)
        if isinstance(given, (int, np.integer)):
            return [given] * len(self)
        try:
            items = list(given)
        except TypeError as error:
            raise EvenkeelError(f"{len(self)} images need a list of as many truths") from error
        if len(items) != len(self):
            raise EvenkeelError(f"{len(self)} images, but {len(items)} truths")
        return items


def as_labels(given: Any) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """A label map as the library takes it: height x width of uint16, 255 for ignored pixels."""
    if is_tensor(given):
        given = given.detach().to("cpu").numpy()
    array: np.ndarray[Any, Any] = np.asarray(given)
    if array.ndim != 2 or array.size == 0:
        raise EvenkeelError(f"a label map is an array of height x width, but this has the shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise EvenkeelError(f"labels are whole numbers, not {array.dtype}")
    if array.min() < 0 or array.max() > 65535:
        raise EvenkeelError(f"labels are from 0 to 65535, but these are from {array.min()} to {array.max()}")
    return np.ascontiguousarray(array, dtype=np.uint16)


#: What is true of an image: a class, a label map, a list of instances, an array of float values, the name of a class or a file, or a prediction that is
#: taken for the truth.
TruthLike = Union[int, Any]


def as_truth(given: TruthLike) -> Any:
    """A truth as the library takes it."""
    if given is None or isinstance(given, _core.Prediction):
        return given
    if isinstance(given, (bool, np.bool_, float)):
        raise EvenkeelError(f"a {type(given).__name__} is no truth; a class, a label map, a list of instances or an array of values is")
    if isinstance(given, (str, os.PathLike)):
        return os.fspath(given)
    if isinstance(given, (list, tuple)) and all(isinstance(one, _core.Instance) for one in given):
        return list(given)
    if isinstance(given, (int, np.integer)) or (getattr(given, "ndim", None) == 0 and hasattr(given, "__index__")):
        number = int(given)
        if number < 0:
            raise EvenkeelError(f"class {number}: classes count from 0")
        return number
    if is_tensor(given):
        given = given.detach().to("cpu").float().numpy() if given.is_floating_point() else given
    if getattr(getattr(given, "dtype", None), "kind", "") == "f":
        return np.ascontiguousarray(given, dtype=np.float32)
    return as_labels(given)
