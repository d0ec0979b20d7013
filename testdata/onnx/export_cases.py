"""Writes the ONNX standard's own operator tests as files.

    python export_cases.py FOLDER            all of them, for `cargo run --release --example conformance -- FOLDER`
    python export_cases.py --sample PASSED FOLDER   the sample kept in testdata/onnx/cases: some of the small cases that the file
                                                    PASSED (written by `conformance --passed`) names

A case is a folder KIND/NAME with model.onnx, input_SET_I.pb and output_SET_I.pb (one TensorProto each), and case.txt, which
names the operator tested, the tolerances, and the element types of all values. Needs the PyPI package `onnx`.
"""

import glob
import json
import os
import sys

import numpy as np
import onnx
import onnx.backend.test
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

DATA = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data")
SAMPLE_BYTES = 8_000


def type_name(code):
    return TensorProto.DataType.Name(code).lower()


def tensor_of(value, name):
    """A TensorProto, or None for sequences, maps and absent optionals."""
    if isinstance(value, TensorProto):
        return value
    if value is None or isinstance(value, (list, tuple, dict)):
        return None
    return numpy_helper.from_array(np.asarray(value), name)


def nested_types(graph):
    """Element types that the graph's own tensors and declarations mention."""
    found = {t.data_type for t in graph.initializer}
    for info in list(graph.input) + list(graph.output) + list(graph.value_info):
        if info.type.HasField("tensor_type"):
            found.add(info.type.tensor_type.elem_type)
        else:
            found.add(None)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                found.add(attribute.t.data_type)
            if attribute.HasField("g"):
                found |= nested_types(attribute.g)
            if attribute.name in ("to", "dtype") and node.op_type in ("Cast", "EyeLike", "QuantizeLinear"):
                found.add(attribute.i)
    return found


def write(folder, kind, name, operator, model, sets, rtol, atol):
    case = os.path.join(folder, kind, name)
    os.makedirs(case, exist_ok=True)
    with open(os.path.join(case, "model.onnx"), "wb") as f:
        f.write(model.SerializeToString())
    types = nested_types(model.graph)
    for s, (inputs, outputs) in enumerate(sets):
        for what, values in (("input", inputs), ("output", outputs)):
            for i, value in enumerate(values):
                tensor = tensor_of(value, "")
                if tensor is None:
                    types.add(None)
                    continue
                types.add(tensor.data_type)
                with open(os.path.join(case, f"{what}_{s}_{i}.pb"), "wb") as f:
                    f.write(tensor.SerializeToString())
    names = sorted("other" if t is None else type_name(t) for t in types - {0})
    with open(os.path.join(case, "case.txt"), "w") as f:
        f.write(f"operator {operator}\nrtol {rtol}\natol {atol}\ntypes {' '.join(names)}\n")


def node_cases():
    cases = {case.name: case for case in collect_testcases()}
    for name, case in cases.items():
        base = cases.get(name.split("_expanded")[0], case)
        plain = [node.op_type for node in base.model.graph.node if node.op_type != "Constant"]
        operator = plain[0] if plain else "Constant"
        yield "node", name, operator, case.model, case.data_sets, case.rtol, case.atol


def read_tensor(path, info):
    if not info.type.HasField("tensor_type"):
        return None
    with open(path, "rb") as f:
        return TensorProto.FromString(f.read())


def folder_cases(kind):
    for case in sorted(glob.glob(os.path.join(DATA, kind, "test_*"))):
        model = onnx.load(os.path.join(case, "model.onnx"))
        rtol, atol = 1e-3, 1e-7
        if os.path.exists(os.path.join(case, "data.json")):
            with open(os.path.join(case, "data.json")) as f:
                data = json.load(f)
            rtol, atol = data.get("rtol", rtol), data.get("atol", atol)
        sets = []
        for folder in sorted(glob.glob(os.path.join(case, "test_data_set_*"))):
            values = []
            for what, infos in (("input", model.graph.input), ("output", model.graph.output)):
                count = len(glob.glob(os.path.join(folder, f"{what}_*.pb")))
                values.append([read_tensor(os.path.join(folder, f"{what}_{i}.pb"), infos[i]) for i in range(count)])
            sets.append(values)
        yield kind, os.path.basename(case), model.graph.node[0].op_type, model, sets, rtol, atol


def light_cases():
    """Whole networks with made-up weights; the input is a ramp, as in the standard's own runner."""
    for path in sorted(glob.glob(os.path.join(DATA, "light", "*.onnx"))):
        model = onnx.load(path)
        initialised = {tensor.name for tensor in model.graph.initializer}
        inputs = []
        for info in model.graph.input:
            if info.name not in initialised:
                shape = [d.dim_value if d.HasField("dim_value") else 1 for d in info.type.tensor_type.shape.dim]
                count = int(np.prod(shape))
                inputs.append((np.arange(count).reshape(shape) / count).astype(np.float32))
        outputs = []
        for i in range(len(model.graph.output)):
            with open(f"{path[:-5]}_output_{i}.pb", "rb") as f:
                outputs.append(TensorProto.FromString(f.read()))
        name = os.path.basename(path)[:-5]
        yield "light", name, "network", model, [(inputs, outputs)], 1e-3, 1e-7


def all_cases():
    yield from node_cases()
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        yield from folder_cases(kind)
    yield from light_cases()


def sample(cases, passed):
    """Up to three small cases of each operator, one of the other kinds."""
    taken = {}
    for case in cases:
        kind, name, operator, model, sets, _, _ = case
        if f"{kind}/{name}" not in passed:
            continue
        values = [v for s in sets for part in s for v in part]
        tensors = [tensor_of(v, "") for v in values]
        if any(t is None for t in tensors):
            continue
        size = model.ByteSize() + sum(t.ByteSize() for t in tensors)
        key = (kind, operator)
        if size <= SAMPLE_BYTES and taken.get(key, 0) < (3 if kind == "node" else 1):
            taken[key] = taken.get(key, 0) + 1
            yield case


if __name__ == "__main__":
    arguments = sys.argv[1:]
    cases = all_cases()
    if arguments[:1] == ["--sample"] and len(arguments) > 1:
        with open(arguments[1]) as f:
            arguments, cases = arguments[2:], sample(cases, set(f.read().split()))
    if len(arguments) != 1:
        sys.exit(__doc__)
    count = 0
    for case in cases:
        write(arguments[0], *case)
        count += 1
    print(f"{count} cases in {arguments[0]}")
