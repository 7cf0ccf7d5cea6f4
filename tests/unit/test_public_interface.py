"""The Python interface: one small door, with types, help, and errors that say what to do; threads may share it."""

import inspect
import typing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.unit.test_translator import LINES, MODEL, run  # noqa: F401 (a fixture)

import dragoman
from dragoman.quality.warnings import WarningKind


@pytest.fixture(scope="module")
def translator(run: Path) -> dragoman.Translator:  # noqa: F811
    return dragoman.load(run, device="cpu")


def test_every_name_is_there_and_has_help() -> None:
    for name in dragoman.__all__:
        assert getattr(dragoman, name) is not None
        if name != "__version__":
            assert len(inspect.getdoc(getattr(dragoman, name)) or "") > 20, name
    assert set(dragoman.__all__) == set(dir(dragoman))
    with pytest.raises(AttributeError, match="no attribute 'loda'"):
        dragoman.loda  # noqa: B018
    public = [name for name, _ in inspect.getmembers(dragoman.Translator, callable) if not name.startswith("_")]
    assert all(inspect.getdoc(getattr(dragoman.Translator, name)) for name in public)


def test_load_has_the_type_that_an_editor_needs() -> None:
    names = {name: getattr(dragoman, name) for name in dragoman.__all__}
    assert typing.get_type_hints(dragoman.load, names)["return"] is dragoman.Translator
    assert typing.get_type_hints(dragoman.load_classifier, names)["return"] is dragoman.Predictor
    assert typing.get_type_hints(dragoman.load_language_model, names)["return"] is dragoman.Generator


def test_options_of_one_call(translator: dragoman.Translator) -> None:
    plain = translator.translate(LINES)
    assert translator.translate(LINES, beam_size=1) == translator.with_decoding(beam_size=1).translate(LINES)
    assert translator.translate(LINES) == plain
    [kept] = translator.translate(["the {name} cat"], keep=True)
    assert "{name}" in kept
    [found] = translator.n_best(["the cat 17"], guard=True)
    assert WarningKind.NUMBERS_LOST in [one.kind for one in found[0].warnings]
    assert translator.n_best(LINES, n_best=3) == translator.with_decoding(n_best=3).n_best(LINES)


@pytest.mark.parametrize(
    ("wrong", "message"), [("one", "not one string"), (["a", 3], "sentence 2 is int 3"), ([None], "is NoneType")]
)
def test_what_is_no_list_of_strings_is_named(translator: dragoman.Translator, wrong: object, message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        translator.translate(wrong)  # type: ignore[arg-type]
    assert isinstance(caught.value, dragoman.DragomanError)


def test_alignments_and_attention_are_arrays(translator: dragoman.Translator) -> None:
    pairs = translator.align("the cat sees the dog .")
    words = len(translator.translate(["the cat sees the dog ."])[0].split())
    assert [target for _, target in sorted(pairs, key=lambda pair: pair[1])] == [*range(words)]
    maps = translator.attention("the cat", "a dog")
    cross = maps["decoder.0.cross"]
    assert isinstance(cross, np.ndarray)
    assert cross.shape[1:] == (len(maps["decoder.cross.queries"]), len(maps["decoder.cross.keys"]))
    assert np.allclose(cross.sum(axis=2), 1.0, atol=1e-5)


def test_it_shows_what_it_is(translator: dragoman.Translator) -> None:
    assert "parameters" in repr(translator)
    assert "en to de" in repr(translator) or "de to en" in repr(translator) or " to " in repr(translator)
    assert translator._repr_html_().startswith("<table>")


def test_threads_share_a_translator(translator: dragoman.Translator) -> None:
    lines = [*LINES, "we see a bird .", "the dog sees a dog and a cat ."]
    alone = [translator.n_best([line]) for line in lines]
    bound = translator.with_terms(dragoman.Glossary({"dog": "bird"}))
    with_terms = [bound.n_best([line]) for line in lines]
    with ThreadPoolExecutor(6) as pool:
        both = list(
            pool.map(lambda item: item[0].n_best([item[1]]), [(t, line) for line in lines for t in (translator, bound)])
        )
    assert both[::2] == alone
    assert both[1::2] == with_terms
