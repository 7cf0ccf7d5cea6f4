"""Translations ranked by how well a run of the opposite direction finds their sources in them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.decoding.search import DecodingConfig
from dragoman.errors import DragomanError, Error
from dragoman.inference import reranking as noisy_channel
from dragoman.inference.loading import build_model
from dragoman.inference.reranking import NoisyChannelReranker, require_opposite
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Scored, Translation
from dragoman.models.families import MODELS
from dragoman.pipeline.guarded import GuardedTranslator
from dragoman.pipeline.pipeline import LearntFrom
from dragoman.text.tokenizers.pair import TokenizerPair, train_tokenizers
from dragoman.text.tokenizers.whitespace import WhitespaceConfig

WORDS = [f"w{number}" for number in range(40)]
SIZES = {"d_model": 32, "num_heads": 4, "d_ff": 64, "num_encoder_layers": 2, "num_decoder_layers": 2}
SENTENCES = ["w1 w2 w3", "w4", "", "w5 w6 w7 w8 w9 w10 w11 w12 w13", "w2 w2"]


@pytest.fixture(scope="module")
def tokenizers() -> TokenizerPair:
    text = [" ".join(WORDS)]
    return train_tokenizers(WhitespaceConfig(), lambda: iter(text), lambda: iter(text))


def translator(tokenizers: TokenizerPair, seed: int, **settings: Any) -> SearchTranslator:
    torch.manual_seed(seed)
    model = build_model(MODELS["transformer"](**SIZES), tokenizers).eval()
    decoding = DecodingConfig(beam_size=4, max_length_ratio=0.5, max_length_extra=3)
    return SearchTranslator(model, tokenizers, decoding=decoding, **settings)


@pytest.mark.parametrize("at_once", [2, 256])
def test_the_best_of_the_beam_by_both_models(
    tokenizers: TokenizerPair, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Scores are the sum of the forward score and the weighted log probability of a source token, whatever else is
    translated beside it; the run's own ranking is changed by it, and an order of n best is one of the beam's."""
    forward, back = translator(tokenizers, 1), translator(tokenizers, 2)
    monkeypatch.setattr(noisy_channel, "SOURCES_AT_ONCE", at_once)
    weight, changed = 2.0, 0
    found = forward.with_decoding(n_best=2).reranked_by(NoisyChannelReranker(back, weight)).n_best(SENTENCES)
    for src, [best, *others], beam in zip(
        SENTENCES, found, forward.with_decoding(n_best=4).n_best(SENTENCES), strict=True
    ):
        if not src:
            assert [best, *others] == beam == [Translation("", 0.0, 0.0)]
            continue
        scored = score(back, [(item.text, src) for item in beam])
        sums = {
            item.text: item.score + weight * x.log_prob / (len(src.split()) + 1)
            for item, x in zip(beam, scored, strict=True)
        }
        assert [item.text for item in (best, *others)] == sorted(sums, key=lambda text: -sums[text])[:2]
        assert best.score == sums[best.text]
        assert best.log_prob in [item.log_prob for item in beam]
        changed += best.text != beam[0].text
    assert changed
    alone = forward.with_decoding(n_best=2).reranked_by(NoisyChannelReranker(back, weight))
    assert [alone.n_best([src])[0] for src in SENTENCES] == found


def test_without_weight_nothing_changes(tokenizers: TokenizerPair) -> None:
    forward = translator(tokenizers, 1)
    reranked = forward.reranked_by(NoisyChannelReranker(translator(tokenizers, 2), 0.0))
    assert reranked.n_best(SENTENCES) == forward.n_best(SENTENCES)


def test_what_the_run_back_cannot_judge_comes_last(tokenizers: TokenizerPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A translation longer than what it reads at once; a blank one; a source longer than what it writes."""

    class Back:
        tokenizers, max_src_tokens = None, 3
        model = type("Model", (), {"max_target_length": 5})
        normalize = staticmethod(str)

    def score(_: Any, pairs: Sequence[tuple[str, str]]) -> list[Scored]:
        return [Scored(-1.0, -float(len(text)), [("a", 0.0)]) for text, _ in pairs]

    monkeypatch.setattr("dragoman.inference.reranking.score", score)
    back: Any = Back()
    back.tokenizers = tokenizers
    one, two = Translation("w1 w2 w3", -1.0, -4.0), Translation("w1", -1.1, -2.0)
    long, blank = Translation("w1 w2 w3 w4", -1.2, -5.0), Translation("", -2.0, -2.0)
    sources = ["w1 w1", "w1 w1", "w1 w1", "w1 w1 w1 w1 w1", "w1 w1"]
    found = NoisyChannelReranker(back, 1.0)(
        sources, [[one, two], [long, one, two], [blank, one, two], [one, two], [one]]
    )
    assert [[item.text for item in items] for items in found] == [
        ["w1", "w1 w2 w3"],
        ["w1", "w1 w2 w3", "w1 w2 w3 w4"],
        ["w1", "w1 w2 w3", ""],
        ["w1 w2 w3", "w1"],
        ["w1 w2 w3"],
    ]


def test_one_measure_at_a_time_and_the_right_languages(tokenizers: TokenizerPair) -> None:
    forward = translator(tokenizers, 1, languages=("en", "de"))
    channel = NoisyChannelReranker(translator(tokenizers, 2, languages=("de", "en")))
    require_opposite(forward, channel.back, "runs/back")
    with raises_error(Error.LANGUAGES_DIFFER, "en-de"):
        require_opposite(forward, forward, "runs/en-de")
    with raises_error(Error.CONFLICT):
        forward.with_decoding(mbr="chrf").reranked_by(channel)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--rerank", "back"], None),
        (["--rerank", "back", "--rerank-weight", "3"], None),
        (["--rerank", "forward"], Error.LANGUAGES_DIFFER),
        (["--rerank", "back", "--rerank-weight", "3", "--guard"], None),
        (["--rerank-weight", "3"], Error.MISSING_OPTION),
        (["--rerank", "back", "--rerank-weight", "1e308"], Error.WRONG_OPTION),
        (["--rerank", "back", "--beam-size", "1"], Error.CONFLICT),
        (["--rerank", "back", "decoding.mbr=chrf"], Error.CONFLICT),
    ],
)
def test_from_the_command_line(
    tokenizers: TokenizerPair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str], code: Error | None
) -> None:
    runs = {
        "forward": translator(tokenizers, 1, languages=("en", "de")),
        "back": translator(tokenizers, 2, languages=("de", "en")),
    }

    def load(run: Path, beam_size: int = 4, changes: Sequence[str] = (), **_: Any) -> SearchTranslator:
        mbr = "chrf" if changes else "none"
        return runs[str(run)].with_decoding(beam_size=beam_size, mbr=mbr)

    monkeypatch.setattr("dragoman.inference.search_translator.SearchTranslator.load", load)
    monkeypatch.setattr("dragoman.pipeline.options.check_run_dir", Path)
    monkeypatch.setattr("dragoman.pipeline.options.learnt_from", lambda _: LearntFrom(True, True))
    out = tmp_path / "out.txt"
    (tmp_path / "in.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["translate", "forward", "-i", str(tmp_path / "in.txt"), "-o", str(out), *options])
    if code is not None:
        assert isinstance(done.exception, DragomanError)
        assert done.exception.code == code
        return
    channel = NoisyChannelReranker(runs["back"], 3.0 if "3" in options else 0.3)
    reranked: Any = runs["forward"].reranked_by(channel)
    if "--guard" in options:
        reranked = GuardedTranslator(reranked, keep=False)
    expected = [found[0].text for found in reranked.n_best(SENTENCES)]
    assert done.exit_code == 0, done.exception
    assert out.read_text(encoding="utf-8").split("\n")[:-1] == expected
    assert (expected == runs["forward"].translate(SENTENCES)) is ("3" not in options)
