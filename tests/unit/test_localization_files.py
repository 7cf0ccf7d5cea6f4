"""Files of texts of programs: Apple's strings, .NET's resources, Qt's catalogues, i18next's plurals."""

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.errors import raises_error
from tests.unit.test_formats import reversed_words_apart, texts

from dragoman.errors import Error
from dragoman.formats import qt, resx, string_catalog
from dragoman.formats.base import Options
from dragoman.formats.document import FORMATS, Document, format_of, is_known
from dragoman.pipeline.splitter import Splitter
from dragoman.text.message_format import parse


def output(name: str, text: str | bytes, tgt: str = "de", *, everything: bool = False) -> str:
    """The file with the letters of its words in reverse order."""
    data = text.encode() if isinstance(text, str) else text
    options = Options(name, ("en", tgt), everything)
    return Document(data, format_of(Path(name), data), options).translated(reversed_words_apart).decode()


def kept(name: str, text: str, **choices: bool) -> list[str]:
    document = Document(text.encode(), format_of(Path(name), text.encode()), Options(name, ("en", "de"), **choices))
    return [unit.kept for unit in document.texts()]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"k" = "ab \\"cd\\" \\\\ ef";', '"k" = "ba \\"dc\\" \\\\ fe";'),
        ('"k"="ab";"l"= "cd" ;', '"k"="ba";"l"= "dc" ;'),
        ('"k" = "ab"; /* cd = "ef"; */ // "gh" = "ij";', '"k" = "ba"; /* cd = "ef"; */ // "gh" = "ij";'),
        ("/* a */ k /* b */ = /* c */ ab /* d */ ; // e", '/* a */ k /* b */ = /* c */ "ba" /* d */ ; // e'),
        ("\ufeff\ufeff'k' = 'ab\\'cd';", "\ufeff\ufeff'k' = \"ba'dc\";"),
        ('"k" = "\\U00e4b \\Ud83d\\Ude00";', '"k" = "b\\U00E4 \\UD83D\\UDE00";'),
        ('"k" = "\\U00e4b"; "ö" = "cd";', '"k" = "bä"; "ö" = "dc";'),
        ('"ab cd";', '"ab cd" = "ba dc";'),
        ('{ "k" = "ab"; }', '{ "k" = "ba"; }'),
        ('"k" = "two\nlines \\n three";', '"k" = "owt\nsenil \n eerht";'),
        ('"k" = "";', '"k" = "";'),
        ("", ""),
        ('<plist version="1.0"><dict><key>k</key><string>ab &amp; cd</string></dict></plist>',
         '<plist version="1.0"><dict><key>k</key><string>ba &amp; dc</string></dict></plist>'),
    ],
)  # fmt: skip
def test_strings_of_apple(before: str, after: str) -> None:
    assert output("a.strings", before) == after


@pytest.mark.parametrize("text", ['"k" = "ab"\n"l" = "cd";', '"k" = "ab', '"k" "ab";', '"k" = { l = ab; };', "/* ab"])
def test_strings_that_are_broken_are_told_with_the_line(text: str) -> None:
    with raises_error(Error.WRONG_SHAPE, "a.strings:2"):
        output("a.strings", "\n" + text)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.json", '{"a": "ab", "b": "cd"}', '{"a": "字", "b": "字"}'),
        ("a.arb", '{"a": "ab"}', '{"a": "字"}'),
        ("a.json", '{"a": "ab \\u2026", "b": "cd"}', '{"a": "\\u5b57", "b": "\\u5b57"}'),
        ("a.json", '{"a": "ab \\u003c 1", "b": "cd"}', '{"a": "字", "b": "字"}'),
        ("a.json", '{"a": "é \\u2026"}', '{"a": "字"}'),
        ("a.yml", 'a: "ab"\nb: cd\n', 'a: "字"\nb: 字\n'),
        ("a.yml", 'a: "ab \\u2026"\n', 'a: "\\u5b57"\n'),
        ("a.strings", '"k" = "ab";', '"k" = "字";'),
        ("a.strings", '"k" = "ab \\U2026";', '"k" = "\\U5B57";'),
        ("a.properties", "a=ab", "a=\\u5B57"),  # Java reads it so in every version
        ("a.properties", "a=é ab", "a=字"),
    ],
)
def test_a_file_whose_characters_are_escapes_keeps_them_so(name: str, before: str, after: str) -> None:
    document = Document(before.encode(), format_of(Path(name), before.encode()), Options(name, ("en", "ja")))
    assert document.translated(lambda units: [("字",) for _ in units]).decode() == after


def test_strings_in_utf_16_stay_so() -> None:
    text = '"k" = "ab";\r\n'
    for mark, codec in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"", "utf-16-le"), (b"", "utf-16-be")):
        data = mark + text.encode(codec)
        options = Options("a.strings", ("en", "de"))
        out = Document(data, format_of(Path("a.strings"), data), options).translated(reversed_words_apart)
        assert out == mark + '"k" = "ba";\r\n'.encode(codec)


def test_arguments_in_another_order_are_numbered() -> None:
    def swapped(name: str, text: str, put: str = "%@: 100% at %lld") -> str:
        document = Document(text.encode(), format_of(Path(name), text.encode()), Options(name, ("en", "de")))
        return document.translated(lambda units: [(put,) for _ in units]).decode()

    po = '#, c-format\nmsgid "{}"\nmsgstr ""\n'
    assert 'msgstr "%2$s: %1$d"' in swapped("a.po", po.format("%d of %s"), "%s: %d")
    assert 'msgstr "%s: %d"' in swapped("a.po", po.format("%d of %s").replace("c-f", "python-f"), "%s: %d")
    for source in ("%d of %s, %*d", "%d of %s, %<PRIu64>"):
        assert 'msgstr "%s: %d, ' in swapped("a.po", po.format(source), "%s: %d, " + source.split(", ")[1])
    assert swapped("a.strings", '"k" = "%lld for %@";') == '"k" = "%2$@: 100% at %1$lld";'
    assert swapped("a.strings", '"k" = "%2$lld for %1$@";') == '"k" = "%@: 100% at %lld";'
    assert ">%2$@: 100% at %1$lld<" in swapped("a.xml", '<resources><string name="a">%lld for %@</string></resources>')
    assert "%2$@: 100% at %1$lld" in swapped("a.xcstrings", '{"sourceLanguage":"en","strings":{"%lld for %@":{}}}')


PLURAL = (
    "<key>NSStringFormatSpecTypeKey</key><string>NSStringPluralRuleType</string>"
    "<key>NSStringFormatValueTypeKey</key><string>d</string>"
)


def test_plurals_of_apple_have_the_forms_of_the_target_language() -> None:
    forms = "<key>one</key><string>a cat</string>\n\t<key>other</key><string>%d cats</string>"
    text = f'<plist version="1.0"><dict><key>k</key><dict>{PLURAL}{forms}</dict></dict></plist>'
    for tgt, wanted in (
        ("de", ["one a tac", "other %d stac"]),
        ("pl", ["one a tac", "other %d stac", "few %d stac", "many %d stac"]),
        ("ru", ["one %d stac", "other %d stac", "few %d stac", "many %d stac"]),  # 21 cats have the form of one
        ("ja", ["one a tac", "other %d stac"]),
    ):
        out = output("a.stringsdict", text, tgt)
        found = re.findall(r"<key>(zero|one|two|few|many|other)</key><string>([^<]*)</string>", out)
        assert [f"{name} {said}" for name, said in found] == wanted
        assert "</string>\n\t<key>few</key>" in out or tgt in ("de", "ja")


def catalog(entry: object, **more: object) -> str:
    return json.dumps({"sourceLanguage": "en", "strings": {"ab cd": entry, **more}, "version": "1.0"}, indent=2)


def unit(state: str, value: str) -> dict[str, object]:
    return {"stringUnit": {"state": state, "value": value}}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({}, ""),
        ({"localizations": {}}, ""),
        ({"localizations": {"en": unit("new", "ef"), "fr": unit("translated", "gh")}}, ""),
        ({"localizations": {"de": unit("new", "ab cd")}}, ""),
        ({"localizations": {"de": unit("translated", "")}}, ""),
        ({"localizations": {"de": unit("translated", "xy")}}, "translated already"),
        ({"localizations": {"de": unit("needs_review", "xy")}}, "translated already"),
        ({"shouldTranslate": False}, "shouldTranslate: false"),
        ({"extractionState": "stale"}, "not in the program any more"),
    ],
)
def test_states_of_string_catalogs(entry: dict[str, object], reason: str) -> None:
    text = catalog(entry)
    assert kept("a.xcstrings", text) == [reason]
    wanted = json.loads(text)
    if not reason:
        said = "fe" if "en" in entry.get("localizations", {}) else "ba dc"  # type: ignore[operator]
        wanted["strings"]["ab cd"].setdefault("localizations", {})["de"] = unit("needs_review", said)
    out = output("a.xcstrings", text)
    assert json.loads(out) == wanted
    if "de" not in entry.get("localizations", {}):  # type: ignore[operator]
        assert out == json.dumps(json.loads(out), indent=2)
    compact = json.dumps(json.loads(text), separators=(",", ":"))
    assert output("a.xcstrings", compact) == json.dumps(
        json.loads(output("a.xcstrings", compact)), separators=(",", ":")
    )


def test_plurals_and_devices_of_string_catalogs() -> None:
    plural = {"plural": {"one": unit("new", "one file"), "other": unit("new", "%arg files")}}
    files = {"argNum": 1, "formatSpecifier": "lld", "variations": plural}
    device = {"device": {"mac": unit("new", "click"), "other": unit("new", "tap")}}
    english = {**unit("new", "%#@x@ in %@"), "substitutions": {"x": files}, "variations": device}
    for tgt, name, forms in (
        ("pl", "pl", {"few": "selif", "many": "selif", "one": "eno elif", "other": "selif"}),
        ("ja", "ja", {"other": "selif"}),
        ("zh_TW", "zh-Hant", {"other": "selif"}),
    ):
        out = json.loads(output("a.xcstrings", catalog({"localizations": {"en": english}}), tgt))
        made = out["strings"]["ab cd"]["localizations"][name]
        found = made["substitutions"]["x"]["variations"]["plural"]
        said = {form: of["stringUnit"]["value"].removeprefix("%gra ") for form, of in found.items()}
        assert said == forms
        assert made["variations"]["device"]["mac"] == unit("needs_review", "kcilc")
        assert made["substitutions"]["x"]["argNum"] == 1


def test_string_catalogs_of_other_languages_and_other_json_are_refused() -> None:
    text = catalog({}).replace('"en"', '"fr"')
    with raises_error(Error.NO_SUCH_LANGUAGE, "a.xcstrings"):
        output("a.xcstrings", text)
    assert '"value": "fe"' in output(
        "a.xcstrings", catalog({"localizations": {"en": unit("new", "ef")}}).replace('e": "en"', 'e": "fr"')
    )
    with raises_error(Error.WRONG_SHAPE, "a.xcstrings"):
        output("a.xcstrings", '{"a": "b"}')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<data name='a'><value>&amp;ab cd</value></data>", "<data name='a'><value>&amp;ba dc</value></data>"),
        ("<data name='a'><value><![CDATA[<p>ab</p>]]></value></data>", None),
        ("<data name='a' x='y'><value>ab\n  cd</value></data>", "<data name='a' x='y'><value>ba\n  dc</value></data>"),
        ("<data name='a'><value/></data>", "<data name='a'><value/></data>"),
        ("<data name='a'><value> </value></data>", "<data name='a'><value> </value></data>"),
        ("<metadata name='a'><value>ab</value></metadata>", "<metadata name='a'><value>ab</value></metadata>"),
        ("<data name='a' type='System.String, mscorlib'><value>ab</value></data>",
         "<data name='a' type='System.String, mscorlib'><value>ba</value></data>"),
        ("<data name='a' type='System.Resources.ResXFileRef'><value>ab</value></data>",
         "<data name='a' type='System.Resources.ResXFileRef'><value>ab</value></data>"),
        ("<data name='a'><comment>{Locked}</comment><value>ab</value></data>",
         "<data name='a'><comment>{Locked}</comment><value>ab</value></data>"),
        ("<data name='a'><value>ab Big Co cd</value><comment>{Locked=\"Big Co\"}</comment></data>",
         "<data name='a'><value>ba Big Co dc</value><comment>{Locked=\"Big Co\"}</comment></data>"),
    ],
)  # fmt: skip
def test_resources_of_dot_net(before: str, after: str | None) -> None:
    wanted = after or "<data name='a'><value>&lt;p&gt;ba&lt;/p&gt;</value></data>"
    assert (
        output("a.resx", f"<root>{before}</root>").replace("&lt;p&gt;ba&lt;/p", "&lt;p&gt;ba&lt;/p")
        == f"<root>{wanted}</root>"
    )


def test_values_of_resources_with_a_type_are_counted_as_left() -> None:
    typed = (
        "<data name='i' type='System.Resources.ResXFileRef, System.Windows.Forms'><value>a.png;Bitmap</value></data>"
    )
    coded = "<data name='b' mimetype='application/x-microsoft.net.object.binary.base64'><value>AAEA/w</value></data>"
    text = "<data name='t' type='System.String, mscorlib'><value>text</value></data>"
    assert kept("a.resx", f"<root>{typed}{coded}{text}</root>") == [resx.TYPED, resx.TYPED, ""]
    assert output("a.resx", f"<root>{typed}{coded}</root>") == f"<root>{typed}{coded}</root>"


HARD = "* a_b <tag> & [x](y) `c` \\ \\n \"q\" 'p' {n} # 1. %@ ]]> \U0001f600 end: "


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.strings", '"k" = "text";'),
        ("a.strings", "k = text;"),
        ("a.stringsdict", '<plist version="1.0"><dict><key>k</key><string>text</string></dict></plist>'),
        ("a.resx", "<root><data name='a'><value>text</value></data></root>"),
        ("a.arb", '{"a": "text"}'),
        ("a.ts", "<TS><message><source>text</source></message></TS>"),
        ("a.xcstrings", '{"sourceLanguage":"en","strings":{"text":{}}}'),
    ],
)
def test_what_is_written_can_be_read_again(name: str, text: str) -> None:
    data = text.encode()
    document = Document(data, format_of(Path(name), data), Options(name, ("en", "de")))
    out = document.translated(lambda units: [(HARD,) for _ in units])
    if name == "a.ts":
        assert [entry.tgt + " " for entry in qt.entries(out.decode(), Options())] == [HARD]
    elif name == "a.xcstrings":
        assert json.loads(out)["strings"]["text"]["localizations"]["de"] == unit("needs_review", HARD)
    else:
        assert texts(name, out) == [HARD]


def test_messages_of_arb_whose_names_are_those_of_codes() -> None:
    text = '{"@@locale": "en", "language": "Language", "type": "Kind", "@type": {"description": "x y"}, "id": "abc"}'
    wanted = '{"@@locale": "de", "language": "egaugnaL", "type": "dniK", "@type": {"description": "x y"}, "id": "cba"}'
    assert output("a.arb", text) == wanted
    assert output("a.json", '{"a": {"language": "Language", "lang": "en", "type": "Kind"}}') == (
        '{"a": {"language": "egaugnaL", "lang": "en", "type": "Kind"}}'
    )


def message(inner: str, head: str = "<message>", root: str = "<TS>") -> str:
    return f"{root}<context>{head}<source>ab cd</source>{inner}</message></context></TS>"


GONE = "not in the program any more"


@pytest.mark.parametrize(
    ("before", "reason", "after"),
    [
        ("", "", '<translation type="unfinished">ba dc</translation>'),
        ("<translation/>", "", '<translation type="unfinished">ba dc</translation>'),
        ("<translation></translation>", "", '<translation type="unfinished">ba dc</translation>'),
        ('<translation type="unfinished">xy</translation>', "", '<translation type="unfinished">ba dc</translation>'),
        ("<translation>xy</translation>", "translated already", "<translation>xy</translation>"),
        ('<translation type="obsolete">xy</translation>', GONE, '<translation type="obsolete">xy</translation>'),
        ("<comment>xy</comment><userdata>z</userdata>", "",
         '<comment>xy</comment><translation type="unfinished">ba dc</translation><userdata>z</userdata>'),
        ("<translatorcomment>xy</translatorcomment><translation variants=\"yes\"><lengthvariant/></translation>", "",
         '<translatorcomment>xy</translatorcomment><translation type="unfinished">ba dc</translation>'),
    ],
)  # fmt: skip
def test_states_of_qt(before: str, reason: str, after: str) -> None:
    assert kept("a.ts", message(before)) == [reason]
    assert output("a.ts", message(before)) == message(after, root="<TS>" if reason else '<TS language="de">')
    assert output("a.ts", message("<translation>xy</translation>"), everything=True) == message(
        '<translation type="unfinished">ba dc</translation>', root='<TS language="de">'
    )


@pytest.mark.parametrize(
    ("tgt", "count"), [("de", 2), ("pl", 3), ("ja", 1), ("tr", 1), ("ar", 6), ("pt_BR", 2), ("cy", 5)]
)
def test_plurals_of_qt_have_the_number_of_forms_that_qt_has(tgt: str, count: int) -> None:
    text = message("<translation><numerusform></numerusform></translation>", '<message numerus="yes">')
    assert output("a.ts", text, tgt).count("<numerusform>ba dc</numerusform>") == count


@pytest.mark.parametrize(
    ("root", "tgt", "wanted"),
    [
        ("<TS>", "de", '<TS language="de">'),
        ('<TS version="2.1" language="">', "de", '<TS version="2.1" language="de">'),
        ("<TS language='en_US'>", "pt_BR", "<TS language='pt_BR'>"),
        ('<TS language="de_AT" sourcelanguage="en">', "de", '<TS language="de_AT" sourcelanguage="en">'),
    ],
)
def test_the_language_of_qt(root: str, tgt: str, wanted: str) -> None:
    assert output("a.ts", message("", root=root), tgt).startswith(wanted)


def test_pairs_have_the_state_that_their_file_says() -> None:
    told = (("", "xy"), (' type="unfinished"', "xy"), (' type="unfinished"', ""), (' type="vanished"', "xy"))
    made = [message(f"<translation{kind}>{said}</translation>") for kind, said in told]
    found = [entry for text in made for entry in qt.entries(text, Options())]
    assert [(entry.src, entry.tgt, entry.state) for entry in found] == [
        ("ab cd", "xy", ""), ("ab cd", "xy", "fuzzy"), ("ab cd", "", "untranslated")]  # fmt: skip
    states = ("translated", "needs_review", "new")
    made = [catalog({"localizations": {"de": unit(state, "xy")}}) for state in states] + [catalog({})]
    found = [entry for text in made for entry in string_catalog.entries(text, Options(languages=("en", "de")))]
    assert [(entry.tgt, entry.state) for entry in found] == [
        ("xy", ""), ("xy", "fuzzy"), ("xy", "fuzzy"), ("", "untranslated")]  # fmt: skip


def test_typescript_is_not_taken_for_qt(tmp_path: Path) -> None:
    code = tmp_path / "a.ts"
    code.write_text("export const title = 'ab cd';\n")
    assert not is_known(code)
    with raises_error(Error.WRONG_FILE_TYPE, "a.ts"):
        Document.load(code)
    code.write_text("<!DOCTYPE TS>" + message(""))
    assert is_known(code)
    with raises_error(Error.WRONG_SHAPE, "a.ts"):
        texts("a.ts", "<?xml version='1.0'?><html/>")
    with raises_error(Error.WRONG_SHAPE, "a.resx"):
        texts("a.resx", "<html/>")
    with raises_error(Error.WRONG_FILE_TYPE, "plutil"):
        texts("a.strings", b"bplist00\xd1\x01\x02")


@pytest.mark.parametrize(
    ("before", "tgt", "after"),
    [
        ({"a_one": "a cat", "a_other": "{{n}} cats"}, "de", {"a_one": "a tac", "a_other": "{{n}} stac"}),
        ({"a_one": "a cat", "a_other": "{{n}} cats"}, "pl",
         {"a_one": "a tac", "a_other": "{{n}} stac", "a_few": "{{n}} stac", "a_many": "{{n}} stac"}),
        ({"a_one": "a cat", "a_other": "{{n}} cats"}, "uk",
         {"a_one": "{{n}} stac", "a_other": "{{n}} stac", "a_few": "{{n}} stac", "a_many": "{{n}} stac"}),
        ({"a": {"one": "a cat", "other": "%{n} cats"}}, "lt",
         {"a": {"one": "%{n} stac", "other": "%{n} stac", "few": "%{n} stac", "many": "%{n} stac"}}),
        ({"a": [{"one": "cat", "other": "cats"}]}, "lv", {"a": [{"one": "tac", "other": "stac", "zero": "stac"}]}),
        ({"a_one": "cat", "a_two": "dog", "a_other": "cow"}, "pl", {"a_one": "tac", "a_two": "god", "a_other": "woc"}),
        ({"one": "cat", "other": "cats", "title": "dog"}, "pl", {"one": "tac", "other": "stac", "title": "god"}),
        ({"a_ordinal_one": "cat", "a_ordinal_other": "cow"}, "pl", {"a_ordinal_one": "tac", "a_ordinal_other": "woc"}),
        ({"sex_other": "person", "sex_male": "man"}, "pl", {"sex_other": "nosrep", "sex_male": "nam"}),
    ],
)  # fmt: skip
def test_plurals_of_i18next(before: object, tgt: str, after: object) -> None:
    if "_" not in json.dumps(before):
        assert yaml.safe_load(output("a.yml", yaml.dump(before), tgt)) == after
    for indent in (None, 4):
        out = output("a.json", json.dumps(before, indent=indent), tgt)
        assert json.loads(out) == after
        assert indent is None or out.count("\n") == json.dumps(after, indent=indent).count("\n")


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.xml", '<resources><item type="string" name="a">ab</item></resources>', ">ba</item>"),
        ("a.xml", '<resources><string name="a">ab   cd\n   ef</string></resources>', ">ba dc fe</string>"),
        ("a.json", '{"name": "ab", "version": "1.0.0", "scripts": {"x": "cd"}}', '"ab"'),
        ("a.yml", "en:\n  a: ab\n  order: [ :year, :month ]\n", "de:\n  a: ba\n  order: [ :year, :month ]\n"),
        ("a.pot", 'msgid ""\nmsgstr "charset=CHARSET\\n"\n\nmsgid "ab"\nmsgstr ""\n', "charset=UTF-8"),
    ],
)
def test_what_other_programs_write(name: str, before: str, after: str) -> None:
    assert after in output(name, before)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("(1)[one item];(2-7)[a [few] items];(7-inf)[a lot of {{count}}];",
         ["one item", "a [few] items", "a lot of {{count}}"]),
        ("(0)[no items]; (1-inf)[items]", ["no items", "items"]),
        ("See (1)[the link]; or not", ["See (1)[the link]; or not"]),
        ("[0,1] None|[2,19] A few there|[20,*] Many", ["None", "A few there", "Many"]),
        ("]1,Inf] Many are there", ["Many are there"]),
        ("hello {'|'} you | name{'@'}x.org", ["hello {'|'} you", "name{'@'}x.org"]),
    ],
)  # fmt: skip
def test_texts_for_intervals_of_numbers(text: str, pieces: list[str]) -> None:
    assert [piece.text for piece in Splitter(("en", "de")).pieces(text)] == pieces
    assert not Splitter().is_text("nplurals=2; plural=(n >= 2);")  # a line of Godot's tables


@pytest.mark.parametrize(
    ("source", "bare", "put", "written"),
    [
        ("You''re {name}", "You're {name}", "C'est l'{name}", "C''est l''{name}"),
        ("Hi {name}", "Hi {name}", "l'{name}'s", "l’{name}'s"),
        ("<b>Water</b>", "<b>Water</b>", "L'<b>eau</b>, all'</b>", "L’<b>eau</b>, all’</b>"),
        ("{n, plural, other {a}}", "{n, plural, other {a}}", "{n, plural, other {x'}}", "{n, plural, other {x’}}"),
        ("Hi {{name}}", "Hi {{name}}", "l'{{name}}", "l'{{name}}"),
        ("a '{b}' c", "a '{b}' c", "d'{b}", "d'{b}"),
        ("a {b}", "a {b}", "c '{b}'", "c '{b}'"),
        ("set '' to it's", "set '' to it's", "c'd", "c'd"),
    ],
)  # fmt: skip
def test_apostrophes_of_messages(source: str, bare: str, put: str, written: str) -> None:
    """formatjs 4173, 3142 and 4247; dart-lang/i18n 73."""
    document = Document(json.dumps({"a": source}).encode(), FORMATS["json"], Options("a.json", ("en", "fr")))
    assert texts("a.json", json.dumps({"a": source})) == [bare]
    assert json.loads(document.translated(lambda units: [(put,) for _ in units]))["a"] == written


def test_lines_of_properties_may_end_anywhere() -> None:
    """Kajabity.Tools.Java 7: within an escape, too."""
    assert texts("a.properties", "k=A\\u\\\n  0050 cat \\\\\\\n d") == ["AP cat \\d"]


def test_choices_of_java_are_messages() -> None:
    message = parse("Es gibt {0,choice,0#nichts|1#eine Datei|1<{0} Dateien}.")
    assert message is not None
    said = ["Es gibt nichts.", "Es gibt eine Datei.", "Es gibt {0} Dateien."]
    assert list(message.sentences()) == said
    assert message.with_texts(iter(said)) == f"{{0,choice,0#{said[0]}|1#{said[1]}|1<{said[2]}}}"
    assert parse("{0,choice,0#nichts|eine Datei}") is None
