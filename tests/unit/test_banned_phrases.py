"""Phrases that no translation may hold."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from tests.unit.test_translator import LINES, MODEL, run  # noqa: F401 (a fixture)
from typer.testing import CliRunner

from dragoman.alignment.term_placement import with_glossary
from dragoman.cli.main import app
from dragoman.decoding.base import DecodingConfig, SampledConfig
from dragoman.errors import Error
from dragoman.export import engine
from dragoman.inference.banned_phrases import BannedPhrases
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.families import TransformerConfig
from dragoman.text.glossary import Glossary
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.characters import CharactersConfig
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig

SOURCES = [*LINES, "we see a bird .", "", "the dog sees a dog and a cat .", " ".join(LINES)]


def avoiding(*phrases: str) -> BannedPhrases:
    return BannedPhrases(phrases)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"beam_size": 1},
        {"diversity": 0.5, "n_best": 3},
        {"sampling": {"samples": 6}, "n_best": 6},
        {"beam_size": 4, "mbr": "chrf"},
    ],
    ids=str,
)
def test_no_translation_holds_them_and_the_others_stay_as_they_are(
    settings: dict[str, Any],
    run: Path,  # noqa: F811
) -> None:
    plain = SearchTranslator.load(run, device="cpu", **settings).n_best(SOURCES)
    written = " ".join(item.text for found in plain for item in found).split()
    avoid = avoiding(*list(dict.fromkeys(written))[:2])
    translator = SearchTranslator.load(run, device="cpu", **settings).with_terms(banned=avoid)
    changed = translator.n_best(SOURCES)
    assert any(avoid.held(item.text) for found in plain for item in found)
    assert not any(avoid.held(item.text) for found in changed for item in found)
    for line, before, after in zip(SOURCES, plain, changed, strict=True):
        if len(translator.parts(line)) == 1 and translator.decoding.mbr == "none":
            assert (after == before) == (not any(avoid.held(item.text) for item in before))
    assert translator.n_best(SOURCES[::-1])[::-1] == [translator.n_best([line])[0] for line in SOURCES]


@pytest.mark.parametrize("kind", [CharactersConfig(), SentencePieceConfig(vocab_size=40)], ids=["characters", "pieces"])
def test_whatever_tokens_spell_them(kind: CharactersConfig | SentencePieceConfig) -> None:
    tokenizers = train_tokenizers(kind, lambda: iter(LINES), lambda: iter(LINES))
    torch.manual_seed(1)
    model = build_model(TransformerConfig(**MODEL), tokenizers).eval()
    decoding = DecodingConfig(n_best=8, sampling=SampledConfig(samples=8), max_length_extra=30)
    plain = SearchTranslator(model, tokenizers, decoding=decoding).n_best(LINES)
    said = [words for found in plain for item in found if len(words := item.text.split()) > 2]
    avoid = avoiding(said[0][0], " ".join(said[-1][:2]), said[-1][-1])
    bound = SearchTranslator(model, tokenizers, decoding=decoding).with_terms(banned=avoid).n_best(LINES)
    assert any(avoid.held(item.text) for found in plain for item in found)
    assert not any(avoid.held(item.text) for found in bound for item in found)
    assert all(any(item.text.strip() for item in found) for found in bound)


def test_the_fewest_tokens_that_spell_a_phrase() -> None:
    class Words(Tokenizer):
        def decode(self, ids: Any) -> str:
            return " ".join(["zero", "one", "two", "three", "four"][i] for i in ids)

    decode = Words.decode.__get__(object())
    assert avoiding("two three").spelled([1, 2, 3, 2, 4, 2, 3], decode) == [(2, 3), (2, 3)]
    assert avoiding("Two", "threes", "four").spelled([1, 2, 3, 4], decode) == [(4,)]
    assert avoiding("two").spelled([], decode) == []


def test_what_cannot_be_asked_for_is_said(run: Path, tmp_path: Path) -> None:  # noqa: F811
    with raises_error(Error.CONFLICT):
        with_glossary(SearchTranslator.load(run, device="cpu"), Glossary({"dog": "the bird"}), avoiding("bird"))
    translator = SearchTranslator.load(run, device="cpu").with_terms(banned=avoiding("bird"))
    with raises_error(Error.CONFLICT):
        translator.n_best(LINES[:1], ["the bird"])
    with raises_error(Error.UNSUPPORTED):
        engine(run, "ctranslate2", translator)
    every = SearchTranslator.load(run, device="cpu").with_terms(banned=avoiding(*" ".join(LINES).split()))
    assert every.translate(LINES[:1])  # nothing is left to be said but odd ends

    for text, error in [("# none\n\n", (Error.EMPTY, "avoid")), ("a\nb\tc\n", (Error.WRONG_SHAPE, "avoid:2"))]:
        (tmp_path / "avoid").write_text(text, encoding="utf-8")
        with raises_error(*error):
            BannedPhrases.load(tmp_path / "avoid")


def test_by_the_command_line(run: Path, tmp_path: Path) -> None:  # noqa: F811
    plain = SearchTranslator.load(run, device="cpu").translate(LINES)
    word = " ".join(plain).split()[0]
    source, avoid, out = tmp_path / "source", tmp_path / "avoid", tmp_path / "out"
    source.write_text("".join(line + "\n" for line in LINES), encoding="utf-8")
    avoid.write_text(f"# not these\n{word}\n", encoding="utf-8")
    command = ["translate", str(run), "-i", str(source), "-o", str(out), "--avoid", str(avoid)]
    assert CliRunner().invoke(app, command).exit_code == 0
    lines = out.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(LINES)
    assert not any(word in line.split() for line in lines)
