"""Strict settings: YAML or dotted overrides in, frozen dataclasses out. Knows nothing of translation.

A settings class stands beside the thing that it sets (`TransformerConfig` in `models/transformer.py`) and is made with
`@settings`. Choices that exclude each other are classes told apart by their `type:` (`Annotated[A | B, by_type]`).
A default exists once: in the class. Unknown keys are refused, with their path and the nearest known key.
"""

import copy
import dataclasses
import difflib
import functools
import inspect
import itertools
import json
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, dataclass_transform

import pydantic
import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema

from dragoman.errors import DragomanError, Error

T = TypeVar("T")

by_type = Field(discriminator="type")
"""Marks a union of settings classes that are told apart by their `type:` key."""


class OneOf:
    """Marks a setting that takes one of the names of a table: `Annotated[str, OneOf(NORMS)]`."""

    def __init__(self, *tables: Iterable[str]) -> None:
        self.names = [name for table in tables for name in table]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.literal_schema(self.names)


MAX_BYTES = 2**20
MAX_NODES = 100_000
"""Limits of a YAML file, which may come from strangers."""

MAX_FINDINGS = 10
"""Faults of settings that one error lists."""
MAX_PLACES = 3
"""Settings of the same name that a hint lists; where there are more, it lists none."""

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=True)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field, dataclasses.field))
def settings(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only dataclass that validates its fields and refuses unknown ones."""
    return pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=_CONFIG)(cls)  # type: ignore[return-value]


_BOOL, _INT, _DATE = (f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "timestamp"))


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, which in addition refuses a key written twice (YAML itself lets the last one win).

    True and false are the words of YAML 1.2 alone: `no` is Norwegian. A setting that is true or false takes `no`, too.
    As in YAML 1.2, 1e-3 is a number, and 12:30, 010 and 2026-11-30 are texts: names of runs.
    """

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise yaml.MarkedYAMLError(problem="no mapping", problem_mark=node.start_mark)
        seen: dict[Any, int] = {}
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool):
                continue
            if key in seen:
                problem = f"key {key!r} again (first on line {seen[key]})"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            seen[key] = key_node.start_mark.line + 1
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {
    letter: [one for one in resolvers if one[0] not in (_BOOL, _INT, _DATE)]
    for letter, resolvers in _Loader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile("(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver(_INT, re.compile("[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F]+)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def from_yaml(text: str, source: str) -> dict[str, Any]:
    """The mapping in a YAML text. Raises DragomanError, which names `source`, for anything else."""
    return copy.deepcopy(_read(text, source))


@functools.lru_cache(maxsize=4)  # several parts of a program read the recipe of a run
def _read(text: str, source: str) -> dict[str, Any]:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None and _written_out(node, {}) > MAX_NODES:
            raise Error.TOO_LARGE(f"aliases make it more than {MAX_NODES:,} values", file=source)
        data = None if node is None else loader.construct_document(node)
    except RecursionError as error:
        raise Error.BAD_SYNTAX("nested too deeply", file=source) from error
    except DragomanError:
        raise
    except (
        yaml.YAMLError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:  # a date of no calendar, `!!int x`
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or " ".join(str(error).split())[:300]
        line = None if mark is None else mark.line + 1
        hint = "in double quotes a \\ is written twice; single quotes take it as it is" if "escape" in reason else None
        raise Error.BAD_SYNTAX(f"not valid YAML: {reason}", hint, file=source, line=line) from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise Error.WRONG_SHAPE(f"expected `key: value` lines, found {type(data).__name__}", file=source)
    return data


def _written_out(node: yaml.Node, known: dict[int, int]) -> int:
    """Number of values of a node once each of its aliases is written out: a few lines can stand for billions."""
    if id(node) not in known:
        known[id(node)] = MAX_NODES + 1  # until it is counted: a node inside of itself never ends
        children = [] if isinstance(node, yaml.ScalarNode) else node.value
        if isinstance(node, yaml.MappingNode):
            children = itertools.chain(*node.value)
        known[id(node)] = 1 + sum(_written_out(child, known) for child in children)
    return known[id(node)]


def override(
    data: Mapping[str, Any],
    overrides: Sequence[str],
    cls: Any = None,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """`data` with `a.b=value` overrides applied, values read by `_value`; `data` itself stays as it is.

    Lists are entered by number, from 0. With a settings class, an override of a `type:` also drops the keys of the type
    before, but for those that are overridden themselves; `report` gets a line that names them.

    >>> override({"training": {"max_steps": 100}}, ["training.max_steps=200", "model.position={type: learned}"])
    {'training': {'max_steps': 200}, 'model': {'position': {'type': 'learned'}}}
    """
    result = dict(data)
    paths = [text.partition("=")[0].strip().lstrip("+") for text in overrides]  # `+key=value` is Hydra's for a new key
    paths = [re.sub(r"\[(\d+)\]", r".\1", path) for path in paths]  # and `sources[0]` OmegaConf's for an element
    for path, text in zip(paths, overrides, strict=True):
        _, equals, value = text.partition("=")
        if not equals or not path:
            raise Error.WRONG_OPTION(
                f"override {text!r}", "write it as key.subkey=value, for example training.max_steps=200"
            )
        *parents, last = path.split(".")
        try:
            read = _value(value)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise Error.WRONG_OPTION(f"override {text[:200]!r}: the value is not valid YAML") from error
        place = _place(result, parents, text)
        had = set(place) if isinstance(place, dict) else set()
        place[_key(place, last, text)] = read
        if cls is not None and isinstance(place, dict):
            given = [other.removeprefix(".".join([*parents, ""])).partition(".")[0] for other in paths]
            left = _of_another_type(_classes_at(cls, data, parents), _classes_at(cls, result, parents), last, had)
            dropped = [key for key in place if key in left and key not in given]
            for key in dropped:
                del place[key]
            if dropped:
                report(f"{text}: without {', '.join(dropped)}, which it does not have")
    return result


def _of_another_type(before: Sequence[Any], after: Sequence[Any], key: str, had: set[str]) -> set[str]:
    """The settings that a part is left without, as its `key` was changed: it is of another class now.

    A type may have a second class, of files, which it is by its keys: `tokenizer.model=spm.model`. `had`: the keys of
    the part before.
    """
    if len({_type(option) for option in after}) != 1:
        return set()
    first, *others = (set(option.__pydantic_fields__) for option in after)
    if key == "type":
        return {name for option in before for name in option.__pydantic_fields__}.difference(first, *others)
    of_files = set().union(*others) - first
    return had - {"type"} if key in of_files and not had & of_files else set()


def as_overrides(overrides: Mapping[str, Any] | Iterable[str] | str | None) -> list[str]:
    """Overrides as `override` takes them: of a mapping, nested or of dotted keys, or as they are.

    >>> as_overrides({"training": {"max_steps": 9, "best_by": ["bleu"]}, "model.type": "lstm"})
    ['training.max_steps=9', 'training.best_by=["bleu"]', 'model.type="lstm"']
    """
    if overrides is None or isinstance(overrides, str):
        return [overrides] if overrides else []
    if not isinstance(overrides, Mapping):
        return list(overrides)
    assignments = []
    for key, value in overrides.items():
        if isinstance(value, Mapping) and value:
            assignments += [f"{key}.{inner}" for inner in as_overrides(value)]
        else:
            assignments.append(f"{key}={json.dumps(value, ensure_ascii=False, default=str)}")
    return assignments


def _place(data: dict[str, Any], parents: Sequence[str], text: str) -> Any:
    """The mapping or list below these keys, made where there is none; what stands on the way is copied, as a part of a
    YAML file may stand in several places (`*name`)."""
    place: Any = data
    for parent in parents:
        key = _key(place, parent, text)
        if isinstance(place, dict) and not isinstance(place.get(key), dict | list):
            place[key] = {}
        place[key] = copy.copy(place[key])
        place = place[key]
    return place


def _key(place: Any, key: str, text: str) -> Any:
    """A key of a mapping, or the number of a list's element."""
    if isinstance(place, dict):
        return key
    if not isinstance(place, list) or not (key.isdecimal() and int(key) < len(place)):
        count = len(place) if isinstance(place, list) else 0
        raise Error.WRONG_OPTION(f"override {text!r}: `{key}` is none of {count} elements, which count from 0")
    return int(key)


def _value(text: str) -> Any:
    """The value of an override: YAML where that is a number, a word, a text in quotes, or a list or keys in brackets;
    else the text as it stands, as in names of files with marks that mean something in YAML.

    >>> [_value(text) for text in ("0.5", "[de, en]", "'1'", "a #1.txt", "[de] a.txt", "part: one")]
    [0.5, ['de', 'en'], '1', 'a #1.txt', '[de] a.txt', 'part: one']
    """
    stripped = text.strip()
    if stripped.startswith("!"):
        return stripped
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        is_whole = node is not None and not text[node.end_mark.index :].strip()
    except yaml.YAMLError:
        closing = {"[": "]", "{": "}"}.get(stripped[:1])
        if stripped[:1] in ("'", '"') or (closing and closing not in stripped[1:-1]):
            raise
        return stripped
    if stripped and (not is_whole or (isinstance(node, yaml.CollectionNode) and not node.flow_style)):
        return stripped
    return None if node is None else loader.construct_document(node)


def merged(data: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Plain settings, replaced by the settings of `over`. A part with another `type:` replaces the whole part.

    >>> merged({"a": {"type": "x", "n": 1}, "b": {"m": 2}}, {"a": {"type": "y"}, "b": {"k": 3}})
    {'a': {'type': 'y'}, 'b': {'m': 2, 'k': 3}}
    """
    result = dict(data)
    for key, value in over.items():
        own = result.get(key)
        if isinstance(own, Mapping) and isinstance(value, Mapping) and value.get("type") in (None, own.get("type")):
            value = merged(own, value)
        result[key] = value
    return result


def parse(cls: type[T], data: Mapping[str, Any], source: str = "settings") -> T:
    """Validated settings of class `cls` from plain data. A part without a `type:` is of the type that is the default.

    Raises DragomanError, one line for all findings: the path of each key, what is wrong, the nearest known key.
    """
    try:
        return _adapter(cls).validate_python(_typed(cls, data))
    except ValidationError as error:
        errors = error.errors()
        findings = [_finding(cls, item) for item in errors if not _is_of_other_kind(item, errors)]
        unknown = any(item["type"] in _UNKNOWN_KEY for item in errors)
        code = Error.UNKNOWN_SETTING if unknown else Error.WRONG_SETTING
        more = [f"and {len(findings) - MAX_FINDINGS} more"] if len(findings) > MAX_FINDINGS else []
        raise code("; ".join([*findings[:MAX_FINDINGS], *more]), file=source) from None


def changed(value: T, changes: Mapping[str, Any], source: str) -> T:
    """Settings with some of their fields changed; errors are as in `parse`."""
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}  # type: ignore[arg-type]
    return parse(type(value), {**fields, **changes}, source)


def check_names(what: str, given: Iterable[str], known: Any, hint: str | None = None) -> None:
    """Raises DragomanError for an option of `what` that a settings class, or a function, does not have."""
    if not isinstance(known, type):
        names = [name for name, one in inspect.signature(known).parameters.items() if one.kind != one.VAR_KEYWORD]
    else:
        names = [field.name for field in dataclasses.fields(known)]
    for name in given:
        if name not in names:
            near = nearest(name, names)
            raise Error.UNKNOWN_SETTING(
                f"{what}: no option `{name}`", hint_of(name, names) if near or not hint else hint
            )


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name that is meant: by what other toolkits call it, or by its letters."""
    others = (other for other in OTHER_NAMES.get(name.replace("-", "_"), ()) if other in known)
    return next(others, None) or next(iter(difflib.get_close_matches(name, known, n=1)), None)


def hint_of(name: str, known: Sequence[str], where: str = "") -> str:
    """A hint for an unknown name: the most similar known name, or all known names."""
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near else f"known{where}: {', '.join(known)}"


def to_dict(value: Any) -> dict[str, Any]:
    """Settings as plain data (dicts, lists, numbers, strings): what `parse` takes back to equal settings."""
    return typing.cast(dict[str, Any], _adapter(type(value)).dump_python(value, mode="json"))


def to_yaml(value: Any) -> str:
    """Settings as YAML text, in the order of the fields."""
    return yaml.safe_dump(to_dict(value), sort_keys=False, allow_unicode=True, width=120)


def changes(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> list[tuple[str, Any, Any]]:
    """Where two plain settings differ: (dotted key, old value, new value), None where a side lacks the key.

    >>> changes({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}})
    [('a.c', 2, 3)]
    """
    differences: list[tuple[str, Any, Any]] = []
    for key in dict.fromkeys([*old, *new]):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            differences += changes(before, after, f"{path}{key}.")
        elif before != after:
            differences.append((f"{path}{key}", before, after))
    return differences


_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)
"""Building one takes milliseconds; each class needs it once."""


_UNKNOWN_KEY = ("unexpected_keyword_argument", "extra_forbidden")
"""Pydantic's names for a key that a settings class does not have."""


def _finding(cls: Any, item: Any) -> str:
    location = [str(part) for part in item["loc"] if not str(part).startswith("list[")]
    known, keys, classes = _walk(cls, location)
    path, given = ".".join(keys), item.get("input")
    if isinstance(given, str) and given in map(_type, classes):
        return f"`{path}`: did you mean `{path}.type={given}`?"
    match item["type"]:
        case kind if kind in _UNKNOWN_KEY:
            return _unknown(cls, keys, known, given)
        case "missing" | "missing_keyword_only_argument" | "missing_argument":
            return f"`{path}` is missing"
        case "union_tag_invalid":
            name, tags = item["ctx"]["tag"], item["ctx"]["expected_tags"].replace("'", "")
            near = difflib.get_close_matches(name, tags.split(", "), n=1)
            return f"`{path}.type`: no `{name}`: " + (f"did you mean `{near[0]}`? " if near else "") + f"known: {tags}"
        case "union_tag_not_found":
            fitting = [cls for cls in classes if set(given) <= set(cls.__pydantic_fields__)]
            types = dict.fromkeys(filter(None, map(_type, fitting or classes)))
            return f"`{path}` needs a `type:` ({', '.join(types)})"
    shown = f" (given: {given!r})" if not isinstance(given, Mapping | list) or not given else ""
    message = item["msg"].removeprefix("Value error, ").replace("Input should", "should")
    return f"`{path}`: {message}{shown}" if path else f"{message}{shown}"


def _unknown(cls: Any, keys: list[str], known: list[str], value: Any) -> str:
    """The finding for an unknown key: the types that have the key, or its right place, or the nearest known key."""
    while isinstance(value, Mapping) and len(value) == 1:
        key, value = next(iter(value.items()))
        keys = [*keys, str(key)]
    path = ".".join(keys)
    every = setting_paths(cls)
    beside = [owner for place, owner in every if place.rpartition(".")[0] == path.rpartition(".")[0]]
    own = {_type(owner) for owner in beside if set(owner.__pydantic_fields__) == set(known)}
    kinds = dict.fromkeys(_type(owner) for place, owner in every if place == path)
    if kinds and not own & kinds.keys():
        return f"unknown key `{path}`: it is of {' or '.join(f'`type: {kind}`' for kind in kinds)}"
    if not kinds and (near := _places(keys, list(dict.fromkeys(place for place, _ in every)))):
        return f"unknown key `{path}`: did you mean {' or '.join(f'`{place}`' for place in near)}?"
    return f"unknown key `{path}`: {hint_of(keys[-1], known, ' keys here')}"


def _places(keys: list[str], every: Sequence[str]) -> list[str]:
    """The settings of the same last names in other places, or that other toolkits call so."""
    for first in range(len(keys)):
        ends = [place for place in every if f".{place}".endswith("." + ".".join(keys[first:]))]
        beside = [place for place in ends if place.startswith(".".join([*keys[:-1], ""]))]
        if ends := beside or ends:
            return ends if len(ends) <= MAX_PLACES else []
    name = keys[-1].lstrip("-").replace("-", "_").lower()
    named = ([place for place in every if f".{place}".endswith(f".{ours}")] for ours in OTHER_NAMES.get(name, ()))
    ends = next(filter(None, named), [])
    return ends if len(ends) <= MAX_PLACES else [min(ends, key=lambda place: place.count("."))]


@functools.cache
def setting_paths(cls: Any) -> list[tuple[str, Any]]:
    """Every dotted key below a settings class, with the class that has it; NAME stands for a key of a mapping."""
    return list(_paths(cls, "", ()))


def _paths(annotation: Any, place: str, above: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    for cls in settings_classes(annotation):
        for name, field in cls.__pydantic_fields__.items() if cls not in above else ():
            yield f"{place}{name}", cls
            below = f"{place}{name}." + ("NAME." if typing.get_origin(field.annotation) is dict else "")
            yield from _paths(field.annotation, below, (*above, cls))


def _is_of_other_kind(item: Mapping[str, Any], errors: Sequence[Mapping[str, Any]]) -> bool:
    """True where a setting may be a list or settings, and this error only says that it is not the other of the two."""
    *place, last = item["loc"] or ("",)
    is_kind = str(last)[:1].isupper() or str(last).startswith("list[")  # pydantic's name for one of them
    if not is_kind or item["type"] not in ("dataclass_type", "list_type"):
        return False
    return any(other is not item and list(other["loc"][: len(place)]) == place for other in errors)


def _walk(cls: Any, location: list[str]) -> tuple[list[str], list[str], list[Any]]:
    """Follow pydantic's location through settings classes: (names known at its end, keys without union tags, the
    classes there)."""
    current: Any = cls
    keys: list[str] = []
    known: list[str] = []
    for part in location:
        if typing.get_origin(current) is dict:  # keys are free here, even ones that are called like a tag or a field
            keys.append(part)
            current = typing.get_args(current)[1]
            continue
        options = settings_classes(current)
        tagged = {tag(option): option for option in options}
        if len(options) > 1 and part in tagged:
            current = tagged[part]
            continue
        keys.append(part)
        known = [field.name for option in options for field in dataclasses.fields(option)]
        hints = (typing.get_type_hints(option, include_extras=True) for option in options)
        current = next((fields[part] for fields in hints if part in fields), current)
    return known, keys, settings_classes(current)


def _typed(annotation: Any, value: Any, usual: str | None = None) -> Any:
    """A value in which each part without a `type:` gets the default `type:`. `usual` is the default type of the value
    itself."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list and isinstance(value, list):
        return [_typed(inner[0], item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if origin is dict:
        return {key: _typed(inner[1], item) for key, item in value.items()}
    options = settings_classes(annotation)
    if len(options) > 1 and "type" not in value and usual:
        value = {"type": usual, **value}
    own = [option for option in options if len(options) == 1 or _type(option) == value.get("type")]
    fields = getattr(own[0], "__pydantic_fields__", {}) if own else {}
    return {
        key: _typed(fields[key].annotation, item, _default_tag(fields[key])) if key in fields else item
        for key, item in value.items()
    }


def _default_tag(field: Any) -> str | None:
    value = field.get_default(call_default_factory=True)
    return _type(type(value)) if dataclasses.is_dataclass(value) else None


def _classes_at(cls: Any, data: Any, keys: Sequence[str]) -> list[Any]:
    """The settings classes that the part of `data` at these keys may be of: one, if its `type:` or the default says."""
    annotation, options, place = cls, [cls], data
    for key in keys:
        fields = {name: field for option in options for name, field in option.__pydantic_fields__.items()}
        usual = None
        if typing.get_origin(annotation) in (dict, list):
            annotation = typing.get_args(annotation)[-1]
        elif key in fields:
            annotation, usual = fields[key].annotation, _default_tag(fields[key])
        else:
            return []
        place = place[int(key)] if isinstance(place, list) else (place or {}).get(key)
        kind = place.get("type", usual) if isinstance(place, Mapping) else usual
        options = settings_classes(annotation)
        options = [option for option in options if _type(option) == kind] or options
    return options


def settings_classes(annotation: Any) -> list[Any]:
    """The settings classes in a type: those of a union, of a list, of a mapping's values."""
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):  # pydantic's validators are instances
        return [annotation]
    return list(itertools.chain(*map(settings_classes, typing.get_args(annotation))))


def tag(cls: Any) -> str | None:
    """The value of `type:` by which a settings class is chosen from a union, and what else of it (`kind`)."""
    hint = typing.get_type_hints(cls).get("type")
    name = typing.get_args(hint)[0] if hint is not None and typing.get_args(hint) else None
    return name and name + getattr(cls, "kind", "")


def _type(cls: Any) -> str | None:
    """The value of `type:` alone."""
    return (tag(cls) or "").partition(" ")[0] or None


OTHER_NAMES: dict[str, tuple[str, ...]] = {
    name: ours
    for names, ours in {
        "num_beams beam beams beam_width": ("beam_size",),
        "nbest num_return_sequences num_hypotheses": ("n_best",),
        "lenpen length_penalty_alpha beam_alpha": ("length_penalty",),
        "max_length max_len max_output_length max_decoding_length": ("max_length_ratio", "max_tokens"),
        "max_new_tokens max_length_b max_len_b": ("max_length_extra", "max_tokens"),
        "max_len_a": ("max_length_ratio",),
        "min_len min_decoding_length min_output_length": ("min_length",),
        "no_repeat_ngram_size": ("no_repeat_ngram",),
        "do_sample sampling_topk sampling_topp top_k top_p": ("sampling",),
        "early_stopping": ("stopping", "patience"),
        "epochs num_train_epochs max_epoch max_num_epochs num_epochs after_epochs": ("max_epochs",),
        "train_steps max_update num_steps max_updates after_batches after total_steps": ("max_steps",),
        "batch_size per_device_train_batch_size": ("batch_sentences", "batch_tokens"),
        "accum_count update_freq update_interval gradient_accumulation_steps batch_multiplier": ("micro_batches",),
        "learning_rate initial_learning_rate lr": ("lr", "schedule"),
        "lr_scheduler lr_scheduler_type decay_method scheduling": ("schedule",),
        "warmup warmup_updates learning_rate_warmup lr_warmup num_warmup_steps": ("warmup_steps",),
        "max_grad_norm clip_grad_norm clip_gradient gradient_clipping": ("clip_norm",),
        "label_smoothing_factor smoothing label_smoothed_cross_entropy": ("label_smoothing",),
        "fp16 bf16 mixed_precision model_dtype amp half dtype": ("precision",),
        "valid_steps validation_freq eval_steps eval_every checkpoint_interval valid_freq": ("validate_every",),
        "save_total_limit keep_checkpoint keep_last_params": ("keep_last",),
        "logging_steps report_every logging_freq disp_freq log_interval": ("log_every",),
        "early_stopping_patience checkpoint_improvement_patience": ("patience",),
        "metric_for_best_model early_stopping_metric optimized_metric": ("best_by",),
        "hidden_size rnn_size embedding_dim dim_emb encoder_embed_dim model_size": ("d_model",),
        "enc_layers encoder_layers enc_depth num_hidden_layers num_layers": ("num_encoder_layers", "num_layers"),
        "dec_layers decoder_layers dec_depth": ("num_decoder_layers",),
        "heads nhead attention_heads encoder_attention_heads transformer_heads": ("num_heads",),
        "head_dim dim_head d_kv kv_channels": ("d_head",),
        "ff_size transformer_ff dim_feedforward ffn_dim encoder_ffn_embed_dim": ("d_ff",),
        "output_dir model_dir save_dir save_model model_path output": ("run_dir",),
        "random_seed": ("seed",),
        "load_model finetune_from_model train_from": ("init_from",),
        "restore_file pretrained_model initialize_from params": ("init_from",),
        "train_src path_src source source_lang_file train_sets trainpref train": ("train.src",),
        "train_tgt path_tgt target trg": ("train.tgt",),
        "dev valid_sets validation_source validpref dev_src": ("valid.src",),
        "validation_target dev_tgt": ("valid.tgt",),
        "src_language": ("corpus.src_lang",),
        "trg_lang tgt_language": ("corpus.tgt_lang",),
        "max_sent_length max_seq_len max_source_positions max_target_positions src_seq_length": ("max_tokens",),
        "tgt_seq_length max_source_length max_target_length max_length_train": ("max_tokens",),
        "voc_limit dim_vocabs src_vocab_size tgt_vocab_size num_words bpe_size": ("tokenizer.vocab_size",),
        "spm_alpha subword_alpha bpe_dropout sentencepiece_alphas": ("tokenizer.sampling",),
        "learn_rate peak_lr max_lr lr_max base_lr": ("lr",),
        "learning_rate_scheduler_type learning_rate_schedule scheduler": ("schedule.type",),
        "optim": ("optimizer.type",),
        "adam_beta1 adam_betas betas optimizer_betas": ("optimizer.beta1",),
        "adam_beta2": ("optimizer.beta2",),
        "adam_eps adam_epsilon optimizer_eps": ("optimizer.eps",),
        "tokens_per_batch mini_batch_words batch_type max_tokens_batch": ("batch_tokens",),
        "mini_batch train_batch_size": ("batch_sentences",),
        "optimizer_delay": ("micro_batches",),
        "gradient_clip_val gradient_clipping_threshold grad_clip clip_gradients": ("clip_norm",),
        "ema_decay moving_average_decay exponential_smoothing average_decay": ("decay",),
        "validate_interval validate_interval_updates save_steps save_checkpoint_steps": ("validate_every",),
        "save_interval_updates save_freq eval_freq": ("validate_every",),
        "keep_last_ckpts keep_last_epochs keep_interval_updates": ("keep_last",),
        "keep_best_ckpts keep_best_checkpoints": ("keep_best",),
        "max_num_checkpoint_not_improved": ("training.patience",),
        "best_checkpoint_metric valid_metrics early_stopping_criteria": ("best_by",),
        "report_to tensorboard use_tensorboard wandb wandb_project": ("loggers",),
        "model_dim embed_dim decoder_embed_dim transformer_model_size word_vec_size emb_size": ("d_model",),
        "transformer_dim_ffn ffn_embed_dim decoder_ffn_embed_dim intermediate_size encoder_ffn_dim": ("d_ff",),
        "decoder_ffn_dim transformer_feed_forward_num_hidden": ("d_ff",),
        "num_attention_heads decoder_attention_heads transformer_attention_heads": ("num_heads",),
        "layers": ("num_encoder_layers",),
        "tied_embeddings share_embeddings share_decoder_embeddings share_all_embeddings": ("tie_embeddings",),
        "tied_embeddings_all share_decoder_input_output_embed weight_tying_type": ("tie_embeddings",),
        "tied_softmax tie_word_embeddings": ("tie_embeddings",),
        "layer_norm encoder_normalize_before transformer_preprocess norm_first prenorm": ("norm_placement",),
        "brevity_penalty_weight normalize": ("alpha",),
        "sacrebleu_tokenizer tok eval_bleu_detok sacrebleu_cfg": ("tokenize",),
        "on_train_begin on_train_start on_fit_start": ("on_begin",),
        "on_step_end on_batch_end on_train_batch_end": ("on_step",),
        "on_evaluate on_epoch_end on_validation_end on_validation_epoch_end on_test_end": ("on_validation",),
        "on_train_end on_fit_end": ("on_end",),
        "train_data train_dataset dataset data x": ("corpus",),
        "source_lang source_language": ("src_lang",),
        "target_lang target_language": ("tgt_lang",),
        "layerdrop encoder_layerdrop decoder_layerdrop": ("layer_drop",),
        "transformer_tied_layers cross_layer_parameter_sharing": ("tied_layers",),
        "max_relative_positions relative_positions": ("position.max_distance", "position"),
        "initializer param_init_glorot init_std transformer_depth_scaling weight_init": ("initialization",),
        "transformer_decoder_autoreg dec_cell": ("decoder_autoreg",),
        "checkpoint_activations use_ckpting activation_checkpointing": ("gradient_checkpointing",),
        "mini_batch_fit auto_find_batch_size": ("workspace",),
        "data_weighting data_weighting_type": ("weights_in",),
        "phase_ratio hold_updates": ("hold_steps",),
        "total_num_update total_num_updates max_decay_steps": ("max_steps",),
        "end_learning_rate lr_end final_lr_scale": ("final",),
        "min_lr stop_min_lr learning_rate_min": ("lowest",),
        "num_beam_groups diverse_beam_groups": ("diversity_groups",),
        "diversity_penalty diverse_beam_strength": ("diversity",),
        "encoder_no_repeat_ngram_size": ("no_source_ngram",),
        "replace_unknowns": ("replace_unk",),
        "allow_unk": ("ban_unk",),
    }.items()
    for name in names.split()
}
"""The names that other toolkits have for ours (fairseq, JoeyNMT, Marian, OpenNMT, Sockeye, transformers, Keras)."""
