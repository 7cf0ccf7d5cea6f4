"""A model in Marian's files is the same model, in and out, or refused by the option that has no counterpart.

With pymarian (in the Python that DRAGOMAN_MARIAN names) Marian itself translates, and bergamot-translator (in the
folder that DRAGOMAN_BERGAMOT names) as browsers do: `tests/clients/run.py` sees to both.
"""

import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece as spm
import torch
import yaml
from tests.errors import raises_error
from tests.system.test_export_argos import LINES, TOKENIZERS, tiny

from dragoman.errors import Error
from dragoman.export import bergamot, marian, marian_format, marian_weights
from dragoman.importing import marian as importing
from dragoman.importing.import_run import import_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.transformer import Transformer
from dragoman.runs import checkpoint
from dragoman.special_tokens import BOS_ID, PAD_ID
from dragoman.text.tokenizers.pair import TokenizerPair

MARIANS: dict[str, Any] = {
    "norm_placement": "post",
    "norm_eps": 1e-6,
    "position": {"type": "sinusoidal", "layout": "fairseq"},
    "tie_embeddings": "all",
    "output_bias": True,
    "zero_start": True,
    "activation": "silu",
}
"""What Marian's own implementation holds."""
TIED = {"num_decoder_layers": 3, "tied_layers": [1, 1, 3]}
MODELS: dict[str, dict[str, Any]] = {
    "marian": MARIANS,
    "marian, untied, relu": {**MARIANS, "tie_embeddings": "none", "activation": "relu", "embedding_norm": True},
    "marian, SSRU": {**MARIANS, "decoder_autoreg": "rnn"},
    "marian, SSRU, tied layers": {**MARIANS, "decoder_autoreg": "rnn", "activation": "relu", **TIED},
    "SSRU": {"decoder_autoreg": "rnn"},
    "tied layers": {**TIED, "num_encoder_layers": 2, "tied_encoder_layers": [1, 1]},
    "defaults": {},
    "post, learned": {
        "norm_placement": "post",
        "position": {"type": "learned", "max_len": 64},
        "tie_embeddings": "all",
    },
    "rms, no positions": {"norm": "rms", "position": {"type": "none"}, "tie_embeddings": "output"},
    "few heads, unscaled": {"num_kv_heads": 1, "scale_embeddings": False, "embedding_norm": True, "activation": "silu"},
    "half split": {"position": {"type": "sinusoidal", "layout": "half_split", "offset": 1}, "tie_embeddings": "all"},
}
with_marian = pytest.mark.skipif(not os.environ.get(marian.PYTHON), reason=f"{marian.PYTHON} names no Python")
with_bergamot = pytest.mark.skipif(not os.environ.get(bergamot.PACKAGE), reason=f"{bergamot.PACKAGE} names no folder")


def shaken(model: dict[str, Any], tokenizers: TokenizerPair = TOKENIZERS) -> SearchTranslator:
    """A random model in which no weight is one that two places could share by chance; a short search of it."""
    translator = tiny(model, tokenizers=tokenizers, max_src_tokens=12)
    with torch.no_grad():
        for parameter in translator.model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        if (bias := translator.model.output.bias) is not None:  # as trained: what is padding is never said
            bias[[PAD_ID, BOS_ID]] = -100.0
    return translator.with_decoding(beam_size=1, max_length_ratio=1.0, max_length_extra=0)


def written(translator: SearchTranslator, folder: Path) -> Path:
    folder.mkdir()
    marian.write(translator, folder)
    return folder


def logits(model: Any) -> torch.Tensor:
    torch.manual_seed(5)
    src, tgt = torch.randint(4, 40, (3, 7)), torch.randint(4, 40, (3, 6))
    tgt[:, 0] = BOS_ID
    with torch.no_grad():
        found: torch.Tensor = model(src, torch.ones_like(src).bool(), tgt).log_softmax(-1)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_what_is_written_is_read_as_the_same_model(tmp_path: Path, name: str) -> None:
    translator = shaken(MODELS[name])
    assert marian.problems(translator) == []
    run = import_model(written(translator, tmp_path / "out"), tmp_path / "run")
    again = SearchTranslator.load(run, device="cpu")
    assert (again.languages, again.tokenizers.tgt.vocab_size) == (("en", "de"), TOKENIZERS.tgt.vocab_size)
    assert (logits(again.model) - logits(translator.model)).abs().max() < 1e-4
    if name.startswith("marian"):  # nothing had to be moved to another place: bit for bit
        theirs = checkpoint.weights(again.model)
        ours = checkpoint.weights(translator.model)
        assert all(torch.equal(theirs[key], value) for key, value in ours.items())
        assert yaml.safe_load((tmp_path / "out" / "decoder.yml").read_text())["beam-size"] == 1


def test_the_vector_of_the_start_is_zero_in_every_export(tmp_path: Path) -> None:
    model = shaken(MARIANS).model
    assert isinstance(model, Transformer)
    tokens = model.tgt_embedding.tokens
    assert not tokens(torch.tensor([[BOS_ID, 5]]))[0, 0].any()
    assert not tokens.vectors()[BOS_ID].any()
    assert tokens.embedding.weight[BOS_ID].any()  # which is a row of the output all the same


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ({"norm_placement": "output"}, "model.norm_placement: output"),
        ({"position": {"type": "rotary"}}, "model.position: rotary"),
        ({"position": {"type": "alibi"}}, "model.position: alibi"),
        ({"position": {"type": "relative"}}, "model.position: relative"),
        ({"activation": "gelu"}, "model.activation"),
        ({"activation": "swiglu"}, "model.activation"),
        ({"norm_eps": 1e-3}, "model.norm_eps"),
        ({"src_end": False}, "model.src_end"),
        ({"d_head": 24}, "model.d_head"),
    ],
)
def test_what_marian_cannot_express_is_refused_by_name(model: dict[str, Any], reason: str) -> None:
    (found,) = marian.problems(tiny(model))
    assert reason in found


def test_a_browser_runs_marians_own_implementation_alone() -> None:
    assert len(bergamot.problems(tiny())) == 4
    assert [line.split(":")[0] for line in bergamot.problems(tiny(MARIANS))] == ["model.d_model"]
    assert bergamot.problems(tiny({**MARIANS, "d_model": 64})) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("type", "s2s"),
        ("transformer-decoder-autoreg", "rnn"),
        ("transformer-decoder-autoreg", "average-attention"),
        ("transformer-ffn-activation", "gelu"),
        ("transformer-ffn-depth", 3),
        ("transformer-postprocess", "dah"),
        ("transformer-preprocess", "n"),
        ("transformer-no-projection", True),
        ("transformer-attention-mask", "alibi"),
        ("right-left", True),
        ("lemma-dim-emb", 8),
        ("input-types", ["sequence", "class"]),
        ("an-option-of-tomorrow", 1),
    ],
)
def test_options_without_a_counterpart_are_refused_by_name(tmp_path: Path, option: str, value: Any) -> None:
    folder = written(shaken(MARIANS), tmp_path / "out")
    arrays, options = marian_format.read_npz(folder / "model.npz")
    marian_format.write_npz(folder / "model.npz", arrays, {**options, option: value})
    with raises_error(Error.CANNOT_IMPORT) as error:
        importing.load(folder, None, None)
    assert option in str(error.value)


@pytest.mark.parametrize("broken", ["missing", "more", "shape", "heads", "depth", "vocabulary", "int8"])
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, broken: str) -> None:
    folder = written(shaken(MARIANS), tmp_path / "out")
    arrays, options = marian_format.read_npz(folder / "model.npz")
    name = "encoder_l1_ffn_W1"
    if broken == "missing":
        del arrays[name]
    elif broken == "more":
        arrays["encoder_l9_ffn_W1"] = arrays[name]
    elif broken == "shape":
        arrays["encoder_l1_self_Wq"] = arrays["encoder_l1_self_Wq"][1:]
    elif broken == "int8":
        arrays[name] = arrays[name].astype(np.int8)
    else:
        sizes = {"heads": {"transformer-heads": 5}, "depth": {"enc-depth": 10**9}, "vocabulary": {"dim-vocabs": [9, 9]}}
        options |= sizes[broken]
    marian_format.write_npz(folder / "model.npz", arrays, options)
    fits = broken in ("missing", "more", "int8")
    with raises_error(Error.CANNOT_IMPORT if fits else Error.MISMATCH):
        importing.load(folder, None, None)


def test_a_model_with_no_tokenizer_of_ours_beside_it_is_read_by_its_vocabulary(tmp_path: Path) -> None:
    """As a model that Marian trained: SentencePiece, or a list of tokens."""
    translator = shaken(MARIANS)
    folder = written(translator, tmp_path / "out")
    for path in (folder / "tokenizer" / "shared").iterdir():
        path.unlink()
    (folder / "tokenizer" / "tokenizers.json").unlink()
    (folder / "dragoman.json").unlink()
    found = SearchTranslator.load(import_model(folder, tmp_path / "run", "en", "de"), device="cpu")
    assert found.translate(LINES[:9], beam_size=1) == translator.translate(LINES[:9], max_length_ratio=1.0)
    (folder / "decoder.yml").unlink()
    pieces = {"</s>": 0, "<unk>": 1, **{f"w{number}": number for number in range(2, 50)}}
    (folder / "vocab.spm").unlink()
    (folder / "vocab.yml").write_text(yaml.safe_dump(pieces), encoding="utf-8")
    words = importing.load(folder, "en", "de").tokenizers.src
    assert words.encode("w7 w2 other") == [words.id_of("w7"), words.id_of("w2"), words.id_of("<unk>")]
    pieces = {("▁" + piece if piece == "w2" else piece): row for piece, row in pieces.items()}
    (folder / "vocab.yml").write_text(yaml.safe_dump(pieces), encoding="utf-8")
    with raises_error(Error.MISSING_OPTION):
        importing.load(folder, "en", "de")


def test_an_import_goes_out_again_with_its_own_sentencepiece(tmp_path: Path) -> None:
    """One that Marian has learnt: `</s>` is its first piece, `<unk>` its second, and there are no more specials."""
    stream = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=stream, vocab_size=30, hard_vocab_limit=False,
        bos_id=-1, pad_id=-1, eos_id=0, unk_id=1, minloglevel=2,
    )  # fmt: skip
    rows = list(range(spm.SentencePieceProcessor(model_proto=stream.getvalue()).GetPieceSize()))
    model = shaken(MARIANS).model
    assert isinstance(model, Transformer)
    first = tmp_path / "first"
    first.mkdir()
    arrays = marian_weights.arrays(model, marian_weights.OLD, (rows, rows), 0)
    options = marian_weights.options(model, marian_weights.OLD, (len(rows), len(rows)), "v1.12.0")
    marian_format.write_npz(first / "model.npz", arrays, options)
    (first / "vocab.spm").write_bytes(stream.getvalue())
    translator = SearchTranslator.load(import_model(first, tmp_path / "run", "en", "de"), device="cpu")
    second = written(translator, tmp_path / "second")
    again, told = marian_format.read_npz(second / "model.npz")
    assert (second / "vocab.spm").read_bytes() == stream.getvalue()
    assert told["dim-vocabs"] == options["dim-vocabs"]
    assert arrays.keys() == again.keys()
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)


def test_positions_that_marian_computes_are_the_layout_of_fairseq() -> None:
    model = tiny(MARIANS).model
    assert isinstance(model, Transformer)
    assert marian_weights.kind_of(model) == marian_weights.OLD
    half = tiny({**MARIANS, "norm_eps": 1e-5, "position": {"type": "sinusoidal", "layout": "half_split"}}).model
    assert isinstance(half, Transformer)
    assert marian_weights.kind_of(half) == marian_weights.NEW
    assert marian_weights.has_table(half, marian_weights.NEW)


@with_marian
@pytest.mark.system
@pytest.mark.parametrize("name", MODELS)
def test_marian_translates_the_same(tmp_path: Path, name: str) -> None:
    # With a bias, so that padding is never said: Marian does not ban it, and only what has learnt nothing says it.
    translator = shaken({**MODELS[name], "output_bias": True})
    folder = written(translator, tmp_path / "out")
    ours, theirs = (one.n_best(LINES) for one in (translator, marian.load(folder, translator)))
    assert [one[0].text for one in theirs] == [one[0].text for one in ours]
    assert max(abs(one[0].score - two[0].score) for one, two in zip(ours, theirs, strict=True)) < 1e-3


@with_marian
@pytest.mark.system
def test_marian_translates_the_same_by_the_written_settings(tmp_path: Path) -> None:
    """All lines in one call. Of `transformer-new` a batch has one sentence: it gets some wrong that are padded."""
    translator = shaken({**MODELS["defaults"], "output_bias": True})
    folder = written(translator, tmp_path / "out")
    command = [
        marian.python(),
        "-c",
        marian.WORKER,
        "--config",
        str(folder / marian.CONFIG),
        "--cpu-threads",
        "1",
        "--quiet",
    ]
    lines = json.dumps(LINES) + "\n"
    done = subprocess.run(command, input=lines, capture_output=True, encoding="utf-8", check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == translator.translate(LINES)


@with_bergamot
@pytest.mark.system
@pytest.mark.parametrize("quantize", [None, "int8"])
@pytest.mark.parametrize("autoreg", ["self-attention", "rnn"])
def test_bergamot_translates_what_it_is_given(tmp_path: Path, quantize: str | None, autoreg: str) -> None:
    translator = tiny({**MARIANS, "d_model": 64, "decoder_autoreg": autoreg})
    translator = translator.with_decoding(**vars(bergamot.nearest(translator.decoding)))
    bergamot.write(translator, tmp_path, quantize)
    found = bergamot.load(tmp_path, translator).n_best(LINES[:9])
    assert len(found) == 9
