"""NVIDIA's own clients against the server: health, metadata, JSON and binary inference, batches, encoded images, errors, gzip; over HTTP and gRPC.

    cargo build --release
    pip install "tritonclient[http,grpc]" numpy
    python crates/evenkeel-serve/clients/triton.py

Starts `evenkeel serve` on ports of its own, makes its images itself and compares the answers with `evenkeel predict --json` on the same files.
"""

import argparse
import json
import pathlib
import re
import subprocess
import tempfile

import numpy as np
import tritonclient.grpc as over_grpc
import tritonclient.http as over_http
from tritonclient.utils import InferenceServerException

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "crates/evenkeel-serve/src/examples"
MODEL = "classifier"


def start(program):
    server = subprocess.Popen([program, "serve", "--port", "0", "--grpc-port", "0", "--quiet", "--request-time", "300"],
                              stdout=subprocess.PIPE, text=True)
    http = re.search(r"http://(\S+)", server.stdout.readline()).group(1)
    grpc = re.search(r"gRPC at (\S+)", server.stdout.readline()).group(1)
    return server, http, grpc


def predicted(program, files, *flags):
    """What the command line says of the files, with full scores."""
    lines = subprocess.run([program, "predict", f"embedded:{MODEL}", *map(str, files), "--json", *flags],
                           check=True, capture_output=True, text=True).stdout
    answers = [json.loads(line) for line in lines.splitlines()]
    for answer in answers:
        for own in ["image", "disagreement_before", "disagreement_after"]:  # what the command line says beside a verdict
            answer.pop(own, None)
    return answers


def refused(call, *words):
    try:
        call()
    except InferenceServerException as error:
        text = str(error)
        assert all(word in text for word in words), f"{words} not in: {text}"
        return
    raise AssertionError(f"not refused: {words}")


def tensor(library, values, name="image", datatype="FP32", **how):
    made = library.InferInput(name, list(values.shape), datatype)
    made.set_data_from_numpy(values, **how)
    return made


def verdicts(result):
    return [json.loads(text) for text in result.as_numpy("evenkeel.verdict").reshape(-1)]


def check(library, client, program, files, json_too):
    is_http = library is over_http
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready(MODEL)
    assert client.is_model_ready(MODEL, "1")
    about = client.get_server_metadata()
    assert (about["name"] if is_http else about.name) == "evenkeel"
    metadata = client.get_model_metadata(MODEL)
    inputs = metadata["inputs"] if is_http else [{"name": one.name, "datatype": one.datatype} for one in metadata.inputs]
    assert inputs[0]["name"] == "image" and inputs[0]["datatype"] == "FP32", inputs
    names = [one["name"] for one in metadata["outputs"]] if is_http else [one.name for one in metadata.outputs]
    own = names[0]

    random = np.random.default_rng(0)
    batch = random.random((3, 3, 64, 64), dtype=np.float32)
    whole = client.infer(MODEL, [tensor(library, batch)], request_id="seven")
    assert (whole.get_response()["id"] if is_http else whole.get_response().id) == "seven"
    scores = whole.as_numpy(own)
    assert scores.shape[0] == 3 and np.isfinite(scores).all()
    for number in range(3):
        one = client.infer(MODEL, [tensor(library, batch[number : number + 1])]).as_numpy(own)
        assert np.array_equal(one[0], scores[number]), "a batch has the bytes of its images one by one"
    if json_too:
        plain = client.infer(MODEL, [tensor(library, batch, binary_data=False)],
                             outputs=[over_http.InferRequestedOutput(own, binary_data=False)]).as_numpy(own)
        assert np.array_equal(plain, scores), "JSON and binary tensors give the same bytes"
    for coding in ["gzip", "deflate"] if is_http else ["gzip", "deflate", None]:
        how = {"request_compression_algorithm": coding, "response_compression_algorithm": coding} if is_http else {"compression_algorithm": coding}
        if not is_http and coding == "deflate":
            refused(lambda: client.infer(MODEL, [tensor(library, batch)], **how), "deflate")
            continue
        assert np.array_equal(client.infer(MODEL, [tensor(library, batch)], **how).as_numpy(own), scores), coding

    # encoded images, with everything that a verdict holds, as the command line prints it
    encoded = np.array([file.read_bytes() for file in files], dtype=np.object_)
    wanted = [library.InferRequestedOutput(name) for name in ["evenkeel.score", "evenkeel.alarm", "evenkeel.defended", "evenkeel.verdict"]]
    cases = [({}, ["--detect"]),
             ({"defence": "equivariance", "steps": 3, "seed": 5}, ["--detect", "--defence", "equivariance", "--defence-steps", "3", "--seed", "5"]),
             ({"answer": "vote", "seed": 2}, ["--detect", "--answer", "vote", "--seed", "2"])]
    for parameters, flags in cases:
        result = client.infer(MODEL, [tensor(library, encoded, datatype="BYTES")], outputs=wanted, parameters=parameters)
        expected = predicted(program, files, *flags)
        assert verdicts(result) == expected, f"{parameters}: {verdicts(result)} is not {expected}"
        assert result.as_numpy("evenkeel.score").tolist() == [one["score"] for one in expected]
        assert result.as_numpy("evenkeel.alarm").tolist() == [one["alarm"] for one in expected] == [False, True]
        assert result.as_numpy("evenkeel.defended").tolist() == [one["defended"] for one in expected]

    refused(lambda: client.infer("oracle", [tensor(library, batch)]), "oracle")
    refused(lambda: client.get_model_metadata(MODEL, "2"), "version")
    refused(lambda: client.infer(MODEL, [tensor(library, batch, name="picture")]), "picture")
    refused(lambda: client.infer(MODEL, [tensor(library, batch[:, :, :63])]), "63")
    refused(lambda: client.infer(MODEL, [tensor(library, np.full((1, 3, 64, 64), np.nan, np.float32))]), "NaN")
    refused(lambda: client.infer(MODEL, [tensor(library, batch)], outputs=[library.InferRequestedOutput("walls")]), "walls")
    refused(lambda: client.infer(MODEL, [tensor(library, batch)], parameters={"defence": "moat"}), "moat")
    refused(lambda: client.infer(MODEL, [tensor(library, np.array([b"<svg/>"], np.object_), datatype="BYTES")]), "PNG")
    refused(lambda: client.infer(MODEL, [tensor(library, np.zeros((65, 3, 64, 64), np.float32))]), "64 images")
    assert client.is_server_ready(), "errors leave the server as it was"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default=ROOT / "target/release/evenkeel")
    program = str(arguments.parse_args().program)
    files = [EXAMPLES / f"{MODEL}.clean.png", EXAMPLES / f"{MODEL}.attacked.png"]
    server, http, grpc = start(program)
    try:
        check(over_http, over_http.InferenceServerClient(http, network_timeout=300, connection_timeout=60), program, files, True)
        print("tritonclient over HTTP: as expected")
        check(over_grpc, over_grpc.InferenceServerClient(grpc), program, files, False)
        print("tritonclient over gRPC: as expected")
    finally:
        server.terminate()
        assert server.wait(60) == 0, "SIGTERM ends it with 0"


if __name__ == "__main__":
    main()
