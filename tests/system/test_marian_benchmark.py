"""`benchmarks/marian.py` in small: CTranslate2 and PyTorch always, Marian where it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.test_export_argos import LINES, run  # noqa: F401

from dragoman.export import marian

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "marian.py"
pytestmark = pytest.mark.system


def script(*arguments: str | Path) -> str:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "sources"
    path.write_text("".join(f"{line}\n" for line in LINES[:12]), encoding="utf-8")
    return path


def test_translations_are_counted_where_a_target_holds_the_model(run: Path, lines: Path) -> None:  # noqa: F811
    rows = script(run, lines, "--ref", lines).splitlines()
    assert rows[2].startswith("| ctranslate2 | 1 | float32 | 12 of 12 | ")
    marians = [row for row in rows if row.startswith("| marian |")]
    assert len(marians) == 2
    assert all("of 12" in row if os.environ.get(marian.PYTHON) else "pymarian" in row for row in marians)
    assert [row for row in rows if row.startswith("| bergamot |") and "cannot be exported" in row]
