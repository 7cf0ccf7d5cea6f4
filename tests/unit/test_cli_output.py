"""Where the command line writes: files that appear whole, pipes and devices that stay what they are."""

import os
import threading
from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman.cli import main
from dragoman.cli.streams import text_output
from dragoman.errors import Error
from dragoman.text.lines import read_lines


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with text_output(path) as write:
        write("ä\n")
        assert not path.exists()
    assert path.read_bytes() == "ä\n".encode()
    assert [found.name for found in tmp_path.iterdir()] == ["out.txt"]


def test_what_was_written_before_a_mistake_is_kept_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, kept = tmp_path / "out.txt", tmp_path / "out.txt.partial"

    def write_one_line(path: Path) -> None:
        with text_output(path) as write:
            write("one\n")
            raise Error.EMPTY("line 2")

    with raises_error(Error.EMPTY):
        write_one_line(path)
    assert kept.read_text(encoding="utf-8") == "one\n"
    assert str(kept) in capsys.readouterr().err
    with text_output(path) as write:
        write("one\ntwo\n")
    assert [found.name for found in tmp_path.iterdir()] == ["out.txt"]
    with raises_error(Error.EMPTY), text_output(tmp_path / "none.txt"):
        raise Error.EMPTY("line 1")
    assert [found.name for found in tmp_path.iterdir()] == ["out.txt"]


def test_a_file_called_gz_is_one(tmp_path: Path) -> None:
    path = tmp_path / "out.txt.gz"
    with text_output(path) as write:
        write("ä\n")
    first = path.read_bytes()
    assert list(read_lines(path)) == ["ä"]
    with text_output(path) as write:
        write("ä\n")
    assert path.read_bytes() == first
    with raises_error(Error.EMPTY), text_output(path):
        raise Error.EMPTY("line 1")
    assert [found.name for found in tmp_path.iterdir()] == ["out.txt.gz"]


def test_a_link_stays_one_and_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old\n", encoding="utf-8")
    target.chmod(0o640)
    link.symlink_to(target)
    with text_output(link) as write:
        write("new\n")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new\n"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text(encoding="utf-8")))
    reader.start()
    with text_output(path) as write:
        write("one\ntwo\n")
    reader.join(timeout=300)
    assert read == ["one\ntwo\n"]
    assert path.is_fifo()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with raises_error(Error.CANNOT_WRITE), text_output(tmp_path) as write:
        write("x")


def test_errors_name_options_as_people_type_them() -> None:
    text = "`src` needs a `ref`; `training_text`, `nothing`"
    named = main.with_flags(text, main.load("evaluate"))
    assert named == "--src needs a --ref; --training-text, `nothing`"
    assert main.with_flags("`beam_size`", main.load("inspect")) == "--beam-size"  # of one of its commands
