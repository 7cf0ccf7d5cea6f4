"""Unknown words of a translation, in whose place stands the source word that the model looked at, or its translation
from a table (Luong et al. 2015, "Addressing the Rare Word Problem in Neural Machine Translation", section 3.3)."""

import functools

import torch

from dragoman.data.batch import collate
from dragoman.decoding.base import Hypothesis
from dragoman.decoding.coverage import cross_attention
from dragoman.errors import Error
from dragoman.inference.translation import Part
from dragoman.models.base import Seq2SeqModel
from dragoman.text.lines import find, read_lines
from dragoman.text.tokenizers.base import UNK_ID, UNK_SURFACE
from dragoman.text.tokenizers.pair import TokenizerPair
from dragoman.text.words import words


@functools.lru_cache(4)
def phrase_table(path: str) -> dict[str, str]:
    """The target of each source word. Raises DragomanError, with file and line, for a line that is no pair."""
    targets: dict[str, str] = {}
    for number, line in enumerate(read_lines(find(path)), start=1):
        src, mark, tgt = line.partition("|||")
        if not mark or not src.strip():
            raise Error.WRONG_SHAPE("expected `source|||target`", file=find(path), line=number)
        targets.setdefault(src.strip(), tgt.strip())
    return targets


@torch.inference_mode()
def without_unknown(
    model: Seq2SeqModel, tokenizers: TokenizerPair, part: Part, hypothesis: Hypothesis, phrases: str | None = None
) -> str:
    """The text of a hypothesis without any `<unk>`; `part`: its source as the model reads it; `phrases`: the table.

    Raises DragomanError for a model without attention.
    """
    pieces = tokenizers.tgt.decode(hypothesis.ids).split(UNK_SURFACE)
    places = [len(part.read) + place for place, token in enumerate(hypothesis.ids) if token == UNK_ID]
    if len(pieces) != 1 + len(places) or not places:
        return UNK_SURFACE.join(pieces)
    table = phrase_table(phrases) if phrases else {}
    batch = collate([(part.ids, [*part.read, *hypothesis.ids])]).to(next(model.parameters()).device)
    attention = cross_attention(model.eval(), batch.src, batch.src_mask, batch.tgt_in)[0]
    text, letters = part.text, tokenizers.src.letters(part.text)
    has_letters = torch.tensor([count > 0 for count in letters], device=attention.device)  # no tag, no </s>
    visible = [place for place, char in enumerate(text) if not char.isspace()]
    copied = [pieces[0]]
    for place, rest in zip(places, pieces[1:], strict=True):
        token = int((attention[place, : len(letters)] * has_letters).argmax())
        at = visible[min(sum(letters[:token]), len(visible) - 1)]
        word = next((text[slice(*one)] for one in words(text) if one.start <= at < one.end), text[at])
        copied += [table.get(word, word), rest]
    return "".join(copied)
