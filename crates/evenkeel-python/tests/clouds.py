"""Emulators of Azure's and Google's object stores on loopback, each behind the front of `faulty_s3`: Azurite (npm), and Google's own storage-testbench (Python).

The testbench has no lists in XML and leaves out an object's age and has one tag for all, which the service itself has; the front makes them from what it says in JSON.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import http.client
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Iterator, Optional
from urllib.parse import parse_qs, quote, urlencode, urlsplit
from xml.sax.saxutils import escape

from faulty_s3 import PATIENCE, Front, Handler

#: The account that every emulator of Azure has, with its key, as its manual prints them.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def azurite() -> Optional[str]:
    """`azurite-blob` of `npm install azurite`: $AZURITE, or on the path."""
    return os.environ.get("AZURITE") or shutil.which("azurite-blob")


def testbench() -> Optional[str]:
    """`gunicorn` of a Python that has github.com/googleapis/storage-testbench: $STORAGE_TESTBENCH."""
    return os.environ.get("STORAGE_TESTBENCH")


def free_port() -> int:
    with socket.socket() as of:
        of.bind(("127.0.0.1", 0))
        return int(of.getsockname()[1])


@contextmanager
def serving(words: list[str], port: int, handler: type[Handler]) -> Iterator[Front]:
    """A front before a server that these words start at that port."""
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    front = None
    try:
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < end and server.poll() is None, f"{words[0]} did not start"
                time.sleep(0.2)
        front = Front(f"http://127.0.0.1:{port}", handler)
        threading.Thread(target=front.serve_forever, daemon=True).start()
        yield front
    finally:
        if front:
            front.shutdown()
        server.terminate()
        server.wait()


def make_container(front: Front, container: str) -> None:
    """A container, which is asked for with a signed request."""
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in headers.items()), f"/{ACCOUNT}/{ACCOUNT}/{container}", "restype:container"]
    signature = hmac.new(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
    to = http.client.HTTPConnection(front.behind)
    to.request("PUT", f"/{ACCOUNT}/{container}?restype=container", headers={**headers, "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"})
    answer = to.getresponse()
    assert answer.status == 201, answer.read()


@contextmanager
def azure(container: str) -> Iterator[tuple[Front, dict[str, str]]]:
    port = free_port()
    words = [str(azurite()), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence"]
    with serving(words, port, Handler) as front:
        make_container(front, container)
        env = {
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": front.url,
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_ALLOW_HTTP": "true",
            "AZURE_TIMEOUT": PATIENCE,
        }
        yield front, env


class Google(Handler):
    def ask(self, command: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        at = urlsplit(path)
        bucket, _, name = at.path.strip("/").partition("/")
        if not name:
            return self.listed(bucket, {key: values[0] for key, values in parse_qs(at.query).items()})
        status, told, said = super().ask(command, path, body, headers)
        if status == 200:
            about = self.json(f"/storage/v1/b/{bucket}/o/{quote(name, safe='%')}")
            made = datetime.fromisoformat(about["updated"].replace("Z", "+00:00"))
            told = {**told, "ETag": f'"{about["generation"]}"', "Last-Modified": email.utils.format_datetime(made, usegmt=True)}
        return status, told, said

    def json(self, path: str) -> Any:
        status, _, said = super().ask("GET", path, b"", {"Host": self.server.behind})
        assert status == 200, (path, status, said)
        return json.loads(said)

    def listed(self, bucket: str, asked: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        query = urlencode({key: asked[key] for key in ("prefix", "delimiter") if key in asked})
        found = self.json(f"/storage/v1/b/{bucket}/o?{query}")
        rows = [f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in found.get("prefixes", [])]
        for one in found.get("items", []):
            about = f"<Size>{one['size']}</Size><LastModified>{one['updated']}</LastModified><ETag>\"{one['generation']}\"</ETag>"
            rows.append(f"<Contents><Key>{escape(one['name'])}</Key>{about}</Contents>")
        return 200, {"Content-Type": "application/xml"}, f"<ListBucketResult>{''.join(rows)}</ListBucketResult>".encode()


@contextmanager
def google(bucket: str) -> Iterator[tuple[Front, dict[str, str]]]:
    port = free_port()
    words = [str(testbench()), f"--bind=127.0.0.1:{port}", "--worker-class=gthread", "--threads=8", "testbench:run()"]
    with serving(words, port, Google) as front:
        to = http.client.HTTPConnection(front.behind)
        to.request("POST", "/storage/v1/b?project=test", json.dumps({"name": bucket}), {"Content-Type": "application/json"})
        answer = to.getresponse()
        assert answer.status == 200, answer.read()
        account = {"gcs_base_url": front.url, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
        yield front, {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account), "GOOGLE_ALLOW_HTTP": "true", "GOOGLE_TIMEOUT": PATIENCE}
