"""Checkpoints of OpenNMT-py 3, which our script writes as eole's files: the same model, or refused by name."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.errors import raises_error
from tests.system.test_export_argos import LINES, TOKENIZERS, copying, tiny
from tests.system.test_import_eole import written

from dragoman.errors import Error
from dragoman.export.normalization import sentencepiece_model
from dragoman.importing.import_run import import_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.special_tokens import SPECIALS
from dragoman.text.tokenizers.pair import pieces_of

PYTHON = "DRAGOMAN_OPENNMT"
SCRIPT = Path(__file__).parents[2] / "deploy" / "opennmt" / "to_safetensors.py"
EMBEDDINGS = "coder.embeddings.make_embedding."
NAMES = {
    "src_emb.embeddings": f"en{EMBEDDINGS}emb_luts.0",
    "tgt_emb.embeddings": f"de{EMBEDDINGS}emb_luts.0",
    "src_emb.pe": f"en{EMBEDDINGS}pe",
    "tgt_emb.pe": f"de{EMBEDDINGS}pe",
    "post_attention_layernorm": "feed_forward.layer_norm",
    "precontext_layernorm": "layer_norm_2",
    "mlp.gate_up_proj": "feed_forward.w_1",
    "mlp.down_proj": "feed_forward.w_2",
}
"""Parts of eole's names, and those of OpenNMT-py."""
pytestmark = pytest.mark.system


def in_opennmt(name: str) -> str:
    for ours, other in NAMES.items():
        name = name.replace(ours, other)
    if name.startswith("encoder.transformer_layers"):
        name = name.replace("transformer_layers", "transformer").replace("input_layernorm", "layer_norm")
    return name.replace("input_layernorm", "layer_norm_1")


def saved(folder: Path, *, apart: bool = False, **options: Any) -> Path:
    """A checkpoint as its `model_saver.py` lays it out; `apart`: tensors in a file beside it. Default: as trained."""
    eole = written(copying(), folder / "eole")
    described = json.loads((eole / "config.json").read_text(encoding="utf-8"))["model"]
    tensors = {in_opennmt(name): value for name, value in load_file(eole / "model.00.safetensors").items()}
    tensors = {name: value for name, value in tensors.items() if "layer_scalar" not in name}
    vocabulary = json.loads((eole / "vocab.json").read_text(encoding="utf-8"))
    tokens = ["<blank>" if token == "<pad>" else token for token in vocabulary["src"]]
    given = {
        "encoder_type": "transformer", "decoder_type": "transformer", "position_encoding": True,
        "heads": described["heads"],
        "enc_layers": described["encoder"]["layers"], "dec_layers": described["decoder"]["layers"], "num_kv": 0,
        "pos_ffn_activation_fn": described["mlp_activation_fn"], "norm_eps": described["norm_eps"],
        "share_embeddings": False, "share_decoder_embeddings": False, "copy_attn": False, "share_vocab": True,
        "data": {"corpus": {"transforms": ["sentencepiece", "filtertoolong"]}, "valid": {}},
        "src_subword_model": str(eole / "spm.model"), "tgt_subword_model": str(eole / "spm.model"),
    }  # fmt: skip
    for name, other in (("generator.weight", "decoder"), (f"de{EMBEDDINGS}emb_luts.0.weight", "encoder")):
        if name not in tensors:  # shared ones are in its file twice
            given["share_embeddings" if other == "encoder" else "share_decoder_embeddings"] = True
            tensors[name] = tensors[f"en{EMBEDDINGS}emb_luts.0.weight"].clone()
    body: dict[str, Any] = {"vocab": {"src": tokens, "tgt": tokens, "data_task": "seq2seq"}, "optim": {}}
    body["opt"] = argparse.Namespace(**{**given, **options})
    path = folder / "model_step_20.pt"
    if apart:
        save_file(tensors, path.with_suffix(".safetensors"))
    else:
        generator = {name.split(".")[1]: tensors.pop(name) for name in list(tensors) if name.startswith("generator.")}
        body |= {"model": tensors, "generator": generator}
    torch.save(body, path)
    return path


def converted(path: Path) -> Path:
    folder = path.parent / "theirs"
    subprocess.run([sys.executable, str(SCRIPT), str(path), str(folder)], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("apart", [False, True])
def test_a_checkpoint_is_read_as_the_same_model(tmp_path: Path, apart: bool) -> None:
    folder = converted(saved(tmp_path, apart=apart))
    before, after = (load_file(one / "model.00.safetensors") for one in (tmp_path / "eole", folder))
    assert {name for name in before if "layer_scalar" not in name} == set(after)
    assert all(torch.equal(before[name], value) for name, value in after.items())
    runs = [import_model(one, tmp_path / f"run-{one.name}", "en", "de") for one in (tmp_path / "eole", folder)]
    first, second = (SearchTranslator.load(run, device="cpu") for run in runs)
    assert (second.decoding.beam_size, second.decoding.max_length_ratio) == (5, 1.25)
    second = second.with_decoding(max_length_ratio=2.0, max_length_extra=3)
    assert second.translate(LINES[:30], beam_size=1) == first.translate(LINES[:30], beam_size=1)
    assert second.tokenizers.src.encode(LINES[0]) == TOKENIZERS.src.encode(LINES[0])


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("max_relative_positions", 20, "Relative"),
        ("max_relative_positions", -2, "Alibi"),
        ("encoder_type", "brnn", "brnn"),
        ("copy_attn", True, "copy_attn"),
        ("parallel_residual", True, "parallel_residual"),
        ("num_experts", 4, "num_experts"),
        ("pos_ffn_activation_fn", "gated-gelu", "gated-gelu"),
        ("lora_layers", ["linear_query"], "lora_layers"),
        ("transforms", ["onmt_tokenize"], "onmt_tokenize"),
        ("model_task", "lm", "encoder"),
    ],
)
def test_options_without_a_counterpart_are_refused_by_name(
    tmp_path: Path, option: str, value: Any, reason: str
) -> None:
    folder = converted(saved(tmp_path, **{option: value}))
    with raises_error(Error.CANNOT_IMPORT) as error:
        import_model(folder, tmp_path / "run", "en", "de")
    assert reason in str(error.value)


def test_a_checkpoint_of_version_2_is_sent_to_its_own_tool(tmp_path: Path) -> None:
    path = saved(tmp_path)
    torch.save({**torch.load(path, weights_only=False), "vocab": {"src": "a field of torchtext"}}, path)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(path), str(tmp_path / "out")], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.endswith("of OpenNMT-py before 3: convert it with its tools/convertv2_v3.py first\n")
    assert not (tmp_path / "out").exists()


MODELS: dict[str, list[str]] = {
    "sinusoids, tied": ["-position_encoding", "-share_embeddings", "-share_decoder_embeddings"],
    "rotary, grouped, swiglu, rms": [
        "-max_relative_positions", "-1", "-rotary_interleave", "-num_kv", "1", "-pos_ffn_activation_fn", "silu",
        "-layer_norm", "rms",
    ],
    "no positions, gelu": ["-pos_ffn_activation_fn", "gelu"],
}  # fmt: skip
TRAINING = """
src_vocab: vocab
tgt_vocab: vocab
share_vocab: true
data: {corpus: {path_src: lines, path_tgt: lines, transforms: [sentencepiece]}}
src_subword_model: spm.model
tgt_subword_model: spm.model
encoder_type: transformer
decoder_type: transformer
layers: 1
heads: 2
hidden_size: 32
word_vec_size: 32
transformer_ff: 48
dropout: [0.0]
attention_dropout: [0.0]
batch_size: 16
batch_type: sents
optim: adam
learning_rate: 0.003
train_steps: 250
save_checkpoint_steps: 250
num_workers: 0
bucket_size: 64
"""


@pytest.mark.skipif(not os.environ.get(PYTHON), reason=f"{PYTHON} names no Python")
@pytest.mark.parametrize("name", MODELS)
def test_opennmt_translates_the_same(tmp_path: Path, name: str) -> None:
    def peer(*arguments: str) -> None:
        environment = {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}  # the pickle is our own
        subprocess.run([os.environ[PYTHON], *arguments], check=True, capture_output=True, cwd=tmp_path, env=environment)

    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    (tmp_path / "spm.model").write_bytes(sentencepiece_model(TOKENIZERS.src, tiny().normalize))
    pieces = [piece for piece in pieces_of(TOKENIZERS.src) if piece not in SPECIALS]
    (tmp_path / "vocab").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    (tmp_path / "train.yaml").write_text(TRAINING, encoding="utf-8")
    peer("-m", "onmt.bin.train", "-config", "train.yaml", "-save_model", "model", *MODELS[name])
    peer(str(SCRIPT), "model_step_250.pt", "theirs")
    translator = SearchTranslator.load(import_model(tmp_path / "theirs", tmp_path / "run", "en", "de"), device="cpu")
    texts = ["-transforms", "sentencepiece", "-src_subword_model", "spm.model", "-tgt_subword_model", "spm.model"]
    translate = ["-m", "onmt.bin.translate", "-model", "model_step_250.pt", "-src", "lines", "-batch_size", "1"]
    peer(*translate, *texts, "-output", "out", "-beam_size", "1")  # alone: a longest translation is of a whole batch
    assert translator.translate(LINES, beam_size=1) == (tmp_path / "out").read_text(encoding="utf-8").split("\n")[:-1]
