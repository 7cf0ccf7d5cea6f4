"""Words and phrases that no translation may hold, from a file: one a line.

As in a glossary, a phrase in lower case is meant in any case, a phrase with capitals as it is written, and both as
whole words. A sentence whose translation holds a phrase is searched again without the tokens that spelled it. So a
longer word that the same tokens begin is not written in this sentence either. All other sentences stay as they are.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import Error
from dragoman.text.glossary import Glossary
from dragoman.text.lines import read_lines


@dataclass(frozen=True)
class BannedPhrases:
    """Phrases that no translation may hold.

    >>> banned = BannedPhrases(("dog",))
    >>> banned.held("A Dog and two dogs.")
    ['Dog']
    """

    phrases: tuple[str, ...]

    @classmethod
    def load(cls, path: Path) -> "BannedPhrases":
        """Read a file of phrases; blank lines and lines that begin with # are none.

        Raises DragomanError where there are none, and, naming the line, for one with a tab: a glossary's.
        """
        phrases = []
        for number, line in enumerate(read_lines(path), start=1):
            phrase = line.strip()
            if not phrase or phrase.startswith("#"):
                continue
            if "\t" in phrase:
                raise Error.WRONG_SHAPE(
                    "two columns", "give one phrase a line, or use `glossary`", file=path, line=number
                )
            phrases.append(phrase)
        if not phrases:
            raise Error.EMPTY("no phrases in it: a line is a word or phrase to be avoided", file=path)
        return cls(tuple(phrases))

    def normalized(self, normalize: Callable[[str], str]) -> "BannedPhrases":
        """The phrases as normalised texts spell them."""
        return BannedPhrases(tuple(map(normalize, self.phrases)))

    def held(self, text: str) -> list[str]:
        """Banned phrases in a text, as it spells them, from left to right."""
        return [text[match.start : match.end] for match in self._glossary.find(text)]

    def spelled(self, ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> list[tuple[int, ...]]:
        """The tokens by which a translation spells each phrase that it holds: what must not be written again."""
        sequences = []
        for match in self._glossary.find(decode(ids)):
            end = next(end for end in range(1, len(ids) + 1) if len(decode(ids[:end])) >= match.end)
            # The fewest tokens that hold it; all of them, should a part be decoded to something else.
            start = next((start for start in reversed(range(end)) if self.held(decode(ids[start:end]))), 0)
            sequences.append(tuple(ids[start:end]))
        return sequences

    @functools.cached_property
    def _glossary(self) -> Glossary:
        """It finds terms in texts; what they are to become is of no use here."""
        return Glossary({phrase: phrase for phrase in self.phrases})
