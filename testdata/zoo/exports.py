"""Takes checkpoints through `evenkeel model import --onnx` and asks onnxruntime and evenkeel's own importer for the same answer.

    python testdata/zoo/exports.py PATH/TO/evenkeel [NAME ...]            (needs torch, torchvision, numpy, onnx, onnxruntime)

For each network of make.py, and the three Mask R-CNNs: weights by the rule are saved with torch.save (wrapped in `state_dict`, names with `module.`), imported and recognised, and
written as ONNX. The answers compared are PyTorch's, onnxruntime's, and (by `evenkeel model check`) those of the ONNX file and of the safetensors file.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import torch

import make
import mask_rcnn
import rule


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def apart(got, expected):
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    return np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-30) if got.shape == expected.shape else np.inf


def older(key):
    """The names of torchvision's COCO weights, which are from before the blocks of the pyramid and the heads had numbers."""
    key = re.sub(r"(fpn\.(?:inner|layer)_blocks\.\d)\.0\.", r"\1.", key)
    key = key.replace("rpn.head.conv.0.0.", "rpn.head.conv.")
    return re.sub(r"roi_heads\.mask_head\.(\d)\.0\.", lambda m: f"roi_heads.mask_head.mask_fcn{int(m[1]) + 1}.", key)


def compare(program, folder, name, module, answer, images):
    rename = older if name.endswith("_coco") else lambda key: key
    state = {f"module.{rename(key)}": value for key, value in module.state_dict().items()}
    torch.save({"epoch": 3, "best": 0.5, "state_dict": state}, folder / "net.pth")
    arch = ["--arch", name] if name.endswith("_os8") else []
    told = run(program, "model", "import", folder / "net.pth", *arch, "--onnx", "-o", folder / "net.onnx")
    assert told.startswith(name + ","), told
    run(program, "model", "import", folder / "net.pth", *arch, "-o", folder / "net.safetensors")
    onnx.checker.check_model(folder / "net.onnx")
    session = onnxruntime.InferenceSession(folder / "net.onnx", providers=["CPUExecutionProvider"])
    for image in images:
        with torch.no_grad():
            expected = {key: value.numpy() for key, value in answer(module, image).items()}
        answers = dict(zip([output.name for output in session.get_outputs()], session.run(None, {"image": image.numpy()})))
        worst = max(apart(answers[key], value) for key, value in expected.items())
        if worst < 1e-3:
            break
    size = tuple(image.shape[2:])
    np.savez(folder / "ref.npz", image=image.numpy(), **answers)
    for file in ("net.onnx", "net.safetensors"):
        checked = run(program, "model", "check", folder / file, "--against", folder / "ref.npz", "--size", "%dx%d" % size[::-1])
        print(f"{name:32} onnxruntime against PyTorch {worst:.1e}; evenkeel on {file}:", "; ".join(checked.splitlines()), flush=True)
    assert worst < 1e-3, worst


def logits(module, image):
    out = module(image)
    return {"logits": out["out"] if isinstance(out, dict) else out}


def instances(module, image):
    return module(list(image))[0]


def separated(module, size):
    """Some images, those whose scores are furthest apart first: rounding may swap neighbours that are close. The first on which PyTorch and onnxruntime agree counts."""
    def gap(image):
        with torch.no_grad():
            return float(-instances(module, image)["scores"].diff().max())

    return sorted((rule.field(f"image{i}", (1, 3, *size)) for i in range(12)), key=gap, reverse=True)


def main():
    program, asked = sys.argv[1], set(sys.argv[2:])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, build, sizes in make.networks():
            if not asked or name in asked:
                image = rule.field("image0", (1, 3, *sizes[1]))
                compare(program, folder, name, rule.fill(build()).float(), logits, [image])
        for name in ("maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2", "maskrcnn_resnet50_fpn_coco"):
            if not asked or name in asked:
                size = mask_rcnn.SIZES[1]
                module = mask_rcnn.make(name.removesuffix("_coco"), size, torch.float32)
                if name.endswith("_coco"):
                    for norm in (part for part in module.modules() if isinstance(part, torch.nn.BatchNorm2d)):
                        norm.eps = 0.0
                compare(program, folder, name, module, instances, separated(module, size))


if __name__ == "__main__":
    main()
