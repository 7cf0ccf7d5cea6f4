"""Unknown words of a translation, in whose place stands the source word that the model looked at, or its translation
from a table (Luong et al. 2015, "Addressing the Rare Word Problem in Neural Machine Translation", section 3.3)."""

import functools
import re
from collections.abc import Mapping

import torch

from dragoman.data.batch import collate
from dragoman.decoding.base import Hypothesis
from dragoman.decoding.coverage import cross_attention
from dragoman.errors import Error
from dragoman.inference.translation import Segment
from dragoman.models.base import Seq2SeqModel
from dragoman.special_tokens import UNK_ID
from dragoman.text.lines import find, read_lines
from dragoman.text.tokenizers.base import UNK_SURFACE
from dragoman.text.tokenizers.pair import TokenizerPair
from dragoman.text.words import UNSPACED, Word, spaced_words, words

_IN_WORD = re.compile(rf"(?![{UNSPACED}])[\w{UNK_SURFACE}]")
"""A letter beside an unknown letter of the same word."""


@functools.lru_cache(4)
def phrase_table(path: str) -> dict[str, str]:
    """The target of each source word. Raises DragomanError, with file and line, for a line that is no pair."""
    targets: dict[str, str] = {}
    for number, line in enumerate(read_lines(find(path)), start=1):
        fields = [field.strip() for field in line.split("|||")]
        if len(fields) != 2 or not fields[0]:
            raise Error.WRONG_SHAPE("expected `source|||target`", file=find(path), line=number)
        targets.setdefault(*fields)
    return targets


@torch.inference_mode()
def without_unknown(
    model: Seq2SeqModel, tokenizers: TokenizerPair, part: Segment, hypothesis: Hypothesis, phrases: str | None = None
) -> str:
    """The text of a hypothesis without any `<unk>`; `part`: its source as the model reads it; `phrases`: the table.

    Raises DragomanError for a model without attention.
    """
    decoded = tokenizers.tgt.decode(hypothesis.ids)
    marks = [mark.start() for mark in re.finditer(UNK_SURFACE, decoded)]
    places = [len(part.read) + place for place, token in enumerate(hypothesis.ids) if token == UNK_ID]
    if len(marks) != len(places) or not places:
        return decoded
    table = phrase_table(phrases) if phrases else {}
    batch = collate([(part.ids, [*part.read, *hypothesis.ids])]).to(next(model.parameters()).device)
    attention = cross_attention(model.eval(), batch.src, batch.src_mask, batch.tgt_in)[0]
    text, letters = part.text, tokenizers.src.letters(part.text)
    has_letters = torch.tensor([count > 0 for count in letters], device=attention.device)  # no tag, no </s>
    visible = [place for place, char in enumerate(text) if not char.isspace()]
    written = []
    for place, mark in zip(places, marks, strict=True):
        token = int((attention[place, : len(letters)] * has_letters).argmax())
        ends = sum(letters[:token]), sum(letters[: token + 1]) - 1
        first, last = (visible[min(end, len(visible) - 1)] for end in ends)
        beside = decoded[max(mark - 1, 0) : mark] + decoded[mark + 1 : mark + 2]
        written.append(_copied(text, Word(first, last + 1), bool(_IN_WORD.search(beside)), table))
    return re.sub(UNK_SURFACE, lambda _: written.pop(0), decoded)


def _copied(text: str, token: Word, in_word: bool, table: Mapping[str, str]) -> str:
    """The text that stands for a token of the source: inside of a word (`⁇ižek`) the token, else the longest phrase of
    the table that holds it, or else its word, be it as long as the token (`U.S.`) or longer."""
    if not in_word:
        inner, spaced = words(text), spaced_words(text)
        starts = {word.start for word in (token, *inner, *spaced) if word.start <= token.start}
        ends = {word.end for word in (token, *inner, *spaced) if word.end >= token.end}
        phrases = [phrase for start in starts for end in ends if (phrase := text[start:end]) in table]
        if phrases:
            return table[max(phrases, key=len)]
        word = next((word for word in inner if word.start <= token.start < word.end), token)
        token = word if word.start < token.start or word.end > token.end else token
    own = text[slice(*token)]
    return table.get(own, own)
