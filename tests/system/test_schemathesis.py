"""Every API as its description has it, by Schemathesis: whatever is sent, no mistake of ours, and answers of the kinds
that are described."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance",
)  # fmt: skip


@pytest.mark.skipif(importlib.util.find_spec("schemathesis") is None, reason="schemathesis is not installed")
@pytest.mark.parametrize(
    ("phases", "options"),
    [
        pytest.param("examples,coverage", ["--max-time", "20", "--max-examples", "5"], id="short"),
        pytest.param("examples,coverage,fuzzing,stateful", ["--max-time", "120"], id="long", marks=pytest.mark.slow),
    ],
)
def test_answers_are_those_that_are_described(
    phases: str, options: list[str], tmp_path: Path, live_server: Any
) -> None:
    """A server that is busy answers 429, one that cannot 504: they are described; other statuses of 500 and more are
    mistakes."""
    with live_server(tmp_path, runs=(FIXTURE,)) as server:
        command = [
            sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/spec", "--phases", phases, *options,
            "--checks", ",".join(CHECKS), "--no-color", "--generation-database", "none", "--request-timeout", "60",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert " passed" in done.stdout
        assert server.get("/health").json() == {"status": "ok"}
