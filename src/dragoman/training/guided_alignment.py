"""Guided alignment: one head of a decoder layer's attention to the source learns to link words.

The links come from elsewhere (Chen et al. 2016, "Guided alignment training for topic-aware neural machine translation";
Garg et al. 2019, section 4.2). With A_ts = 1 / n for each of the n source tokens s that target token t is linked to,
and the head's attention S, the loss of a batch gets

    weight * sum_t -sum_s A_ts log(S_ts)

more. S_t is the attention of the decoder's position that reads token t, not of the one before, which has yet to say it:
a head that knows the word links it better (Chen et al. 2020, "Accurate word alignment induction from neural machine
translation"; benchmarks/log/2026-11.md, "guided alignment, and capitals as tokens"). A target token without links takes
no part. The head is `model.alignment_head`.
"""

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from dragoman.alignment.lexicon import MAX_PAIRS, WordAligner
from dragoman.alignment.links import token_shares
from dragoman.config import Field, by_type, settings
from dragoman.data.batch import Batch
from dragoman.data.store import IdCorpus
from dragoman.errors import Error, writing
from dragoman.progress import Progress
from dragoman.runs import atomic_io
from dragoman.text.corpus import Pair
from dragoman.text.lines import find, read_lines
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.sources.base import PairSource, Source
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.pair import TokenizerPair
from dragoman.text.words import Word, spaced_words, split_words, words

FORMAT = 1
IntArray = np.ndarray[Any, np.dtype[Any]]
WordLinks = Sequence[tuple[int, int]]
"""(source word, target word) of each link, from 0."""


@settings
class NoGuide(Source):
    """No head is trained to align."""

    type: Literal["none"] = "none"
    weight: ClassVar[float] = 0.0


class Guide(Source):
    """Where the links of the training pairs come from."""

    weight: float

    def linked(self, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, list[Word], list[Word], WordLinks]]:
        """Each pair with its words on both sides and their links. Raises DragomanError for what is no such file."""
        raise NotImplementedError


@settings
class LexicalGuide(Guide):
    """Links by a lexicon that is learnt from the training pairs themselves (`alignment/lexicon.py`)."""

    type: Literal["lexical"] = "lexical"
    weight: float = Field(default=0.1, gt=0)  #: Weight of the links' cross-entropy beside the loss.

    def linked(self, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, list[Word], list[Word], WordLinks]]:
        stream = iter(pairs)
        first = list(itertools.islice(stream, MAX_PAIRS))
        aligner = WordAligner([(split_words(pair.src), split_words(pair.tgt)) for pair in first])
        for pair in itertools.chain(first, stream):
            yield pair, words(pair.src), words(pair.tgt), aligner.links(split_words(pair.src), split_words(pair.tgt))


@settings
class PharaohGuide(Guide):
    """Links in a file of eflomal, fast_align or awesome-align: `0-0 1-2` on line n, for training pair n.

    Numbers are of words between spaces, from 0, the source's first. An empty line has no links.
    """

    type: Literal["pharaoh"] = "pharaoh"
    path: str  #: File of links, a line for each training pair.
    weight: float = Field(default=0.1, gt=0)  #: Weight of the links' cross-entropy beside the loss.
    named = ("path",)

    def linked(self, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, list[Word], list[Word], WordLinks]]:
        path, starts_at_0, number = find(self.path), [False, False], 0
        for number, (pair, line) in enumerate(itertools.zip_longest(pairs, read_lines(path)), start=1):
            if pair is None or line is None:
                than = "more" if pair is None else "fewer"
                raise Error.UNEQUAL_COUNTS(
                    f" has {than} lines than there are training pairs ({number - 1:,} are in both)",
                    "align the files of corpus.train as they are",
                    file=path,
                    line=number,
                )
            sides, links = _read(line, pair, path, number)
            for side in (0, 1):
                starts_at_0[side] |= any(link[side] == 0 for link in links)
            yield pair, *sides, links
        if number and not all(starts_at_0):
            raise Error.WRONG_SHAPE(
                f"no link is of the first {'source' if starts_at_0[1] else 'target'} word, 0: its numbers count from 1",
                "subtract 1 from each",
                file=path,
            )


GuideConfig = Annotated[NoGuide | LexicalGuide | PharaohGuide, by_type]
_LINK = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def _read(
    line: str, pair: Pair, path: Path, number: int
) -> tuple[tuple[list[Word], list[Word]], list[tuple[int, int]]]:
    """The words of a pair on both sides, and the links of its line in Pharaoh's form."""
    links = []
    for field in line.split():
        match = _LINK.fullmatch(field)
        if match is None:
            raise Error.WRONG_SHAPE(
                f"{field[:40]!r} is no link of two word numbers, as 3-4 is",
                "write links as fast_align and eflomal do (GIZA's A3 files have to be converted)",
                file=path,
                line=number,
            )
        links.append((int(match[1]), int(match[2])))
    largest = [max((link[side] for link in links), default=-1) for side in (0, 1)]
    sides = spaced_words(pair.src), spaced_words(pair.tgt)
    for name, word, of_side in zip(("source", "target"), largest, sides, strict=True):
        if word >= len(of_side):
            swapped = largest[0] < len(sides[1]) and largest[1] < len(sides[0])
            raise Error.OUT_OF_RANGE(
                f"a link of {name} word {word}, but this pair's {name} has {len(of_side)} words, counted from 0",
                "the file seems to have the target first: exchange both numbers of each link"
                if swapped
                else "numbers are of words between spaces in the very text of corpus.train, the first is 0",
                file=path,
                line=number,
            )
    return sides, links


class TokenLinks(NamedTuple):
    """Links of the tokens of a corpus: `pairs[offsets[row]:offsets[row + 1]]` are (source, target) of a row."""

    offsets: IntArray
    pairs: IntArray

    def of(self, row: int) -> IntArray:
        return self.pairs[self.offsets[row] : self.offsets[row + 1]]


@dataclass(frozen=True)
class GuidedAlignment:
    """Links that an attention head is trained towards; without any, nothing is."""

    links: TokenLinks | None = None
    weight: float = 0.0
    head: int = 0

    def guided(self, batch: Batch, corpus: IdCorpus) -> Batch:
        """The batch with the links of its pairs, but for those whose tokens are not the corpus's this time."""
        if self.links is None:
            return batch
        alignment = torch.zeros(len(batch), batch.tgt_out.size(1), batch.src.size(1))
        for place, (row, (src, tgt)) in enumerate(zip(batch.rows, corpus.pairs(batch.rows), strict=True)):
            ids = batch.src[place][batch.src_mask[place]][:-1], batch.tgt_out[place][batch.tgt_mask[place]][:-1]
            if all(np.array_equal(own, there) for own, there in zip(ids, (src, tgt), strict=True)):
                of_row = torch.from_numpy(self.links.of(int(row)).astype(np.int64))
                alignment[place, of_row[:, 1] + 1, of_row[:, 0]] = 1.0  # where the decoder reads the token
        return replace(batch, alignment=alignment / alignment.sum(dim=2, keepdim=True).clamp(min=1.0))

    def loss(self, attention: Tensor, alignment: Tensor) -> Float[Tensor, ""]:
        """`weight` times the cross-entropy of the head (of all heads, (batch, num_heads, tgt_len, src_len)) with the
        links, summed."""
        return -self.weight * (alignment * (attention[:, self.head].float() + 1e-6).log()).sum()


@dataclass(frozen=True)
class Projector:
    """Links of words to links of the tokens that a corpus holds."""

    tokenizers: TokenizerPair
    normalize: str
    languages: tuple[str, str]

    def links(self, corpus: IdCorpus, guide: Guide, source: PairSource, path: Path) -> TokenLinks:
        """The links of a corpus by a guide, kept in the file `path` for as long as both are the same.

        `source`: the pairs whose numbers the corpus's lines are, each once or several times in a row.
        """
        made_from = [FORMAT, corpus.meta["fingerprint"], guide.type, guide.contents()]
        identity = hashlib.sha256(repr(made_from).encode()).hexdigest()
        if path.is_file():
            with np.load(path) as kept:
                if str(kept["identity"]) == identity:
                    return TokenLinks(kept["offsets"], kept["pairs"])
        rows, each = 0, [np.zeros((0, 2), np.int32)]
        counts = np.zeros(len(corpus) + 1, np.int64)
        with Progress("linking the words of the training pairs", None) as bar:
            for pair, src_words, tgt_words, links in guide.linked(_once(source.pairs())):
                bar.advance()
                if rows == len(corpus) or corpus.lines[rows] != pair.line:
                    continue  # the pair was dropped
                tokens = self._tokens(pair, src_words, tgt_words, links)
                while rows < len(corpus) and corpus.lines[rows] == pair.line:
                    fits = (tokens[:, 0] < corpus.src_lengths[rows]) & (tokens[:, 1] < corpus.tgt_lengths[rows])
                    each.append(tokens[fits])  # of a pair that was cut, what is left
                    rows += 1
                    counts[rows] = len(each[-1])
        token_links = TokenLinks(counts.cumsum(), np.concatenate(each))
        with writing(path), atomic_io.replaced(path) as partial, partial.open("wb") as file:
            np.savez(file, identity=np.array(identity), offsets=token_links.offsets, pairs=token_links.pairs)
        return token_links

    def _tokens(self, pair: Pair, src_words: list[Word], tgt_words: list[Word], links: WordLinks) -> IntArray:
        """(source token, target token) of each link between pieces of linked words."""
        tokenizers = self.tokenizers.between(*(pair.languages or self.languages))
        linked = np.zeros((len(src_words), len(tgt_words)))
        for link in links:
            linked[link] = 1
        src, tgt = (
            self._shares(tokenizer, text, of_text)
            for tokenizer, text, of_text in (
                (tokenizers.src, pair.src, src_words),
                (tokenizers.tgt, pair.tgt, tgt_words),
            )
        )
        return np.argwhere(src @ linked @ tgt.T > 0).astype(np.int32)

    def _shares(self, tokenizer: Tokenizer, text: str, of_text: list[Word]) -> IntArray:
        return token_shares(tokenizer, text, of_text, NORMALIZERS[self.normalize])


def _once(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs, of those that come several times in a row (by their weights) the first."""
    return (next(group) for _, group in itertools.groupby(pairs, key=lambda pair: pair.line))
