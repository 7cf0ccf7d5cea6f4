"""Overrides as people write them: by dotted path alone, by another type, by the name of another toolkit."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error
from typer.testing import CliRunner

from dragoman import config
from dragoman.cli.main import app
from dragoman.errors import DragomanError, Error
from dragoman.tasks import recipes
from dragoman.tasks.settings_reference import Section, sections

ROOT = Path(__file__).parents[2]
RUN = ROOT / "tests/fixtures/run_4f9e9c2/finished"
FILES = {"type": "files", "src": "a", "tgt": "b"}
BARE = {
    "translation": {"src_lang": "de", "tgt_lang": "en", "train": FILES, "valid": FILES},
    "classification": {"train": {"type": "labelled", "path": "a"}, "valid": {"type": "labelled", "path": "a"}},
    "image_classification": {"train": {"type": "idx", "images": "a"}, "valid": {"type": "idx", "images": "a"}},
    "language_modelling": {"train": {"type": "text", "path": "a"}, "valid": {"type": "text", "path": "a"}},
    "masked_language_modelling": {"train": {"type": "text", "path": "a"}, "valid": {"type": "text", "path": "a"}},
}
DEMO = ROOT / "recipes/demo.yaml"


def settings_of(section: Section) -> list[tuple[str, str, str, Any]]:
    """(task, place, key, default) of each setting that has a default, in the first place of its section."""
    place, task = section.places[0], section.tasks[0]
    fields = section.cls.__pydantic_fields__
    known = [(name, fields[name].get_default(call_default_factory=True)) for name in fields if name != "type"]
    return [(task, place, name, value) for name, value in known if type(value) in (int, float, bool, str, list)]


def test_every_setting_is_reached_by_its_path_in_a_recipe_that_says_nothing_of_it() -> None:
    """In a section of a type that is not the default, `type` beside it is enough; a section of a list has a number."""
    reached = 0
    for section in sections():
        for task, place, name, default in settings_of(section):
            if place.startswith("corpus.train") or "sources" in place:
                continue  # the sources that a recipe cannot do without
            place = place.replace("NAME", "mine")
            known = [path for path, _ in config.setting_paths(recipes.JOBS[task].settings) if path == f"{place}.type"]
            kinds = [f"{place}.type={config.tag(section.cls)}"] if len(known) > 1 else []
            value = _text(default)
            data = {"task": task, "run_dir": "runs/none", "corpus": BARE[task]}
            cls = recipes.JOBS[task].settings
            changed = config.override(data, [*kinds, f"{place}.{name}={value}".lstrip(".")], cls)
            part: Any = changed
            for key in [*place.split("."), name] if place else [name]:
                part = part[key]
            assert part == default, f"{place}.{name}"
            refusal = ""
            try:
                config.parse(cls, changed, "here")
            except DragomanError as error:  # a required neighbour, or two that go together: never the path or the type
                refusal = str(error)
            assert "unknown key" not in refusal, refusal
            assert "needs a `type:`" not in refusal, refusal
            reached += not refusal
    assert reached > 220


def _text(value: Any) -> str:
    return "[]" if value == [] else f"{value!r}".lower() if isinstance(value, bool) else f"{value}"


@pytest.mark.parametrize(
    ("change", "key", "value"),
    [
        ("model.d_model=64", "model.d_model", 64),
        ("training.schedule.lr=0.1", "training.schedule.lr", 0.1),
        ("training.averaging.decay=0.5", "training.averaging.decay", 0.5),
        ("decoding.length_penalty.alpha=0.3", "decoding.length_penalty.alpha", 0.3),
        ("+training.schedule.lr=0.1", "training.schedule.lr", 0.1),
        ("++seed=7", "seed", 7),
        ("training.max_steps=1e4", "training.max_steps", 10000),
    ],
)
def test_a_part_that_a_recipe_leaves_out_is_of_the_default_type(
    tmp_path: Path, change: str, key: str, value: Any
) -> None:
    """`+key=value` and `++key=value` are Hydra's ways to say that a key is new; here there is no difference."""
    recipe = tmp_path / "bare.yaml"
    recipe.write_text(config.to_yaml(recipes.load(DEMO)).partition("tokenizer:")[0], encoding="utf-8")
    part: Any = recipes.load(recipe, [change])
    for name in key.split("."):
        part = getattr(part, name)
    assert part == value


def test_another_type_drops_the_keys_of_the_one_before_and_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    """hydra#1896: what the old choice had is merged into the new one."""
    change = "tokenizer.type=characters"
    for _ in range(2):
        assert recipes.load(DEMO, [change]).tokenizer.type == "characters"  # type: ignore[attr-defined]
    assert capsys.readouterr().err == f"{change}: without vocab_size, which it does not have\n"
    data = {"training": {"schedule": {"type": "linear", "lr": 0.1, "warmup_steps": 3}}}
    cls = recipes.JOBS["translation"].settings
    noam = config.override(data, ["training.schedule.type=noam"], cls)
    assert noam["training"]["schedule"] == {"type": "noam", "warmup_steps": 3}
    both = config.override(data, ["training.schedule.type=noam", "training.schedule.lr=1"], cls)
    assert both["training"]["schedule"] == {"type": "noam", "warmup_steps": 3, "lr": 1}  # which parse refuses
    assert config.override(data, ["training.schedule.type=nome"], cls)["training"]["schedule"]["lr"] == 0.1
    odd = {"tokenizer": {"type": "sentencepiece", "vocab_szie": 3}}  # a typo of the file stays, to be refused
    assert "vocab_szie" in config.override(odd, ["tokenizer.type=characters"], cls)["tokenizer"]


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        ("training.lr=1", "training.schedule.lr"),
        ("schedule.lr=1", "training.schedule.lr"),
        ("averaging.decay=0.9", "training.averaging.decay"),
        ("length_penalty.alpha=1", "decoding.length_penalty.alpha"),
        ("learning_rate=1", "training.schedule.lr"),
        ("optimization.lr=1", "training.schedule.lr"),
        ("training.learning-rate=1", "training.schedule.lr"),
        ("batch_size=8", "training.batch_sentences"),
        ("max_steps=8", "training.max_steps"),
        ("beam_size=4", "decoding.beam_size"),
        ("testing.beam_size=4", "decoding.beam_size"),
        ("checkpoint.save_dir=x", "run_dir"),
        ("training.optimizer.lr=1", "training.schedule.lr"),
        ("training.optimizer.momentum=0.9", "type: muon"),
        ("tokenizer=characters", "tokenizer.type=characters"),
        ("training.averaging=none", "training.averaging.type=none"),
        ("corpus.test.mine.src=a", "type:` (files)"),
    ],
)
def test_a_name_of_another_place_or_toolkit_leads_to_ours(change: str, setting: str) -> None:
    with pytest.raises(DragomanError) as caught:
        recipes.load(DEMO, [change])
    assert setting in str(caught.value)
    assert "\n" not in str(caught.value)


REPORTED = """training.learning_rate_warmup training.weight_decay training.batch_size training.batch_type
training.epochs training.validation_freq training.logging_freq training.model_dir testing.beam_size testing.alpha
data.max_sent_length src_vocab_size src_seq_length save_model keep_checkpoint save_checkpoint_steps average_decay
report_every train_steps valid_steps
train_params.warmup_steps train_params.learning_rate train_params.lr_scheduler_type
phase_ratio encoder_layerdrop max_relative_positions transformer_tied_layers num_beam_groups diversity_penalty"""


@pytest.mark.parametrize("name", REPORTED.split())
def test_names_of_reported_recipes_lead_to_ours(name: str) -> None:
    """The recipes of joeynmt#60, OpenNMT-py#2432 and machine.py#116, options as in fairseq#3439 and #2389."""
    with raises_error(Error.UNKNOWN_SETTING, "did you mean"):
        recipes.load(DEMO, [f"{name}=1"])


def test_every_name_of_another_toolkit_leads_to_a_setting_or_an_option_of_ours() -> None:
    settings = [path for path, _ in config.setting_paths(recipes.JOBS["translation"].settings)]
    led = 0
    for name, ours in config.OTHER_NAMES.items():
        places = [path for other in ours for path in settings if f".{path}".endswith(f".{other}")]
        if places and not any(f".{path}".endswith(f".{name}") for path in settings):
            with raises_error(Error.UNKNOWN_SETTING, "did you mean"):
                recipes.load(DEMO, [f"{name}=1"])
            led += 1
    assert led > 200


def test_an_option_of_another_toolkit_leads_to_the_setting() -> None:
    done = CliRunner().invoke(app, ["train", str(DEMO), "--learning-rate", "1"])
    assert done.exit_code == 2
    with raises_error(Error.UNKNOWN_SETTING, "training.schedule.lr"):
        recipes.load(DEMO, ["--learning-rate=1"])


def test_elements_of_lists_are_counted_from_0() -> None:
    data = {"sources": [{"src": "a"}, {"src": "b"}], "weights": [1, 2]}
    changed = config.override(data, ["sources.1.src=c", "weights.0=5"])
    assert changed == {"sources": [{"src": "a"}, {"src": "c"}], "weights": [5, 2]}
    for change in ("sources.2.src=c", "sources.x=c", "weights.-1=3"):
        with raises_error(Error.WRONG_OPTION, change.partition("=")[0].split(".")[1]):
            config.override(data, [change])


TRIED = re.findall(r"`([a-z_.]+=[^`]+)` \|$", (ROOT / "docs/architecture.md").read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize("change", TRIED)
def test_what_the_reading_tour_advises_to_try_builds(change: str, tmp_path: Path) -> None:
    assert len(TRIED) > 8
    changed, before = (recipes.load(DEMO, [*own, f"run_dir={tmp_path}"]) for own in ([change], []))
    assert dataclasses.asdict(changed) != dataclasses.asdict(before)
    assert recipes.check_start(changed) > 1e4


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("run_dir=log/epoch=999-step=87999", "run_dir", "log/epoch=999-step=87999"),  # hydra#266, hydra#1577
        ("run_dir=mlx5_0:1,mlx5_3:1", "run_dir", "mlx5_0:1,mlx5_3:1"),  # cloudai#557
        ("run_dir=2026-11-30", "run_dir", "2026-11-30"),
        ("run_dir=12:30", "run_dir", "12:30"),
        ("run_dir=010", "run_dir", "010"),
        ("training.best_by=[bleu, chrf]", "training.best_by", ["bleu", "chrf"]),  # hydra#836
        ("training.schedule.lr=1e-6", "training.schedule.lr", 1e-6),  # hydra#999
        ("training.schedule.lr=5E-9", "training.schedule.lr", 5e-9),
        ("training.max_steps=1.0", "training.max_steps", 1),  # fairseq#2935
        ("corpus.test.a.sources[1].src=c", "corpus.test.a.sources.1.src", "c"),  # omegaconf#179, oumi#1430
    ],
)
def test_overrides_of_other_programs_reports(text: str, key: str, value: Any) -> None:
    data = {"run_dir": "run", "corpus": BARE["translation"] | {"test": {"a": {"type": "mix", "sources": [FILES] * 2}}}}
    found: Any = config.to_dict(config.parse(recipes.JOBS["translation"].settings, config.override(data, [text])))
    for part in key.split("."):
        found = found[int(part)] if isinstance(found, list) else found[part]
    assert found == value


def test_a_part_that_a_file_names_twice_is_changed_in_one_place() -> None:
    data = config.from_yaml("corpus: {train: &pairs {type: files, src: a, tgt: b}, valid: *pairs}", "recipe.yaml")
    changed = config.override(data, ["corpus.train.src=c"])
    assert (changed["corpus"]["train"]["src"], changed["corpus"]["valid"]["src"]) == ("c", "a")
    assert data["corpus"]["train"]["src"] == "a"


def test_overrides_from_python_keep_their_kinds() -> None:  # SkyRL#1962
    given = {"init_from": None, "run_dir": "1e5", "corpus": {"src_lang": "null"}, "training.best_by": ["bleu"]}
    changed = config.override({}, config.as_overrides(given))
    assert changed == {
        "init_from": None, "run_dir": "1e5", "corpus": {"src_lang": "null"}, "training": {"best_by": ["bleu"]}
    }  # fmt: skip
