"""Translations that are drawn."""

import dataclasses
import math
from collections import Counter

import pytest
import torch
from tests.errors import raises_error
from tests.unit.test_search import EOS, UNK, TableModel, enumerated, random_model, sources

from dragoman.decoding.base import DecodingConfig, SampledConfig
from dragoman.decoding.penalties import NoPenalty
from dragoman.decoding.search import Hypothesis, search
from dragoman.errors import Error


def run(model: TableModel, sentences: list[int], config: DecodingConfig, longest: int = 4) -> list[list[Hypothesis]]:
    limits = torch.full((len(sentences),), longest)
    return search(model, *sources(*sentences), config, max_lengths=limits)


def drawn(samples: int, beam_size: int = 1, **settings: float) -> DecodingConfig:
    return DecodingConfig(
        beam_size=beam_size, sampling=SampledConfig(samples=samples, **settings), length_penalty=NoPenalty()
    )


def test_samples_come_as_often_as_they_are_probable() -> None:
    """Of 20,000 samples, against the probabilities of all that can be said; what is banned is left out of each step."""
    model = random_model(3, vocab=6)
    model.table[:, :, :3] = -30.0  # <pad>, <unk> and <s>, which may not be drawn, have no probability to give away
    model.table[:, :, EOS] += 1.0
    samples = 20_000
    found = run(model, [1], drawn(samples), longest=8)[0]
    counts = Counter(tuple(item.ids) for item in found if len(item.ids) < 8)
    for item in enumerated(model, 1, [4, 5], NoPenalty(), longest=4)[:10]:
        p = math.exp(item.log_prob)
        assert counts[tuple(item.ids)] == pytest.approx(samples * p, abs=4.5 * math.sqrt(samples * p * (1 - p)))
    for item in found[:200]:
        ids = [*item.ids, EOS] if len(item.ids) < 8 else item.ids
        assert item.log_prob == pytest.approx(model.log_prob(1, ids), abs=1e-4)


def test_samples_do_not_depend_on_what_is_drawn_beside_them() -> None:
    model = random_model(4, vocab=8, sentences=5)
    together = run(model, [0, 1, 2, 3, 4], drawn(6), longest=9)
    assert [run(model, [row], drawn(6), longest=9)[0] for row in range(5)] == together
    assert [run(model, [row], drawn(3), longest=9)[0] for row in range(5)] == [found[:3] for found in together]
    assert run(model, [4, 2], drawn(6), longest=9) == [together[4], together[2]]
    assert run(model, [0], drawn(6, seed=2), longest=9) != together[:1]


def test_temperature_0_and_top_1_are_greedy() -> None:
    model = random_model(6, vocab=9)
    greedy = run(model, [0, 1, 2], DecodingConfig(beam_size=1, length_penalty=NoPenalty()), longest=9)
    for config in (drawn(2, temperature=0), drawn(2, top_k=1), drawn(2, top_p=1e-9)):
        for found, expected in zip(run(model, [0, 1, 2], config, longest=9), greedy, strict=True):
            assert [item.ids for item in found] == [expected[0].ids] * 2
            assert found[0].log_prob == pytest.approx(expected[0].log_prob, abs=1e-5)


def test_rules_change_what_is_drawn_and_no_probability() -> None:
    model, config = random_model(8, vocab=7), dataclasses.replace(drawn(20), repetition_penalty=2.0)
    found = run(model, [1], config, longest=6)[0]
    assert any(len(set(item.ids)) < len(item.ids) for item in found)
    assert found != run(model, [1], drawn(20), longest=6)[0]
    for item in found:
        ids = item.ids if item.cut else [*item.ids, EOS]
        assert item.log_prob == pytest.approx(model.log_prob(1, ids), abs=1e-4)


def test_marks_are_not_drawn_and_no_more_than_the_longest_length() -> None:
    model = random_model(7, vocab=8)
    for found in run(model, [0, 1, 2], drawn(200, temperature=5.0), longest=7):
        assert all(len(item.ids) <= 7 and not {0, UNK, 2, EOS} & set(item.ids) for item in found)


def test_logits_that_are_no_numbers_are_refused() -> None:
    model = random_model(1, vocab=7)
    model.table[2] = float("nan")
    with raises_error(Error.DIVERGED):
        run(model, [0, 1, 2], drawn(2))


def test_settings() -> None:
    assert drawn(4).num_candidates == 4
    with pytest.raises(ValueError, match=r"more than sampling\.samples"):
        DecodingConfig(n_best=3, sampling=SampledConfig(samples=2))
