"""LibreOffice's help as a corpus: paragraphs of equal page and id, once each, their markup shortened."""

import gzip
from pathlib import Path

from tests.errors import raises_error
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.corpora.libreoffice_help import paragraphs, write
from dragoman.errors import Error

PAGE = """<!DOCTYPE html><html><head><title>no</title><script>var a = "<p id=x>no</p>";</script></head><body>
<p>no id</p>
<h1 id="h1" dir="auto"><a name="anchor"></a>{title}</h1>
<p id="p1" class="paragraph"><span class="avis">{first} </span><br>&amp; <span class="switchinline">
<span hidden="true" class="MAC"><span class="emph">Command</span></span>
<span class="WIN"><span class="emph">Ctrl</span></span></span>+C</p>
<p id="same">LibreOffice</p>
<p id="p1">a second one of this id</p>
<p id="img"><img src="a.png" alt="x"> {third}</p>
</body></html>
"""


def folder(tmp_path: Path, pages: int = 60) -> Path:
    for language, texts in {"en-US": ("Title", "First", "third"), "de": ("Titel", "Erstes", "drittes")}.items():
        for number in range(pages):
            path = tmp_path / f"usr/share/libreoffice/help/{language}/text/shared/{number:02}/page.html"
            path.parent.mkdir(parents=True)
            title, first, third = texts
            path.write_text(
                PAGE.format(title=f"{title} {number}", first=f"{first} {number}", third=third), encoding="utf-8"
            )
    return tmp_path


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def test_paragraphs_of_a_page() -> None:
    found = dict(paragraphs(PAGE.format(title="Title", first="First", third="third")))
    assert list(found) == ["h1", "p1", "same", "img"]
    assert found["h1"].text == found["h1"].markup == "Title"
    assert found["p1"].text == "First & Ctrl+C"
    assert found["p1"].markup == '<span class="avis">First </span>&amp; <span class="emph">Ctrl</span>+C'
    assert found["img"].markup == "<img/> third"


def test_a_corpus_in_three_splits_by_page(tmp_path: Path) -> None:
    source, out = folder(tmp_path / "help"), tmp_path / "out"
    counts = write(source, "en-US", "de", out)
    assert sum(counts.values()) == 60 * 2 + 1  # the picture's text is the same on every page: once
    assert counts["train"] > 80
    splits: dict[str, set[str]] = {}
    for split, count in counts.items():
        sides = [lines(out / f"{split}.{name}.gz") for name in ("en", "de", "markup.en", "markup.de", "ids")]
        assert {len(side) for side in sides} == {count}
        assert all(src != tgt for src, tgt in zip(sides[0], sides[1], strict=True))
        splits[split] = {name.partition("\t")[0] for name in sides[4]}
    assert not splits["train"] & (splits["valid"] | splits["test"])
    again = {path.name: path.read_bytes() for path in out.iterdir()}
    write(source, "en-US", "de", out)
    assert again == {path.name: path.read_bytes() for path in out.iterdir()}


def test_the_command(tmp_path: Path) -> None:
    source = folder(tmp_path / "help", pages=12)
    arguments = ["data", "libreoffice-help", "--from", str(source), "--tgt", "de", "--to", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "train.en.gz, .de.gz:" in result.stdout
    with raises_error(Error.MISSING_FILE, "help"):
        write(source, "en-US", "eu", tmp_path / "out")
