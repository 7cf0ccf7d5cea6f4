"""Small models of each family with one thing broken: refused where transformers refuses, and equal where it does not.

`python -m tests.clients.broken_models COUNT` is the long form.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from tests.clients import broken_models
from tests.errors import raises_error
from tests.system import hub_models

from dragoman.errors import Error
from dragoman.importing import huggingface
from dragoman.importing.base import Imported

pytestmark = [
    pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
DRAWS = 55


def test_what_transformers_refuses_is_refused_and_the_rest_is_equal() -> None:
    outcomes = list(broken_models.draws(range(DRAWS), seed=7))
    assert [outcome for outcome in outcomes if outcome.wrong] == []
    results = {outcome.result for outcome in outcomes}
    assert results >= {"equal", "both refuse", "refused here alone"}, results


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marian")
    hub_models.marian(folder, encoder_layers=1, decoder_layers=1)
    return folder


@pytest.fixture
def changed(marian: Path, tmp_path: Path) -> Callable[..., Path]:
    """The model with other settings of its search, its config or tensors."""

    def with_changes(
        search: dict[str, Any] | None = None,
        tensors: dict[str, torch.Tensor] | None = None,
        **settings: Any,
    ) -> Path:
        for path in marian.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        for name, more in (("generation_config.json", search or {}), ("config.json", settings)):
            told = json.loads((marian / name).read_text(encoding="utf-8"))
            (tmp_path / name).write_text(json.dumps({**told, **more}), encoding="utf-8")
        save_file({**load_file(marian / "model.safetensors"), **(tensors or {})}, tmp_path / "model.safetensors")
        return tmp_path

    return with_changes


def imported(folder: Path) -> Imported:
    return huggingface.load(folder, "en", "de")


@pytest.mark.parametrize(
    ("told", "taken"),
    [
        ({}, {"beam_size": 1}),
        ({"num_beams": 1}, {"beam_size": 1}),
        ({"num_beams": 6}, {"beam_size": 6, "stopping": "likely", "length_penalty": {"type": "average", "alpha": 1.0}}),
        ({"num_beams": 2, "early_stopping": True, "length_penalty": 0.0},
         {"stopping": "full", "length_penalty": {"type": "none"}}),
        ({"num_beams": 2, "early_stopping": "never"}, {"stopping": "exact"}),
        ({"max_length": 40}, {"max_length_ratio": 0.0, "max_length_extra": 39}),
        ({"max_length": 40, "max_new_tokens": 7}, {"max_length_extra": 7}),
        ({"min_length": 8}, {"min_length": 7}),
        ({"min_length": 8, "min_new_tokens": 3}, {"min_length": 3}),
        ({"no_repeat_ngram_size": 3}, {"no_repeat_ngram": 3}),
        ({"num_beams": 2, "repetition_penalty": 1.5}, {"repetition_penalty": 1.5}),
        ({"num_beams": 3, "num_return_sequences": 2}, {"n_best": 2}),
        ({"bad_words_ids": [["pad"]]}, {}),
        ({"suppress_tokens": [1]}, {"ban_unk": True}),
        ({"suppress_tokens": [], "begin_suppress_tokens": [], "top_k": 50}, {"beam_size": 1}),
    ],
)  # fmt: skip
def test_a_search_is_taken(told: dict[str, Any], taken: dict[str, Any], changed: Callable[..., Path]) -> None:
    pad = json.loads((changed() / "config.json").read_text(encoding="utf-8"))["pad_token_id"]
    if "bad_words_ids" in told:
        told = {"bad_words_ids": [[pad]]}
    decoding = imported(changed(told)).decoding
    assert {name: decoding[name] for name in taken} == taken


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bad_words_ids", [[7]]), ("begin_suppress_tokens", [1]), ("do_sample", True), ("num_beams", "x"),
        ("encoder_no_repeat_ngram_size", 3), ("forced_bos_token_id", 5), ("length_penalty", -1.0), ("max_length", 1),
        ("repetition_penalty", 1.5), ("sequence_bias", [[[5], -2.0]]), ("suppress_tokens", [9]), ("eos_token_id", 4),
        ("decoder_start_token_id", 3), ("min_length", -1), ("no_one_knows", 1), ("is_assistant", True), ("top_k", []),
        ("bad_words_ids", []), ("bad_words_ids", [[]]), ("bad_words_ids", {}), ("suppress_tokens", {}),
        ("suppress_tokens", [True]), ("begin_suppress_tokens", "x"), ("sequence_bias", {}), ("sequence_bias", []),
        ("constraints", []), ("force_words_ids", []), ("forced_bos_token_id", []), ("forced_eos_token_id", []),
        ("forced_eos_token_id", False), ("bos_token_id", [None]), ("output_hidden_states", "x"),
    ],
)  # fmt: skip
def test_a_search_that_is_not_ours_is_refused_by_name(name: str, value: Any, changed: Callable[..., Path]) -> None:
    with raises_error(Error.CANNOT_IMPORT, "generation_config.json", name):
        imported(changed({name: value}))


@pytest.mark.parametrize(
    ("name", "value"), [("is_decoder", True), ("layer_norm_eps", 0.1), ("quantization_config", {"bits": 4})]
)
def test_a_setting_that_no_one_knows_is_refused_by_name(name: str, value: Any, changed: Callable[..., Path]) -> None:
    with raises_error(Error.CANNOT_IMPORT, "config.json", name):
        imported(changed(**{name: value}))


def test_a_file_of_published_models_is_taken(changed: Callable[..., Path]) -> None:
    folder = changed(
        {"num_beams": 6, "max_length": 512}, normalize_before=False, add_bias_logits=False, num_hidden_layers=1,
        static_position_embeddings=True, gradient_checkpointing=False, id2label={"0": "LABEL_0"}, torch_dtype="float16",
    )  # fmt: skip
    assert imported(folder).decoding["beam_size"] == 6


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("final_logits_bias", torch.zeros(1, 3)),
        ("final_logits_bias", torch.zeros(())),
        ("model.encoder.layers.0.fc2.weight", torch.zeros(33, 48)),
        ("model.encoder.layers.0.fc1.bias", torch.zeros(48, dtype=torch.int64)),
        ("model.encoder.layers.0.fc1.bias", torch.full((48,), torch.nan)),
        ("encoder.layers.0.fc1.bias", torch.zeros(48)),
        ("lm_head.bias", torch.zeros(3)),
    ],
)
def test_a_tensor_that_is_not_as_expected_is_refused_by_name(
    name: str, tensor: torch.Tensor, changed: Callable[..., Path]
) -> None:
    with raises_error(Error.CANNOT_IMPORT, name):
        imported(changed(tensors={name: tensor}))


def test_names_need_no_prefix_and_a_head_of_its_own_is_taken(changed: Callable[..., Path]) -> None:
    folder = changed()
    tensors = load_file(folder / "model.safetensors")
    head = torch.randn_like(tensors["model.shared.weight"])
    bare = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    save_file({**bare, "lm_head.weight": head}, folder / "model.safetensors")
    model = imported(folder).model
    assert model.output.weight is not model.tgt_embedding.tokens.embedding.weight
    # Ours has a row more: a copy of the one that a translation begins with.
    for ours, theirs in (
        (model.output.weight, head),
        (model.tgt_embedding.tokens.embedding.weight, bare["shared.weight"]),
    ):
        assert set(map(tuple, ours.tolist())) == set(map(tuple, theirs.tolist()))
