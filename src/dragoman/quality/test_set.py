"""A test set in memory: source lines, one or several references of each, and the languages of both sides."""

import difflib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sacrebleu.dataset import DATASETS

from dragoman.errors import Error, show
from dragoman.languages.codes import name_of
from dragoman.languages.identification import language_or_recognised
from dragoman.progress import say
from dragoman.quality.text_forms import FORMATS, MARKUP
from dragoman.text.lines import find, language_of_file, read_lines


@dataclass(frozen=True)
class TestSet:
    """Source lines, and streams of references: `references[k][i]` is the k-th reference of line i.

    `files`: where they were read from, by the names src and ref, for programs that want files.
    """

    __test__ = False  # pytest: this is no test

    sources: list[str]
    references: list[list[str]]
    languages: tuple[str, str] = ("", "")
    name: str = "test"
    files: tuple[Path, Path] | None = None

    def __post_init__(self) -> None:
        if not self.sources:
            raise Error.EMPTY(f"{self.name}: there is nothing to score: no sentences")
        for number, lines in enumerate(self.references, 1):
            if len(lines) != len(self.sources):
                raise Error.UNEQUAL_COUNTS(
                    f"{self.name}: reference {number} has {len(lines):,} lines, the source {len(self.sources):,}"
                )

    def __len__(self) -> int:
        return len(self.sources)

    def rows(self, rows: Sequence[int]) -> "TestSet":
        """A part of the lines."""
        references = [[lines[row] for row in rows] for lines in self.references]
        return TestSet([self.sources[row] for row in rows], references, self.languages, self.name)

    @classmethod
    def read(cls, src: Path, refs: Sequence[Path], languages: tuple[str, str] = ("", ""), name: str = "") -> "TestSet":
        """The lines of files; languages that are not given are those of the files' names (`test.de`), or of their text.

        Raises DragomanError when counts differ or a file has no lines.
        """
        sources = list(read_lines(find(src)))
        references = []
        for ref in refs:
            lines = _texts(ref)
            if len(lines) != len(sources):
                raise Error.UNEQUAL_COUNTS(
                    f" has {len(lines):,} lines, and its source {show(src)} has {len(sources):,}: line n of one must "
                    "translate line n of the other",
                    file=ref,
                )
            references.append(lines)
        codes = languages[0] or language_of_file(src), languages[1] or language_of_file(refs[0] if refs else src)
        test = cls(sources, references, codes, name or src.name, (src, refs[0]) if refs else None)
        return test.with_languages()

    def with_languages(self) -> "TestSet":
        """With languages as its text says, where their codes are none."""
        texts = self.sources, self.references[0] if self.references else []
        codes = [language_or_recognised(code, lines) for code, lines in zip(self.languages, texts, strict=True)]
        for code, own, option in zip(codes, self.languages, ("src_lang", "tgt_lang"), strict=True):
            if code != own:
                say(f"{self.name}: taken for {name_of(code)}, as its text says (`{option}`: another language)")
        return replace(self, languages=(codes[0], codes[1]))


def files_of_sacrebleu(name: str, pair: str) -> tuple[Path, list[Path]]:
    """(source, references) of a test set that sacreBLEU has fetched, such as "wmt14" and "en-de".

    Raises DragomanError for a set that it does not know or has not fetched.
    """
    for given, known in ((name, DATASETS), (pair, DATASETS[name].langpairs if name in DATASETS else {})):
        if given not in known:
            near = difflib.get_close_matches(given, known, n=1)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else f"`sacrebleu --list{'' if known is DATASETS else f' -t {name}'}`"
            )
            raise Error.UNKNOWN_NAME(f"sacreBLEU knows no {given!r}", hint)
    dataset = DATASETS[name]
    files = [Path(dataset._get_txt_file_path(pair, field)) for field in dataset.fieldnames(pair)]
    if missing := [path for path in files if not path.exists()]:
        hint = f"fetch the set on a machine with network: sacrebleu -t {name} -l {pair} --echo src"
        raise Error.MISSING_FILE("sacreBLEU has not fetched it", hint, file=missing[0])
    return Path(dataset.get_source_file(pair)), [Path(path) for path in dataset.get_reference_files(pair)]


def read_hypotheses(path: Path, test: TestSet) -> list[str]:
    """The lines of a file that translate those of a test set. Raises DragomanError when their numbers differ."""
    lines = _texts(path, may_be_empty=True)
    if len(lines) != len(test):
        raise Error.UNEQUAL_COUNTS(
            f" has {len(lines):,} lines and {test.name} has {len(test):,}: each line must be the translation of the "
            "source line of the same number",
            file=path,
        )
    return lines


def _texts(path: Path, *, may_be_empty: bool = False) -> list[str]:
    """The lines of a file. Raises DragomanError for lines that hold more than a text each."""
    lines = list(read_lines(find(path), may_be_empty=may_be_empty))
    if lines and MARKUP.match(lines[0]):
        hint = "keep the texts of its segments: grep '<seg' | sed 's/<[^>]*>//g'"
        raise Error.WRONG_SHAPE(f" is markup (`{lines[0][:40]}`), and not a text a line", hint, file=path)
    for pattern, kind, hint in FORMATS if lines else ():
        if sum(1 for line in lines if pattern.match(line)) > 0.9 * len(lines):
            raise Error.WRONG_SHAPE(f" is {kind} (`{lines[0][:40]}`)", hint, file=path)
    return lines


def composed(lines: Sequence[str]) -> list[str]:
    """Lines in NFC: one letter that is spelt as two code points is no difference."""
    return [unicodedata.normalize("NFC", line) for line in lines]
