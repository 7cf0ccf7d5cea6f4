"""Other words at a place of a translation: beginnings that go on differently, each carried to its end."""

from dragoman.decoding.penalties import NoPenalty
from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.special_tokens import EOS_ID
from dragoman.text.words import split_words

TOKENS_PER_WORD = 12
"""Tokens that are looked at for each requested word: many tokens only go on with the word before."""
BEGINNINGS_PER_WORD = 2
"""Translations that are made for each requested word: several tokens may begin the same word."""


def next_words(translator: SearchTranslator, src: str, prefix: str, count: int) -> list[Translation]:
    """Up to `count` translations that begin with `prefix` and go on with different words, the most probable word first.

    First one step of the search: the tokens that are most probable after the prefix. Then, for each of them, the best
    translation that begins so. Raises DragomanError for a source that is too long to be translated at once, and for a
    prefix that cannot be written.
    """
    parts = translator.parts(src, prefix)
    if not parts:
        return []
    if len(parts) > 1:
        raise Error.UNSUPPORTED("a text that is translated in parts has no other words", "ask for a sentence of it")
    beam = min(TOKENS_PER_WORD * count, translator.tokenizers.tgt.vocab_size - 8)
    one_token = translator.with_decoding(
        beam_size=beam, n_best=beam, max_length_ratio=0.0, max_length_extra=1, min_length=0, length_penalty=NoPenalty(),
        coverage_penalty=0.0, diversity=0.0, diversity_groups=1, sampling=None, mbr="none", no_repeat_ngram=0,
    )  # fmt: skip
    # An end is no word, and of a search that has found one nothing else comes back.
    [begun] = one_token.hypotheses([parts[0]._replace(banned=((EOS_ID,),))])
    begun.sort(key=lambda hypothesis: -hypothesis.log_prob)
    known, decode = split_words(prefix), translator.tokenizers.tgt.decode
    begun = [
        item
        for item in begun
        if split_words(decode(item.ids))[: len(known)] == known and len(item.ids) > len(parts[0].prefix)
    ]
    best = translator.with_decoding(n_best=1, sampling=None, mbr="none")
    hypotheses = best.hypotheses_without_banned(
        [parts[0]._replace(prefix=item.ids) for item in begun[: BEGINNINGS_PER_WORD * count]]
    )
    chosen: dict[str, Translation] = {}
    for items in hypotheses:
        item = best.ranked(items, parts[0])[0]
        written = split_words(item.text)
        if len(written) > len(known) and written[: len(known)] == known:  # else the last word of the prefix has grown
            chosen.setdefault(written[len(known)].casefold(), item)
    return list(chosen.values())[:count]
