"""The counter of words that a reader stumbles over (`tests/plain_words.py`)."""

from pathlib import Path

import pytest
from tests import plain_words as words

SOURCE = '''
"""That of those of one that is here."""
said = 1


def found(told: int) -> int:
    """The sum of two numbers."""
    asked = [wanted := told]
    asked = asked[:]
    return asked[0]


class Text:
    """A text."""

    def __init__(self, given: str) -> None:
        self.found = given
'''


def test_names_and_docstrings_are_counted_with_their_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "module.py"
    file.write_text(SOURCE, encoding="utf-8")
    assert words.main([str(file), "--list"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.removeprefix(f"{file}:") for line in lines[:-1]] == [
        "3: said", "6: found", "6: told", "8: asked", "8: wanted", "17: found",
        "2: That of those of one that is here.",
    ]  # fmt: skip
    assert lines[-1].startswith("6 names")


def test_a_text_without_them_is_good(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('"""The rows of a table."""\nrows = 1\n', encoding="utf-8")
    assert words.main([str(file)]) == 0
