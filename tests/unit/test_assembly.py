"""One corpus of many files: how an entry is cleaned, which of several translations is kept, and how it is split."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error
from tests.unit.test_collection import EN_FR, message, po, tmx, trans_unit, unit, write, xliff

from dragoman.alignment.learnt_markup import without_tags
from dragoman.analysis.collection_page import write_collection_page
from dragoman.doctor.assembly import LEFT_OUT, ORIGINS, Assembly, assemble, cleaned, gathered, near_key, summary
from dragoman.errors import Error
from dragoman.formats.base import Entry, State
from dragoman.tasks.collection import prepare_collection
from dragoman.text.corpus import CollectionConfig

WORDS = {
    "house": "maison", "garden": "jardin", "river": "rivière", "mountain": "montagne", "window": "fenêtre",
    "kitchen": "cuisine", "summer": "été", "winter": "hiver", "teacher": "professeur", "doctor": "médecin",
    "village": "village", "market": "marché", "bridge": "pont", "castle": "château", "forest": "forêt",
}  # fmt: skip


def sentence(number: int) -> tuple[str, str]:
    """Made-up sentences of which no two are near copies."""
    draw = random.Random(number)
    a, b, c, d, e = draw.choices(list(WORDS), k=5)
    english = f"The {a} and the {b} are near the old {c}, but the {d} of the {e} is not."
    a, b, c, d, e = (WORDS[word] for word in (a, b, c, d, e))
    return english, f"La {a} et le {b} sont près du vieux {c}, mais le {d} de la {e} ne l'est pas."


def catalogue(numbers: Sequence[int], header: str = "Language: fr\\n") -> str:
    return po(*(message(*sentence(number)) for number in numbers), header=header)


def one(src: str, tgt: str, state: State = "") -> tuple[str, str, str]:
    [found] = cleaned(Entry(1, src, tgt, state))
    return found


def of(folder: Path, languages: tuple[str, str] = EN_FR, **config: Any) -> Assembly:
    return gathered(CollectionConfig(**{"paths": [str(folder)], **config}), languages)


def kept(assembly: Assembly) -> list[tuple[str, str]]:
    return [(row.src, row.tgt) for rows in assembly.splits.values() for row in rows]


# -- one entry ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("src", "tgt", "expected"),
    [
        ("_Open", "_Ouvrir", ("Open", "Ouvrir")),
        ("E&xit", "&Quitter", ("Exit", "Quitter")),
        ("&File", "文件(&F)", ("File", "文件")),
        ("~Save", "~Enregistrer", ("Save", "Enregistrer")),
        ("_Close all", "Tout fermer", ("Close all", "Tout fermer")),
        ("set file_name", "régler file_name", ("set file_name", "régler file_name")),
        ("R&D costs", "Coûts de R&D", ("R&D costs", "Coûts de R&D")),
        ("<b>Bold</b> text", "Texte <b>gras</b>", ("Bold text", "Texte gras")),
        ("<b>Bold</b> text", "Texte gras", ("Bold text", "Texte gras")),
        ("One<br>two", "Un\ndeux", ("One two", "Un deux")),
        ('See <a href="x.en">this</a>', 'Voir <a href="x.fr">ceci</a>', ("See this", "Voir ceci")),
        ("One<br/>two", "Un<br/>deux", ("One two", "Un deux")),
        ("Copy <file> here", "Copier <fichier> ici", ("Copy <file> here", "Copier <fichier> ici")),
        ("See <https://x.org/a>.", "Voir <https://x.org/a>.", ("See <https://x.org/a>.", "Voir <https://x.org/a>.")),
        ("Salt &amp; pepper", "Sel &amp; poivre", ("Salt & pepper", "Sel & poivre")),
        ("Name:", "Nom&nbsp;:", ("Name:", "Nom\xa0:")),
        ("Script|Arabic", "Arabe", ("Arabic", "Arabe")),
        ("Open Inset|O", "Einfügung öffnen|ö", ("Open Inset", "Einfügung öffnen")),
        ("Key for left|L", "G", ("L", "G")),
        ("male,unmarried|ex-partner", "ex-compagnon", ("ex-partner", "ex-compagnon")),
        ("is `a' or `%s'", "est « a » ou « %s »", ("is `a' or `%s'", "est « a » ou « %s »")),
        ("_: a verb\nOpen", "Ouvrir", ("Open", "Ouvrir")),
        ("?plural:Elves", "Elfes", ("Elves", "Elfes")),
        ("?help: keys", "?aide : touches", ("?help: keys", "?aide : touches")),
        ("Add a row", "Ajout d’une ligne\najout d’une ligne", ("Add a row", "Ajout d’une ligne")),
        ("a | b", "a | c", ("a | b", "a | c")),
        ("Files", "Fichiers|/|$[accusatif]", ("Files", "Fichiers")),
        ("two\nlines  and\tmore", "deux\nlignes", ("two lines and more", "deux lignes")),
        ("%s of %s", "%2$s depuis %1$s", None),
        ("Hello %s", "Bonjour %1$s", ("Hello %s", "Bonjour %1$s")),
    ],
)  # fmt: skip
def test_an_entry_is_read_as_a_localiser_reads_it(src: str, tgt: str, expected: tuple[str, str] | None) -> None:
    expected = (src, tgt) if expected is None else expected
    assert one(src, tgt) == (*expected, "" if any(map(str.isalpha, src.replace("%s", ""))) else "no words")


@pytest.mark.parametrize(
    ("src", "tgt", "state", "reason"),
    [
        ("guess", "devine", "fuzzy", "fuzzy"),
        ("none", "", "", "not translated"),
        ("none", "none", "untranslated", "not translated"),
        ("  ", "x", "", "not translated"),
        ("Dragoman", "Dragoman", "", "same on both sides"),
        ("<b>GTK</b>", "GTK", "", "same on both sides"),
        ("<a href='x'>Open</a>", "Ouvrir", "", "placeholders differ"),
        ("%d: {name}", "%d : {name}", "", "no words"),
        ("Hello {name}", "Bonjour {nom}", "", "placeholders differ"),
        ("See https://a.org", "Voir", "", "placeholders differ"),
        ("One file", "%d fichier", "", "placeholders differ"),
    ],
)
def test_an_entry_that_teaches_nothing_is_left_out_with_its_reason(
    src: str, tgt: str, state: State, reason: str
) -> None:
    assert one(src, tgt, state)[2] == reason


def test_paragraphs_are_pairs_where_both_sides_have_as_many() -> None:
    assert [pair[:2] for pair in cleaned(Entry(1, "One.\n\nTwo.", "Un.\n \nDeux."))] == [
        ("One.", "Un."),
        ("Two.", "Deux."),
    ]
    assert [pair[:2] for pair in cleaned(Entry(1, "One.\n\nTwo.", "Un. Deux."))] == [("One. Two.", "Un. Deux.")]


# -- conflicts and copies -------------------------------------------------------------------------------------------


def test_of_several_translations_the_approved_one_is_kept_then_the_newest_then_the_most_frequent(
    tmp_path: Path,
) -> None:
    old, new = 'changedate="20200101T000000Z"', 'changedate="20240101T000000Z"'
    write(
        tmp_path,
        {
            "a.tmx": tmx(
                unit(new, en="The door", fr="La porte"),
                unit(old, en="The window", fr="La vieille fenêtre"),
                unit(new, en="The window", fr="La fenêtre"),
                unit(en="The bridge", fr="Le pont rare"),
                unit(en="The river", fr="Le fleuve"),
            ),
            "b.tmx": tmx(
                unit(en="The bridge", fr="Le pont"),
                unit('tuid="2"', en="The bridge", fr="Le pont"),
                unit(en="The river", fr="La rivière"),
            ),
            "c.xlf": xliff(trans_unit("The door", "La grande porte", 'approved="yes"')),
        },
    )
    assembly = of(tmp_path)
    assert sorted(kept(assembly)) == [
        ("The bridge", "Le pont"),
        ("The door", "La grande porte"),
        ("The river", "Le fleuve"),
        ("The window", "La fenêtre"),
    ]
    assert assembly.conflicting == 4
    assert assembly.totals()["another translation"] == 4
    assert {conflict["src"]: conflict["place"] for conflict in assembly.conflicts}["The door"] == "c.xlf:1"
    bridge = next(conflict for conflict in assembly.conflicts if conflict["src"] == "The bridge")
    assert (bridge["times"], bridge["others"]) == (2, [{"tgt": "Le pont rare", "times": 1}])


def test_near_copies_are_left_out_and_the_order_stays(tmp_path: Path) -> None:
    entries = [
        ("Page 12 of the book", "Page 12 du livre"),
        ("Another thing", "Une autre chose"),
        ("page 7 of the book.", "page 7 du livre."),
        ("Page 12 of the book", "Page 12 du livre"),
        ("Page 12 of the book", "Page 12 du livre!"),
    ]
    write(
        tmp_path,
        {"b.po": po(*(message(*pair) for pair in entries)), "a.po": po(message("Zebras run", "Les zèbres courent"))},
    )
    assembly = of(tmp_path)
    assert kept(assembly) == [("Zebras run", "Les zèbres courent"), *entries[:2]]
    assert assembly.totals()["copy"] + assembly.totals()["another translation"] == 3
    assert near_key("Été, 12!") == near_key("été 3")


def test_the_doctor_mends_and_drops(tmp_path: Path) -> None:
    pairs = [*map(sentence, range(60)), ("A man of cafÃ©", "Un homme de cafÃ©"), sentence(99)[::-1]]
    write(tmp_path, {"a.po": po(*(message(*pair) for pair in pairs))})
    assembly = of(tmp_path)
    assert ("A man of café", "Un homme de café") in kept(assembly)
    assert assembly.totals()["wrong language"] == 1
    assert assembly.diagnosis is not None
    assert assembly.diagnosis.has("mojibake")


# -- training, validation and test ----------------------------------------------------------------------------------


def many_files(folder: Path) -> Path:
    """A hundred catalogues of four messages each."""
    return write(folder, {f"{place:02}/fr.po": catalogue(range(4 * place, 4 * place + 4)) for place in range(100)})


def test_no_document_stands_in_two_splits(tmp_path: Path) -> None:
    assembly = of(many_files(tmp_path), held_out=20)
    assert assembly.split_by == "document"
    files = {name: {row.file for row in rows} for name, rows in assembly.splits.items()}
    assert all(files.values())
    assert not files["train"] & files["valid"] | files["train"] & files["test"] | files["valid"] & files["test"]
    sizes = {name: len(rows) for name, rows in assembly.splits.items()}
    assert 4 <= sizes["valid"] <= 8  # a fiftieth of all
    assert 4 <= sizes["test"] <= 8
    assert sizes["train"] > 350


def test_a_single_document_is_split_by_sentence(tmp_path: Path) -> None:
    write(tmp_path, {"a.po": catalogue(range(300))})
    assembly = of(tmp_path)
    assert assembly.split_by == "sentence"
    assert all(assembly.splits.values())


def test_the_first_folder_may_be_the_document(tmp_path: Path) -> None:
    files = {f"p{number % 10}/{number}/fr.po": catalogue(range(9 * number, 9 * number + 9)) for number in range(50)}
    write(tmp_path, files)
    assembly = of(tmp_path, documents="folder", held_out=100)
    assert assembly.split_by == "sentence"  # a folder has more than a fiftieth
    write(tmp_path, {f"q{number}/x/fr.po": catalogue([1000 + number]) for number in range(30)})
    assembly = of(tmp_path, documents="folder")
    assert assembly.split_by == "document"


def test_what_is_held_out_is_not_nearly_in_training(tmp_path: Path) -> None:
    many_files(tmp_path)
    others = [
        (src.replace("is not", "was not"), f"{tgt} Vraiment, disait-on, {number}.")
        for number, (src, tgt) in enumerate(map(sentence, range(400)))
    ]
    write(tmp_path, {"z.po": po(*(message(*pair) for pair in others))})
    assembly = of(tmp_path)
    keys = [{near_key(row.src) for row in rows} for rows in assembly.splits.values()]
    assert not keys[0] & keys[1] | keys[0] & keys[2] | keys[1] & keys[2]
    held = {row.src for name in ("valid", "test") for row in assembly.splits[name]}
    train = {row.src for row in assembly.splits["train"]}
    assert not {text.replace("is not", "was not") for text in held} & train
    assert assembly.totals()["nearly held out"] >= len(held) - 8


def test_a_few_pairs_are_not_split_and_training_refuses_them(tmp_path: Path) -> None:
    write(tmp_path / "in", {"a.po": catalogue(range(10))})
    assembly = of(tmp_path / "in")
    assert {name: len(rows) for name, rows in assembly.splits.items()} == {"train": 10, "valid": 0, "test": 0}
    assert "too few to split" in summary(assembly)[-1]
    with raises_error(Error.TOO_FEW):
        prepare_collection(CollectionConfig(paths=[str(tmp_path / "in")]), EN_FR, tmp_path / "run")


def test_files_that_are_not_read_are_named_and_copies_counted(tmp_path: Path) -> None:
    write(tmp_path, {"a.po": catalogue(range(10)), "b.po": catalogue(range(10)), "c.po": 'msgid "a\n'})
    lines = summary(of(tmp_path))
    assert lines[0] == "1 files read; 10 entries; copies of other files: 1"
    assert lines[1].startswith("not read: 1 (c.po: ")


def test_a_folder_without_a_pair_is_refused_with_the_first_reasons(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with raises_error(Error.EMPTY):
        of(tmp_path / "empty")
    write(tmp_path / "one", {"a.tmx": "no", "b.po": po(message("a", ""))})
    with raises_error(Error.EMPTY, "a.tmx"):
        of(tmp_path / "one")


# -- what is written ------------------------------------------------------------------------------------------------


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    many_files(tmp_path / "in")
    for name in ("one", "other"):
        assemble(CollectionConfig(paths=[str(tmp_path / "in")]), EN_FR, tmp_path / name)
        write_collection_page(tmp_path / name)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    texts = [f"{split}.{code}" for split in ("test", "train", "valid") for code in EN_FR]
    assert names == ["files.html", "files.json", "left_out.tsv", "origins.tsv", *texts]
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes() for name in names)


def test_the_page_and_the_tables_say_what_came_from_where(tmp_path: Path) -> None:
    many_files(tmp_path / "in")
    write(
        tmp_path / "in",
        {
            "x.po": po(message("<Guess>", "Devine", "#, fuzzy\n"), message("Name", "Name")),
            "bad.tmx": "<tmx>",
            "notes.doc": "x",
        },
    )
    assemble(CollectionConfig(paths=[str(tmp_path / "in")]), EN_FR, tmp_path / "out")
    page = write_collection_page(tmp_path / "out").read_text(encoding="utf-8")
    assert "<Guess>" not in page
    for text in ("&lt;Guess&gt;", "bad.tmx:1", "notes.doc", "not of a kind that holds pairs"):
        assert text in page
    record = json.loads((tmp_path / "out/files.json").read_text(encoding="utf-8"))
    assert record["totals"]["fuzzy"] == 1
    assert record["read"] == 402
    lines = (tmp_path / "out" / LEFT_OUT).read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == ["file", "line", "reason", "source", "target"]
    assert "x.po\t8\tsame on both sides\tName\tName" in lines
    train = (tmp_path / "out/train.en").read_text(encoding="utf-8").splitlines()
    origins = [line.split("\t") for line in (tmp_path / "out" / ORIGINS).read_text(encoding="utf-8").splitlines()]
    assert len(train) == len(origins) == record["pairs"]["train"]
    name, line = origins[0]
    assert train[0] in (tmp_path / "in" / name).read_text(encoding="utf-8").splitlines()[int(line) - 1]


# -- codes ----------------------------------------------------------------------------------------------------------

GEARED = [
    # (file, content of it, and of the one in the other language; the pair in training)
    (
        "a.tmx",
        tmx(
            unit(
                en='Click <bpt i="1"/>Open<ept i="1"/> it<ph x="2"/>',
                fr='Cliquez<ph x="2"/> <bpt i="1"/>Ouvrir<ept i="1"/>',
            )
        ),
        None,
        ("Click <1>Open</1> it<2/>", "Cliquez<2/> <1>Ouvrir</1>"),
    ),
    (
        "a.xlf",
        xliff(trans_unit('A<x id="1"/>b is <g id="2">red</g>', 'A<x id="1"/>b est <g id="2">rouge</g>')),
        None,
        ("A <1/>b is <2>red</2>", "A <1/>b est <2>rouge</2>"),
    ),
    (
        "a.po",
        po(message("<b>_Open</b> &amp; go<br>now", "<b>_Ouvrir</b> &amp; aller<br>vite")),
        None,
        ("<b>Open</b> & go <br>now", "<b>Ouvrir</b> & aller <br>vite"),
    ),
    ("a.en.txt", "See <i>it</i>\n", "Voyez <i>le</i>\n", ("See <i>it</i>", "Voyez <i>le</i>")),
    (
        "a.en.html",
        '<p>It is red. See <a href="en/">the page</a>, <b>please</b>.</p>',
        '<p>Il est rouge. Voyez <b>donc</b> <a href="fr/">la page</a>.</p>',
        ("See <1>the page</1>, <2>please</2>.", "Voyez <2>donc</2> <1>la page</1>."),
    ),
    (
        "values/strings.xml",
        '<resources><string name="x">one <b>file</b></string></resources>',
        '<resources><string name="x">un <b>fichier</b></string></resources>',
        ("one <1>file</1>", "un <1>fichier</1>"),
    ),
    (
        "a.en.md",
        "See **it** [here](en)\n",
        "Voyez **le** [ici](fr)\n",
        ("See <1>it</1> <2>here</2>", "Voyez <1>le</1> <2>ici</2>"),
    ),
]


@pytest.mark.parametrize(("name", "content", "other", "expected"), GEARED, ids=lambda value: str(value)[:12])
def test_training_pairs_have_their_codes_where_they_are_learnt(
    name: str, content: str, other: str | None, expected: tuple[str, str], tmp_path: Path
) -> None:
    there = {name: content, "b.po": catalogue(range(120))}
    if other is not None:
        there[name.replace(".en.", ".fr.").replace("values", "values-fr")] = other
    write(tmp_path / "in", there)
    config = CollectionConfig(paths=[str(tmp_path / "in")])
    plain, coded = (assemble(config, EN_FR, tmp_path / str(codes), codes=codes) for codes in (False, True))
    assert [row[:3] for row in plain.splits["train"]] == [row[:3] for row in coded.splits["train"]]
    for split in ("valid.en", "test.fr", ORIGINS, LEFT_OUT, "files.json"):
        assert (tmp_path / "True" / split).read_bytes() == (tmp_path / "False" / split).read_bytes()
    lines = [(tmp_path / "True" / f"train.{code}").read_text("utf-8").splitlines() for code in EN_FR]
    assert expected in list(zip(*lines, strict=True))
    bare = [(tmp_path / "False" / f"train.{code}").read_text("utf-8").splitlines() for code in EN_FR]
    assert not any("<" in line for side in bare for line in side)
    assert [[without_tags(line) for line in side] for side in lines] == bare


def test_codes_count_neither_as_text_of_a_copy_nor_of_a_leak(tmp_path: Path) -> None:
    units = [unit(en=f"<hi>{src[:9]}</hi>{src[9:]}", fr=tgt) for src, tgt in map(sentence, range(200))]
    same = [unit(en=src, fr=tgt) for src, tgt in map(sentence, range(200))]
    write(tmp_path, {"a.tmx": tmx(*units), "b.tmx": tmx(*same)})
    config = CollectionConfig(paths=[str(tmp_path)])
    plain, coded = (gathered(config, EN_FR, codes=codes) for codes in (False, True))
    assert plain.totals() == coded.totals()
    assert coded.totals()["copy"] == 200
    assert [row.trained for row in plain.splits["train"]] == [(row.src, row.tgt) for row in coded.splits["train"]]
    assert all(row.trained[0].startswith("<1>") for row in coded.splits["train"])
