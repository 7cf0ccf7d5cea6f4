"""Rows of a prepared corpus with the sentences before them (`corpus.context`), put together as they are asked for."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dragoman.data.row_order import IntArray
from dragoman.data.store import IdCorpus
from dragoman.errors import Error
from dragoman.text.annotations import BREAK
from dragoman.text.augment import ContextConfig
from dragoman.text.corpus import MixSource
from dragoman.text.lines import find, read_lines
from dragoman.text.sources.base import Pair
from dragoman.text.sources.exchange import EntriesSource, TmxSource
from dragoman.text.sources.weights import repeated
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.pair import TokenizerPair

DOCUMENT_STRIDE = 2**40
"""Sentences that a document may have: the distance between places of two documents."""


def places(source: Any, documents: str | None = None) -> Iterator[int]:
    """The place of each pair of a source, in the order of its pairs; the next sentence of a document has one more.

    `documents`: a file that names the document of each pair. Raises DragomanError where it has more or fewer lines than
    there are pairs, and for a mixture.
    """
    if isinstance(source, MixSource):
        if documents is not None:
            raise Error.CONFLICT("corpus.context.documents: of one corpus, no mixture", "part documents by blank lines")
        first = 0
        for part, weight in zip(source.sources, source.passes(), strict=True):
            last = first
            own: Any = ((first + place, weight) for place in places(part))
            for last in repeated(part, own):  # type: ignore[assignment]
                yield last
            first = (last // DOCUMENT_STRIDE + 1) * DOCUMENT_STRIDE
        return
    pairs = source.pairs() if documents is None else _each_named(source.pairs(), documents)
    in_lines = not isinstance(source, EntriesSource | TmxSource)  # a line that is left out is missed there
    document, before = 0, None
    for number, pair in enumerate(pairs):
        label = pair.document, pair.languages
        document, before = document + (before not in (None, label)), label
        yield document * DOCUMENT_STRIDE + (pair.line if in_lines else number)


def _each_named(pairs: Iterator[Pair], documents: str) -> Iterator[Pair]:
    """The pairs with the name of their document."""
    for pair, name in itertools.zip_longest(pairs, read_lines(path := find(documents))):
        if pair is None or name is None:
            than = "more" if pair is None else "fewer"
            raise Error.UNEQUAL_COUNTS(f" has {than} lines than there are training pairs", "name the document of each",
                                       file=path)  # fmt: skip
        yield pair._replace(document=name.partition("\t")[0])


class CorpusInContext(IdCorpus):
    """A prepared corpus whose rows begin with the sentences before them, each with a break piece behind it."""

    def __init__(
        self, corpus: IdCorpus, where: IntArray, config: ContextConfig, tokenizers: TokenizerPair, longest: int
    ) -> None:
        """`where`: the place of each row. `longest`: tokens of a side, at most; sentences before are left out."""
        vars(self).update(vars(corpus))
        self._plain, self._config, self._tokenizers = corpus, config, tokenizers
        self._previous = _previous(where)
        self._count = np.zeros(len(corpus), dtype=np.int16)  # of the sentences before each row
        fits, row = np.ones(len(corpus), dtype=bool), np.arange(len(corpus))
        plain = [np.asarray(side, dtype=np.int32) for side in (corpus.src_lengths, corpus.tgt_lengths)]
        lengths = [side.copy() for side in plain]
        for number in range(1, config.src + 1):
            row = np.where(row >= 0, self._previous[row], -1)
            fits &= row >= 0
            if not fits.any():
                break
            longer = [lengths[0] + plain[0][row] + self._more(tokenizers.src), lengths[1]]
            if number <= config.tgt:
                longer[1] = lengths[1] + plain[1][row] + self._more(tokenizers.tgt)
            fits &= np.maximum(*longer) <= longest
            lengths = [np.where(fits, new, old) for new, old in zip(longer, lengths, strict=True)]
            self._count[fits] = number
        self.src_lengths, self.tgt_lengths = lengths
        described = repr([corpus.meta["fingerprint"], config.src, config.tgt, longest, where.tobytes()])
        self.meta = {**corpus.meta, "fingerprint": hashlib.sha256(described.encode()).hexdigest()}

    @staticmethod
    def _more(tokenizer: Tokenizer) -> int:
        """Tokens that a sentence before takes more than its own ids."""
        return 1 - len(tokenizer.before) - len(tokenizer.after)

    @property
    def share(self) -> float:
        """The share of the rows that have a sentence before them."""
        return float((self._count > 0).mean())

    def pairs(self, rows: Sequence[int] | IntArray) -> list[tuple[IntArray, IntArray]]:
        chains = [self._chain(int(row)) for row in rows]
        ids = iter(self._plain.pairs([row for chain in chains for row in chain]))
        both = ([next(ids) for _ in chain] for chain in chains)
        src, tgt = self._tokenizers.src, self._tokenizers.tgt
        return [
            (
                _joined([one for one, _ in of_row], src),
                _joined([one for _, one in of_row][-1 - self._config.tgt :], tgt),
            )
            for of_row in both
        ]

    def src(self, row: int) -> IntArray:
        return self.pairs([row])[0][0]

    def tgt(self, row: int) -> IntArray:
        return self.pairs([row])[0][1]

    def _chain(self, row: int) -> list[int]:
        """The rows before a row, in order, and the row itself."""
        chain = [row]
        for _ in range(self._count[row]):
            chain.append(int(self._previous[chain[-1]]))
        return chain[::-1]


def _previous(where: IntArray) -> IntArray:
    """For each row, the row of the sentence before; -1 for a sentence without one."""
    order = np.argsort(where, kind="stable")
    ordered = where[order]
    nearest = np.searchsorted(ordered, where - 1).clip(max=len(where) - 1)
    return np.where(ordered[nearest] == where - 1, order[nearest], -1)


def _joined(sentences: Sequence[IntArray], tokenizer: Tokenizer) -> IntArray:
    """The ids of a sentence, the last, behind those of the sentences before it."""
    *before, own = sentences
    if not before:
        return own
    first, last = len(tokenizer.before), len(tokenizer.after)
    parts = [own[:first]]
    for ids in before:
        parts += [ids[first : len(ids) - last], np.array([tokenizer.id_of(BREAK)], dtype=own.dtype)]
    return np.concatenate([*parts, own[first:]])
