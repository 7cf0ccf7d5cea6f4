"""A folder of files of every kind: which hold pairs, in which direction, and what is said of the others."""

import gzip
import os
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest
from tests.errors import raises_error
from tests.unit.test_mo import compiled

from dragoman.doctor.collection import FileRecord, collect, paths_of
from dragoman.doctor.paragraphs import aligned
from dragoman.errors import Error
from dragoman.formats.base import Entry
from dragoman.text.corpus import CollectionConfig

EN_FR = ("en", "fr")
Pairs = list[tuple[str, str]]


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def records(folder: Path, languages: tuple[str, str] = EN_FR, **config: Any) -> list[tuple[FileRecord, list[Entry]]]:
    return list(collect(CollectionConfig(**{"paths": [str(folder)], **config}), languages))


def read(folder: Path, languages: tuple[str, str] = EN_FR, **config: Any) -> dict[str, Pairs]:
    """The pairs of each file that is read."""
    return {
        record.path: [(entry.src, entry.tgt) for entry in entries]
        for record, entries in records(folder, languages, **config)
        if not record.note
    }


def notes(folder: Path, languages: tuple[str, str] = EN_FR) -> dict[str, str]:
    return {record.path: record.note for record, _ in records(folder, languages) if record.note}


def po(*entries: str, header: str = "Language: fr\\n") -> str:
    return "\n\n".join([f'msgid ""\nmsgstr "{header}"', *entries]) + "\n"


def message(src: str, tgt: str, before: str = "") -> str:
    return f'{before}msgid "{src}"\nmsgstr "{tgt}"'


def tmx(*units: str) -> str:
    return f'<?xml version="1.0"?>\n<tmx version="1.4"><header srclang="en"/><body>\n{"".join(units)}</body></tmx>\n'


def unit(attributes: str = "", **texts: str) -> str:
    variants = "".join(
        f'<tuv xml:lang="{code.replace("_", "-")}"><seg>{text}</seg></tuv>' for code, text in texts.items()
    )
    return f"<tu {attributes}>{variants}</tu>\n"


def xliff(*units: str, languages: str = 'source-language="en" target-language="fr"') -> str:
    return f'<xliff version="1.2"><file {languages}><body>{"".join(units)}</body></file></xliff>'


def trans_unit(src: str, tgt: str, attributes: str = "", target: str = "") -> str:
    return f"<trans-unit {attributes}><source>{src}</source><target {target}>{tgt}</target></trans-unit>"


def states(folder: Path) -> list[tuple[str, str]]:
    return [(entry.src, entry.state) for _, entries in records(folder) for entry in entries]


# -- every kind of file ---------------------------------------------------------------------------------------------


def word(*paragraphs: str) -> Any:
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    return document


def test_every_kind_of_file_is_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.tmx": tmx(unit(en="one", fr="un")),
            "b.xlf": xliff(trans_unit("two", "deux")),
            "c.po": po(message("three", "trois")),
            "d.mo": compiled([("", "Language: fr\n"), ("four", "quatre")]),
            "e.csv": "English,French\nfive,cinq\n",
            "f.tsv": "source\ttarget\nsix\tsix pièces\n",
            "h.jsonl": '{"src": "eight", "tgt": "huit"}\n',
            "i.en.txt": "nine\n",
            "i.fr.txt": "neuf\n",
            "j.properties": "key=ten\n",
            "j_fr.properties": "key=dix\n",
            "locales/en.yml": "en:\n  a: eleven\n  b:\n    one: one thing\n",
            "locales/fr.yml": "fr:\n  b:\n    one: une chose\n  a: onze\n",
            "k/en.json": '{"a": {"b": "eleven pigs"}}',
            "k/fr.json": '{"a": {"b": "onze cochons"}}',
            "l/values/strings.xml": '<resources><string name="x">twelve</string></resources>',
            "l/values-fr/strings.xml": '<resources><string name="x">douze</string></resources>',
            "m.en": "fourteen\n",
            "m.fr": "quatorze\n",
            "n.en.html": "<p>fifteen</p>",
            "n.fr.html": "<p>quinze</p>",
            "o.en.md": "# sixteen\n",
            "o.fr.md": "# seize\n",
            "q/app_fr.ts": '<TS language="fr"><message><source>eighteen</source><translation>dix-huit</translation>'
            "</message></TS>",
            "r.xcstrings": '{"sourceLanguage": "en", "strings": {"nineteen": {"localizations": {"fr": {"stringUnit":'
            '{"state": "translated", "value": "dix-neuf"}}}}}}',
            "s/en.lproj/L.strings": '"key" = "twenty";',
            "s/fr.lproj/L.strings": '"key" = "vingt";',
        },
    )
    book = openpyxl.Workbook()
    book.active.append(["English", "French"])
    book.active.append(["seven", "sept"])
    book.save(tmp_path / "g.xlsx")
    (tmp_path / "p/en").mkdir(parents=True)
    (tmp_path / "p/fr").mkdir()
    word("seventeen").save(tmp_path / "p/en/x.docx")
    word("dix-sept").save(tmp_path / "p/fr/x.docx")
    assert read(tmp_path) == {
        "a.tmx": [("one", "un")],
        "b.xlf": [("two", "deux")],
        "c.po": [("three", "trois")],
        "d.mo": [("four", "quatre")],
        "e.csv": [("five", "cinq")],
        "f.tsv": [("six", "six pièces")],
        "g.xlsx": [("seven", "sept")],
        "h.jsonl": [("eight", "huit")],
        "i.en.txt and i.fr.txt": [("nine", "neuf")],
        "j.properties and j_fr.properties": [("ten", "dix")],
        "locales/en.yml and locales/fr.yml": [("eleven", "onze"), ("one thing", "une chose")],
        "k/en.json and k/fr.json": [("eleven pigs", "onze cochons")],
        "l/values/strings.xml and l/values-fr/strings.xml": [("twelve", "douze")],
        "m.en and m.fr": [("fourteen", "quatorze")],
        "n.en.html and n.fr.html": [("fifteen", "quinze")],
        "o.en.md and o.fr.md": [("sixteen", "seize")],
        "p/en/x.docx and p/fr/x.docx": [("seventeen", "dix-sept")],
        "q/app_fr.ts": [("eighteen", "dix-huit")],
        "r.xcstrings": [("nineteen", "dix-neuf")],
        "s/en.lproj/L.strings and s/fr.lproj/L.strings": [("twenty", "vingt")],
    }
    assert notes(tmp_path) == {}


def test_the_order_of_a_file_and_its_lines_are_kept(tmp_path: Path) -> None:
    write(tmp_path, {"b.po": po(message("z", "zed"), message("a", "ah"), message("m", "em"))})
    [(record, entries)] = records(tmp_path)
    assert [(entry.src, entry.line) for entry in entries] == [("z", 4), ("a", 7), ("m", 10)]
    assert (record.read, record.document, record.kind) == (3, "b.po", ".po")


def test_compressed_files_are_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.tmx.gz": gzip.compress(tmx(unit(en="one", fr="un")).encode()),
            "b.po.gz": gzip.compress(po(message("two", "deux")).encode()),
            "c.en.gz": gzip.compress(b"three\n"),
            "c.fr.gz": gzip.compress(b"trois\n"),
            "d.csv.gz": gzip.compress(b"en,fr\nfour,quatre\n"),
        },
    )
    assert list(read(tmp_path).values()) == [
        [("one", "un")],
        [("two", "deux")],
        [("three", "trois")],
        [("four", "quatre")],
    ]


# -- memories -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["utf-16", "utf-8-sig", "utf-16-be"])
def test_a_memory_in_another_encoding_with_its_mark(tmp_path: Path, codec: str) -> None:
    text = tmx(unit(en="summer", fr="été")).replace(
        'version="1.0"', f'version="1.0" encoding="{codec[:6].upper().rstrip("-")}"'
    )
    data = ("\ufeff" + text).encode(codec) if codec == "utf-16-be" else text.encode(codec)
    write(tmp_path, {"a.tmx": data})
    assert read(tmp_path) == {"a.tmx": [("summer", "été")]}


def test_of_a_memory_of_many_languages_in_any_order_two_are_taken(tmp_path: Path) -> None:
    units = [unit(ar="١", de="eins", fr="un", en="one"), unit(en="two", de="zwei"), unit(FR="trois", EN="three")]
    write(tmp_path, {"a.tmx": tmx(*units)})
    assert read(tmp_path) == {"a.tmx": [("one", "un"), ("three", "trois")]}
    assert read(tmp_path, ("fr", "de")) == {"a.tmx": [("un", "eins")]}


def test_of_several_regions_the_one_that_is_asked_for_is_taken(tmp_path: Path) -> None:
    units = [
        unit(en_US="screen", pt_PT="ecrã", pt_BR="tela"),
        unit(en_US="bus", pt_PT="autocarro"),
        unit(en="yes", pt="sim"),
    ]
    write(tmp_path, {"a.tmx": tmx(*units)})
    [(record, entries)] = records(tmp_path, ("en", "pt_BR"))
    assert [entry.tgt for entry in entries] == ["tela", "sim"]
    assert (record.read, record.fates) == (3, {"other languages": 1})
    assert read(tmp_path, ("en", "pt")) == {"a.tmx": [("screen", "tela"), ("bus", "autocarro"), ("yes", "sim")]}


def test_codes_in_a_memory_are_left_out_and_the_words_around_them_stay_two(tmp_path: Path) -> None:
    units = [
        unit(en='Press<ph x="1">&lt;br/></ph>here', fr='Cliquez<ph x="1"/>ici'),
        unit(en='a <bpt i="1">b</bpt>bold<ept i="1"/>ly one', fr="un <hi>gros</hi>"),
        unit(en="<ph/>Stop<ph/>.", fr="<ph/>Arrêt<ph/>."),
    ]
    write(tmp_path, {"a.tmx": tmx(*units)})
    assert read(tmp_path)["a.tmx"] == [("Press here", "Cliquez ici"), ("a boldly one", "un gros"), ("Stop.", "Arrêt.")]


def test_a_memory_knows_when_a_unit_was_changed(tmp_path: Path) -> None:
    write(
        tmp_path, {"a.tmx": tmx(unit('changedate="20240131T120000Z" creationdate="20200101T000000Z"', en="a", fr="b"))}
    )
    [(_, [entry])] = records(tmp_path)
    assert entry.changed == "20240131T120000Z"


# -- catalogues -----------------------------------------------------------------------------------------------------


def test_states_of_a_catalogue(tmp_path: Path) -> None:
    entries = [
        message("good", "bon", "#, c-format\n"),
        message("guess", "peut-être", "#, fuzzy, c-format\n"),
        message("late", "tard", "#, c-format,fuzzy\n"),
        message("two lines", "deux lignes", "#, fuzzy\n#, c-format\n"),
        message("new", "nouveau", "#= no-wrap\n#, fuzzy\n"),
        message("none", ""),
        '#, fuzzy\n#~| msgid "older"\n#~ msgid "old"\n#~ msgstr "vieux"',
        message("changed", "changé", '#| msgid ""\n#| "before\\n"\n'),
    ]
    write(tmp_path, {"a.po": po(*entries)})
    assert states(tmp_path) == [
        ("good", ""),
        ("guess", "fuzzy"),
        ("late", "fuzzy"),
        ("two lines", "fuzzy"),
        ("new", "fuzzy"),
        ("none", "untranslated"),
        ("changed", ""),
    ]


@pytest.mark.parametrize(
    ("rule", "forms", "expected"),
    [
        ("nplurals=2; plural=(n > 1)", ["un", "des"], [("one", "un"), ("many", "des")]),
        ("nplurals=1; plural=0", ["tout"], [("many", "tout")]),
        (
            "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5",
            ["zero", "one", "two", "few", "lots", "rest"],
            [("one", "one"), ("many", "few")],
        ),
        (
            "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2)",
            ["one", "more", "zero"],
            [("one", "one"), ("many", "more")],
        ),
        ("nplurals=2; plural=__import__('os')", ["un", "des"], [("one", "un"), ("many", "des")]),
        ("", ["un", "des"], [("one", "un"), ("many", "des")]),
    ],
)
def test_plurals_take_the_forms_that_the_catalogue_has_for_one_and_for_many(
    tmp_path: Path, rule: str, forms: list[str], expected: Pairs
) -> None:
    strings = "\n".join(f'msgstr[{number}] "{form}"' for number, form in reversed(list(enumerate(forms))))
    entry = f'msgid "one"\nmsgid_plural "many"\n{strings}'
    write(tmp_path, {"a.po": po(entry, header=f"Language: fr\\nPlural-Forms: {rule};\\n")})
    assert read(tmp_path) == {"a.po": expected}


def test_a_catalogue_in_an_old_encoding_says_so_in_its_header(tmp_path: Path) -> None:
    header = "Language: fr\\nContent-Type: text/plain; charset=ISO-8859-1\\n"
    unset = "Language: fr\\nContent-Type: text/plain; charset=CHARSET\\n"
    write(
        tmp_path,
        {
            "a.po": po(message("summer", "été"), header=header).encode("latin-1"),
            "b.po": po(message("c", "ç"), header=unset),
        },
    )
    assert read(tmp_path) == {"a.po": [("summer", "été")], "b.po": [("c", "ç")]}


def test_a_catalogue_from_english_serves_for_the_other_direction(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "by-header.po": po(message("open", "ouvrir")),
            "fr.po": po(message("close", "fermer"), header=""),
            "fr/LC_MESSAGES/app.mo": compiled([("", "X: y\n"), ("yes", "oui")]),
            "app.po": po(message("no", "non"), header="X: y\\n"),
            "git.mo": compiled([("", "X: y\n"), ("maybe", "peut-être")]),
            "into.po": po(message("fenêtre", "window"), header="X-Source-Language: fr\\nLanguage: en\\n"),
            "x.xlf": xliff(trans_unit("door", "porte")),
        },
    )
    assert read(tmp_path, ("fr", "en")) == {
        "by-header.po": [("ouvrir", "open")],
        "fr.po": [("fermer", "close")],
        "fr/LC_MESSAGES/app.mo": [("oui", "yes")],
        "app.po": [("non", "no")],
        "git.mo": [("peut-être", "maybe")],
        "into.po": [("fenêtre", "window")],
        "x.xlf": [("porte", "door")],
    }


def test_catalogues_of_other_languages_are_named(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "de.po": po(message("open", "öffnen"), header="Language: de\\n"),
            "po/pt_PT.po": po(message("open", "abrir"), header=""),
            "po/pt_BR.po": po(message("close", "fechar"), header=""),
        },
    )
    assert read(tmp_path, ("en", "pt_BR")) == {"po/pt_BR.po": [("close", "fechar")]}
    said = notes(tmp_path, ("en", "pt_BR"))
    assert "from en to de" in said["de.po"]
    assert "from en to pt_PT" in said["po/pt_PT.po"]


def test_between_two_languages_catalogues_of_one_document_are_joined_by_message_and_context(tmp_path: Path) -> None:
    context = 'msgctxt "verb"\n'
    write(
        tmp_path,
        {
            "po/de.po": po(
                message("open", "offen"),
                message("open", "öffnen", context),
                message("guess", "raten", "#, fuzzy\n"),
                message("only", "nur"),
                header="Language: de\\n",
            ),
            "po/fr.po": po(message("open", "ouvrir", context), message("guess", "deviner"), message("open", "ouvert")),
            "de/LC_MESSAGES/a.mo": compiled([("", "Language: de\n"), ("house", "Haus")]),
            "fr/LC_MESSAGES/a.mo": compiled([("", "Language: fr\n"), ("house", "maison")]),
            "m.de.xlf": xliff(
                trans_unit("tree", "Baum", 'id="1"'), languages='source-language="en" target-language="de"'
            ),
            "m.fr.xlf": xliff(trans_unit("tree", "arbre", 'id="1"')),
        },
    )
    found = {
        record.path: [(entry.src, entry.tgt) for entry in entries if entry.is_translated]
        for record, entries in records(tmp_path, ("de", "fr"))
    }
    assert found == {
        "de/LC_MESSAGES/a.mo and fr/LC_MESSAGES/a.mo": [("Haus", "maison")],
        "m.de.xlf and m.fr.xlf": [("Baum", "arbre")],
        "po/de.po and po/fr.po": [("offen", "ouvert"), ("öffnen", "ouvrir")],
    }


# -- XLIFF ----------------------------------------------------------------------------------------------------------


def test_states_of_xliff(tmp_path: Path) -> None:
    units = [
        trans_unit("plain", "a"),
        trans_unit("approved", "a", 'approved="yes"'),
        trans_unit("final", "a", "", 'state="final"'),
        trans_unit("new", "new", "", 'state="new"'),
        trans_unit("needed", "a", "", 'state="needs-translation"'),
        trans_unit("review", "a", 'approved="yes"', 'state="needs-review-translation"'),
        trans_unit("machine", "a", "", 'state="translated" state-qualifier="mt-suggestion"'),
        trans_unit("checked machine", "a", 'approved="yes"', 'state-qualifier="leveraged-mt"'),
        trans_unit("empty", ""),
        "<trans-unit><source>missing</source></trans-unit>",
        "<trans-unit><source>offered</source><alt-trans><target>machine</target></alt-trans></trans-unit>",
        trans_unit("memsource", "a", 'm:confirmed="0"'),
        "<trans-unit><source>trados</source><target>a</target>"
        '<sdl:seg-defs><sdl:seg conf="Draft"/></sdl:seg-defs></trans-unit>',
    ]
    write(tmp_path, {"a.xlf": xliff(*units).replace("<xliff", '<xliff xmlns:m="m" xmlns:sdl="s"')})
    assert states(tmp_path) == [
        ("plain", ""),
        ("approved", "approved"),
        ("final", "approved"),
        ("new", "untranslated"),
        ("needed", "untranslated"),
        ("review", "fuzzy"),
        ("machine", "fuzzy"),
        ("checked machine", "approved"),
        ("empty", "untranslated"),
        ("missing", "untranslated"),
        ("offered", "untranslated"),
        ("memsource", "fuzzy"),
        ("trados", "fuzzy"),
    ]


def test_xliff_2_and_a_file_of_several_languages(tmp_path: Path) -> None:
    second = (
        '<xliff version="2.0" srcLang="en" trgLang="fr"><file><unit id="u"><segment state="reviewed">'
        "<source>one</source>"
        '<target>un</target></segment><ignorable><source> </source></ignorable><segment state="initial">'
        "<source>two</source><target>two</target></segment></unit></file></xliff>"
    )
    files = "".join(
        f'<file source-language="en" target-language="{code}"><body>{trans_unit("house", word)}</body></file>'
        for code, word in (("de", "Haus"), ("fr", "maison"), ("es", "casa"))
    )
    write(tmp_path, {"a.xliff": second, "b.xlf": f'<xliff version="1.2">{files}</xliff>'})
    found = records(tmp_path)
    assert [(entry.src, entry.tgt, entry.state) for _, entries in found for entry in entries] == [
        ("one", "un", "approved"),
        ("two", "two", "untranslated"),
        ("house", "maison", ""),
    ]
    assert found[1][0].fates == {"other languages": 2}


# -- a file in each language ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("en/a.txt", "fr/a.txt"),
        ("docs/en/deep/a.txt", "docs/fr/deep/a.txt"),
        ("a.en.txt", "a.fr.txt"),
        ("a_EN.txt", "a_FR.txt"),
        ("a-en-US.txt", "a-fr-FR.txt"),
        ("corpus.en", "corpus.fr"),
        ("en-fr/corpus.en", "en-fr/corpus.fr"),
        ("English/a.txt", "French/a.txt"),
        ("app_en.txt", "app_fr.txt"),
        ("help-en-us/x/en-US/a.txt", "help-fr/x/fr/a.txt"),
        ("a.txt", "a.fr.txt"),
        ("docs/a.txt", "docs/fr/a.txt"),
        ("values/a.txt", "values-fr/a.txt"),
        ("values/a.txt", "values-fr-rFR/a.txt"),
    ],
)
def test_the_two_files_of_a_text_are_told_by_their_names(tmp_path: Path, one: str, other: str) -> None:
    write(tmp_path, {one: "house\n", other: "maison\n"})
    assert read(tmp_path) == {f"{one} and {other}": [("house", "maison")]}
    if one != "a.txt":
        assert list(read(tmp_path, ("fr", "en")).values()) == [[("maison", "house")]]


def test_of_the_regions_of_a_text_the_one_that_is_asked_for_is_taken(tmp_path: Path) -> None:
    files = {
        "values/s.xml": "screen",
        "values-pt/s.xml": "monitor",
        "values-pt-rBR/s.xml": "tela",
        "values-pt-rPT/s.xml": "ecrã",
    }
    write(tmp_path, {name: f'<resources><string name="x">{text}</string></resources>' for name, text in files.items()})
    assert read(tmp_path, ("en", "pt_BR")) == {"values/s.xml and values-pt-rBR/s.xml": [("screen", "tela")]}


def test_a_file_without_its_translation_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"a.en.txt": "house\n", "b.fr.md": "maison\n", "notes.pdf": b"%PDF-", "README": "x"})
    assert notes(tmp_path) == {
        "a.en.txt": "no file beside it is its translation (fr)",
        "b.fr.md": "no file beside it is its translation (en)",
        "notes.pdf": "not of a kind that holds pairs",
        "README": "not of a kind that holds pairs",
    }


def test_messages_of_android_are_joined_by_name_plurals_by_quantity_lists_by_order(tmp_path: Path) -> None:
    english = (
        '<resources><string name="b">back</string><string name="only">only</string><string name="it">it\\\'s</string>'
        '<string name="fix" translatable="false">App</string>'
        '<plurals name="n"><item quantity="one">%d day</item><item quantity="other">%d days</item></plurals>'
        '<string-array name="l"><item>red</item><item>blue</item></string-array></resources>'
    )
    french = (
        '<resources><string-array name="l"><item>rouge</item><item>bleu</item></string-array>'
        '<plurals name="n"><item quantity="other">%d jours</item><item quantity="many">%d de jours</item>'
        '<item quantity="one">%d jour</item></plurals><string name="it">c\\\'est</string>'
        '<string name="b">retour</string></resources>'
    )
    write(tmp_path, {"values/strings.xml": english, "values-fr/strings.xml": french})
    [(_, entries)] = records(tmp_path)
    assert [(entry.src, entry.tgt) for entry in entries if entry.is_translated] == [
        ("back", "retour"),
        ("it's", "c'est"),
        ("%d day", "%d jour"),
        ("%d days", "%d jours"),
        ("red", "rouge"),
        ("blue", "bleu"),
    ]


def test_texts_of_unequal_lengths_are_aligned_by_length(tmp_path: Path) -> None:
    english = [
        f"This is the sentence number {number} of a text{' that goes on' * (number % 4)}." for number in range(30)
    ]
    french = [f"Voici la phrase numéro {number} d'un texte{' qui continue' * (number % 4)}." for number in range(30)]
    write(
        tmp_path,
        {
            "a.en.txt": "\n".join(english),
            "a.fr.txt": "\n".join([*french[:10], "Une remarque du traducteur.", *french[10:]]),
        },
    )
    [pairs] = read(tmp_path).values()
    assert set(pairs) <= set(zip(english, french, strict=True))
    assert len(pairs) > 25


def test_of_two_documents_one_may_not_be_far_shorter(tmp_path: Path) -> None:
    """A page of which only the beginning is translated was put beside it by length, which gave wrong pairs."""
    text = "\n\n".join(f"This is paragraph {number} of the guide, and it goes on for a while." for number in range(30))
    write(tmp_path, {"a.en.md": text, "a.fr.md": "Voici le premier paragraphe du guide.\n\nSuite."})
    write(tmp_path, {"b.en.txt": text, "b.fr.txt": "Voici le premier paragraphe du guide.\n"})
    assert read(tmp_path) == {}
    assert all("hardly translations" in note for note in notes(tmp_path).values())
    assert len(notes(tmp_path)) == 2


# -- folders --------------------------------------------------------------------------------------------------------


def test_broken_files_are_named_and_the_others_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.tmx": tmx(unit(en="one", fr="un")),
            "broken.tmx": tmx(unit(en="one", fr="un")).replace("</body>", ""),
            "broken.po": 'msgid "a"\nmsgstr "b\n',
            "broken.mo": compiled([("", "Language: fr\n")])[:30],
            "broken.xlsx": b"PK nothing",
            "broken.csv": "été;summer\n".encode() + b"\xff;x\n",
            "broken.en.docx": b"no zip",
            "broken.fr.docx": b"no zip",
            "empty.po": "",
            "empty.tmx": "",
        },
    )
    assert read(tmp_path) == {"a.tmx": [("one", "un")], "empty.po": []}
    said = notes(tmp_path)
    assert said.keys() == {
        "broken.tmx", "broken.po", "broken.mo", "broken.xlsx", "broken.csv", "broken.en.docx and broken.fr.docx",
        "empty.tmx",
    }  # fmt: skip
    assert "broken.tmx:4" in said["broken.tmx"]
    assert "broken.po:2" in said["broken.po"]


def test_hidden_files_and_folders_are_left_out_but_not_where_they_are_named(tmp_path: Path) -> None:
    write(tmp_path, {".a.tmx": tmx(unit(en="one", fr="un")), ".git/b.tmx": tmx(unit(en="two", fr="deux")), "c.txt": ""})
    assert list(paths_of(CollectionConfig(paths=[str(tmp_path)]))) == ["c.txt"]
    assert list(read(tmp_path / ".a.tmx")) == [".a.tmx"]
    assert list(read(tmp_path / ".git")) == ["b.tmx"]


def test_links_to_folders_are_followed_each_folder_once(tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/b.tmx": tmx(unit(en="one", fr="un")), "folder/a.txt": ""})
    folder = tmp_path / "folder"
    os.symlink(tmp_path / "elsewhere", folder / "linked")
    os.symlink(tmp_path / "elsewhere", folder / "linked again")
    os.symlink(folder, folder / "circle")
    os.symlink(tmp_path / "nowhere", folder / "dangling.tmx")
    assert list(paths_of(CollectionConfig(paths=[str(folder)]))) == ["a.txt", "linked/b.tmx"]


def test_patterns_names_with_brackets_and_paths_that_are_not_there(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"[en] x/a.tmx": tmx(unit(en="one", fr="un")), "y/b.tmx": tmx(unit(en="two", fr="deux")), "y/c.txt": ""},
    )
    assert list(read(tmp_path / "[en] x")) == ["a.tmx"]
    assert list(read(tmp_path / "**" / "*.tmx")) == ["a.tmx", "b.tmx"]
    with raises_error(Error.MISSING_FILE):
        paths_of(CollectionConfig(paths=[str(tmp_path / "z" / "*.tmx")]))


def test_a_file_that_is_named_twice_is_read_once_and_two_of_one_name_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path, {"x/a.tmx": tmx(unit(en="one", fr="un")), "y/a.tmx": tmx(unit(en="two", fr="deux"))})
    paths = [str(tmp_path / "x"), str(tmp_path / "x/a.tmx"), str(tmp_path), str(tmp_path / "y")]
    assert list(read(tmp_path, paths=paths)) == ["a.tmx", "y/a.tmx"]
    paths = [str(tmp_path / "x"), str(tmp_path / "y")]
    assert list(read(tmp_path, paths=paths)) == ["a.tmx", f"{tmp_path}/y/a.tmx"]


def test_a_copy_of_a_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"a.tmx": tmx(unit(en="one", fr="un")), "old/a.tmx": tmx(unit(en="one", fr="un"))})
    assert list(read(tmp_path)) == ["a.tmx"]
    assert notes(tmp_path) == {"old/a.tmx": "the same bytes as a.tmx"}


def test_documents_are_files_or_the_first_folders(tmp_path: Path) -> None:
    write(
        tmp_path, {"app/fr.po": po(message("a", "b")), "app/doc/fr.po": po(message("c", "d")), "e.en": "e", "e.fr": "f"}
    )
    assert [record.document for record, _ in records(tmp_path)] == ["app/doc/fr.po", "app/fr.po", "e.en"]
    assert [record.document for record, _ in records(tmp_path, documents="folder")] == ["app", "app", "e.en"]


def test_columns_that_are_named(tmp_path: Path) -> None:
    write(tmp_path, {"a.csv": "no,alt,neu\n7,open,ouvrir\n"})
    assert notes(tmp_path)
    assert read(tmp_path, columns=("alt", "neu")) == {"a.csv": [("open", "ouvrir")]}


@pytest.mark.parametrize(
    "above", [["Glossary of 2024"], ["Client;;ACME", ";;;", "Words"], ["Glossaire;;v2", "Source: the shop"]]
)
def test_a_title_above_the_heading_of_a_table(tmp_path: Path, above: list[str]) -> None:
    rows = ["No;English;Note;French", "1;door;;porte", "2;window;old;fenêtre"]
    write(tmp_path, {"a.csv": "\n".join([*above, *rows]) + "\n"})
    assert read(tmp_path) == {"a.csv": [("door", "porte"), ("window", "fenêtre")]}
    assert read(tmp_path, columns=["english", "note"]) == {"a.csv": [("door", ""), ("window", "old")]}


@pytest.mark.parametrize(
    ("codec", "language", "word"),
    [("cp1252", "fr", "fenêtre"), ("cp1251", "ru", "окно"), ("cp1250", "pl", "książka"), ("cp932", "ja", "窓と扉")],
)
def test_a_table_as_windows_writes_it(tmp_path: Path, codec: str, language: str, word: str) -> None:
    table = f"en;{language}\nwindow;{word}\nwall; {word} {word}\n".encode(codec)
    write(tmp_path, {"a.csv": table})
    assert [pair for pairs in read(tmp_path, ("en", language)).values() for pair in pairs] == [
        ("window", word), ("wall", f"{word} {word}")
    ]  # fmt: skip
    write(tmp_path, {"a.csv": f"en;{language}\nwindow;{word}\n".encode() + b"x;\xe9\n"})  # damaged, and no Windows
    assert "not UTF-8" in notes(tmp_path, ("en", language))["a.csv"]


def test_a_long_text_is_aligned_in_a_band() -> None:
    english = [f"{number} {'word ' * (number * 7 % 30)}" for number in range(3000)]
    french = [f"{number} {'parole ' * (number * 7 % 30)}" for number in range(3000)]
    pairs = list(aligned(english, [*french[:1500], "une ligne de plus", *french[1500:]]))
    assert len(pairs) > 2900
    assert sum(tgt == src + (src >= 1500) for src, tgt in pairs) > 2900


@pytest.mark.parametrize(
    "record",
    [
        '{"translation": {"en": "a cat", "fr": "un chat"}}',
        '{"id": 1, "en": "a cat", "fr": "un chat"}',
        '{"eng": "a cat", "fra": "un chat"}',
        '{"source": "a cat", "target": "un chat"}',
        '{"src": "a cat", "tgt": "un chat"}',
    ],
)
def test_records_of_json_are_read_by_the_keys_that_they_have(tmp_path: Path, record: str) -> None:
    assert read(write(tmp_path, {"c.jsonl": f"{record}\n"})) == {"c.jsonl": [("a cat", "un chat")]}


def test_other_keys_of_json_are_asked_for_and_named(tmp_path: Path) -> None:
    write(tmp_path, {"c.jsonl": '{"input": "a cat", "output": "un chat"}\n'})
    assert "columns" in notes(tmp_path)["c.jsonl"]
    assert read(tmp_path, columns=("input", "output")) == {"c.jsonl": [("a cat", "un chat")]}


def test_records_of_parquet_are_read_by_the_keys_that_they_have(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"translation": {"en": "a cat", "fr": "un chat"}}]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "c.parquet")
    assert read(tmp_path) == {"c.parquet": [("a cat", "un chat")]}


def test_it_is_said_how_a_file_of_pairs_with_another_name_is_read(tmp_path: Path) -> None:
    write(tmp_path, {"fra.txt": "a cat\tun chat\tCC-BY\n", "c.json": '[{"en": "a cat"}]', "notes.txt": "a cat\n"})
    reasons = notes(tmp_path)
    assert ".tsv" in reasons["fra.txt"]
    assert ".jsonl" in reasons["c.json"]
    assert ".tsv" not in reasons["notes.txt"]
