"""Several languages in one model: tags, parallel files, and translators between any two."""

import random
from pathlib import Path

import pytest
import torch
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.data.encode import Encoder
from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.special_tokens import EOS_ID
from dragoman.tasks import recipes
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.corpus import ParallelSource
from dragoman.text.tokenizers.pair import load_tokenizers, save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.training.optim import frozen_parameters

WORDS = {"en": ["one", "two", "six"], "de": ["eins", "zwei", "sechs"], "fr": ["un", "deux", "six"]}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    rng = random.Random(1)
    rows = [rng.choices(range(3), k=rng.randint(1, 5)) for _ in range(40)]
    for code, words in WORDS.items():
        text = "".join(" ".join(words[place] for place in row) + "\n" for row in rows)
        (tmp_path / f"text.{code}").write_text(text, encoding="utf-8")
    return {code: str(tmp_path / f"text.{code}") for code in WORDS}


def test_every_line_of_every_direction_is_a_pair(files: dict[str, str]) -> None:
    source = ParallelSource(files=files, lines=2)
    pairs = list(source.pairs())
    assert [pair.line for pair in pairs] == list(range(1, 13))
    assert [pair.languages for pair in pairs[::2]] == [
        ("en", "de"), ("en", "fr"), ("de", "en"), ("de", "fr"), ("fr", "en"), ("fr", "de")
    ]  # fmt: skip
    assert (pairs[0].src, pairs[0].tgt) == (pairs[4].tgt, pairs[4].src)
    with raises_error(Error.WRONG_SETTING):
        parse(ParallelSource, {"files": files, "directions": [["en", "xx"]]})


def test_a_tag_asks_for_the_target(tmp_path: Path) -> None:
    config = SentencePieceConfig(vocab_size=60, languages=["en", "de"])
    lines = ["eins zwei drei vier", "one two three four"] * 5
    pair = train_tokenizers(config, lambda: iter(lines), lambda: iter(lines))
    save_tokenizers(pair.between("de", "en"), tmp_path)
    again = load_tokenizers(tmp_path)
    ids = again.between("de", "en").src.encode("one")
    assert again.src.pieces(ids)[0] == "<2en>"
    assert ids[1:] == again.src.encode("one") == again.between("de", "en").src.encode_part("one")
    assert again.between("de", "en").src.decode([*ids, EOS_ID]) == "one"
    assert again.between("de", "en").tgt.encode("one") == again.tgt.encode("one")
    assert again.between("de", "en").src.letters("one") == [0, *again.src.letters("one")]
    assert again.src.id_of("<2en>") not in again.src.encode("<2en> x")
    with raises_error(Error.NO_SUCH_LANGUAGE):
        again.between("en", "fr")
    chunk = Encoder(again, "none", 20, ("en", "de"))([(1, "one", "eins", None), (2, "eins", "one", ("de", "en"))])  # type: ignore[list-item]
    firsts = [int(chunk.src.ids[0]), int(chunk.src.ids[chunk.src.lengths[0]])]
    assert again.src.pieces(firsts) == ["<2de>", "<2en>"]


@pytest.mark.system
def test_a_model_of_three_languages(files: dict[str, str], tmp_path: Path) -> None:
    parallel = {"type": "parallel", "files": files}
    data = {
        "run_dir": str(tmp_path / "run"), "device": "cpu",
        "corpus": {"src_lang": "en", "tgt_lang": "de", "train": parallel, "valid": {**parallel, "lines": 2},
                   "augment": {"upper": 0.5}},
        "tokenizer": {"type": "sentencepiece", "vocab_size": 60, "languages": ["en", "de", "fr"], "sampling": 0.1},
        "model": {"type": "transformer", "d_model": 8, "num_heads": 2, "d_ff": 8},
        "training": {"max_steps": 2, "freeze": ["embeddings"], "schedule": {"type": "linear", "warmup_steps": 0}},
    }  # fmt: skip
    recipes.run(parse(TranslationRecipe, data))
    translator = SearchTranslator.load(tmp_path / "run")
    assert translator.languages == ("en", "de")
    other = translator.between("fr", "en")
    assert other.languages == ("fr", "en")
    assert other.parts("un")[0].ids[0] != translator.parts("un")[0].ids[0]
    assert SearchTranslator.load(tmp_path / "run", languages=("fr", None)).languages == ("fr", "de")
    with raises_error(Error.NO_SUCH_LANGUAGE):
        translator.between("en", "cs")


def test_parts_that_are_frozen() -> None:
    net = torch.nn.ModuleDict({"encoder_layers": torch.nn.Linear(2, 2), "src_embedding": torch.nn.Linear(2, 2)})
    assert frozen_parameters(net, ["embeddings"]) == list(net["src_embedding"].parameters())
    with raises_error(Error.UNKNOWN_NAME):
        frozen_parameters(net, ["decoder"])
    with raises_error(Error.WRONG_SETTING):
        frozen_parameters(net, ["encoder_layers", "src_embedding"])
