"""Training and evaluation from Python: corpora of objects, callbacks, stops and resumes, and nothing else disturbed."""

import hashlib
import json
import logging
import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from tests.errors import raises_error

import dragoman
from dragoman.errors import Error
from dragoman.learn.chapter import Cell, Chapter
from dragoman.learn.chapter import run as run_chapter
from dragoman.tasks import recipes
from dragoman.text.sources.records import LABELLED, PAIR, TEXT, Corpus, records

GERMAN, ENGLISH = ["eins", "zwei", "drei", "vier"], ["one", "two", "three", "four"]
NUMBERS = [[first, second] for first in range(4) for second in range(4)]
PAIRS = [tuple(" ".join(words[n] for n in row) for words in (GERMAN, ENGLISH)) for row in NUMBERS]
RECIPE: dict[str, Any] = {
    "device": "cpu",
    "corpus": {"src_lang": "de", "tgt_lang": "en"},
    "tokenizer": {"type": "whitespace"},
    "model": {"type": "transformer", "d_model": 8, "num_heads": 2, "d_ff": 8, "num_encoder_layers": 1,
              "num_decoder_layers": 1},
    "training": {"max_steps": 4, "validate_every": 2, "loggers": [],
                 "schedule": {"type": "linear", "lr": 0.01, "warmup_steps": 1}},
}  # fmt: skip


def trained(run: Path, callbacks: Any = (), corpus: Any = None, overrides: Any = None) -> dragoman.Training:
    given = {"train": PAIRS, "validation": PAIRS[:4]} if corpus is None else corpus
    return dragoman.train(RECIPE, overrides, corpus=given, run_dir=run, callbacks=callbacks)


def digests(run: Path) -> dict[str, str]:
    """SHA-256 of each file of the last checkpoint."""
    files = sorted((run / "checkpoints" / "step-00000004").iterdir())
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dragoman.Training:
    """A training that never stopped."""
    return trained(tmp_path_factory.mktemp("python") / "whole")


class Recorder(dragoman.Callback):
    def __init__(self) -> None:
        self.seen: list[tuple[str, int, Any]] = []

    def on_begin(self, training: dragoman.Training) -> None:
        self.seen.append(("begin", training.step, None))

    def on_step(self, training: dragoman.Training) -> None:
        assert min(training.metrics["loss"], training.metrics["lr"]) > 0
        random.random(), torch.rand(3)  # a step's random numbers are its own
        self.seen.append(("step", training.step, None))

    def on_validation(self, training: dragoman.Training) -> None:
        self.seen.append(("validation", training.step, training.metrics["loss"]))

    def on_end(self, training: dragoman.Training) -> None:
        self.seen.append(("end", training.step, training.reason))


def test_callbacks_stop_a_run_which_ends_in_the_same_bytes(whole: dragoman.Training, tmp_path: Path) -> None:
    recorder = Recorder()
    training = trained(tmp_path / "run", [recorder, lambda training: training.step == 2 and training.stop()])
    assert training.reason == "interrupted"
    assert [(kind, step) for kind, step, _ in recorder.seen] == [
        ("begin", 0), ("step", 1), ("step", 2), ("validation", 2), ("end", 2)]  # fmt: skip
    again = trained(tmp_path / "run")  # the same call
    assert (again.reason, again.step) == ("max_steps", 4)
    assert digests(tmp_path / "run") == digests(whole.run_dir)
    assert [event["loss"] for event in again.history] == [event["loss"] for event in whole.history]


def test_a_stop_at_a_step_and_a_resume_by_the_handle(whole: dragoman.Training, tmp_path: Path) -> None:
    class Stop(dragoman.Callback):
        def on_step(self, training: dragoman.Training) -> None:
            if training.step == 3:
                training.stop()

    # An iterator is used up by then: what was read of it is kept in the run.
    training = trained(tmp_path / "run", Stop(), {"train": iter(PAIRS), "valid": lambda: (pair for pair in PAIRS[:4])})
    assert training.step == 3
    assert training.resume().reason == "max_steps"
    assert digests(tmp_path / "run") == digests(whole.run_dir)


def test_a_run_that_was_moved_finds_the_corpus_that_it_keeps(whole: dragoman.Training, tmp_path: Path) -> None:
    trained(tmp_path / "run", lambda training: training.step == 2 and training.stop())
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "run").rename(tmp_path / "elsewhere" / "moved")
    training = dragoman.train(str(moved))
    assert (training.step, training.run_dir) == (4, moved)
    assert digests(moved) == digests(whole.run_dir)


SCRIPT = """
import sys

import dragoman
from dragoman.data import encode

encode.CHUNK_PAIRS = 10  # what a file of 40,000 lines has four of
pairs = [("eins zwei", "one two"), ("zwei eins", "two one")] * 30
training = dragoman.train({recipe!r}, {{"workers": 2}}, corpus=pairs, run_dir=sys.argv[1])
print("steps", training.step)
"""


@pytest.mark.system
def test_a_script_needs_no_guard_for_the_processes_that_encode_its_corpus(tmp_path: Path) -> None:
    """kwuking/TimeMixer#21, guoyang9/NCF#14: a script ran again in each process that it had started."""
    (tmp_path / "script.py").write_text(SCRIPT.format(recipe=RECIPE), encoding="utf-8")
    arguments = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "run")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout) == (0, "steps 4\n"), done.stderr


def test_what_a_callback_raises_is_raised_and_the_run_goes_on(whole: dragoman.Training, tmp_path: Path) -> None:
    class Mistake(dragoman.Callback):
        def on_step(self, training: dragoman.Training) -> None:
            if training.step == 3:
                raise ZeroDivisionError("of the caller")

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError, match="of the caller"):
        trained(tmp_path / "run", Mistake())
    assert signal.getsignal(signal.SIGINT) is handler
    assert trained(tmp_path / "run").reason == "max_steps"
    assert digests(tmp_path / "run") == digests(whole.run_dir)


def test_ctrl_c_saves_and_returns_and_nothing_of_the_process_is_changed(tmp_path: Path) -> None:
    class Interrupt(dragoman.Callback):
        def on_step(self, training: dragoman.Training) -> None:
            if training.step == 1:
                signal.raise_signal(signal.SIGINT)

    def state() -> list[Any]:
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        loggers = [logging.root.level, list(logging.root.handlers), logging.getLogger("sacrebleu").level]
        numbers = [random.getstate(), torch.get_rng_state().tolist()]
        return [handlers, loggers, numbers, torch.get_num_threads(), list(warnings.filters)]

    before = state()
    training = trained(tmp_path / "run", Interrupt())
    assert (training.reason, training.step) == ("interrupted", 1)
    assert state() == before


def test_other_pairs_are_refused_in_one_line_and_the_run_stays(whole: dragoman.Training) -> None:
    kept = (whole.run_dir / "corpus" / "train.de").read_bytes()
    with raises_error(Error.OTHER_CONTENT, "other pairs"):
        trained(whole.run_dir, corpus={"train": PAIRS[:-1], "valid": PAIRS[:4]})
    assert (whole.run_dir / "corpus" / "train.de").read_bytes() == kept
    assert sorted(path.name for path in (whole.run_dir / "corpus").iterdir()) == [
        "train.de", "train.en", "valid.de", "valid.en"]  # fmt: skip


def test_a_run_is_evaluated_on_pairs_and_so_are_translations(whole: dragoman.Training) -> None:
    scores = whole.evaluate(PAIRS[:5], beam_size=1, metric="bleu", checks=False)
    assert scores["test"].sentences == 5
    several = whole.evaluate({"one": PAIRS[:2], "two": {"src": [PAIRS[0][0]], "tgt": [PAIRS[0][1]]}}, checks=False)
    assert [several[name].sentences for name in ("one", "two")] == [2, 1]
    judged = dragoman.evaluate(hypotheses=[tgt for _, tgt in PAIRS], corpus=PAIRS, tgt_lang="en", checks=False)
    assert judged["test"].exact_match == 100.0
    assert whole.load(device="cpu").translate([PAIRS[0][0]], beam_size=1)


@pytest.mark.parametrize(
    ("task", "train", "options"),
    [
        ("language_modelling", [tgt for _, tgt in PAIRS], {"corpus": {"block_len": 8}}),
        ("masked_language_modelling", ({"text": tgt} for _, tgt in PAIRS), {}),
        ("classification", [(src, number % 2) for number, (src, _) in enumerate(PAIRS)], {}),
    ],
)
def test_every_task_trains_on_objects(task: str, train: Any, options: dict[str, Any], tmp_path: Path) -> None:
    model = {"d_model": 8, "num_heads": 2, "d_ff": 8, "num_layers": 1}
    recipe = {"task": task, "device": "cpu", "tokenizer": {"type": "whitespace"}, "model": model, **options,
              "training": {"max_steps": 2, "validate_every": 2, "loggers": []}}  # fmt: skip
    rows = list(train)
    training = dragoman.train(recipe, corpus=Corpus(train=rows, valid=rows, test=rows), run_dir=tmp_path / "run")
    assert training.reason == "max_steps"
    assert set(training.scores) == {"test"}
    assert set(training.evaluate(rows)) == {"test"}


class Frame:
    """A table with the methods of pandas, by which it is known; iterated, it gives its columns' names."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns, self.rows = list(columns), list(zip(*columns.values(), strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def itertuples(self, index: bool, name: None) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)


def read(split: Any, fields: tuple[str, ...] = PAIR, columns: Any = None) -> list[tuple[str, ...]]:
    return list(records(split, fields, "train", columns, ("de", "en")))


@pytest.mark.parametrize(
    "split",
    [
        [("ein", "one"), ["zwei", "two\n"]],
        (pair for pair in [("ein", "one"), ("zwei", "two")]),
        lambda: [("ein", "one"), ("zwei", "two")],
        [{"translation": {"de": "ein", "en": "one"}}, {"translation": {"de": "zwei", "en": "two"}}],
        [{"en": "one", "de": "ein", "id": 1}, {"de": "zwei", "en": "two", "id": 2}],
        {"source": ["ein", "zwei"], "target": ["one", "two"]},
        Frame({"n": [1, 2], "en": ["one", "two"], "de": ["ein", "zwei"]}),
        Frame({"translation": [{"de": "ein", "en": "one"}, {"de": "zwei", "en": "two"}]}),
        zip(["ein\n", "zwei\r\n"], ["one\n", "two\n"], strict=True),
    ],
    ids=lambda given: type(given).__name__,
)
def test_pairs_in_every_form(split: Any) -> None:
    assert read(split) == [("ein", "one"), ("zwei", "two")]


def test_columns_by_name_labels_and_texts() -> None:
    frame = Frame({"german": ["ein"], "english": ["one"], "label": [1]})
    assert read(frame, columns=("german", "english")) == [("ein", "one")]
    numbered = Frame({0: ["ein"], 1: ["one"]})  # type: ignore[dict-item]
    assert read(numbered, columns=(0, 1)) == [("ein", "one")]
    numbered.columns = ["de", "de"]
    with raises_error(Error.WRONG_SHAPE, "two columns"):
        read(numbered)
    assert read([{"translation": {"deu": "ein", "eng": "one"}}], columns=("deu", "eng")) == [("ein", "one")]
    assert read([("ein", "de"), ("one", 1)], LABELLED) == [("ein", "de"), ("one", "1")]
    assert read(["ein", "one"], TEXT) == [("ein",), ("one",)]

    class Labelled(list):  # type: ignore[type-arg]
        features: ClassVar = {"label": type("ClassLabel", (), {"names": ["neg", "pos"]})()}

    assert read(Labelled([{"text": "gut", "label": 1}]), LABELLED) == [("gut", "pos")]


@pytest.mark.parametrize(
    ("split", "code", "line"),
    [
        ("corpus.tsv", Error.WRONG_SHAPE, None),
        ({("ein", "one")}, Error.WRONG_SHAPE, None),
        (None, Error.WRONG_SHAPE, None),
        ([], Error.EMPTY, None),
        ([("ein", "one"), ("zwei",)], Error.WRONG_SHAPE, 2),
        ([("ein", "one"), "zwei"], Error.WRONG_SHAPE, 2),
        ([("ein", "one"), ("zwei", float("nan"))], Error.WRONG_SHAPE, 2),
        ([("ein", None)], Error.WRONG_SHAPE, 1),
        ([("ein\nzwei", "one")], Error.WRONG_SHAPE, 1),
        ([{"first": "ein", "second": "one"}], Error.WRONG_SHAPE, None),
        ([{"de": "ein", "en": "one"}, {"de": "zwei"}], Error.WRONG_SHAPE, 2),
        ({"de": ["ein"], "en": ["one", "two"]}, Error.UNEQUAL_COUNTS, None),
        ([(b"ein", "one")], Error.WRONG_SHAPE, 1),
    ],
    ids=str,
)
def test_records_that_are_none_are_named(split: Any, code: Error, line: int | None) -> None:
    with pytest.raises(dragoman.DragomanError) as caught:
        read(split)
    assert (caught.value.code, caught.value.line) == (code, line)
    assert "\n" not in str(caught.value)


def test_an_iterator_is_read_a_record_at_a_time() -> None:
    taken: list[int] = []
    lines = records(((taken.append(n) or ("ein", "one")) for n in range(1000)), PAIR, "train", None, ("de", "en"))
    next(lines)
    assert len(taken) == 1


@pytest.mark.parametrize(
    ("given", "code", "hint"),
    [
        ({"recipe": "no-such-recipe"}, Error.MISSING_FILE, "no such recipe"),
        ({"recipe": "toy-copi"}, Error.MISSING_FILE, "toy-copy"),
        ({"recipe": RECIPE, "corpus": PAIRS}, Error.MISSING_OPTION, "run_dir"),
        ({"recipe": RECIPE, "epochs": 3}, Error.UNKNOWN_SETTING, "overrides"),
        ({"recipe": RECIPE, "train_dataset": PAIRS}, Error.UNKNOWN_SETTING, "overrides"),
        ({"recipe": RECIPE, "output_dir": "x"}, Error.UNKNOWN_SETTING, "overrides"),
        (
            {"recipe": {**RECIPE, "batch_size": 2}, "run_dir": "x", "corpus": PAIRS * 10},
            Error.UNKNOWN_SETTING,
            "batch_size",
        ),
        ({"recipe": 3}, Error.WRONG_SHAPE, "recipe"),
        ({"recipe": RECIPE, "callbacks": [dragoman.Callback]}, Error.WRONG_OPTION, "Callback()"),
        ({"recipe": RECIPE, "callbacks": [3]}, Error.WRONG_OPTION, "on_step"),
        ({}, Error.MISSING_OPTION, "nothing to train on"),
        ({"corpus": PAIRS, "src": "a.de", "tgt": "b.en"}, Error.CONFLICT, "corpus"),
    ],
)
def test_mistakes_are_one_line(
    given: dict[str, Any], code: Error, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dragoman.DragomanError, match=hint) as caught:
        dragoman.train(**given)
    assert caught.value.code == code
    assert "https://" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_recipe_by_any_name(whole: dragoman.Training, tmp_path: Path) -> None:
    assert recipes.load("toy-copy").run_dir == "runs/toy-copy"
    assert recipes.load(whole.run_dir) == whole.recipe
    text = (whole.run_dir / "config.yaml").read_text(encoding="utf-8")
    assert recipes.load(text) == whole.recipe
    copied = tmp_path / "config.yaml"  # a recipe that is called like this is no run directory's
    copied.write_text(text, encoding="utf-8")
    assert recipes.load(copied) == whole.recipe
    assert recipes.load(whole.recipe, ["seed=2"]).seed == 2


def test_callbacks_of_other_toolkits_are_named() -> None:
    class Keras:
        def on_epoch_end(self, epoch: int, logs: Any) -> None: ...

    with pytest.raises(dragoman.DragomanError, match=r"Keras\.on_epoch_end.*on_validation"):
        dragoman.train(RECIPE, callbacks=[Keras()])


@pytest.mark.parametrize(
    ("option", "ours"), [("num_beams", "beam_size"), ("max_length", "max_length_ratio"), ("early_stopping", "stopping")]
)
def test_other_toolkits_names_of_options(whole: dragoman.Training, option: str, ours: str) -> None:
    translator = whole.load(device="cpu")
    for call in (translator.translate, translator.n_best):
        with raises_error(Error.UNKNOWN_SETTING, ours):
            call(["eins"], **{option: 3})
    with raises_error(Error.UNKNOWN_SETTING, ours):
        translator.with_decoding(**{option: 3})
    with raises_error(Error.UNKNOWN_SETTING, ours):
        dragoman.load(whole.run_dir, **{option: 3})
    with raises_error(Error.UNKNOWN_SETTING):
        whole.evaluate(PAIRS, **{option: 3})
    with raises_error(Error.UNKNOWN_SETTING):
        dragoman.load_classifier(whole.run_dir, **{option: 3})
    with raises_error(Error.WRONG_OPTION, "precision"):
        dragoman.load(whole.run_dir, precision="int4")


@pytest.mark.system
def test_the_notebook_of_the_docs_runs() -> None:
    path = Path(__file__).parents[2] / "docs" / "python.ipynb"
    cells = [
        Cell("".join(cell["source"]).replace("steps = 400", "steps = 4"), cell["cell_type"] == "code")
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    ]
    printed = "".join(output.text for _, output in run_chapter(Chapter(0, path, cells)))
    assert "interrupted 2\n" in printed
    assert "max_steps [2, 4]\n" in printed
    assert "\nTrue\n" in printed
    assert "did you mean `beam_size`?" in printed
    assert "max_steps, best validation" in printed
