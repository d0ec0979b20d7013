"""Vision networks made robust at the moment they are used, without retraining them.

>>> import evenkeel as ek
>>> model = ek.shipped("classifier")                    # or ek.load("net.onnx"), ek.from_torch(module, ...)
>>> image = ek.scenes.render(7, size=(64, 64)).image    # or a numpy array, a torch tensor, a PIL image, a path
>>> shield = ek.Pipeline(model, defence="equivariance", detector="variance", threshold=0.2, defence_steps=1)
>>> verdict = shield(image)
>>> attacked = ek.attack(shield, image, verdict.prediction, "apgd-ce", epsilon=4/255, steps=2, draws=2, final_draws=2)
>>> attacked.image.shape
(64, 64, 3)
"""

from . import datasets, metrics, scenes, study, views
from ._attack import Attacked, attack
from ._core import Calibration, EvenkeelError, Instance, Prediction, __version__
from ._corrupt import corrupt, corruptions
from ._detect import Detection, calibrate, detect, load_calibration
from ._model import Model, Network, from_network, load, shipped
from ._pipeline import Certificate, Pipeline, Record, Verdict
from ._settings import Spec, answer, defence, detector, names
from ._torch import from_torch
from ._tune import Tuned, tune

__all__ = [
    "Attacked",
    "Calibration",
    "Certificate",
    "Detection",
    "EvenkeelError",
    "Instance",
    "Model",
    "Network",
    "Pipeline",
    "Prediction",
    "Record",
    "Spec",
    "Tuned",
    "Verdict",
    "__version__",
    "answer",
    "attack",
    "calibrate",
    "corrupt",
    "corruptions",
    "datasets",
    "defence",
    "detect",
    "detector",
    "from_network",
    "from_torch",
    "load",
    "load_calibration",
    "metrics",
    "names",
    "scenes",
    "shipped",
    "study",
    "tune",
    "views",
]
