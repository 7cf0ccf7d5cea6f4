"""Plural forms by CLDR's rules of the target language, in every kind of file that has them."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit.test_localization_files import PLURAL, catalog, unit

from dragoman.formats import po
from dragoman.formats.base import Options, plain
from dragoman.formats.document import Document, format_of
from dragoman.text.message_format import parse


def output(name: str, text: str, tgt: str) -> str:
    """The file with `<...>` around each text."""
    document = Document(text.encode(), format_of(Path(name), text.encode()), Options(name, ("en", tgt)))
    return document.translated(
        lambda units: [None if one.kept else (f"«{plain(one.items)}»",) for one in units]
    ).decode()


def catalogue(rule: str, count: int, *, language: str = "", flags: str = "", texts: tuple[str, str]) -> str:
    header = f'"Language: {language}\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Plural-Forms: {rule}\\n"\n'
    forms = "".join(f'msgstr[{number}] ""\n' for number in range(count))
    return f'msgid ""\nmsgstr ""\n{header}\n{flags}msgid "{texts[0]}"\nmsgid_plural "{texts[1]}"\n{forms}'


UNSAID = ("You have one new message.", "You have %d new messages.")
SLOVENE = "nplurals=4; plural=(n%100==1 ? 1 : n%100==2 ? 2 : n%100==3 || n%100==4 ? 3 : 0);"
RUSSIAN = "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
ARABIC = "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;"


@pytest.mark.parametrize(
    ("language", "rule", "count", "flags", "of_one"),
    [
        ("ja", "nplurals=1; plural=0;", 1, "", None),  # 新しいメッセージが%d件あります。
        ("sl", SLOVENE, 4, "", 1),
        ("sl", SLOVENE, 4, "#, c-format\n", None),  # msgfmt refuses it: 101 has that form, too
        ("ru", RUSSIAN, 3, "", 0),
        ("ru", RUSSIAN, 3, "#, python-format\n", None),
        ("ru", RUSSIAN, 3, "#, no-c-format\n", 0),
        ("ar", ARABIC, 6, "#, c-format\n", 1),
        ("fr", "nplurals=2; plural=(n > 1);", 2, "#, c-format\n", 0),
        ("gd", "nplurals=4; plural=(n==1 || n==11) ? 0 : (n==2 || n==12) ? 1 : (n > 2 && n < 20) ? 2 : 3;", 4,
         "#, c-format\n", 0),
        ("lv", "nplurals=3; plural=(n%10==0 || n%100>=11 && n%100<=19 ? 0 : n%10==1 && n%100!=11 ? 1 : 2);", 3, "", 1),
        ("cy", "nplurals=6; plural=(n==0) ? 0 : (n==1) ? 1 : (n==2) ? 2 : (n==3) ? 3 : (n==6) ? 4 : 5;", 6, "", 1),
        ("mt", "nplurals=4; plural=(n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : (n%100>10 && n%100<20) ? 2 : 3);", 4,
         "", 0),
    ],
)  # fmt: skip
def test_the_singular_goes_where_1_goes_by_the_files_rule(
    language: str, rule: str, count: int, flags: str, of_one: int | None
) -> None:
    text = catalogue(rule, count, language=language, flags=flags, texts=UNSAID)
    out = output("a.po", text, language)
    forms = re.findall(r'msgstr\[\d\] "«(.*)»"', out)
    assert forms == [UNSAID[number != of_one] for number in range(count)]
    if shutil.which("msgfmt"):
        final = out.replace("#, fuzzy\n", "").replace("fuzzy, ", "")
        checked = subprocess.run(["msgfmt", "-c", "-o", "/dev/null", "-"], input=final, text=True, capture_output=True)
        assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(("language", "rule", "one"), [("ar", ARABIC, 1), ("sl", SLOVENE, 1), ("ru", RUSSIAN, 0)])
def test_pairs_of_a_catalogue_are_those_of_its_rule(language: str, rule: str, one: int) -> None:
    text = catalogue(rule, 6, language=language, texts=("%d file", "%d files"))
    for number in range(6):
        text = text.replace(f'msgstr[{number}] ""', f'msgstr[{number}] "form {number}"')
    assert next(entry.tgt for entry in po.entries(text, Options())) == f"form {one}"


@pytest.mark.parametrize(
    ("language", "count"),
    [("ar", 6), ("ja", 1), ("de", 2), ("ga", 5), ("cy", 6), ("he", 3), ("lv", 3), ("sl", 4), ("mt", 5), ("fr", 3)],
)
def test_a_template_gets_the_forms_of_its_language(language: str, count: int) -> None:
    text = catalogue("nplurals=INTEGER; plural=EXPRESSION;", 2, flags="#, c-format\n", texts=("%d file", "%d files"))
    out = output("a.pot", text, language)
    assert f'"Language: {language}\\n"' in out
    assert f"Plural-Forms: nplurals={count};" in out
    assert [*map(int, re.findall(r"msgstr\[(\d)\]", out))] == [*range(count)]


FORMS = {
    "ar": "one other zero two few many", "fr": "one other many", "pt_BR": "one other many", "es": "one other many",
    "cs": "one other few many", "lt": "one other few many", "cy": "one other zero two few many",
    "ga": "one other two few many", "br": "one other two few many", "mt": "one other two few many",
    "lv": "one other zero", "he": "one other two", "iw": "one other two", "hi": "one other", "sl": "one other two few",
    "zh_TW": "one other", "sr_Latn": "one other few", "nb": "one other",
}  # fmt: skip


@pytest.mark.parametrize("language", FORMS)
def test_forms_are_those_of_cldr(language: str) -> None:
    forms = FORMS[language].split()
    items = '<item quantity="one">%d file</item>\n  <item quantity="other">%d files</item>'
    out = output("a.xml", f'<resources><plurals name="a">\n  {items}\n</plurals></resources>', language)
    assert re.findall(r'quantity="(\w+)"', out) == forms
    assert out.count("«%d files»") == len(forms) - 1
    out = json.loads(output("a.json", '{"a_one": "{{count}} file", "a_other": "{{count}} files"}', language))
    assert [*out] == [f"a_{form}" for form in forms]
    keys = "<key>one</key><string>%d file</string><key>other</key><string>%d files</string>"
    out = output(
        "a.stringsdict", f'<plist version="1.0"><dict><key>k</key><dict>{PLURAL}{keys}</dict></dict></plist>', language
    )
    assert re.findall(r"<key>(zero|one|two|few|many|other)</key>", out) == forms
    plural = {"plural": {"one": unit("new", "%arg file"), "other": unit("new", "%arg files")}}
    made = json.loads(output("a.xcstrings", catalog({"localizations": {"en": {"variations": plural}}}), language))
    (localization,) = (of for name, of in made["strings"]["ab cd"]["localizations"].items() if name != "en")
    assert {*localization["variations"]["plural"]} == {*forms} - ({"one"} if language == "zh_TW" else set())


@pytest.mark.parametrize("language", ["fr", "hi", "pt_BR", "fa", "am"])
def test_one_that_is_0_too_says_the_number_or_leaves_0_to_zero(language: str) -> None:
    items = '<item quantity="one">a file</item><item quantity="other">%d files</item>'
    out = output("a.xml", f'<resources><plurals name="a">{items}</plurals></resources>', language)
    assert '<item quantity="one">«%d files»</item>' in out  # Android asks for `one` where there are none
    out = json.loads(output("a.json", '{"a_one": "a file", "a_other": "{{count}} files"}', language))
    assert (out["a_one"], out["a_zero"]) == ("«a file»", "«{{count}} files»")
    message = parse("{n, plural, one {a file} other {# files}}")
    assert message is not None
    assert [key for key, _ in message.in_language(language).arms] == ["=1", "other"]
