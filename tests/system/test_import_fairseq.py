"""Transformers of fairseq as run directories: each tensor in its place, each setting followed or refused by its name.

With fairseq (in the Python that DRAGOMAN_FAIRSEQ names) it saves checkpoints, our script reads them there, and both
translate. Without it, the folder that the script writes is written here.
"""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.importing import fairseq
from dragoman.importing.import_run import import_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.transformer import Transformer

PYTHON = "DRAGOMAN_FAIRSEQ"
SCRIPT = Path(__file__).parents[2] / "deploy" / "fairseq" / "to_safetensors.py"
PEER = Path(__file__).with_name("fairseq_peer.py")
WORDS = [f"w{number}" for number in range(30)]
SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>", *WORDS]
RNG = random.Random(4)
LINES = [" ".join(RNG.choices([*WORDS, "other"], k=RNG.randint(1, 9))) for _ in range(100)]
SIDE = {"embed_dim": 16, "ffn_embed_dim": 24, "layers": 1, "attention_heads": 2, "normalize_before": False,
        "learned_pos": False, "layerdrop": 0.1, "layers_to_keep": None}  # fmt: skip


def written(folder: Path) -> Path:
    """What the script writes of a small post-norm model."""
    folder.mkdir(parents=True)
    torch.manual_seed(1)
    tensors = {f"{side}.embed_tokens.weight": torch.randn(len(SYMBOLS), 16) for side in ("encoder", "decoder")}
    tensors["decoder.output_projection.weight"] = tensors["decoder.embed_tokens.weight"].clone()
    shapes = {"fc1": (24, 16), "fc2": (16, 24)}
    for side, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        for name in (f"{one}.{part}_proj" for one in attentions for part in ("q", "k", "v", "out")):
            shapes |= {f"{side}.{name}": (16, 16)}
        shapes |= {f"{side}.{one}_layer_norm": (16,) for one in [*attentions, "final"]}
        shapes |= {f"{side}.{one}": shapes[one] for one in ("fc1", "fc2")}
    for name, shape in shapes.items():
        side, _, rest = name.partition(".")
        if rest:
            tensors[f"{side}.layers.0.{rest}.weight"] = torch.randn(shape)
            tensors[f"{side}.layers.0.{rest}.bias"] = torch.randn(shape[0])
    save_file({**tensors, "encoder.version": torch.tensor([3.0])}, folder / "model.safetensors")
    described = {
        "format": "fairseq-model", "kinds": ["TransformerModel", "TransformerEncoderBase", "TransformerDecoderBase"],
        "task": "TranslationTask", "languages": ["de", "en"], "source": SYMBOLS, "target": SYMBOLS,
        "specials": {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
        "settings": {"activation_fn": "relu", "encoder": SIDE, "decoder": {**SIDE, "output_dim": 16},
                     "adaptive_input": False, "quant_noise": {"pq": 0.0}, "dropout": 0.3},
    }  # fmt: skip
    (folder / "fairseq.json").write_text(json.dumps(described), encoding="utf-8")
    return folder


def changed(folder: Path, **values: Any) -> Path:
    path = folder / "fairseq.json"
    described = json.loads(path.read_text(encoding="utf-8"))
    for name, value in values.items():
        described[name] = {**described[name], **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(described), encoding="utf-8")
    return folder


def test_what_the_script_writes_is_a_run(tmp_path: Path) -> None:
    folder = written(tmp_path / "theirs")
    translator = SearchTranslator.load(import_model(folder, tmp_path / "run"), device="cpu")
    model, theirs = translator.model, load_file(folder / "model.safetensors")
    assert isinstance(model, Transformer)
    assert translator.languages == ("de", "en")
    row = theirs["decoder.embed_tokens.weight"][2]
    assert torch.equal(model.tgt_embedding.tokens.embedding.weight[2], row)  # `<s>` is their `</s>`, which begins
    assert torch.equal(model.decoder_layers[0].feed_forward.expand.weight, theirs["decoder.layers.0.fc1.weight"])
    assert translator.tokenizers.src.encode("w3 other") == [translator.tokenizers.src.id_of("w3"), 1]
    assert model.output.bias is not None
    assert model.output.bias[:5].tolist() == [0.0, 0.0, -100.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"kinds": ["BARTModel", "TransformerEncoder", "TransformerDecoder"]}, "BARTModel"),
        ({"task": "TranslationMultiSimpleEpochTask"}, "TranslationMultiSimpleEpochTask"),
        ({"specials": {"pad": "<blank>"}}, "specials"),
        ({"settings": {"activation_fn": "tanh"}}, "activation_fn"),
        ({"settings": {"adaptive_softmax_cutoff": [9]}}, "adaptive_softmax_cutoff"),
        ({"settings": {"no_cross_attention": True}}, "no_cross_attention"),
        ({"settings": {"encoder": {**SIDE, "attention_heads": 4}}}, "attention_heads"),
        ({"settings": {"encoder": {**SIDE, "normalize_before": True}}}, "normalize_before"),
        ({"settings": {"a_setting_of_tomorrow": 1}}, "a_setting_of_tomorrow"),
        ({"source": [*SYMBOLS[:-1], "a@@"]}, "subword-nmt"),
        ({"source": SYMBOLS[:-1]}, "tokens"),
    ],
)
def test_settings_without_a_counterpart_are_refused_by_name(tmp_path: Path, values: Any, reason: str) -> None:
    with raises_error(Error.CANNOT_IMPORT) as error:
        fairseq.load(changed(written(tmp_path / "theirs"), **values), None, None)
    assert reason in str(error.value)


@pytest.mark.parametrize("broken", ["missing", "more", "shape", "layers"])
def test_tensors_that_do_not_fit_are_refused(tmp_path: Path, broken: str) -> None:
    folder = written(tmp_path / "theirs")
    path = folder / "model.safetensors"
    tensors, name = load_file(path), "encoder.layers.0.fc2.weight"
    if broken == "missing":
        del tensors[name]
    elif broken == "more":
        tensors["decoder.layer_norm.weight"] = torch.ones(16)
    elif broken == "shape":
        tensors[name] = tensors[name][:1].contiguous()
    else:
        changed(folder, settings={"encoder": {**SIDE, "layers": 10**9}})
    save_file(tensors, path)
    with raises_error(Error.CANNOT_IMPORT if broken in ("missing", "more") else Error.MISMATCH):
        fairseq.load(folder, None, None)


MODELS = {
    "post-norm, untied": [],
    "pre-norm, tied": ["--encoder-normalize-before", "--decoder-normalize-before", "--share-all-embeddings"],
    "learned, gelu, normed": [
        "--encoder-learned-pos", "--decoder-learned-pos", "--activation-fn", "gelu_accurate", "--layernorm-embedding",
        "--no-scale-embedding", "--share-decoder-input-output-embed", "--max-source-positions", "64",
        "--max-target-positions", "64",
    ],
}  # fmt: skip


@pytest.mark.skipif(not os.environ.get(PYTHON), reason=f"{PYTHON} names no Python")
@pytest.mark.system
@pytest.mark.parametrize("name", MODELS)
def test_fairseq_translates_the_same(tmp_path: Path, name: str) -> None:
    data, checkpoint = tmp_path / "data-bin", tmp_path / "checkpoint_best.pt"
    data.mkdir()
    for language in ("de", "en"):
        (data / f"dict.{language}.txt").write_text("".join(f"{word} 1\n" for word in WORDS), encoding="utf-8")

    def peer(*arguments: Any, lines: str = "") -> str:
        environment = {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}  # the pickle is our own
        command = [os.environ[PYTHON], *map(str, arguments)]
        return subprocess.run(
            command, input=lines, check=True, stdout=subprocess.PIPE, encoding="utf-8", env=environment
        ).stdout

    sizes = [f"--{side}-{what}" for side in ("encoder", "decoder") for what in ("layers=2", "embed-dim=16")]
    sizes += [
        f"--{side}-{what}" for side in ("encoder", "decoder") for what in ("ffn-embed-dim=24", "attention-heads=2")
    ]
    peer(PEER, "make", data, checkpoint, "--arch", "transformer", *sizes, *MODELS[name])
    peer(SCRIPT, checkpoint, data, tmp_path / "theirs")
    translator = SearchTranslator.load(import_model(tmp_path / "theirs", tmp_path / "run"), device="cpu")
    theirs = json.loads(peer(PEER, "translate", data, checkpoint, 1, lines="\n".join(LINES)).splitlines()[-1])
    ours = translator.with_decoding(beam_size=1, max_length_extra=20).n_best(LINES)
    assert [best.text for [best, *_] in ours] == [text for text, _ in theirs]
    ended = [
        number for number, [text, _] in enumerate(theirs) if len(text.split()) < 20
    ]  # theirs adds `</s>` to others
    assert all(abs(ours[number][0].score - theirs[number][1]) < 1e-4 for number in ended)
