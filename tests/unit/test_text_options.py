"""Options of other toolkits that belong to text, loss and search: each one's effect."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error

from dragoman import config
from dragoman.data.batch import collate
from dragoman.decoding.coverage import cross_attention
from dragoman.decoding.search import DecodingConfig
from dragoman.errors import Error
from dragoman.inference.loading import build_model
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.families import TransformerConfig
from dragoman.text.tokenizers.base import UNK_ID
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig

SIZES: dict[str, Any] = {"d_model": 16, "num_heads": 2, "d_ff": 16, "num_encoder_layers": 1, "num_decoder_layers": 1}
LINES = ["the cat sees the dog .", "a dog runs .", "the bird sings today .", "we see a cat and a bird ."]


def translator(**decoding: Any) -> SearchTranslator:
    """A random model of words."""
    tokenizers = train_tokenizers(WordsConfig(), lambda: iter(LINES), lambda: iter(LINES))
    torch.manual_seed(3)
    model = build_model(TransformerConfig(**SIZES), tokenizers).eval()
    return SearchTranslator(model, tokenizers, decoding=config.parse(DecodingConfig, decoding, "decoding"))


EVERY: dict[str, Any] = {"beam_size": 400, "max_length_ratio": 0, "max_length_extra": 3, "min_length": 1}
"""A search that leaves nothing out."""


def test_a_word_penalty_ranks_as_marian_does() -> None:
    """(log probability - penalty * length) / length^alpha."""
    free = translator(**EVERY, n_best=400)
    [every] = free.hypotheses(free.parts(LINES[0]))
    for penalty in (0.5, 3.0):
        searching = translator(**EVERY, word_penalty=penalty, length_penalty={"type": "average", "alpha": 0.5})
        [found] = searching.n_best(LINES[:1])[0]
        scores = [(it.log_prob - penalty * (1 + len(it.ids))) / (1 + len(it.ids)) ** 0.5 for it in every if not it.cut]
        assert found.score == pytest.approx(max(scores), abs=1e-5)
        assert score(searching, [(LINES[0], found.text)])[0].score == pytest.approx(found.score, abs=1e-5)


def test_a_word_penalty_makes_translations_shorter() -> None:
    none = {"length_penalty": {"type": "average", "alpha": 0.9}}
    free, short = (translator(**EVERY, **none, word_penalty=penalty).translate(LINES) for penalty in (0.0, 20.0))
    assert [len(line.split()) for line in short] == [1] * len(LINES)
    assert sum(len(line.split()) for line in free) > len(LINES)
    with raises_error(Error.WRONG_SETTING, "word_penalty"):
        translator(word_penalty=1, sampling={})


def writing_unknown(**decoding: Any) -> SearchTranslator:
    """A model that writes nothing but unknown words."""
    found = translator(ban_unk=False, beam_size=1, max_length_ratio=1, max_length_extra=0, **decoding)
    raised = torch.nn.functional.one_hot(torch.tensor(UNK_ID), found.tokenizers.tgt.vocab_size) * 100.0
    found.model.output.register_forward_hook(lambda _, __, logits: logits + raised)  # type: ignore[union-attr]
    return found


def test_unknown_words_are_copied_from_where_the_model_looked(tmp_path: Path) -> None:
    plain, copying = writing_unknown(), writing_unknown(replace_unk=True)
    assert set(plain.translate(LINES)[0].split()) == {"⁇"}
    for line, text in zip(LINES, copying.translate(LINES), strict=True):
        words = line.split()
        batch = collate([(copying.tokenizers.src.encode(line), [UNK_ID] * (len(words) + 1))])
        [looked] = cross_attention(copying.model, batch.src, batch.src_mask, batch.tgt_in)
        assert text.split() == [words[int(row[: len(words)].argmax())] for row in looked[: len(words) + 1]]
    table = tmp_path / "table.txt"
    table.write_text("the ||| die\ncat|||Katze\n.|||.\n", encoding="utf-8")
    using = writing_unknown(replace_unk=True, phrase_table=str(table))
    names = {"the": "die", "cat": "Katze"}
    for before, after in zip(copying.translate(LINES), using.translate(LINES), strict=True):
        assert after.split() == [names.get(word, word) for word in before.split()]
    table.write_text("the ||| die\ncat\n", encoding="utf-8")
    with raises_error(Error.WRONG_SHAPE, f"{table}:2"):
        writing_unknown(replace_unk=True, phrase_table=f"{tmp_path}/./table.txt").translate(LINES)


def test_unknown_words_that_are_never_written_are_not_replaced() -> None:
    with raises_error(Error.WRONG_SETTING, "ban_unk"):
        translator(replace_unk=True)
    with raises_error(Error.WRONG_SETTING, "replace_unk"):
        translator(phrase_table="table")
