"""Search against a model whose every probability is in a table, so that the right answer can be enumerated."""

import dataclasses
import itertools
import math
from collections import Counter
from typing import Any, ClassVar

import pytest
import torch
from tests.errors import raises_error
from torch import Tensor

from dragoman.config import parse, to_dict
from dragoman.decoding import beam
from dragoman.decoding.base import (
    DecodingConfig,
    SampledConfig,
    best_tokens,
)
from dragoman.decoding.penalties import AveragePenalty, GnmtPenalty, LengthPenalty, NoPenalty
from dragoman.decoding.rows import ROWS_AT_ONCE, Slots, padded, top_columns
from dragoman.decoding.rules import Ban, BeginWith, Rule
from dragoman.decoding.search import Hypothesis, default_max_lengths, search, search_together
from dragoman.errors import Error
from dragoman.models.base import ROW_MULTIPLE, Seq2SeqModel
from dragoman.models.blocks import LearnedConfig
from dragoman.models.families import TransformerConfig

UNK, BOS, EOS = 1, 2, 3
PENALTIES: list[Any] = [
    NoPenalty(),
    AveragePenalty(alpha=0.5),
    AveragePenalty(),
    AveragePenalty(alpha=2.0),
    GnmtPenalty(),
    GnmtPenalty(alpha=1.5),
]


@dataclasses.dataclass(frozen=True)
class TableState:
    """Each row's sentence and prefix. Prefixes are the nodes of a tree: child t of node n is n * vocab + 1 + t."""

    sentence: Tensor
    node: Tensor | None

    pads_rows: ClassVar[bool] = False

    def reorder(self, rows: Tensor) -> "TableState":
        return TableState(self.sentence[rows], None if self.node is None else self.node[rows])


class TableModel(Seq2SeqModel):
    """Logits of every prefix of every sentence from `table` (sentences, nodes, vocab); the source's first id is the
    sentence. Prefixes too long for the table use the entry of another one."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table = table
        self.src_vocab_size, self.tgt_vocab_size = table.size(0), table.size(2)
        self.batches: list[list[int]] = []  # the sentences of the rows of each step
        self.modes: set[bool] = set()

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        return src[:, 0]

    def start(self, memory: Tensor) -> TableState:
        return TableState(memory, None)

    def decode_step(self, prev: Tensor, state: TableState) -> tuple[Tensor, TableState]:
        self.batches.append(state.sentence.tolist())
        self.modes.add(self.training)
        if state.node is None:
            assert (prev == BOS).all()
            node = torch.zeros_like(prev)
        else:
            node = (state.node * self.tgt_vocab_size + 1 + prev) % self.table.size(1)
        return self.table[state.sentence, node], TableState(state.sentence, node)

    def decode(self, tgt_in: Tensor, memory: Tensor) -> Tensor:
        state, steps = self.start(memory), []
        for prev in tgt_in.unbind(1):
            logits, state = self.decode_step(prev, state)
            steps.append(logits)
        return torch.stack(steps, dim=1)

    def log_prob(self, sentence: int, ids: list[int]) -> float:
        """Of all of `ids`, one after the other."""
        tgt_in = torch.tensor([[BOS, *ids[:-1]]])
        log_probs = self.decode(tgt_in, torch.tensor([sentence])).float().log_softmax(-1)[0]
        return sum(log_probs[i, token].item() for i, token in enumerate(ids))


def random_model(seed: int, *, sentences: int = 3, vocab: int = 5, nodes: int = 4000, scale: float = 1.5) -> TableModel:
    generator = torch.Generator().manual_seed(seed)
    return TableModel(torch.randn(sentences, nodes, vocab, generator=generator) * scale)


def sources(*sentences: int) -> tuple[Tensor, Tensor]:
    src = torch.tensor(sentences)[:, None]
    return src, torch.ones_like(src, dtype=torch.bool)


def run(model: TableModel, sentences: list[int], config: DecodingConfig, longest: int) -> list[list[Hypothesis]]:
    return search(model, *sources(*sentences), config, max_lengths=torch.full((len(sentences),), longest))


def enumerated(
    model: TableModel, sentence: int, words: list[int], penalty: LengthPenalty, longest: int
) -> list[Hypothesis]:
    """All finished hypotheses of at most `longest` tokens, best first."""
    found = []
    for length in range(longest):
        for ids in itertools.product(words, repeat=length):
            log_prob = model.log_prob(sentence, [*ids, EOS])
            found.append(Hypothesis(list(ids), log_prob / penalty.divisor(length + 1), log_prob))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)


def assert_same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [h.ids for h in found] == [h.ids for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-5)
    assert [h.log_prob for h in found] == pytest.approx([h.log_prob for h in expected], abs=1e-5)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize(("vocab", "words"), [(5, [1, 4]), (7, [4, 5, 6])])
@pytest.mark.parametrize("n_best", [1, 7, 100])
def test_a_beam_as_wide_as_the_space_finds_what_enumeration_finds(
    vocab: int, words: list[int], penalty: Any, n_best: int
) -> None:
    model = random_model(vocab, vocab=vocab)
    config = DecodingConfig(beam_size=110, n_best=n_best, length_penalty=penalty, ban_unk=UNK not in words)
    for sentence, found in enumerate(run(model, [0, 1, 2], config, longest=4)):
        expected = enumerated(model, sentence, words, penalty, longest=4)
        assert len({tuple(h.ids) for h in found}) == len(found) == min(n_best, len(expected))
        assert_same(found, expected[:n_best])


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_diversity_changes_what_is_kept_and_no_score(penalty: Any) -> None:
    model = random_model(2, vocab=7)
    for sentence, found in enumerate(
        run(model, [0, 1, 2], DecodingConfig(beam_size=110, n_best=9, length_penalty=penalty, diversity=2.0), longest=4)
    ):
        assert_same(found, enumerated(model, sentence, [4, 5, 6], penalty, longest=4)[:9])


def test_diversity_leaves_more_prefixes_alive() -> None:
    """What the first word of the n best is: with the greatest diversity every prefix keeps its best continuation."""
    kinds = []
    for diversity in (0.0, 1e6):
        model = random_model(4, vocab=9)
        model.table[:, :, EOS] -= 3.0
        config = DecodingConfig(beam_size=5, n_best=5, length_penalty=AveragePenalty(), diversity=diversity)
        kinds.append(
            [len({tuple(item.ids[:1]) for item in found}) for found in run(model, [0, 1, 2], config, longest=8)]
        )
    assert all(more >= less for less, more in zip(*kinds, strict=True))
    assert sum(kinds[1]) > sum(kinds[0])


def in_groups(model: TableModel, sentence: int, config: DecodingConfig, longest: int) -> list[Hypothesis]:
    """Diverse beam search in the plainest way, every hypothesis to its longest length."""
    width = config.beam_size // config.diversity_groups
    alive: list[list[tuple[list[int], float]]] = [[([], 0.0)] for _ in range(config.diversity_groups)]
    found: list[list[Hypothesis]] = [[] for _ in alive]
    for length in range(1, longest + 1):
        taken: Counter[int] = Counter()
        for group, prefixes in enumerate(alive):
            ranked = []
            for ids, before in prefixes:
                state = model.decode(torch.tensor([[BOS, *ids]]), torch.tensor([sentence]))[0, -1].log_softmax(-1)
                for token in range(EOS, model.tgt_vocab_size):
                    total = before + state[token].item()
                    ranked.append((total - config.diversity * taken[token], total, [*ids, token]))
            ranked.sort(key=lambda one: -one[0])
            for _, total, ids in ranked[:width]:
                if ids[-1] == EOS:
                    score = total / config.length_penalty.divisor(length)
                    found[group] = sorted(
                        [*found[group], Hypothesis(ids[:-1], score, total)], key=lambda one: -one.score
                    )
            alive[group] = [(ids, total) for _, total, ids in ranked[: 2 * width] if ids[-1] != EOS][:width]
            taken.update(ids[-1] for ids, _ in alive[group])
    places = range(max(map(len, found)))
    turns = (sorted((one[place] for one in found if place < len(one)), key=lambda one: -one.score) for place in places)
    each: dict[tuple[int, ...], Hypothesis] = {}
    for item in itertools.chain.from_iterable(turn for turn in turns):
        each.setdefault(tuple(item.ids), item)
    return list(each.values())[: config.n_best]


@pytest.mark.parametrize(("beam_size", "groups", "strength"), [(4, 2, 0.7), (6, 3, 2.0), (3, 3, 0.2), (6, 2, 50.0)])
def test_groups_of_a_beam_keep_away_from_each_other(beam_size: int, groups: int, strength: float) -> None:
    for seed in range(4):
        model = random_model(seed, sentences=9, vocab=9)
        model.table[:, :, EOS] += 1.0
        config = DecodingConfig(beam_size=beam_size, n_best=3, diversity=strength, diversity_groups=groups)
        found = run(model, list(range(9)), config, longest=6)
        for sentence, of_sentence in enumerate(found):
            assert_same(of_sentence, in_groups(model, sentence, config, longest=6))
        assert found[2:4] == run(model, [2, 3], config, longest=6)


def test_groups_differ_more_than_a_beam() -> None:
    model = random_model(1, sentences=9, vocab=30)
    model.table[:, :, EOS] += 4.0  # so that every group ends
    first = []
    for options in ({}, {"diversity": 5.0, "diversity_groups": 5}):
        found = run(model, list(range(9)), DecodingConfig(beam_size=5, n_best=5, min_length=2, **options), longest=8)
        first.append(sum(len({item.ids[0] for item in of_sentence}) for of_sentence in found))
    assert first[0] < first[1] == 45  # each group has its own first word, and its best is among the five


def test_the_rules_of_stopping_go_from_the_first_to_the_last() -> None:
    """Each rule stops no earlier than the one before it, and finds nothing worse; patience makes `full` later."""
    rules: list[dict[str, Any]] = [
        {"stopping": "first"}, {"stopping": "full"}, {"stopping": "full", "patience": 2.0}, {"stopping": "exact"},
    ]  # fmt: skip
    steps, scores = [], []
    for options in rules:
        counts, best = 0, 0.0
        for seed in range(6):
            model = random_model(seed, vocab=8)
            model.table[:, :, EOS] += 1.0
            found = run(model, [0, 1, 2], DecodingConfig(beam_size=3, **options), longest=20)
            counts, best = counts + len(model.batches), best + sum(items[0].score for items in found)
        steps.append(counts)
        scores.append(best)
    assert steps == sorted(set(steps))
    assert scores == sorted(scores)
    assert scores[0] < scores[-1]


def test_a_search_ends_with_its_first_finished_hypothesis() -> None:
    """The best continuation is the `</s>`: nobody waits for what might overtake it (OpenNMT-py, JoeyNMT)."""
    model = random_model(0, vocab=8)
    model.table[:, :, EOS] += 3.0
    for sentence, [found] in enumerate(
        run(model, [0, 1, 2], DecodingConfig(beam_size=4, stopping="first"), longest=20)
    ):
        model.batches.clear()
        run(model, [sentence], DecodingConfig(beam_size=4, stopping="first"), longest=20)
        assert len(model.batches) == len(found.ids) + 1


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_stopping_early_gives_up_nothing(penalty: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {"early": 0, "late": 0}
    for seed, (beam_size, n_best) in enumerate([(2, 1), (3, 1), (4, 2), (5, 5), (8, 3)] * 3):
        model = random_model(seed, vocab=8)
        model.table[:, :, EOS] += 1.0
        config = DecodingConfig(beam_size=beam_size, n_best=n_best, length_penalty=penalty, diversity=seed % 2 * 0.5)
        early = run(model, [0, 1, 2], config, longest=10)
        steps["early"] += len(model.batches)
        model.batches.clear()
        with monkeypatch.context() as patch:
            patch.setattr(beam, "cannot_be_overtaken", lambda scores, *_: torch.zeros(len(scores), dtype=torch.bool))
            assert run(model, [0, 1, 2], config, longest=10) == early
        steps["late"] += len(model.batches)
    assert steps["early"] <= steps["late"]
    if penalty == NoPenalty():
        assert steps["early"] < 0.8 * steps["late"]


def by_hand(model: TableModel, sentence: int, longest: int) -> list[int]:
    """Greedy search in the plainest way: the whole prefix again for every token."""
    ids: list[int] = []
    while len(ids) < longest and EOS not in ids:
        logits = model.decode(torch.tensor([[BOS, *ids]]), torch.tensor([sentence]))[0, -1]
        logits[[0, UNK, BOS]] = -math.inf
        ids.append(int(logits.argmax()))
    return ids


@pytest.mark.parametrize("seed", range(5))
def test_beam_1_is_greedy(seed: int) -> None:
    model = random_model(seed, sentences=12, vocab=8)
    config = DecodingConfig(beam_size=1)
    greedy = run(model, list(range(12)), config, longest=10)
    for sentence, [found] in enumerate(greedy):
        ids = by_hand(model, sentence, 10)
        assert found.ids == [token for token in ids if token != EOS]
        assert found.log_prob == pytest.approx(model.log_prob(sentence, ids), abs=1e-5)
        assert found.score == pytest.approx(found.log_prob / len(ids), abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_beam_search_itself_with_beam_1(seed: int) -> None:
    """Without a penalty it is greedy search; with one it may go on past the first </s>, to something better only."""
    model = random_model(seed, sentences=12, vocab=8)
    model.table[:, :, EOS] += 1.5  # so that every sentence ends
    src, src_mask = sources(*range(12))
    longest = torch.full((12,), 60)
    for penalty in (NoPenalty(), AveragePenalty()):
        config = DecodingConfig(beam_size=1, length_penalty=penalty)
        greedy = search(model, src, src_mask, config, max_lengths=longest)
        begun = beam.beam_search(model.start(model.encode(src, src_mask)), config, longest)
        [found] = search_together(model, [begun], src.device)
        if penalty == NoPenalty():
            assert found == greedy
        assert all(a.score >= b.score for [a], [b] in zip(found, greedy, strict=True))


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_a_sentence_is_found_the_same_alone_and_in_a_batch(beam_size: int) -> None:
    model = random_model(5, sentences=9, vocab=9)
    config = DecodingConfig(beam_size=beam_size, n_best=min(2, beam_size))
    src, src_mask = sources(*range(9))
    longest = torch.tensor([1, 9, 2, 12, 5, 7, 20, 3, 4])
    together = search(model, src, src_mask, config, max_lengths=longest)
    for i in range(9):
        [alone] = search(model, src[i : i + 1], src_mask[i : i + 1], config, max_lengths=longest[i : i + 1])
        assert alone == together[i]


@pytest.mark.parametrize("beam_size", [1, 3, 5])
def test_done_sentences_leave_and_rows_stay_grouped_by_sentence(beam_size: int) -> None:
    model = random_model(6, sentences=20, vocab=9)
    model.table[:, :, EOS] -= 100.0  # only the lengths end a sentence
    src, src_mask = sources(*range(20))
    search(model, src, src_mask, DecodingConfig(beam_size=beam_size), max_lengths=torch.arange(1, 21))
    assert len(model.batches) == 20
    for step, rows in enumerate(model.batches):
        groups = [rows[i : i + beam_size] for i in range(0, len(rows), beam_size)]
        assert all(len(set(group)) == 1 and len(group) == beam_size for group in groups)
        is_open = {sentence for sentence in range(20) if sentence >= step}
        assert is_open <= {group[0] for group in groups}
        assert len(groups) == padded(len(is_open), beam_size)
        assert len(rows) % ROW_MULTIPLE == 0


def test_slots() -> None:
    slots = Slots(num_sentences=4, rows_per_slot=4, padding_slots=1)  # ROW_MULTIPLE is two slots
    assert slots.close([False, True, False, True, True]) == [(1, 1), (3, 3)]
    assert slots.close([False, True, False, True, True]) == []
    assert slots.shrink() == [0, 2]
    assert slots.close([True, False]) == [(0, 0)]
    assert slots.shrink() == [0, 1]
    assert slots.close([True, True]) == [(1, 2)]
    assert slots.shrink() == []


def test_unfinished_hypotheses_count_only_where_none_is_finished() -> None:
    table = torch.full((2, 4000, 6), -30.0)
    table[:, :, 4], table[:, :, 5] = 2.0, 1.0
    table[1, 0, EOS] = 1.5  # sentence 1: the empty translation is second best at once, nothing else ever ends
    config = DecodingConfig(beam_size=2, n_best=2)
    unfinished, finished = run(TableModel(table), [0, 1], config, longest=3)
    assert unfinished[0].ids == [4, 4, 4]
    assert sorted(unfinished[1].ids) == [4, 4, 5]
    assert unfinished[0].score == pytest.approx(unfinished[0].log_prob / 3)
    assert [h.ids for h in finished] == [[]]


def test_lengths() -> None:
    model = random_model(8, vocab=9)
    model.table[:, :, EOS] += 4.0
    for beam_size in (1, 4):
        for found in run(model, [0, 1, 2], DecodingConfig(beam_size=beam_size, min_length=5), longest=9):
            assert 5 <= len(found[0].ids) <= 8
    config = DecodingConfig(max_length_ratio=1.5, max_length_extra=2)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert default_max_lengths(mask, config).tolist() == [6, 3]
    none = DecodingConfig(max_length_ratio=0.0, max_length_extra=0)
    assert default_max_lengths(mask, none).tolist() == [1, 1]
    assert default_max_lengths(mask, dataclasses.replace(none, min_length=5)).tolist() == [6, 6]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_marks_are_never_produced(beam_size: int) -> None:
    model = random_model(9, vocab=8)
    model.table[:, :, [0, UNK, BOS]] += 5.0
    found = run(model, [0, 1, 2], DecodingConfig(beam_size=beam_size, n_best=beam_size), longest=6)
    assert all(token > EOS for hypotheses in found for h in hypotheses for token in h.ids)
    with_unk = run(model, [0, 1, 2], DecodingConfig(beam_size=beam_size, ban_unk=False), longest=6)
    assert any(UNK in hypotheses[0].ids for hypotheses in with_unk)


def test_among_equals_the_better_prefix_then_the_smaller_id() -> None:
    model = TableModel(torch.zeros(1, 4000, 7))
    [[greedy]] = run(model, [0], DecodingConfig(beam_size=1, min_length=2), longest=3)
    assert greedy.ids == [4, 4]
    config = DecodingConfig(beam_size=4, n_best=4, length_penalty=NoPenalty(), min_length=1)
    [found] = run(model, [0], config, longest=3)
    assert [h.ids for h in found] == [[4], [4, 4]]  # "4 </s>", 44, 45, 46 are before "5 </s>"
    log_probs, ids = best_tokens(torch.tensor([[0.0, 7.0, 5.0, 7.0, 4.0, 7.0]]), 3, banned=[1])
    assert ids.tolist() == [[3, 5, 2]]
    assert log_probs.isfinite().all()


def test_half_precision_logits_are_normalised_in_float32() -> None:
    model = random_model(10, vocab=8)
    half = TableModel(model.table.bfloat16())
    widened = TableModel(half.table.float())
    for beam_size in (1, 4):
        config = DecodingConfig(beam_size=beam_size)
        assert run(half, [0, 1, 2], config, longest=8) == run(widened, [0, 1, 2], config, longest=8)


def test_dropout_is_off_and_the_mode_comes_back() -> None:
    model = random_model(11)
    assert model.training
    run(model, [0], DecodingConfig(), longest=3)
    assert model.modes == {False}
    assert model.training
    model.eval()
    run(model, [0], DecodingConfig(), longest=3)
    assert not model.training


def test_no_sentences() -> None:
    empty = torch.zeros(0, 3, dtype=torch.long)
    assert search(random_model(12), empty, empty.bool(), DecodingConfig()) == []


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_logits_that_are_no_numbers_are_refused(beam_size: int, value: float) -> None:
    model = random_model(13, vocab=8)
    model.table[1] = value
    with raises_error(Error.DIVERGED):
        run(model, [0, 1, 2], DecodingConfig(beam_size=beam_size), longest=5)


def test_settings() -> None:
    assert parse(DecodingConfig, {}) == DecodingConfig()
    config = parse(DecodingConfig, {"beam_size": 4, "length_penalty": {"type": "gnmt", "alpha": 1.0}})
    assert config.length_penalty == GnmtPenalty(alpha=1.0)
    assert parse(DecodingConfig, to_dict(config)) == config
    with raises_error(Error.WRONG_SETTING):
        parse(DecodingConfig, {"n_best": 6})
    for unused, name in (
        ({"coverage_penalty": 0.2, "sampling": {"samples": 5}}, "coverage_penalty"),
        ({"diversity": 0.5, "sampling": {"samples": 5}}, "diversity"),
        ({"diversity": 0.5, "beam_size": 1}, "beam_size"),
        ({"diversity": 0.5, "beam_size": 5, "diversity_groups": 2}, "no multiple"),
        ({"diversity_groups": 5}, "diversity_groups"),
        ({"patience": 2.0}, "patience"),
    ):
        with raises_error(Error.WRONG_SETTING, name):
            parse(DecodingConfig, unused)
    with raises_error(Error.WRONG_SETTING):
        parse(DecodingConfig, {"length_penalty": {"type": "average", "alpha": -1}})
    with raises_error(Error.WRONG_SETTING):
        parse(DecodingConfig, {"length_penalty": {"type": "averag"}})


def test_penalties_never_fall_with_length() -> None:
    assert GnmtPenalty(alpha=0.6).divisor(13) == pytest.approx(3.0**0.6)
    for penalty in PENALTIES:
        values = [penalty.divisor(length) for length in range(1, 50)]
        assert all(0 < a <= b for a, b in itertools.pairwise(values))


def test_no_search_goes_beyond_the_positions_that_a_model_has() -> None:
    settings = {"d_model": 8, "num_heads": 2, "d_ff": 8, "num_encoder_layers": 1, "num_decoder_layers": 1}
    config = TransformerConfig(**settings, position=LearnedConfig(max_len=12))
    model = config.build(src_vocab_size=9, tgt_vocab_size=9, shared_vocab=True, pad_id=0)
    src = torch.full((2, 6), 5)
    for beam_size in (1, 3):
        endless = DecodingConfig(beam_size=beam_size, min_length=30)
        for terms in (None, [((5,),), ((6, 7),)]):
            found = search(model, src, src > 0, endless, terms=terms)
            assert [len(hypotheses[0].ids) for hypotheses in found] == [12, 12]


def contains(ids: list[int], sequence: tuple[int, ...]) -> bool:
    return any(tuple(ids[i : i + len(sequence)]) == sequence for i in range(len(ids)))


def repeats(ids: list[int], size: int) -> bool:
    ngrams = [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]
    return len(set(ngrams)) < len(ngrams)


ALLOWED: dict[str, tuple[dict[str, Any], list[Rule], Any]] = {
    "no token twice": ({"no_repeat_ngram": 1}, [], lambda ids: not repeats(ids, 1)),
    "no bigram twice": ({"no_repeat_ngram": 2}, [], lambda ids: not repeats(ids, 2)),
    "no trigram twice": ({"no_repeat_ngram": 3}, [], lambda ids: not repeats(ids, 3)),
    "a token is banned": ({}, [Ban(((5,),))], lambda ids: 5 not in ids),
    "a token is banned in this sentence": (
        {},
        [Ban(((5,), (6, 4)), sentence=0)],
        lambda ids: not {5}.intersection(ids) and not contains(ids, (6, 4)),
    ),
    "tokens are banned in another sentence": ({}, [Ban(((5,), (6, 4)), sentence=1)], lambda ids: True),
    "sequences are banned": (
        {},
        [Ban(((5, 6), (4, 4, 5)))],
        lambda ids: not contains(ids, (5, 6)) and not contains(ids, (4, 4, 5)),
    ),
    "it begins with two tokens": ({}, [BeginWith({0: [6, 4]})], lambda ids: ids[:2] == [6, 4]),
    "all at once": (
        {"no_repeat_ngram": 2, "min_length": 2},
        [BeginWith({0: [5]}), Ban(((6, 4),))],
        lambda ids: ids[:1] == [5] and not repeats(ids, 2) and not contains(ids, (6, 4)) and len(ids) >= 2,
    ),
}


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("name", ALLOWED)
def test_rules_leave_the_best_of_what_they_allow(name: str, penalty: LengthPenalty) -> None:
    """A beam as wide as the space against enumeration."""
    model = random_model(5, vocab=7)
    settings, rules, allowed = ALLOWED[name]
    every = [
        hypothesis for hypothesis in enumerated(model, 0, [4, 5, 6], penalty, longest=5) if allowed(hypothesis.ids)
    ]
    config = parse(DecodingConfig, {"beam_size": 100, "n_best": 20, "length_penalty": to_dict(penalty), **settings})
    (found,) = search(model, *sources(0), config, max_lengths=torch.tensor([5]), rules=rules)
    assert_same(found, every[:20])
    greedy = parse(DecodingConfig, {"beam_size": 1, "length_penalty": to_dict(penalty), **settings})
    ((single,),) = search(model, *sources(0), greedy, max_lengths=torch.tensor([5]), rules=rules)
    assert allowed(single.ids)


def test_what_was_written_before_is_less_probable() -> None:
    model, penalty = random_model(6, vocab=7), AveragePenalty()
    every = []
    for hypothesis in enumerated(model, 0, [4, 5, 6], penalty, longest=4):
        tokens = [*hypothesis.ids, EOS]
        steps = [model.log_prob(0, tokens[: i + 1]) - model.log_prob(0, tokens[:i]) for i in range(len(tokens))]
        log_prob = sum(
            step * (1.5 if token in tokens[:i] else 1)
            for i, (step, token) in enumerate(zip(steps, tokens, strict=True))
        )
        every.append(Hypothesis(hypothesis.ids, log_prob / len(tokens), log_prob))
    every.sort(key=lambda hypothesis: -hypothesis.score)
    config = DecodingConfig(beam_size=60, n_best=15, repetition_penalty=1.5)
    (found,) = search(model, *sources(0), config, max_lengths=torch.tensor([4]))
    assert_same(found, every[:15])


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_prefix_is_that_of_its_own_sentence_in_any_batch(beam_size: int) -> None:
    model, config = random_model(7, vocab=7), DecodingConfig(beam_size=beam_size)
    rules = [BeginWith({0: [6, 6, 4], 2: [5]})]
    lengths = torch.tensor([6, 6, 6])
    together = search(model, *sources(0, 1, 2), config, max_lengths=lengths, rules=rules)
    assert together[0][0].ids[:3] == [6, 6, 4]
    assert together[2][0].ids[:1] == [5]
    assert_same(together[1], search(model, *sources(1), config, max_lengths=lengths[:1])[0])
    assert_same(together[0], search(model, *sources(0), config, max_lengths=lengths[:1], rules=rules)[0])


@pytest.mark.parametrize("settings", [{"beam_size": 1}, {"beam_size": 3}, {"sampling": {"samples": 4}}], ids=str)
def test_a_prefix_may_repeat_itself_and_what_follows_it_may_not(settings: dict[str, Any]) -> None:
    model = random_model(7, vocab=7)
    config = parse(DecodingConfig, {"no_repeat_ngram": 2, "length_penalty": {"type": "none"}, **settings})
    prefix = [6, 6, 6, 4, 6]
    model.table[:, :, 4] += 3.0  # what would come next
    (found,) = search(model, *sources(0), config, max_lengths=torch.tensor([9]), rules=[BeginWith({0: prefix})])
    for item in found:
        assert item.ids[:5] == prefix
        assert item.ids[5:6] not in ([6], [4])  # "6 6" and "6 4" stand there
        assert not repeats(item.ids[4:], 2)
        ended = [*item.ids, EOS] if len(item.ids) < 9 else item.ids
        assert item.log_prob == pytest.approx(model.log_prob(0, ended), abs=1e-4)


@pytest.mark.parametrize(("columns", "k"), [(8000, 8), (1201, 3), (64, 5), (130, 1), (4096, 32)])
def test_the_largest_by_way_of_maxima_are_the_largest(columns: int, k: int) -> None:
    values = torch.randn(9, columns, generator=torch.Generator().manual_seed(columns))
    values[2], values[3, ::3] = -math.inf, -math.inf
    found, places = top_columns(values, k)
    expected = values.topk(k, dim=1).values
    assert torch.equal(found.sort(dim=1, descending=True).values, expected)
    assert torch.equal(values.gather(1, places), found)
    assert all(len(set(row)) == k for row in places.tolist())


def test_with_diversity_the_best_of_those_that_were_cut_come_first() -> None:
    model = random_model(11, vocab=7)
    found = {
        n: run(model, [0, 1, 2], DecodingConfig(beam_size=4, n_best=n, diversity=2.0, min_length=3), longest=3)
        for n in (4, 2)
    }
    for wide, narrow in zip(found[4], found[2], strict=True):
        assert all(item.cut for item in wide)
        assert [item.score for item in wide] == sorted((item.score for item in wide), reverse=True)
        assert narrow == wide[:2]


@pytest.mark.parametrize(
    "config",
    [
        DecodingConfig(beam_size=1, no_repeat_ngram=1, min_length=5),
        DecodingConfig(beam_size=3, no_repeat_ngram=1, min_length=5),
        DecodingConfig(sampling=SampledConfig(samples=3), no_repeat_ngram=1, min_length=5),
    ],
    ids=["greedy", "beam", "drawn"],
)
def test_rules_that_leave_no_token_are_told_from_a_broken_model(config: DecodingConfig) -> None:
    with raises_error(Error.SEARCH_FAILED):
        run(random_model(3, vocab=7), [0], config, longest=9)


def test_the_largest_of_a_row_with_hardly_any_are_columns_that_there_are() -> None:
    values = torch.full((3, 1201), -math.inf)
    values[0, 1200] = values[1, 0] = values[2, 1199] = 1.0
    found, places = top_columns(values, 3)
    assert int(places.max()) < 1201
    assert places.gather(1, found.argmax(dim=1, keepdim=True)).flatten().tolist() == [1200, 0, 1199]


def test_rows_looked_at_in_parts_are_those_looked_at_together() -> None:
    logits = torch.randn(3 * ROWS_AT_ONCE + 5, 300, generator=torch.Generator().manual_seed(4))
    log_probs, ids = best_tokens(logits, 4, banned=[0, 7])
    for row in (0, ROWS_AT_ONCE, 3 * ROWS_AT_ONCE + 4):
        alone = best_tokens(logits[row : row + 1], 4, banned=[0, 7])
        assert torch.equal(alone[0][0], log_probs[row])
        assert torch.equal(alone[1][0], ids[row])
    assert not torch.isin(ids, torch.tensor([0, 7])).any()
