"""Guided alignment: files of links and what is wrong with them, links of words as links of pieces, the loss by hand."""

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error
from tests.unit.test_job import content, job
from tests.unit.test_job import recipe as recipe  # a fixture

from dragoman.alignment.attention import align
from dragoman.alignment.lexicon import WordAligner
from dragoman.alignment.links import aligned_pair
from dragoman.alignment.word_links import word_links
from dragoman.config import parse
from dragoman.data.batch import collate
from dragoman.errors import DragomanError, Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.tasks import recipes
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.corpus import Pair
from dragoman.training.guided_alignment import GuidedAlignment, PharaohGuide, TokenLinks

PAIRS = [Pair(1, "eins zwei", "one two"), Pair(2, "drei", "three"), Pair(3, "vier fünf", "four five")]
GOOD = "0-0 1-1\n\n1-0 0-1\n"


def links_in(path: Path) -> list[Any]:
    return [links for _, _, _, links in PharaohGuide(path=str(path)).linked(iter(PAIRS))]


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("text", [GOOD, GOOD.replace("\n", "\r\n"), GOOD.replace("1-1", "1-1 ")])
def test_links_of_a_file(tmp_path: Path, compress: Any, text: str) -> None:
    path = tmp_path / ("links" if compress is bytes else "links.gz")
    path.write_bytes(compress(text.encode()))
    assert links_in(path) == [[(0, 0), (1, 1)], [], [(1, 0), (0, 1)]]


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("0-0\n0-0\n", Error.UNEQUAL_COUNTS, "links:3"),
        (GOOD + "0-0\n", Error.UNEQUAL_COUNTS, "links:4"),
        ("0-0\n0-1\n0-0\n", Error.OUT_OF_RANGE, "links:2"),
        ("0-0 2-1\n0-0\n0-0\n", Error.OUT_OF_RANGE, "links:1"),
        ("1-1\n1-1\n1-1 2-2\n", Error.OUT_OF_RANGE, "links:2"),
        ("1-1\n\n1-1\n", Error.WRONG_SHAPE, "links"),
        ("0-0:0.9\n\n\n", Error.WRONG_SHAPE, "links:1"),
        ("0-0\n# Sentence pair (1) source length 2\n\n", Error.WRONG_SHAPE, "links:2"),
        ("0-0\n-1-0\n\n", Error.WRONG_SHAPE, "links:2"),
        ("0-0\n٠-٠\n\n", Error.WRONG_SHAPE, "links:2"),
        ("0-0\n" + "9" * 5000 + "-0\n\n", Error.WRONG_SHAPE, "links:2"),
    ],
    ids=["fewer", "more", "range", "range-src", "from-1-seen", "from-1", "scores", "giza", "minus", "digits", "huge"],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, text: str, code: Error, place: str) -> None:
    (tmp_path / "links").write_text(text, encoding="utf-8")
    with raises_error(code, place):
        links_in(tmp_path / "links")


def test_links_the_other_way_round_are_recognised(tmp_path: Path) -> None:
    (tmp_path / "links").write_text("0-0 1-2\n", encoding="utf-8")
    pairs = [Pair(1, "the three words", "drei wörter")]
    with raises_error(Error.OUT_OF_RANGE, "exchange") as caught:
        list(PharaohGuide(path=str(tmp_path / "links")).linked(iter(pairs)))
    assert caught.value.line == 1


def test_the_aligner_links_words_whose_order_differs() -> None:
    pairs = [(["das", "haus", "brennt"], ["the", "house", "burns"]), (["das", "buch"], ["the", "book"]),
             (["ein", "buch", "brennt"], ["burns", "a", "book"]), (["ein", "haus"], ["a", "house"])] * 5  # fmt: skip
    aligner = WordAligner(pairs)
    assert aligner.links(["ein", "buch", "brennt"], ["burns", "a", "book"]) == [(2, 0), (0, 1), (1, 2)]
    assert aligner.links(["EIN", "BUCH"], ["A", "BOOK"]) == [(0, 0), (1, 1)]
    assert aligner.links([], ["a"]) == aligner.links(["unbekannt"], ["unknown"]) == []


def test_the_loss_by_hand() -> None:
    """Token 0 comes from both source tokens, token 1 from the second, </s> from none."""
    batch = collate([([5, 6], [7, 8])], rows=[0])
    corpus: Any = type("Corpus", (), {"pairs": lambda self, rows: [(np.array([5, 6]), np.array([7, 8]))]})()
    links = TokenLinks(np.array([0, 3]), np.array([[0, 0], [1, 0], [1, 1]]))
    guide = GuidedAlignment(links, weight=0.5, head=1)
    guided = guide.guided(batch, corpus)
    assert guided.alignment is not None
    attention = torch.full((1, 2, 3, 3), 0.1)
    attention[0, 1] = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])  # <s>, token 0, token 1
    wanted = -0.5 * (0.5 * math.log(0.5) + 0.5 * math.log(0.25) + math.log(0.8))
    assert guide.loss(attention, guided.alignment).item() == pytest.approx(wanted, rel=1e-4)
    other = collate([([5, 9], [7, 8])], rows=[0])  # augmented: the links are of other tokens
    changed = guide.guided(other, corpus)
    assert changed.alignment is not None
    assert not changed.alignment.any()


GUIDED = ("guided_alignment.type=lexical", "model.alignment_head=[3,1]")


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (("guided_alignment.type=lexical",), "model.alignment_head"),
        (("guided_alignment.type=lexical", "model=null", "model.type=recurrent"), "model.type=transformer"),
        (("model.alignment_head=[4,0]",), "model.alignment_head"),
        (("model.alignment_head=[-1,0]",), "model.alignment_head"),
        (("model.alignment_head=[0,2]",), "model.alignment_head"),
        ((*GUIDED, "tokenizer.type=sentencepiece", "tokenizer.sampling=0.1"), "tokenizer.sampling"),
        ((*GUIDED, "guided_alignment.weight=0"), "weight"),
        (("guided_alignment.type=pharaoh", "model.alignment_head=[3,1]"), "path"),
    ],
)
def test_settings_that_do_not_fit_are_refused(recipe: dict[str, Any], overrides: tuple[str, ...], name: str) -> None:
    if "model=null" in overrides:
        recipe["model"], overrides = {}, (overrides[0], overrides[2])
    with pytest.raises(DragomanError, match=name):
        job(recipe, *overrides)


def test_a_run_learns_its_links_and_uses_them(recipe: dict[str, Any], tmp_path: Path) -> None:
    """Links across the diagonal, which nothing but the guide could teach so fast, come back from the head."""
    (tmp_path / "links").write_text("0-1 1-0\n0-0\n0-1 1-0\n", encoding="utf-8")
    guided = {"type": "pharaoh", "path": str(tmp_path / "links"), "weight": 5.0}
    sizes = {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_model": 16, "dropout": 0.0}
    recipe["guided_alignment"] = guided
    recipe["model"] |= {**sizes, "alignment_head": [0, 1]}
    recipe["training"] = {"max_steps": 60, "validate_every": 60, "schedule": {"type": "constant", "lr": 0.02}}
    result = recipes.run(parse(TranslationRecipe, recipe))
    translator = SearchTranslator.load(result.run_dir)
    assert translator.model.alignment_head == (0, 1)
    assert align(translator, "eins zwei", "one two") == [(0, 1), (1, 0)]
    [links] = word_links(translator, [aligned_pair("vier fünf", "four five")])
    assert links.argmax(axis=1).tolist() == [1, 0]
    assert links.max() <= 1.0
    stored = content(result.run_dir / "prepared")["links.npz"]
    job(recipe).prepare()
    assert content(result.run_dir / "prepared")["links.npz"] == stored
    (tmp_path / "links").write_text(GOOD, encoding="utf-8")
    with raises_error(Error.OTHER_CONTENT, "guided_alignment.path"):
        job(recipe).prepare()
