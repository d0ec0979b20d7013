"""Loads the server and prints ratios of one run: to the library's own rate, and to onnxruntime behind FastAPI and uvicorn with the same network.

    cargo build --release && cargo build --release -p evenkeel-serve --example library_rate
    pip install fastapi "uvicorn[standard]" onnxruntime numpy          # and wrk, from the distribution
    python bench/serve.py [--seconds 8] [--rounds 3] [--connections 32] [--threads 2]
    python bench/serve.py --memory 100000           # resident memory over so many requests
    python bench/serve.py --overload 60             # far more than it can do for so many seconds: which statuses, and how fast it is itself again

Requests are 64x64 images of 8 bits for the shipped classifier, as binary tensors of the Open Inference Protocol; FastAPI gets the bare bytes and answers with the bare
scores, from as many processes as there are threads, one thread each. The three take turns in each round, and ratios are of medians: rates on a machine that does
other things as well mean little by themselves. wrk needs processor time of its own on the same cores, which is measured: beside the rate as it is stands the rate with
wrk's time taken out, `rate * threads / (threads - cores that wrk kept busy)`, and the processor time of an answer, the server's beside the library's. Everything stays on loopback.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
RELEASE = ROOT / "target/release"
NETWORK = ROOT / "crates/evenkeel/models/scenes_classifier.onnx"
PIXELS = bytes((7 * i) % 256 for i in range(64 * 64 * 3))

PEER = """
import numpy as np, onnxruntime
from fastapi import FastAPI, Request, Response
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession({network!r}, options, providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
app = FastAPI()

@app.post("/infer")
async def infer(request: Request):
    pixels = np.frombuffer(await request.body(), np.uint8).reshape(1, 64, 64, 3)
    image = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), np.float32) / np.float32(255)
    image = (image - np.float32(0.45)) / np.float32(0.25)  # as the network's contract says
    return Response(session.run(["scores"], {{name: image}})[0].tobytes(), media_type="application/octet-stream")
"""

LUA = """
local file = io.open({body!r}, "rb")
wrk.method, wrk.body = "POST", file:read("*a")
wrk.headers["Content-Type"] = "application/octet-stream"
{header}
"""


def request_body():
    head = json.dumps({"inputs": [{"name": "image", "shape": [1, 64, 64, 3], "datatype": "UINT8",
                                   "parameters": {"binary_data_size": len(PIXELS)}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return head + PIXELS, len(head)


class Scripts:
    """What wrk sends, as files."""

    def __init__(self, folder):
        body, self.length = request_body()
        self.body = body
        (folder / "ours.bin").write_bytes(body)
        (folder / "peer.bin").write_bytes(PIXELS)
        header = f'wrk.headers["Inference-Header-Content-Length"] = "{self.length}"'
        self.ours, self.peer = folder / "ours.lua", folder / "peer.lua"
        self.ours.write_text(LUA.format(body=str(folder / "ours.bin"), header=header))
        self.peer.write_text(LUA.format(body=str(folder / "peer.bin"), header=""))


def timed(command):
    """What a command prints, and its processor time in seconds."""
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = spent()
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return text, spent() - before


def processor_seconds(process):
    """The processor time of a running process so far, in seconds."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wrk(script, url, connections, seconds):
    command = ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "--timeout", "30s", "--latency", "-s", str(script), url]
    text, own = timed(command)
    unit = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}
    latency = {p: float(v) * unit[u] for p, v, u in re.findall(r"(\d+)%\s+([\d.]+)(us|ms|s|m)\b", text)}
    count = lambda pattern: int(found.group(1)) if (found := re.search(pattern, text)) else 0
    errors = re.search(r"Socket errors: (.*)", text)
    return {"rate": float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1)), "requests": count(r"(\d+) requests in"),
            "p50": latency.get("50"), "p99": latency.get("99"), "refused": count(r"Non-2xx or 3xx responses: (\d+)"),
            "errors": errors.group(1) if errors else None, "own": own}


def ours(threads, *flags):
    server = subprocess.Popen([RELEASE / "evenkeel", "serve", "--port", "0", "--quiet", "--threads", str(threads), *flags], stdout=subprocess.PIPE, text=True)
    return server, re.search(r"http://\S+", server.stdout.readline()).group(0)


def peer(folder, threads):
    (folder / "peer.py").write_text(PEER.format(network=str(NETWORK)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "peer:app", "--port", str(port), "--workers", str(threads), "--log-level", "warning", "--no-access-log"]
    server = subprocess.Popen(command, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"})
    url = f"http://127.0.0.1:{port}/infer"
    for _ in range(300):
        try:
            urllib.request.urlopen(urllib.request.Request(url, PIXELS), timeout=5).read()
            return server, url
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    stop(server)
    raise SystemExit("FastAPI does not start")


def stop(server):
    server.terminate()
    assert server.wait(60) is not None


def infer(address, scripts):
    headers = {"Inference-Header-Content-Length": str(scripts.length)}
    request = urllib.request.Request(f"{address}/v2/models/classifier/infer", scripts.body, headers)
    return urllib.request.urlopen(request, timeout=30)


def rates(arguments, folder, scripts):
    library, served, fastapi, costs = [], [], [], []
    rival, url = peer(folder, arguments.threads)
    server, address = ours(arguments.threads)
    try:
        answers = [infer(address, scripts).read()[-40:], urllib.request.urlopen(url, PIXELS, timeout=30).read()]
        a, b = (struct.unpack("<10f", answer) for answer in answers)
        assert max(abs(x - y) for x, y in zip(a, b)) < 1e-3 * max(map(abs, a)), f"not the same network: {a}, {b}"
        seconds, connections = arguments.seconds, arguments.connections
        for _ in range(arguments.rounds):
            command = [RELEASE / "examples/library_rate", str(arguments.threads), str(seconds)]
            text, alone = timed(command)
            library.append(float(text))
            before = processor_seconds(server)
            served.append(wrk(scripts.ours, f"{address}/v2/models/classifier/infer", connections, seconds))
            spent = processor_seconds(server) - before
            costs.append([1000 * cost for cost in (alone / (library[-1] * seconds), spent / served[-1]["requests"], served[-1]["own"] / served[-1]["requests"])])
            fastapi.append(wrk(scripts.peer, url, connections, seconds))
            print(f"library {library[-1]:.0f}/s, served {served[-1]['rate']:.0f}/s (p50 {served[-1]['p50']:.1f} ms, p99 {served[-1]['p99']:.1f} ms), "
                  f"FastAPI {fastapi[-1]['rate']:.0f}/s (p50 {fastapi[-1]['p50']:.1f} ms, p99 {fastapi[-1]['p99']:.1f} ms)", flush=True)
            assert not served[-1]["refused"] and not served[-1]["errors"], served[-1]
    finally:
        stop(server)
        stop(rival)
    rate = statistics.median(one["rate"] for one in served)
    print(f"served / library {rate / statistics.median(library):.2f}")
    without = lambda one: one["rate"] * arguments.threads / (arguments.threads - one["own"] / arguments.seconds)
    print(f"served / library, wrk's processor time taken out {statistics.median(map(without, served)) / statistics.median(library):.2f}")
    alone, spent, own = (statistics.median(column) for column in zip(*costs))
    print(f"processor time: library {alone:.3f} ms an image, server {spent:.3f} ms a request ({alone / spent:.2f}), wrk {own:.3f} ms a request")
    print(f"served / FastAPI with onnxruntime {rate / statistics.median(one['rate'] for one in fastapi):.2f}")
    print(f"p99 / p50: served {statistics.median(one['p99'] / one['p50'] for one in served):.2f}, "
          f"FastAPI {statistics.median(one['p99'] / one['p50'] for one in fastapi):.2f}")


def resident_mb(server):
    text = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) / 1024


def memory(arguments, scripts):
    server, address = ours(arguments.threads)
    done = 0
    try:
        while done < arguments.memory:
            done += wrk(scripts.ours, f"{address}/v2/models/classifier/infer", arguments.connections, arguments.seconds)["requests"]
            print(f"{done} requests: {resident_mb(server):.1f} MB resident", flush=True)
    finally:
        stop(server)


def statuses(address):
    text = urllib.request.urlopen(f"{address}/metrics", timeout=30).read().decode()
    return {status: int(n) for status, n in re.findall(r'evenkeel_requests_total\{endpoint="infer",status="(\d+)"\} (\d+)', text)}


def overload(arguments, scripts):
    server, address = ours(arguments.threads)
    url = f"{address}/v2/models/classifier/infer"
    try:
        capacity = wrk(scripts.ours, url, arguments.connections, arguments.seconds)["rate"]
        before = statuses(address)
        flood = wrk(scripts.ours, url, 400, arguments.overload)
        over = time.monotonic()
        answer = infer(address, scripts)
        recovered = time.monotonic() - over
        assert answer.status == 200
        after = statuses(address)
        print(f"{flood['rate'] / capacity:.1f} times the capacity of {capacity:.0f}/s offered for {arguments.overload} s by 400 connections")
        print("answers:", {status: after[status] - before.get(status, 0) for status in after}, "socket errors:", flood["errors"])
        print(f"the first request afterwards was answered with {answer.status} after {recovered * 1000:.0f} ms; memory {resident_mb(server):.1f} MB")
        assert set(after) <= {"200", "429"} and not flood["errors"]
    finally:
        stop(server)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", type=int, metavar="REQUESTS")
    parser.add_argument("--overload", type=int, metavar="SECONDS")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scripts = Scripts(folder)
        if arguments.memory:
            memory(arguments, scripts)
        elif arguments.overload:
            overload(arguments, scripts)
        else:
            rates(arguments, folder, scripts)


if __name__ == "__main__":
    main()
