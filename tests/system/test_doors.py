"""The same answer at every door: lines, files and bulk of the command, Python, LibreTranslate's, DeepL's, and /v1."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

import dragoman
from dragoman.cli.main import app
from dragoman.pipeline.memory import TranslationMemory

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
LANGUAGES = {"source": "en", "target": "de"}
TEXTS = [
    "a man wants a red old king",
    "A man wants a red old king.",
    "THE OLD KING SEES A DOG",
    "THE KING SEES {name} HERE!",
    "NASA",
    "the king sees a dog. a man wants a fish.",
    "The king sees a dog. A man wants a fish. The dog hears a man!",
    "Dr. King sees a dog at 3 p.m. today.",
    "Who sees the dog?  The king sees it.",
    "",
    "   ",
    "\t",
    "the {name} sees a dog",
    "Hello {{person.name}}, the king sees {{person.city}} here",
    "Hello %1$s, the king sees a dog!",
    "<b>the king</b> sees a dog",
    "{count, plural, one {a dog} other {old dogs}}",
    "https://example.org/a?b=1",
    "the king sees https://example.org/a?b=1 here",
    "write to king@example.org today",
    "der alte mann sieht den hund",
    "两个人在街上走路，旁边有一条狗。",
    '"the king," a man hears, "sees a dog"',
    "the king sees a dog 😀 here",
    "😀",
    "  the king sees a dog",
    "the king sees a dog   ",
    "a dog\ta king\ta fish",
    "123",
    "12 dogs, 7 kings and 1,500 fish",
    "--help",
    "a small fish",
    "xylophone quark zeitgeist",
    "What It Is: the king wants a small dog to hear a fish today.",
    "the red old small king here sees a dog today " * 40,
    "The king sees a dog. " * 50,
    "the old king\u00a0sees a dog",
    "the king ... sees a dog!!!! a fish",
    "the king sees 2.3.1 of ABC-123 😀 here",
]
"""Of kinds that other tools answer differently at different doors, reported in public, are: capitals, several
sentences, placeholders, a colon, white space and line ends."""
LINES_OF_SEVERAL = ["the king sees a dog.\nA man wants a fish.\n", "Thank you!!!!\n\n", "\n a dog \r\n\r\na fish"]
"""Texts of several lines, which no line of a file can be."""
TERMS = {"dog": "könig", "old king": "alter mann"}
OF_TERMS = [
    "the dog sees a fish",
    "Old King",
    "dog",
    "a man sees the old king. The dog hears a man.",
    "THE OLD KING SEES A DOG",
]
MEMORY = {
    "the king sees 3 dogs": "der könig sieht 3 hunde",
    "A dog. A fish.": "hund und fisch",
    "a man wants the king": "x",
}
OF_MEMORY = [
    "the king sees 3 dogs",
    "the king sees 12 dogs",
    "A dog. A fish.",
    "a man wants the kings",
    "A fish. A dog.",
]


class Answer(NamedTuple):
    """A translation at a door: its text, its score and the kinds of its warnings where the door has them."""

    text: str
    score: float | None = None
    kinds: tuple[str, ...] | None = None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, live_server: Any) -> Iterator[Any]:
    with live_server(tmp_path_factory.mktemp("served"), "--deadline", "120") as running:
        yield running


@pytest.fixture(scope="module")
def translator() -> dragoman.Translator:
    return dragoman.load(FIXTURE, device="cpu")


def of_python(translator: dragoman.Translator, texts: list[str], prefixes: list[str] | None = None) -> list[Answer]:
    found = [items[0] for items in translator.n_best(texts, prefixes)]
    if prefixes is None:
        assert translator.translate(texts) == [item.text for item in found]
    return [Answer(item.text, item.score, tuple(one.kind.value for one in item.warnings)) for item in found]


def command(*arguments: str, run: Path = FIXTURE) -> None:
    done = CliRunner().invoke(app, ["translate", str(run), "--device", "cpu", *arguments])
    assert done.exit_code == 0, (done.output, done.exception)


def of_json(text: str) -> list[Answer]:
    items = [json.loads(line)["translations"][0] for line in text.splitlines()]
    return [Answer(one["text"], one["score"], tuple(warning["kind"] for warning in one["warnings"])) for one in items]


def of_command(texts: list[str], folder: Path, *options: str, run: Path = FIXTURE) -> dict[str, list[Answer]]:
    """The answers to lines, as text and as JSON, of a file, and of bulk."""
    source = folder / "texts.txt"
    source.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8", newline="\n")
    lines, as_json, file, bulk = (folder / name for name in ("lines", "json", "file.txt", "bulk"))
    command("-i", str(source), "-o", str(lines), *options, run=run)
    command("-i", str(source), "-o", str(as_json), "--json", *options, run=run)
    command(str(source), "-o", str(file), *options, run=run)
    command(str(source), "--bulk", "-o", str(bulk), "--json", *options, run=run)
    read = lambda path: path.read_bytes().decode().split("\n")[:-1]  # noqa: E731
    return {
        "lines": list(map(Answer, read(lines))),
        "json": of_json(as_json.read_text(encoding="utf-8")),
        "file": list(map(Answer, read(file))),
        "bulk": of_json((bulk / "texts.txt").read_text(encoding="utf-8")),
    }


def of_v1(server: Any, texts: list[str], **options: Any) -> list[Answer]:
    asked = {**LANGUAGES, "text": texts, "warnings": True, **options}
    found = server.post("/v1/translate", json=asked).json()["translations"]
    return [
        Answer(one["text"], one["score"], tuple(item["kind"] for item in [*one["notes"], *one["warnings"]]))
        for one in found
    ]


def of_deepl(server: Any, texts: list[str], **options: Any) -> list[Answer]:
    asked = {"text": texts, "source_lang": "EN", "target_lang": "DE", **options}
    return [Answer(one["text"]) for one in server.post("/v2/translate", json=asked).json()["translations"]]


def of_libretranslate(server: Any, texts: list[str]) -> list[Answer]:
    found = server.post("/translate", json={**LANGUAGES, "q": texts}).json()
    return list(map(Answer, found["translatedText"]))


def assert_equal(texts: list[str], expected: list[Answer], doors: dict[str, list[Answer]]) -> None:
    """Every door has the texts that are expected, and the scores and kinds of warnings where it has these."""
    for door, answers in doors.items():
        for text, one, other in zip(texts, expected, answers, strict=True):
            where = door, text[:60]
            assert other.text == one.text, where
            if other.score is not None:
                assert other.score == one.score, where
            if other.kinds is not None:
                assert sorted(set(other.kinds)) == sorted(set(one.kinds or ())), where


def test_texts_are_answered_alike(server: Any, translator: dragoman.Translator, tmp_path: Path) -> None:
    expected = of_python(translator, TEXTS)
    doors = of_command(TEXTS, tmp_path)
    doors |= {"v1": of_v1(server, TEXTS), "deepl": of_deepl(server, TEXTS)}
    doors |= {"libretranslate": of_libretranslate(server, TEXTS)}
    assert_equal(TEXTS, expected, doors)
    said = dict(zip(TEXTS, expected, strict=True))
    assert said["THE OLD KING SEES A DOG"].text.isupper()
    assert said["   "].text == "   "
    assert said["123"].text == "123"
    assert "{{person.name}}" in said["Hello {{person.name}}, the king sees {{person.city}} here"].text
    assert said["the king sees a dog   "].text.endswith("   ")
    assert all(code in said["the king sees 2.3.1 of ABC-123 😀 here"].text.split() for code in ("2.3.1", "ABC-123"))
    assert any(one.kinds for one in expected)


def test_texts_of_several_lines_are_answered_alike(server: Any, translator: dragoman.Translator) -> None:
    texts = LINES_OF_SEVERAL
    expected = of_python(translator, texts)
    doors = {"v1": of_v1(server, texts), "deepl": of_deepl(server, texts)}
    assert_equal(texts, expected, {**doors, "libretranslate": of_libretranslate(server, texts)})
    assert [one.text.count("\n") for one in expected] == [text.count("\n") for text in texts]


def test_terms_of_a_glossary_are_said_alike(server: Any, translator: dragoman.Translator, tmp_path: Path) -> None:
    terms = tmp_path / "terms.tsv"
    entries = "\n".join(f"{term}\t{target}" for term, target in TERMS.items())
    terms.write_text(entries + "\n", encoding="utf-8")
    expected = of_python(translator.with_terms(dragoman.Glossary(TERMS)), OF_TERMS)
    languages = {"source_lang": "en", "target_lang": "de"}
    glossary = {"name": "terms", **languages, "entries": entries, "entries_format": "tsv"}
    made = server.post("/v2/glossaries", json=glossary).json()
    doors = of_command(OF_TERMS, tmp_path, "--glossary", str(terms))
    doors |= {"v1": of_v1(server, OF_TERMS, glossary=TERMS)}
    doors |= {"deepl": of_deepl(server, OF_TERMS, glossary_id=made["glossary_id"])}
    assert_equal(OF_TERMS, expected, doors)
    assert [one.text for one in expected[1:3]] == ["alter mann", "könig"]


def test_beginnings_are_kept_alike(server: Any, translator: dragoman.Translator, tmp_path: Path) -> None:
    texts, prefix = ["a man wants a red old king", "THE KING SEES A DOG. A FISH."], "der könig"
    (tmp_path / "prefixes").write_text(f"{prefix}\n" * len(texts), encoding="utf-8")
    (tmp_path / "texts").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    out = tmp_path / "out"
    command("-i", str(tmp_path / "texts"), "--prefix", str(tmp_path / "prefixes"), "--json", "-o", str(out))
    doors = {"json": of_json(out.read_text(encoding="utf-8")), "v1": of_v1(server, texts, prefix=prefix)}
    expected = of_python(translator, texts, [prefix] * len(texts))
    assert_equal(texts, expected, doors)
    assert all(one.text.startswith(prefix) for one in expected)


def test_what_a_memory_has_is_said_alike(server: Any, translator: dragoman.Translator, tmp_path: Path) -> None:
    """The last test of the server: it remembers the corrections."""
    path = tmp_path / "memory.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in MEMORY.items()), encoding="utf-8")
    for src, tgt in MEMORY.items():
        kept = server.post("/v1/corrections", json={**LANGUAGES, "text": src, "translation": tgt})
        assert kept.json()["kept"] is True
    expected = of_python(translator.with_memory(TranslationMemory(list(MEMORY.items()))), OF_MEMORY)
    doors = of_command(OF_MEMORY, tmp_path, "--memory", str(path))
    doors |= {"v1": of_v1(server, OF_MEMORY), "deepl": of_deepl(server, OF_MEMORY)}
    assert_equal(OF_MEMORY, expected, {**doors, "libretranslate": of_libretranslate(server, OF_MEMORY)})
    assert [one.text for one in expected[:3]] == [
        "der könig sieht 3 hunde", "der könig sieht 12 hunde", "hund und fisch",
    ]  # fmt: skip
    assert expected[0].kinds == ("from-memory",)
