"""Several searches in one batch: each finds what it finds alone, and waiting ones begin as soon as there is room."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from torch import Tensor

from dragoman.backends.packed_linear import pack
from dragoman.decoding.base import SampledConfig
from dragoman.decoding.continuous_batching import MAX_ROWS_IN_FLIGHT, Search
from dragoman.decoding.rules import BeginWith
from dragoman.decoding.search import DecodingConfig, search, search_steps, search_together
from dragoman.errors import Error
from dragoman.models.ensemble import Ensemble
from dragoman.models.families import MODELS, Seq2SeqModel

VOCAB = 40
CPU = torch.device("cpu")
SIZES: dict[str, dict[str, Any]] = {
    "transformer": {"d_model": 32, "num_heads": 4, "d_ff": 64, "num_encoder_layers": 2, "num_decoder_layers": 2},
    "recurrent": {"d_model": 32, "d_embedding": 32, "attention": "additive"},
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """So that all searches are worked off by one, side by side."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def random_model(family: str, seed: int = 1) -> Seq2SeqModel:
    torch.manual_seed(seed)
    return MODELS[family](**SIZES[family]).build(
        src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, shared_vocab=True, pad_id=0
    )


def batches() -> list[tuple[Tensor, Tensor]]:
    """Of unlike widths, lengths and numbers of sentences."""
    rng, found = torch.Generator().manual_seed(2), []
    for sentences, width in ((20, 24), (5, 16), (17, 16), (1, 8), (9, 8), (30, 8)):
        lengths = torch.randint(1, width + 1, (sentences, 1), generator=rng)
        mask = torch.arange(width) < lengths
        found.append((torch.randint(4, VOCAB, mask.shape, generator=rng).masked_fill(~mask, 0), mask))
    return found


SHORT: dict[str, Any] = {"max_length_ratio": 0.3, "max_length_extra": 5}


@pytest.mark.parametrize(
    "config",
    [
        DecodingConfig(beam_size=1, **SHORT),
        DecodingConfig(beam_size=4, n_best=2, **SHORT),
        DecodingConfig(beam_size=12, coverage_penalty=0.2, **SHORT),
        DecodingConfig(sampling=SampledConfig(samples=3, seed=5), **SHORT),
    ],
    ids=["greedy", "beam", "wide beam", "samples"],
)
@pytest.mark.parametrize("family", ["transformer", "packed transformer", "recurrent", "both"])
def test_each_finds_what_it_finds_alone(family: str, config: DecodingConfig) -> None:
    """Texts and scores, to the last bit."""
    model = (
        Ensemble([random_model("transformer"), random_model("recurrent", seed=2)])
        if family == "both"
        else random_model(family.removeprefix("packed "))
    )
    if family.startswith("packed"):
        pack(model)
    alone = [search(model, src, mask, config) for src, mask in batches()]
    begun = [search_steps(model, src, mask, config) for src, mask in batches()]
    assert search_together(model, begun, CPU) == alone
    assert len({hypothesis.score for found in alone for [hypothesis, *_] in found}) > 50


@pytest.mark.system
@pytest.mark.parametrize("beam_size", [2, 12])  # a shared table of keys, and rows that are copied
@pytest.mark.parametrize(
    "variant",
    [
        {"position": {"type": "rotary"}, "num_kv_heads": 2, "activation": "gelu"},
        pytest.param(
            {"position": {"type": "alibi"}, "norm": "rms", "num_kv_heads": 1, "activation": "swiglu"},
            marks=pytest.mark.slow,
        ),
        pytest.param({"position": {"type": "learned"}, "norm_placement": "post"}, marks=pytest.mark.slow),
    ],
    ids=lambda variant: variant["position"]["type"],
)
def test_in_bfloat16_with_rules_and_terms_too(variant: dict[str, Any], beam_size: int) -> None:
    torch.manual_seed(4)
    config = MODELS["transformer"](**SIZES["transformer"], **variant)
    model = config.build(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, shared_vocab=True, pad_id=0).to(torch.bfloat16)
    decoding = DecodingConfig(beam_size=beam_size, no_repeat_ngram=2, **SHORT)
    wanted: list[dict[str, Any]] = [
        {"rules": [BeginWith({0: [7, 8], 3: [9]})]} if number % 2 else {"terms": [((5, 6),)] * len(src)}
        for number, (src, _) in enumerate(batches())
    ]
    listed = [(*batch, more) for batch, more in zip(batches(), wanted, strict=True)]
    alone = [search(model, src, mask, decoding, **more) for src, mask, more in listed]
    begun = [search_steps(model, src, mask, decoding, **more) for src, mask, more in listed]
    assert search_together(model, begun, CPU) == alone
    assert len({hypothesis.score for found in alone for [hypothesis, *_] in found}) > 30


def test_those_that_wait_begin_as_soon_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step never has fewer rows than MAX_ROWS_IN_FLIGHT while a search waits, and one that is done gives its place to
    the next."""
    model, steps = random_model("transformer"), []  # the rows of each search that is under way, step by step
    decode_steps = type(model).decode_steps

    def watched(self: Any, prevs: Sequence[Tensor], states: Sequence[Any]) -> Any:
        steps.append([len(prev) for prev in prevs])
        return decode_steps(self, prevs, states)

    monkeypatch.setattr(type(model), "decode_steps", watched)
    begins: list[int] = []  # how many steps there had been before each search began

    def noted(search: Search) -> Search:
        asked = next(search)
        begins.append(len(steps))
        while True:
            answer = yield asked
            try:
                asked = search.send(answer)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]

    config = DecodingConfig(beam_size=5, **SHORT)
    search_together(model, [noted(search_steps(model, src, mask, config)) for src, mask in batches()], CPU)
    assert len(begins) == len(batches())
    assert begins[0] == 0 < begins[-1]
    assert min(sum(rows) for rows in steps[: begins[-1]]) >= MAX_ROWS_IN_FLIGHT
    assert max(len(rows) for rows in steps) > 2


@pytest.mark.parametrize("place", [0, 1, 9])
def test_an_error_is_not_kept_back_until_all_others_are_done(place: int) -> None:
    """Neither is Ctrl-C, which takes the same way."""
    torch.set_num_threads(2)
    model, begun = random_model("recurrent"), []

    def fails() -> Search:
        raise Error.DIVERGED("no numbers")
        yield

    def counted(search: Search) -> Search:
        begun.append(search)
        return (yield from search)

    src, mask = batches()[0]
    others = [counted(search_steps(model, src, mask, DecodingConfig(beam_size=20))) for _ in range(200)]
    searches = [*others[:place], fails(), *others[place:]]
    with raises_error(Error.DIVERGED):
        search_together(model, searches, CPU)
    assert len(begun) < 40
