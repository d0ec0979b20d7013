"""A PyTorch module as a network, on whatever device it is.

Names are submodules, read by forward hooks that live as long as one call. Inputs of one size go through the module together, and gradients come by
autograd with respect to them. Only what is asked for crosses between devices; where the objective compares features by cosines, they stay. The module is left as it was: its parameters, flags and hooks.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Iterator, Optional, Sequence, Union

import numpy as np

from . import _cosines
from ._core import Comparison, EvenkeelError
from ._model import Model, Names, Network, from_network, size_of, three

#: The name of the module's own output.
OWN_OUTPUT = "output"
#: An attack that sees no gradient finds nothing, and its network looks robust.
NO_GRADIENT = "no gradient reaches the image: the module's forward detaches it or runs under torch.no_grad(), torch.inference_mode() or numpy"


class _Place:
    """Where a named tensor comes from: a submodule, the number of its call, a key of what it gives."""

    def __init__(self, module: Any, name: str, keys: Sequence[str]) -> None:
        path, _, key = name.partition(":")
        path, _, call = path.partition("#")
        self.name, self.key = name, key or None
        if call and not call.isdigit():
            raise EvenkeelError(f"tensor {name}: the number of a call is needed after #")
        self.call = int(call) if call else None
        found = {one for one, _ in module.named_modules() if one}
        if path in found and path in keys:
            raise EvenkeelError(f"tensor {name}: is a submodule and a key of the module's output; write {path}#0 or {OWN_OUTPUT}:{path}")
        if path in found:
            self.path: Optional[str] = path
        elif path == OWN_OUTPUT:
            self.path = None
        elif path in keys and not key and not call:
            self.path, self.key = None, path
        else:
            some = ", ".join(sorted(found)[:12]) + (", ..." if len(found) > 12 else "")
            raise EvenkeelError(f"tensor {name}: the module has no submodule of this name; there are {some}, and `{OWN_OUTPUT}` for its own output")

    def tensor(self, calls: Sequence[Any], count: int) -> Any:
        """The tensor of a pass over `count` images; a list of one for each where the module gives every image its own."""
        if not calls:
            raise EvenkeelError(f"tensor {self.name}: the forward pass does not use this submodule")
        if self.call is None and len(calls) > 1:
            raise EvenkeelError(f"tensor {self.name}: is computed {len(calls)} times in a pass; write {self.name}#0 to {self.name}#{len(calls) - 1}")
        if self.call is not None and self.call >= len(calls):
            raise EvenkeelError(f"tensor {self.name}: is computed only {len(calls)} times in a pass")
        value = calls[self.call or 0]
        if self.key is not None and isinstance(value, list) and len(value) == count and all(isinstance(one, dict) for one in value):
            return [self._part(one) for one in value]
        return self._part(value)

    def _part(self, value: Any) -> Any:
        import torch

        if self.key is not None:
            try:
                value = value[self.key] if isinstance(value, dict) else value[int(self.key)]
            except (KeyError, IndexError, ValueError, TypeError) as error:
                raise EvenkeelError(f"tensor {self.name}: there is no such part") from error
        if not isinstance(value, torch.Tensor):
            parts = ", ".join(map(str, value)) if isinstance(value, dict) else f"0 to {len(value) - 1}" if isinstance(value, (list, tuple)) else "none"
            raise EvenkeelError(f"tensor {self.name}: is a {type(value).__name__}; name a part of it, {self.name}:PART (there are {parts})")
        if value.dtype in (torch.int64, torch.int32):
            value = value.to(torch.float32)
        if not value.dtype.is_floating_point:
            raise EvenkeelError(f"tensor {self.name}: has the dtype {value.dtype}, and a floating one is needed")
        return value


def _cloned(value: Any) -> Any:
    """What is handed on, so that an operation in place does not change what was kept."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return type(value)((key, _cloned(one)) for key, one in value.items())
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_cloned(one) for one in value)
    return value


class TorchNetwork(Network):
    """A module in evaluation mode."""

    def __init__(self, module: Any, device: Any, tf32: bool, size: Optional[tuple[int, int]], on_device: Optional[bool] = None) -> None:
        import torch

        if not isinstance(module, torch.nn.Module):
            raise EvenkeelError(f"from_torch takes a torch.nn.Module, not a {type(module).__name__}")
        if isinstance(module, torch.jit.ScriptModule):
            raise EvenkeelError("from_torch takes a module of Python, whose submodules have hooks; a scripted or traced one is exported to ONNX and read by ek.load")
        parallel = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
        if isinstance(module, parallel) or any(isinstance(one, parallel) for one in module.modules()):
            raise EvenkeelError("from_torch takes the module itself: use module.module, without DataParallel around it")
        self.module, self.tf32, self.size = module, tf32, size
        self._submodules = list(module.modules())
        self._parameters = list(module.parameters())
        self._refuse_training()
        own = next((tensor for tensor in [*self._parameters, *module.buffers()] if tensor.dtype.is_floating_point), None)
        self.device = torch.device(device) if device is not None else own.device if own is not None else torch.device("cpu")
        self.dtype = own.dtype if own is not None else torch.float32
        if own is not None and own.device != self.device:
            raise EvenkeelError(f"the module is on {own.device}, not on {self.device}; move it with module.to(...)")
        # a copy to the CPU's own memory costs next to nothing, and the library's loops are faster there
        self.compares = self.device.type != "cpu" if on_device is None else on_device
        self._places: dict[str, _Place] = {}
        self._keys: Optional[list[str]] = None
        # hooks and flags of the module belong to one pass at a time
        self._lock = threading.Lock()

    def _refuse_training(self) -> None:
        if any(one.training for one in self._submodules):
            name = next(name for name, one in self.module.named_modules() if one.training)
            raise EvenkeelError(f"the module is in training mode ({name or 'the whole of it'}); call module.eval() first")

    def _output_keys(self) -> list[str]:
        """The keys of the module's output, if it is a dict."""
        if self._keys is None:
            import torch

            height, width = self.size or (64, 64)
            with torch.no_grad(), self._lock, self._plain():
                try:
                    made = self.module(torch.zeros((1, 3, height, width), dtype=self.dtype, device=self.device))
                except Exception:
                    # the pass that matters says what is wrong, at its own size
                    made = None
            self._keys = [str(key) for key in made] if isinstance(made, dict) else []
        return self._keys

    def _place(self, name: str) -> _Place:
        if name not in self._places:
            submodules = {one for one, _ in self.module.named_modules()}
            keys = self._output_keys() if name not in submodules or "." not in name else []
            self._places[name] = _Place(self.module, name, keys)
        return self._places[name]

    def check(self, names: Sequence[str]) -> None:
        for name in names:
            self._place(name)

    @contextmanager
    def _plain(self) -> Iterator[None]:
        """Full precision, and parameters that no gradient is kept for."""
        import torch

        frozen = [one for one in self._parameters if one.requires_grad]
        with ExitStack() as stack:
            stack.enter_context(torch.autocast(self.device.type, enabled=False))
            if self.device.type == "cuda" and not self.tf32:
                stack.enter_context(torch.backends.cudnn.flags(allow_tf32=False))
                held = torch.backends.cuda.matmul.allow_tf32
                torch.backends.cuda.matmul.allow_tf32 = False
                stack.callback(setattr, torch.backends.cuda.matmul, "allow_tf32", held)
            try:
                for one in frozen:
                    one.requires_grad_(False)
                yield
            finally:
                for one in frozen:
                    one.requires_grad_(True)

    def _forward(self, batch: Any, names: Sequence[str]) -> list[Any]:
        """The named tensors of one pass."""
        places = [self._place(name) for name in names]
        calls: dict[Optional[str], list[Any]] = {place.path: [] for place in places}

        def keeper(path: str) -> Callable[..., Any]:
            def keep(_module: Any, _inputs: Any, output: Any) -> Any:
                calls[path].append(output)
                return _cloned(output)

            return keep

        with self._lock, self._plain(), ExitStack() as stack:
            self._refuse_training()
            for path in calls:
                if path is not None:
                    stack.callback(self.module.get_submodule(path).register_forward_hook(keeper(path)).remove)
            output = self.module(batch)
        if None in calls:
            calls[None].append(output)
        return [place.tensor(calls[place.path], batch.shape[0]) for place in places]

    def _groups(self, inputs: Sequence[Any]) -> list[list[int]]:
        """The places of inputs of one size, in order."""
        sizes: dict[tuple[int, ...], list[int]] = {}
        for place, one in enumerate(inputs):
            sizes.setdefault(one.shape, []).append(place)
        return list(sizes.values())

    def _batch(self, inputs: Sequence[Any]) -> Any:
        import torch

        joined = inputs[0] if len(inputs) == 1 else np.concatenate(inputs)
        return torch.from_numpy(joined).to(device=self.device, dtype=self.dtype)

    def _rows(self, tensors: Sequence[Any], names: Sequence[str], count: int) -> list[list[Any]]:
        """The tensors of each input as arrays."""
        import torch

        def array(tensor: Any) -> Any:
            return tensor.detach().to(device="cpu", dtype=torch.float32).contiguous().numpy()

        columns: list[list[Any]] = []
        for tensor, name in zip(tensors, names):
            if isinstance(tensor, list):
                columns.append([array(one) for one in tensor])
                continue
            _one_each(tensor, name, count)
            whole = array(tensor)
            columns.append([whole[row : row + 1] for row in range(count)])
        return [[column[row] for column in columns] for row in range(count)]

    def run(self, inputs: Sequence[Any], names: Sequence[str]) -> list[list[Any]]:
        import torch

        rows: list[Any] = [None] * len(inputs)
        for group in self._groups(inputs):
            with torch.no_grad():
                tensors = self._forward(self._batch([inputs[place] for place in group]), names)
            for place, row in zip(group, self._rows(tensors, names, len(group))):
                rows[place] = row
        return rows

    def trace(self, inputs: Sequence[Any], names: Sequence[str]) -> tuple[list[list[Any]], Any]:
        import torch

        rows: list[Any] = [None] * len(inputs)
        passes = []
        for group in self._groups(inputs):
            with torch.enable_grad():
                batch = self._batch([inputs[place] for place in group]).requires_grad_(True)
                tensors = self._forward(batch, names)
            for place, row in zip(group, self._rows(tensors, names, len(group))):
                rows[place] = row
            passes.append((group, batch, tensors))

        def pullback(cotangents: Sequence[Sequence[Any]]) -> list[Any]:
            gradients: list[Any] = [None] * len(inputs)
            for group, batch, tensors in passes:
                made = self._led_back(batch, tensors, [cotangents[place] for place in group])
                for row, place in enumerate(group):
                    gradients[place] = made[row : row + 1]
            return gradients

        return rows, pullback

    def _led_back(self, batch: Any, tensors: Sequence[Any], cotangents: Sequence[Sequence[Any]]) -> Any:
        """The gradient with respect to a batch."""
        import torch

        outputs, given, asked = [], [], False
        for place, tensor in enumerate(tensors):
            column = [row[place] for row in cotangents]
            pairs = zip(tensor, column) if isinstance(tensor, list) else [(tensor, _joined(tensor, column))]
            for one, cotangent in pairs:
                asked |= cotangent is not None
                if one.requires_grad and cotangent is not None:
                    outputs.append(one)
                    given.append(torch.from_numpy(cotangent).to(device=one.device, dtype=one.dtype))
        if asked and not any(one.requires_grad for tensor in tensors for one in (tensor if isinstance(tensor, list) else [tensor])):
            raise EvenkeelError(NO_GRADIENT)
        made = None
        if outputs:
            (made,) = torch.autograd.grad(outputs, [batch], grad_outputs=given, retain_graph=True, allow_unused=True)
        if made is None:
            return np.zeros(tuple(batch.shape), np.float32)
        return made.detach().to(device="cpu", dtype=torch.float32).contiguous().numpy()

    def compare(self, inputs: Sequence[Any], names: Sequence[str], asked: Comparison) -> tuple[list[Any], float, Any]:
        """The objective's value at the first input and its views, the others, with the first one's named tensors and the way back."""
        import torch

        features = asked.features
        rows: list[Any] = [None] * len(inputs)
        batches: list[Any] = []
        own: list[Any] = []
        with torch.set_grad_enabled(asked.want_gradient):
            for group in self._groups(inputs):
                batch = self._batch([inputs[place] for place in group]).requires_grad_(asked.want_gradient)
                wanted = features + [name for name in names if name not in features] if 0 in group else features
                tensors = dict(zip(wanted, self._forward(batch, wanted)))
                for name in features:
                    _one_each(tensors[name], name, len(group))
                for row, place in enumerate(group):
                    rows[place] = [tensors[name][row] for name in features]
                if 0 in group:
                    own = [tensors[name][0] if isinstance(tensors[name], list) else tensors[name][:1] for name in names]
                batches.append((group, batch))
            value = _cosines.value(rows, asked)
        if asked.want_gradient and not value.requires_grad:
            raise EvenkeelError(NO_GRADIENT)
        answers = self._rows([[tensor] for tensor in own], names, 1)[0]

        def pullback(cotangents: Sequence[Sequence[Any]]) -> list[Any]:
            outputs, given = [asked.weight * value], [torch.ones_like(value)]
            for tensor, cotangent in zip(own, cotangents[0]):
                if tensor.requires_grad and cotangent is not None:
                    outputs.append(tensor)
                    given.append(torch.from_numpy(cotangent).to(device=tensor.device, dtype=tensor.dtype))
            made = torch.autograd.grad(outputs, [batch for _, batch in batches], grad_outputs=given, retain_graph=True, allow_unused=True)
            gradients: list[Any] = [None] * len(inputs)
            for (group, batch), gradient in zip(batches, made):
                whole = torch.zeros_like(batch) if gradient is None else gradient
                array = whole.detach().to(device="cpu", dtype=torch.float32).contiguous().numpy()
                for row, place in enumerate(group):
                    gradients[place] = array[row : row + 1]
            return gradients

        return answers, float(value.detach()), pullback if asked.want_gradient else None


def _one_each(tensor: Any, name: str, count: int) -> None:
    if isinstance(tensor, list):
        raise EvenkeelError(f"tensor {name}: every image has one of its own size, and features that are compared have one size")
    if tensor.shape[0] != count:
        raise EvenkeelError(f"tensor {name}: has {tensor.shape[0]} rows for {count} images, and one each is needed")


def _joined(tensor: Any, column: Sequence[Any]) -> Any:
    """The cotangents of a batch, zeros where there is none; None if there is none at all."""
    if all(one is None for one in column):
        return None
    shape = (1, *tensor.shape[1:])
    return np.concatenate([np.zeros(shape, np.float32) if one is None else one for one in column])


#: The task of modules that find objects.
INSTANCE = "instance"
#: What torchvision's detection modules give every image.
DETECTIONS = ("boxes", "labels", "scores", "masks")


def _finds_objects(module: Any) -> bool:
    """Whether the module gives finished objects with masks, as torchvision's Mask R-CNN does."""
    return getattr(getattr(module, "roi_heads", None), "mask_predictor", None) is not None


def _detections(module: Any) -> dict[str, Any]:
    """The contract of a module that finds objects itself, as torchvision's Mask R-CNN does."""
    scores = getattr(getattr(getattr(module, "roi_heads", None), "box_predictor", None), "cls_score", None)
    classes = getattr(scores, "out_features", None)
    table = {"head": "detections", "confidence": 0.05, "overlap": 1.0, "most": 100}
    return {**table, "classes": classes} if classes is not None else table


def from_torch(
    module: Any,
    *,
    task: Optional[str] = None,
    output: Optional[Names] = None,
    feature: Names,
    mean: Union[float, Sequence[float], None] = None,
    std: Union[float, Sequence[float], None] = None,
    device: Any = None,
    tf32: bool = False,
    on_device: Optional[bool] = None,
    size: Optional[tuple[int, int]] = None,
    **contract: Any,
) -> Model:
    """A model of a PyTorch module in evaluation mode, on any device.

    The module takes N x 3 x H x W; the model takes pixels in [0, 1] and subtracts `mean` and divides by `std` in front of it. `output` and `feature`
    name submodules (`layer4`, `layer4.1.conv2`), keys of a dict that the module gives (`out`), or its own output (`output`). `name#1` is the second
    call of a submodule in a pass, `name:key` a part of what it gives.

    task: classification, semantic, instance or regression; instance if left out for a module that finds objects itself, as torchvision's Mask R-CNN does
    output: the tensors of scores; the module's own output if left out. For objects, what torchvision's Mask R-CNN gives every image
    device: where the module is; its parameters say if left out
    tf32: allow TF32 on GPUs that have it
    on_device: compare features of views where the module is, so that they do not cross; where that is not the CPU if left out
    mean, std: three numbers, or one for all channels; 0 and 1 if left out, or what `pixels="imagenet"` stands for
    size: the only (height, width) that the module takes; any if left out
    contract: other fields of a contract, as for `ek.load`
    """
    size = size_of(size)
    if mean is not None and contract.get("scale", 1.0) == 1.0 and max(three("mean", mean)) > 1.0:
        raise EvenkeelError(f"mean={mean}: pixels are from 0 to 1 here; divide mean and std by 255, or give scale=255.0 if the module takes pixels from 0 to 255")
    network = TorchNetwork(module, device, tf32, size, on_device)
    if _finds_objects(module):
        task = INSTANCE if task is None else task
        if output is None and task == INSTANCE:
            output = [f"{OWN_OUTPUT}:{part}" for part in DETECTIONS]
            contract.setdefault("instance", _detections(module))
    if task is None:
        raise EvenkeelError("task: what the scores mean is needed: classification, semantic, instance or regression")
    output = OWN_OUTPUT if output is None else output
    fields = {"mean": mean, "std": std, "size": size, **contract}
    model = from_network(network, task=task, output=output, feature=feature, **fields)
    model._about = type(module).__name__
    return model
