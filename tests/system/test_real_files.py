"""The benchmark of real files, on the samples of the repository."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_samples_keep_all_but_their_texts(tmp_path: Path) -> None:
    for folder in ("formats", "documents"):
        for path in (ROOT / "tests" / "fixtures" / folder).iterdir():
            if ".reversed" not in path.name:
                shutil.copy(path, tmp_path)
    command = [sys.executable, "benchmarks/real_files.py", "check", str(tmp_path), "--most", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("|").split("|") for line in done.stdout.splitlines() if re.match(r"\| [a-z]+ \| \d", line)]
    assert len(rows) > 25
    assert all(int(files) > 0 and refused == " 0 " for _, files, refused, *_ in rows), done.stdout


def test_what_is_lost_is_told(tmp_path: Path) -> None:
    """The comparison is none of a file with itself: words that a format would lose are faults."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import real_file_readers
        import real_files
    finally:
        sys.path.pop(0)
    source = real_file_readers.READERS["html"][1](b"<p>One <b>two</b> three")
    for after, fault in (
        ("Bar <b>three</b> two", ""),
        ("Bar <b>three</b>", "other words"),
        ("Bar three two", "built otherwise"),
        ("Bar <b>threetwo</b>", "other words"),
    ):
        faults = list(real_files.faults_of(source, real_file_readers.READERS["html"][1](f"<p>{after}".encode())))
        assert bool(faults) == bool(fault), after
        assert not fault or any(one.startswith(fault) for one in faults)
    assert real_files.still_there("One three", "Bar three", {"One"}) == {"three": 1}
    assert not real_files.still_there("One three", "Bar three", {"three"})
