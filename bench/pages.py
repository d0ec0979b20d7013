"""Looks at pages in headless Chromium at 390 and 1440 px: console errors, content wider than the page, small chart text; and takes screenshots to be looked at.

    python bench/pages.py demo/index.html my.study/report/index.html my.tune/index.html http://127.0.0.1:8000/ --out shots

Pages are files or addresses. Needs chromium, nothing else. Exits with 1 if anything is wrong. A table may be wider than a phone if its box scrolls.
"""

import argparse
import html
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request

WRAP = """<!doctype html><link rel="icon" href="data:,"><body style="margin:0"><iframe id=f style="border:0;width:%dpx;height:%dpx" src="%s"></iframe><script>
f.onload = () => { const d = f.contentDocument, w = f.contentWindow, wide = [], small = [];
for (const e of d.body.querySelectorAll('*')) { const r = e.getBoundingClientRect();
  if (r.width && r.right > w.innerWidth + 1 && !e.closest('.wide, .table-wrapper, pre') && !e.closest('svg')) wide.push(e.tagName + '.' + e.className);
  if (e.tagName === 'text') { const s = e.ownerSVGElement, b = s.getBoundingClientRect(), v = s.viewBox.baseVal;
    const size = parseFloat(w.getComputedStyle(e).fontSize) * b.width / v.width; if (b.width && size < 9) small.push(size.toFixed(1));
    const t = e.getBoundingClientRect(); if (b.width && (t.right > b.right + 2 || t.left < b.left - 2)) wide.push('chart text ' + e.textContent); } }
const scrolls = [...d.querySelectorAll('.wide, .table-wrapper')].filter(e => e.scrollWidth > e.clientWidth + 1).length;
const p = document.createElement('pre'); p.id = 'found'; p.textContent = JSON.stringify({wide: wide.slice(0, 9), small: small.slice(0, 9), scrolls, height: d.documentElement.scrollHeight});
document.body.append(p); };</script>"""


def chromium(*words):
    with tempfile.TemporaryDirectory() as profile:
        flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars"
        command = ["chromium", *flags.split(), "--allow-file-access-from-files", "--enable-logging=stderr", f"--user-data-dir={profile}", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=240)


def relay(address):
    """A server on loopback that hands on what is at the address without the headers that forbid frames, and `wrapper` from `held`."""
    held = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/wrapper":
                status, kind, body = 200, "text/html", held["wrapper"].encode()
            else:
                try:
                    answer = urllib.request.urlopen(address.rstrip("/") + self.path)
                except urllib.error.HTTPError as error:
                    answer = error
                status, kind, body = answer.status, answer.headers["content-type"], answer.read()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return held, f"http://127.0.0.1:{server.server_port}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("shots"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    wrong = False
    for page in args.pages:
        if "://" in page:
            (held, here), name = relay(page), "page-" + re.sub(r"\W+", "-", page.split("://")[1]).strip("-")
            wrapper, address = f"{here}/wrapper", f"{here}/"
        else:
            path = pathlib.Path(page).resolve()
            if not path.is_file():
                parser.error(f"{page}: there is no such page")
            held, name, address = None, path.parent.name, path.as_uri()
            wrapper = (args.out / "wrapper.html").resolve().as_uri()

        def wrap(text):
            if held is None:
                (args.out / "wrapper.html").write_text(text)
            else:
                held["wrapper"] = text

        for width in (390, 1440):
            wrap(WRAP % (width, 900, address))
            seen = chromium("--virtual-time-budget=8000", "--window-size=1600,1000", "--dump-dom", wrapper)
            found = json.loads(html.unescape(re.search(r'id="found">(.*?)</pre>', seen.stdout, re.S)[1]))
            # "[DOM]" marks hints for password managers; once more as it is, with the headers that a relay leaves out
            plain = chromium("--virtual-time-budget=8000", "--dump-dom", page if held is not None else address)
            console = [line for line in (seen.stderr + plain.stderr).splitlines() if "CONSOLE" in line and '"[DOM]' not in line]
            height = min(found.pop("height"), 12000)
            wrap(f'<!doctype html><link rel="icon" href="data:,"><body style="margin:0"><iframe style="border:0;width:{width}px;height:{height}px" src="{address}"></iframe>')
            shot = args.out / f"{name}-{width}.png"
            chromium(f"--window-size={max(width, 500)},{height}", f"--screenshot={shot.resolve()}", wrapper)
            bad = bool(console or found["wide"] or found["small"])
            wrong |= bad
            print(f"{page} at {width} px: {'WRONG' if bad else 'ok'} {found} console {console}; {shot}")
    (args.out / "wrapper.html").unlink(missing_ok=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
