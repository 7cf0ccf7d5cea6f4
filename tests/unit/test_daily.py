"""Small things of every day: the file an error names, output in an old encoding, the way of a model not read here."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.importing.import_run import import_model
from dragoman.languages import identification
from dragoman.runs import atomic_io


def test_an_error_names_the_file_that_was_meant(tmp_path: Path) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with pytest.raises(OSError, match="No space") as caught, atomic_io.replaced(tmp_path / "page.html") as partial:
        full(partial)
    assert caught.value.filename == str(tmp_path / "page.html")


def test_a_full_folder_for_temporary_files_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(identification.LanguageIdentifier, "from_model_file", full)
    with raises_error(Error.CANNOT_WRITE, tempfile.gettempdir(), "TMPDIR"):
        identification._identifier.__wrapped__(())


@pytest.mark.system
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "ascii"])
@pytest.mark.parametrize("command", [["--help"], ["settings"], ["learn"], ["train", "--help"]], ids=" ".join)
def test_commands_print_in_encodings_without_our_letters(encoding: str, command: list[str], tmp_path: Path) -> None:
    """Aider#4582, cookietemple#470, Web2Executable#184: tracebacks of `--help` where the console has few letters."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, "-m", "dragoman", *command]
    done = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr[-500:]
    # click takes ascii for a console that nobody has set up, and writes UTF-8 there
    assert done.stdout.decode("utf-8" if encoding == "ascii" else encoding)


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (["best.npz", "vocab.spm"], "ct2-marian-converter"),
        (["model_step_9000.pt"], "ct2-opennmt-py-converter"),
        (["checkpoint_best.pt", "dict.de.txt", "dict.en.txt"], "ct2-fairseq-converter"),
    ],
)
def test_a_model_that_is_not_read_here_is_shown_its_way(tmp_path: Path, files: list[str], command: str) -> None:
    for name in files:
        (tmp_path / name).write_bytes(b"")
    folder = [] if files[0].endswith(".npz") else [tmp_path]  # an .npz is looked into
    for given in (*folder, tmp_path / files[0]):
        with raises_error(Error.CANNOT_IMPORT, command, files[0], "--output_dir"):
            import_model(given, tmp_path / "run", "de", "en")
    (tmp_path / "other").mkdir()
    with raises_error(Error.CANNOT_IMPORT) as caught:
        import_model(tmp_path / "other", tmp_path / "run", "de", "en")
    assert "ct2-" not in str(caught.value)
