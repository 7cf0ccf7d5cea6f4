"""A recipe for two bare files: a fair split, fitting sizes, and settings that parse."""

import json
import re
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.config import override, parse
from dragoman.errors import Error
from dragoman.tasks import auto_recipe as module
from dragoman.tasks import recipes
from dragoman.tasks.auto_recipe import COMPANY, MAX_HELD_OUT, check_changes, default_recipe, hold_out
from dragoman.tasks.fine_tuning import fine_tuning_recipe
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.tasks.sizes import PIECES_A_STRANGE_WORD, SIZES, Budget, Speed, TrainingSize, explanation, size_within
from dragoman.text.corpus import DemoSource, FilesSource

RUN = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
Lines = list[tuple[str, str]]


def write(directory: Path, pairs: Lines) -> tuple[str, str]:
    paths = directory / "all.src", directory / "all.tgt"
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(line + "\n" for line in side), encoding="utf-8")
    return str(paths[0]), str(paths[1])


def read(paths: tuple[str, str]) -> Lines:
    src, tgt = (Path(path).read_text(encoding="utf-8").split("\n")[:-1] for path in paths)
    return list(zip(src, tgt, strict=True))


def corpus(count: int, each: int = 1) -> Lines:
    """`count` pairs, `each` source sentence so many times, spread over the corpus, with different translations."""
    return [(f"satz {number % (count // each)} ä\u2028b", f"sentence {number}") for number in range(count)]


def split(directory: Path, pairs: Lines, name: str = "split") -> tuple[Lines, Lines]:
    train, valid = hold_out(*write(directory, pairs), len(pairs), directory / name)
    return read(train), read(valid)


@pytest.mark.parametrize("each", [1, 2, 5])
def test_no_source_sentence_is_in_both_parts_and_no_pair_is_lost(tmp_path: Path, each: int) -> None:
    pairs = corpus(1000, each)
    train, valid = split(tmp_path, pairs)
    assert not {src for src, _ in train} & {src for src, _ in valid}
    assert Counter(train) + Counter(valid) == Counter(pairs)


def test_both_parts_keep_the_order_of_the_corpus(tmp_path: Path) -> None:
    pairs = corpus(500)
    train, valid = split(tmp_path, pairs)
    held_out = set(valid)
    assert train == [pair for pair in pairs if pair not in held_out]
    assert valid == [pair for pair in pairs if pair in held_out]


@pytest.mark.parametrize(("count", "held_out"), [(50, 1), (99, 1), (100, 2), (1000, 20)])
def test_two_in_a_hundred_are_held_out(tmp_path: Path, count: int, held_out: int) -> None:
    train, valid = split(tmp_path, corpus(count))
    assert (len(train), len(valid)) == (count - held_out, held_out)


def test_a_large_corpus_gives_no_more_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_HELD_OUT == 1000
    monkeypatch.setattr(module, "MAX_HELD_OUT", 5)
    assert len(split(tmp_path, corpus(1000))[1]) == 5


def test_the_split_goes_by_the_sentences_alone(tmp_path: Path) -> None:
    pairs = corpus(500)
    first, again = split(tmp_path, pairs, "first"), split(tmp_path, pairs, "again")
    backwards = split(tmp_path, pairs[::-1], "backwards")
    assert first == again
    assert (backwards[0][::-1], backwards[1][::-1]) == first


def test_the_split_of_a_run_is_replaced_only_while_there_are_no_checkpoints(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    first = split(run_dir.parent, corpus(100), "run/split")
    inode = (run_dir / "split/train.src").stat().st_ino
    assert split(tmp_path, corpus(100), "run/split") == first
    assert (run_dir / "split/train.src").stat().st_ino == inode, "the same corpus: nothing is written"
    other = split(tmp_path, corpus(150), "run/split")
    assert len(other[0]) == 147
    (run_dir / "checkpoints/step-00000001").mkdir(parents=True)
    assert split(tmp_path, corpus(150), "run/split") == other
    with raises_error(Error.OTHER_CONTENT, "run"):
        split(tmp_path, corpus(100), "run/split")
    assert read((str(run_dir / "split/train.src"), str(run_dir / "split/train.tgt"))) == other[0]
    assert {path.name for path in run_dir.iterdir()} == {"split", "checkpoints"}


def test_a_split_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file", encoding="utf-8")
    with raises_error(Error.CANNOT_WRITE, "split"):
        split(tmp_path, corpus(100), "run/split")


def test_too_few_different_sentences_leave_nothing_behind(tmp_path: Path) -> None:
    with raises_error(Error.TOO_FEW, "all.src"):
        split(tmp_path, corpus(100, each=50), "run/split")
    assert not list((tmp_path / "run").iterdir())


def test_too_few_pairs_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with raises_error(Error.TOO_FEW, "all.src"):
        split(tmp_path, corpus(49))
    assert not (tmp_path / "split").exists()
    with raises_error(Error.TOO_FEW, "all.src"):
        default_recipe(*write(tmp_path, corpus(49)), str(tmp_path / "run"))


def test_sizes_grow_with_the_corpus() -> None:
    limits = [limit for limit, _ in SIZES]
    assert limits == sorted(limits)
    assert limits[-1] == float("inf")
    for (_, small), (_, large) in pairwise(SIZES):
        assert small.vocab_size < large.vocab_size
        assert small.max_steps < large.max_steps
        assert small.d_model <= large.d_model
        assert small.encoder_layers <= large.encoder_layers
        assert small.dropout >= large.dropout


@pytest.mark.parametrize(("count", "index"), [(1_999, 0), (2_000, 1), (14_999, 1), (15_000, 2), (1_000_000, 4)])
def test_the_sizes_are_those_for_the_number_of_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, index: int
) -> None:
    monkeypatch.setattr(FilesSource, "pairs", lambda self: range(count))
    size = SIZES[index][1]
    recipe = default_recipe("a", "b", "run", valid=("c", "d"))
    assert recipe["model"]["d_model"] == size.d_model
    assert recipe["tokenizer"]["vocab_size"] == size.vocab_size
    assert recipe["training"]["max_steps"] == size.max_steps


@pytest.mark.parametrize(("count", "batch_tokens"), [(1_000, 1024), (999_999, 4096), (1_000_000, 25_000)])
def test_only_the_largest_model_has_other_batches_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, count: int, batch_tokens: int
) -> None:
    monkeypatch.setattr(FilesSource, "pairs", lambda self: range(count))
    recipes = [default_recipe("a", "b", "run", valid=("c", "d"), on_gpu=on_gpu) for on_gpu in (False, True)]
    assert recipes[1]["training"].pop("batch_tokens") == batch_tokens
    recipes[0]["training"].pop("batch_tokens")
    assert recipes[0] == recipes[1]


@pytest.mark.parametrize(("limit", "size"), SIZES)
def test_every_size_makes_settings_that_parse_and_heads_that_divide(
    monkeypatch: pytest.MonkeyPatch, limit: float, size: TrainingSize
) -> None:
    monkeypatch.setattr(FilesSource, "pairs", lambda self: range(int(min(limit, 2_000_000)) - 1))
    settings = parse(TranslationRecipe, default_recipe("a", "b", "run", valid=("c", "d"), languages=("de", "en")))
    assert (settings.model.d_model, settings.training.schedule.lr) == (size.d_model, size.lr)
    assert settings.model.d_model % settings.model.num_heads == 0
    assert settings.training.max_steps % settings.training.validate_every == 0
    assert settings.corpus.train == FilesSource(type="files", src="a", tgt="b")
    assert settings.corpus.valid == FilesSource(type="files", src="c", tgt="d")
    assert (settings.corpus.src_lang, settings.corpus.tgt_lang) == ("de", "en")


def test_without_validation_files_the_recipe_names_the_split(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    settings = parse(TranslationRecipe, default_recipe(*write(tmp_path, corpus(200)), str(run_dir)))
    train, valid = settings.corpus.train, settings.corpus.valid
    assert isinstance(train, FilesSource)
    assert isinstance(valid, FilesSource)
    assert {Path(path).parent for path in (train.src, train.tgt, valid.src, valid.tgt)} == {run_dir / "split"}
    assert len(read((train.src, train.tgt))) == 196
    assert len(read((valid.src, valid.tgt))) == 4
    assert settings.run_dir == str(run_dir)


def test_unequal_files_are_refused(tmp_path: Path) -> None:
    src, tgt = write(tmp_path, corpus(100))
    with Path(tgt).open("a", encoding="utf-8") as file:
        file.write("one more\n")
    with raises_error(Error.UNEQUAL_COUNTS, "all.src"):
        default_recipe(src, tgt, str(tmp_path / "run"))


def test_a_shift_is_told_by_the_line_of_the_file_that_was_given(tmp_path: Path) -> None:
    pairs = list(islice(DemoSource(split="train").pairs(), 600))
    sources, targets = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    del sources[299]
    for name, lines in (("c.de", sources), ("c.en", targets[:-1])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = str(tmp_path / "c.de"), str(tmp_path / "c.en")
    with raises_error(Error.BAD_CORPUS) as caught:
        default_recipe(*files, str(tmp_path / "run"), languages=("de", "en"))
    assert "corpus.doctor=warn" in str(caught.value)
    assert not (tmp_path / "run").exists()
    data = default_recipe(*files, str(tmp_path / "run"), languages=("de", "en"), doctor="warn")
    assert data["corpus"]["doctor"] == "skip"  # the files without the held out pairs are not examined again


FAST, SLOW = Speed(1e-6, 1e-12), Speed(8e-6, 8e-12)


def budget(minutes: float, speed: Speed = FAST) -> Budget:
    return Budget(60 * minutes, lambda: speed)


def test_more_time_or_a_faster_machine_takes_a_model_that_is_not_smaller() -> None:
    for tokens in (3e5, 3e6, 3e7):
        sizes = [size_within(budget(minutes), tokens).parameters for minutes in (1, 5, 15, 60, 240, 1000)]
        assert sizes == sorted(sizes)
        assert len(set(sizes)) > 2
        for minutes in (5, 60):
            slow, fast = (size_within(budget(minutes, speed), tokens).parameters for speed in (SLOW, FAST))
            assert slow <= fast


def test_pairs_that_are_seen_often_take_dropout() -> None:
    seldom, often = size_within(budget(2), 3e7), size_within(budget(600), 3e5)
    assert seldom.dropout < often.dropout


def test_a_budget_says_what_it_takes_and_what_more_time_would() -> None:
    text = explanation(size_within(budget(5), 3e6), budget(5), 3e6)
    assert re.fullmatch(
        r"\d+\.\dM parameters: 5 minutes allow \d+\.\d epochs; \d+ (minutes|hours) would take \d+\.\dM", text
    )


def test_a_budget_makes_settings_that_parse(tmp_path: Path) -> None:
    data = default_recipe(*write(tmp_path, corpus(200)), str(tmp_path / "run"), budget=budget(10))
    settings = parse(TranslationRecipe, data)
    assert settings.model.d_model % settings.model.num_heads == 0
    assert settings.tokenizer.vocab_size <= 1_000


def test_a_run_that_goes_on_in_a_budget_keeps_its_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The speed of another day would choose another model."""
    run, files = tmp_path / "run", write(tmp_path, corpus(200))
    begun = default_recipe(*files, str(run), budget=budget(10))
    (run / "config.yaml").write_text(json.dumps(begun), encoding="utf-8")
    monkeypatch.setattr(module.checkpoint, "list_checkpoints", lambda path: [path])
    again = default_recipe(*files, str(run), budget=budget(10, SLOW))
    assert all(again[part] == begun[part] for part in ("model", "tokenizer", "training"))


def test_a_run_that_an_earlier_version_began_goes_on_with_its_own_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, files = tmp_path / "run", write(tmp_path, corpus(200))
    begun = default_recipe(*files, str(run))
    assert begun["training"].pop("backend") == "kernels"  # as it was before recipes had it
    (run / "config.yaml").write_text(json.dumps(begun), encoding="utf-8")
    monkeypatch.setattr(module.checkpoint, "list_checkpoints", lambda path: [path])
    assert default_recipe(*files, str(run))["training"] == {**begun["training"], "backend": "auto"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("training.averaging={decay: 9}", Error.WRONG_SETTING),
        ("training.max_stepz=3", Error.UNKNOWN_SETTING),
        ("model.num_heads=7", Error.WRONG_SETTING),
        ("training.freeze=[nothing]", Error.UNKNOWN_NAME),
        ("corpus.max_tokens=-1", Error.WRONG_SETTING),
    ],
)
def test_changes_that_suit_no_corpus_are_refused_before_it_is_read(change: str, code: Error) -> None:
    with raises_error(code, change.partition("=")[0]):
        check_changes([change], "runs/none")


def test_changes_that_suit_some_size_are_taken() -> None:
    check_changes(["model.num_heads=16", "tokenizer.type=characters"], "runs/none")
    check_changes(["model.d_model=300", "model.num_heads=3"], "runs/none")


def test_another_type_drops_the_keys_of_the_type_that_was_chosen() -> None:
    data = module.settings_of(SIZES[1][1])
    changed = override(data, ["tokenizer.type=reuse", "tokenizer.run=runs/mine"], TranslationRecipe)
    assert changed["tokenizer"] == {"type": "reuse", "run": "runs/mine"}
    changed = override(data, ["training.schedule.type=cosine"], TranslationRecipe)
    assert changed["training"]["schedule"]["lr"] == data["training"]["schedule"]["lr"]
    typo = override(data, ["tokenizer.type=reuse", "tokenizer.vocab=3"], TranslationRecipe)
    assert typo["tokenizer"] == {"type": "reuse", "vocab": 3}


def test_fine_tuning_counts_the_words_of_scripts_without_spaces(tmp_path: Path) -> None:
    """A line of Chinese is no single word: a fine-tuning on it would end after half of its epochs."""
    steps = {}
    for name, line in (("de", "ein zwei drei vier fünf sechs sieben acht neun zehn"), ("zh", "天" * 20)):
        for side, text in (("src", line), ("tgt", "one two three four five six seven eight nine ten")):
            (tmp_path / f"{name}.{side}").write_text(f"{text}\n" * 400, encoding="utf-8")
        files = [str(tmp_path / f"{name}.{side}") for side in ("src", "tgt")]
        recipe = fine_tuning_recipe(str(RUN), *files, str(tmp_path / name), valid=(files[0], files[1]), doctor="skip")
        steps[name] = recipe["training"]["max_steps"]
    assert steps["de"] == round(30 * 400 * 20 * PIECES_A_STRANGE_WORD / recipe["training"]["batch_tokens"])
    assert steps["zh"] == pytest.approx(steps["de"], rel=0.1)


# -- a company's files ----------------------------------------------------------------------------------------------


@pytest.fixture
def read_with(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """(pairs held out, whether codes are kept) of each reading of the files, which are 3,000 pairs."""
    calls: list[tuple[int, bool]] = []
    monkeypatch.setattr(FilesSource, "pairs", lambda self: range(3_000))
    monkeypatch.setattr(module, "prepare_collection", lambda config, *_, codes: calls.append((config.held_out, codes)))
    return calls


def test_the_recipe_for_files_is_what_is_chosen_for_so_many_pairs(read_with: list[tuple[int, bool]]) -> None:
    given = module.company_recipe(None, ["memories"], ("de", "fr"), None)
    data = module.recipe_for_collection(given, "run")
    files = {"paths": ["memories"]}
    plain = {"run_dir": "run", "corpus": {"src_lang": "de", "tgt_lang": "fr", "files": files}}
    assert recipes.parsed(data, "it") == recipes.parsed({**plain, **module.settings_of(SIZES[1][1])}, "it")
    assert read_with == [(1000, False)]


def test_a_changed_recipe_for_files_keeps_its_settings(tmp_path: Path, read_with: list[tuple[int, bool]]) -> None:
    text = COMPANY.read_text(encoding="utf-8").replace("held_out: 1000", "held_out: 30")
    text = text.replace("  # augment:", "  augment:").replace("  #   tags", "    tags")
    text = text.replace("  type: transformer", "  type: transformer\n  d_model: 256")
    text = text.replace("{type: linear}", "{type: cosine, lr: 1.0e-3}")
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    given = module.company_recipe(str(tmp_path / "mine.yaml"), ["a"], ("de", "fr"), ("x", "y"))
    module.check_changes(["corpus.files.held_out=20"], "run", None, given)
    data = module.recipe_for_collection(given, "run", ["corpus.files.held_out=20"])
    settings: Any = recipes.parsed(data, "it")
    assert (settings.corpus.augment.tags, settings.model.d_model) == (0.1, 256)
    assert (settings.training.schedule.type, settings.training.schedule.lr) == ("cosine", 1e-3)
    assert settings.training.max_steps == SIZES[1][1].max_steps
    assert (settings.corpus.files.columns, settings.corpus.files.held_out) == (("x", "y"), 20)
    assert read_with == [(20, True)]
