"""Settings: what is accepted, what is refused, and in which words."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from tests.errors import raises_error

from dragoman.config import Field, by_type, changes, override, parse, settings, to_dict, to_yaml
from dragoman.errors import DragomanError, Error
from dragoman.runs.atomic_io import read_yaml


def load(cls: Any, path: Path, overrides: Iterable[str] = ()) -> Any:
    """Settings from a file with dotted overrides on top."""
    return parse(cls, override(read_yaml(path), overrides), source=str(path))


@settings
class Circle:
    type: Literal["circle"] = "circle"
    radius: float = Field(default=1.0, gt=0)


@settings
class Box:
    type: Literal["box"] = "box"
    width: float
    src: str = ""


Shape = Annotated[Circle | Box, by_type]


@settings
class Inner:
    steps: int = 10
    mode: Literal["fast", "slow"] = "fast"
    limit: int | None = None


@settings
class Outer:
    name: str
    inner: Inner = Field(default_factory=Inner)
    shape: Shape = Field(default_factory=Circle)
    extra: dict[str, Shape] = Field(default_factory=dict)
    sizes: tuple[int, ...] = ()


def refusal(data: Mapping[str, Any]) -> str:
    """What the refusal of `data` says: always a DragomanError, always one line, always with its source."""
    with pytest.raises(DragomanError) as caught:
        parse(Outer, data, source="here.yaml")
    text = str(caught.value)
    assert text.startswith("here.yaml: ")
    assert "\n" not in text
    return text.removeprefix("here.yaml: ")


def refused_file(path: Path, content: bytes) -> DragomanError:
    path.write_bytes(content)
    with pytest.raises(DragomanError) as caught:
        read_yaml(path)
    assert caught.value.file == str(path)
    assert "\n" not in str(caught.value)
    return caught.value


def test_what_is_left_out_has_the_default_of_its_class() -> None:
    value = parse(Outer, {"name": "n"})
    assert (value.inner, value.shape, value.extra) == (Inner(steps=10, mode="fast", limit=None), Circle(radius=1.0), {})


def test_a_type_key_chooses_the_class() -> None:
    data = {"name": "n", "shape": {"type": "box", "width": 2}, "extra": {"a": {"type": "circle", "radius": 3}}}
    value = parse(Outer, data)
    assert value.shape == Box(width=2.0)
    assert value.extra == {"a": Circle(radius=3.0)}


def test_settings_cannot_be_changed_afterwards() -> None:
    value = parse(Outer, {"name": "n"})
    with pytest.raises(AttributeError):
        value.name = "other"  # type: ignore[misc]


def test_settings_written_as_yaml_load_as_equal_settings(tmp_path: Path) -> None:
    value = parse(
        Outer,
        {
            "name": "Größe: 翻译 no",
            "inner": {"limit": 3},
            "extra": {"box": {"type": "box", "width": 1e-9}},
            "sizes": [1, 2],
        },
    )
    path = tmp_path / "settings.yaml"
    path.write_text(to_yaml(value), encoding="utf-8")
    assert load(Outer, path) == value
    assert parse(Outer, to_dict(value)) == value
    assert list(to_dict(value)) == ["name", "inner", "shape", "extra", "sizes"]
    assert "翻译" in to_yaml(value)


def test_load_puts_overrides_on_top_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("name: n\ninner:\n  steps: 3\n  mode: slow\n", encoding="utf-8")
    value = load(Outer, path, ["inner.steps=4", "shape={type: box, width: 1.5}", "inner.limit=null"])
    assert value.inner == Inner(steps=4, mode="slow", limit=None)
    assert value.shape == Box(width=1.5)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"nme": "x"}, "unknown key `nme`: did you mean `name`?"),
        ({"inner": {"setps": 1}}, "unknown key `inner.setps`: did you mean `steps`?"),
        ({"inner": {"zzz": 1}}, "unknown key `inner.zzz`: known keys here: steps, mode, limit"),
        ({"shape": {"type": "circle", "radios": 1}}, "unknown key `shape.radios`: did you mean `radius`?"),
        ({"shape": {"type": "box", "width": 1, "r": 1}}, "unknown key `shape.r`: known keys here: type, width, src"),
        ({"extra": {"a": {"type": "box", "width": 1, "widht": 1}}},
         "unknown key `extra.a.widht`: did you mean `width`?"),
        ({"extra": {"src": {"type": "circle", "radus": 1}}}, "unknown key `extra.src.radus`: did you mean `radius`?"),
        ({"extra": {"box": {"type": "circle", "radus": 1}}}, "unknown key `extra.box.radus`: did you mean `radius`?"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_refused_with_its_path_and_the_nearest_known_one(data: dict[str, Any], message: str) -> None:
    assert refusal({"name": "n", **data}) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"inner": {"steps": "many"}}, "`inner.steps`: should be a valid integer"),
        ({"inner": {"steps": 1.5}}, "`inner.steps`: should be a valid integer"),
        ({"inner": {"mode": "medium"}}, "`inner.mode`: should be 'fast' or 'slow' (given: 'medium')"),
        ({"inner": 3}, "`inner`: should be a dictionary"),
        ({"inner": None}, "`inner`: should be a dictionary"),
        ({"name": False}, "`name`: should be a valid string (given: False)"),  # YAML reads `no` as false
        ({"shape": {"type": "circle", "radius": 0}}, "`shape.radius`: should be greater than 0 (given: 0)"),
        ({"extra": {"a": {"type": "circle", "radius": "x"}}}, "`extra.a.radius`: should be a valid number"),
        ({"extra": [1]}, "`extra`: should be a valid dictionary"),
        ({"sizes": [1, "two"]}, "`sizes.1`: should be a valid integer"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path_and_what_would_do(data: dict[str, Any], message: str) -> None:
    assert refusal({"name": "n", **data}).startswith(message)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_are_refused(number: float) -> None:
    text = refusal({"name": "n", "shape": {"type": "circle", "radius": number}})
    assert text.startswith("`shape.radius`: should be a finite number")


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    assert refusal({"name": "n", "shape": {"type": "circel"}}) == (
        "`shape.type`: no `circel`: did you mean `circle`? known: circle, box"
    )
    assert refusal({"name": "n", "shape": {"type": "zzz"}}) == "`shape.type`: no `zzz`: known: circle, box"
    assert refusal({"name": "n", "extra": {"a": {"type": "bax"}}}).startswith("`extra.a.type`: no `bax`")


def test_a_missing_type_and_a_missing_key_are_named() -> None:
    assert refusal({"name": "n", "extra": {"a": {"radius": 1}}}) == "`extra.a` needs a `type:` (circle)"
    assert refusal({"name": "n", "shape": {"type": "box"}}) == "`shape.width` is missing"
    assert refusal({}) == "`name` is missing"


def test_all_mistakes_are_told_at_once() -> None:
    text = refusal({"nam": "n", "inner": {"steps": "x"}, "shape": {"type": "box"}})
    assert {"`nam`", "`name`", "`inner.steps`", "`shape.width`"} <= {word.strip(":;") for word in text.split()}


def test_of_many_mistakes_the_first_ten_are_told() -> None:
    said = refusal({"name": "a", "sizes": ["x"] * 200})
    assert said.count("`sizes.") == 10
    assert said.endswith("; and 190 more")


def test_files_that_hold_no_settings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    for content, code, line in [
        (b"- a\n- b\n", Error.WRONG_SHAPE, None),
        (b"5\n", Error.WRONG_SHAPE, None),
        (b"a: [1\n", Error.BAD_SYNTAX, 2),
        (b"a: b\n\tc: d\n", Error.BAD_SYNTAX, 2),
        ("a: ä\n".encode("latin-1"), Error.NOT_UTF8, None),
    ]:
        error = refused_file(path, content)
        assert (error.code, error.line) == (code, line)
    with raises_error(Error.MISSING_FILE, "absent.yaml"):
        read_yaml(tmp_path / "absent.yaml")


def test_an_empty_file_is_an_empty_mapping(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("# nothing yet\n", encoding="utf-8")
    assert read_yaml(path) == {}


def test_a_key_written_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    assert str(refused_file(path, b"a: 1\nb: 2\na: 3\n")).endswith(
        "yaml:3: not valid YAML: key 'a' again (first on line 1)"
    )
    error = refused_file(path, b"x:\n  a: 1\n  b: 2\n  b: 3\n")
    assert (error.code, error.line) == (Error.BAD_SYNTAX, 4)
    path.write_text("a: {k: 1}\nb: {k: 1}\n", encoding="utf-8")
    assert read_yaml(path) == {"a": {"k": 1}, "b": {"k": 1}}  # the same key in two places is no repetition


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    target = tmp_path / "made"
    error = refused_file(tmp_path / "settings.yaml", f"a: !!python/object/apply:os.mkdir ['{target}']\n".encode())
    assert error.code is Error.BAD_SYNTAX
    assert not target.exists()


def test_overrides_reach_deep_and_leave_the_data_alone() -> None:
    data = {"a": {"b": 1, "c": [1, 2]}, "d": 5}
    assert override(data, ["a.b=2", "x.y.z=new", "d.e=3", "a.c=[]", "t=a=b"]) == {
        "a": {"b": 2, "c": []},
        "d": {"e": 3},
        "x": {"y": {"z": "new"}},
        "t": "a=b",
    }
    assert data == {"a": {"b": 1, "c": [1, 2]}, "d": 5}


MARKS = """#1|data #2/a.txt|a#b|runs/[1]|[de] a.txt|{x}.txt|a: b|a: b: c|C:\\a|http://a:80/b|- a|@a|*.txt|%a|!a|no|
epoch=9-step=8.pt"""


@pytest.mark.parametrize("text", MARKS.replace("\n", "").split("|"))
def test_a_value_of_an_override_is_the_text_where_yaml_would_lose_some_of_it(text: str) -> None:
    """hydra#1074 (`@`), hydra#1577, hydra#938, omegaconf#56 (`=`): names of files with marks that mean something."""
    assert override({}, [f"a={text}"]) == {"a": text}


def test_a_value_of_an_override_is_yaml_where_that_says_all_of_it() -> None:
    values = {
        "": None,
        "null": None,
        "0.001": 0.001,
        "'#1'": "#1",
        "[a, b]": ["a", "b"],
        "{a: 1, b: [2]}": {"a": 1, "b": [2]},
    }
    assert {text: override({}, [f"a={text}"])["a"] for text in values} == values


@pytest.mark.parametrize("text", ["max_steps", "=3", " =3", "", "a=[1", "a={b: 1"])
def test_an_override_that_cannot_be_read_is_refused_by_its_own_words(text: str) -> None:
    with raises_error(Error.WRONG_OPTION) as caught:
        override({}, [text])
    assert str(caught.value).startswith(f"override {text!r}: ")
    assert "\n" not in str(caught.value)


def test_changes_are_told_by_dotted_key_none_for_a_side_without_it() -> None:
    old = {"a": {"b": 1, "c": {"d": 2}}, "gone": 1, "same": [1]}
    new = {"a": {"b": 1, "c": {"d": 3}}, "same": [1], "came": {"x": 1}}
    assert changes(old, new) == [("a.c.d", 2, 3), ("gone", 1, None), ("came", None, {"x": 1})]
    assert changes(old, old) == []


@pytest.mark.parametrize(
    "text", ["a: !!timestamp 2024-13-45", "a: " + "9" * 5000, "a: !!int x", "a: !!bool x", "a: !!map [a]",
             "a: !!set [x]", "a: !!timestamp x", "a: !!float x", "!!map abc"]
)  # fmt: skip
def test_values_that_are_none_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "recipe.yaml").write_text(text + "\n", encoding="utf-8")
    with raises_error(Error.BAD_SYNTAX, "recipe.yaml") as caught:
        read_yaml(tmp_path / "recipe.yaml")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000
