"""The reference of settings: complete, fresh, and found by key and by name."""

from tests.errors import raises_error
from typer.testing import CliRunner

from dragoman import config
from dragoman.cli.main import app
from dragoman.errors import Error
from dragoman.tasks.recipes import JOBS
from dragoman.tasks.settings_reference import matching, sections, text


def test_the_command_prints_every_setting_for_a_terminal_and_as_a_page() -> None:
    keys = [f"{place}.{row.name}".lstrip(".") for _, place, rows in matching("") for row in rows]
    assert len(keys) > 300
    printed, page = (CliRunner().invoke(app, ["settings", *form]).stdout for form in ([], ["--markdown"]))
    assert [key for key in keys if f"  {key} = " not in printed] == []
    assert [key for key in keys if f"| `{key}` | " not in page and not key.endswith(".type")] == []


def test_every_setting_says_what_it_means() -> None:
    silent = [f"{part.cls.__name__}.{row.name}" for part in sections() for row in part.rows if not row.meaning]
    assert not silent


def test_every_settings_class_of_every_task_is_there() -> None:
    known = {section.cls for section in sections()}
    wanted = [job.settings for job in JOBS.values()]
    while wanted:
        cls = wanted.pop()
        for field in cls.__pydantic_fields__.values():  # type: ignore[attr-defined]
            inner = config.settings_classes(field.annotation)
            assert known.issuperset(inner)
            wanted += [other for other in inner if other not in wanted]


def test_a_row_has_type_default_unit_and_version() -> None:
    [(_, place, [row])] = matching("training.max_steps")
    assert place == "training"
    assert row[:4] == ("max_steps", "integer ≥ 1", "5000", "steps")
    assert row.since == "0.1"
    [(_, _, [row])] = matching("corpus.train.size")[:1]
    assert (row.type, row.default) == ("integer ≥ 1 | null", "null")
    [(_, _, [row])] = matching("run_dir")
    assert row.default == "required"


def test_a_part_is_found_by_key_by_place_and_by_name() -> None:
    assert {place for _, place, _ in matching("training.schedule")} == {"training", "training.schedule"}
    assert text("training.optimizer.others").count("training.optimizer.others.beta1 = 0.9 ") == 1
    assert len(matching("label_smoothing")) == 2  # a language model has a default of its own
    assert "training.label_smoothing = 0.0" in text("label_smoothing")


def test_an_unknown_key_is_refused_with_the_nearest() -> None:
    with raises_error(Error.UNKNOWN_SETTING):
        text("training.max_step")
    with raises_error(Error.UNKNOWN_SETTING):
        text("training.lr")
    with raises_error(Error.UNKNOWN_SETTING):
        text("lable_smoothing")
    with raises_error(Error.UNKNOWN_SETTING):
        text("zzzzzz")
