"""Drawing tokens: filters against closed forms, generation against a loop that goes one row and one token at a time."""

import doctest
import itertools
import math
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.errors import raises_error
from torch import Tensor, nn

from dragoman.config import parse
from dragoman.decoding import filters as draw_module
from dragoman.decoding.filters import draw, filtered, keep_top_k, keep_top_p, numbers, tempered
from dragoman.decoding.generate import SamplingConfig, generate, stream
from dragoman.errors import Error
from dragoman.models.base import ROW_MULTIPLE
from dragoman.models.language_model import LanguageModelConfig

VOCAB = 11


def log(*probabilities: float) -> Tensor:
    return torch.tensor([probabilities], dtype=torch.float64).log()


def left(logits: Tensor) -> list[int]:
    return (logits[0] > -math.inf).nonzero()[:, 0].tolist()


def test_examples() -> None:
    assert doctest.testmod(draw_module).failed == 0


# -- filters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (0.01, [1]),
        (0.5, [1]),
        (0.51, [1, 2]),
        (0.75, [1, 2]),
        (0.76, [0, 1, 2]),
        (0.875, [0, 1, 2]),
        (1.0, [0, 1, 2, 3]),
    ],
)
def test_the_nucleus_is_the_smallest_set_that_reaches_p(p: float, expected: list[int]) -> None:
    assert left(keep_top_p(log(0.125, 0.5, 0.25, 0.125), p)) == expected


@given(
    weights=st.lists(st.integers(1, 50), min_size=1, max_size=7).map(lambda w: [x / sum(w) for x in w]),
    p=st.floats(0.05, 0.95),
)
def test_no_smaller_set_of_tokens_reaches_p(weights: list[float], p: float) -> None:
    kept = left(keep_top_p(log(*weights), p))
    mass = sum(weights[i] for i in kept)
    assert mass >= p - 1e-9
    for smaller in itertools.combinations(weights, len(kept) - 1):
        assert sum(smaller) < p + 1e-9


def test_of_equal_tokens_the_first_are_kept() -> None:
    assert left(keep_top_p(log(*[1 / 8] * 8), 0.375)) == [0, 1, 2]
    assert left(keep_top_k(log(*[1 / 8] * 8), 3)) == [0, 1, 2]
    assert left(keep_top_k(log(0.25, 0.125, 0.25, 0.125, 0.25), 2)) == [0, 2]


@pytest.mark.parametrize(("k", "expected"), [(1, [3]), (2, [1, 3]), (4, [0, 1, 2, 3]), (9, [0, 1, 2, 3])])
def test_top_k(k: int, expected: list[int]) -> None:
    logits = log(0.1, 0.3, 0.2, 0.4)
    kept = keep_top_k(logits, k)
    assert left(kept) == expected
    assert torch.equal(kept[0, expected], logits[0, expected])


def test_temperature_is_a_power_of_the_probabilities() -> None:
    probabilities = torch.tensor([[0.1, 0.3, 0.6]], dtype=torch.float64)
    for temperature in (0.25, 0.5, 1.0, 3.0):
        powers = probabilities ** (1 / temperature)
        torch.testing.assert_close(tempered(probabilities.log(), temperature).softmax(-1), powers / powers.sum())
    torch.testing.assert_close(tempered(probabilities.log(), 1e9).softmax(-1), torch.full((1, 3), 1 / 3).double())
    for temperature in (1e-9, 1e-300):
        assert tempered(probabilities.log(), temperature).softmax(-1).tolist() == [[0.0, 0.0, 1.0]]


def test_filters_come_one_after_another() -> None:
    logits = log(0.4, 0.3, 0.2, 0.1)
    assert left(filtered(logits, SamplingConfig(temperature=0))) == [0]
    assert left(filtered(logits, SamplingConfig(temperature=1, top_k=2))) == [0, 1]
    # Of the two that top_k leaves, the first has 4/7 of the probability: enough for 0.55, though not before top_k.
    assert left(filtered(logits, SamplingConfig(temperature=1, top_p=0.55))) == [0, 1]
    assert left(filtered(logits, SamplingConfig(temperature=1, top_k=2, top_p=0.55))) == [0]
    assert left(filtered(logits, SamplingConfig(temperature=0.25, top_p=0.55))) == [0]
    assert left(filtered(logits, SamplingConfig(temperature=1))) == [0, 1, 2, 3]


def test_what_is_banned_stays_banned() -> None:
    logits = torch.tensor([[-math.inf, 1.0, -math.inf, 0.0]])
    for config in (
        SamplingConfig(),
        SamplingConfig(top_k=3),
        SamplingConfig(top_p=0.99),
        SamplingConfig(temperature=9),
    ):
        assert set(left(filtered(logits, config))) <= {1, 3}


# -- drawing -------------------------------------------------------------------------------------------------------


def test_tokens_are_drawn_as_often_as_they_are_probable() -> None:
    probabilities = [0.1, 0.0, 0.25, 0.05, 0.6]
    where = (torch.arange(2000) + 0.5) / 2000
    drawn = draw(log(*probabilities).expand(2000, 5), where)
    assert drawn.bincount(minlength=5).tolist() == [round(2000 * p) for p in probabilities]


def test_the_ends_of_the_interval_hit_tokens_that_may_be_drawn() -> None:
    logits = log(0.0, 0.3, 0.7, 0.0)
    assert draw(logits, torch.tensor([0.0])).tolist() == [1]
    assert draw(logits, torch.tensor([1 - 2.0**-32], dtype=torch.float64)).tolist() == [2]


def test_numbers_belong_to_a_seed_and_a_row_and_never_change() -> None:
    assert numbers(1, 0, 5).tolist() == numbers(1, 0, 9).tolist()[:5]
    assert len({numbers(seed, row, 1).item() for seed in range(20) for row in range(20)}) == 400
    many = numbers(3, 4, 20_000)
    assert 0 <= many.min() < many.max() < 1
    assert abs(many.mean() - 0.5) < 0.01
    # A text of an older version must come again.
    assert [round(x, 6) for x in numbers(7, 2, 3).tolist()] == [0.366548, 0.399892, 0.847998]


# -- generation ----------------------------------------------------------------------------------------------------


class Remembering(nn.Module):
    """Logits that depend on every token since `start`, in order; its state is all of these tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.most_seen = 0
        self.row_counts: set[int] = set()

    def start(self, rows: int) -> "Tokens":
        return Tokens(torch.empty(rows, 0, dtype=torch.long))

    def decode_step(self, prev: Tensor, state: "Tokens") -> tuple[Tensor, "Tokens"]:
        tokens = torch.cat([state.tokens, prev[:, None]], dim=1)
        self.most_seen = max(self.most_seen, tokens.size(1))
        self.row_counts.add(len(tokens))
        return torch.stack([self.logits(row) for row in tokens.tolist()]), Tokens(tokens)

    def logits(self, context: list[int]) -> Tensor:
        seed = sum((i + 1) * 31 ** (i % 5) * token for i, token in enumerate(context)) + len(context)
        return 2 * torch.randn(VOCAB, generator=torch.Generator().manual_seed(seed))


class Tokens:
    def __init__(self, tokens: Tensor) -> None:
        self.tokens = tokens

    pads_rows: ClassVar[bool] = False

    def reorder(self, rows: Tensor) -> "Tokens":
        return Tokens(self.tokens[rows])


def by_hand(logits_of: Any, prompt: list[int], row: int, config: SamplingConfig, max_context: int) -> list[int]:
    """One row by itself: look up the logits of its whole context for each token."""
    ids = prompt[-max_context:]
    begin, drawn = 0, 0
    for position in range(len(ids) + config.max_tokens - 1):
        if position - begin == max_context:
            begin = position - max_context // 2
        if position + 1 < len(ids):
            continue
        logits = logits_of(ids[begin : position + 1]).clone()
        logits[[0, 1, 2]] = -math.inf
        where = numbers(config.seed, row, config.max_tokens)[drawn]
        ids.append(int(draw(filtered(logits[None], config), where[None])))
        drawn += 1
    return ids[len(prompt[-max_context:]) :]


PROMPTS = [[5, 6, 7], [4], [9, 9, 3, 10, 8, 7, 6, 5, 4], [3, 8], [10, 4, 6]]
CONFIGS = [
    SamplingConfig(temperature=0, max_tokens=9),
    SamplingConfig(temperature=1, max_tokens=9, seed=5),
    SamplingConfig(temperature=1.5, top_k=4, top_p=0.9, max_tokens=1),
]


@pytest.mark.parametrize("max_context", [1, 2, 5, 50])
@pytest.mark.parametrize("config", CONFIGS, ids=["greedy", "sampled", "one token"])
def test_generation_is_one_step_after_another(config: SamplingConfig, max_context: int) -> None:
    model = Remembering()
    found = generate(model, PROMPTS, config, max_context=max_context)
    for row, prompt in enumerate(PROMPTS):
        assert found[row] == by_hand(model.logits, prompt, row, config, max_context), row
        assert len(found[row]) == config.max_tokens
    assert model.most_seen <= max_context
    assert all(count % ROW_MULTIPLE == 0 for count in model.row_counts)


def test_a_row_does_not_depend_on_the_others() -> None:
    config = CONFIGS[1]
    together = generate(Remembering(), PROMPTS, config, max_context=6)
    assert generate(Remembering(), PROMPTS[:1], config, max_context=6) == together[:1]
    others = [[7] * 12, [7], PROMPTS[2], [7, 7]]
    assert generate(Remembering(), others, config, max_context=6)[2] == together[2]


def test_equal_prompts_go_on_differently_and_the_same_again_with_the_same_seed() -> None:
    config = CONFIGS[1]
    first = generate(Remembering(), [[5, 6]] * 6, config, max_context=20)
    assert len({tuple(ids) for ids in first}) == 6
    assert generate(Remembering(), [[5, 6]] * 6, config, max_context=20) == first
    other = generate(Remembering(), [[5, 6]] * 6, SamplingConfig(temperature=1, max_tokens=9, seed=6), max_context=20)
    assert other != first


def test_specials_are_never_drawn_but_the_line_feed_is() -> None:
    config = SamplingConfig(temperature=5, max_tokens=60)
    drawn = {token for ids in generate(Remembering(), PROMPTS, config, max_context=8) for token in ids}
    assert drawn == set(range(3, VOCAB))


def test_tokens_come_as_they_are_drawn() -> None:
    config, found = CONFIGS[1], [[] for _ in PROMPTS]
    steps = list(stream(Remembering(), PROMPTS, config, max_context=50))
    assert [row for row, _ in steps[0]] == [1]  # the shortest prompt is through first
    assert len(steps) == 9 - 1 + config.max_tokens
    for step in steps:
        for row, token in step:
            found[row].append(token)
    assert found == generate(Remembering(), PROMPTS, config, max_context=50)


@pytest.mark.parametrize("position", ["rotary", "sinusoidal", "alibi"])
def test_a_real_model_with_its_caches(position: str) -> None:
    torch.manual_seed(2)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 2, "dropout": 0.5, "position": {"type": position}}
    model = parse(LanguageModelConfig, sizes).build(vocab_size=VOCAB, pad_id=0)
    config = SamplingConfig(temperature=1, max_tokens=12)
    assert model.training
    found = generate(model, PROMPTS, config, max_context=7)
    assert model.training
    model.eval()
    with torch.no_grad():
        for row, prompt in enumerate(PROMPTS):
            expected = by_hand(lambda ids: model.decode(torch.tensor([ids]))[0, -1], prompt, row, config, 7)
            assert found[row] == expected


def test_nothing_to_continue_and_a_model_that_diverged() -> None:
    assert generate(Remembering(), [], SamplingConfig(), max_context=5) == []
    model = Remembering()
    model.logits = lambda context: torch.full((VOCAB,), math.nan)  # type: ignore[method-assign]
    with raises_error(Error.DIVERGED):
        generate(model, PROMPTS, SamplingConfig(), max_context=5)


@pytest.mark.parametrize(
    "wrong", [{"temperature": -0.1}, {"top_k": 0}, {"top_p": 0}, {"top_p": 1.5}, {"max_tokens": 0}, {"seed": -1}]
)
def test_settings_without_meaning_are_refused(wrong: dict[str, Any]) -> None:
    with raises_error(Error.WRONG_SETTING):
        parse(SamplingConfig, wrong)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 0.999])
def test_a_nucleus_is_the_same_wherever_it_is_looked_for(p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sharp rows, flat ones, ties at the edge and rows with -inf: among the likeliest eight, or among all."""
    rng = torch.Generator().manual_seed(1)
    sharp, flat = 4 * torch.randn(40, 50, generator=rng), 0.01 * torch.randn(40, 50, generator=rng)
    tied = torch.randint(0, 4, (40, 50), generator=rng).float()
    some = torch.randn(40, 50, generator=rng).masked_fill(torch.rand(40, 50, generator=rng) < 0.8, -math.inf)
    some[:, 0] = 0.0
    rows = torch.cat([sharp, flat, tied, some, torch.zeros(2, 50)]).double()
    monkeypatch.setattr(draw_module, "NUCLEUS_CANDIDATES", 50)
    expected = keep_top_p(rows, p)
    monkeypatch.setattr(draw_module, "NUCLEUS_CANDIDATES", 8)
    assert torch.equal(keep_top_p(rows, p), expected)
    kept = (expected > -math.inf).sum(dim=1)
    assert bool((kept < 8).any())
    assert p < 0.5 or bool((kept > 8).any())
