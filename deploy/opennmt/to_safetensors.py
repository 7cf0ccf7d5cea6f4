"""A checkpoint of OpenNMT-py 3 in the files of eole, its successor, which `dragoman import` reads.

    python to_safetensors.py model_step_9000.pt FOLDER

It runs where PyTorch and safetensors are, as in OpenNMT-py's environment, and not where Dragoman is: a checkpoint is a
pickle, which may run any code when it is opened. Take those of people whom you trust. SentencePiece models that the
checkpoint names are looked for where it was trained, and are to be copied into FOLDER otherwise.
"""

import json
import re
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

NAMES = [
    (r"(en|de)coder\.embeddings\.make_embedding\.emb_luts\.0\.", r"\1_emb.embeddings."),
    (r"(en|de)coder\.embeddings\.make_embedding\.pe\.", r"\1_emb.pe."),
    (r"^en_emb", "src_emb"),
    (r"^de_emb", "tgt_emb"),
    (r"^encoder\.transformer\.", "encoder.transformer_layers."),
    (r"\.feed_forward\.layer_norm\.", ".post_attention_layernorm."),
    (r"(layers\.\d+)\.layer_norm(_1)?\.", r"\1.input_layernorm."),
    (r"(layers\.\d+)\.layer_norm_2\.", r"\1.precontext_layernorm."),
    (r"\.feed_forward\.w_1\.", ".mlp.gate_up_proj."),
    (r"\.feed_forward\.w_2\.", ".mlp.down_proj."),
    (r"\.feed_forward\.w_3\.", ".mlp.up_proj."),
]
"""Parts of the names of tensors there, and what eole made of them, one after the other."""
POSITIONS = {0: None, -1: "Rotary", -2: "Alibi"}
"""Kinds of positions by `max_relative_positions`; above 0 they are relative."""
NAMED_ALWAYS = (
    "parallel_residual",
    "shared_layer_norm",
    "sliding_window",
    "num_experts",
    "copy_attn",
    "generator_function",
)
"""Options that change what a model computes."""


def renamed(name):
    for pattern, replacement in NAMES:
        name = re.sub(pattern, replacement, name)
    return name


def tensors_of(checkpoint, path):
    """All tensors by eole's names; those that are shared once."""
    if "model" in checkpoint:
        generator = checkpoint["generator"] or {}
        tensors = {**checkpoint["model"], **{f"generator.{name}": value for name, value in generator.items()}}
    else:  # `save_format: safetensors`
        tensors = load_file(Path(path).with_suffix(".safetensors"))
    tensors = {renamed(name): tensor.clone() for name, tensor in tensors.items()}
    options = checkpoint["opt"]
    for one, other, option in (
        ("tgt_emb.embeddings.weight", "src_emb.embeddings.weight", "share_embeddings"),
        ("generator.weight", "tgt_emb.embeddings.weight", "share_decoder_embeddings"),
    ):
        if getattr(options, option, False) and one in tensors:
            kept = tensors.get(other, tensors.get("src_emb.embeddings.weight"))
            if not torch.equal(tensors.pop(one), kept):
                sys.exit(f"{path}: {option}, and {one} is not equal to {other}")
    return tensors


def described(options):
    """The options as eole's configuration. Those of other models go along, for Dragoman to name them."""
    relative = getattr(options, "max_relative_positions", 0)
    positions = getattr(options, "position_encoding_type", "SinusoidalInterleaved")
    if relative or not options.position_encoding:
        positions = POSITIONS.get(relative, "Relative")
    activation = getattr(options, "pos_ffn_activation_fn", "relu")
    model = {
        "architecture": "transformer",
        "encoder": {"encoder_type": options.encoder_type, "layers": options.enc_layers},
        "decoder": {"decoder_type": options.decoder_type, "layers": options.dec_layers},
        "embeddings": {"position_encoding_type": positions},
        "heads": options.heads,
        "heads_kv": getattr(options, "num_kv", 0) or None,
        "mlp_activation_fn": {"silu": "gated-silu"}.get(activation, activation),
        "layer_norm": getattr(options, "layer_norm", "standard"),
        "norm_eps": getattr(options, "norm_eps", 1e-6),
        "share_embeddings": options.share_embeddings,
        "share_decoder_embeddings": options.share_decoder_embeddings,
        **{name: getattr(options, name) for name in NAMED_ALWAYS if getattr(options, name, False)},
    }
    if relative == -1:
        names = ("rotary_interleave", "rotary_theta", "rotary_dim")
        model["rope_config"] = {name: getattr(options, name) for name in names if hasattr(options, name)}
    if getattr(options, "model_task", "seq2seq") != "seq2seq":
        model["encoder"] = None
    corpora = [one.get("transforms") or [] for one in (getattr(options, "data", None) or {}).values() if one]
    names = [*getattr(options, "transforms", []), *(name for transforms in corpora for name in transforms)]
    models = {f"{side}_subword_model": getattr(options, f"{side}_subword_model", None) for side in ("src", "tgt")}
    return {
        "model": model,
        "share_vocab": getattr(options, "share_vocab", False),
        "transforms": list(dict.fromkeys(names)),
        "transforms_configs": {"sentencepiece": models},
        "training": {name: getattr(options, name, None) for name in ("quant_type", "lora_layers", "lora_embedding")},
        "inference": {"max_length_ratio": 1.25},  # as onmt_translate has it by itself
    }


def main(path, folder):
    checkpoint = torch.load(path, map_location="cpu", weights_only=False)  # noqa: TID251
    vocabulary = checkpoint["vocab"]
    if not isinstance(vocabulary, dict) or not isinstance(vocabulary.get("src"), list):
        sys.exit(f"{path}: of OpenNMT-py before 3: convert it with its tools/convertv2_v3.py first")
    config, tensors = described(checkpoint["opt"]), tensors_of(checkpoint, path)
    folder = Path(folder)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.00.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False, indent=1), encoding="utf-8")
    for name in set(config["transforms_configs"]["sentencepiece"].values()):
        if name and Path(name).is_file():
            shutil.copy(name, folder)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
