"""Long work ends when nobody waits for it any more, and takes no more than what is allowed: every stage, by counts."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error

from dragoman.alignment import erasure
from dragoman.alignment.attention import attention_links
from dragoman.alignment.links import MAX_LINKS, AlignedPair, aligned_pair
from dragoman.alignment.term_placement import MAX_TERM_TOKENS, with_glossary
from dragoman.alignment.word_links import word_links
from dragoman.backends.cpu_search.fast_transformer import FastTransformer
from dragoman.cancellation import check, checked_by, turn
from dragoman.device import side_by_side
from dragoman.errors import Error
from dragoman.inference import scoring
from dragoman.inference.scoring import score, token_log_probs
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.pipeline.document import DocumentTranslator
from dragoman.pipeline.memory import TranslationMemory
from dragoman.pipeline.pipeline import Pipeline
from dragoman.pipeline.splitter import Splitter
from dragoman.quality.warnings import WarningKind
from dragoman.serve.scheduler import BatchScheduler, Cancelled, DeadlineExceeded, RequestHandle
from dragoman.serve.service import Service, _limited
from dragoman.text.glossary import Glossary

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
SENTENCE = "der hund sieht die frau"


class Ended(Exception):
    """The work was told to end."""


@pytest.fixture(scope="module")
def translator() -> SearchTranslator:
    return SearchTranslator.load(FIXTURE, device="cpu")


@pytest.fixture(scope="module")
def pipeline(translator: SearchTranslator) -> Pipeline:
    return Pipeline(translator, translator)


STAGES: dict[str, Callable[[Pipeline], Any]] = {
    "search": lambda pipeline: pipeline.own.translate([SENTENCE]),
    "scoring": lambda pipeline: token_log_probs(pipeline.own, [([5, 6], [7])]),
    "links": lambda pipeline: word_links(pipeline.own, [aligned_pair(SENTENCE, SENTENCE)]),
    "attention": lambda pipeline: attention_links(pipeline.own, aligned_pair(SENTENCE, SENTENCE)),
    "sentences": lambda pipeline: Splitter().pieces(SENTENCE),
    "joining": lambda pipeline: Splitter().joined("", [], {}),
    "memory": lambda pipeline: TranslationMemory([(SENTENCE, SENTENCE)]).like(SENTENCE),
    "terms": lambda pipeline: Glossary({"hund": "dog"}).find(SENTENCE),
    "warnings": lambda pipeline: pipeline.translations([SENTENCE]),
    "documents": lambda pipeline: DocumentTranslator(pipeline)._links([(SENTENCE, SENTENCE)]),
}


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_looks_whether_it_is_still_wanted(pipeline: Pipeline, stage: str) -> None:
    """A stage that never looks goes on after its client has gone: vllm-project/vllm#24584, ggml-org/llama.cpp#24496."""

    def end() -> None:
        raise Ended

    with checked_by(end), pytest.raises(Ended):
        STAGES[stage](pipeline)
    STAGES[stage](pipeline)  # and goes on where nobody minds


def test_threads_of_a_work_are_checked_with_it_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    seen: list[threading.Thread] = []
    with checked_by(lambda: seen.append(threading.current_thread())):
        side_by_side(lambda _: check(), range(4), torch.device("cpu"))
        count = len(seen)
        with ThreadPoolExecutor(1) as other:
            other.submit(check).result()
    check()
    assert (count, len(seen)) == (4, 4)
    assert threading.current_thread() not in seen


def test_a_request_ends_at_its_deadline_when_its_client_goes_and_when_the_server_stops() -> None:
    with BatchScheduler(threads=1) as scheduler:
        assert RequestHandle(scheduler).run(lambda handle: (check(), 7)[1]) == 7
        with pytest.raises(DeadlineExceeded):
            RequestHandle(scheduler, deadline=0.0).run(lambda handle: check())
        with pytest.raises(Cancelled):
            RequestHandle(scheduler).run(lambda handle: (handle.cancel(), check()))
        late = RequestHandle(scheduler)
    with pytest.raises(Cancelled):
        late.run(lambda handle: None)


@pytest.mark.parametrize("in_c", [True, False], ids=["in C", "by PyTorch"])
def test_scoring_ends_between_two_batches(
    in_c: bool, translator: SearchTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    if in_c:
        if not isinstance(translator.model, FastTransformer):
            pytest.skip("no C compiler")
        forced = FastTransformer.forced_log_probs
        monkeypatch.setattr(
            FastTransformer, "forced_log_probs", lambda own, pairs: (batches.append(len(pairs)), forced(own, pairs))[1]
        )
    else:
        monkeypatch.setattr(FastTransformer, "can_force", lambda own, pairs: False)
        padded = scoring._log_probs
        monkeypatch.setattr(
            scoring,
            "_log_probs",
            lambda own, pairs, filled: (batches.append(len(pairs)), padded(own, pairs, filled))[1],
        )
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)

    def end_after_two() -> None:
        if len(batches) == 2:
            raise Ended

    pairs = [([5, 6, 7], [7] * 30)] * 1000
    with checked_by(end_after_two), pytest.raises(Ended):
        token_log_probs(translator, pairs)
    assert len(batches) == 2
    assert sum(batches) < 500


def test_a_long_pair_is_scored_in_a_row_of_its_own_with_the_same_bits_in_any_company(
    translator: SearchTranslator,
) -> None:
    """8 equal rows of 2,000 tokens took 8 times the memory of one."""
    rng = np.random.default_rng(1)
    size = translator.tokenizers.tgt.vocab_size
    pairs = [
        (rng.integers(4, size, n).tolist(), rng.integers(4, size, m).tolist()) for n, m in ((3, 400), (9, 400), (4, 5))
    ]
    alone = [token_log_probs(translator, [pair])[0] for pair in pairs]
    assert token_log_probs(translator, pairs) == alone
    assert token_log_probs(translator, pairs[::-1]) == alone[::-1]
    assert [len(values) for values in alone] == [401, 401, 6]


def test_what_is_too_long_to_be_read_at_once_is_refused_and_has_no_links(
    translator: SearchTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A glossary's target of 100,000 letters made a mask of 10 GB."""
    long = "hund " * (translator.max_tgt_tokens + 1)
    with raises_error(Error.TOO_LONG, "are read at once"):
        score(translator, [(SENTENCE, long)])
    monkeypatch.setattr(scoring, "_log_probs", lambda *_: pytest.fail("read"))
    assert not word_links(translator, [AlignedPair("der", long, aligned_pair("der", "").src_words, ())])[0].any()
    huge = "x " * (1 + int(MAX_LINKS**0.5))
    [links] = word_links(translator, [aligned_pair(huge, huge)])
    assert links.size == 0


def test_links_of_very_many_words_take_one_reading(
    translator: SearchTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.4 KB of `1.000,` were read 400 times, 1,600 tokens each."""
    read: list[int] = []
    log_probs = erasure.token_log_probs

    def counted(own: SearchTranslator, pairs: Any) -> Any:
        read.append(sum(len(src) + len(tgt) for src, tgt in pairs))
        return log_probs(own, pairs)

    monkeypatch.setattr(erasure, "token_log_probs", counted)
    short, long = aligned_pair(SENTENCE, SENTENCE), aligned_pair("hund frau " * 60, "hund frau " * 60)
    alone = word_links(translator, [short])[0]
    read.clear()
    found = word_links(translator, [long, short, long])
    assert sum(read) <= 3 * erasure.MAX_TOKENS
    assert sum(read) < 1000
    assert np.array_equal(found[1], alone)
    assert found[0].any()


def test_a_document_with_a_sentence_of_very_many_words_keeps_its_codes_around_it(pipeline: Pipeline) -> None:
    count = 1 + int(MAX_LINKS**0.5)
    found = DocumentTranslator(pipeline)._links([("x " * count, "y " * count)])
    assert all(links.size == 0 for links in found.values())


def test_a_search_for_terms_has_a_bounded_beam(translator: SearchTranslator) -> None:
    terms = Glossary({"hund": "mann " * MAX_TERM_TOKENS * 2, "frau": "frau"})
    [[item]] = with_glossary(translator.with_decoding(n_best=1), terms).n_best([SENTENCE], ["das"])
    assert "frau" in item.text
    assert WarningKind.TERM_LEFT_OUT in {warning.kind for warning in item.warnings}


def test_a_prefix_is_no_longer_than_a_translation(translator: SearchTranslator) -> None:
    with raises_error(Error.TOO_LONG, "a translation has up to"):
        translator.n_best([SENTENCE], ["der hund " * 1000])


def test_alternatives_are_put_together_as_few_times_as_there_are(pipeline: Pipeline) -> None:
    """Each sentence's each alternative made a whole text: 25,000 texts of 5,000 letters."""
    lines = [f"{SENTENCE} {number}" for number in range(200)]
    text = "\n".join(lines)
    made: list[int] = []
    wide = pipeline.with_decoding(n_best=5)
    pieces = wide.splitter.pieces(text)
    found = {piece.text: [Translation(f"{piece.text} {n}", -float(n), -float(n)) for n in range(5)] for piece in pieces}
    counted = replace(wide, count=made.append)
    item = counted._translated(text, pieces, found)
    assert (len(item.items), len(made)) == (5, 5)
    assert [one.score for one in item.items] == sorted((one.score for one in item.items), reverse=True)


def test_translations_are_not_endless_times_as_long_as_their_texts(pipeline: Pipeline) -> None:
    """A glossary makes 900 letters of one: 2,500 lines of one letter were 2 MB, 128 such texts 300."""
    limited = replace(pipeline.with_terms(Glossary({"hund": "y" * 900})), count=_limited(20_000))
    assert limited.texts(["hund\n" * 20])[0].best.text.startswith("y" * 900 + "\n")
    with raises_error(Error.TOO_LONG, "20,000 characters"):
        limited.texts(["hund\n" * 20])


def test_whoever_waits_for_a_turn_to_explain_looks_too() -> None:
    with BatchScheduler(threads=1) as scheduler:
        service = Service(scheduler)
        handle = RequestHandle(scheduler)

        def explain(_: RequestHandle) -> None:
            with turn(service._reading):
                pytest.fail("had a turn")

        with turn(service._reading), ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(handle.run, explain)
            handle.cancel()
            with pytest.raises(Cancelled):
                waiting.result(timeout=300)
        with turn(service._reading):
            pass
