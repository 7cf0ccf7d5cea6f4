"""What systems do that most tests never see: public reports of other tools, rebuilt as small inputs."""

import errno
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.cli import main as cli
from dragoman.data import encode as encoding
from dragoman.data.encode import CHUNKS_ALONE, Encoder
from dragoman.errors import Error
from dragoman.runs import atomic_io
from dragoman.tasks.kept_corpus import kept
from dragoman.text.corpus import Pair
from dragoman.text.lines import find, read_lines
from dragoman.text.sources.records import Corpus
from dragoman.text.tokenizers.pair import save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig


def test_a_directory_that_a_containers_overlay_does_not_rename_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """moby 25409, conda 6711: EXDEV for what came with an image; a training that went on there ended so."""

    def rename(path: Path, to: Path) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link", str(path))

    (tmp_path / "step").mkdir()
    (tmp_path / "step" / "model").touch()
    monkeypatch.setattr(atomic_io, "rename", rename)
    atomic_io.drop(tmp_path / "step")
    assert not list(tmp_path.iterdir())


def test_a_file_that_a_virus_scanner_reads_is_renamed_a_moment_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hermes-webui 5196: os.replace with WinError 5."""
    replace, refusals = Path.replace, [2]

    def replaced(path: Path, to: Path) -> Path:
        refusals[0] -= 1
        if refusals[0] >= 0:
            raise PermissionError(errno.EACCES, "Access is denied", str(path))
        return replace(path, to)

    monkeypatch.setattr(Path, "replace", replaced)
    monkeypatch.setattr(atomic_io, "fcntl", None)
    monkeypatch.setattr(atomic_io.time, "sleep", lambda seconds: None)
    atomic_io.replace_text(tmp_path / "state.json", "{}\n")
    assert (tmp_path / "state.json").read_bytes() == b"{}\n"
    refusals[0] = 9
    with pytest.raises(PermissionError):
        atomic_io.replace_text(tmp_path / "state.json", "[]\n")


@pytest.mark.parametrize("form", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_a_recipe_that_powershell_wrote_is_read(tmp_path: Path, form: str) -> None:
    """pre-commit 2094: `>` of Windows PowerShell writes UTF-16."""
    text = "run_dir: läuf\r\nseed: 2\r\n"
    start = b"\xff\xfe" if form == "utf-16-le" else b""
    (tmp_path / "r.yaml").write_bytes(start + text.encode(form))
    assert atomic_io.read_yaml(tmp_path / "r.yaml") == {"run_dir": "läuf", "seed": 2}
    (tmp_path / "r.yaml").write_bytes("run_dir: läuf".encode("cp1252"))
    with raises_error(Error.NOT_UTF8, "save it in UTF-8"):
        atomic_io.read_yaml(tmp_path / "r.yaml")


def test_paths_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mljar-supervised 541: settings of Windows on Linux."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data/train.de").write_text("ein\n")
    with raises_error(Error.MISSING_FILE, "did you mean data/train.de"):
        find(r"data\train.de")
    Path("r.yaml").write_text('src: "C:\\data\\train.de"\n')
    with raises_error(Error.BAD_SYNTAX, "single quotes"):
        atomic_io.read_yaml("r.yaml")


@pytest.mark.parametrize("folder", ["", "für alle"])
def test_a_name_in_the_other_form_of_unicode_is_the_same_name(tmp_path: Path, folder: str) -> None:
    """renpy 2327, alfred-python 4: macOS writes names apart, recipes have them composed; on Linux they differ.

    A folder in one form may hold a file in the other.
    """
    place = tmp_path / unicodedata.normalize("NFC", folder)
    place.mkdir(exist_ok=True)
    for disk, asked in (("NFD", "NFC"), ("NFC", "NFD")):
        name = f"Müller-{disk}.de"
        (place / unicodedata.normalize(disk, name)).write_text("ein\n")
        if (place / unicodedata.normalize(asked, name)).exists():
            pytest.skip("this file system does not tell them apart")
        assert list(read_lines(find(place / unicodedata.normalize(asked, name)))) == ["ein"]


@pytest.mark.parametrize("module", ["_bz2", "_lzma", "_sqlite3"])
@pytest.mark.system
def test_a_python_without_some_of_its_modules_says_so(module: str, tmp_path: Path) -> None:
    """pytorch/vision 2921, yolov5 1298: a Python that was built where headers were missing."""
    code = (  # some systems have Python load them as it starts
        f"import sys; sys.modules.pop({module[1:]!r}, None); sys.modules[{module!r}] = None\n"
        "sys.argv = ['dragoman', 'serve', '.']\n"
        "from dragoman.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]  # matplotlib may say where it keeps its fonts
    assert last.startswith(f"dragoman: this Python was built without {module[1:]}: "), done.stderr


def test_a_system_without_a_temporary_folder_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """capreolus 154, python-for-android 289: said of standard output before, as the error names no file."""
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(cli, "app", lambda **keywords: tempfile.gettempdir())
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("dragoman: TMPDIR: No usable temporary directory found in ")


def test_a_test_set_called_train_does_not_take_the_place_of_the_training_text(tmp_path: Path) -> None:
    """Names become names of files, which are one where case is nothing (picsim 4, Vulkan-Samples 621)."""
    pairs: dict[str, Any] = {name: [(name, name.upper())] for name in ("train", "Train", "a/b", "a_b", "aux", "a: b")}
    corpus = Corpus(train=[("eins", "one")], valid=[("zwei", "two")], test=pairs)
    made = kept(corpus, "translation", ("de", "en"), tmp_path)
    assert list(read_lines(made["train"]["src"])) == ["eins"]
    for name, source in made["test"].items():
        assert (list(read_lines(source["src"])), list(read_lines(source["tgt"]))) == ([name], [name.upper()])
    files = [path.name.casefold() for path in (tmp_path / "corpus").iterdir()]
    assert len(set(files)) == len(files) == 16
    assert not [name for name in files if ":" in name or name.startswith("aux.")]


def test_a_corpus_is_encoded_where_processes_have_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pandarallel 128, PyGithub 2430: AWS Lambda has no /dev/shm, "[Errno 38] Function not implemented"."""

    def refuse(*arguments: object, **keywords: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(encoding, "ProcessPoolExecutor", refuse)
    monkeypatch.setattr(encoding, "CHUNK_PAIRS", 2)
    tokenizers = train_tokenizers(WordsConfig(), lambda: iter(["ein Hund"]), lambda: iter(["a dog"]))
    save_tokenizers(tokenizers, tmp_path)
    encoder = Encoder(tokenizers, "nfc", 50, ("de", "en"))
    pairs = [Pair(line, "ein Hund", "a dog") for line in range(2 * CHUNKS_ALONE + 3)]
    chunks = encoding.encode(iter(pairs), encoder, tmp_path, workers=2)
    assert [line for chunk in chunks for line in chunk.lines] == list(range(len(pairs)))
