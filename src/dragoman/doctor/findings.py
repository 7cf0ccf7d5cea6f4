"""The kinds of findings about a corpus, each with its severity and the advice to users."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Verdict = Literal["clean", "warnings", "broken"]
EXIT_CODES: dict[Verdict, int] = {"clean": 0, "warnings": 1, "broken": 2}


class Kind(NamedTuple):
    broken: bool  # a single finding makes the corpus unfit: training refuses it, or would learn something wrong
    tolerated: float  # the share of lines up to which it is a note and not a warning
    advice: str


KINDS = {
    "unequal line counts": Kind(True, 0, "find the line that is missing or was cut in two; see `shift`"),
    "shift": Kind(True, 0, "look at both files around that line: a line is missing, too many, or cut in two there"),
    "not parallel": Kind(True, 0, "the two files do not translate each other line by line: were they shuffled apart?"),
    "same file": Kind(True, 0, "name one file for each language"),
    "empty file": Kind(True, 0, "name a file with text in it"),
    "unreadable": Kind(True, 0, "see what it says; the file is read no further than that"),
    "not UTF-8": Kind(True, 0, "convert the file (`iconv -f WINDOWS-1252 -t UTF-8`), or have `fix` drop these pairs"),
    "NUL": Kind(True, 0, "is this a text file? `fix` drops these pairs"),
    "swapped sides": Kind(True, 0, "give the files in the other order, or mend the language codes"),
    "markup file": Kind(True, 0, "take the texts out of it first: one file of lines for each language"),
    "swapped pair": Kind(False, 0.001, "source and target stand in each other's column; `fix` drops these pairs"),
    "boilerplate": Kind(False, 0, "the model learns it by heart; `fix` keeps the first of equal pairs"),
    "blank on one side": Kind(False, 0.001, "training drops these pairs; many of them may be a shift"),
    "blank on both sides": Kind(False, 0.01, "training drops these pairs"),
    "byte order mark inside": Kind(False, 0, "files were joined with their marks; `fix` removes it"),
    "byte order mark": Kind(False, 1, "it is ignored; `fix` removes it"),
    "CRLF": Kind(False, 1, "the CR is ignored; `fix` removes it"),
    "line separator inside": Kind(False, 0.001, "other programs take it for a line end and shift the files; `fix` "
                                                "puts a space there"),
    "control character": Kind(False, 0, "`fix` removes it"),
    "invisible character": Kind(False, 0.01, "`fix` removes those that no script needs"),
    "private use character": Kind(False, 0.001, "it means nothing outside of one font; `fix` drops these pairs"),
    "replacement character": Kind(False, 0, "something was lost when the text was converted; `fix` drops these pairs"),
    "mojibake": Kind(False, 0, "it was read in another encoding than it is written in; `fix` mends it"),
    "HTML": Kind(False, 0.001, "`fix` removes tags and puts characters for entities"),
    "cut into subwords": Kind(False, 0.005, "join them again (`sed 's/@@ //g'`): the tokenizer is learnt here"),
    "tokenised": Kind(False, 0.2, "detokenise it (sacremoses): what is translated and scored later is plain text"),
    "not normalised": Kind(False, 0.05, "one letter is written as two characters; training normalises to NFC"),
    "very long line": Kind(False, 0, "it is no sentence; training drops it (corpus.max_tokens)"),
    "copy of the source": Kind(False, 0.01, "the model learns to copy; `fix` drops these pairs"),
    "wrong script": Kind(False, 0.005, "`fix` drops these pairs"),
    "wrong language": Kind(False, 0.01, "`fix` drops these pairs"),  # who tells languages errs, too
    "no letters": Kind(False, 0.02, "pairs of punctuation and numbers teach little; `fix` drops them"),
    "odd length ratio": Kind(False, 0.01, "one side says far more than the other; `fix` drops these pairs"),
    "duplicate": Kind(False, 0.1, "`fix` keeps the first of each"),
    "in the test set": Kind(False, 0, "a score on what was trained on means nothing; `fix` drops these pairs"),
    "nearly in the test set": Kind(False, 0.002, "all but the same words; `fix` drops these pairs"),
}  # fmt: skip


@dataclass
class Finding:
    """The number of findings of a kind in a file, and the first of them."""

    kind: str
    count: int
    looked_at: int  # lines
    file: str = ""
    line: int | None = None  # from 1; None for the whole file
    example: str = ""

    @property
    def severity(self) -> Literal["broken", "warning", "note"]:
        kind = KINDS[self.kind]
        if kind.broken:
            return "broken"
        return "warning" if self.count > kind.tolerated * self.looked_at else "note"

    @property
    def advice(self) -> str:
        return KINDS[self.kind].advice

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def described(self) -> str:
        return self.kind + (f" ({self.example})" if self.example else "")

    @property
    def summary(self) -> str:
        return f"{self.place}: {self.described}"

    def to_dict(self) -> dict[str, Any]:
        names = ("kind", "severity", "count", "looked_at", "file", "line", "example", "advice")
        return {name: getattr(self, name) for name in names}


@dataclass
class Diagnosis:
    """The findings in a pair of files."""

    src: str
    tgt: str
    src_lines: int = 0
    tgt_lines: int = 0
    languages: dict[str, str] = field(default_factory=dict)
    """The language of each file, and the share of its lines that are in it, in words."""
    by_place: dict[tuple[str, str], Finding] = field(default_factory=dict)
    """By (kind, file); each shift is a finding of its own, by (kind, file:line)."""
    sampled: dict[tuple[str, str], int] = field(default_factory=dict)
    """Number of lines that were examined, by (kind, file), if those are not all."""

    def add(self, kind: str, file: str = "", line: int | None = None, example: str = "", count: int = 1) -> None:
        place = f"{file}:{line}" if kind == "shift" else file
        # The message of an unreadable file stays whole: it ends in what to do about it.
        text = shortened(example) if kind != "unreadable" else example
        finding = self.by_place.setdefault((kind, place), Finding(kind, 0, 0, file, line, text))
        finding.count += count

    def has(self, kind: str) -> bool:
        return any(kind == other for other, _ in self.by_place)

    @property
    def findings(self) -> list[Finding]:
        """All findings, the worst first."""
        order = {"broken": 0, "warning": 1, "note": 2}
        for finding in self.by_place.values():
            finding.looked_at = self.sampled.get((finding.kind, finding.file), max(self.src_lines, self.tgt_lines))
        return sorted(self.by_place.values(), key=lambda finding: (order[finding.severity], -finding.count))

    @property
    def verdict(self) -> Verdict:
        severities = {finding.severity for finding in self.findings}
        return "broken" if "broken" in severities else "warnings" if "warning" in severities else "clean"

    def to_dict(self) -> dict[str, Any]:
        names = ("src", "tgt", "src_lines", "tgt_lines", "verdict", "languages")
        return {name: getattr(self, name) for name in names} | {"findings": [f.to_dict() for f in self.findings]}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    return max(verdicts, key=EXIT_CODES.__getitem__, default="clean")


def shortened(text: str, width: int = 80) -> str:
    """A text for a table, cut at `width`; invisible characters are written as their codes.

    >>> shortened("a\\u200bb")
    'a\\\\u200bb'
    """
    kept = text[: width + 1]  # no more can be shown
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in kept)
    return shown if len(shown) <= width else shown[: width - 1] + "…"
