"""A search that is watched finds what it always finds, and every number shown is one of a fresh forward pass."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error

from dragoman.analysis.search_tree import fate, search_figure, search_table
from dragoman.cli.main import app
from dragoman.decoding.base import DecodingConfig
from dragoman.decoding.penalties import AveragePenalty
from dragoman.errors import Error
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.watched_search import FINISHED, GOES_ON, WHY_STOPPED, watch_search
from dragoman.models.families import RecurrentConfig, TransformerConfig
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig

RUN = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
WORDS = ["the red dog sees a man", "a man hears the king", "der hund"]
SMALL: dict[str, Any] = {"d_model": 16, "num_encoder_layers": 1, "num_decoder_layers": 2}
MODELS = {
    "transformer": TransformerConfig(**SMALL, num_heads=2, d_ff=24),
    "lstm": RecurrentConfig(**SMALL, d_embedding=16, attention="dot"),
}


def translator(family: str, **decoding: Any) -> SearchTranslator:
    torch.manual_seed(4)
    tokenizers = train_tokenizers(WordsConfig(), lambda: iter(WORDS), lambda: iter(()))
    model = build_model(MODELS[family], tokenizers).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return SearchTranslator(
        model, tokenizers, decoding=DecodingConfig(max_length_ratio=0.0, max_length_extra=9, **decoding)
    )


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("decoding", [{"beam_size": 3}, {"beam_size": 4, "length_penalty": AveragePenalty(alpha=0.6)}])
def test_every_number_is_that_of_a_fresh_pass(family: str, decoding: dict[str, Any]) -> None:
    one = translator(family, **decoding)
    sentence = "the red dog hears a king"
    watched = watch_search(one, sentence, top=5)
    [best] = one.n_best([sentence])[0]
    assert (watched.texts[0], watched.hypotheses[0].score) == (best.text, pytest.approx(best.score, abs=1e-6))
    tgt = one.tokenizers.tgt
    ids = torch.tensor([[*watched.src_ids, 3]])
    with torch.inference_mode():
        memory = one.model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
        for number, step in enumerate(watched.steps, start=1):
            assert step.length == number
            assert step.divisor == pytest.approx(one.decoding.length_penalty.divisor(number))
            for alive in step.alive:
                prefix = torch.tensor([[2, *(tgt.id_of(piece) for piece in alive.pieces[1:])]])
                logits = one.model.decode(prefix, memory)[0]
                log_probs = logits.log_softmax(dim=-1)
                said = log_probs[:-1].gather(1, prefix[0, 1:, None]).sum()
                assert alive.log_prob == pytest.approx(float(said), abs=1e-5)
                expected = log_probs[-1].exp().topk(5)
                assert [item.prob for item in alive.next] == pytest.approx(expected.values.tolist(), abs=1e-5)
                assert [item.piece for item in alive.next] == tgt.pieces(expected.indices.tolist())
            for item in step.candidates:
                if item.fate == FINISHED:
                    assert item.score == pytest.approx(item.log_prob / step.divisor)
            going = [item for item in step.candidates if item.fate == GOES_ON]
            assert sorted(item.place for item in going if item.place is not None) == list(range(len(going)))
            if number < len(watched.steps):
                following = watched.steps[number].alive
                for item in going:
                    assert item.place is not None
                    grown = following[item.place]
                    assert grown.pieces == [*step.alive[item.parent].pieces, item.piece]
                    assert grown.log_prob == pytest.approx(item.log_prob)


def test_it_stops_for_the_reason_that_is_told() -> None:
    one = translator("transformer", beam_size=3)
    watched = watch_search(one, "the dog")
    last = watched.steps[-1]
    if "longest length" in watched.stopped:
        assert last.length == watched.longest
    else:
        assert last.best_finished is not None
        assert last.best_finished >= last.still_possible
    assert math.isclose(last.still_possible, max(
        item.log_prob for item in last.candidates if item.fate == GOES_ON
    ) / one.decoding.length_penalty.divisor(watched.longest), rel_tol=1e-6)  # fmt: skip


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_beam_of_1_is_watched_as_the_greedy_search(family: str, alpha: float) -> None:
    """One hypothesis is alive at each step, and the first `</s>` ends it: a length penalty changes nothing, nor does a
    run's own patience."""
    settings: dict[str, Any] = {"stopping": "likely", "patience": 2.0} if alpha else {}
    one = translator(family, beam_size=1, length_penalty=AveragePenalty(alpha=alpha), **settings)
    for sentence in ("the dog", "the red dog hears a king", "a man"):
        watched = watch_search(one, sentence)
        [best] = one.n_best([sentence])[0]
        assert watched.beam_size == 1
        assert (watched.texts, watched.hypotheses[0].score) == ([best.text], pytest.approx(best.score, abs=1e-6))
        assert [len(step.alive) for step in watched.steps] == [1] * len(watched.steps)
        ends = [step.length for step in watched.steps if any(item.fate == FINISHED for item in step.candidates)]
        assert ends in ([], [len(watched.steps)])
        assert ("longest length" in watched.stopped) == (not ends)


def test_the_command_shows_a_beam_of_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert not app(["inspect", "decode", str(RUN), "the dog sees a man", "--beam-size", "1"], standalone_mode=False)
    assert "beam      1, at most" in capsys.readouterr().out


def test_what_is_no_plain_beam_search_is_refused() -> None:
    with raises_error(Error.BLANK):
        watch_search(translator("lstm"), " ")
    with raises_error(Error.UNSUPPORTED):
        watch_search(translator("lstm", coverage_penalty=0.2), "the dog")


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("decoding", [{"beam_size": 1}, {"beam_size": 3}, {"beam_size": 3, "min_length": 2}])
def test_the_winner_is_followed_from_the_start_and_every_other_death_has_its_reason(
    family: str, decoding: dict[str, Any]
) -> None:
    watched = watch_search(translator(family, **decoding), "the red dog hears a king")
    best = watched.hypotheses[0]
    length = len(best.ids) + (not best.cut)
    path = [[one for one in step.candidates if one.wins] for step in watched.steps]
    assert [len(winners) for winners in path] == [1] * length + [0] * (len(watched.steps) - length)
    assert [winners[0].piece for winners in path[:length]] == [*watched.pieces[0], *(["</s>"] * (not best.cut))]
    assert path[length - 1][0].log_prob == pytest.approx(best.log_prob, abs=1e-5)
    for number, step in enumerate(watched.steps):
        for one in step.candidates:
            reason = fate(watched, step, one)
            if one.fate == GOES_ON and number + 1 < len(watched.steps):
                heirs = [
                    other for other in watched.steps[number + 1].candidates
                    if other.parent == one.place and other.fate in (GOES_ON, FINISHED)
                ]  # fmt: skip
                assert one.has_heirs == bool(heirs)
                assert ("nothing of it is kept" in reason) == (not heirs)
            elif one.fate == GOES_ON:
                assert "had not ended" in reason
            elif one.fate == FINISHED:
                assert ("the winner" in reason) == one.wins
            else:
                assert reason.startswith("dropped: ")
    assert watched.why in WHY_STOPPED
    assert watched.why == "longest" or not best.cut


def test_the_command_prints_the_arithmetic_and_draws_the_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = tmp_path / "tree.svg"
    arguments = ["inspect", "decode", str(RUN), "the dog sees a man", "--beam-size", "2", "-o", str(picture)]
    assert not app([*arguments, "--device", "cpu"], standalone_mode=False)
    told = capsys.readouterr().out
    assert "step 1: what is alive" in told
    assert "finished: -" in told
    assert " / " in told
    assert "stopped: " in told
    assert "found: " in told
    assert "▁" in picture.read_text(encoding="utf-8")
    watched = watch_search(SearchTranslator.load(RUN, device="cpu", beam_size=3), "the dog sees a man")
    assert search_table(watched).count("step ") == len(watched.steps)
    assert search_figure(watched).axes
