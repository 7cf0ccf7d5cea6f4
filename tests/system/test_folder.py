"""The script of a company's first day in small: packages are copied, a run is trained on them, a server answers."""

import json
import subprocess
import sys
from pathlib import Path

from tests.unit.test_assembly import catalogue

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "folder.py"


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], check=True, capture_output=True, text=True)


def test_a_folder_of_packages_becomes_a_server_that_answers(tmp_path: Path) -> None:
    for package, numbers in {"git": range(300), "inkscape": range(300, 600), "gcc-12-locales": range(9)}.items():
        file = tmp_path / "files" / package / "fr.po"
        file.parent.mkdir(parents=True)
        file.write_text(catalogue(numbers), encoding="utf-8")
    copied = script("folder", str(tmp_path / "files"), str(tmp_path / "folder"))
    assert "has no vlc-l10n" in copied.stderr
    assert sorted(folder.name for folder in (tmp_path / "folder").iterdir()) == ["git", "inkscape"]
    trained = script("train", str(tmp_path / "folder"), str(tmp_path / "run"), "--minutes", "1.25")
    result = json.loads(trained.stdout.splitlines()[-1])
    assert result["trained_s"] + result["served_s"] <= result["all_s"] + 1
    assert result["translation"]
