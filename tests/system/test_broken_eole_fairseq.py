"""Models of eole and fairseq with one thing broken: ended by a run that uses every tensor, or by an error of ours."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.system import test_import_eole, test_import_fairseq
from tests.system.test_export_argos import tiny

from dragoman.errors import DragomanError
from dragoman.importing.import_run import import_model

DRAWS = 40
VALUES: list[Any] = [None, True, False, 0, 1, -1, 3, 10**9, 0.5, float("nan"), "", "x", [], [1], [[]], {}, {"x": 1}]
"""What a setting may be where its program writes something else."""


def a_tensor(tensors: dict[str, torch.Tensor], rng: random.Random) -> str:
    """Change one tensor; its name and the kind of the change."""
    name = rng.choice(sorted(tensors))
    tensor = tensors[name]
    kind = rng.choice(["less", "more", "renamed", "row", "rows", "flat", "scalar", "empty", "type", "nan", "axis"])
    ways: dict[str, Callable[[], torch.Tensor]] = {
        "row": lambda: torch.cat([tensor, tensor[:1]]), "rows": lambda: tensor[:-1], "flat": lambda: tensor.flatten(),
        "scalar": lambda: tensor.flatten()[0], "empty": lambda: tensor[:0], "type": lambda: tensor.to(torch.int32),
        "nan": lambda: tensor * float("nan"), "axis": lambda: tensor[None],
    }  # fmt: skip
    if kind in ("less", "renamed"):
        del tensors[name]
    if kind in ("more", "renamed"):
        tensors[f"{name}.{rng.choice(['x', 'lora_A', '0'])}"] = tensor.clone()
    if kind in ways:
        tensors[name] = ways[kind]().contiguous()
    return f"{name} {kind}"


def is_harmless(what: str) -> bool:
    """True if a changed tensor says the same: a vector is flat already; fixed positions and marks are computed."""
    name, _, kind = what.rpartition(" ")
    return (kind == "flat" and name.endswith(("bias", "norm.weight", "layer_scalar"))) or (
        name.endswith((".pe.pe", ".version", "layer_scalar")) and kind not in ("more", "renamed", "nan")
    )


def a_setting(described: Any, rng: random.Random) -> str:
    """Change one value of a JSON file, at any depth."""
    path = []
    while isinstance(described, dict) and described:
        place, key = described, rng.choice(sorted(described))
        path.append(key)
        described = described[key]
    if rng.random() < 0.1:
        del place[key]
        return f"no {'.'.join(path)}"
    place[key] = rng.choice(VALUES)
    return f"{'.'.join(path)}: {place[key]}"


def written(kind: str, folder: Path) -> Path:
    if kind == "fairseq":
        return test_import_fairseq.written(folder)
    return test_import_eole.written(tiny(test_import_eole.MODELS[kind]), folder)


@pytest.mark.parametrize("kind", ["fairseq", *test_import_eole.MODELS])
def test_a_model_with_one_thing_broken_is_a_run_or_refused(kind: str, tmp_path: Path) -> None:
    whole = written(kind, tmp_path / "whole")
    [weights] = whole.glob("*.safetensors")
    settings = sorted(path.name for path in whole.glob("*.json"))
    for number in range(DRAWS):
        rng = random.Random(f"{kind} {number}")
        folder, run = tmp_path / "theirs", tmp_path / "run"
        shutil.copytree(whole, folder)
        is_tensor = rng.random() < 0.5
        if is_tensor:
            tensors = load_file(weights)
            what = a_tensor(tensors, rng)
            save_file(tensors, folder / weights.name)
        else:
            name = rng.choice(settings)
            described = json.loads((folder / name).read_text(encoding="utf-8"))
            what = f"{name}: {a_setting(described, rng)}"
            (folder / name).write_text(json.dumps(described), encoding="utf-8")
        try:
            import_model(folder, run, "en", "de")
        except DragomanError:
            is_refused = True
        except Exception as error:
            raise AssertionError(f"{number}: {what}") from error
        else:
            is_refused = False
        if is_tensor:
            assert is_refused or is_harmless(what), f"{number}: {what}"
        for path in (folder, run):
            shutil.rmtree(path, ignore_errors=True)
