"""ONNX exports in ONNX Runtime: the same numbers at every step, the same translations, and what cannot be exported."""

import itertools
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from tests.errors import raises_error
from torch import Tensor

from dragoman.backends.packed_linear import pack
from dragoman.decoding.search import DecodingConfig
from dragoman.errors import Error
from dragoman.export import onnx as onnx_export
from dragoman.export.onnx import OnnxModel, load, problems, write
from dragoman.inference.loading import build_model
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.blocks import PositionConfig
from dragoman.models.ensemble import Ensemble
from dragoman.models.families import MODELS, Seq2SeqModel
from dragoman.nn.attention import KVCache
from dragoman.nn.feedforward import FEED_FORWARDS
from dragoman.nn.recurrent import CELLS
from dragoman.nn.recurrent_attention import SCORES
from dragoman.nn.residual import NORM_PLACEMENTS, NORMS
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig

LINES = ["the cat sees the dog .", "a dog runs .", "the bird sings today .", "we see a cat and a bird .", "dog", ""]
SMALL = {"d_model": 16, "num_heads": 2, "d_ff": 24, "num_encoder_layers": 2, "num_decoder_layers": 2}
RECURRENT = {"d_embedding": 12, "d_model": 16, "num_encoder_layers": 1, "num_decoder_layers": 1}
LEARNED, HALF_SPLIT = {"type": "learned", "max_len": 96}, {"type": "sinusoidal", "layout": "half_split"}
TRANSFORMERS: list[dict[str, Any]] = [
    {},
    {"norm_placement": "post", "position": LEARNED, "activation": "gelu", "tie_embeddings": "output"},
    {"norm_placement": "output", "norm": "rms", "position": HALF_SPLIT, "activation": "swiglu"},
    {"position": {"type": "rotary"}, "activation": "gelu_tanh", "tie_embeddings": "none"},
    {"norm_placement": "post", "norm": "rms", "position": {"type": "alibi"}, "embedding_norm": True},
    {"position": {"type": "none"}, "activation": "swiglu", "num_kv_heads": 1, "scale_embeddings": False},
    {"norm": "rms", "position": {"type": "alibi"}, "num_heads": 4, "num_kv_heads": 2, "num_decoder_layers": 1},
    {"position": {"type": "relative", "max_distance": 3}, "norm_placement": "post"},
    {"position": {"type": "relative"}, "num_heads": 4, "num_kv_heads": 2, "tied_layers": [1, 1]},
    {"d_head": 6, "num_heads": 4, "num_kv_heads": 2},
    {"position": {**HALF_SPLIT, "layout": "fairseq", "offset": 2}, "activation": "silu", "output_bias": True},
]
RECURRENTS: list[dict[str, Any]] = [
    {"cell": "lstm", "attention": "none", "bidirectional": False},
    {"cell": "gru", "attention": "none", "num_encoder_layers": 2, "num_decoder_layers": 2},
    {"cell": "lstm", "attention": "dot", "input_feeding": True},
    {"cell": "gru", "attention": "scaled_dot", "bidirectional": False, "input_feeding": True, "tie_embeddings": "none"},
    {"cell": "lstm", "attention": "general", "num_encoder_layers": 2, "num_decoder_layers": 2},
    {"cell": "gru", "attention": "additive", "tie_embeddings": "output"},
    {"cell": "lstm", "attention": "additive", "num_encoder_layers": 2, "input_feeding": True},
]
VARIANTS = [("transformer", {**SMALL, **more}) for more in TRANSFORMERS]
VARIANTS += [("recurrent", {**RECURRENT, **more}) for more in RECURRENTS]
PLAIN, ATTENTIONAL, DEEP, NO_ATTENTION = VARIANTS[0], VARIANTS[-1], VARIANTS[-3], VARIANTS[len(TRANSFORMERS)]


def test_every_row_of_the_models_tables_is_a_variant_here() -> None:
    schemes = {scheme.type for scheme in get_args(get_args(PositionConfig)[0])}
    for family, setting, table in [
        ("transformer", "norm", NORMS),
        ("transformer", "norm_placement", NORM_PLACEMENTS),
        ("transformer", "activation", FEED_FORWARDS),
        ("transformer", "position", schemes),
        ("recurrent", "cell", CELLS),
        ("recurrent", "attention", {"none", *SCORES}),
    ]:
        found = [getattr(MODELS[family](**settings), setting) for name, settings in VARIANTS if name == family]
        assert {getattr(value, "type", value) for value in found} == set(table)


def translator(family: str, settings: dict[str, Any]) -> SearchTranslator:
    """With larger weights than a fresh model's, so that it has opinions."""
    tokenizers = train_tokenizers(WordsConfig(), lambda: iter(LINES), lambda: iter(LINES))
    torch.manual_seed(5)
    model = build_model(MODELS[family](**settings), tokenizers).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5 if parameter.dim() > 1 else 1.0).add_(0.1 * torch.randn_like(parameter))
    return SearchTranslator(
        model, tokenizers, decoding=DecodingConfig(max_length_ratio=1.0, max_length_extra=4), max_src_tokens=80
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[SearchTranslator, Path]]:
    """Each variant is exported once."""
    done: dict[str, tuple[SearchTranslator, Path]] = {}

    def export(variant: tuple[str, dict[str, Any]], quantize: str | None = None) -> tuple[SearchTranslator, Path]:
        key = f"{variant}{quantize}"
        if key not in done:
            original, folder = translator(*variant), tmp_path_factory.mktemp("onnx")
            write(original, folder, quantize)
            done[key] = original, folder
        return done[key]

    return export


@pytest.fixture(params=VARIANTS, ids=lambda variant: "-".join([variant[0], *map(str, list(variant[1].values())[4:])]))
def pair(request: pytest.FixtureRequest, exported: Any) -> tuple[SearchTranslator, Path]:
    return exported(request.param)


def sentences(*lengths: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(sum(lengths))
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.randint(4, 12, mask.shape, generator=generator).masked_fill(~mask, 0), mask


BATCHES = [
    ((1,), []),
    ((3, 7), [[0, 0, 0, 1, 1, 1], [2, 0, 0, 4, 4, 3], [3, 4, 5], [1, 1, 0]]),
    ((70, 2, 9, 40, 8), [[2, 1], [0, 0, 1], [2, 2, 0, 0], [3, 1], [1, 0]]),
]
"""Lengths of sources, and after each of the first steps, the rows that go on: expanded, chosen, dropped, unequal."""


@torch.inference_mode()
def difference(model: Seq2SeqModel, other: Seq2SeqModel) -> float:
    """The largest difference of two models' logits over all steps of all batches."""
    worst = 0.0
    for lengths, moves in BATCHES:
        src, src_mask = sentences(*lengths)
        states = [one.start(one.encode(src, src_mask)) for one in (model, other)]
        prev = torch.full((len(lengths),), 2)
        for step in range(8):
            (first, one), (second, two) = (
                one.decode_step(prev, state) for one, state in zip((model, other), states, strict=True)
            )
            assert first.shape == second.shape
            worst = max(worst, float((first - second).abs().max()))
            rows = torch.tensor(moves[step] if step < len(moves) else range(len(prev)))
            prev, states = (first.argmax(dim=1) + step)[rows] % 12, [one.reorder(rows), two.reorder(rows)]
    return worst


def test_every_step_gives_the_same_logits(pair: tuple[SearchTranslator, Path]) -> None:
    original, folder = pair
    assert difference(original.model, load(folder, original).model) < 1e-5


def test_translations_and_scores_are_the_same(pair: tuple[SearchTranslator, Path]) -> None:
    original, folder = pair
    for changes in ({"beam_size": 1}, {"beam_size": 4, "n_best": 3, "no_repeat_ngram": 3, "diversity": 0.2}):
        expected = original.with_decoding(**changes)
        for ours, theirs in zip(expected.n_best(LINES), load(folder, expected).n_best(LINES), strict=True):
            assert [item.text for item in ours] == [item.text for item in theirs]
            assert [item.log_prob for item in ours] == pytest.approx([item.log_prob for item in theirs], abs=1e-4)


def test_given_translations_have_the_same_probability(exported: Any) -> None:
    original, folder = exported(ATTENTIONAL)
    pairs = [("the cat", "a dog runs ."), ("a bird", "dog")]
    ours, theirs = score(original, pairs), score(load(folder, original), pairs)
    assert [one.log_prob for one in ours] == pytest.approx([one.log_prob for one in theirs], abs=1e-4)


@pytest.mark.parametrize(
    "position", [{"type": "sinusoidal"}, HALF_SPLIT, {"type": "rotary"}, {"type": "alibi"}, {"type": "relative"}]
)
@torch.inference_mode()
def test_positions_go_on_beyond_the_tables_that_a_model_begins_with(exported: Any, position: dict[str, Any]) -> None:
    family, settings = VARIANTS[0]
    original, folder = exported((family, {**settings, "position": position}))
    model, other = original.model, load(folder, original).model
    one, two = (which.start(which.encode(*sentences(600))) for which in (model, other))
    past = {name: torch.randn(1, 2, 509, 8) for name in two.renewed}
    keys_values = [KVCache(past[f"past.{layer}.key"], past[f"past.{layer}.value"]) for layer in range(2)]
    one, two = replace(one, past=tuple(keys_values)), replace(two, renewed=past)
    for step in range(6):
        (first, one), (second, two) = (
            model.decode_step(torch.tensor([4 + step]), one),
            other.decode_step(torch.tensor([4 + step]), two),
        )
        assert float((first - second).abs().max()) < 1e-5, step


def test_a_position_that_was_never_learnt_is_an_error_in_the_runtime_too(exported: Any) -> None:
    original, folder = exported(VARIANTS[1])
    other = load(folder, original).model
    assert other.max_target_length == 96
    with raises_error(Error.UNSUPPORTED):
        load(folder, original.with_decoding(coverage_penalty=0.2)).translate(LINES[:1])
    with pytest.raises(Exception, match="96"):
        other.encode(*sentences(97))


@pytest.mark.parametrize("variant", [PLAIN, ATTENTIONAL, NO_ATTENTION])
def test_the_folder_translates_without_dragoman(exported: Any, variant: Any) -> None:
    """NumPy, ONNX Runtime and what the folder's own files say."""
    original, folder = exported(variant)
    files = {"encoder.onnx", "step.onnx", "dragoman.json", "tokenizer"}
    assert {path.name for path in folder.iterdir()} == files
    told = json.loads((folder / "dragoman.json").read_text(encoding="utf-8"))
    vocabulary = json.loads((folder / "tokenizer/shared/vocabulary.json").read_text(encoding="utf-8"))
    encoder, step = (
        onnxruntime.InferenceSession(str(folder / name), providers=["CPUExecutionProvider"])
        for name in ("encoder.onnx", "step.onnx")
    )
    src = np.array([[vocabulary.index(word) for word in LINES[0].split()] + [told["specials"]["eos_id"]]])
    names = [tensor["name"] for tensor in told["state"]]
    state = dict(zip(names, encoder.run(names, {"src": src, "src_mask": src > 0}), strict=True))
    prev, words = np.array([told["specials"]["bos_id"]]), []
    banned = [told["specials"][name] for name in ("pad_id", "unk_id", "bos_id")]
    while len(words) < src.shape[1] + told["decoding"]["max_length_extra"]:
        renewed = [tensor["name"] for tensor in told["state"] if tensor["renewed"]]
        logits, *found = step.run(["logits", *(f"next.{name}" for name in renewed)], {"prev": prev, **state})
        state |= dict(zip(renewed, found, strict=True))
        logits[:, banned] = -np.inf
        prev = logits.argmax(axis=1)
        if prev[0] == told["specials"]["eos_id"]:
            break
        words.append(vocabulary[prev[0]])
    ids = original.tokenizers.tgt.encode(original.with_decoding(beam_size=1).translate(LINES[:1])[0])
    assert original.tokenizers.tgt.pieces(ids) == words
    assert told["format_version"] == 1
    assert told["decoding"]["beam_size"] == 5


def test_the_graphs_are_valid_and_their_axes_are_named(pair: tuple[SearchTranslator, Path]) -> None:
    _, folder = pair
    told = json.loads((folder / "dragoman.json").read_text(encoding="utf-8"))
    for name in ("encoder.onnx", "step.onnx"):
        graph = onnx.load(folder / name)
        onnx.checker.check_model(graph, full_check=True)
        assert [entry.version for entry in graph.opset_import if entry.domain == ""] == [17]
    inputs = {value.name: value.type.tensor_type.shape.dim for value in graph.graph.input}
    assert list(inputs) == ["prev", *(tensor["name"] for tensor in told["state"])]
    for tensor in told["state"]:
        assert [dim.dim_param or dim.dim_value for dim in inputs[tensor["name"]]] == tensor["axes"]
        assert tensor["axes"][0] == ("rows" if tensor["renewed"] else "sentences")


def mutated(folder: Path, to: Path, file: str, change: Callable[[Any], None]) -> Path:
    """A copy of an export with another graph in one file."""
    to.mkdir()
    for name in ("encoder.onnx", "step.onnx", "dragoman.json"):
        (to / name).write_bytes((folder / name).read_bytes())
    model = onnx.load(to / file)
    change(model.graph)
    onnx.save(model, to / file)
    (to / "tokenizer").symlink_to(folder / "tokenizer", target_is_directory=True)
    return to


@pytest.mark.parametrize("variant", [PLAIN, DEEP], ids=["transformer", "recurrent"])
@pytest.mark.parametrize("file", ["encoder.onnx", "step.onnx"])
def test_two_swapped_weights_are_seen(exported: Any, tmp_path: Path, variant: Any, file: str) -> None:
    original, folder = exported(variant)
    weights = [one for one in onnx.load(folder / file).graph.initializer if len(one.dims) > 1]
    swaps = [(one.name, two.name) for one, two in itertools.combinations(weights, 2) if one.dims == two.dims]
    assert len(swaps) > 2
    for number, names in enumerate([swaps[0], swaps[len(swaps) // 2], swaps[-1]]):

        def swap(graph: Any, names: tuple[str, str] = names) -> None:
            one, two = (next(item for item in graph.initializer if item.name == name) for name in names)
            one.raw_data, two.raw_data = two.raw_data, one.raw_data

        other = mutated(folder, tmp_path / str(number), file, swap)
        assert difference(original.model, load(other, original).model) > 1e-3, names


def test_another_layout_of_positions_is_seen(exported: Any) -> None:
    family, settings = VARIANTS[0]
    original, folder = exported(VARIANTS[0])
    other = translator(family, {**settings, "position": HALF_SPLIT})
    other.model.load_state_dict(original.model.state_dict())
    assert difference(other.model, load(folder, original).model) > 1e-2


QUANTIZED = {
    "transformer": ("transformer", {**SMALL, "d_model": 96, "num_heads": 4, "d_ff": 192}),
    "lstm": ("recurrent", {**DEEP[1], "d_model": 96}),
    "lstm-none": ("recurrent", {**NO_ATTENTION[1], "d_model": 96}),
}


@pytest.mark.parametrize("name", QUANTIZED)
def test_int8_is_smaller_and_translates_as_well(name: str, trained: Any, same_quality: Any, tmp_path: Path) -> None:
    original, lines = trained(*QUANTIZED[name])
    folders = {quantize: tmp_path / f"{quantize}" for quantize in (None, "int8")}
    for quantize, folder in folders.items():
        folder.mkdir()
        write(original, folder, quantize)
    exact, rounded = (
        sum((folder / name).stat().st_size for name in ("encoder.onnx", "step.onnx")) for folder in folders.values()
    )
    assert rounded < 0.6 * exact
    assert {path.name for path in folders["int8"].iterdir()} == {path.name for path in folders[None].iterdir()}
    assert json.loads((folders["int8"] / "dragoman.json").read_text(encoding="utf-8"))["quantize"] == "int8"
    other = load(folders["int8"], original)
    same_quality(original, other, lines)
    src, src_mask = sentences(5, 9)
    tgt_in = torch.tensor([[2, 4, 5, 6], [2, 7, 8, 9]])
    with torch.inference_mode():
        assert not torch.equal(original.model(src, src_mask, tgt_in), other.model(src, src_mask, tgt_in))


def test_what_cannot_be_exported_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    original = translator(*PLAIN)
    assert problems(original) == []
    assert problems(original.with_decoding(coverage_penalty=0.2)) == [onnx_export.NO_MAPS]
    assert "model.decoder_autoreg" in problems(translator("transformer", {**SMALL, "decoder_autoreg": "rnn"}))[0]
    with raises_error(Error.UNKNOWN_NAME):
        write(original, tmp_path, "int4")
    monkeypatch.setattr(onnx_export, "MAX_BYTES", 10_000)
    assert "an ONNX file has less than 10,000" in problems(original)[0]
    original.model = Ensemble([original.model, original.model])
    assert problems(original) == ["it is an ensemble of 2 models: export each run by itself"]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, exported: Any, tmp_path: Path) -> None:
    original, folder = exported(PLAIN)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with raises_error(Error.NOT_INSTALLED):
        load(folder, original)
    with raises_error(Error.NOT_INSTALLED):
        write(original, tmp_path, None)


def test_what_is_damaged_or_of_another_version_is_named(exported: Any, tmp_path: Path) -> None:
    original, folder = exported(PLAIN)
    other = mutated(folder, tmp_path / "copy", "step.onnx", lambda graph: None)
    assert isinstance(load(other, original).model, OnnxModel)
    (other / "encoder.onnx").write_bytes(b"\x00" * 100)
    with raises_error(Error.CANNOT_READ):
        load(other, original)
    told = json.loads((other / "dragoman.json").read_text(encoding="utf-8"))
    (other / "dragoman.json").write_text(json.dumps({**told, "format_version": 2}), encoding="utf-8")
    with raises_error(Error.WRONG_SETTING):
        load(other, original)


def test_the_model_itself_is_left_as_it_was(exported: Any) -> None:
    original, _ = exported(PLAIN)
    fresh = translator(*PLAIN)
    assert {type(module) for module in original.model.modules()} == {type(module) for module in fresh.model.modules()}
    for (name, ours), theirs in zip(original.model.named_parameters(), fresh.model.parameters(), strict=True):
        assert torch.equal(ours, theirs), name


def test_a_run_as_it_is_loaded_can_be_exported(tmp_path: Path) -> None:
    """Its weights are packed for the processor, which no graph can say."""
    original = translator(*PLAIN)
    expected = original.translate(LINES)
    pack(original.model)
    write(original, tmp_path, None)
    assert load(tmp_path, original).translate(LINES) == expected
