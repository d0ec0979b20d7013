"""An S3-compatible server on loopback (moto) behind a front that injects faults: refusals, answers lost after the deed, and silence.

The front lets one PUT of an object through at a time, as S3 decides conditional writes; moto by itself looks and writes in two steps.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Iterator, Optional
from urllib.parse import urlsplit

import evenkeel as ek
from evenkeel import EvenkeelError

#: What clients are told to wait for an answer, and how long a silent request lasts.
PATIENCE = "2s"
SILENCE = 3.0


def has_network() -> bool:
    """Whether the package was built with object stores."""
    try:
        ek.datasets.open("folder", "s3://bucket@host/x")
    except EvenkeelError as error:
        return "this build knows folders only" not in str(error)
    return True


class Front(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, behind: str, handler: Optional[type[Handler]] = None) -> None:
        super().__init__(("127.0.0.1", 0), handler or Handler)
        self.behind = urlsplit(behind).netloc
        self.share = 0.0
        self.chance, self.lock, self.writing = random.Random(9), threading.Lock(), threading.Lock()
        self.faults: Counter[str] = Counter()
        #: How often an object of this path was made.
        self.created: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fault(self) -> str:
        with self.lock:
            kind = self.chance.choice(["refused", "lost", "silent"]) if self.chance.random() < self.share else ""
            if kind:
                self.faults[kind] += 1
            return kind


class Handler(BaseHTTPRequestHandler):
    server: Front
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault()
        if fault == "refused":
            return self.send(500, {}, b"<Error><Code>InternalError</Code></Error>")
        if fault == "silent":
            time.sleep(SILENCE)
            self.close_connection = True
            return None
        status, headers, said = self.passed_on(body)
        if fault == "lost":
            status, headers, said = 500, {}, b"<Error><Code>InternalError</Code></Error>"
        return self.send(status, headers, said)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

    def passed_on(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        ours = self.command == "PUT"
        with self.server.writing if ours else threading.Lock():
            status, headers, said = self.ask(self.command, self.path, body, dict(self.headers))
        if ours and status in (200, 201):
            with self.server.lock:
                self.server.created[self.path] += 1
        return status, headers, said

    def ask(self, command: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Of the server behind."""
        to = http.client.HTTPConnection(self.server.behind, timeout=60)
        to.request(command, path, body, headers)
        answer = to.getresponse()
        said = answer.read()
        to.close()
        return answer.status, dict(answer.getheaders()), said

    def send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        length = headers.get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def store(bucket: str) -> Iterator[tuple[Front, dict[str, str]]]:
    """The front with a bucket behind it, and the environment that leads clients there."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    front = None
    try:
        host, port = server.get_host_and_port()
        front = Front(f"http://{host}:{port}")
        threading.Thread(target=front.serve_forever, daemon=True).start()
        to = http.client.HTTPConnection(host, port)
        to.request("PUT", f"/{bucket}", headers={"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request"})
        assert to.getresponse().status == 200
        env = {
            "AWS_ENDPOINT": front.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_TIMEOUT": PATIENCE,
        }
        yield front, env
    finally:
        if front:
            front.shutdown()
        server.stop()
