"""A hundred bad corpora, and what becomes of each: the site has the table as a page (`make docs`).

Each is made from one good corpus of 400 pairs and given to everything that meets a corpus before training does:
`recipe.prepare` with and without the doctor, and the doctor by itself. What is done is one of four:

- refused: one line that names the file, and the line where there is one, before anything is trained;
- doctor: it can be trained on, and the doctor finds it (training refuses what the doctor calls broken);
- dropped: the pairs are left out, and counted by reason;
- tolerated: on purpose, and what comes out of it is looked at.
"""

import gzip
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.data.store import IdCorpus, prepare
from dragoman.doctor.examine import Examination
from dragoman.doctor.shifts import Shifts
from dragoman.errors import DragomanError, Error
from dragoman.quality.test_set import TestSet
from dragoman.tasks import recipes
from dragoman.tasks.base import dropped_text
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.tasks.translation.job import TranslationJob
from dragoman.text.corpus import DemoSource, FilesSource, JsonlSource, MixSource, Source, TsvSource
from dragoman.text.tokenizers.pair import TokenizerPair, load_tokenizers

WORDS_OF_ERRORS = Path(__file__).parents[1] / "golden/bad_corpora.json"
"""What each refusal says, by kind of corpus ("…" stands for anything): DRAGOMAN_RECORD=1 records what has changed."""
PAIRS = 400
BAD = 40
"""The line that is bad, where a single one is."""


class Refusal(NamedTuple):
    """The code of an error, and its place: a file, with the line where there is one."""

    code: Error
    place: str | None = None


class Corpus(NamedTuple):
    """The good corpus, line by line; or one that is not so good any more."""

    src: list[str]
    tgt: list[str]


def good(pair: Any = "de-en") -> Corpus:
    """Sentences of the embedded corpus, each of them once: nothing is wrong with it."""
    src: dict[str, str] = {}
    for _, source, target, *_ in DemoSource(pair=pair, split="train", size=3 * PAIRS).pairs():
        if target not in src.values():
            src.setdefault(source, target)
    return Corpus(list(src)[:PAIRS], list(src.values())[:PAIRS])


GOOD = good()

Text = bytes | str | list[str]


def write(name: str, text: Text) -> str:
    """A file in the working directory, which each test has for itself."""
    text = "".join(line + "\n" for line in text) if isinstance(text, list) else text
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return name


def files(src: Text = GOOD.src, tgt: Text = GOOD.tgt, names: tuple[str, str] = ("corpus.de", "corpus.en")) -> Source:
    return FilesSource(src=write(names[0], src), tgt=write(names[1], tgt))


def with_line(text: str | bytes, number: int = BAD, lines: list[str] = GOOD.src) -> bytes:
    """The lines with another one in the place of one."""
    raw = [line.encode() for line in lines]
    raw[number - 1] = text.encode() if isinstance(text, str) else text
    return b"".join(line + b"\n" for line in raw)


def tsv(lines: list[str], **columns: int) -> Source:
    return TsvSource(path=write("corpus.tsv", lines), **columns)


ROWS = [f"{src}\t{tgt}" for src, tgt in zip(*GOOD, strict=True)]


def jsonl(line: str) -> Source:
    records = [json.dumps({"src": src, "tgt": tgt}, ensure_ascii=False) for src, tgt in zip(*GOOD, strict=True)]
    return JsonlSource(path=write("corpus.jsonl", [*records[: BAD - 1], line, *records[BAD:]]))


# -- what a corpus is put through --------------------------------------------------------------------------------------


def job(source: Source, **changes: Any) -> TranslationJob:
    settings: dict[str, Any] = {
        "run_dir": "run",
        "device": "cpu",
        "workers": 1,
        "corpus": {
            "src_lang": "de",
            "tgt_lang": "en",
            "train": vars(source),
            "valid": {"type": "demo", "split": "valid", "size": 5},
            **changes.pop("corpus", {}),
        },
        "tokenizer": {"type": "characters"},
        "model": {"type": "transformer", "d_model": 8, "num_heads": 2, "d_ff": 8},
        **changes,
    }
    return TranslationJob(parse(TranslationRecipe, settings, "recipe.yaml"))


def prepared(source: Source, **changes: Any) -> TranslationJob:
    carried = job(source, **changes)
    carried.prepare()
    return carried


def stored(found: TranslationJob) -> Corpus:
    """The text of the ids that a model would be trained on."""
    src, tgt = found.tokenizers.src.decode, found.tokenizers.tgt.decode
    rows = range(len(found.train))
    return Corpus([src(found.train.src(row)) for row in rows], [tgt(found.train.tgt(row)) for row in rows])


@dataclass
class Case:
    """A bad corpus and what becomes of it.

    `make` writes the corpus into the working directory and returns it; where the mishap is not in the files, it does
    all of it, and raises what is said or sees for itself that nothing is wrong. Where pairs are kept, `becomes` is the
    text that a model is trained on, to the letter.
    """

    kind: str
    make: Callable[[], Any]
    done: Literal["refused", "doctor", "dropped", "tolerated"]
    says: str | Refusal = ""
    """Why it is trained on; or the refusal, whose words stand in `WORDS_OF_ERRORS`."""
    finds: str = ""
    """What the doctor finds, all of it."""
    first: Refusal | None = None
    """The refusal of the doctor, who looks first, where it is another one."""
    becomes: Corpus | None = None
    languages: tuple[str, str] = ("de", "en")
    doctor: dict[str, Any] = field(default_factory=dict)
    """What the doctor is told besides."""
    marks: tuple[Any, ...] = ()


# -- the table ---------------------------------------------------------------------------------------------------------

UMLAUTS = "Das schöne Haus hat viele grüne Türen."
TEXT = "".join(line + "\n" for line in GOOD.src)


def becoming(text: str, number: int = BAD) -> Corpus:
    """The good corpus with another source line."""
    return Corpus([*GOOD.src[: number - 1], text, *GOOD.src[number:]], GOOD.tgt)


LESS = Corpus(*([*side[: BAD - 1], *side[BAD:]] for side in GOOD))
"""The good corpus without the pair that is bad."""


def one_line(kind: str, text: str, finds: str, says: str = "it stays inside of its line") -> Case:
    """A source line that is odd and can be trained on all the same."""
    return Case(
        kind, lambda: files(with_line(text)), "doctor", says, f"{finds} at corpus.de:40", becomes=becoming(text)
    )


def no_line_end(kind: str, char: str) -> Case:
    return one_line(kind, f"Ich habe{char}viel Zeit für dich.", "warning: line separator inside")


ENCODING = [
    Case(
        "a byte of Latin-1",
        lambda: files(with_line(UMLAUTS.encode("latin-1"))),
        "refused",
        Refusal(Error.NOT_UTF8, "corpus.de:40"),
        "broken: not UTF-8 at corpus.de:40",
    ),
    Case(
        "cut off inside a character",
        lambda: files(TEXT.encode()[:-1] + "ö".encode()[:1]),
        "refused",
        Refusal(Error.DAMAGED, "corpus.de:400"),
        "broken: not UTF-8 at corpus.de:400",
    ),
    Case(
        "an overlong encoding",
        lambda: files(with_line(b"Ich habe\xc0\xafviel Zeit mit dir.")),
        "refused",
        Refusal(Error.NOT_UTF8, "corpus.de:40"),
        "broken: not UTF-8 at corpus.de:40",
    ),
    Case(
        "surrogates, encoded one by one (CESU-8)",
        lambda: files(with_line(b"Ich habe viel Zeit mit dir \xed\xa0\xbd\xed\xb8\x80")),
        "refused",
        Refusal(Error.NOT_UTF8, "corpus.de:40"),
        "broken: not UTF-8 at corpus.de:40",
    ),
    *(
        Case(
            kind,
            lambda mark=mark, name=name: files(mark + TEXT.encode(name)),
            "refused",
            Refusal(Error.NOT_UTF8, "corpus.de"),
            "broken: unreadable at corpus.de",
        )
        for kind, mark, name in [
            ("UTF-16, little-endian, with its mark", b"\xff\xfe", "utf-16-le"),
            ("UTF-16, big-endian, with its mark", b"\xfe\xff", "utf-16-be"),
            ("UTF-16 without a mark", b"", "utf-16-le"),
        ]
    ),
    Case(
        "a byte order mark on one side",
        lambda: files("\ufeff" + TEXT),
        "doctor",
        "it is no part of the text",
        "note: byte order mark at corpus.de:1",
        becomes=GOOD,
    ),
    one_line(
        "a byte order mark further down",
        "\ufeff" + GOOD.src[BAD - 1],
        "warning: byte order mark inside",
        "it stays, as a character of its own",
    ),
    Case(
        "UTF-8 and Latin-1 joined",
        lambda: files(TEXT.encode() + TEXT.encode("latin-1"), [*GOOD.tgt, *GOOD.tgt]),
        "refused",
        Refusal(Error.NOT_UTF8, "corpus.de:401"),
        "broken: not UTF-8 at corpus.de:401; warning: duplicate at corpus.de:6",
    ),
    Case(
        "a NUL byte",
        lambda: files(with_line("Ich habe\0viel Zeit für dich.")),
        "refused",
        Refusal(Error.NOT_TEXT, "corpus.de:40"),
        "broken: NUL at corpus.de:40",
    ),
    Case(
        "a run of 0xFF",
        lambda: files(with_line(b"\xff" * 20)),
        "refused",
        Refusal(Error.NOT_UTF8, "corpus.de:40"),
        "broken: not UTF-8 at corpus.de:40",
    ),
    one_line(
        "encoded twice",
        UMLAUTS.encode().decode("cp1252"),
        "warning: mojibake",
        "it stays as it is; `dragoman doctor --fix` mends it",
    ),
    Case(
        "accents as letters of their own (NFD) on one side",
        lambda: files(unicodedata.normalize("NFD", TEXT)),
        "doctor",
        "it is normalised: one letter again",
        "warning: not normalised at corpus.de:1",
        becomes=GOOD,
    ),
    Case(
        "only the last line is bad",
        lambda: files(with_line(UMLAUTS.encode("latin-1"), PAIRS)),
        "refused",
        Refusal(Error.NOT_UTF8, "corpus.de:400"),
        "broken: not UTF-8 at corpus.de:400",
    ),
]

LINES = [
    Case(
        "CRLF on one side",
        lambda: files(TEXT.replace("\n", "\r\n")),
        "doctor",
        "one CR before each line end is no part of the text",
        "note: CRLF at corpus.de:1",
        becomes=GOOD,
    ),
    no_line_end("a CR alone", "\r"),
    no_line_end("a line separator (U+2028)", "\u2028"),
    no_line_end("a paragraph separator (U+2029)", "\u2029"),
    no_line_end("a next line (U+0085)", "\x85"),
    no_line_end("a vertical tab", "\v"),
    no_line_end("a form feed", "\f"),
    Case("no line end at the end of one side", lambda: files(TEXT[:-1]), "tolerated", "it is a line", becomes=GOOD),
    Case(
        "only line ends",
        lambda: files("\n" * PAIRS),
        "refused",
        Refusal(Error.EMPTY, "corpus.de"),
        "broken: empty file at corpus.de; warning: blank on one side at corpus.de:1",
        first=Refusal(Error.BAD_CORPUS, "corpus.de"),
    ),
    Case(
        "only line ends, on both sides",
        lambda: files("\n" * PAIRS, "\n" * PAIRS),
        "refused",
        Refusal(Error.EMPTY, "corpus.de"),
        "broken: empty file at corpus.de; broken: empty file at corpus.en; warning: blank on both sides at corpus.de:1",
        first=Refusal(Error.BAD_CORPUS, "corpus.de"),
    ),
    Case(
        "an empty file",
        lambda: files(""),
        "refused",
        Refusal(Error.EMPTY, "corpus.de"),
        "broken: empty file at corpus.de",
    ),
    Case(
        "a single line",
        lambda: files(GOOD.src[:1], GOOD.tgt[:1]),
        "tolerated",
        "a corpus of one pair (but `train --src` finds none to hold out)",
        becomes=Corpus(GOOD.src[:1], GOOD.tgt[:1]),
    ),
    Case(
        "a line of a megabyte",
        lambda: files(with_line("a" * 2**20)),
        "dropped",
        "1 longer than 256 tokens",
        "warning: very long line at corpus.de:40; note: odd length ratio at corpus.de:40",
        becomes=LESS,
    ),
    Case(
        "a line of a million tokens",
        lambda: files(with_line("a " * 10**6)),
        "dropped",
        "1 longer than 256 tokens",
        "warning: very long line at corpus.de:40; note: odd length ratio at corpus.de:40",
        becomes=LESS,
    ),
    Case(
        "a line of spaces and tabs",
        lambda: files(with_line(" \t ")),
        "dropped",
        "1 blank source",
        "warning: blank on one side at corpus.de:40",
        becomes=LESS,
    ),
]

SRC, TGT = GOOD
MORE_SRC = [*SRC[:149], "Noch ein Satz.", *SRC[149:]]

ALIGNMENT = [
    Case(
        "a source line too many",
        lambda: files(MORE_SRC),
        "refused",
        Refusal(Error.UNEQUAL_COUNTS, "corpus.de"),
        "broken: unequal line counts at corpus.de:401; broken: shift at corpus.de:150; "
        "note: odd length ratio at corpus.de:310",
        first=Refusal(Error.BAD_CORPUS, "corpus.de:150"),
    ),
    Case(
        "a target line too many",
        lambda: files(SRC, [*TGT[:149], "One more sentence.", *TGT[149:]]),
        "refused",
        Refusal(Error.UNEQUAL_COUNTS, "corpus.de"),
        "broken: unequal line counts at corpus.de:401; broken: shift at corpus.de:150",
        first=Refusal(Error.BAD_CORPUS, "corpus.de:150"),
    ),
    Case(
        "twenty source lines too many",
        lambda: files([*SRC[:149], *TGT[200:220], *SRC[149:]]),
        "refused",
        Refusal(Error.UNEQUAL_COUNTS, "corpus.de"),
        "broken: unequal line counts at corpus.de:401; warning: wrong language at corpus.de:150",
    ),
    Case(
        "one side several times as long",
        lambda: files(SRC * 5),
        "refused",
        Refusal(Error.UNEQUAL_COUNTS, "corpus.de"),
        "broken: unequal line counts at corpus.de:401",
    ),
    Case(
        "a line too many here, one too few there",
        lambda: files([*SRC[:149], "Noch ein Satz.", *SRC[149:299], *SRC[300:]]),
        "doctor",
        "",
        "broken: shift at corpus.de:150; note: odd length ratio at corpus.de:150",
        becomes=Corpus([*SRC[:149], "Noch ein Satz.", *SRC[149:299], *SRC[300:]], TGT),
    ),
    Case(
        "all shifted by one line",
        lambda: files([*SRC[1:], SRC[0]]),
        "doctor",
        "",
        "broken: shift at corpus.de:1",
        becomes=Corpus([*SRC[1:], SRC[0]], TGT),
    ),
    Case(
        "a block that is shifted",
        lambda: files([*SRC[:100], *SRC[103:203], *SRC[100:103], *SRC[203:]]),
        "doctor",
        "",
        "broken: shift at corpus.de:101; note: odd length ratio at corpus.de:111",
        becomes=Corpus([*SRC[:100], *SRC[103:203], *SRC[100:103], *SRC[203:]], TGT),
    ),
    Case(
        "a block twice on one side",
        lambda: files([*SRC[:200], *SRC[190:]]),
        "refused",
        Refusal(Error.UNEQUAL_COUNTS, "corpus.de"),
        "broken: unequal line counts at corpus.de:401; broken: shift at corpus.de:201; "
        "warning: odd length ratio at corpus.de:205",
        first=Refusal(Error.BAD_CORPUS, "corpus.de:201"),
    ),
    Case(
        "one side in reversed order",
        lambda: files(SRC[::-1]),
        "doctor",
        "",
        "broken: not parallel at corpus.de",
        becomes=Corpus(SRC[::-1], TGT),
    ),
    Case(
        "one file for both sides",
        lambda: FilesSource(src=write("corpus.de", SRC), tgt="corpus.de"),
        "refused",
        Refusal(Error.SAME_FILE, "corpus.de"),
        "broken: same file at corpus.de",
    ),
    Case(
        "the other side's file under another name",
        lambda: files(SRC, SRC),
        "doctor",
        "a model would learn to copy",
        "warning: copy of the source at corpus.en:1",
        becomes=Corpus(SRC, SRC),
    ),
    Case(
        "sides swapped, in two scripts",
        lambda: files(*good("zh-en")[::-1], names=("corpus.zh", "corpus.en")),
        "doctor",
        "",
        "broken: swapped sides at corpus.zh; warning: wrong script at corpus.zh:1; "
        "warning: wrong script at corpus.en:2",
        languages=("zh", "en"),
    ),
    Case(
        "sides swapped, in one script",
        lambda: files(TGT, SRC),
        "doctor",
        "",
        "broken: swapped sides at corpus.de",
    ),
    Case(
        "a line blank on the source side",
        lambda: files(with_line("")),
        "dropped",
        "1 blank source",
        "warning: blank on one side at corpus.de:40",
        becomes=LESS,
    ),
    Case(
        "a line blank on the target side",
        lambda: files(SRC, with_line("", lines=TGT)),
        "dropped",
        "1 blank target",
        "warning: blank on one side at corpus.en:40",
        becomes=LESS,
    ),
    Case(
        "a line blank on both sides",
        lambda: files(with_line(""), with_line("", lines=TGT)),
        "dropped",
        "1 blank both",
        "note: blank on both sides at corpus.de:40",
        becomes=LESS,
    ),
    Case(
        "some of the validation set in the training set",
        files,
        "doctor",
        "a score on it means nothing; the doctor must be given the set, or the recipe",
        "warning: in the test set at corpus.de:101",
        becomes=GOOD,
        doctor={"tests": [TestSet(SRC[100:120], [TGT[100:120]], name="valid")]},
    ),
    Case(
        "the test set is the training set",
        files,
        "doctor",
        "a score on it means nothing; the doctor must be given the set, or the recipe",
        "warning: in the test set at corpus.de:1",
        becomes=GOOD,
        doctor={"tests": [TestSet(SRC, [TGT], name="test")]},
    ),
]

GZ = ("corpus.de.gz", "corpus.en")


def gz(data: bytes) -> Source:
    return files(data, names=GZ)


def flipped() -> bytes:
    """gzip data with a block of a kind that there is not."""
    data = bytearray(gzip.compress(TEXT.encode(), compresslevel=0))
    data[10] |= 0b110
    return bytes(data)


def instead(make: Callable[[str], Any]) -> Callable[[], Source]:
    """A corpus whose source side is made by a function of its path."""

    def corpus() -> Source:
        make("corpus.de")
        return FilesSource(src="corpus.de", tgt=write("corpus.en", TGT))

    return corpus


def zipped() -> Source:
    with zipfile.ZipFile("corpus.de", "w") as archive:
        for name in ("one.de", "two.de"):
            archive.writestr(name, TEXT)
    return FilesSource(src="corpus.de", tgt=write("corpus.en", TGT))


CONTAINER = [
    Case(
        "gzip data that is cut off",
        lambda: gz(gzip.compress(TEXT.encode(), compresslevel=0)[:-2000]),
        "refused",
        Refusal(Error.DAMAGED, "corpus.de.gz"),
        "broken: unreadable at corpus.de.gz:…",
    ),
    Case(
        "gzip data with something behind it",
        lambda: gz(gzip.compress(TEXT.encode()) + b"garbage"),
        "refused",
        Refusal(Error.DAMAGED, "corpus.de.gz"),
        "broken: unreadable at corpus.de.gz:401",
    ),
    Case(
        "gzip data with a bit that flipped",
        lambda: gz(flipped()),
        "refused",
        Refusal(Error.DAMAGED, "corpus.de.gz"),
        "broken: unreadable at corpus.de.gz",
    ),
    Case(
        "gzip files joined",
        lambda: gz(gzip.compress(TEXT[:999].encode()) + gzip.compress(TEXT[999:].encode())),
        "tolerated",
        "all of them are read",
        becomes=GOOD,
    ),
    Case(
        "plain text called .gz",
        lambda: gz(TEXT.encode()),
        "refused",
        Refusal(Error.WRONG_FILE_TYPE, "corpus.de.gz"),
        "broken: unreadable at corpus.de.gz",
    ),
    Case(
        "gzip data not called .gz",
        lambda: files(gzip.compress(TEXT.encode())),
        "refused",
        Refusal(Error.WRONG_FILE_TYPE, "corpus.de"),
        "broken: unreadable at corpus.de",
    ),
    *(
        Case(
            kind,
            lambda start=start: files(start + b"rubbish"),
            "refused",
            Refusal(Error.WRONG_FILE_TYPE, "corpus.de"),
            "broken: unreadable at corpus.de",
        )
        for kind, name, suffix, start in [
            ("a .zst, damaged or not", "zstd", "zst", b"\x28\xb5\x2f\xfd"),
            ("a .xz", "xz", "xz", b"\xfd7zXZ\x00"),
            ("a .bz2", "bzip2", "bz2", b"BZh9"),
        ]
    ),
    Case(
        "a zip of two files",
        zipped,
        "refused",
        Refusal(Error.WRONG_FILE_TYPE, "corpus.de"),
        "broken: unreadable at corpus.de",
    ),
    Case(
        "a bomb: 65 MiB of one letter in 64 KiB",
        lambda: gz(gzip.compress(b"a" * (65 * 2**20), compresslevel=1)),
        "refused",
        Refusal(Error.TOO_LARGE, "corpus.de.gz:1"),
        "broken: unreadable at corpus.de.gz",
    ),
    Case(
        "a bomb: line ends without end",
        lambda: gz(gzip.compress(b"\n" * 50_000, compresslevel=1)),
        "refused",
        Refusal(Error.UNEQUAL_COUNTS, "corpus.de.gz"),
        "broken: empty file at corpus.de.gz; warning: blank on one side at corpus.de.gz:1",
    ),
    Case(
        "a directory",
        instead(os.mkdir),
        "refused",
        Refusal(Error.WRONG_FILE_TYPE, "corpus.de"),
        "broken: unreadable at corpus.de",
    ),
    Case(
        "a dangling symbolic link",
        instead(lambda path: os.symlink("nowhere", path)),
        "refused",
        Refusal(Error.MISSING_FILE, "corpus.de"),
        "refused as well",
    ),
    Case(
        "a symbolic link to itself",
        instead(lambda path: os.symlink(path, path)),
        "refused",
        Refusal(Error.MISSING_FILE, "corpus.de"),
        "refused as well",
    ),
    Case(
        "a pipe that nobody writes to",
        instead(os.mkfifo),
        "refused",
        Refusal(Error.WRONG_FILE_TYPE, "corpus.de"),
        "broken: unreadable at corpus.de",
    ),
]


def full_disk() -> None:
    """The disk takes two more KiB of each file."""
    source, limits = files(), resource.getrlimit(resource.RLIMIT_FSIZE)
    ids = prepared(source)  # makes the run directory and the tokenizer, which are small
    shutil.rmtree("run/prepared")
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, limits[1]))
    try:
        prepare(source, ids.tokenizers, "run/prepared/train", normalize="nfc", max_tokens=256, workers=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert not list(Path("run/prepared").iterdir())


def while_it_is_read(change: Callable[[], Any]) -> Callable[[], None]:
    """The files change when half of their pairs have become ids."""

    def mishap() -> None:
        read = FilesSource.pairs

        def pairs(self: FilesSource) -> Iterator[Any]:
            for pair in read(self):
                yield pair
                if pair.line == PAIRS // 2:
                    change()

        source = files()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FilesSource, "pairs", pairs)
            prepared(source)

    return mishap


def grow() -> None:
    for name in ("corpus.de", "corpus.en"):
        with open(name, "a", encoding="utf-8") as file:
            file.write("noch eine Zeile\n")


def vanish() -> None:
    for name in ("corpus.de", "corpus.en"):
        os.unlink(name)


def changed_before_training() -> None:
    source = files()
    assert not prepared(source).train_report.reused
    assert prepared(source).train_report.reused
    grow()
    report = prepared(source).train_report
    assert (report.reused, report.pairs_kept) == (False, PAIRS + 1)


def changed_in_training() -> None:
    source = files()
    prepared(source)
    os.makedirs("run/checkpoints/step-00000002")  # as far as anything looks before training goes on
    grow()
    prepared(source)


def elsewhere() -> None:
    source = files()
    os.mkdir("other")
    os.chdir("other")
    prepared(source)


def found_elsewhere() -> None:
    source = files()
    os.mkdir("other")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGOMAN_DATA", os.getcwd())
        patch.chdir("other")
        assert stored(prepared(source)) == GOOD


def no_permission() -> None:
    source, user = files(), os.geteuid()
    os.chmod("corpus.de", 0)
    if user == 0:  # root may read everything, so be somebody else for a moment
        os.chmod(".", 0o777)
        os.seteuid(65534)
    try:
        list(source.pairs())
    finally:
        os.seteuid(user)


def odd_bytes_in_a_name() -> None:
    names = ("corpus\udcff.de", "corpus.en")
    source = files(names=names)
    assert stored(prepared(source)) == GOOD
    assert recipes.of_run("run").corpus.train == source  # type: ignore[attr-defined]
    with raises_error(Error.EMPTY, r"'corpus\udcff.de'"):
        prepared(files("", names=names))


FILE_SYSTEM = [
    Case(
        "a file that is not there",
        instead(lambda path: None),
        "refused",
        Refusal(Error.MISSING_FILE, "corpus.de"),
        "refused as well",
    ),
    Case(
        "no permission",
        no_permission,
        "refused",
        Refusal(Error.CANNOT_READ, "corpus.de"),
    ),
    Case(
        "a full disk",
        full_disk,
        "refused",
        Refusal(Error.CANNOT_WRITE, "run/prepared/train"),
    ),
    Case(
        "grows while it is read",
        while_it_is_read(grow),
        "refused",
        Refusal(Error.CHANGED, "corpus.de"),
    ),
    Case(
        "vanishes while it is read",
        while_it_is_read(vanish),
        "refused",
        Refusal(Error.MISSING_FILE, "corpus.de"),
    ),
    Case(
        "changes between preparing and training",
        changed_before_training,
        "tolerated",
        "what was prepared is told by the bytes of the files: it is prepared again",
    ),
    Case(
        "changes between two parts of a training",
        changed_in_training,
        "refused",
        Refusal(Error.OTHER_CONTENT, "run"),
    ),
    Case(
        "a relative path, from another folder",
        elsewhere,
        "refused",
        Refusal(Error.MISSING_FILE, "corpus.de"),
    ),
    Case(
        "the same, with DRAGOMAN_DATA",
        found_elsewhere,
        "tolerated",
        "relative paths are looked up there too",
    ),
    Case(
        "a name that is not UTF-8",
        odd_bytes_in_a_name,
        "tolerated",
        "messages show its bytes as `\\udcff`",
        marks=(pytest.mark.skipif(sys.platform == "darwin", reason="macOS makes no such file"),),
    ),
    Case(
        "a name with a line end",
        lambda: files(names=("corpus\n.de", "corpus.en")),
        "tolerated",
        "messages show it as `\\n`",
        becomes=GOOD,
    ),
    Case(
        "a name with a line end, of an empty file",
        lambda: files("", names=("corpus\n.de", "corpus.en")),
        "refused",
        Refusal(Error.EMPTY, "corpus\n.de"),
        r"broken: empty file at 'corpus\n.de'",
    ),
    Case(
        "/dev/null",
        lambda: FilesSource(src="/dev/null", tgt=write("corpus.en", TGT)),
        "refused",
        Refusal(Error.WRONG_FILE_TYPE, "/dev/null"),
        "broken: unreadable at /dev/null",
    ),
]


def bad_row(row: str) -> Callable[[], Source]:
    return lambda: tsv([*ROWS[: BAD - 1], *row.split("\n"), *ROWS[BAD:]])


def bad_record(kind: str, line: str, code: Error) -> Case:
    return Case(
        f"JSONL: {kind}",
        lambda: jsonl(line),
        "refused",
        Refusal(code, "corpus.jsonl:40"),
        "broken: unreadable at corpus.jsonl:40",
    )


RECORDS = [
    Case(
        "TSV: one column",
        lambda: tsv(SRC),
        "refused",
        Refusal(Error.WRONG_SHAPE, "corpus.tsv:1"),
        "broken: unreadable at corpus.tsv",
    ),
    Case(
        "TSV: three columns",
        lambda: tsv([row + "\tof the embedded corpus" for row in ROWS]),
        "tolerated",
        "the two that are asked for are read",
        becomes=GOOD,
    ),
    Case(
        "TSV: a tab inside a text",
        bad_row("ein\tHaus\ta house"),
        "refused",
        Refusal(Error.WRONG_SHAPE, "corpus.tsv:40"),
        "broken: unreadable at corpus.tsv:40",
    ),
    Case(
        "TSV: a row too short",
        bad_row("ein Haus"),
        "refused",
        Refusal(Error.WRONG_SHAPE, "corpus.tsv:40"),
        "broken: unreadable at corpus.tsv:40",
    ),
    Case(
        "TSV: a header",
        lambda: tsv(["deutsch\tenglisch", *ROWS]),
        "tolerated",
        "it is a pair like any other: there are no headers",
        becomes=Corpus(["deutsch", *SRC], ["englisch", *TGT]),
    ),
    Case(
        "TSV: a line end in quotes",
        bad_row('"ein\nHaus"\ta house'),
        "refused",
        Refusal(Error.WRONG_SHAPE, "corpus.tsv:40"),
        "broken: unreadable at corpus.tsv:40",
    ),
    Case(
        "TSV: a CR inside a text",
        bad_row("ein\rHaus\ta house"),
        "refused",
        Refusal(Error.WRONG_SHAPE, "corpus.tsv:40"),
        "broken: unreadable at corpus.tsv:40",
    ),
    bad_record("broken", '{"src": "a", "tgt": ', Error.BAD_SYNTAX),
    bad_record("a missing key", '{"src": "a"}', Error.WRONG_SHAPE),
    bad_record("null for a text", '{"src": null, "tgt": "b"}', Error.WRONG_SHAPE),
    bad_record("a number for a text", '{"src": "a", "tgt": 3}', Error.WRONG_SHAPE),
    bad_record("a list for a text", '{"src": "a", "tgt": ["b"]}', Error.WRONG_SHAPE),
    bad_record("a key twice", '{"src": "a", "tgt": "b", "src": "c"}', Error.BAD_SYNTAX),
    bad_record("half a surrogate pair", '{"src": "\\ud83d", "tgt": "b"}', Error.NOT_TEXT),
]

SHORT = Corpus([*(["Ja"] * 8), *SRC[8:]], [*("yes " * 50 + str(number) for number in range(8)), *TGT[8:]])
DOTS = Corpus(["." * (number + 1) for number in range(200)], ["!" * (number + 1) for number in range(200)])
NUMBERS = Corpus(*([f"{number * 7919} {number}" for number in range(PAIRS)] for _ in range(2)))
LETTER = Corpus(*(["a" * (number % 50 + 1) for number in range(PAIRS)] for _ in range(2)))


def all_of(kind: str, corpus: Corpus, says: str, finds: str, **options: Any) -> Case:
    return Case(kind, lambda: files(*corpus), "doctor", says, finds, becomes=corpus, **options)


CONTENT = [
    all_of(
        "the same pair again and again",
        Corpus([SRC[3]] * PAIRS, [TGT[3]] * PAIRS),
        "",
        "broken: not parallel at corpus.de; warning: boilerplate at corpus.de:1; warning: duplicate at corpus.de:1",
    ),
    all_of(
        "copies of the source",
        Corpus(SRC[:200] + SRC[200:], TGT[:200] + SRC[200:]),
        "half of it: a model would learn to copy",
        "warning: copy of the source at corpus.en:201",
    ),
    all_of("nothing but punctuation", DOTS, "it is taken as it is", "warning: no letters at corpus.de:1"),
    all_of("nothing but numbers", NUMBERS, "it is taken as it is", "warning: no letters at corpus.de:1"),
    all_of(
        "another language, with --language-id",
        Corpus(SRC[:20] + TGT[20:40] + SRC[40:], TGT),
        "it is taken as it is",
        "warning: copy of the source at corpus.en:21; warning: wrong language at corpus.de:21",
        doctor={"identify": lambda texts: ["de" if text in set(SRC) else "en" for text in texts]},
    ),
    all_of(
        "another script",
        Corpus(["Это предложение написано по-русски." if n < 8 else text for n, text in enumerate(SRC)], TGT),
        "it is taken as it is",
        "warning: wrong script at corpus.de:1",
    ),
    all_of("a target a hundred times as long", SHORT, "it is taken so", "warning: odd length ratio at corpus.de:1"),
    one_line("control characters", "Ich habe\x01 viel Zeit\x7f für dich.", "warning: control character"),
    one_line("marks of direction", "Ich habe\u200f viel Zeit für\u202e dich.", "note: invisible character"),
    one_line("nothing but zero-width spaces", "\u200b" * 40, "note: invisible character"),
    one_line("private use characters", "Ich habe viel \ue000\ue001 für dich.", "warning: private use character"),
    one_line("HTML", "Ich habe <b>viel</b> Zeit &amp; Geld.", "warning: HTML", "tags and entities stay"),
    all_of(
        "an alphabet of one letter",
        LETTER,
        "it is taken as it is",
        "warning: duplicate at corpus.de:1; warning: copy of the source at corpus.en:13",
    ),
]


WORDS = {"type": "words"}


def special_tokens() -> None:
    text = "<s> <pad> </s> <unk>"
    for kind in ("characters", "sentencepiece", "words", "whitespace"):
        found = prepared(files(with_line(text)), tokenizer={"type": kind}, run_dir=kind)
        ids = found.train.src(BAD - 1).tolist()
        assert not {0, 2, 3} & set(ids)
        if kind in ("characters", "sentencepiece"):
            assert found.tokenizers.src.decode(ids) == text


def too_large_a_vocabulary() -> None:
    found = prepared(files(), tokenizer={"type": "sentencepiece", "vocab_size": 30_000})
    assert found.tokenizers.src.vocab_size < 5_000
    assert stored(found) == GOOD


def other_sides_model() -> None:
    source, separate = files(), {"type": "separate", "src": WORDS, "tgt": WORDS}
    assert prepared(source, tokenizer=separate).train_report.src_unknown == 0
    for before, after in (("src", "old"), ("tgt", "src"), ("old", "tgt")):
        os.rename(f"run/tokenizer/{before}", f"run/tokenizer/{after}")
    report = prepared(source, tokenizer=separate).train_report
    assert not report.reused
    assert report.src_unknown > report.src_tokens / 2


def vocabulary(pieces: list[str], layout: str = "") -> TokenizerPair:
    """The tokenizers of a run whose vocabulary file was made by hand."""
    prepared(files(), tokenizer=WORDS)
    text = json.dumps(["<pad>", "<unk>", "<s>", "</s>", *pieces], ensure_ascii=False, indent=0)
    write("run/tokenizer/shared/vocabulary.json", text.replace("\n", "\n" + layout))
    return load_tokenizers(Path("run/tokenizer"))


def blank_lines() -> None:
    tokenizer = vocabulary(["ein", "Haus"], layout="\n\n").src
    assert tokenizer.encode("ein Haus") == [4, 5]


def separators() -> None:
    tokenizer = vocabulary(["ein\u2028", "Haus\x85"]).src
    assert tokenizer.vocab_size == 6
    assert tokenizer.pieces([4, 5]) == ["ein\u2028", "Haus\x85"]


def ids_out_of_range() -> None:
    source = files()
    prepared(source)
    path = Path("run/prepared/train/src.bin")
    data = bytearray(path.read_bytes())
    data[100:102] = b"\xff\xff"
    path.write_bytes(data)
    prepared(source)


def another_vocabulary() -> None:
    source = files()
    prepared(source)
    IdCorpus("run/prepared/train", (10, 10))


VOCABULARY = [
    Case(
        "a vocabulary smaller than the specials",
        lambda: prepared(files(), tokenizer={**WORDS, "vocab_size": 3}),
        "refused",
        Refusal(Error.WRONG_SETTING, "recipe.yaml"),
    ),
    Case(
        "subwords: a vocabulary smaller than the alphabet",
        lambda: prepared(files(), tokenizer={"type": "sentencepiece", "vocab_size": 8}),
        "refused",
        Refusal(Error.WRONG_SETTING),
    ),
    Case(
        "subwords: a vocabulary larger than the text has pieces",
        too_large_a_vocabulary,
        "tolerated",
        "there are as many as there are",
    ),
    Case("text that spells special tokens", special_tokens, "tolerated", "it never becomes their ids"),
    Case(
        "the model of the other side",
        other_sides_model,
        "tolerated",
        "the ids are made again, and the line on each split says how many are unknown",
    ),
    Case(
        "a vocabulary with an entry twice",
        lambda: vocabulary(["ein", "Haus", "ein"]),
        "refused",
        Refusal(Error.WRONG_SHAPE, "run/tokenizer/shared/vocabulary.json"),
    ),
    Case("a vocabulary with blank lines", blank_lines, "tolerated", "it is JSON: they move no entry"),
    Case("a vocabulary with line separators", separators, "tolerated", "they are part of their entry"),
    Case(
        "prepared ids out of range",
        ids_out_of_range,
        "refused",
        Refusal(Error.DAMAGED, "run/prepared/train"),
    ),
    Case(
        "prepared ids of another vocabulary",
        another_vocabulary,
        "refused",
        Refusal(Error.DAMAGED, "run/prepared/train"),
    ),
]


def weighted(weights: list[str]) -> Source:
    return replace(files(), weights=write("weights", weights))  # type: ignore[type-var]


def every_other_pair() -> None:
    source = weighted(["0.5"] * PAIRS)
    assert [pair.line for pair in source.pairs()] == list(range(2, PAIRS + 1, 2))
    assert prepared(source).train_report.pairs_read == PAIRS // 2


def mixed(**settings: Any) -> Source:
    write("other.de", GOOD.src[:10])
    write("other.en", GOOD.tgt[:10])
    parts = [{"type": "files", "src": f"{name}.de", "tgt": f"{name}.en"} for name in ("corpus", "other")]
    files()
    return parse(MixSource, {"type": "mix", "sources": parts, **settings}, "corpus.train")


def twice_and_never() -> None:
    source = mixed(weights=[0, 2.5])
    assert [pair.src for pair in source.pairs()] == [GOOD.src[row] for row in range(10) for _ in range(2 + row % 2)]
    assert prepared(source).train_report.pairs_read == 25
    assert Examination(source, "de", "en").run().src_lines == PAIRS + 10


MIXTURES = [
    Case(
        "a file of weights with a line too few",
        lambda: weighted(["1"] * (PAIRS - 1)),
        "refused",
        Refusal(Error.UNEQUAL_COUNTS, "weights"),
    ),
    Case(
        "a file of weights with a line too many",
        lambda: weighted(["1"] * (PAIRS + 1)),
        "refused",
        Refusal(Error.UNEQUAL_COUNTS, "weights"),
    ),
    Case(
        "a negative weight",
        lambda: weighted(["1"] * (BAD - 1) + ["-1"] + ["1"] * (PAIRS - BAD)),
        "refused",
        Refusal(Error.OUT_OF_RANGE, "weights:40"),
    ),
    Case(
        "a weight that is not a number (NaN)",
        lambda: weighted(["1"] * (BAD - 1) + ["nan"] + ["1"] * (PAIRS - BAD)),
        "refused",
        Refusal(Error.OUT_OF_RANGE, "weights:40"),
    ),
    Case(
        "a weight that is a word",
        lambda: weighted(["1"] * (BAD - 1) + ["much"] + ["1"] * (PAIRS - BAD)),
        "refused",
        Refusal(Error.WRONG_SHAPE, "weights:40"),
    ),
    Case(
        "a mixture whose weights are all 0",
        lambda: mixed(weights=[0, 0]),
        "refused",
        Refusal(Error.WRONG_SETTING, "corpus.train"),
    ),
    Case(
        "a mixture with a weight too few",
        lambda: mixed(weights=[1]),
        "refused",
        Refusal(Error.WRONG_SETTING, "corpus.train"),
    ),
    Case(
        "a mixture with a negative weight",
        lambda: mixed(weights=[1, -1]),
        "refused",
        Refusal(Error.WRONG_SETTING, "corpus.train"),
    ),
    Case("weights of one half", every_other_pair, "tolerated", "every other pair, the same in each epoch"),
    Case("weights of 0 and 2.5", twice_and_never, "tolerated", "none of the one, each of the other two or three times"),
]

SECTIONS = {
    "Encoding": ENCODING,
    "Lines": LINES,
    "Alignment": ALIGNMENT,
    "Containers": CONTAINER,
    "File system": FILE_SYSTEM,
    "TSV and JSONL": RECORDS,
    "Content": CONTENT,
    "Vocabulary and ids": VOCABULARY,
    "Mixtures": MIXTURES,
}
CASES = [case for cases in SECTIONS.values() for case in cases]


# -- the tests ---------------------------------------------------------------------------------------------------------


def matches(text: str, pattern: str) -> bool:
    """Whether a text is what the pattern says, "…" standing for anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), text) is not None


def that_are(*done: str, in_the_files: bool = False) -> Any:
    cases = [case for case in CASES if case.done in done and (case.finds or not in_the_files)]
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.kind, marks=case.marks) for case in cases])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory for each test, so that messages name files as short as in the table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAGOMAN_DATA", raising=False)
    return tmp_path


def corpus_settings(case: Case, doctor: str) -> dict[str, Any]:
    return dict(zip(("src_lang", "tgt_lang"), case.languages, strict=True)) | {"doctor": doctor}


def found_by_the_doctor(source: Source, case: Case) -> str:
    """All findings as the table has them."""
    try:
        diagnosis = Examination(source, *case.languages, **case.doctor).run()
    except DragomanError as error:
        return f"refused as well{'' if error.code is Error.MISSING_FILE else f' ({error})'}"
    return "; ".join(f"{finding.severity}: {finding.kind} at {finding.place}" for finding in diagnosis.findings)


def check(error: DragomanError, refusal: Any, case: Case, which: str) -> None:
    """Hold an error to the refusal of a case, and to its recorded words."""
    place = error.file if error.line is None else f"{error.file}:{error.line}"
    assert error.code is refusal.code, error
    assert place == refusal.place or (place or "").endswith(f"/{refusal.place}"), error
    assert "\n" not in str(error)
    words = json.loads(WORDS_OF_ERRORS.read_text(encoding="utf-8"))
    if os.environ.get("DRAGOMAN_RECORD") and not matches(str(error), words.get(case.kind, {}).get(which, "")):
        words.setdefault(case.kind, {})[which] = str(error)
        WORDS_OF_ERRORS.write_text(json.dumps(words, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert matches(str(error), words[case.kind][which]), error


@that_are("refused")
def test_refused(case: Case) -> None:
    with pytest.raises(DragomanError) as caught:
        prepared(case.make(), corpus=corpus_settings(case, "skip"))
    check(caught.value, case.says, case, "says")


@that_are("refused", in_the_files=True)
def test_what_is_refused_is_refused_before_anything_is_written(case: Case) -> None:
    """With the doctor, that is, who looks first; what it finds by itself, it says in its own words."""
    source = case.make()
    found = found_by_the_doctor(source, case)
    assert matches(found, case.finds), found
    with pytest.raises(DragomanError) as caught:
        prepared(source)
    check(caught.value, case.first or case.says, case, "first" if case.first else "says")
    assert not Path("run").exists()


@that_are("doctor", "dropped", "tolerated")
def test_trained_on(case: Case) -> None:
    source = case.make()
    if source is None:
        return  # it has looked for itself
    found = found_by_the_doctor(source, case)
    assert matches(found, case.finds), found
    broken = "broken" in found and not case.doctor  # what the doctor has to be told, training does not know
    if broken:
        place = re.split(r" at |; ", found)[1]
        with pytest.raises(DragomanError) as caught:
            prepared(source, corpus=corpus_settings(case, "refuse"))
        check(caught.value, Refusal(Error.BAD_CORPUS, place), case, "says")
        assert not Path("run").exists()
    kept = prepared(source, corpus=corpus_settings(case, "skip" if broken else "refuse"))
    assert case.becomes is None or stored(kept) == case.becomes
    assert dropped_text(kept.train_report.dropped) == (case.says if case.done == "dropped" else "none")


def test_each_kind_is_a_kind_of_its_own() -> None:
    kinds = [case.kind for case in CASES]
    assert len(set(kinds)) == len(kinds) >= 100


def test_a_warning_says_of_what_kind_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is nothing to show of a line, the kind of finding is said all the same."""
    prepared(files(SRC, with_line("", lines=TGT)))
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("doctor:")]
    assert warnings == ["doctor: warning: corpus.en:40: blank on one side, 1 of 400 pairs"]


def test_both_columns_of_a_table_are_examined() -> None:
    diagnosis = Examination(tsv([*ROWS[: BAD - 1], "<b>ein</b> Haus\ta house", *ROWS[BAD:]]), "de", "en").run()
    assert [(finding.kind, finding.line) for finding in diagnosis.findings] == [("HTML", BAD)]


def test_what_keeps_a_file_from_being_read_is_said_in_full() -> None:
    """However long its name is: the end says what to do."""
    os.makedirs("a" * 100)
    write(f"{'a' * 100}/corpus.tsv", "one column\n")
    finding = Examination(TsvSource(path=f"{'a' * 100}/corpus.tsv")).run().findings[0]
    assert finding.example.endswith("corpus.tsv:1: 1 tab-separated column, but column 2 is asked for")


def test_lines_far_beyond_the_end_of_the_other_side_are_not_kept() -> None:
    for longer in (0, 1):
        shifts = Shifts()
        for part in range(10):
            sides = [["ein Satz"] * 5000, ["a sentence"] * (5000 if part == 0 else 0)]
            shifts.add(*(sides if longer == 0 else sides[::-1]))
        assert len(shifts.src) + len(shifts.tgt) <= 5000 + 5000 + 20_000


# -- the command line --------------------------------------------------------------------------------------------------


def case_of(kind: str) -> Case:
    return next(case for case in CASES if case.kind == kind)


def dragoman(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *arguments], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert "Traceback" not in done.stderr
    done.stderr = re.sub(r"^examining: .*\n", "", done.stderr, flags=re.MULTILINE)  # progress, on a slow machine
    return done


@pytest.mark.parametrize("kind", ["a byte of Latin-1", "a source line too many", "gzip data that is cut off"])
def test_train_refuses_in_one_line(kind: str) -> None:
    case = case_of(kind)
    source = case.make()
    done = dragoman("train", "--src", source.src, "--tgt", source.tgt, "--run", "run")
    assert (done.returncode, done.stdout) == (2, "")
    words = json.loads(WORDS_OF_ERRORS.read_text(encoding="utf-8"))[case.kind]
    assert matches(done.stderr, f"dragoman: {words.get('first') or words['says']}\n"), done.stderr
    assert not Path("run").exists()


def test_train_refuses_what_only_the_doctor_sees() -> None:
    source = case_of("one side in reversed order").make()
    done = dragoman("train", "--src", source.src, "--tgt", source.tgt, "--run", "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert matches(done.stderr, "dragoman: corpus.de: not parallel (…): …\n"), done.stderr
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("kind", "code", "first"),
    [
        ("gzip files joined", 0, "corpus.de.gz | corpus.en: 400 lines: clean\n"),
        ("HTML", 1, "corpus.de | corpus.en: 400 lines: warnings\n  warning          1  HTML, first at corpus.de:40\n"),
        ("a NUL byte", 2, "corpus.de | corpus.en: 400 lines: broken\n  broken           1  NUL, first at corpus.de:40"),
    ],
)
def test_doctor_says_what_it_is_by_its_exit_code(kind: str, code: int, first: str) -> None:
    source = case_of(kind).make()
    done = dragoman("doctor", source.src, source.tgt)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith(first), done.stdout


# -- the document ------------------------------------------------------------------------------------------------------

INTRODUCTION = """# Bad corpora, and what becomes of each

Printed from the table in `tests/system/test_bad_corpora.py`, which makes every one of these corpora and sees that it is
so: `python -m tests.system.test_bad_corpora`.

- **refused**: training says this line, of file and line, and exits with code 2 before anything is trained.
- **doctor**: it can be trained on, and `dragoman doctor` finds it. Training refuses what is broken (the line is what
  it says; `corpus.doctor=warn` lets it through), tells warnings, and leaves notes to the doctor.
- **dropped**: the pairs are left out and counted, in the words shown.
- **tolerated**: on purpose.

The good corpus has 400 pairs, and line 40 is the bad one where a single one is. "…" is what was left out here.
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def document() -> str:
    parts, words = [INTRODUCTION], json.loads(WORDS_OF_ERRORS.read_text(encoding="utf-8"))
    for title, cases in SECTIONS.items():
        rows = []
        for case in cases:
            said = words.get(case.kind, {"says": case.says})
            says = said["says"] + (f"<br>the doctor first: {said['first']}" if "first" in said else "")
            rows.append(f"| {cell(case.kind)} | {case.done} | {cell(says)} | {cell(case.finds)} |\n")
        head = "| kind | what is done | what it says | what the doctor finds |\n| --- | --- | --- | --- |\n"
        parts.append(f"## {title}\n\n{head}{''.join(rows)}")
    return "\n".join(parts)


def test_the_page_has_a_row_for_each_case() -> None:
    page = document()
    assert [case.kind for case in CASES if f"| {cell(case.kind)} | {case.done} | " not in page] == []


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print(document(), end="")
