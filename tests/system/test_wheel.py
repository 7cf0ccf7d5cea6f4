"""The wheel and the source archive, as they are given away: in an empty environment, in an empty folder."""

import json
import os
import re
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.system, pytest.mark.slow]


def environment(folder: Path, *packages: str) -> Path:
    """The `bin` of a new environment with packages."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [folder / "bin/python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", *packages]
    subprocess.run(install, check=True)
    return folder / "bin"


@pytest.mark.timeout(7200)
def test_the_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "clone")], check=True)
    tools = environment(tmp_path / "tools", "build")
    subprocess.run([tools / "python", "-m", "build", "--outdir", tmp_path / "dist", tmp_path / "clone"], check=True)
    [wheel], [archive] = tmp_path.glob("dist/*.whl"), list(tmp_path.glob("dist/*.tar.gz"))
    listed = subprocess.run(["git", "ls-files"], cwd=tmp_path / "clone", capture_output=True, text=True, check=True)
    with tarfile.open(archive) as tar:  # the wheel is built from it; `make demo` and `make test` work in it
        assert set(listed.stdout.splitlines()) <= {name.partition("/")[2] for name in tar.getnames()}
    commands = environment(tmp_path / "empty", f"{wheel}[serve]")
    work = tmp_path / "work"
    work.mkdir()
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DRAGOMAN_DATA")}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [commands / "dragoman", *arguments], cwd=work, env=clean, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert float(re.findall(r"BLEU ([\d.]+)", run("demo"))[-1]) > 90
    assert "exercises" in run("learn")
    run("explain", "runs/demo", "ich möchte ein bier", "-o", "beer.html")
    assert (work / "beer.html").stat().st_size > 10_000
    assert "good" in run("check", "recipes/demo.yaml")
    with subprocess.Popen(
        [commands / "dragoman", "serve", "runs/demo", "--port", "0"],
        cwd=work,
        env=clean,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        try:
            address = next(match[0] for line in server.stderr if (match := re.search(r"http://localhost:\d+", line)))
            while True:  # the address is told before the models are loaded
                try:
                    urllib.request.urlopen(f"{address}/ready", timeout=60).close()
                    break
                except urllib.error.HTTPError as error:
                    if error.code != 503:
                        raise
                time.sleep(0.2)
            body = json.dumps({"q": "ich möchte ein bier", "source": "de", "target": "en"}).encode()
            request = urllib.request.Request(f"{address}/translate", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=300) as answer:
                assert json.load(answer)["translatedText"]
        finally:
            server.terminate()
