"""The server behind real proxies, with the files of `deploy/` (their ports replaced), at the root and under a path.

nginx/nginx#1505: events came all at once. LibreTranslate#986: whoever wrote X-Forwarded-For was somebody else at each
request.
"""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
PAIR = {"source": "en", "target": "de"}
TEXT = "the old dog sees the man"
PATHS = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def nginx(folder: Path, port: int, backend: int, root: str) -> list[str]:
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    text = text.replace("listen 80;", f"listen 127.0.0.1:{port};").replace("127.0.0.1:5000;", f"127.0.0.1:{backend};")
    text = text.replace("location / {", f"location {root or '/'} {{").replace("/var/log/nginx", str(folder))
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = text.replace("http {", f"http {{\n{places}")
    (folder / "nginx.conf").write_text(f"pid {folder}/pid;\nerror_log {folder}/errors;\ndaemon off;\n{text}")
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "errors")]


def caddy(folder: Path, port: int, backend: int, root: str) -> list[str]:
    text = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    text = re.sub(r"^:80 \{", f"http://127.0.0.1:{port} {{", text, flags=re.M)
    text = text.replace(
        "reverse_proxy 127.0.0.1:5000", f"reverse_proxy {root + '* ' if root else ''}127.0.0.1:{backend}"
    )
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text)
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


@contextmanager
def proxied(command: list[str], folder: Path, port: int) -> Iterator[str]:
    """The address of a proxy that runs."""
    program = shutil.which(command[0], path=PATHS)
    if program is None:
        pytest.skip(f"{command[0]} is not installed")
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
    with (folder / "said").open("w") as said:
        process = subprocess.Popen([program, *command[1:]], stdout=said, stderr=said, env=environment)
        try:
            deadline = time.monotonic() + 300
            while time.monotonic() < deadline:
                assert process.poll() is None, (folder / "said").read_text()
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=300)


@pytest.mark.parametrize("root", ["", "/translate"])
@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_all_is_there_behind_a_proxy(
    proxy: Callable[[Path, int, int, str], list[str]], root: str, tmp_path: Path, live_server: Any
) -> None:
    arguments = ["--behind-proxy", "--access-log", *(["--root-path", root] if root else [])]
    with live_server(tmp_path, *arguments) as server:
        port, backend = free_port(), int(server.url.rpartition(":")[2])
        with (
            proxied(proxy(tmp_path, port, backend, root), tmp_path, port) as url,
            httpx.Client(trust_env=False, timeout=300) as client,
        ):
            look(client, url + root)
            spoofed = {"x-forwarded-for": "192.0.2.7", "forwarded": "for=192.0.2.7"}
            assert client.get(f"{url}{root}/languages", headers=spoofed).status_code == 200
            assert client.get(f"{url}{root}/metrics").status_code == 403
        assert server.stop() == 0
        said = "".join(server.said)
    assert "GET /languages 200" in said
    assert "address 127.0.0.1" in said
    assert "192.0.2.7" not in said
    log = tmp_path / "dragoman.log"
    assert "secret" not in said + (log.read_text() if log.exists() else "")


def test_the_docs_show_the_file_that_is_tested() -> None:
    text = (DEPLOY.parent / "docs" / "serving.md").read_text(encoding="utf-8")
    shown = text.split("What nginx needs to be told:")[1].split("Under a path of a site")[0]
    lines = [line.strip() for line in (DEPLOY / "nginx.conf").read_text(encoding="utf-8").splitlines()]
    assert shown.count("proxy_set_header") == 4
    assert [line.strip() for line in shown.splitlines() if line.strip() not in ["", *lines]] == []


def look(client: httpx.Client, home: str) -> None:
    """Ask for the page, translations, events, a document."""
    page = client.get(f"{home}/", follow_redirects=True)
    assert page.status_code == 200
    assert client.get(f"{home}/page/style.css").status_code == 200
    asked = {"q": "secret", "api_key": "secret", **PAIR}
    assert client.post(f"{home}/translate", params=asked).status_code == 200
    text = "\n".join([f"{TEXT} {row}." for row in range(120)])
    with client.stream("POST", f"{home}/v1/translate/stream", json={"text": text, **PAIR}) as answer:
        chunks = list(answer.iter_raw())
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert len(chunks) > 3
    assert b"".join(chunks).decode().rstrip().endswith("event: done\ndata: {}")
    form: Any = {"data": PAIR, "files": {"file": ("a.txt", (TEXT + "\n").encode() * 20)}}
    link = client.post(f"{home}/translate_file", **form).json()["translatedFileUrl"]
    assert link.startswith(f"{home}/download_file/")
    assert len(client.get(link).text.splitlines()) == 20
    large: Any = {"data": PAIR, "files": {"file": ("a.txt", b"a" * (13 * 2**20))}}
    assert client.post(f"{home}/v1/documents", **large).status_code == 413
