"""The messages of the page: every text in every language, the same placeholders, and files that Dragoman translates."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from starlette.requests import Request

from dragoman.cli.main import app
from dragoman.languages.plurals import plurals_of
from dragoman.quality.warnings import WarningKind
from dragoman.serve import messages, pages
from dragoman.serve.app import APIS
from dragoman.serve.messages import words
from dragoman.serve.openapi import openapi

RUN = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
MESSAGES = pages.FOLDER / "messages"
LOCALES = ("en", "de", "fr", "es", "zh", "ar")
OTHERS = {"htm-preact.js", "sw.js", "install.js"}
"""Scripts without texts."""
_STRING = r'"((?:[^"\\]|\\.)*)"'
_TEXT = re.compile(rf"\bt\(\s*{_STRING}")
_PLURAL = re.compile(rf'\bt\.n\((?:[^,"()]|\([^)]*\))+,\s*{_STRING},\s*{_STRING}')
_HEAD = re.compile(r"^\{(\w+), plural, (.*)\}$", re.DOTALL)
_ARM = re.compile(r"(\w+) \{((?:[^{}]|\{\w+\})*)\}")


def catalogue(locale: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((MESSAGES / f"{locale}.json").read_text("utf-8"))
    return found


def said() -> dict[str, str]:
    """The texts in the scripts, by their keys, as the English file has to have them."""
    texts = {text: text for text in (*in_pages(), *described())}
    for path in (*sorted(pages.FOLDER.glob("*.js")), Path(pages.__file__)):
        if path.name in OTHERS:
            continue
        script = path.read_text("utf-8")
        calls = len(re.findall(r"\bt(?:\.n)?\(", script))
        singles, plurals = list(_TEXT.finditer(script)), list(_PLURAL.finditer(script))
        assert len(singles) + len(plurals) == calls, f"{path.name}: a text that is no string"
        texts.update({json.loads(f'"{one[1]}"'): json.loads(f'"{one[1]}"') for one in singles})
        for one in plurals:
            single, several = (json.loads(f'"{text}"') for text in one.groups())
            arms = " ".join(
                f"{name} {{{text.replace('{n}', '#')}}}" for name, text in (("one", single), ("other", several))
            )
            texts[several] = f"{{n, plural, {arms}}}"
    return texts


def in_pages() -> Iterator[str]:
    """The texts in the HTML files, and those for codes."""
    for path in sorted(pages.FOLDER.glob("*.html")):
        yield from re.findall(r"\{\{(.*?)\}\}", path.read_text("utf-8"))
    for texts in words().values():
        yield from texts.values()


def described() -> Iterator[str]:
    """The texts in the description of the routes, but for names of APIs."""
    spec = openapi(APIS, "")
    yield spec["info"]["description"]
    yield "State"
    yield from (one["summary"] for item in spec["paths"].values() for one in item.values())

    def descriptions(part: object) -> Iterator[str]:
        if isinstance(part, dict):
            if isinstance(text := part.get("description"), str):
                yield text
            part = list(part.values())
        for one in part if isinstance(part, list) else ():
            yield from descriptions(one)

    yield from descriptions(spec["components"]["schemas"])


def arms_of(message: str) -> dict[str, str]:
    """The texts of a message by the form of its number; of one without a number its text."""
    head = _HEAD.match(message)
    return dict(_ARM.findall(head[2])) if head else {"": message}


def placeholders(message: str) -> Counter[str]:
    return Counter(re.findall(r"\{\w+\}", message))


def test_every_remark_and_every_refusal_has_words() -> None:
    assert list(words()["remarks"]) == list(WarningKind)
    assert all(HTTPStatus(int(status)) if status != "456" else True for status in words()["refusals"])
    assert set(LOCALES) == set(messages.LOCALES) == {path.stem for path in MESSAGES.glob("*.json")}


@pytest.mark.parametrize(
    ("query", "header", "locale"),
    [
        ("", "", "en"), ("", "*", "en"), ("", "pt-BR,de;q=0.4", "de"), ("", "en;q=0.3, fr ;q=0.8, ar;q=0", "fr"),
        ("?lang=ar", "de", "ar"), ("?lang=xx", "zh-Hant-TW", "zh"), ("", "de;q=x,,;q=1,es-419", "es"),
        ("", "ar;q=0", "en"), ("", ",".join(["xx"] * 500), "en"),
    ],
)  # fmt: skip
def test_a_page_of_the_server_is_in_the_language_of_its_reader(query: str, header: str, locale: str) -> None:
    scope = {"type": "http", "query_string": query[1:].encode(), "headers": [(b"accept-language", header.encode())]}
    assert messages.messages_for(Request(scope)).locale == locale


def test_the_english_file_holds_what_the_scripts_say() -> None:
    assert catalogue("en") == said()


@pytest.mark.parametrize("locale", LOCALES)
def test_every_file_has_every_text_with_its_placeholders(locale: str) -> None:
    english, here = catalogue("en"), catalogue(locale)
    assert list(here) == list(english)
    plurals = plurals_of(locale)
    assert plurals is not None
    for key, message in here.items():
        arms, expected = arms_of(message), arms_of(english[key])
        if "other" in expected:
            assert {*plurals.forms, "other"} <= set(arms), f"{key}: {set(arms)}"
            assert "#" in arms["other"], key
        for form, text in arms.items():
            assert placeholders(text) == placeholders(expected["other" if form else ""]), f"{key}: {text}"
            assert text.strip(), key
        assert "'" not in message or locale == "en", f"{key}: an apostrophe quotes in a message; ’ does not"
        assert locale == "en" or message != key or message.isascii(), key


@pytest.mark.parametrize("locale", LOCALES[1:])
def test_little_is_left_in_english(locale: str) -> None:
    english, here = catalogue("en"), catalogue(locale)
    same = [key for key in here if here[key] == english[key]]
    assert len(same) <= 6, same


def test_dragoman_translates_a_file_of_messages_and_keeps_what_is_no_text(tmp_path: Path) -> None:
    english = {key: message for key, message in catalogue("en").items() if "{" in message}
    assert len(english) > 40
    source, made_file = tmp_path / "en.json", tmp_path / "de.json"
    source.write_text(json.dumps(english, ensure_ascii=False, indent=2), encoding="utf-8")
    app(["translate", str(RUN), str(source), "-o", str(made_file), "--beam-size", "1", "--device", "cpu"],
        standalone_mode=False)  # fmt: skip
    made: dict[str, str] = json.loads(made_file.read_text("utf-8"))
    assert list(made) == list(english)
    for key, message in made.items():
        arms, before = arms_of(message), arms_of(english[key])
        assert arms.keys() == before.keys(), message
        for form, text in arms.items():
            assert placeholders(text) == placeholders(before[form]), message
            assert text.count("#") == before[form].count("#"), message
        assert message != english[key]
