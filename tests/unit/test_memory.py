"""Translation memories, and the files that they and glossaries come in."""

import gzip
import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from rapidfuzz import fuzz
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.inference.translation import Translation
from dragoman.pipeline.memory import LayeredMemory, TranslationMemory, from_memory
from dragoman.pipeline.sentence_pairs import sentence_pairs, with_sentences
from dragoman.pipeline.splitter import Splitter
from dragoman.quality.warnings import WarningKind
from dragoman.text.glossary import Glossary

TMX = (
    '<tmx version="1.4"><body><tu><tuv xml:lang="de-DE"><seg>Datei <ph>x</ph>öffnen</seg></tuv>'
    '<tuv xml:lang="en"><seg>Open <hi>file</hi></seg></tuv></tu>'
    '<tu><tuv xml:lang="de"><seg>nur Deutsch</seg></tuv></tu></body></tmx>'
)
TBX = (
    '<tbx><text><body><termEntry><langSet xml:lang="de"><tig><term>Hund</term></tig></langSet>'
    '<langSet xml:lang="en"><tig><term>hound</term></tig></langSet></termEntry></body></text></tbx>'
)
TBX_3 = TBX.replace("termEntry", "conceptEntry").replace("langSet", "langSec").replace("tig>", "termSec>")


def test_what_is_in_a_memory_is_said_again(tmp_path: Path) -> None:
    for name, text in {
        "a.tmx": TMX,
        "b.tsv": "Datei öffnen\tOpen file\n",
        "c.po": 'msgid "Datei öffnen"\nmsgstr "Open file"\n',
        "d.xlf": "<xliff><trans-unit><source>Datei öffnen</source><target>Open file</target></trans-unit></xliff>",
    }.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        memory = TranslationMemory.load(path, ("de", "en"))
        assert len(memory) == 1
        assert memory.exact(" Datei  öffnen") == "Open file"
        assert memory.exact("Datei öffne") is None
        packed = tmp_path / f"{name}.gz"
        packed.write_bytes(gzip.compress(text.encode()))
        assert TranslationMemory.load(packed, ("de", "en")).exact("Datei öffnen") == "Open file"
    with raises_error(Error.EMPTY, "a.tmx", "fr", "en"):
        TranslationMemory.load(tmp_path / "a.tmx", ("fr", "en"))


def test_numbers_are_those_of_the_text() -> None:
    memory = TranslationMemory([("Seite 3 von 7", "Page 3 of 7"), ("2 und 2", "2 and 2"), ("Bild 4", "Picture four")])
    assert memory.exact("Seite 10 von 12") == "Page 10 of 12"
    assert memory.exact("3 und 5") is None  # which is which cannot be told
    assert memory.exact("Bild 5") is None  # the number is not in the translation


def test_like_entries_are_those_that_a_comparison_with_all_finds() -> None:
    rng = random.Random(1)
    words = [f"{chr(97 + a)}{chr(97 + b)}word" for a in range(20) for b in range(10)]
    texts = list({" ".join(rng.choice(words) for _ in range(rng.randint(3, 9))) for _ in range(500)})
    memory = TranslationMemory([(text, text.upper()) for text in texts])
    hits = 0
    for text in rng.sample(texts, 100):
        parts = text.split()
        parts[rng.randrange(len(parts))] = rng.choice(words)
        query = " ".join(parts)
        found = memory.like(query)
        all_like = sorted((fuzz.ratio(query, other) / 100 for other in texts), reverse=True)
        wanted = [score for score in all_like if score >= 0.75][:3]
        # Entries that have no word in common may be missed: letters alone make them alike.
        assert [match.similarity for match in found][:1] == pytest.approx(wanted[:1]) or wanted[0] < 0.9
        assert all(match.similarity >= 0.75 and match.tgt == match.src.upper() for match in found)
        hits += bool(found)
    assert hits > 70


def test_entries_come_and_go_as_if_the_memory_were_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.pipeline.memory._MAX_UNINDEXED", 20)
    rng = random.Random(2)
    texts = [f"{rng.choice('abcde')} {rng.choice('fghij')} {rng.choice('klmno')} {row % 7}" for row in range(300)]
    memory, pairs = TranslationMemory([]), dict[str, str]()
    for step, text in enumerate(texts):
        if rng.random() < 0.7:
            memory.add(text, f"{text} / {step}")
            pairs[text] = f"{text} / {step}"
        else:
            gone = rng.choice(texts)
            memory.remove(gone)
            pairs.pop(gone, None)
        anew, query = TranslationMemory(list(pairs.items())), rng.choice(texts)
        assert len(memory) == len(anew)
        assert memory.exact(query) == pairs.get(query, memory.exact(query))
        assert (query in memory) == (query in anew)
        assert [one.similarity for one in memory.like(query)] == [one.similarity for one in anew.like(query)]
        assert all(pairs[one.src] == one.tgt for one in memory.like(query))


def test_threads_look_up_while_entries_come_and_go() -> None:
    memory = TranslationMemory([(f"der Hund {row}", f"the dog {row}") for row in range(50)])
    done = threading.Event()

    def change() -> None:
        for row in range(2000):
            memory.add(f"die Katze {row} ist da", f"the cat {row} is there")
            memory.remove(f"die Katze {row - 5} ist da")
        done.set()

    changing = threading.Thread(target=change)
    changing.start()
    while not done.is_set():
        assert memory.exact("der Hund 7") == "the dog 7"
        assert memory.like("der Hundd 7")[0].tgt == "the dog 7"
    changing.join()
    assert len(memory) == 55


@pytest.mark.parametrize("cut", [True, False])
def test_what_was_corrected_is_found_inside_of_longer_texts(cut: bool) -> None:
    memory = TranslationMemory([("Ein Hund läuft. Er bellt.", "A barking dog runs."), ("Es regnet.", "It is raining.")])
    splitter = Splitter(("de", "en"), sentences=cut, is_whole=memory.__contains__)

    def pieces(text: str) -> list[str]:
        return [piece.text for piece in splitter.pieces(text)]

    assert pieces("Heute. Ein Hund läuft. Er bellt. Morgen.\n- Es regnet. Immer.") == [
        "Heute.", "Ein Hund läuft. Er bellt.", "Morgen.", "Es regnet.", "Immer.",
    ]  # fmt: skip
    others = "Er bellt. Ein Hund läuft. Wer weiß?"
    assert pieces(others) == (["Er bellt.", "Ein Hund läuft.", "Wer weiß?"] if cut else [others])
    assert pieces("Es regnet. Es regnet. Ein Hund. Eine Katze. Es regnet.") == [
        "Es regnet.", "Es regnet.", *(["Ein Hund.", "Eine Katze."] if cut else ["Ein Hund. Eine Katze."]), "Es regnet.",
    ]  # fmt: skip


TOGETHER = ("Ein Hund läuft. Es sind 3 Katzen da!", "A hound runs. There are 3 cats!")


def test_an_entry_of_several_sentences_is_one_of_each_of_them() -> None:
    memory = TranslationMemory([TOGETHER], ("de", "en"))
    assert memory.exact(TOGETHER[0]) == TOGETHER[1]
    assert [memory.exact(text) for text in ("Ein Hund  läuft.", "Es sind 12 Katzen da!", "EIN HUND LÄUFT.")] == [
        "A hound runs.", "There are 12 cats!", "A HOUND RUNS.",
    ]  # fmt: skip
    assert memory.like("Ein Hund läuft!")[0].tgt == "A hound runs."
    assert (len(memory), memory.exact("Es sind Katzen da!")) == (1, None)
    memory.add("Es regnet. Ein Hund läuft.", "It rains. The dog runs.")
    assert memory.exact("Ein Hund läuft.") == "The dog runs."  # the last one counts
    memory.add("Ein Hund läuft.", "One dog is running.")
    assert memory.exact("Ein Hund läuft.") == "One dog is running."  # what was said of it alone counts
    memory.remove("Ein Hund läuft.")
    memory.remove("Es regnet. Ein Hund läuft.")
    assert [memory.exact(text) for text in ("Es regnet.", "Ein Hund läuft.")] == [None, "A hound runs."]
    memory.add(TOGETHER[0], "A dog runs, and 3 cats are there!")  # they align no more
    assert [memory.exact(text) for text in ("Ein Hund läuft.", "Es sind 4 Katzen da!")] == [None, None]
    memory.remove(TOGETHER[0])
    assert not len(memory)
    assert memory.like(TOGETHER[0], least=0.1) == []


def test_sentences_come_and_go_as_if_the_memory_were_made_anew() -> None:
    rng = random.Random(3)
    sentences = ["Ein Hund läuft.", "Es sind 3 da.", "Es sind 5 da.", "Wer ist das?"]
    memory, pairs = TranslationMemory([], ("de", "en")), dict[str, str]()
    for _ in range(300):
        chosen = rng.choices(sentences, k=rng.choice([1, 2, 3]))
        src = " ".join(chosen)
        pairs.pop(src, None)
        if rng.random() < 0.6:
            tgt = " ".join(f"{rng.choice(['The', 'My'])} {text[4:]}" for text in chosen)
            pairs[src] = tgt
            memory.add(src, tgt)
        else:
            memory.remove(src)
        anew = TranslationMemory(list(pairs.items()), ("de", "en"))
        for text in (*sentences, src):
            assert memory.exact(text) == anew.exact(text)
            assert {match.src: match.tgt for match in memory.like(text, 99)} == {
                match.src: match.tgt for match in anew.like(text, 99)
            }


@pytest.mark.parametrize(
    ("src", "tgt", "count"),
    [
        ("Es regnet. Wir gehen um 8.", "It is raining. We leave at 8.", 2),
        ("Es regnet. Wir gehen um 8.", "It is raining at 8. We leave.", 0),  # the number is elsewhere
        ("Es regnet. Klicken Sie auf %s.", "It is raining %s. Click on it.", 0),  # so is a placeholder
        ("Kommst du? Ja.", "Yes. Are you coming?", 0),  # so is the question
        ("Es regnet. Wir gehen.", "It is raining, we leave.", 0),
        ("Nein. Wir gehen heute Abend mit den Kindern ins Kino.", "No, not we, but all of the others. We do.", 0),
        ("- Erster Punkt.\n- Zweiter Punkt", "* First item.\n* Second item", 2),
        ("Ein Hund\nläuft.", "A dog\nruns.", 0),  # a line ends inside of a sentence
        ("Ein Hund läuft.", "A dog runs.", 0),  # a single one
        ("今日は雨です。私たちは8時に出ます。", "It is raining. We leave at 8.", 2),
        ("Es regnet. 12.", "It is raining. 12.", 1),  # nothing to translate in the second
    ],
)
def test_sentences_are_paired_where_they_align(src: str, tgt: str, count: int) -> None:
    languages = ("ja" if src.startswith("今") else "de", "en")
    found = sentence_pairs(src, tgt, languages)
    assert len(found) == count
    assert all(one in src and other in tgt for one, other in found)
    assert with_sentences([(src, tgt)], languages) == [(src, tgt), *found]


@pytest.mark.parametrize("cut", [True, False])
def test_lines_that_were_joined_are_found_where_lines_end_and_nowhere_else(cut: bool) -> None:
    memory = TranslationMemory([("Ein Hund\nläuft.", "A dog runs."), ("Eins. Zwei.", "One, two.")])
    memory.add(" Kapitel 3 \n\n - Der  Anfang.", "Chapter 3:\n\nThe start.")
    assert memory.exact("Ein Hund läuft.") is None
    assert memory.exact("Ein  Hund\r\nläuft. ") == "A dog runs."
    assert memory.exact("Kapitel 12\n- Der Anfang.") == "Chapter 12:\nThe start."
    splitter = Splitter(("de", "en"), sentences=cut, is_whole=memory.__contains__, breaks_inside=memory.breaks_inside)

    def pieces(text: str) -> list[str]:
        return [piece.text for piece in splitter.pieces(text)]

    assert pieces("Heute.\nEin Hund\nläuft.\nMorgen.") == ["Heute.", "Ein Hund\nläuft.", "Morgen."]
    assert pieces("Heute.\nEin Hund\n\nläuft.") == ["Heute.", "Ein Hund\n\nläuft."]
    assert pieces("- Kapitel 3\n- Der Anfang.\nEin Hund") == ["Kapitel 3\n- Der Anfang.", "Ein Hund"]
    assert pieces("Heute.\nEins.\nZwei.") == ["Heute.", "Eins.", "Zwei."]  # one line is no two
    assert pieces("läuft.\nEin Hund") == ["läuft.", "Ein Hund"]
    layered = LayeredMemory([TranslationMemory([]), memory])
    assert layered.breaks_inside("Ein Hund", "läuft.")
    assert not layered.breaks_inside("Ein Hund", "")
    memory.remove("Ein Hund\nläuft.")
    assert pieces("Ein Hund\nläuft.\nNein.") == ["Ein Hund", "läuft.", "Nein."]


def test_a_translator_that_remembers_makes_the_rest() -> None:
    def made(sentences: Sequence[str]) -> list[list[Translation]]:
        return [[Translation(f"made {text}", 0.0, 0.0)] for text in sentences]

    found = from_memory(made, TranslationMemory([("a b", "A B")]), 1, ["c", "a b", ""])
    assert [items[0].text for items in found] == ["made c", "A B", "made "]
    assert [one.kind for one in found[1][0].warnings] == [WarningKind.FROM_MEMORY]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tbx", TBX), ("b.tbx", TBX_3), ("c.csv", "Source,Target\nHund,hound\n"), ("d.csv", "Hund,hound,de,en\n"),
        ("e.csv", 'de,en\nHund,"hound"\n'), ("f.tsv", "Hund\thound\n"),
    ],
)  # fmt: skip
def test_glossaries_in_the_files_of_others(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert Glossary.load(tmp_path / name, ("de", "en")).targets == {"Hund": "hound"}


def test_conflicts_in_a_memory_are_told_and_settled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def unit(src: str, tgt: str, changed: str = "") -> str:
        date = f' changedate="{changed}"' if changed else ""
        return f'<tu{date}><tuv xml:lang="de"><seg>{src}</seg></tuv><tuv xml:lang="en"><seg>{tgt}</seg></tuv></tu>'

    units = [
        unit("Hund", "hound", "20240101T000000Z"), unit("Hund", "dog", "20250101T000000Z"),
        unit("Hund", "mutt", "20230101T000000Z"),
        unit("Katze", "kitty"), unit("Katze", "cat"), unit("Katze", "cat"),
        unit("Maus", "mouse"), unit("Maus", "mouse"),
    ]  # fmt: skip
    path = tmp_path / "memory.tmx"
    path.write_text(f'<tmx version="1.4"><header/><body>{"".join(units)}</body></tmx>', encoding="utf-8")
    memory = TranslationMemory.load(path, ("de", "en"))
    assert [memory.exact(src) for src in ("Hund", "Katze", "Maus")] == ["dog", "cat", "mouse"]
    told = capsys.readouterr().err
    assert told.startswith(f"{path}: 2 sources have several translations: the approved one was kept, else the newest")
    assert "'Hund' is 'dog', not 'hound'" in told
    path.write_text(f'<tmx version="1.4"><header/><body>{units[-1]}</body></tmx>', encoding="utf-8")
    TranslationMemory.load(path, ("de", "en"))
    assert capsys.readouterr().err == ""


SPREADSHEET = (
    "Source;Target;Comment\nHund;hound;\nroter Hund;red hound;with, a comma\n  Katze  ;cat;spaces\n"
    'flange;;no target\n;bride;no source\n"Folie; Master";"slide; master";quoted\nACME;ACME;stays\n'
)
TERMS = {"Hund": "hound", "roter Hund": "red hound", "Katze": "cat", "Folie; Master": "slide; master", "ACME": "ACME"}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("semicolons.csv", SPREADSHEET.encode()),
        ("mark.csv", SPREADSHEET.encode("utf-8-sig")),
        ("windows.csv", SPREADSHEET.replace("\n", "\r\n").encode("utf-16")),
        ("excel.csv", b"sep=;\n" + SPREADSHEET.encode()),
        ("no-heading.csv", SPREADSHEET.partition("\n")[2].encode()),
        ("tabs.tsv", SPREADSHEET.replace("; M", "\0M").replace("; m", "\0m").replace(";", "\t")
                                .replace("\0", "; ").encode()),
        ("codes.csv", SPREADSHEET.replace("Source;Target", "de-DE;en_US").encode()),
        ("plugin.csv", SPREADSHEET.replace("Source;Target", "SourceTerm;TargetTerm").encode()),
        ("named.csv", SPREADSHEET.replace("Source;Target", "German term;English term").encode()),
        ("turned.csv", b"Comment;English;Deutsch (de)\n" + "\n".join(
            ";".join(reversed(line.split(";"))) for line in SPREADSHEET.splitlines()[1:] if '"' not in line
        ).encode() + b'\nquoted;"slide; master";"Folie; Master"\n'),
        ("lines", b"# ours\nHund = hound\nroter Hund=red hound\nKatze\tcat\nFolie; Master = slide; master\nACME\n"),
    ],
)  # fmt: skip
def test_a_glossary_as_spreadsheets_write_it(
    name: str, data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(data)
    assert Glossary.load(tmp_path / name, ("de", "en")).targets == TERMS
    if name != "lines":
        first, second = capsys.readouterr().err.splitlines()
        assert "'flange' has no translation: left out" in first
        line = int(first.partition(f"{name}:")[2].partition(":")[0])
        assert f"{name}:{line + 1}: 'bride' is the translation of nothing: left out" in second


def test_a_glossary_in_a_workbook(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["No", "Source", "Target"], [1, "Hund", "hound"], [2, "Katze", None], [3, "ACME", "ACME"]):
        book.active.append(row)
    book.create_sheet("empty")
    for row in (["No", "Source", "Target"], [1, "Maus", "mouse"]):
        book.create_sheet("more").append(row) if row[0] == "No" else book["more"].append(row)
    book.save(tmp_path / "terms.xlsx")
    assert Glossary.load(tmp_path / "terms.xlsx", ("de", "en")).targets == {
        "Hund": "hound",
        "ACME": "ACME",
        "Maus": "mouse",
    }


def test_numbers_and_dates_are_no_terms() -> None:
    table = b"1;2024-01-02;Hund;hound;noun\n2;2024-01-03;Katze;cat;noun\n"
    assert Glossary.read(table, "terms.csv").targets == {"Hund": "hound", "Katze": "cat"}


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Hund = hound", {"Hund": "hound"}), ("Hund\thound\nACME", {"Hund": "hound", "ACME": "ACME"}),
        ("Hund;hound\nKatze;cat", {"Hund": "hound", "Katze": "cat"}), ("Hallo, Welt\nACME", None),
    ],
)  # fmt: skip
def test_a_glossary_in_a_request(text: str, terms: dict[str, str] | None) -> None:
    assert Glossary.of_text(text).targets == (terms or {line: line for line in text.splitlines()})
    with raises_error(Error.WRONG_SHAPE, "line 2: 'Maus' has no translation"):
        Glossary.of_text("Hund = hound\nMaus =\n")


def test_a_like_entry_chooses_between_translations_that_are_about_as_probable() -> None:
    def search(sentences: Sequence[str]) -> list[list[Translation]]:
        made = [Translation("Press the key", -0.5, -1.0), Translation("Hit that key", -0.6, -1.2)]
        faulty = Translation("Hit that key now", -0.6, -1.2, ("doubtful",))
        return [[*made, faulty] for _ in sentences]

    memory = TranslationMemory([("Drücken Sie die Taste F5", "Hit that key F5")])
    [near] = from_memory(search, memory, 2, ["Drücken Sie die Taste F"])
    assert [item.text for item in near] == ["Hit that key", "Press the key"]
    [far] = from_memory(search, memory, 1, ["etwas ganz anderes"])
    assert [item.text for item in far] == ["Press the key"]


def test_a_translation_keeps_its_typography(tmp_path: Path) -> None:
    path = tmp_path / "memory.tsv"
    path.write_text("Who is that?\tQui  est-ce\xa0?\nHello world\t你好\u3000世界\n", encoding="utf-8")
    memory = TranslationMemory.load(path, ("en", "fr"))
    assert memory.exact("Who is\u00a0that?") == "Qui est-ce\xa0?"
    assert memory.exact("Hello\u202fworld") == "你好\u3000世界"


@pytest.mark.parametrize("line", ["Hund = hound", "Hund => hound", "Hund -> hound", "Hund → hound", "Hund\thound"])
def test_lines_of_terms_are_parted_by_what_people_write(tmp_path, line):
    (tmp_path / "terms.txt").write_text(f"{line}\n", "utf-8")
    assert Glossary.load(tmp_path / "terms.txt").targets == {"Hund": "hound"}


def test_terms_of_a_translation_memory_are_read(tmp_path):
    units = '<tu><tuv xml:lang="de"><seg>Hund</seg></tuv><tuv xml:lang="en"><seg>hound</seg></tuv></tu>'
    text = f'<tmx version="1.4"><header srclang="*all*"/><body>{units}</body></tmx>'
    (tmp_path / "terms.tmx").write_text(text, "utf-8")
    assert Glossary.load(tmp_path / "terms.tmx", ("de", "en")).targets == {"Hund": "hound"}


@pytest.mark.parametrize("name", ["terms.json", "terms.yaml"])
def test_files_that_are_no_glossary_are_refused(tmp_path, name):
    (tmp_path / name).write_text('{"Hund": "hound"}\n', "utf-8")
    with raises_error(Error.WRONG_FILE_TYPE, name):
        Glossary.load(tmp_path / name)


@pytest.mark.parametrize(
    ("lines", "is_named"),
    [("Hund: hound\nKatze: cat\n", True), ("Hund | hound\n", True), ("Hund - hound\n", True), ("ACME\nXY-9\n", False)],
)
def test_a_glossary_in_which_nothing_parts_the_terms_is_named(tmp_path, capsys, lines, is_named):
    (tmp_path / "terms.txt").write_text(lines, "utf-8")
    assert list(Glossary.load(tmp_path / "terms.txt").targets.values()) == lines.splitlines()
    assert ("terms.txt" in capsys.readouterr().err) is is_named
