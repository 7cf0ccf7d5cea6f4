"""Whose a run directory is, and what a refused command leaves as it was."""

import importlib
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.errors import raises_error

from dragoman import config
from dragoman.analysis.report import write_report
from dragoman.cli import main
from dragoman.config import parse
from dragoman.data import batching
from dragoman.data.batching import BatchPlan
from dragoman.decoding.base import DecodingConfig
from dragoman.errors import DragomanError, Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.directory import require_alike
from dragoman.runs.events import read_events
from dragoman.runs.log import RunLog
from dragoman.tasks import recipes
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.tasks.timed_recipe import with_steps
from dragoman.tasks.translation.job import TranslationJob
from dragoman.tasks.translation.task import TranslationTask
from dragoman.text.tokenizers.pair import load_tokenizers
from dragoman.training.loop import Outcome
from dragoman.training.preflight import Estimate
from dragoman.training.schedules import LinearConfig, NoamConfig

MODULE = importlib.import_module("dragoman.tasks.base")  # `recipe.job` is a function of the package too
GERMAN = "eins zwei\ndrei\nvier fünf\n"
ENGLISH = "one two\nthree\nfour five\n"


@pytest.fixture
def recipe(tmp_path: Path) -> dict[str, Any]:
    """Settings, as plain data, to train on four small files in the folder."""
    for split in ("train", "valid"):
        (tmp_path / f"{split}.de").write_text(GERMAN, encoding="utf-8")
        (tmp_path / f"{split}.en").write_text(ENGLISH, encoding="utf-8")
    files = {
        split: {"type": "files", "src": str(tmp_path / f"{split}.de"), "tgt": str(tmp_path / f"{split}.en")}
        for split in ("train", "valid")
    }
    return {
        "run_dir": str(tmp_path / "run"),
        "workers": 1,
        "device": "cpu",
        "corpus": {"src_lang": "de", "tgt_lang": "en", **files},
        "tokenizer": {"type": "whitespace"},
        "model": {"type": "transformer", "d_model": 8, "num_heads": 2, "d_ff": 8},
        "training": {"max_steps": 2},
    }


def job(recipe: dict[str, Any], *overrides: str) -> TranslationJob:
    return TranslationJob(parse(TranslationRecipe, config.override(recipe, overrides)))


def trained(recipe: dict[str, Any]) -> Path:
    """A run directory as training leaves it, as far as `init_run_dir` looks."""
    job(recipe).prepare()
    run_dir = Path(recipe["run_dir"])
    (run_dir / "checkpoints/step-00000002").mkdir(parents=True)
    return run_dir


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["train.de", "valid.en"])
def test_a_run_with_checkpoints_refuses_another_corpus_of_the_same_name(
    recipe: dict[str, Any], tmp_path: Path, name: str
) -> None:
    run_dir = trained(recipe)
    before = content(run_dir)
    (tmp_path / name).write_text("sechs sieben\nacht\nneun\n", encoding="utf-8")
    key = {"train.de": "corpus.train.src", "valid.en": "corpus.valid.tgt"}[name]
    with raises_error(Error.OTHER_CONTENT, "run", key):
        job(recipe).prepare()
    assert content(run_dir) == before


def test_before_the_first_checkpoint_another_corpus_takes_the_directory(recipe: dict[str, Any], tmp_path: Path) -> None:
    job(recipe).prepare()
    (tmp_path / "train.de").write_text("sechs\nacht\nneun\n", encoding="utf-8")
    carried = job(recipe)
    carried.prepare()
    assert carried.tokenizers.src.id_of("sechs") != carried.tokenizers.src.id_of("eins")
    assert json.loads((tmp_path / "run/identity.json").read_text(encoding="utf-8")) == carried.identity()


def test_orders_of_another_corpus_are_not_taken(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of as many rows, but other lengths: batches cut by the old orders would be too large."""
    monkeypatch.setattr(batching, "MIN_ROWS_ON_DISK", 0)
    source = Path(recipe["corpus"]["train"]["src"])
    for times in (1, 3):
        lines = source.read_text().splitlines()
        source.write_text(
            "".join(f"{' '.join([line] * (times if row % 2 else 1))}\n" for row, line in enumerate(lines))
        )
        one = job(recipe)
        one.prepare()
        plan = one.start()[1].plan  # type: ignore[attr-defined]
        lengths = one.train.src_lengths, one.train.tgt_lengths
        alone = BatchPlan(*lengths, batch_tokens=plan.batch_tokens, seed=plan.seed)
        assert [rows.tolist() for rows in plan.step(0, 0)] == [rows.tolist() for rows in alone.step(0, 0)]
        assert len(list((tmp_path / "run" / "prepared" / "orders").iterdir())) == 1


def test_a_corpus_that_was_moved_is_the_same_corpus(recipe: dict[str, Any], tmp_path: Path) -> None:
    trained(recipe)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "train.de").rename(tmp_path / "elsewhere/corpus.de")
    moved = job(recipe, f"corpus.train.src={tmp_path / 'elsewhere/corpus.de'}")
    assert moved.prepare()[0].count("used what was stored") == 1
    assert recipes.of_run(recipe["run_dir"]) == moved.recipe


def test_every_other_setting_that_changed_is_listed(recipe: dict[str, Any], tmp_path: Path) -> None:
    trained(recipe)
    (tmp_path / "other.de").write_text("a\nb\nc\n", encoding="utf-8")
    other = job(recipe, f"corpus.train.src={tmp_path / 'other.de'}", "seed=2", "training.max_steps=9", "model.d_ff=16")
    with raises_error(Error.OTHER_CONTENT, "run") as caught:
        other.init_run_dir()
    for expected in ("corpus.train.src: '", "seed: 1 -> 2", "model.d_ff: 8 -> 16"):
        assert expected in str(caught.value)
    assert "max_steps" not in str(caught.value)


def test_a_setting_that_is_newer_than_the_run_takes_its_default(recipe: dict[str, Any]) -> None:
    path = trained(recipe) / "config.yaml"
    older = read_yaml(path)
    del older["model"]["norm_eps"], older["training"]["samples"]
    path.write_text(json.dumps(older), encoding="utf-8")
    job(recipe).init_run_dir()
    assert read_yaml(path)["model"]["norm_eps"] == 1e-5


def test_a_run_from_before_contents_were_recorded_goes_by_the_names(recipe: dict[str, Any], tmp_path: Path) -> None:
    run_dir = trained(recipe)
    (run_dir / "identity.json").unlink()
    (run_dir / "tokenizer/made-from.txt").write_text("of another version\n", encoding="utf-8")
    before = content(run_dir / "tokenizer")
    (tmp_path / "moved.de").write_text(GERMAN, encoding="utf-8")
    with raises_error(Error.OTHER_CONTENT, "run"):
        job(recipe, f"corpus.train.src={tmp_path / 'moved.de'}").prepare()
    job(recipe).prepare()
    assert content(run_dir / "tokenizer") == before
    assert (run_dir / "identity.json").exists()


def test_a_run_of_another_task_is_refused_as_that(recipe: dict[str, Any]) -> None:
    path = trained(recipe) / "config.yaml"
    path.write_text("task: classification\nrun_dir: x\n", encoding="utf-8")
    with raises_error(Error.OTHER_CONTENT, "run"):
        job(recipe).init_run_dir()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("device=cuda seed=2", (Error.NO_DEVICE,)),
        ("decoding.beam_size=2 model.num_heads=3", (Error.WRONG_SETTING,)),
        ("corpus.train.src=gone.de", (Error.MISSING_FILE, "gone.de")),
    ],
)
def test_a_refused_run_leaves_the_directory_as_it_was(
    recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch, change: str, error: tuple[Any, ...]
) -> None:
    job(recipe).prepare()
    run_dir = Path(recipe["run_dir"])
    before = content(run_dir)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with raises_error(*error):
        job(recipe, *change.split()).run()
    assert content(run_dir) == before


@pytest.mark.parametrize(
    "change", ["training.schedule={type: linear, lr: 0.5}", "training.best_by=[chrf]", "seed=7", "model.d_ff=48"]
)
def test_a_refused_change_says_how_to_begin_with_these_weights(recipe: dict[str, Any], change: str) -> None:
    """Not where the model is another one, which they do not fit."""
    run_dir = trained(recipe)
    with raises_error(Error.OTHER_CONTENT, str(run_dir)) as caught:
        job(recipe, change).init_run_dir()
    assert (f"`init_from` {run_dir}" in str(caught.value.hint)) is not change.startswith("model")
    assert f"--init-from {run_dir}" in main.with_flags(str(caught.value), main.load("train")) or change.startswith(
        "model"
    )


@pytest.mark.parametrize("change", ["training.best_by=[accuracy]", "training.best_by=[bleo]"])
def test_a_figure_that_is_not_measured_is_refused(recipe: dict[str, Any], change: str) -> None:
    with raises_error(Error.WRONG_SETTING):
        job(recipe, change).check()


def test_config_is_replaced_whole(recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    job(recipe).prepare()
    run_dir = Path(recipe["run_dir"])
    before = content(run_dir)

    def full(self: Path, text: str, encoding: str, newline: str) -> None:
        with self.open("w", encoding=encoding) as file:
            file.write(text[: len(text) // 2])
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_text", full)
    with raises_error(Error.CANNOT_WRITE, "run"):
        job(recipe, "seed=2").init_run_dir()
    assert {name: data for name, data in content(run_dir).items() if not name.endswith(".tmp")} == before


def test_an_interrupted_save_of_tokenizers_is_not_taken_for_a_whole_one(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(recipe).prepare()
    directory = tmp_path / "run/tokenizer"

    def broken(*_: object) -> None:
        (directory / "shared").mkdir(parents=True)
        (directory / "shared/vocabulary.json").write_text("[]", encoding="utf-8")
        raise OSError(28, os.strerror(28))

    (tmp_path / "train.de").write_text("x\ny\nz\n", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr("dragoman.tasks.vocabulary.save_tokenizers", broken)
        with raises_error(Error.CANNOT_WRITE, "tokenizer"):
            job(recipe).prepare()
    (tmp_path / "train.de").write_text(GERMAN, encoding="utf-8")
    job(recipe).prepare()
    assert load_tokenizers(directory).src.id_of("eins") > 3


def test_nothing_of_an_earlier_tokenizer_stays(recipe: dict[str, Any], tmp_path: Path) -> None:
    job(recipe).prepare()
    job(recipe, "tokenizer={type: separate, src: {type: words}, tgt: {type: words}}").prepare()
    folder = tmp_path / "run/tokenizer"
    assert sorted(path.name for path in folder.iterdir()) == ["made-from.txt", "src", "tgt", "tokenizers.json"]


def test_another_tokenizer_that_is_reused_is_taken_until_there_are_checkpoints(
    recipe: dict[str, Any], tmp_path: Path
) -> None:
    other = {**recipe, "run_dir": str(tmp_path / "other")}
    reuse = f"tokenizer={{type: reuse, run: {tmp_path / 'other'}}}"
    sizes = []
    for tokenizer in ("{type: whitespace}", "{type: characters}"):
        job(other, f"tokenizer={tokenizer}").prepare()
        job(recipe, reuse).prepare()
        sizes.append(load_tokenizers(tmp_path / "run/tokenizer").src.config.type)
    assert sizes == ["whitespace", "characters"]
    (tmp_path / "run/checkpoints/step-00000001").mkdir(parents=True)
    job(other, "tokenizer={type: words}").prepare()
    job(recipe, reuse).prepare()
    assert load_tokenizers(tmp_path / "run/tokenizer").src.config.type == "characters"


def test_what_a_file_manager_leaves_is_in_nobodys_way(recipe: dict[str, Any], tmp_path: Path) -> None:
    run_dir = Path(recipes.run(parse(TranslationRecipe, recipe)).run_dir)
    for folder in ("prepared/train", "tokenizer/shared", "checkpoints/step-00000002"):
        (run_dir / folder / "._config.json").write_bytes(b"\0")
    assert recipes.run(parse(TranslationRecipe, config.override(recipe, ["training.max_steps=3"]))).outcome.step == 3
    require_alike(run_dir, run_dir)


@pytest.mark.system
def test_a_run_that_goes_on_forgets_the_scores_of_when_it_was_done(recipe: dict[str, Any]) -> None:
    recipe["corpus"]["test"] = {"old": recipe["corpus"]["valid"]}
    run_dir = recipes.run(parse(TranslationRecipe, recipe)).run_dir
    recipe["corpus"]["test"] = {"new": recipe["corpus"]["valid"]}
    recipes.run(parse(TranslationRecipe, config.override(recipe, ["training.max_steps=3"])))
    tests = [event["name"] for event in read_events(run_dir / "metrics.jsonl") if event["event"] == "test"]
    assert tests == ["new"]


@pytest.mark.parametrize(
    "change",
    ["init_from=nosuch", "tokenizer={type: reuse, run: nosuch}", "distillation={teachers: [nosuch]}"],
)
def test_runs_that_are_not_there_are_told_before_anything_is_written(recipe: dict[str, Any], change: str) -> None:
    with raises_error(Error.NOT_A_RUN, "nosuch"):
        job(recipe, change).run()
    assert not Path(recipe["run_dir"]).exists()


def test_weights_that_leave_nothing_are_named(recipe: dict[str, Any]) -> None:
    mix = {"type": "mix", "sources": [recipe["corpus"]["train"]], "weights": [0.001]}
    recipe["corpus"] = {**recipe["corpus"], "train": mix, "doctor": "skip"}
    with raises_error(Error.EMPTY, "train.en"):
        job(recipe).prepare()


def test_a_shorter_warm_up_leaves_noams_peak_where_it_is(recipe: dict[str, Any]) -> None:
    recipe["training"]["schedule"] = {"type": "noam", "warmup_steps": 4000}
    short = job(recipe)
    schedule = with_steps(short.recipe, 100).training.schedule
    assert schedule.warmup_steps == 20
    assert schedule.rate_at(20, 100, 512) == pytest.approx(NoamConfig().rate_at(4000, 10_000, 512))


@pytest.mark.parametrize("weights", ["1\n1\n", "0,5\n" * 9, "1 1 1\n" * 9], ids=["short", "comma", "of words"])
def test_weights_of_losses_are_read_before_the_long_work(recipe: dict[str, Any], tmp_path: Path, weights: str) -> None:
    """marian#279: as many as lines, and one number each; `check` says so too."""
    (tmp_path / "weights").write_text(weights, encoding="utf-8")
    recipe["corpus"]["train"]["weights"] = str(tmp_path / "weights")
    with pytest.raises(DragomanError, match="weights"):
        job(recipe, "corpus.weights_in=loss").check_start()


def test_a_vocabulary_that_the_text_is_not_written_in_is_told(
    recipe: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """sockeye#968: nine of ten tokens unknown, and a model that says nothing but `<unk>`."""
    (tmp_path / "vocab").write_text("".join(f"{word}@@\n" for word in (GERMAN + ENGLISH).split()), encoding="utf-8")
    job(recipe).prepare()
    assert "unknown" not in capsys.readouterr().err
    job(recipe, f"tokenizer.vocab={tmp_path / 'vocab'}", f"run_dir={tmp_path / 'other'}").prepare()
    assert "100% of the source tokens of the training text are unknown" in capsys.readouterr().err


def test_a_short_training_still_falls_in_its_last_stage(recipe: dict[str, Any]) -> None:
    recipe["training"]["schedule"] = {"type": "tri_stage", "lr": 1.0}
    schedule = with_steps(job(recipe).recipe, 100).training.schedule
    assert schedule.rate_at(20, 100, 512) == schedule.rate_at(70, 100, 512) == 1.0
    assert schedule.rate_at(100, 100, 512) == pytest.approx(0.01)


def test_lines_of_a_mixture_are_told_as_its_pairs(recipe: dict[str, Any], tmp_path: Path) -> None:
    source = recipe["corpus"]["train"]
    mix = {"type": "mix", "sources": [source, source], "weights": [1, 2]}
    told = []
    for name, train in (("plain", source), ("mixed", mix)):
        corpus = {**recipe["corpus"], "train": train}
        one = job({**recipe, "run_dir": str(tmp_path / name), "corpus": corpus})
        one.prepare()
        with RunLog(tmp_path / name) as log:
            task = one.trainer(one.training_step(), log).task
            told.append(task.describe(task.micro_batch(1, 0)[0]))
    assert re.fullmatch(r"lines? [\d, ]+ of \S+train.de and \S+train.en", told[0])
    assert re.match(r"pairs? [\d, ]+.* of the mixture of \S+train.de and", told[1])


def test_a_run_that_was_never_validated_has_no_best_score(
    recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = SimpleNamespace(
        step=5,
        time_budget=SimpleNamespace(end=5),
        why_done="max_steps",
        stop_agreed=False,
        resume=lambda path: None,
        log=SimpleNamespace(forget=lambda kind: None),
        end=lambda: Outcome("max_steps", 5, 0, None, 1.0),
    )
    monkeypatch.setattr(TranslationJob, "training_step", lambda *_, **__: None)
    monkeypatch.setattr(TranslationJob, "trainer", lambda *_: trainer)
    monkeypatch.setattr(TranslationJob, "_is_done", lambda *_: True)
    monkeypatch.setattr(MODULE.checkpoint, "newest", lambda *_, **__: Path("step-00000005"))
    result = job(recipe).run()
    assert (result.best, result.outcome.best_score) == (None, None)


def test_a_budget_chooses_the_steps_and_a_run_that_goes_on_keeps_them(
    recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    took = Estimate(seconds_per_step=1000.0, seconds_per_validation=100.0, seconds_per_checkpoint=100.0,
                    peak_bytes=1, checkpoint_bytes=1, disk_bytes=1)  # fmt: skip
    monkeypatch.setattr(MODULE, "preflight", lambda trainer: took)
    recipe["training"] |= {"validate_every": 2, "schedule": {"type": "linear", "lr": 0.01, "warmup_steps": 1}}
    result = recipes.run(parse(TranslationRecipe, recipe), seconds_left=5000.0)
    assert result.outcome.step == 4  # 4 x 1000 s, and 2 validations; seconds of a busy machine do not count
    written = recipes.of_run(recipe["run_dir"])
    assert written.training.max_steps == 4
    rates = [event["lr"] for event in read_events(result.run_dir / "metrics.jsonl") if event["event"] == "train"]
    assert rates[-1] == written.training.schedule.build(4, 8).rate(4)
    assert recipes.run(parse(TranslationRecipe, recipe), seconds_left=5000.0).outcome.step == 4


@pytest.mark.parametrize("more", [{}, {"workspace": 64, "max_steps": 4}], ids=["plain", "workspace"])
@pytest.mark.system
def test_epochs_are_counted_in_steps_and_more_of_them_go_on(recipe: dict[str, Any], more: dict[str, int]) -> None:
    """JoeyNMT's `epochs`, fairseq's `max_epoch`: of three pairs in batches of one, whatever `max_steps` says."""
    recipe["training"] = {"batch_sentences": 1, "max_epochs": 2, "schedule": {"type": "linear", "lr": 0.01}, **more}
    result = recipes.run(parse(TranslationRecipe, recipe))
    assert result.outcome.step == 2 * 3
    rates = [event["lr"] for event in read_events(result.run_dir / "metrics.jsonl") if event["event"] == "train"]
    assert rates[-1] == LinearConfig(lr=0.01).rate_at(6, 6, 8)
    assert recipes.run(parse(TranslationRecipe, recipe)).outcome.step == 6
    recipe["training"]["max_epochs"] = 3
    assert recipes.run(parse(TranslationRecipe, recipe)).outcome.step == 9
    assert recipes.of_run(result.run_dir).training.max_epochs == 3


@pytest.mark.system
def test_a_run_begun_without_a_budget_goes_on_with_one_and_its_own_warm_up(recipe: dict[str, Any]) -> None:
    recipe["training"] |= {"max_steps": 2, "schedule": {"type": "linear", "lr": 0.01, "warmup_steps": 2}}
    recipes.run(parse(TranslationRecipe, recipe))
    assert recipes.run(parse(TranslationRecipe, recipe), seconds_left=5000.0).outcome.step == 2
    assert recipes.of_run(recipe["run_dir"]).training.schedule.warmup_steps == 2


@pytest.mark.parametrize("model", ["transformer", "recurrent"])
def test_pretrained_vectors_begin_the_embedding_of_their_side(
    recipe: dict[str, Any], tmp_path: Path, model: str
) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("one 1 0 0 0 0 0 0 0\nfive 0 2 0 0 0 0 0 0\nunasked 9 9 9 9 9 9 9 9\n", encoding="utf-8")
    sizes = {"recurrent": {"d_embedding": 8, "d_model": 8}, "transformer": recipe["model"]}[model]
    recipe |= {
        "tokenizer": {"type": "separate", "src": {"type": "words"}, "tgt": {"type": "whitespace"}},
        "model": {**sizes, "type": model, "tie_embeddings": "output"},
        "vectors": {"tgt": {"path": str(vectors), "freeze": True}},
    }
    carried = job(recipe)
    carried.prepare()
    built, _ = carried.start()
    tgt, src = built.embeddings()["tgt"], built.embeddings()["src"]
    one, five = (tgt.embedding.weight[carried.tokenizers.tgt.id_of(word)] for word in ("one", "five"))
    assert one.nonzero().flatten().tolist() == [0]
    torch.testing.assert_close(five.norm(), 2 * one.norm())
    assert not tgt.embedding.weight.requires_grad
    assert src.embedding.weight.requires_grad


@pytest.mark.parametrize(
    "decoding", [{"sampling": {"samples": 3}, "mbr": "chrf"}, {"diversity": 0.5, "n_best": 3, "no_repeat_ngram": 3}]
)
def test_a_validation_searches_for_the_one_best(recipe: dict[str, Any], decoding: dict[str, Any]) -> None:
    carried = job(recipe | {"decoding": decoding})
    carried.prepare()
    _, task = carried.start()
    assert isinstance(task, TranslationTask)
    rule = {name: value for name, value in decoding.items() if name == "no_repeat_ngram"}
    assert task.translator.decoding == DecodingConfig(beam_size=1, **rule)


def test_vectors_want_words(recipe: dict[str, Any]) -> None:
    recipe |= {"tokenizer": {"type": "characters"}, "vectors": {"src": {"path": "glove.txt"}}}
    with raises_error(Error.WRONG_SETTING):
        job(recipe)


def test_fewer_steps_than_are_done_are_refused_and_nothing_is_written(recipe: dict[str, Any]) -> None:
    recipes.run(parse(TranslationRecipe, recipe))
    path = Path(recipe["run_dir"]) / "config.yaml"
    before = path.read_text(encoding="utf-8")
    with raises_error(Error.OUT_OF_RANGE):
        recipes.run(parse(TranslationRecipe, config.override(recipe, ["training.max_steps=1"])))
    assert path.read_text(encoding="utf-8") == before


def test_a_tokenizer_that_is_not_the_usual_one_is_named_beside_each_figure(
    recipe: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    recipe["corpus"] |= {"tgt_lang": "th", "test": {"flickr": recipe["corpus"]["valid"]}}
    result = recipes.run(parse(TranslationRecipe, recipe), report=write_report)
    said = "".join(capsys.readouterr())
    for line in ("9 .*", r"step \d+ .* {2}", "test flickr: "):
        assert re.search(rf"(?m)^{line}BLEU \(tok:char\) ", said), line
    assert str(result.best).startswith("BLEU (tok:char) ")
    page, card = (result.run_dir / name for name in ("report.html", "MODEL_CARD.md"))
    assert "BLEU (tok:char) on the validation set" in page.read_text(encoding="utf-8")
    assert "<th>BLEU (tok:char)</th>" in page.read_text(encoding="utf-8")
    assert "| BLEU (tok:char) |" in card.read_text(encoding="utf-8")


def test_a_run_that_has_learnt_nothing_says_so_and_its_files_can_be_read_by_all(recipe: dict[str, Any]) -> None:
    result = recipes.run(parse(TranslationRecipe, recipe))
    assert re.search(r"with BLEU \d\.\d\d this model has not learnt to translate yet", result.quality_warning)
    assert job(recipe).quality_warning(30.0) == ""
    files = [path for path in checkpoint.list_checkpoints(result.run_dir)[-1].iterdir() if path.is_file()]
    assert len({path.stat().st_mode for path in files}) == 1


def test_evaluation_keeps_the_translations_and_lower_cases(recipe: dict[str, Any], tmp_path: Path) -> None:
    run = recipes.run(parse(TranslationRecipe, recipe)).run_dir
    src, ref = tmp_path / "valid.de", tmp_path / "valid.en"
    scores = recipes.evaluate(
        run, sources=[src], references=[ref], names=["valid"], device="cpu", lowercase=True, output=tmp_path / "out"
    )
    assert "lc" in str(scores["valid"].to_dict()["signatures"]["bleu"])
    translator = SearchTranslator.load(run, device="cpu")
    translations = (tmp_path / "out" / "valid.en").read_text(encoding="utf-8").splitlines()
    assert translations == translator.translate(src.read_text(encoding="utf-8").splitlines())


def test_heads_of_full_width_are_trained_saved_loaded_and_translate(recipe: dict[str, Any]) -> None:
    wide = config.override(recipe, ["model.d_head=8", "training.max_steps=1"])
    run = recipes.run(parse(TranslationRecipe, wide)).run_dir
    resumed = recipes.run(parse(TranslationRecipe, config.override(wide, ["training.max_steps=2"])))
    assert resumed.outcome.step == 2
    translator = SearchTranslator.load(run, device="cpu")
    attention: Any = translator.model.get_submodule("decoder_layers.0.cross_attention")
    assert attention.query_proj.weight.shape == (2 * 8, 8)
    saved = checkpoint.list_checkpoints(run)[-1]
    assert (saved / "model.safetensors").exists()
    for beam_size in (1, 4):
        [translation] = translator.translate(["eins zwei"], beam_size=beam_size, max_length_extra=3)
        assert len(translation.split()) <= 10


def with_leaks(recipe: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The recipe on ten pairs, three of which stand in its test set, one of them but for its marks."""
    long = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
    pairs = [(f"wort {word}", f"word {word}") for word in "abcdef"]
    pairs += [("Drei!", "three"), ("sieben", "Seven."), (f"{long} lambda", "anders"), ("neun", "nine")]
    (folder / "train.de").write_text("".join(f"{src}\n" for src, _ in pairs), encoding="utf-8")
    (folder / "train.en").write_text("".join(f"{tgt}\n" for _, tgt in pairs), encoding="utf-8")
    (folder / "test.de").write_text(f"drei\nsechs\n{long}\n", encoding="utf-8")
    (folder / "test.en").write_text("tree\nseven\nother\n", encoding="utf-8")
    test = {"type": "files", "src": str(folder / "test.de"), "tgt": str(folder / "test.en")}
    return {**recipe, "corpus": {**recipe["corpus"], "test": {"held": test}}}


def test_pairs_of_the_test_set_are_left_out_of_training(recipe: dict[str, Any], tmp_path: Path) -> None:
    recipe = with_leaks(recipe, tmp_path)
    kept = job(recipe)
    kept.prepare()
    assert (len(kept.train), kept.train_report.dropped) == (10, {})
    dropped = job(recipe, "corpus.leaks=drop", f"run_dir={tmp_path / 'other'}")
    dropped.prepare()
    assert dropped.train.lines.tolist() == [1, 2, 3, 4, 5, 6, 10]
    assert dropped.train_report.dropped == {"in the test set": 2, "nearly in the test set": 1}
    assert dropped.train_report.pairs_read == 10
    assert set(dropped._training_sources() or ()) & {"Drei!", "sieben"} == set()  # where a score looks for leaks
    assert set(kept._training_sources() or ()) >= {"Drei!", "sieben"}
    pieces = dropped.tokenizers.src.pieces(range(dropped.tokenizers.src.vocab_size))
    assert "lambda" not in pieces  # nor does the tokenizer see them


def test_leaks_are_looked_for_once(recipe: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = config.override(with_leaks(recipe, tmp_path), ["corpus.leaks=drop"])
    job(recipe).prepare()
    assert "left out of training, as they stand in held-out text: 3 pairs" in capsys.readouterr().err
    again = job(recipe)
    again.prepare()
    assert "left out of training" not in capsys.readouterr().err
    assert (again.train_report.reused, again.train_report.pairs_read) == (True, 10)


def test_another_test_set_is_another_corpus_where_leaks_are_dropped(recipe: dict[str, Any], tmp_path: Path) -> None:
    recipe = with_leaks(recipe, tmp_path)
    for run, change in (("one", "corpus.leaks=keep"), ("two", "corpus.leaks=drop")):
        trained({**config.override(recipe, [change]), "run_dir": str(tmp_path / run)})
    (tmp_path / "test.en").write_text("tree\nseven\nnine\n", encoding="utf-8")
    job(recipe, f"run_dir={tmp_path / 'one'}").prepare()
    with raises_error(Error.OTHER_CONTENT, "corpus.leaks"):
        job(recipe, f"run_dir={tmp_path / 'two'}", "corpus.leaks=drop").prepare()


def test_both_directions_of_a_corpus_are_looked_at(recipe: dict[str, Any], tmp_path: Path) -> None:
    recipe = with_leaks(recipe, tmp_path)
    files = {"de": str(tmp_path / "train.de"), "en": str(tmp_path / "train.en")}
    recipe["corpus"]["train"] = {"type": "parallel", "files": files}
    prepared = job(recipe, "corpus.leaks=drop", "tokenizer={type: sentencepiece, vocab_size: 40, languages: [de, en]}")
    prepared.prepare()
    assert len(prepared.train) == 2 * 7


def test_a_stream_has_no_epochs(recipe: dict[str, Any]) -> None:
    with raises_error(Error.WRONG_SETTING, "training.max_epochs"):
        job(recipe, "corpus.train={type: stream}", "training.max_epochs=2")


def test_leaks_of_a_stream_cannot_be_dropped(recipe: dict[str, Any]) -> None:
    with raises_error(Error.WRONG_SETTING, "corpus"):
        job(recipe, "corpus.train={type: stream}", "corpus.leaks=drop")
