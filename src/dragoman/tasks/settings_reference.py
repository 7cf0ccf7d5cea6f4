"""The reference of all settings, made from the classes that declare them.

A field's meaning stands beside it: after `#:` on its own line, or as a string literal below it. It may end with
`[unit]`, and a setting that is newer than 0.1 says so there: `[steps; since 0.2]`. The rest is read off the class.
`dragoman settings` prints the reference, and `make docs` puts it into the site.
"""

import ast
import dataclasses
import difflib
import functools
import inspect
import io
import math
import re
import sys
import textwrap
import tokenize
import typing
from typing import Any, NamedTuple

import yaml
from pydantic_core import PydanticUndefined

from dragoman import config
from dragoman.errors import Error
from dragoman.tasks.base import RecipeSettings
from dragoman.tasks.recipes import JOBS

FIRST_VERSION = "0.1"
SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
NAMES = {int: "integer", float: "number", str: "text", bool: "true or false", type(None): "null"}


HEAD = """# Settings

Every setting of every recipe, made from the code by `dragoman settings --markdown`.
`dragoman settings training.schedule` prints a part of it. A recipe is a YAML file of these keys. On the command
line `key.subkey=value` changes one: `dragoman train recipes/demo.yaml training.max_steps=2000 model.norm=rms`. A part
that names no `type:` is of the default's; another `type` drops the keys of the one before, and says so.

Relative paths are looked up in the current folder, under `$DRAGOMAN_DATA`, and under `./data`.

Where a section has several places (`corpus.train`, `corpus.valid`), its keys are written for the first of them. NAME is
a name that you choose. "required": there is no default. Settings that exclude each other are told apart by `type:`.
"""


class Setting(NamedTuple):
    """One row of the reference."""

    name: str
    type: str
    default: str
    unit: str
    meaning: str
    since: str


@dataclasses.dataclass
class Section:
    """The settings of one class, and every dotted key under which it may stand."""

    cls: Any
    places: list[str]
    tasks: list[str]
    rows: list[Setting]

    @property
    def heading(self) -> str:
        """Its places, its `type:`, and the tasks where it is not for all."""
        places = ", ".join(f"`{place}`" for place in self.places if place) or "A recipe"
        tag = config.tag(self.cls)
        kind = (
            " with `type: {}`{}{}".format(*tag.partition(" ")) if tag and "type" in self.cls.__pydantic_fields__ else ""
        )
        tasks = "" if len(self.tasks) == len(JOBS) else f" ({', '.join(self.tasks)})"
        return places + kind + tasks

    @property
    def summary(self) -> str:
        """The class's own words."""
        return inspect.cleandoc(self.cls.__doc__ or "")


@functools.cache
def sections() -> list[Section]:
    """The settings of every task's recipes, a class once, in the order in which they are met."""
    met: dict[Any, Section] = {}
    for task in JOBS:
        _collect(RecipeSettings, "", task, met)
    for task, job in JOBS.items():
        _collect(job.settings, "", task, met)
    return list(met.values())


def _collect(cls: Any, place: str, task: str, met: dict[Any, Section]) -> None:
    base = next((other for other in cls.__mro__[1:] if other in met and place in met[other].places), None)
    section = met.setdefault(cls, Section(cls, [], [], []))
    if not section.places:
        fields = cls.__pydantic_fields__
        own = inspect.get_annotations(cls) if base else fields  # a subclass in the same place: what differs there
        section.rows = [_setting(cls, name, fields[name]) for name in fields if name in own]
    if place in section.places and task in section.tasks:
        return
    section.places = list(dict.fromkeys([*section.places, place]))
    section.tasks = list(dict.fromkeys([*section.tasks, task]))
    for name, field in cls.__pydantic_fields__.items():
        below = f"{place}.{name}".lstrip(".") + (".NAME" if typing.get_origin(field.annotation) is dict else "")
        for inner in config.settings_classes(field.annotation):
            if not place.startswith(below) and below.count(".sources") < 2:  # a mixture of mixtures: once is enough
                _collect(inner, below, task, met)


def _setting(cls: Any, name: str, field: Any) -> Setting:
    text, unit, since = _meaning(cls, name, field), "", FIRST_VERSION
    if bracket := re.search(r"\s*\[([^\[\]]+)\]$", text):
        notes = [note.strip() for note in bracket[1].split(";")]
        since = next((note.removeprefix("since ") for note in notes if note.startswith("since ")), since)
        unit = "; ".join(note for note in notes if not note.startswith("since "))
        text = text[: bracket.start()]
    return Setting(name, _type(field.annotation, field.metadata), _default(field), unit, text, since)


def _default(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    if dataclasses.is_dataclass(value):
        value = {"type": value.type} if hasattr(value, "type") else {}
    return yaml.safe_dump(value, default_flow_style=True, width=1000, allow_unicode=True).removesuffix("...\n").strip()


def _type(annotation: Any, metadata: Any = ()) -> str:
    """A type in words: `integer ≥ 1`, `a | b`, `settings of type x | y`."""
    for item in metadata:
        if isinstance(item, config.OneOf):
            return " | ".join(item.names)
    bounds = [
        f"{sign} {_number(getattr(item, name))}"
        for item in metadata
        for name, sign in SIGNS.items()
        if hasattr(item, name)
    ]
    classes, arguments = config.settings_classes(annotation), typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _type(arguments[0], [*getattr(arguments[1], "metadata", arguments[1:]), *metadata])
    if origin is typing.Literal:
        return " | ".join(str(value) for value in arguments)
    if origin in (list, tuple, dict):
        kind = {"list": "list", "tuple": "list", "dict": "mapping"}[origin.__name__]
        return f"{kind} of {_type(arguments[-1] if origin is dict else arguments[0])}"
    if classes:
        tags = [tag for tag in map(config.tag, classes) if tag]
        others = [item for item in arguments if typing.get_origin(item) is list]  # settings, or a list in their place
        null = "".join(f" | {_type(item)}" for item in others) + (" | null" if type(None) in arguments else "")
        return ("settings" + (f" of type {' | '.join(tags)}" if tags else "")) + null
    if arguments:  # a union
        return " | ".join(_type(item, metadata if item is not type(None) else ()) for item in arguments)
    return " ".join(
        [NAMES.get(annotation, getattr(annotation, "__name__", str(annotation))), ", ".join(bounds)]
    ).strip()


def _number(value: float) -> str:
    exponent = math.log2(value) if value >= 1024 else 0.5
    return f"2^{exponent:.0f}" if exponent.is_integer() else f"{value:,g}"


def _meaning(cls: Any, name: str, field: Any) -> str:
    """The text beside the field, in the class or in the nearest base that has one.

    A choice (`type`) means what its class says, and so does a field whose settings are of one class.
    """
    for owner in cls.__mro__:
        if text := _written(owner.__module__).get((owner.__qualname__, name)):
            return text
    classes = [cls] if name == "type" else config.settings_classes(field.annotation)
    words = inspect.cleandoc(classes[0].__doc__ or "") if len(classes) == 1 else ""
    return words.partition("\n\n")[0].replace("\n", " ")


@functools.cache
def _written(module: str) -> dict[tuple[str, str], str]:
    """(class, field): what a module's source says beside the fields of its classes."""
    source = inspect.getsource(sys.modules[module]) if hasattr(sys.modules[module], "__file__") else ""
    comments = {
        token.start[0]: token.string.removeprefix("#:").strip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and token.string.startswith("#:")
    }
    descriptions: dict[tuple[str, str], str] = {}
    for cls in (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)):
        for statement, below in zip(cls.body, [*cls.body[1:], ast.Pass()], strict=True):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                text = comments.get(statement.end_lineno or 0, "")
                if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                    text = f"{text} {below.value.value!s}"
                descriptions[cls.name, statement.target.id] = " ".join(text.split())
    return descriptions


def matching(prefix: str) -> list[tuple[Section, str, list[Setting]]]:
    """(section, place, rows) of the settings at or below a dotted key, or of that name in any place.

    Raises DragomanError, with the nearest key or name, where there is none.
    """
    keys = [_key(place, row) for section in sections() for place in section.places for row in section.rows]
    names = {key.rpartition(".")[2] for key in keys}
    at_key = any(_below(key, prefix) for key in keys)
    if not at_key and prefix not in names:
        named = [key for key in keys if key.endswith("." + prefix.rpartition(".")[2])]
        others = config.OTHER_NAMES.get(prefix.rpartition(".")[2], ())
        named = named or [key for other in others for key in keys if f".{key}".endswith(f".{other}")]
        near = named or difflib.get_close_matches(prefix, [*keys, *names], n=1)
        raise Error.UNKNOWN_SETTING(f"no setting `{prefix}`", f"did you mean `{near[0]}`?" if near else None)
    result = []
    for section in sections():
        for place in section.places:
            rows = [row for row in section.rows if (_below(_key(place, row), prefix) if at_key else row.name == prefix)]
            if rows:
                result.append((section, place, rows))
                break
    return result


def _key(place: str, row: Setting) -> str:
    return f"{place}.{row.name}".lstrip(".")


def _below(key: str, prefix: str) -> bool:
    return not prefix or f"{key}.".startswith(f"{prefix}.")


def text(prefix: str = "") -> str:
    """The reference for a terminal: a line on what a setting may be, a line on what it means."""
    lines = []
    for section, place, rows in matching(prefix):
        lines.append(section.heading.replace("`", ""))
        for row in rows:
            facts = [row.type, row.unit, f"since {row.since}"]
            lines.append(f"  {_key(place, row)} = {row.default}   ({'; '.join(fact for fact in facts if fact)})")
            lines += textwrap.wrap(row.meaning, 110, initial_indent=" " * 6, subsequent_indent=" " * 6)
        lines.append("")
    return "\n".join(lines)


def markdown() -> str:
    """The reference as a page of the site."""
    lines = [HEAD]
    for section, place, rows in matching(""):
        lines += [f"## {section.heading}", "", section.summary, ""]
        if rows := [row for row in rows if row.name != "type"]:  # that is in the heading
            lines += ["| key | type | default | unit | meaning | since |", "|---|---|---|---|---|---|"]
        for row in rows:
            cells = [f"`{_key(place, row)}`", row.type, f"`{row.default}`", row.unit, row.meaning, row.since]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines += [""] if rows else []
    return "\n".join(lines).rstrip("\n") + "\n"
