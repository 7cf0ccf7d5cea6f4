"""Parts of a test set that are scored by themselves: by length of sentences, by rare words, by a column of labels."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from dragoman.errors import Error, show
from dragoman.languages.codes import written_without_spaces
from dragoman.quality.test_set import TestSet
from dragoman.text.lines import find, read_lines
from dragoman.text.words import folded

LENGTH_EDGES_WORDS = (10, 20, 30, 40, 60)
"""The longest source of each part, in words, or in pairs of signs where words are not separated, but of the last."""
FREQUENCY_EDGES = (0, 5, 50, 500)
"""The largest number of each part, but of the last: of times that the training text has a source's rarest word."""
MAX_LABELS = 100


def slices(test: TestSet, by: str, training: Iterable[str] | None = None) -> dict[str, list[int]]:
    """Rows of the test set by the name of the part that they are in; parts without sentences are left out.

    `by`: `length`, `rarity` (by the source lines of the `training` text), or a file with a label for each line.
    Raises DragomanError where there is no training text to count in, or the labels do not fit.
    """
    if by == "length":
        return _by_number(
            [_length(line, test.languages[0]) for line in test.sources], LENGTH_EDGES_WORDS, "length {}", from_number=1
        )
    if by == "rarity":
        if training is None:
            raise Error.MISSING_OPTION(
                "`by` rarity counts words in the training text", "give `training_text`, the source side"
            )
        words = {word for line in test.sources for word in folded(line)}
        counts = Counter(word for line in training for word in folded(line) if word in words)
        rarest = [min((counts[word] for word in folded(line)), default=0) for line in test.sources]
        return _by_number(rarest, FREQUENCY_EDGES, "rarest word {} times", from_number=0)
    labels = list(read_lines(find(by), may_be_empty=True))
    if len(labels) != len(test):
        raise Error.UNEQUAL_COUNTS(
            f"`by` {show(Path(by))} has {len(labels):,} lines and {test.name} {len(test):,}: one label for each line"
        )
    parts: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        parts.setdefault(label.strip() or "(no label)", []).append(row)
    if len(parts) > MAX_LABELS:
        raise Error.TOO_LARGE(f"`by` {show(Path(by))} has {len(parts):,} different labels, more than {MAX_LABELS}")
    return dict(sorted(parts.items()))


def _by_number(numbers: list[int], bounds: tuple[int, ...], name: str, *, from_number: int) -> dict[str, list[int]]:
    parts, low = {}, from_number
    for high in (*bounds, None):
        rows = [row for row, number in enumerate(numbers) if number >= low and (high is None or number <= high)]
        span = f"{low}+" if high is None else str(low) if low == high else f"{low}-{high}"
        if rows:
            parts[name.format(span)] = rows
        low = (high or 0) + 1
    return parts


def _length(line: str, language: str) -> int:
    if language and written_without_spaces(language):
        return max(1, len(line.replace(" ", "")) // 2)
    return max(1, len(line.split()))
