"""Exports for Hugging Face, loaded as anybody loads them: ids, logits and translations are ours."""

import functools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error

from dragoman.data.batch import collate
from dragoman.decoding.penalties import AveragePenalty, GnmtPenalty, NoPenalty
from dragoman.decoding.search import DecodingConfig
from dragoman.errors import Error
from dragoman.export import huggingface
from dragoman.export.huggingface_tokenizer import Vocabulary, unicode_normalizers
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.ensemble import Ensemble
from dragoman.models.families import MODELS
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.characters import CharactersConfig
from dragoman.text.tokenizers.pair import SeparateConfig, TokenizerPair, train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.text.tokenizers.whitespace import WhitespaceConfig
from dragoman.text.tokenizers.words import WordsConfig
from dragoman.training.loss import token_loss

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

SMALL = {"d_model": 16, "num_heads": 2, "d_ff": 24, "num_encoder_layers": 2, "num_decoder_layers": 1, "dropout": 0.0}
SINUSOIDAL = {"type": "sinusoidal"}
HALF_SPLIT = {"type": "sinusoidal", "layout": "half_split"}
LEARNED = {"type": "learned", "max_len": 48}
NONE = {"type": "none"}
MAX_TOKENS = 40
SRC_LINES = [
    "the cat sees the dog .",
    "a dog runs !!! and ... barks",
    "the bird sings <b>today</b> </s> .",
    "we see a cat and a bird , aaaa banana 1000 00",
]
TGT_LINES = ["die katze sieht den hund .", "ein hund rennt !!!", "der vogel singt heute .", "wir sehen eine katze ."]
PIECES = SentencePieceConfig(vocab_size=90)
SEPARATE = SeparateConfig(src=PIECES, tgt=SentencePieceConfig(vocab_size=70, algorithm="unigram"))
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("Pegasus", {}),
    "half split": ("Pegasus", {"position": HALF_SPLIT, "activation": "gelu", "scale_embeddings": False}),
    "two-way": ("Pegasus", {"tie_embeddings": "output", "activation": "gelu_tanh"}),
    "untied": ("Pegasus", {"tie_embeddings": "none"}),
    "another base": ("Blenderbot", {"position": {"type": "sinusoidal", "base": 500.0}}),
    "odd": ("Pegasus", {"d_model": 15, "num_heads": 3}),
    "post": ("Marian", {"norm_placement": "post", "num_decoder_layers": 3}),
    "post, half split": ("Marian", {"norm_placement": "post", "position": HALF_SPLIT, "activation": "gelu"}),
    "post, two-way": ("Marian", {"norm_placement": "post", "tie_embeddings": "output"}),
    "post, untied": ("Marian", {"norm_placement": "post", "tie_embeddings": "none", "activation": "gelu_tanh"}),
    "post, bias": ("Marian", {"norm_placement": "post", "activation": "silu", "output_bias": True}),
    "pre, bias": ("Pegasus", {"activation": "silu", "output_bias": True, "tie_embeddings": "output"}),
    "learned": ("Blenderbot", {"position": LEARNED}),
    "learned, untied": ("Blenderbot", {"position": LEARNED, "tie_embeddings": "none", "scale_embeddings": False}),
    "none": ("Blenderbot", {"position": NONE, "activation": "gelu"}),
    "normed": ("MBart", {"embedding_norm": True}),
    "normed, learned": ("MBart", {"embedding_norm": True, "position": LEARNED, "tie_embeddings": "none"}),
    "post, normed": ("Bart", {"embedding_norm": True, "norm_placement": "post", "position": HALF_SPLIT}),
    "post, normed, learned": ("Bart", {"embedding_norm": True, "norm_placement": "post", "position": LEARNED}),
}


def tokenizers_of(config: Any = PIECES) -> TokenizerPair:
    return train_tokenizers(config, lambda: iter(SRC_LINES), lambda: iter(TGT_LINES))


def translator_of(
    variant: dict[str, Any] | None = None,
    tokenizer: Any = PIECES,
    *,
    family: str = "transformer",
    normalize: str = "none",
    decoding: DecodingConfig | None = None,
) -> SearchTranslator:
    """A random model in which no parameter is at the value that it would have by default."""
    tokenizers = tokenizers_of(tokenizer)
    torch.manual_seed(1)
    settings = SMALL if family == "transformer" else {}
    model = build_model(MODELS[family](**{**settings, **(variant or {})}), tokenizers)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return SearchTranslator(
        model.eval(),
        tokenizers,
        decoding=decoding or DecodingConfig(),
        normalize=normalize,
        max_src_tokens=MAX_TOKENS,
    )


def exported(translator: SearchTranslator, folder: Path, quantize: str | None = None) -> tuple[Any, Any]:
    """(model, tokenizer), written and loaded."""
    folder.mkdir(exist_ok=True)
    huggingface.write(translator, folder, quantize)
    engine = huggingface.load(folder, translator)
    return engine.model, engine.tokenizer


def logits_of(translator: SearchTranslator, model: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """(ours, theirs) of the same pairs, with padding, at real target positions; theirs by our ids."""
    vocabulary = Vocabulary.of(translator.tokenizers)
    drawn = random.Random(5)
    sizes = translator.tokenizers.src.vocab_size, translator.tokenizers.tgt.vocab_size
    pairs: list[Any] = [
        tuple([drawn.randrange(4, size) for _ in range(drawn.randint(1, MAX_TOKENS))] for size in sizes)
        for _ in range(9)
    ]
    batch = collate(pairs)
    assert not batch.src_mask.all()
    src_ids, tgt_ids = torch.tensor(vocabulary.src_ids), torch.tensor(vocabulary.tgt_ids)
    with torch.no_grad():
        ours = translator.model(batch.src, batch.src_mask, batch.tgt_in)
        theirs = model(
            input_ids=src_ids[batch.src], attention_mask=batch.src_mask.int(), decoder_input_ids=tgt_ids[batch.tgt_in]
        ).logits
    possible = torch.zeros(vocabulary.size, dtype=torch.bool).index_fill(0, tgt_ids, True)
    assert (theirs[:, :, ~possible] == -torch.inf).all()
    return ours[batch.tgt_mask], theirs[:, :, tgt_ids][batch.tgt_mask]


@pytest.mark.parametrize("name", VARIANTS)
def test_logits_are_equal_with_padding(name: str, tmp_path: Path) -> None:
    architecture, variant = VARIANTS[name]
    translator = translator_of(variant)
    assert huggingface.problems(translator) == []
    model, _ = exported(translator, tmp_path)
    assert type(model).__name__.startswith(architecture)
    ours, theirs = logits_of(translator, model)
    assert ours.std() > 0.3
    torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=1e-5)
    assert not list(tmp_path.glob("*.py")) + list(tmp_path.glob("*.bin"))


def test_saved_again_by_them_it_is_the_same(tmp_path: Path) -> None:
    for name in ("two-way", "post", "learned, untied", "post, normed"):
        translator = translator_of(VARIANTS[name][1])
        model, tokenizer = exported(translator, tmp_path / name)
        again = tmp_path / f"{name} again"
        model.save_pretrained(again)
        tokenizer.save_pretrained(again)
        engine = huggingface.load(again, translator)
        torch.testing.assert_close(*logits_of(translator, engine.model), atol=1e-5, rtol=1e-5)
        assert engine.ids(SRC_LINES[0]) == [*translator.tokenizers.src.encode(SRC_LINES[0]), 3]


def test_two_vocabularies_stand_in_one(tmp_path: Path) -> None:
    for name in ("two-way", "post, two-way", "untied"):
        translator = trained(name, separate=True).with_decoding(**SEARCHES["beam"])
        model, tokenizer = exported(translator, tmp_path / name)
        torch.testing.assert_close(*logits_of(translator, model), atol=1e-5, rtol=1e-5)
        tgt = translator.tokenizers.tgt
        ids = tgt.encode(TGT_LINES[0])
        theirs = [Vocabulary.of(translator.tokenizers).tgt_ids[index] for index in ids]
        assert tokenizer.decode([2, *theirs, 3, 0], skip_special_tokens=True) == TGT_LINES[0]
        assert_same_translations(translator, tmp_path / name, SRC_LINES)


TOKENIZERS = {
    "bpe": PIECES,
    "unigram": SentencePieceConfig(vocab_size=90, algorithm="unigram"),
    "bpe, bytes": SentencePieceConfig(vocab_size=400, byte_fallback=True),
    "unigram, bytes": SentencePieceConfig(vocab_size=400, algorithm="unigram", byte_fallback=True),
    "whitespace": WhitespaceConfig(),
    "characters": CharactersConfig(),
}
AWKWARD = [
    "", " ", " the cat", "the cat ", "the  cat", "\tthe\u00a0cat\u2003sees\u3000the\u2028dog\x1f.", "▁the▁cat", "a ▁ b",
    "<s>", "</s>", "the </s> dog", "a<unk>b <pad>", "<s><s>", "the<s>cat", "< s >", "⁇", "\U0001f600 cat", "我看见了你",
    "the cat\u200dsees", "ﬁne ｆｕｌｌ ½ ² Ａ", "cafe\u0301 e\u0301e\u0301", "!!!!!!! ....... aaaaaaa", "\x00 a \x07",
    "the\u0085cat", "\ufeffthe cat", "a" * 300, "ananananabanana", "1000000",
]  # fmt: skip


def noise(count: int) -> Iterator[str]:
    drawn = random.Random(3)
    parts = [*"thecatdogsnai .!<>/b10", "<s>", "</s>", "the", " ", "\u00a0", "é", "中", "▁", "aa", "..", "ﬁ"]
    for _ in range(count):
        yield "".join(drawn.choice(parts) for _ in range(drawn.randint(0, 25)))


@pytest.mark.parametrize("normalize", NORMALIZERS)
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_ids_and_texts_are_equal(kind: str, normalize: str, tmp_path: Path) -> None:
    translator = translator_of(tokenizer=TOKENIZERS[kind], normalize=normalize)
    _, tokenizer = exported(translator, tmp_path)
    own = translator.tokenizers.src
    for text in [*AWKWARD, *SRC_LINES, *TGT_LINES, *noise(300)]:
        ids = own.encode(NORMALIZERS[normalize](text))
        assert tokenizer(text)["input_ids"] == [*ids, 3], text
        known = [index for index in ids if index != 1]
        assert tokenizer.decode([2, *known, 3, 0], skip_special_tokens=True) == own.decode(known)
    assert tokenizer(["a", "the cat"], padding=True)["attention_mask"][0][-1] == 0
    drawn = random.Random(4)
    readable = [
        index for index, piece in enumerate(own.pieces(range(own.vocab_size))) if index > 3 and piece[:3] != "<0x"
    ]
    for _ in range(300):
        ids = [drawn.choice(readable) for _ in range(drawn.randint(0, 8))]
        assert tokenizer.decode(ids) == own.decode(ids)


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_every_character_is_normalised_alike(form: str) -> None:
    from tokenizers import normalizers

    theirs = normalizers.Sequence(unicode_normalizers(NORMALIZERS[form]))
    text = "".join(chr(code) for code in range(0x30000) if not 0xD800 <= code < 0xE000)
    for start in range(0, len(text), 100):
        part = "x".join(text[start : start + 100])  # a letter that nothing joins keeps them apart
        assert theirs.normalize_str(part) == NORMALIZERS[form](part), hex(ord(text[start]))


@functools.cache
def trained(name: str, separate: bool = False) -> SearchTranslator:
    """A model that has learnt where to stop: random ones go on to the longest length."""
    translator = translator_of(VARIANTS[name][1], SEPARATE if separate else PIECES)
    src, tgt = translator.tokenizers.src, translator.tokenizers.tgt
    lines = list(zip(SRC_LINES, TGT_LINES, strict=True))
    batch = collate([(src.encode(a)[:MAX_TOKENS], tgt.encode(b)[:MAX_TOKENS]) for a, b in lines])
    optimizer = torch.optim.AdamW(translator.model.parameters(), lr=5e-3)
    for _ in range(60):
        optimizer.zero_grad()
        logits = translator.model(batch.src, batch.src_mask, batch.tgt_in)
        (token_loss(logits, batch.tgt_out, batch.tgt_mask) / batch.num_tokens).backward()
        optimizer.step()
    return translator


def assert_same_translations(translator: SearchTranslator, folder: Path, sentences: list[str]) -> None:
    """Texts, scores and log probabilities, of every hypothesis."""
    found = huggingface.load(folder, translator).n_best(sentences)
    for sentence, theirs, ours in zip(sentences, found, translator.n_best(sentences), strict=True):
        assert [item.text for item in theirs] == [item.text for item in ours], sentence
        for one, other in zip(theirs, ours, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
            assert one.log_prob == pytest.approx(other.log_prob, abs=1e-3)


SENTENCES = ["", "▁", *SRC_LINES, "  the  cat ", " ".join(SRC_LINES), "a é 中 <s>"]
SENTENCES += [" ".join(line.split()[start:]) for line in SRC_LINES for start in (1, 2, 3)]
# At alpha 1, what has learnt as little as these goes on to the longest length, where the two differ by design.
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "greedy, min": {"beam_size": 1, "min_length": 6, "no_repeat_ngram": 2},
    "beam": {"beam_size": 4, "length_penalty": AveragePenalty(alpha=0.6)},
    "beam, n-best": {"beam_size": 4, "n_best": 3, "length_penalty": AveragePenalty(alpha=0.3)},
    "beam, plain": {"beam_size": 3, "length_penalty": NoPenalty()},
    "beam, rules": {
        "beam_size": 3,
        "min_length": 4,
        "no_repeat_ngram": 2,
        "repetition_penalty": 1.2,
        "length_penalty": AveragePenalty(alpha=0.3),
    },
}


@pytest.mark.parametrize("name", ["default", "post", "learned", "normed"])
@pytest.mark.parametrize("search", SEARCHES)
def test_translations_are_equal(name: str, search: str, tmp_path: Path) -> None:
    translator = trained(name).with_decoding(**SEARCHES[search])
    huggingface.write(translator, tmp_path)
    assert len(set(translator.translate(SENTENCES))) > 5
    assert_same_translations(translator, tmp_path, SENTENCES)


def test_generate_alone_gives_the_translation(tmp_path: Path) -> None:
    """As anybody would call it: no argument but the text, in one batch with padding."""
    translator = trained("default").with_decoding(**SEARCHES["beam"])
    model, tokenizer = exported(translator, tmp_path)
    batch = tokenizer(SRC_LINES, padding=True, return_tensors="pt")
    found = tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True)
    assert found == translator.translate(SRC_LINES)


def differs(translator: SearchTranslator, folder: Path) -> bool:
    model, _ = exported(translator, folder)
    ours, theirs = logits_of(translator, model)
    return not torch.allclose(ours, theirs, atol=1e-5, rtol=1e-5)


def test_a_wrong_layout_of_positions_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = translator_of()
    monkeypatch.setattr(huggingface.huggingface_weights, "order_of", lambda size, interleaved: torch.arange(size))
    assert differs(translator, tmp_path)


def test_a_swapped_projection_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swap = {"q_proj": "k_proj", "k_proj": "q_proj"}
    right = huggingface.huggingface_weights.named

    def swapped(model: Any) -> Any:
        for one in right(model):
            start, _, last = one.huggingface.rpartition(".")
            yield one._replace(huggingface=f"{start}.{swap.get(last, last)}")

    monkeypatch.setattr(huggingface.huggingface_weights, "named", swapped)
    assert differs(translator_of(), tmp_path)


def test_a_wrong_start_token_is_seen(tmp_path: Path) -> None:
    translator = trained("default").with_decoding(**SEARCHES["beam"])
    huggingface.write(translator, tmp_path)
    path = tmp_path / "generation_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    assert settings["decoder_start_token_id"] == 2
    path.write_text(json.dumps({**settings, "decoder_start_token_id": 0}), encoding="utf-8")
    with pytest.raises(AssertionError):
        assert_same_translations(translator, tmp_path, SENTENCES)


def test_half_precision_is_kept_and_loaded(tmp_path: Path) -> None:
    translator = translator_of()
    for quantize in ("bfloat16", "float16"):
        model, _ = exported(translator, tmp_path / quantize, quantize)
        assert model.dtype == getattr(torch, quantize)
        ours, theirs = logits_of(translator, model.float())
        torch.testing.assert_close(theirs, ours, atol=0.1, rtol=0.1)


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ({"norm_placement": "output"}, "norm_placement"),
        ({"norm": "rms"}, "model.norm"),
        ({"norm_eps": 1e-6}, "norm_eps"),
        ({"position": {"type": "rotary"}}, "rotary"),
        ({"position": {"type": "alibi"}}, "alibi"),
        ({"num_kv_heads": 1}, "num_kv_heads"),
        ({"d_head": 24}, "model.d_head"),
        ({"activation": "swiglu"}, "swiglu"),
        ({"position": {"type": "relative"}}, "relative"),
        ({"decoder_autoreg": "rnn"}, "decoder_autoreg: rnn"),
        ({"norm_placement": "post", "position": LEARNED}, "learned"),
        ({"norm_placement": "post", "position": NONE}, "none"),
    ],
)
def test_what_they_cannot_hold_is_refused(variant: dict[str, Any], words: str, tmp_path: Path) -> None:
    translator = translator_of(variant)
    (reason,) = huggingface.problems(translator)
    assert words in reason
    assert "train with" in reason
    assert "\n" not in reason
    with raises_error(Error.CANNOT_EXPORT):
        huggingface.write(translator, tmp_path)
    assert not list(tmp_path.iterdir())


def test_reasons_are_all_told() -> None:
    variant = {"norm_placement": "output", "norm": "rms", "activation": "swiglu", "position": {"type": "rotary"}}
    decoding = DecodingConfig(length_penalty=GnmtPenalty(), ban_unk=False)
    found = huggingface.problems(translator_of(variant, WordsConfig(), decoding=decoding))
    assert len(found) == 7
    greedy = DecodingConfig(beam_size=1, repetition_penalty=1.3)
    assert "repetition_penalty" in huggingface.problems(translator_of(decoding=greedy))[0]
    assert "decoding.mbr" in huggingface.problems(translator_of(decoding=DecodingConfig(mbr="chrf")))[0]
    recurrent = translator_of({"tie_embeddings": "all"}, family="recurrent")
    assert "transformer" in huggingface.problems(recurrent)[0]
    several = translator_of()
    several.model = Ensemble([several.model, several.model])
    assert len(huggingface.problems(several)) == 1


def test_other_types_of_weights_are_refused(tmp_path: Path) -> None:
    with raises_error(Error.UNKNOWN_NAME):
        huggingface.write(translator_of(), tmp_path, "int8")
    assert not list(tmp_path.iterdir())
