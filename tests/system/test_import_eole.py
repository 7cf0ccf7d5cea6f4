"""Models of eole as run directories: each tensor in its place, each setting followed or refused by its name.

With eole (in the Python that DRAGOMAN_EOLE names) eole itself translates what is imported here.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.errors import raises_error
from tests.system.test_export_argos import LINES, taught, tiny

from dragoman.errors import Error
from dragoman.export.normalization import sentencepiece_model
from dragoman.export.parameter_names import named
from dragoman.importing import eole
from dragoman.importing.import_run import import_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.transformer import Transformer
from dragoman.nn.positions import LearnedPositions, RotaryPositions
from dragoman.runs import checkpoint
from dragoman.text.tokenizers.pair import pieces_of
from dragoman.text.tokenizers.sentencepiece import SentencePieceTokenizer

PYTHON = "DRAGOMAN_EOLE"
MODELS: dict[str, dict[str, Any]] = {
    "default": {},
    "tied, learned, gelu": {
        "tie_embeddings": "all", "position": {"type": "learned", "max_len": 90}, "activation": "gelu",
        "scale_embeddings": False, "output_bias": True,
    },
    "rotary, grouped, swiglu, rms": {
        "position": {"type": "rotary", "base": 500.0}, "num_kv_heads": 1, "activation": "swiglu", "norm": "rms",
        "tie_embeddings": "output", "norm_eps": 1e-6, "scale_embeddings": False,
    },
    "other sinusoids": {"position": {"type": "sinusoidal", "layout": "fairseq"}, "activation": "silu"},
}  # fmt: skip


def written(translator: SearchTranslator, folder: Path) -> Path:
    """A model of ours as eole saves it; a source has no end there."""
    model = translator.model
    assert isinstance(model, Transformer)
    folder.mkdir(parents=True)
    src, tgt = model.src_embedding, model.tgt_embedding
    ours = {"src_emb.embeddings.weight": src.tokens.embedding.weight}
    tied, output = tgt.tokens.embedding.weight is model.output.weight, model.output
    shared = src.tokens.embedding.weight is tgt.tokens.embedding.weight
    ours |= {} if shared else {"tgt_emb.embeddings.weight": tgt.tokens.embedding.weight}
    ours |= {} if tied else {"generator.weight": output.weight}
    ours |= {} if output.bias is None else {"generator.bias": output.bias}
    attention = model.encoder_layers[0].self_attention
    positions, rotary = src.positions, isinstance(attention.positions, RotaryPositions)
    learned = isinstance(positions, LearnedPositions)
    for side, embedding in (("src", src), ("tgt", tgt)):
        if learned:
            ours[f"{side}_emb.pe.weight"] = embedding.positions.embedding.weight
        elif not rotary:
            ours[f"{side}_emb.pe.pe"] = embedding.positions(0, 5000)[:, None]
    for one in named(model):
        ours |= {f"{one.eole}.{kind}": value for kind, value in one.module.named_parameters(recurse=False)}
    for number, _ in enumerate(model.decoder_layers):
        ours[f"decoder.transformer_layers.{number}.layer_scalar"] = torch.ones(1)
    save_file({name: value.detach().clone() for name, value in ours.items()}, folder / "model.00.safetensors")
    layer = model.encoder_layers[0]
    gated = hasattr(layer.feed_forward, "gate")
    activation = type(getattr(layer.feed_forward, "activation", None)).__name__.lower()
    scheme = "Learned" if learned else "Rotary" if rotary else "SinusoidalInterleaved"
    heads = attention.query_proj.out_features // attention.d_head
    norm = layer.feed_forward_residual.norm
    settings = {
        "architecture": "transformer", "heads": heads, "heads_kv": attention.key_proj.out_features // attention.d_head,
        "hidden_size": attention.query_proj.in_features, "transformer_ff": layer.feed_forward.expand.out_features,
        "encoder": {"encoder_type": "transformer", "layers": len(model.encoder_layers)},
        "decoder": {"decoder_type": "transformer", "layers": len(model.decoder_layers)},
        "mlp_activation_fn": "gated-silu" if gated else activation, "norm_eps": norm.eps,
        "layer_norm": "standard" if isinstance(norm, torch.nn.LayerNorm) else "rms",
        "add_qkvbias": True, "add_final_linear_bias": True, "add_ffnbias": not gated,
        "generator_bias": output.bias is not None, "share_embeddings": shared, "share_decoder_embeddings": tied,
        "embeddings": {
            "word_vec_size": attention.query_proj.in_features, "position_encoding_type": scheme,
            "n_positions": len(positions.embedding.weight) if learned else None,
        },
        **({"rope_config": {"rotary_theta": int(attention.positions.waves.base)}} if rotary else {}),
    }  # fmt: skip
    spm = {f"{side}_subword_model": "${MODEL_PATH}/spm.model" for side in ("src", "tgt")}
    described = {
        "model": settings,
        "share_vocab": True,
        "src_vocab": "vocabulary.txt",
        "training": {"compute_dtype": "torch.float32"},
        "transforms": ["sentencepiece", "filtertoolong"],
        "transforms_configs": {"sentencepiece": spm},
    }
    (folder / "config.json").write_text(json.dumps(described), encoding="utf-8")
    tokenizer = translator.tokenizers.src
    assert isinstance(tokenizer, SentencePieceTokenizer)
    (folder / "spm.model").write_bytes(sentencepiece_model(tokenizer, translator.normalize))
    pieces = pieces_of(tokenizer)
    specials = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    vocabulary = {"src": pieces, "tgt": pieces, "decoder_start_token": "<s>", "specials": specials}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    return folder


def changed(folder: Path, **sections: Any) -> Path:
    """The folder with other settings."""
    path = folder / "config.json"
    described = json.loads(path.read_text(encoding="utf-8"))
    for name, value in sections.items():
        described[name] = {**described.get(name, {}), **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(described), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_eole_is_read_as_it_is(tmp_path: Path, name: str) -> None:
    translator = tiny(MODELS[name])
    run = import_model(written(translator, tmp_path / "theirs"), tmp_path / "run", "en", "de")
    again = SearchTranslator.load(run, device="cpu")
    assert isinstance(again.model, Transformer)
    assert not again.model.src_end
    ours, theirs = checkpoint.weights(translator.model), checkpoint.weights(again.model)
    assert all(torch.equal(theirs[key], value) for key, value in ours.items())
    assert again.tokenizers.src.encode(LINES[0]) == translator.tokenizers.src.encode(LINES[0])
    assert (again.decoding.beam_size, again.decoding.ban_unk) == (5, False)


def test_biases_that_it_does_not_have_are_zero_and_a_table_of_its_own_is_kept(tmp_path: Path) -> None:
    folder = written(tiny(), tmp_path / "theirs")
    path = folder / "model.00.safetensors"
    tensors = load_file(path)
    kept = {name: value for name, value in tensors.items() if "_attn" not in name or not name.endswith("bias")}
    changed(folder, model={"add_qkvbias": False, "add_final_linear_bias": False})
    kept |= {f"{side}_emb.pe.pe": tensors[f"{side}_emb.pe.pe"] + 1e-3 for side in ("src", "tgt")}
    save_file(kept, path)
    model = eole.load(folder, "en", "de").model
    assert not model.encoder_layers[0].self_attention.query_proj.bias.any()
    assert isinstance(model.src_embedding.positions, LearnedPositions)
    assert torch.equal(model.src_embedding.positions.embedding.weight[:, None], kept["src_emb.pe.pe"])


@pytest.mark.parametrize(
    ("section", "value", "reason"),
    [
        ("model", {"sliding_window": 64}, "sliding_window"),
        ("model", {"num_experts": 4}, "num_experts"),
        ("model", {"architecture": "rnn"}, "architecture"),
        ("model", {"encoder": None}, "encoder"),
        ("model", {"encoder": {"encoder_type": "transformer", "encoder_layer_style": "postnorm"}}, "postnorm"),
        ("model", {"embeddings": {"position_encoding_type": "Alibi"}}, "Alibi"),
        ("model", {"embeddings": {"position_encoding_type": "Learned", "normalize": True}}, "Learned"),
        ("model", {"rope_config": {"rotary_interleave": False}}, "rotary_interleave"),
        ("model", {"mlp_activation_fn": "gated-gelu"}, "mlp_activation_fn"),
        ("model", {"layer_norm": "gemma-rms"}, "layer_norm"),
        ("model", {"heads": 5}, "heads"),
        ("model", {"decoder": {"decoder_type": "transformer", "heads": 4}}, "heads"),
        ("model", {"decoder": {"decoder_type": "transformer", "layers": 9}}, "layers"),
        ("model", {"a_setting_of_tomorrow": 1}, "a_setting_of_tomorrow"),
        ("training", {"quant_type": "bnb_NF4"}, "quant_type"),
        ("training", {"lora_layers": ["linear_query"]}, "lora_layers"),
        ("transforms", ["sentencepiece", "prefix"], "prefix"),
        ("transforms", ["onmt_tokenize"], "onmt_tokenize"),
        ("inference", {"top_p": 0.9}, "top_p"),
    ],
)
def test_settings_without_a_counterpart_are_refused_by_name(
    tmp_path: Path, section: str, value: Any, reason: str
) -> None:
    folder = changed(written(tiny(), tmp_path / "theirs"), **{section: value})
    with raises_error(Error.CANNOT_IMPORT) as error:
        eole.load(folder, "en", "de")
    assert reason in str(error.value)


@pytest.mark.parametrize("broken", ["missing", "more", "shape", "one number", "int8", "nan", "vocabulary", "start"])
def test_tensors_that_do_not_fit_are_refused(tmp_path: Path, broken: str) -> None:
    folder = written(tiny(), tmp_path / "theirs")
    path, vocabulary = folder / "model.00.safetensors", json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    tensors, name = load_file(path), "encoder.transformer_layers.0.mlp.down_proj.weight"
    if broken == "missing":
        del tensors[name]
    elif broken == "more":
        tensors["adapter.w"] = tensors[name].clone()
    elif broken == "vocabulary":
        vocabulary["src"] = vocabulary["src"][:-1]
    elif broken == "start":
        vocabulary["decoder_start_token"] = "</s>"
    else:
        ways = {"shape": lambda t: t[1:], "one number": lambda t: t[:1, :1], "int8": lambda t: t.to(torch.int8),
                "nan": lambda t: t / 0}  # fmt: skip
        tensors[name] = ways[broken](tensors[name]).contiguous()
    save_file(tensors, path)
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    with raises_error(Error.MISMATCH if broken in ("shape", "one number") else Error.CANNOT_IMPORT):
        eole.load(folder, "en", "de")


def by_eole(folder: Path, lines: list[str], beam_size: int) -> list[str]:
    """Its translations, each line alone: a longest translation is of a whole batch."""
    (folder / "lines").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [os.environ[PYTHON], "-m", "eole.bin.main", "predict", "-model_path", str(folder)]
    command += ["-src", str(folder / "lines"), "-output", str(folder / "out"), "-batch_size", "1"]
    subprocess.run([*command, "-beam_size", str(beam_size)], check=True, capture_output=True)
    return (folder / "out").read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.skipif(not os.environ.get(PYTHON), reason=f"{PYTHON} names no Python")
@pytest.mark.system
@pytest.mark.parametrize("name", MODELS)
def test_eole_translates_the_same(tmp_path: Path, name: str) -> None:
    folder = written(taught(tiny(MODELS[name])), tmp_path / "theirs")
    translator = SearchTranslator.load(import_model(folder, tmp_path / "run", "en", "de"), device="cpu")
    assert translator.translate(LINES, beam_size=1) == by_eole(folder, LINES, 1)
