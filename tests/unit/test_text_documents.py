"""Plain text: shares that leave nothing out and have nothing twice."""

import contextlib
import gzip
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.corpora import embedded
from dragoman.errors import DragomanError, Error
from dragoman.text.plain_sources import EmbeddedTextSource, TextSource
from dragoman.text.sources.base import files_of, fingerprint

VERSE = "Wer reitet so spät\r\n\r\ndurch Nacht\u2028und Wind"


@pytest.fixture
def verse(tmp_path: Path) -> str:
    path = tmp_path / "verse.txt.gz"
    path.write_bytes(gzip.compress(VERSE.encode()))
    return str(path)


def test_the_whole_text(verse: str) -> None:
    source = TextSource(path=verse)
    assert source.text() == "Wer reitet so spät\n\ndurch Nacht\u2028und Wind\n"
    assert files_of(source) == [Path(verse)]
    assert fingerprint(source) != fingerprint(TextSource(path=verse, end=0.5))


def test_shares_of_characters_and_of_lines(verse: str) -> None:
    whole = TextSource(path=verse).text()  # 41 characters in 3 lines
    assert len(whole) == 41
    assert TextSource(path=verse, end=0.5).text() == whole[:20]
    assert TextSource(path=verse, start=0.9).text() == whole[36:]
    assert TextSource(path=verse, end=0.4, unit="lines").text() == "Wer reitet so spät\n"
    assert TextSource(path=verse, start=0.4, unit="lines").text() == "\ndurch Nacht\u2028und Wind\n"


@settings(max_examples=60)
@given(
    lines=st.lists(st.text("añ語😀 ", max_size=9), min_size=1, max_size=30),
    cuts=st.lists(st.floats(0, 1), min_size=1, max_size=4),
    unit=st.sampled_from(["characters", "lines"]),
)
def test_shares_make_the_whole(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], cuts: list[float], unit: str
) -> None:
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    edges = [0.0, *sorted(set(cuts) - {0.0, 1.0}), 1.0]
    parts = []
    for start, end in itertools.pairwise(edges):
        with contextlib.suppress(DragomanError):  # a share may be too small to hold anything
            parts.append(parse(TextSource, {"path": str(path), "start": start, "end": end, "unit": unit}).text())
    assert "".join(parts) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"start": 0.5, "end": 0.5}, (Error.WRONG_SETTING,)),
        ({"end": 1.1}, (Error.WRONG_SETTING, "end")),
        ({"start": -0.1}, (Error.WRONG_SETTING,)),
        ({"start": float("nan")}, (Error.WRONG_SETTING,)),
        ({"unit": "words"}, (Error.WRONG_SETTING, "unit")),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], error: tuple[Any, ...]) -> None:
    with raises_error(*error):
        parse(TextSource, {"path": "x", **changes})


def test_an_empty_share_is_refused(verse: str) -> None:
    with raises_error(Error.EMPTY, "verse.txt.gz"):
        TextSource(path=verse, end=0.3, unit="lines").text()


@pytest.mark.parametrize(("side", "place"), [("src", 0), ("tgt", 1)])
def test_embedded_text_is_one_side_a_sentence_a_line(side: str, place: int) -> None:
    source = parse(EmbeddedTextSource, {"pair": "zh-en", "side": side, "split": "train", "size": 25, "seed": 4})
    expected = [pair[place] for pair in embedded.sentences("zh-en", "train", 25, 4)]
    assert source.text() == "".join(f"{line}\n" for line in expected)
    assert files_of(source) == []
    with raises_error(Error.WRONG_SETTING):
        parse(EmbeddedTextSource, {"pair": "de-zh", "split": "train"})
