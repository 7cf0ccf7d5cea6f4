"""A run that has learnt tags, terms and matches answers alike at every door, with all of them at once."""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.test_doors import LANGUAGES, assert_equal, command, of_command, of_deepl, of_libretranslate, of_v1
from tests.system.test_doors import of_python as answers_of
from typer.testing import CliRunner

import dragoman
from dragoman.cli.main import app
from dragoman.formats.base import Options
from dragoman.formats.document import FORMATS, Document
from dragoman.pipeline.document import DocumentTranslator
from dragoman.pipeline.memory import TranslationMemory

RUN = Path(__file__).parents[1] / "fixtures" / "run_learnt" / "run"
TERMS = {"text": "Wortlaut", "old page": "alte Seite"}
MEMORY = {
    "close the window.": "das Fenster zu.",
    "open the page now.": "jetzt die Seite auf.",
    "save the old file now": "die alte Datei sichern",
}
TEXTS = [
    "open the file now.",
    "open the <b>file</b> now.",
    "print the <b>texts</b> now.",
    "<i>save</i> the text now.",
    "close the <b>window</b>.",
    "close the window.",
    "print %d the page now.",
    "open the file now. close the <b>text</b> now.",
    "print the <a href='x'>page</a> <br/>now.",
    "print the <b>old</b> page now.",
    "PRINT THE <b>TEXT</b> NOW.",
    "save {count, plural, one {the file} other {the <b>texts</b>}} now.",
    "open the ⟦1⟧ file⟦/1⟧ now.",
    "save https://example.org/text now.",
    "text",
    "",
    "%s",
]
PAGE = "".join(f"<p>{text.replace('⟦1⟧', '').replace('⟦/1⟧', '')}</p>\n" for text in TEXTS)
"""With tags of all lines; messages and placeholders are text in it."""


@pytest.fixture(scope="module")
def translator() -> dragoman.Translator:
    memory = TranslationMemory(list(MEMORY.items()), ("en", "de"))
    return dragoman.load(RUN, device="cpu").with_terms(dragoman.Glossary(TERMS)).with_memory(memory)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The options of the command that name the glossary and the memory."""
    folder = tmp_path_factory.mktemp("terms")
    for name, pairs in (("terms.tsv", TERMS), ("memory.tsv", MEMORY)):
        rows = "".join(f"{src}\t{tgt}\n" for src, tgt in pairs.items())
        (folder / name).write_text(rows, encoding="utf-8")
    return "--glossary", str(folder / "terms.tsv"), "--memory", str(folder / "memory.tsv")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, live_server: Any) -> Iterator[Any]:
    with live_server(tmp_path_factory.mktemp("served"), "--deadline", "120", runs=(RUN,)) as running:
        for src, tgt in MEMORY.items():
            kept = running.post("/v1/corrections", json={**LANGUAGES, "text": src, "translation": tgt})
            assert kept.json()["kept"] is True
        yield running


def page_of_python(translator: dragoman.Translator) -> str:
    page = Document(PAGE.encode(), FORMATS["html"], Options("x", ("en", "de")))
    return page.translated(DocumentTranslator(translator.pipeline)).decode()


def test_lines_are_answered_alike(
    server: Any, translator: dragoman.Translator, files: tuple[str, ...], tmp_path: Path
) -> None:
    expected = answers_of(translator, TEXTS)
    doors = of_command(TEXTS, tmp_path, *files, run=RUN)
    doors |= {"v1": of_v1(server, TEXTS, glossary=TERMS)}
    assert_equal(TEXTS, expected, doors)
    said = dict(zip(TEXTS, expected, strict=True))
    assert said["print the <b>texts</b> now."].text == "jetzt <b>den Wortlaut</b> drucken."
    assert said["close the window."].kinds == ("from-memory",)
    assert "like-memory" in (said["close the <b>window</b>."].kinds or ())
    assert "like-memory" in (said[TEXTS[11]].kinds or ())  # an arm of a message


def test_requests_of_other_apis_are_answered_alike(server: Any, translator: dragoman.Translator) -> None:
    glossary = {"name": "terms", "source_lang": "en", "target_lang": "de", "entries_format": "tsv",
                "entries": "\n".join(f"{term}\t{target}" for term, target in TERMS.items())}  # fmt: skip
    made = server.post("/v2/glossaries", json=glossary).json()
    doors = {"deepl": of_deepl(server, TEXTS, glossary_id=made["glossary_id"])}
    assert_equal(TEXTS, answers_of(translator, TEXTS), doors)
    plain = translator.with_terms(None)
    assert_equal(TEXTS, answers_of(plain, TEXTS), {"libretranslate": of_libretranslate(server, TEXTS)})


def test_documents_are_translated_alike(
    server: Any, translator: dragoman.Translator, files: tuple[str, ...], tmp_path: Path
) -> None:
    expected = page_of_python(translator)
    assert "<b>den Wortlaut</b>" in expected
    assert "das Fenster zu" in re.sub("</?b>", "", expected)
    (tmp_path / "a.html").write_text(PAGE, encoding="utf-8")
    command(str(tmp_path / "a.html"), "-o", str(tmp_path / "out.html"), *files, run=RUN)
    assert (tmp_path / "out.html").read_text(encoding="utf-8") == expected
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("one.html", "two.html"):  # the second one by what is remembered of the first
        (folder / name).write_text(PAGE, encoding="utf-8")
    done = CliRunner().invoke(
        app, ["translate", str(RUN), str(folder), "-o", f"{tmp_path / 'made'}/", "--device", "cpu", *files]
    )
    assert done.exit_code == 0, done.output
    made = sorted((tmp_path / "made").rglob("*.html"))
    assert [path.read_text(encoding="utf-8") for path in made] == [expected, expected]
    glossary = {"name": "terms", "source_lang": "en", "target_lang": "de", "entries_format": "tsv",
                "entries": "\n".join(f"{term}\t{target}" for term, target in TERMS.items())}  # fmt: skip
    number = server.post("/v2/glossaries", json=glossary).json()["glossary_id"]
    form = {"source_lang": "EN", "target_lang": "DE", "glossary_id": number}
    job = server.post("/v2/document", data=form, files={"file": ("a.html", PAGE.encode())}).json()
    key, place = {"document_key": job["document_key"]}, f"/v2/document/{job['document_id']}"
    deadline = time.monotonic() + 300
    while (state := server.post(place, json=key).json()["status"]) in ("queued", "translating"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert state == "done"
    assert server.post(f"{place}/result", json=key).content.decode() == expected
    asked = {**LANGUAGES, "text": [PAGE], "format": "html", "glossary": TERMS}
    text = server.post("/v1/translate", json=asked, timeout=300).json()["translations"][0]["text"]
    assert text == expected


def test_ctranslate2_reads_the_same_pieces(
    translator: dragoman.Translator, files: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("ctranslate2")
    greedy = translator.with_decoding(beam_size=1)
    expected = answers_of(greedy, TEXTS)
    run = tmp_path / "run"
    shutil.copytree(RUN, run)
    source = tmp_path / "texts"
    source.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    out = tmp_path / "out"
    command("-i", str(source), "-o", str(out), "--engine", "ctranslate2", "decoding.beam_size=1", *files, run=run)
    assert out.read_text(encoding="utf-8").split("\n")[:-1] == [one.text for one in expected]
