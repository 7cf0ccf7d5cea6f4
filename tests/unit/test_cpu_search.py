"""The search in C does what the textbook does, and its two doors give the same bytes."""

import copy
import os
import platform
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error

from dragoman.backends.accelerate import search_in_c
from dragoman.backends.cpu_search import fast_transformer, library
from dragoman.backends.cpu_search.fast_transformer import FastTransformer, Logits
from dragoman.backends.cpu_search.weights import PRECISIONS, can_be_packed
from dragoman.config import parse
from dragoman.data.batch import collate_src
from dragoman.decoding.base import DecodingConfig
from dragoman.decoding.search import search
from dragoman.errors import Error
from dragoman.models.families import TransformerConfig
from dragoman.models.transformer import Transformer

pytestmark = pytest.mark.skipif(library.library() is None, reason="no C compiler")
VOCAB = 131
SOURCES = [[random.Random(n).randrange(4, VOCAB) for _ in range(1 + n * 7 % 19)] for n in range(24)]
MODELS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "post": {"norm_placement": "post"},
    "output": {"norm_placement": "output"},
    "rms, swiglu": {"norm": "rms", "activation": "swiglu"},
    "gelu": {"activation": "gelu"},
    "gelu_tanh": {"activation": "gelu_tanh"},
    "silu": {"activation": "silu"},
    "rotary": {"position": {"type": "rotary"}},
    "learned": {"position": {"type": "learned"}},
    "none": {"position": {"type": "none"}},
    "fairseq": {"position": {"type": "sinusoidal", "layout": "fairseq", "offset": 2}},
    "shared keys": {"num_kv_heads": 2},
    "embedding norm": {"embedding_norm": True},
    "bias": {"output_bias": True, "tie_embeddings": "none"},
    "odd sizes": {"d_model": 40, "num_heads": 2, "d_ff": 100},
    "zero start": {"zero_start": True},
    "tied layers": {"tied_layers": [1, 1], "tied_encoder_layers": [1, 1]},
    "no end": {"src_end": False},
}
PLAIN: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam 5": {"beam_size": 5},
    "n best": {"beam_size": 4, "n_best": 4},
    "first": {"beam_size": 4, "stopping": "first"},
    "full": {"beam_size": 3, "stopping": "full", "patience": 2.0},
    "likely": {"beam_size": 3, "stopping": "likely", "n_best": 2},
    "no penalty": {"beam_size": 5, "length_penalty": {"type": "none"}},
    "min length": {"beam_size": 2, "min_length": 3},
    "short": {"beam_size": 3, "max_length_ratio": 0.0, "max_length_extra": 4},
}
OTHERS: dict[str, dict[str, Any]] = {
    "repetition": {"beam_size": 3, "repetition_penalty": 1.2},
    "n-grams": {"beam_size": 4, "no_repeat_ngram": 2},
    "diversity": {"beam_size": 4, "diversity": 0.5},
    "groups": {"beam_size": 4, "diversity": 0.5, "diversity_groups": 2},
    "coverage": {"beam_size": 4, "coverage_penalty": 0.2},
}


def model_of(seed: int = 0, **changes: Any) -> Transformer:
    """A model that is sure of something, so that no two hypotheses are nearly equal."""
    sizes = {"d_model": 64, "num_heads": 4, "d_ff": 128, "num_encoder_layers": 2, "num_decoder_layers": 2}
    torch.manual_seed(seed)
    config = parse(TransformerConfig, {**sizes, **changes})
    model = config.build(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, shared_vocab=True, pad_id=0).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(1.6)
            else:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def fast(model: Transformer, precision: str = "float32") -> FastTransformer:
    copied = copy.deepcopy(model)
    search_in_c(copied, precision)
    assert isinstance(copied, FastTransformer)
    return copied


def in_c(model: FastTransformer, config: DecodingConfig, sources: list[list[int]] = SOURCES) -> Any:
    return model.search([[*source, 3] for source in sources], config)


QUICK = ("defaults", "post", "rms, swiglu", "odd sizes")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.system) for n in MODELS])
def test_a_search_in_c_finds_what_the_textbook_finds(name: str) -> None:
    model = model_of(**MODELS[name])
    kinds = ["greedy", "beam 5", "n-grams"] if name == "defaults" else ["greedy", "n best"]
    compare(model, kinds)


@pytest.mark.system
@pytest.mark.parametrize("kind", [*PLAIN, *OTHERS])
def test_every_setting_of_a_search(kind: str) -> None:
    compare(model_of(), [kind])


def compare(model: Transformer, kinds: list[str]) -> None:
    src, mask = collate_src(SOURCES)
    for kind in kinds:
        config = parse(DecodingConfig, (PLAIN | OTHERS)[kind])
        expected = search(model, src, mask, config)
        own = fast(model)
        stepwise = search(own, src, mask, config)
        whole = in_c(own, config) if kind in PLAIN else stepwise
        assert whole == stepwise, kind  # to the last bit
        for ours, theirs in zip(stepwise, expected, strict=True):
            assert [item.log_prob for item in ours] == pytest.approx([item.log_prob for item in theirs], abs=2e-4)
            assert [item.ids for item in ours] == [item.ids for item in theirs] or len(theirs) > 1
            assert [item.cut for item in ours] == [item.cut for item in theirs]


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.system) for n in MODELS])
def test_given_translations_have_the_probabilities_of_the_textbook(name: str) -> None:
    model = model_of(**MODELS[name])
    pairs = [([*src, 3], [*tgt, 3]) for src, tgt in zip(SOURCES, SOURCES[::-1], strict=True)]
    for (src, tgt), ours in zip(pairs, fast(model).forced_log_probs(pairs), strict=True):
        with torch.inference_mode():
            logits = model(*collate_src([src[:-1]]), torch.tensor([[2, *tgt[:-1]]]))[0]
        expected = logits.log_softmax(dim=-1).gather(1, torch.tensor(tgt)[:, None])[:, 0].tolist()
        assert ours == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_translation_has_the_probability_that_its_search_gave_it(precision: str) -> None:
    """sockeye 639: the score of a translation and its score in a search, which lacked the `</s>`, were two numbers."""
    own = fast(model_of(), precision)
    for beam in (1, 4):
        best = [items[0] for items in in_c(own, DecodingConfig(beam_size=beam))]
        pairs = [([*src, 3], item.ids if item.cut else [*item.ids, 3]) for src, item in zip(SOURCES, best, strict=True)]
        for item, values in zip(best, own.forced_log_probs(pairs), strict=True):
            assert sum(map(np.float32, values), np.float32(0)) == item.log_prob  # to the last bit, added in its order
            assert len(values) == len(item.ids) + (not item.cut)


def test_a_probability_does_not_depend_on_what_stands_beside_it() -> None:
    """tensor2tensor 1756, returnn-experiments 26, fairseq 427, bergamot-translator 244 (scores that change with the
    batch); fairseq 349 and marian-dev 1032 (a translation that is empty but for `</s>`)."""
    own = fast(model_of())
    pairs = [([*src, 3], [*tgt, 3]) for src, tgt in zip(SOURCES, SOURCES[::-1], strict=True)] + [([5, 3], [3])]
    together = own.forced_log_probs(pairs)
    assert [own.forced_log_probs([pair])[0] for pair in pairs] == together
    assert own.forced_log_probs(pairs[::-1]) == together[::-1]
    assert [len(values) for values in together] == [len(tgt) for _, tgt in pairs]


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_a_translation_does_not_depend_on_what_stands_beside_it(precision: str) -> None:
    own = fast(model_of(), precision)
    config = DecodingConfig(beam_size=4, n_best=2)
    together = in_c(own, config)
    assert [in_c(own, config, [source])[0] for source in SOURCES[:8]] == together[:8]
    assert in_c(own, config, SOURCES[::-1]) == together[::-1]
    assert in_c(own, config, SOURCES * 5) == together * 5  # more than there are slots for


@pytest.mark.parametrize(("precision", "near"), [("bfloat16", 0.05), ("int8", 0.1)])
def test_fewer_bits_are_near(precision: str, near: float) -> None:
    model, config = model_of(), DecodingConfig(beam_size=1)
    exact, rough = in_c(fast(model), config), in_c(fast(model, precision), config)
    alike = [ours[0].ids == theirs[0].ids for ours, theirs in zip(exact, rough, strict=True)]
    assert sum(alike) >= len(alike) // 2
    for ours, theirs, same in zip(exact, rough, alike, strict=True):
        if same:
            assert theirs[0].score == pytest.approx(ours[0].score, abs=near)


def test_what_the_file_does_not_know_is_left_to_pytorch() -> None:
    for changes in ({"position": {"type": "alibi"}}, {"position": {"type": "relative"}}, {"decoder_autoreg": "rnn"}):
        model = model_of(**changes)
        assert not can_be_packed(model)
        search_in_c(model)
        assert type(model) is Transformer


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_is_no_number_is_refused(precision: str, bad: float) -> None:
    """Wherever in the model it stands; whole numbers of 8 bits have no NaN, so int8 answered as if it were zero."""
    model = model_of()
    layer = model.decoder_layers[1]
    for parameter in (model.output.weight, layer.feed_forward.contract.weight, layer.feed_forward_residual.norm.weight):
        number = parameter.data.view(-1)[5].clone()
        parameter.data.view(-1)[5] = bad
        own = fast(model, precision)
        for beam in (1, 3):
            with pytest.raises(Exception, match="no token a finite probability"):
                in_c(own, DecodingConfig(beam_size=beam), SOURCES[:3])
        parameter.data.view(-1)[5] = number


def test_log_softmax_is_pytorchs() -> None:
    torch.manual_seed(0)
    for vocab in (5, 16, 100, 1001):
        logits = torch.randn(7, vocab + 3)[:, :vocab] * 5
        logits[2, 3] = -float("inf")
        torch.testing.assert_close(logits.as_subclass(Logits).log_softmax(-1), logits.log_softmax(-1))
    assert torch.tensor([[0.0, float("nan")]]).as_subclass(Logits).log_softmax(dim=-1).isnan().all()


def test_a_copy_of_a_model_packs_its_own_weights() -> None:
    own, config = fast(model_of()), DecodingConfig(beam_size=2)
    before = in_c(own, config)
    other = copy.deepcopy(own)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0.5)
    assert in_c(other, config) != before
    assert in_c(own, config) == before


def test_the_error_of_a_thread_is_what_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    own, first = fast(model_of()), threading.Event()

    def fails_once() -> None:
        if not first.is_set():
            first.set()
            raise KeyError("of one thread")

    monkeypatch.setattr(fast_transformer, "check", fails_once)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with pytest.raises(KeyError, match="of one thread"):
            in_c(own, DecodingConfig(beam_size=2), SOURCES * 10)
    finally:
        torch.set_num_threads(before)


def test_another_type_or_device_packs_the_weights_anew() -> None:
    own, config = fast(model_of()), DecodingConfig(beam_size=2)
    before = in_c(own, config)
    assert in_c(own.to(torch.bfloat16), config) != before
    assert type(copy.deepcopy(own).to("meta")) is Transformer


# -- what went wrong elsewhere ---------------------------------------------------------------------------------------


def built(vocab: int = VOCAB, **changes: Any) -> Transformer:
    torch.manual_seed(1)
    sizes = {"d_model": 32, "num_heads": 4, "d_ff": 64, "num_encoder_layers": 1, "num_decoder_layers": 1}
    model = parse(TransformerConfig, {**sizes, **changes})
    return model.build(src_vocab_size=vocab, tgt_vocab_size=vocab, shared_vocab=True, pad_id=0).eval()


def logits_of(model: FastTransformer, source: list[int]) -> torch.Tensor:
    """Of the first target token."""
    src, mask = collate_src([source])
    with torch.inference_mode():
        state = model.start_search(model.encode(src, mask), 1)
        return model.decode_steps([torch.tensor([2])], [state])[0][0].as_subclass(torch.Tensor)[0]


def test_a_beam_may_be_wider_than_the_vocabulary() -> None:
    """espnet 4981, fairseq 358, sockeye 191."""
    model, config = built(vocab=9), DecodingConfig(beam_size=20, n_best=12, max_length_ratio=0, max_length_extra=4)
    expected = search(model, *collate_src([[5, 6]]), config)
    ours = fast(model).search([[5, 6, 3]], config)
    assert [len(item) for item in ours] == [len(item) for item in expected]
    scores = [[item.score for item in of_sentence] for of_sentence in (*ours, *expected)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


@pytest.mark.parametrize("length", [16, 30])
def test_a_source_beyond_the_last_position_is_refused(length: int) -> None:
    """CTranslate2 1157 and 1646, yoyodyne 40: C would read what stands behind the table."""
    own = fast(built(position={"type": "learned", "max_len": 16}))
    long = [[5] * length + [3]]
    for door in (
        lambda: own.search(long, DecodingConfig()),
        lambda: logits_of(own, [5] * length),
        lambda: own.forced_log_probs([(long[0], [5, 3])]),
        lambda: own.forced_log_probs([([5, 3], long[0])]),
    ):
        with raises_error(Error.TOO_LONG, "16 learned positions"):
            door()


def test_an_id_that_is_none_is_refused() -> None:
    """bert-nmt 8, daseg 11."""
    own = fast(built())
    for wrong in (VOCAB, -1):
        with pytest.raises(IndexError, match="none of"):
            own.search([[wrong, 3]], DecodingConfig())
        for pair in (([wrong, 3], [5, 3]), ([5, 3], [wrong, 3])):
            with pytest.raises(IndexError, match="none of"):
                own.forced_log_probs([pair])


def test_outliers_and_zeros_in_int8() -> None:
    """CTranslate2 847 (nonsense in int8): one large weight is of its own output alone, and zeros are no NaN."""
    model = built()
    with torch.no_grad():
        layer = model.decoder_layers[0].feed_forward
        layer.expand.weight[3, 2] = 300.0
        layer.contract.weight[5] = 0.0
        layer.contract.weight[6, 3] = -0.9
    exact, rough = (logits_of(fast(model, precision), [5, 6, 7]) for precision in ("float32", "int8"))
    assert (exact - rough).abs().max() < 0.05 * exact.abs().max()


def test_large_sums_in_int8_do_not_overflow() -> None:
    """onnxruntime 6004, nncf 1027, CTranslate2 666: instructions that saturate at 16 bits, or conversions that do."""
    model = built(d_ff=4096)
    with torch.no_grad():
        layer = model.decoder_layers[0].feed_forward
        for sign, rows in ((1.0, slice(0, 16)), (-1.0, slice(16, 32))):  # every product has the same sign, and the most
            layer.contract.weight[rows] = sign * 0.01
        layer.expand.weight.zero_()
        layer.expand.bias.fill_(3.0)
    exact, rough = (logits_of(fast(model, precision), [5, 6, 7]) for precision in ("float32", "int8"))
    assert (exact - rough).abs().max() < 0.05 * exact.abs().max()


FORKED = """
import os, signal, sys, torch
from tests.unit.test_cpu_search import DecodingConfig, built, fast
torch.set_num_threads(2)
model, config = fast(built(vocab=8000, d_model=256)), DecodingConfig(beam_size=4, max_length_ratio=0)
before = model.search([[5, 6, 7, 3]], config)
child = os.fork()
if not child:
    signal.alarm(20)
    os._exit(model.search([[5, 6, 7, 3]], config) != before)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.system
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_copy_of_a_process_that_has_searched_goes_on() -> None:
    """CTranslate2 539, gunicorn 2478, pytorch 49555: servers that load a model and then fork waited for ever."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True, cwd=Path(__file__).parents[2])


@pytest.mark.system
@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86-64")
@pytest.mark.parametrize("flags", ["-mno-avx512f", "-mno-avx512f -mno-avx2"], ids=["AVX2", "SSE"])
def test_on_older_processors(flags: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """BitNet 547, openvino 11658: other instructions, the same translations; whole numbers are the same to the last."""
    model, config = model_of(), DecodingConfig(beam_size=3)
    here = {precision: in_c(fast(model, precision), config) for precision in PRECISIONS}
    monkeypatch.setenv("CC", f"{os.environ.get('CC', 'cc')} {flags}")
    monkeypatch.setattr(library, "library", library.library.__wrapped__)
    older = library.library()
    assert older is not None
    assert older.panel_columns() < 32
    monkeypatch.setattr(library, "library", lambda: older)
    for precision in ("float32", "int8"):
        for ours, theirs in zip(in_c(fast(model, precision), config), here[precision], strict=True):
            assert ours[0].score == pytest.approx(theirs[0].score, abs=2e-3 if precision == "int8" else 1e-4)
    compare(model, ["greedy", "n best"])
