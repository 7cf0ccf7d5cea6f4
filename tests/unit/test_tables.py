"""Name tables: each entry can be set, builds a model that computes, and stands in no second list."""

import dataclasses
import typing
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman import config
from dragoman.errors import DragomanError
from dragoman.models.blocks import PositionConfig
from dragoman.models.families import CLASSIFIERS, MODELS
from dragoman.models.language_model import LanguageModelConfig
from dragoman.nn.feedforward import FEED_FORWARDS
from dragoman.nn.positions import LAYOUTS
from dragoman.nn.recurrent import CELLS
from dragoman.nn.recurrent_attention import SCORES
from dragoman.nn.residual import NORM_PLACEMENTS, NORMS

FAMILIES: dict[str, Any] = {**MODELS, **CLASSIFIERS, "language_model": LanguageModelConfig}
TINY = {"d_model": 8, "num_heads": 2, "d_ff": 8, "d_embedding": 8, "patch_size": 14}
TABLES: dict[str, list[str]] = {
    "activation": [*FEED_FORWARDS],
    "norm": [*NORMS],
    "norm_placement": [*NORM_PLACEMENTS],
    "cell": [*CELLS],
    "attention": ["none", *SCORES],
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
    with pytest.raises(DragomanError, match="`norm`: should be 'layer' or 'rms' \\(given: 'batch'\\)"):
        config.parse(MODELS["transformer"], {"norm": "batch"})
