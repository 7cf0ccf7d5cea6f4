"""The corpus doctor: what it finds in lines, pairs and whole corpora, and what is left when it has mended them."""

import gzip
import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.errors import raises_error

from dragoman.doctor.examine import Examination, Line, wrong_with_pair
from dragoman.doctor.findings import KINDS, Diagnosis, Finding, worst
from dragoman.doctor.fix import fix, paired
from dragoman.doctor.shifts import Shift, _empty_lexicon, _Features, _side
from dragoman.errors import Error
from dragoman.languages.scripts import script_and_letters
from dragoman.quality.leakage import Leakage, key
from dragoman.quality.misread import Misread
from dragoman.quality.test_set import TestSet
from dragoman.quality.text_faults import decoded_twice, repaired, wrong_with
from dragoman.text.corpus import DemoSource, FilesSource, TsvSource


@pytest.fixture(scope="module")
def good() -> list[tuple[str, str]]:
    return [(pair.src, pair.tgt) for pair in itertools.islice(DemoSource(split="train").pairs(), 400)]


def written(folder: Path, pairs: list[tuple[str, str]], names: tuple[str, str] = ("c.de", "c.en")) -> FilesSource:
    for name, side in zip(names, (0, 1), strict=True):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return FilesSource(src=str(folder / names[0]), tgt=str(folder / names[1]))


def found(diagnosis: Diagnosis) -> dict[str, tuple[str, int, str]]:
    """Kind to (severity, count, file:line) of each finding."""
    return {finding.kind: (finding.severity, finding.count, Path(finding.place).name) for finding in diagnosis.findings}


# -- a line ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wrong", "left"),
    [
        ("An honest line, with 3 < 4 & more.", [], "An honest line, with 3 < 4 & more."),
        ("Schöne Grüße aus Łódź, Ελλάδα и Москва", [], "Schöne Grüße aus Łódź, Ελλάδα и Москва"),
        ("می‌خواهم 👩‍👩‍👧", [], "می‌خواهم 👩‍👩‍👧"),  # joiners that the scripts need
        ("CAFÉ» und Ö“", [], "CAFÉ» und Ö“"),
        ("one\u2028two\x85three\x0bfour\rfive", ["line separator inside"], "one two three four five"),
        ("bell\x07 and\x9f", ["control character"], "bell and"),
        ("zero\u200bwidth\u200f", ["invisible character"], "zerowidth"),
        (
            "ការ\u200bប្រើ\u200bក្ដារចុច PDF\u200bនេះ",
            [],
            "ការ\u200bប្រើ\u200bក្ដារចុច PDF\u200bនេះ",
        ),
        ("หน้า\u200bแรก ໜ້າ\u200bທຳ စာ\u200bမျက်", [], "หน้า\u200bแรก ໜ້າ\u200bທຳ စာ\u200bမျက်"),
        ("我\u200b们 שלום\u200b", ["invisible character"], "我们 שלום"),
        ("\ufefftwice", ["byte order mark inside"], "twice"),
        ("\ue000", ["private use character"], "\ue000"),
        ("lost \ufffd", ["replacement character"], "lost \ufffd"),
        ("a\0b", ["NUL"], "a\0b"),
        ("Tom &amp; <b>Jerry</b>&nbsp;&#33;", ["HTML"], "Tom & Jerry\xa0!"),
        ("one<br/>two</p><p>three H<sub>2</sub>O", ["HTML"], "one two three H2O"),
        ("&lt;b&gt;bold&lt;/b&gt; &amp;amp;", ["HTML"], "bold &"),
        ("Jane <jane@x.org>, see <https://x.org/a>", [], "Jane <jane@x.org>, see <https://x.org/a>"),
        ("AT&T; R&D; &unknown;", [], "AT&T; R&D; &unknown;"),
        ("schÃ¶n â€“ groÃŸ", ["mojibake"], "schön – groß"),
        ("ÐŸÑ€Ð¸Ð²ÐµÑ‚", ["mojibake"], "Привет"),
        ("scho\u0308n", ["not normalised"], "schön"),
    ],
)
def test_a_line_and_what_is_left_of_it(text: str, wrong: list[str], left: str) -> None:
    assert wrong_with(text) == wrong
    assert repaired(text) == left
    assert set(wrong) <= KINDS.keys()


def test_every_script_of_the_examples_is_known() -> None:
    texts = {"Latin": "Äpfel", "Cyrillic": "яблоки", "Greek": "μήλα", "Arabic": "تفاح", "Hebrew": "תפוחים",
             "Han": "りんご", "Hangul": "사과", "Thai": "แอปเปิ้ล", "Devanagari": "सेब"}  # fmt: skip
    assert {script: script_and_letters(text)[0] for script, text in texts.items()} == {
        script: script for script in texts
    }
    assert script_and_letters("?! 42") == ("", 0)


def test_a_text_that_is_encoded_twice_comes_back_from_any_encoding() -> None:
    for text in ("Übermäßig", "être à l'œuvre", "Řeřicha žluťoučká", "你好，世界"):
        for encoding in ("latin-1", "cp1252"):
            try:
                twice = text.encode().decode(encoding)
            except UnicodeDecodeError:
                continue
            assert decoded_twice(twice) == text


# -- a pair ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("src", "tgt", "kinds"),
    [
        ("Guten Tag", "Good day", []),
        ("", "Good day", [("blank on one side", 0)]),
        ("Guten Tag", "", [("blank on one side", 1)]),
        ("", "", [("blank on both sides", 0)]),
        ("12 - 14", "…", [("no letters", 0)]),
        ("This is not translated", "This is not translated", [("copy of the source", 1)]),
        ("Berlin", "Berlin", []),  # a name
        ("Guten Tag", "Привет", [("wrong script", 1)]),
        ("Ein Satz, der gewöhnlich lang ist und weitergeht", "A b", [("odd length ratio", 0)]),
    ],
)
def test_a_pair(src: str, tgt: str, kinds: list[tuple[str, int]]) -> None:
    assert wrong_with_pair(src, tgt, (0.0, 1.1), ("Latin", "Latin")) == kinds


@pytest.mark.parametrize(
    ("src", "tgt", "usual", "is_wrong"),
    [
        ("Working with LibreOffice Basic", "使用 LibreOffice Basic", "Han", False),
        ("Microsoft Works Document", "Microsoft Works 文档", "Han", False),
        ("Add-ins supplied", "隨附的 Add-In", "Han", False),
        ("LibreOffice Writer", "LibreOffice Writer", "Han", False),
        ("Command Ctrl+Home", "CommandCtrl+Home", "Devanagari", False),
        ("OpenOffice.org 1.0 Drawing Template", "แม่แบบภาพวาด OpenOffice.org 1.0", "Thai", False),
        ("=SHEETS(Sheet1.A1) returns 3", "=SHEETS(Sheet1.A1) 은 3", "Hangul", False),
        ("StarDraw 4.0 object", "كائن StarDraw 4.0", "Arabic", False),
        ("Series%NUMBER", "Серія%NUMBER", "Cyrillic", False),
        ("Press Ctrl to select all of the text.", "Press CtrlX to select all of the text.", "Han", True),
        ("Good day", "Guten Tag", "Cyrillic", True),
        ("Guten Tag Tom", "Привет Tom", "Latin", True),
        ("Guten Tag", "Привет всем", "Latin", True),
        ("Open this file", "请打开这个文件", "Hans", False),
        ("Open this file", "請開啟這個檔案", "Hans", True),
        ("Open this file", "请打开这个文件", "Hant", True),
        ("Open this file", "請開啟這個檔案", "Hant", False),
        ("File", "文件", "Hant", False),
    ],
)
def test_names_of_the_other_side_are_no_wrong_script(src: str, tgt: str, usual: str, is_wrong: bool) -> None:
    assert (("wrong script", 1) in wrong_with_pair(src, tgt, None, ("Latin", usual))) is is_wrong


def test_misread_lines_are_judged_as_they_were_written(tmp_path: Path) -> None:
    sound = ["Tümleşik geliştirme ortamı", "Başlık satırı ve değişiklikler", "İşaretçi şimdi açılıyor", "Görünüş"] * 4
    texts = [line.encode("iso8859-9").decode("latin-1") for line in sound]
    (tmp_path / "c.en").write_text("".join(f"An English line {n}\n" for n in range(16)), encoding="utf-8")
    (tmp_path / "c.tr").write_text("".join(f"{line} {n}\n" for n, line in enumerate(texts)), encoding="utf-8")
    examination = Examination(FilesSource(src=str(tmp_path / "c.en"), tgt=str(tmp_path / "c.tr")), "en", "tr")
    kinds = {finding.kind: finding.count for finding in examination.run().findings}
    assert kinds == {"mojibake": 16}
    assert fix(examination, tmp_path / "new").kept == 16
    lines = (tmp_path / "new" / "c.tr").read_text(encoding="utf-8").splitlines()
    assert lines == [f"{line} {n}" for n, line in enumerate(sound)]


def test_leaks_are_found_whatever_their_case_and_punctuation() -> None:
    test = Leakage(["A man in a red shirt walks across the wide street.", "Hello!", "你好，世界！"])
    assert test.exactly(key("a MAN in a red shirt, walks across the wide street"))
    assert test.exactly(key("hello"))
    assert test.exactly(key("你好世界"))
    assert not test.exactly(key("A man in a red shirt walks across the street."))
    assert test.nearly(key("A man in a red shirt walks across the wide road."))
    assert not test.nearly(key("A man in a blue shirt runs across the wide street."))
    assert not test.nearly(key("Hello there"))


# -- a corpus ----------------------------------------------------------------------------------------------------------


def test_a_good_corpus_is_clean(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    diagnosis = Examination(written(tmp_path, good), "de", "en").run()
    assert (diagnosis.verdict, diagnosis.src_lines, diagnosis.tgt_lines) == ("clean", 400, 400)


def test_each_finding_has_its_place_and_its_count(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    pairs = list(good)
    pairs[9] = (pairs[9][0], "")
    pairs[19] = ("Привет, мир", pairs[19][1])
    pairs[29] = ("schÃ¶n", "fine")
    pairs[39] = pairs[29]
    pairs[49] = ("Dieser Satz ist gar nicht übersetzt.", "Dieser Satz ist gar nicht übersetzt.")
    test = TestSet([good[59][0]], [[good[59][1]]], name="news")
    diagnosis = Examination(written(tmp_path, pairs), "de", "en", [test]).run()
    assert diagnosis.verdict == "warnings"
    expected = {
        "blank on one side": ("warning", 1, "c.en:10"),
        "wrong script": ("note", 1, "c.de:20"),
        "mojibake": ("warning", 2, "c.de:30"),
        "copy of the source": ("note", 1, "c.en:50"),
        "in the test set": ("warning", 1, "c.de:60"),
    }
    got = found(diagnosis)
    assert {kind: got.get(kind) for kind in expected} == expected
    assert got["duplicate"][1] >= 1


def test_swapped_sides_are_seen_by_script_and_by_language(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    chinese = [(f"你好，世界 {number}", english) for number, (_, english) in enumerate(good)]
    diagnosis = Examination(written(tmp_path, chinese), "en", "zh").run()
    assert found(diagnosis)["swapped sides"][0] == "broken"
    swapped = written(tmp_path, [(english, german) for german, english in good])
    assert found(Examination(swapped, "de", "en").run())["swapped sides"][0] == "broken"
    english = {text for _, text in good}
    diagnosis = Examination(
        swapped, "de", "en", identify=lambda texts: ["en" if text in english else "de" for text in texts]
    ).run()
    assert diagnosis.verdict == "broken"
    assert "wrong language" not in found(diagnosis)


def test_files_that_cannot_be_read_are_findings(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    source = written(tmp_path, good)
    (tmp_path / "c.en.gz").write_bytes(gzip.compress((tmp_path / "c.en").read_bytes())[:-200])
    diagnosis = Examination(FilesSource(src=source.src, tgt=f"{source.tgt}.gz"), "de", "en").run()
    assert diagnosis.verdict == "broken"
    assert "unreadable" in found(diagnosis)
    (tmp_path / "c.en").write_bytes("Ja \u20ac\n".encode("utf-16"))
    assert found(Examination(source, "de", "en").run()) == {"unreadable": ("broken", 1, "c.en")}
    (tmp_path / "c.en").write_text("")
    assert found(Examination(source, "de", "en").run())["empty file"] == ("broken", 1, "c.en")
    same = FilesSource(src=source.src, tgt=source.src)
    assert found(Examination(same, "de", "en").run()) == {"same file": ("broken", 1, "c.de")}


def test_a_table_is_examined_too(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in [*good, ("Tom &amp; Kim", "Tom")]), encoding="utf-8")
    diagnosis = Examination(TsvSource(path=str(path)), "de", "en").run()
    assert (diagnosis.src_lines, found(diagnosis)["HTML"]) == (401, ("warning", 1, "pairs.tsv:401"))
    path.write_text(path.read_text(encoding="utf-8") + "no tab\n", encoding="utf-8")
    (unreadable,) = (
        f for f in Examination(TsvSource(path=str(path)), "de", "en").run().findings if f.severity == "broken"
    )
    assert "pairs.tsv:402" in unreadable.example


def test_lines_that_were_shuffled_are_not_parallel(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    sources, targets = zip(*good, strict=True)
    other = list(targets)
    random.Random(1).shuffle(other)
    diagnosis = Examination(written(tmp_path, list(zip(sources, other, strict=True))), "de", "en").run()
    assert found(diagnosis)["not parallel"][0] == "broken"


def test_the_verdict_is_that_of_the_worst_finding() -> None:
    assert [worst(verdicts) for verdicts in ([], ["clean", "warnings"], ["warnings", "broken", "clean"])] == [
        *("clean", "warnings", "broken")
    ]
    assert Finding("duplicate", 10, 100).severity == "note"
    assert Finding("duplicate", 11, 100).severity == "warning"


# -- mending -----------------------------------------------------------------------------------------------------------


def test_a_mended_corpus_is_clean_and_its_report_says_what_went(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    pairs = [*good, good[3], ("schÃ¶ne Grüße", "nice greetings"), ("\ue000 x", "lost"), ("ohne", "")]
    examination = Examination(written(tmp_path, pairs), "de", "en")
    examination.run()
    report = fix(examination, tmp_path / "out")
    assert (report.read, report.kept, report.repaired) == (404, 401 - _repeated(good), 1)
    assert report.dropped == {"duplicate": 1 + _repeated(good), "private use character": 1, "blank on one side": 1}
    rows = [row.split("\t") for row in report.report.read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["line", "reason", "source", "target"]
    assert ["401", "duplicate", *good[3]] in rows
    assert len(rows) == 1 + report.dropped.total()
    again = Examination(FilesSource(src=str(report.src), tgt=str(report.tgt)), "de", "en").run()
    assert again.verdict == "clean"
    assert "schöne Grüße\n" in report.src.read_text(encoding="utf-8")
    with raises_error(Error.ALREADY_THERE, "out"):
        fix(examination, tmp_path / "out")


def test_what_mending_brings_to_light_is_dropped_too(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    odd = [("Tom &amp; Jerry laufen", "they run"), ("Tom & Jerry laufen", "they run"), ("M&#65533;nchen", "Munich")]
    examination = Examination(written(tmp_path, [*dict.fromkeys(good), *odd]), "de", "en")
    examination.run()
    report = fix(examination, tmp_path / "out")
    assert report.dropped == {"duplicate": 1, "replacement character": 1}
    again = Examination(FilesSource(src=str(report.src), tgt=str(report.tgt)), "de", "en").run()
    assert again.verdict == "clean"


@pytest.mark.parametrize("side", [0, 1])
def test_a_pair_is_dropped_where_one_side_is_in_the_test_set(
    tmp_path: Path, good: list[tuple[str, str]], side: int
) -> None:
    said = ("Der Zebrahund gähnt.", "The zebra dog yawns.")
    walks = (
        "Ein Mann in einem roten Hemd geht über die breite Straße.",
        "A man in a red shirt walks across the wide street.",
    )
    nearly = (walks[0].replace("Straße", "Allee"), walks[1].replace("street", "road"))
    sides = [["Sonst nichts."] * 3, ["Nothing else."] * 3]
    sides[side][1:] = [said[side], walks[side]]
    rest = list(dict.fromkeys(good))
    corpus = written(tmp_path, [*rest[:7], said, nearly, *rest[7:]])
    examination = Examination(corpus, "de", "en", [TestSet(sides[0], [sides[1]], name="news")])
    leaks = {kind: place for kind, (_, *place) in found(examination.run()).items() if "test set" in kind}
    assert leaks == {"in the test set": [1, "c.de:8"], "nearly in the test set": [1, "c.de:9"]}
    report = fix(examination, tmp_path / "out")
    assert report.dropped == {"in the test set": 1, "nearly in the test set": 1}
    for path, lines in zip((report.src, report.tgt), zip(*rest, strict=True), strict=True):
        assert path.read_text(encoding="utf-8").splitlines() == list(lines)


def _repeated(pairs: list[tuple[str, str]]) -> int:
    return len(pairs) - len(set(pairs))


def test_what_cannot_be_mended_is_refused_and_nothing_is_written(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    source = written(tmp_path, good)
    examination = Examination(FilesSource(src=source.src, tgt=source.src), "de", "en")
    examination.run()
    with raises_error(Error.BAD_CORPUS):
        fix(examination, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("offset", [1, -2])
def test_shifted_lines_are_put_together_again(offset: int) -> None:
    """Lines 21 to 60 of 100 are shifted: whatever is paired belongs together, and little is lost."""
    src = [f"{number}" for number in range(1, 101)]
    tgt = list(src)
    if offset > 0:
        tgt[20:20] = ["new"] * offset
        del tgt[60 : 60 + offset]
    else:
        del tgt[18:20]
        tgt[60:60] = ["new"] * -offset
    shifts = [Shift(21, offset, 60)]
    pairs = list(paired((Line(x, []) for x in src), (Line(x, []) for x in tgt), shifts))
    assert [number for number, _, _ in pairs] == list(range(1, 101))
    kept = [(one.text, other.text) for _, one, other in pairs if one and other]
    assert all(one == other for one, other in kept)
    assert len(kept) >= 78


def test_a_line_end_in_disguise_does_not_shift_what_is_mended() -> None:
    for text in ("a &#10; b", "a&NewLine;b", "a &#xA;&#13; b"):
        assert repaired(text).split() == ["a", "b"]
        assert not set(repaired(text)) & set("\n\r")


def test_counts_that_no_shift_explains_are_not_mended(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    source = written(tmp_path, good)
    lines = (tmp_path / "c.de").read_text(encoding="utf-8").splitlines()
    (tmp_path / "c.de").write_text("".join(f"{line}\n" for line in [*lines[:30], *lines[100:120], *lines[30:]]))
    examination = Examination(source, "de", "en")
    assert "unequal line counts" in found(examination.run())
    with raises_error(Error.BAD_CORPUS, "c.de"):
        fix(examination, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_pairs_in_another_language_are_dropped_by_whoever_can_tell(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    pairs = [("C'est une phrase en français.", "This is a sentence in French."), *good]
    english = {text for _, text in pairs}

    def identify(texts: Sequence[str]) -> list[str]:
        return ["en" if text in english else "fr" if "français" in text else "de" for text in texts]

    examination = Examination(written(tmp_path, pairs), "de", "en", identify=identify)
    assert found(examination.run())["wrong language"][1:] == (1, "c.de:1")
    assert fix(examination, tmp_path / "out").dropped["wrong language"] == 1


def test_languages_are_judged_by_the_lines_that_were_looked_at(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    pairs = list(itertools.islice(itertools.cycle(good), 6000))
    asked: list[str] = []

    def identify(texts: Sequence[str]) -> list[str]:
        asked.extend(texts)
        return ["fr" if number % 20 == 0 else "de" for number in range(len(texts))]

    diagnosis = Examination(written(tmp_path, pairs), "de", "", identify=identify).run()
    severity, count, _ = found(diagnosis)["wrong language"]
    assert (severity, count) == ("warning", 10)  # 5 % of some 200, and less than 0.2 % of all
    assert diagnosis.sampled["wrong language", diagnosis.src] == len(asked) // 2 == 200


def test_long_lines_are_not_kept_whole(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    from dragoman.doctor.examine import LONG_LINE, sides_of

    source = written(tmp_path, [*good, ("x" * 100_000, "long")])
    (tmp_path / "c.en").write_bytes((tmp_path / "c.en").read_bytes()[:-5] + b"\xff" * 100_000 + b"\n")
    for side in sides_of(source, ("a", "b"), Diagnosis("a", "b"), (Misread(""), Misread(""))):
        assert max(len(line.text) for line in side) == LONG_LINE


# -- thresholds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("in_test_set", "sentence", "near"),
    [
        # n words have n - 2 grams of three.
        ("a b c d e f g h i j k l", "a b c d e f g h i", True),  # 7 of 10 grams
        ("a b c d e f g h", "a b c d e f g x", True),  # 5 of 7
        ("a b c d e f g", "a b c d e f x", False),  # 4 of 6
        ("a b c d e f g h i j k l", "a b c d e f g h", False),  # 6 of 10
        ("a b c d e f g h", "a b c d e f g", True),  # 5 of 6
        ("a b c d e f g", "a b c d e f", False),  # 4 of 5, but too short
        ("a b c d e f", "a b c d e f g", False),
    ],
)
def test_a_sentence_is_nearly_another_from_seven_tenths_of_its_grams_on(
    in_test_set: str, sentence: str, near: bool
) -> None:
    assert Leakage([in_test_set]).nearly(key(sentence)) == near


def test_a_language_is_told_from_twenty_characters_on(tmp_path: Path, good: list[tuple[str, str]]) -> None:
    short, long = "été à la mer du sud", "été à la mer du nord"
    assert (len(short), len(long)) == (19, 20)
    pairs = [(short, "a southern seaside summer"), (long, "a northern seaside summer"), *dict.fromkeys(good)]
    examination = Examination(
        written(tmp_path, pairs), "de", "", identify=lambda texts: ["fr" if "été" in text else "de" for text in texts]
    )
    assert found(examination.run())["wrong language"][1:] == (1, "c.de:2")
    report = fix(examination, tmp_path / "out")
    assert report.dropped == {"wrong language": 1}
    assert f"2\twrong language\t{long}\t" in report.report.read_text(encoding="utf-8")


def test_lines_of_placeholders_are_no_evidence_of_a_shift() -> None:
    words = [f"word{number} other{number * 7 % 11}" for number in range(400)]
    src, tgt = list(words), [word.upper() for word in words]
    src[200:200] = ["about|{long_month} {year}"] * 60
    tgt[200:200] = ["{long_month} {year}", "<b>%s</b>", "{0}"] * 20
    sides = _side(src), _side(tgt)
    features = _Features(*sides, 0, _empty_lexicon(len(sides[0].vocabulary)))
    evidence = features.evidence(features.tables(np.zeros(460, dtype=int), 4), 8)
    assert np.all(evidence[210:250] == 0)
    assert np.any(evidence[:190] != 0)


@pytest.mark.parametrize(
    ("line", "bare"), [("{a} {b}", True), ("<b>%s</b>: ", True), ("%d files", False), ("12", False), ("", False)]
)
def test_a_line_is_bare_where_it_has_placeholders_alone(line: str, bare: bool) -> None:
    assert _side([line]).bare.tolist() == [bare]


@pytest.mark.parametrize(
    ("code", "text", "why"),
    [
        ("en", "a dog", "no line is long enough to tell"),
        ("tlh", "a dog that sleeps in the house of the old king", "it is not among the languages that are told apart"),
    ],
)
def test_why_a_language_was_not_looked_at(tmp_path: Path, code: str, text: str, why: str) -> None:
    source = written(tmp_path, [("ein Hund", text)], ("c.de", f"c.{code}"))
    languages = Examination(source, "de", code).run().languages
    assert languages[str(source.tgt)] == f"{code}, not looked at: {why}"
