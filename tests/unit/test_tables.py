"""Tables: each entry can be set and does what its kind has to do, and stands in no second list."""

import dataclasses
import importlib
import json
import math
import typing
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import torch
from tests.errors import raises_error
from torch import Tensor, nn

from dragoman import config
from dragoman.errors import Error
from dragoman.export import TARGETS
from dragoman.models.blocks import PositionConfig
from dragoman.models.families import CLASSIFIERS, MODELS
from dragoman.models.language_model import LanguageModelConfig
from dragoman.models.stacks import INITIALIZATIONS
from dragoman.nn.feedforward import FEED_FORWARDS
from dragoman.nn.positions import LAYOUTS
from dragoman.nn.recurrent import CELLS
from dragoman.nn.recurrent_attention import SCORES
from dragoman.nn.residual import NORM_PLACEMENTS, NORMS
from dragoman.text.corpus import CorpusConfig, SinglePairs
from dragoman.text.sources.base import files_of
from dragoman.text.tokenizers.pair import (
    TOKENIZERS,
    SingleConfig,
    TokenizerConfig,
    load_tokenizers,
    save_tokenizers,
    train_tokenizers,
)
from dragoman.training.optim import OptimizerConfig, load_state_tensors, set_rate, state_tensors
from dragoman.training.schedules import ScheduleConfig

FAMILIES: dict[str, Any] = {**MODELS, **CLASSIFIERS, "language_model": LanguageModelConfig}
TINY = {"d_model": 8, "num_heads": 2, "d_ff": 8, "d_embedding": 8, "patch_size": 14}
TABLES: dict[str, list[str]] = {
    "activation": [*FEED_FORWARDS],
    "norm": [*NORMS],
    "norm_placement": [*NORM_PLACEMENTS],
    "cell": [*CELLS],
    "attention": ["none", *SCORES],
    "initialization": [*INITIALIZATIONS],
}


def choices() -> list[tuple[str, str, str]]:
    """(family, setting, name) of every setting of a model that takes a name from a table."""
    rows = []
    for family, cls in FAMILIES.items():
        for field in dataclasses.fields(cls):
            hint = typing.get_type_hints(cls, include_extras=True)[field.name]
            for marker in getattr(hint, "__metadata__", ()):
                if isinstance(marker, config.OneOf):
                    rows += [(family, field.name, name) for name in marker.names]
    return rows


def built(family: str, settings: dict[str, Any]) -> nn.Module:
    cls = FAMILIES[family]
    sizes = {name: value for name, value in TINY.items() if name in cls.__dataclass_fields__}
    model = config.parse(cls, {**sizes, **settings})
    given = {
        "language_model": {"vocab_size": 11},
        "text_classifier": {"vocab_size": 11, "num_labels": 3, "unk_id": 1},
        "vit": {"num_labels": 3},
    }.get(family, {"src_vocab_size": 11, "tgt_vocab_size": 11, "shared_vocab": True})
    made: nn.Module = model.build(**given, **({} if family == "vit" else {"pad_id": 0}))
    return made.eval()


def output(family: str, model: nn.Module) -> Tensor:
    ids, mask = torch.tensor([[5, 6, 3], [7, 3, 0]]), torch.tensor([[True, True, True], [True, True, False]])
    given = {"language_model": (ids,), "text_classifier": (ids, mask), "vit": (torch.zeros(2, 1, 28, 28),)}
    logits: Tensor = model(*given.get(family, (ids, mask, ids)))
    return logits


@pytest.mark.parametrize(("family", "setting", "name"), choices())
def test_every_name_of_a_table_builds_a_model_that_computes(family: str, setting: str, name: str) -> None:
    assert output(family, built(family, {setting: name})).isfinite().all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scheme", [config.tag(cls) for cls in config.settings_classes(PositionConfig)])
def test_every_position_scheme_computes_in_every_family(family: str, scheme: str) -> None:
    if "position" in FAMILIES[family].__dataclass_fields__:
        assert output(family, built(family, {"position": {"type": scheme}})).isfinite().all()


def test_the_choices_are_the_tables() -> None:
    for family, setting, _ in choices():
        assert [name for *place, name in choices() if place == [family, setting]] == TABLES[setting]
    layouts = [name for name in LAYOUTS if built("transformer", {"position": {"type": "sinusoidal", "layout": name}})]
    assert layouts == [*LAYOUTS]
    assert list(MODELS) == ["recurrent", "transformer"]


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with raises_error(Error.WRONG_SETTING):
        config.parse(MODELS["transformer"], {"norm": "batch"})


def settings_of(union: Any) -> list[Any]:
    return config.settings_classes(union)


def of_tag(cls: Any) -> str:
    return config.tag(cls) or cls.__name__


FILES: dict[str, Any] = {
    "files": {"src": "a\nb\n", "tgt": "x\ny\n"},
    "tsv": {"path": "a\tx\nb\ty\n"},
    "jsonl": {"path": '{"src": "a", "tgt": "x"}\n{"src": "b", "tgt": "y"}\n'},
    "tmx": {
        "path": "<tmx><body>"
        '<tu><tuv xml:lang="de"><seg>a</seg></tuv><tuv xml:lang="en"><seg>x</seg></tuv></tu>\n'
        '<tu><tuv xml:lang="de-AT"><seg>b<ph>code</ph></seg></tuv><tuv xml:lang="EN"><seg>y</seg></tuv></tu>'
        "</body></tmx>"
    },
    "xliff": {
        "path": "<xliff><trans-unit><source>a</source><target>x</target></trans-unit>\n"
        "<trans-unit><source>b</source><target>y</target></trans-unit></xliff>"
    },
    "po": {"path": 'msgid "a"\nmsgstr "x"\nmsgid "b"\nmsgstr "y"\n'},
    "parquet": {"path": [{"src": "a", "tgt": "x"}, {"src": "b", "tgt": "y"}]},
}
"""The files of two pairs in each format, by the setting that names them."""

NUMBERS = {"po": [1, 3]}
"""The lines of the two, where they are not 1 and 2."""

SETTINGS: dict[str, Any] = {
    "tmx": {"src_lang": "de", "tgt_lang": "en"},
    "demo": {"split": "train", "size": 2},
    "toy": {"task": "beer", "split": "train", "size": 2},
}


@pytest.mark.parametrize("cls", settings_of(SinglePairs), ids=of_tag)
def test_every_corpus_format_gives_its_pairs_and_names_its_files(cls: Any, tmp_path: Path) -> None:
    if cls.type == "parallel":
        return  # a file each of any number of languages: test_language_tags.py
    given = {setting: tmp_path / setting for setting in FILES.get(cls.type, {})}
    for setting, path in given.items():
        content = FILES[cls.type][setting]
        if isinstance(content, str):
            path.write_text(content)
        else:
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), path)
    settings = {**{setting: str(path) for setting, path in given.items()}, **SETTINGS.get(cls.type, {})}
    source = config.parse(cls, settings)
    assert files_of(source) == [*given.values()]
    pairs = list(source.pairs())
    assert [pair.line for pair in pairs] == NUMBERS.get(cls.type, [1, 2])
    if given:
        assert [(pair.src, pair.tgt) for pair in pairs] == [("a", "x"), ("b", "y")]
    mixed = config.parse(CorpusConfig, {**LANGUAGES, "train": {"type": "mix", "sources": [config.to_dict(source)]}})
    assert [pair[1:] for pair in mixed.train.pairs()] == [pair[1:] for pair in pairs]


OTHERS = ("pieces", "hub", "subword_nmt", "moses")
"""Tokenizers that are not learnt, and one around another: test_import_huggingface.py, test_own_tokenizers.py,
test_text_options.py."""

LANGUAGES: dict[str, Any] = {"src_lang": "de", "tgt_lang": "en", "valid": {"type": "demo", "split": "valid"}}


@pytest.mark.parametrize("name", [name for name in TOKENIZERS if name not in OTHERS])
def test_every_tokenizer_learns_saves_and_loads(name: str, tmp_path: Path) -> None:
    cls = next(cls for cls in settings_of(SingleConfig) if cls.type == name)  # a second one is of files
    assert TOKENIZERS[name].config_class is cls
    settings = config.parse(cls, {"vocab_size": 40} if "vocab_size" in cls.__dataclass_fields__ else {})
    lines = ["der hund schläft", "die katze schläft"] * 10
    pair = train_tokenizers(settings, lambda: iter(lines), lambda: iter(lines))
    save_tokenizers(pair, tmp_path)
    again = load_tokenizers(tmp_path)
    ids = pair.src.encode("die katze")
    assert again.src.encode("die katze") == ids
    assert again.tgt.decode(ids) == "die katze"


def test_the_tokenizers_are_those_that_can_be_set() -> None:
    assert [*TOKENIZERS] == [*dict.fromkeys(cls.type for cls in settings_of(SingleConfig)), "moses"]
    assert {cls.type for cls in settings_of(TokenizerConfig)} == {*TOKENIZERS, "separate", "reuse"}


@pytest.mark.parametrize("cls", settings_of(ScheduleConfig), ids=of_tag)
def test_every_schedule_gives_rates_and_goes_on_from_its_state(cls: Any) -> None:
    schedule, again = (config.parse(cls, {}).build(100, 16) for _ in range(2))
    for better in (True, False, False, False):
        schedule.observe(better)
    again.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    rates = [schedule.rate(step) for step in range(1, 101)]
    assert all(math.isfinite(rate) and rate >= 0 for rate in rates)
    assert max(rates) > 0
    assert rates == [again.rate(step) for step in range(1, 101)]


@pytest.mark.parametrize("cls", settings_of(OptimizerConfig), ids=of_tag)
def test_every_optimizer_lowers_a_loss_and_goes_on_from_its_state(cls: Any) -> None:
    torch.manual_seed(1)
    x, y = torch.randn(32, 4), torch.randn(32, 3)
    models, optimizers = [], []
    for _ in range(2):
        models.append(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)))
        optimizers.append(config.parse(cls, {}).build(models[-1]))

    def step(which: int) -> float:
        set_rate(optimizers[which], 0.01)
        loss = nn.functional.mse_loss(models[which](x), y)
        optimizers[which].zero_grad()
        loss.backward()
        optimizers[which].step()
        return loss.item()

    first = step(0)
    assert [step(0) for _ in range(20)][-1] < first
    step(1)
    models[1].load_state_dict(models[0].state_dict())
    saved = {name: value.clone() for name, value in state_tensors(optimizers[0], models[0]).items()}
    load_state_tensors(optimizers[1], models[1], saved)
    assert [step(0) for _ in range(3)] == [step(1) for _ in range(3)]


@pytest.mark.parametrize("name", TARGETS)
def test_every_export_has_the_functions_of_an_export(name: str) -> None:
    module = importlib.import_module(TARGETS[name])
    assert all(callable(getattr(module, function)) for function in ("problems", "write", "nearest", "load"))
