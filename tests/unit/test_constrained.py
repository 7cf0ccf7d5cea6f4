"""Searches that must write given terms, against enumeration."""

import random
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from tests.unit.test_search import EOS, PENALTIES, UNK, TableModel, contains, enumerated, random_model, sources

from dragoman.decoding import constrained
from dragoman.decoding.base import DecodingConfig
from dragoman.decoding.constrained import Candidate, ConstraintState, Terms, allocated
from dragoman.decoding.penalties import NoPenalty
from dragoman.decoding.rules import Ban
from dragoman.decoding.search import Hypothesis, search
from dragoman.errors import Error


def run(
    model: TableModel, terms: list[Terms], config: DecodingConfig, longest: int, **options: Any
) -> list[list[Hypothesis]]:
    """`longest` with the terms."""
    limits = torch.tensor([longest - sum(map(len, of_sentence)) for of_sentence in terms])
    return search(model, *sources(*range(len(terms))), config, max_lengths=limits, terms=terms, **options)


def holds(ids: list[int], terms: Terms) -> bool:
    """Whether the terms stand in `ids` at places of their own: tried in every order."""
    if not terms:
        return True
    for number, term in enumerate(terms):
        for start in range(len(ids) - len(term) + 1):
            if tuple(ids[start : start + len(term)]) == term:
                left = [*ids[:start], -1, *ids[start + len(term) :]]
                if holds(left, terms[:number] + terms[number + 1 :]):
                    return True
    return False


TERMS: list[Terms] = [((4,),), ((4, 5),), ((5,), (6,)), ((6, 6),), ((4,), (4,)), ((5, 4), (6,)), ((4, 4, 5),)]


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("n_best", [1, 5])
def test_a_wide_beam_finds_the_best_of_all_that_hold_the_terms(penalty: Any, n_best: int) -> None:
    model = random_model(11, vocab=7, sentences=len(TERMS))
    config = DecodingConfig(beam_size=600, n_best=n_best, length_penalty=penalty)
    for sentence, found in enumerate(run(model, TERMS, config, longest=5)):
        every = enumerated(model, sentence, [4, 5, 6], penalty, longest=5)
        expected = [item for item in every if holds(item.ids, TERMS[sentence])][:n_best]
        assert [item.ids for item in found] == [item.ids for item in expected]
        assert [item.score for item in found] == pytest.approx([item.score for item in expected], abs=1e-5)


def test_none_ends_before_the_least_length() -> None:
    model = random_model(11, vocab=7, sentences=len(TERMS))
    config = DecodingConfig(beam_size=600, n_best=5, length_penalty=NoPenalty(), min_length=3)
    for sentence, found in enumerate(run(model, TERMS, config, longest=5)):
        every = enumerated(model, sentence, [4, 5, 6], NoPenalty(), longest=5)
        expected = [item.ids for item in every if len(item.ids) >= 3 and holds(item.ids, TERMS[sentence])]
        assert [item.ids for item in found] == expected[:5]


def test_an_unknown_word_is_written_where_a_term_holds_it_and_nowhere_else() -> None:
    model = random_model(12, vocab=6, sentences=2)
    terms: list[Terms] = [((UNK,),), ((4, UNK),)]
    config = DecodingConfig(beam_size=600, n_best=5, length_penalty=NoPenalty())
    for sentence, found in enumerate(run(model, terms, config, longest=4)):
        every = enumerated(model, sentence, [UNK, 4, 5], NoPenalty(), longest=4)
        expected = [item.ids for item in every if item.ids.count(UNK) == 1 and holds(item.ids, terms[sentence])]
        assert [item.ids for item in found] == expected[:5]


def test_a_hypothesis_ends_where_that_is_one_of_the_best_continuations() -> None:
    """Beam 1: after the term, to go on is better than to end, though no translation that goes on is."""
    probabilities = torch.full((1, 4000, 6), 0.02)
    probabilities[0, 0, 4] = 0.9
    probabilities[0, 5, [EOS, 5]] = torch.tensor([0.4, 0.52])  # after 4
    probabilities[0, 36, [EOS, 4]] = torch.tensor([0.6, 0.34])  # after 4 5
    model, config = TableModel(probabilities.log()), DecodingConfig(beam_size=1, length_penalty=NoPenalty())
    assert run(model, [((4,),)], config, longest=6)[0][0].ids == [4, 5]
    two = DecodingConfig(beam_size=2, length_penalty=NoPenalty())
    assert run(model, [((4,),)], two, longest=6)[0][0].ids == [4]


@pytest.mark.system
@pytest.mark.parametrize(
    "beam_size", [pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow), 5]
)
def test_every_translation_holds_its_terms_however_improbable(beam_size: int) -> None:
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        model = random_model(seed, vocab=12, sentences=6, scale=3.0)
        model.table[:, :, 4:8] -= 20.0  # nothing that the model would say
        terms: list[Terms] = [
            tuple(
                tuple(
                    torch.randint(
                        4, 8, (int(torch.randint(1, 4, (), generator=generator)),), generator=generator
                    ).tolist()
                )
                for _ in range(1 + seed % 3)
            )
            for _ in range(6)
        ]
        for of_sentence, found in zip(terms, run(model, terms, DecodingConfig(beam_size=beam_size), 14), strict=True):
            assert holds(found[0].ids, of_sentence)
            assert found[0].ids.count(EOS) == 0


def test_a_sentence_is_found_the_same_alone_and_beside_others() -> None:
    model = random_model(5, vocab=9, sentences=4)
    terms: list[Terms] = [((4,),), ((5, 6, 7), (8,)), ((8, 8),), ((4, 5), (6,), (7,))]
    together = run(model, terms, DecodingConfig(beam_size=3), 12)
    limits = torch.tensor([12 - sum(map(len, of_sentence)) for of_sentence in terms])
    for sentence, of_sentence in enumerate(terms):
        alone = search(
            model,
            *sources(sentence),
            DecodingConfig(beam_size=3),
            max_lengths=limits[sentence : sentence + 1],
            terms=[of_sentence],
        )
        assert alone == [together[sentence]]


def test_stopping_early_gives_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(6):
        model = random_model(seed, vocab=8)
        model.table[:, :, EOS] += 1.0
        terms: list[Terms] = [((4, 5),), ((6,),), ((7,), (4,))]
        early = run(model, terms, DecodingConfig(beam_size=4, n_best=2), 10)
        with monkeypatch.context() as patch:
            patch.setattr(constrained.ConstrainedSearch, "is_done", lambda self, length: length >= self.limit)
            late = run(model, terms, DecodingConfig(beam_size=4, n_best=2), 10)
        assert early == late


def test_a_term_that_is_broken_off_begins_again_where_it_can() -> None:
    at = ConstraintState(((4, 4, 5),))
    for token, written in zip([4, 4, 4, 5], [1, 2, 2, 3], strict=True):
        at = at.after(token)
        assert at.written == written
    assert at.complete
    assert ConstraintState(((4, 5), (4, 6))).after(4).after(6).complete is False
    assert ConstraintState(((4, 5), (4, 6))).after(4).after(6).written == 2  # the other term that began so


@pytest.mark.parametrize(
    ("terms", "ids"),
    [
        (((5,), (5, 6)), (9, 5, 6, 7, 5, 8)),  # the first 5 belongs to the longer term
        (((5, 6), (5,)), (9, 5, 7, 5, 6, 8)),  # a longer term that was broken off leaves a shorter one
        (((5,), (5,)), (5, 5)),
        (((5, 6), (6, 7)), (5, 6, 6, 7)),
    ],
)
def test_terms_that_share_tokens_are_told_apart(terms: Terms, ids: tuple[int, ...]) -> None:
    at = ConstraintState(terms)
    for token in ids:
        at = at.after(token)
    assert at.complete
    assert holds(list(ids), terms)


@pytest.mark.parametrize("seed", range(5))
def test_a_hypothesis_read_token_by_token_is_that_read_at_once(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(300):
        terms = tuple(tuple(draw.choices([4, 5, 6], k=draw.randint(1, 4))) for _ in range(draw.randint(1, 4)))
        at = ConstraintState(terms)
        for token in draw.choices([4, 5, 6, 7], [4, 4, 4, 1], k=draw.randint(1, 14)):
            at = at.after(token)
            assert at == constrained._read(terms, at.ids)


def test_the_beam_is_divided_among_the_banks() -> None:
    found = [Candidate(-float(i), i, 7, bank) for i, bank in enumerate([0, 0, 0, 0, 1, 0, 2, 2])]
    assert [item.place for item in allocated(found, 6, 2)] == [0, 1, 2, 4, 6, 7]  # bank 1 could not fill its two
    assert [item.place for item in allocated(found, 2, 2)] == [6, 7]
    assert allocated(found, 100, 2) == found


def test_a_rule_that_forbids_a_term_is_named() -> None:
    with raises_error(Error.SEARCH_FAILED):
        run(random_model(1, vocab=7), [((4,),)] * 3, DecodingConfig(), 8, rules=[Ban(((4,),))])


def test_logits_that_are_no_numbers_are_refused() -> None:
    model = random_model(1, vocab=7)
    model.table[:] = float("nan")
    with raises_error(Error.DIVERGED, "NaN"):
        run(model, [((4,),)] * 3, DecodingConfig(), 8)


def test_terms_are_not_drawn() -> None:
    config = DecodingConfig(sampling={"samples": 2})  # type: ignore[arg-type]
    with raises_error(Error.CONFLICT):
        run(random_model(1, vocab=7), [((4,),)] * 3, config, 8)


def test_terms_and_diversity_do_not_go_together() -> None:
    with raises_error(Error.CONFLICT):
        run(random_model(1, vocab=7), [((4,),)] * 3, DecodingConfig(diversity=0.5), 8)


def test_rules_hold_beside_terms() -> None:
    config = DecodingConfig(beam_size=5, no_repeat_ngram=1)
    for found in run(random_model(2, vocab=9), [((4, 5),), ((6,),), ((7, 8),)], config, 9):
        assert len(set(found[0].ids)) == len(found[0].ids)
    assert contains([4, 5], (4, 5))
