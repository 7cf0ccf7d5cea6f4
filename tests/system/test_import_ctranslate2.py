"""Models of CTranslate2 as run directories: what was exported comes back bit for bit, and theirs computes as there."""

import contextlib
import json
import random
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from torch import Tensor

from dragoman import config
from dragoman.backends.accelerate import search_in_c
from dragoman.cli import main as cli
from dragoman.decoding.base import DecodingConfig
from dragoman.errors import DragomanError, Error
from dragoman.export import ctranslate2 as target
from dragoman.export import engine, export
from dragoman.importing import ctranslate2 as importing
from dragoman.importing.import_run import import_model
from dragoman.inference.loading import build_model
from dragoman.inference.scoring import score, token_log_probs
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.positions import SinusoidalPositions, sinusoidal_table
from dragoman.text.tokenizers.pair import SeparateConfig, TokenizerPair, train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.text.tokenizers.words import WordsConfig

ctranslate2 = pytest.importorskip("ctranslate2")

SIZES = {"d_model": 16, "num_heads": 4, "d_ff": 24, "num_encoder_layers": 2, "num_decoder_layers": 3}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "all tied": {"tie_embeddings": "all"},
    "post-norm, output tied": {"norm_placement": "post", "tie_embeddings": "output"},
    "half split, silu, bias": {
        "position": {"type": "sinusoidal", "layout": "half_split"}, "activation": "silu", "output_bias": True,
    },
    "fairseq, no end": {"position": {"type": "sinusoidal", "layout": "fairseq", "offset": 2}, "src_end": False},
    "another base": {"position": {"type": "sinusoidal", "base": 500.0, "offset": 1}},
    "learned, gelu, normed": {
        "position": {"type": "learned", "max_len": 50}, "activation": "gelu", "embedding_norm": True,
    },
    "rotary, grouped, swiglu": {
        "position": {"type": "rotary", "base": 500.0}, "num_kv_heads": 2, "activation": "swiglu",
    },
    "none, rms, one head of keys": {"position": {"type": "none"}, "norm": "rms", "norm_eps": 1e-3, "num_kv_heads": 1},
    "gelu_tanh, not scaled": {"activation": "gelu_tanh", "scale_embeddings": False},
}  # fmt: skip
rng = random.Random(1)
LINES = [" ".join(f"w{rng.randrange(40)}" for _ in range(rng.randint(1, 9))) for _ in range(20)]
WORDS = train_tokenizers(WordsConfig(), lambda: iter(LINES), lambda: iter(LINES))
LETTERS = (["ا", "ب", "ت", "ث"], ["a", "b", "t", "'", "x"])


def tiny(model: dict[str, Any], tokenizers: TokenizerPair = WORDS) -> SearchTranslator:
    torch.manual_seed(3)
    settings = config.parse(TransformerConfig, {**SIZES, "tie_embeddings": "none", **model}, "model")
    built = build_model(settings, tokenizers).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return SearchTranslator(built, tokenizers, decoding=DecodingConfig(max_length_ratio=1.0, max_length_extra=5))


def exported(translator: SearchTranslator, folder: Path, quantize: str | None = None) -> Path:
    folder.mkdir()
    target.write(translator, folder, quantize)
    return folder


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_was_exported_comes_back_bit_for_bit(variant: str, tmp_path: Path) -> None:
    translator = tiny(VARIANTS[variant])
    run = import_model(exported(translator, tmp_path / "theirs"), tmp_path / "run", "de", "en")
    back = SearchTranslator.load(run, device="cpu")
    ours, theirs = (dict(one.model.named_parameters()) for one in (translator, back))
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []
    # Of `tiny` nothing is packed for speed: on some processors that changes the last bits of scores.
    texts, scores = zip(*((best.text, best.score) for [best] in translator.n_best(LINES)), strict=True)
    assert tuple(best.text for [best] in back.n_best(LINES)) == texts
    assert [best.score for [best] in back.n_best(LINES)] == pytest.approx(scores, rel=1e-5)
    assert back.decoding == translator.decoding
    assert back.languages == ("de", "en")


@pytest.mark.parametrize(
    "tokenizer",
    [SentencePieceConfig(vocab_size=60), SeparateConfig(src=SentencePieceConfig(vocab_size=50), tgt=WordsConfig())],
    ids=["subwords", "two vocabularies"],
)
def test_tokenizers_come_along(tokenizer: Any, tmp_path: Path) -> None:
    pair = train_tokenizers(tokenizer, lambda: iter(LINES), lambda: iter(LINES))
    translator = tiny({"tie_embeddings": "all" if pair.shared else "none"}, pair)
    back = SearchTranslator.load(
        import_model(exported(translator, tmp_path / "theirs"), tmp_path / "run", "de", "en"), device="cpu"
    )
    assert back.tokenizers.shared == pair.shared
    search_in_c(translator.model)  # as a model that is loaded
    assert score(back, [(LINES[0], LINES[1])]) == score(translator, [(LINES[0], LINES[1])])


# -- models of others ----------------------------------------------------------------------------------------------


def old_model(folder: Path) -> dict[str, Tensor]:
    """A model as OpenNMT-tf's were converted: version 2 of the format, 8 heads and sinusoids that nothing tells, no
    `</s>` at the end of a source, `<blank>`, and a last row for what is unknown."""
    torch.manual_seed(5)
    words = [["<blank>", "<s>", "</s>", *letters] for letters in LETTERS]
    tensors: dict[str, Tensor] = {}

    def add(name: str, *shape: int) -> None:
        tensors[name] = torch.randn(shape) * (0.5 if len(shape) > 1 else 0.2) + (1.0 if name.endswith("gamma") else 0.0)

    def norm(name: str) -> None:
        add(f"{name}/gamma", 16)
        add(f"{name}/beta", 16)

    def linear(name: str, outputs: int, inputs: int = 16) -> None:
        add(f"{name}/weight", outputs, inputs)
        add(f"{name}/bias", outputs)

    for side, vocabulary in zip(("encoder", "decoder"), words, strict=True):
        add(f"{side}/embeddings/weight", len(vocabulary) + 1, 16)
        norm(f"{side}/layer_norm")
        for number in range(2):
            layer = f"{side}/layer_{number}"
            norm(f"{layer}/self_attention/layer_norm")
            linear(f"{layer}/self_attention/linear_0", 48)
            linear(f"{layer}/self_attention/linear_1", 16)
            if side == "decoder":
                norm(f"{layer}/attention/layer_norm")
                for part, outputs in enumerate((16, 32, 16)):
                    linear(f"{layer}/attention/linear_{part}", outputs)
            norm(f"{layer}/ffn/layer_norm")
            linear(f"{layer}/ffn/linear_0", 24)
            linear(f"{layer}/ffn/linear_1", 16, 24)
    linear("decoder/projection", len(words[1]) + 1)
    tensors["decoder/projection/bias"][[0, 1, -1]] = -9.0  # trained models do not say these, and ours bans them
    folder.mkdir()
    for name, vocabulary in zip(("source", "target"), words, strict=True):
        (folder / f"{name}_vocabulary.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    write_old(folder, tensors)
    return tensors


def write_old(folder: Path, tensors: dict[str, Tensor], kind: str = "TransformerBase", version: int = 2) -> None:
    def string(text: str) -> bytes:
        return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"

    parts = [struct.pack("<I", version), string(kind), struct.pack("<II", 2, len(tensors))]
    for name, tensor in sorted(tensors.items()):
        parts += [string(name), struct.pack("<B", tensor.dim()), struct.pack(f"<{tensor.dim()}I", *tensor.shape)]
        parts += [struct.pack("<BI", 4, tensor.numel()), tensor.contiguous().numpy().tobytes()]
    (folder / "model.bin").write_bytes(b"".join(parts))


PAIRS = [("ا ب ت", "a b x"), ("ث", "t"), ("ب ب ا ث ت ا", "b ' a"), ("ت ؟ ا", "x a")]


def scores(translator: SearchTranslator) -> list[float]:
    return [value for one in score(translator, PAIRS) for _, value in one.tokens]


def theirs(folder: Path) -> list[float]:
    runtime = ctranslate2.Translator(str(folder), device="cpu")
    pairs = [(src.split(), tgt.split()) for src, tgt in PAIRS]
    found = runtime.score_batch([src for src, _ in pairs], [tgt for _, tgt in pairs])
    return [value for one in found for value in one.log_probs]


@pytest.fixture
def old(tmp_path: Path) -> tuple[Path, SearchTranslator]:
    folder = tmp_path / "old"
    old_model(folder)
    run = import_model(folder, tmp_path / "run", "ar", "en")
    return folder, SearchTranslator.load(run, device="cpu", changes=["decoding.max_length_extra=5"])


def test_an_old_model_computes_as_in_ctranslate2(old: tuple[Path, SearchTranslator]) -> None:
    folder, translator = old
    assert scores(translator) == pytest.approx(theirs(folder), abs=1e-5)
    runtime = ctranslate2.Translator(str(folder), device="cpu")
    sources = [" ".join(random.Random(n).choices(LETTERS[0], k=1 + n % 7)) for n in range(60)]
    greedy = translator.with_decoding(beam_size=1, max_length_ratio=0.0, max_length_extra=9)
    found = runtime.translate_batch([one.split() for one in sources], beam_size=1, max_decoding_length=9)
    assert greedy.translate(sources) == [" ".join(one.hypotheses[0]) for one in found]


def test_it_goes_out_again_as_it_came(old: tuple[Path, SearchTranslator], tmp_path: Path) -> None:
    folder, translator = old
    again = exported(translator, tmp_path / "again")
    assert theirs(again) == pytest.approx(theirs(folder), abs=1e-5)
    back = import_model(again, tmp_path / "run 2", "ar", "en")
    assert scores(SearchTranslator.load(back, device="cpu")) == scores(translator)


@pytest.mark.slow
def test_an_imported_run_is_exported_with_the_usual_proof(old: tuple[Path, SearchTranslator], tmp_path: Path) -> None:
    run, told = tmp_path / "run", []
    export(run, "ctranslate2", tmp_path / "out", tell=told.append)
    assert "made-up sentences" in told[0]
    export(run, "onnx", tmp_path / "onnx", tell=told.append)
    translator = SearchTranslator.load(run, device="cpu")
    fast = engine(run, "ctranslate2-fast", translator).with_decoding(beam_size=1)
    assert fast.translate(["ا ب"]) == translator.with_decoding(beam_size=1).translate(["ا ب"])


def _offset(translator: SearchTranslator) -> None:
    for embedding in (translator.model.src_embedding, translator.model.tgt_embedding):
        embedding.positions = SinusoidalPositions(16, layout="fairseq", offset=0)


def _layout(translator: SearchTranslator) -> None:
    for embedding in (translator.model.src_embedding, translator.model.tgt_embedding):
        embedding.positions = SinusoidalPositions(16, layout="half_split", offset=1)


def _scale(translator: SearchTranslator) -> None:
    translator.model.src_embedding.tokens.scale = 1.0


def _bias(translator: SearchTranslator) -> None:
    translator.model.output.bias = None


def _end(translator: SearchTranslator) -> None:
    translator.model.src_end = True


def _start(translator: SearchTranslator) -> None:
    rows = translator.model.tgt_embedding.tokens.embedding.weight
    rows.data[[0, 2]] = rows.data[[2, 0]]


def _norm(translator: SearchTranslator) -> None:
    for module in translator.model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 0.1


@pytest.mark.parametrize("mistake", [_offset, _layout, _scale, _bias, _end, _start, _norm])
def test_a_mistake_would_be_seen(
    mistake: Callable[[SearchTranslator], None], old: tuple[Path, SearchTranslator]
) -> None:
    folder, translator = old
    mistake(translator)
    assert scores(translator) != pytest.approx(theirs(folder), abs=1e-3)


def test_positions_that_differ_between_the_sides_are_taken_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    tensors = old_model(folder)
    tables = (sinusoidal_table(40, 16), torch.randn(40, 16))
    names = [f"{side}/position_encodings/encodings" for side in ("encoder", "decoder")]
    write_old(folder, {**tensors, **dict(zip(names, tables, strict=True))})
    translator = SearchTranslator.load(import_model(folder, tmp_path / "run", "ar", "en"), device="cpu")
    assert scores(translator) == pytest.approx(theirs(folder), abs=1e-5)


# -- what is refused -----------------------------------------------------------------------------------------------


def test_what_cannot_be_represented_is_refused_with_the_reasons(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    tensors = old_model(folder)
    base, tanh = "TransformerBase", torch.tensor(6.0)
    for changed, kind, name in (
        ({"encoder/embeddings_merge": torch.ones(())}, base, "token"),
        (
            {"encoder/layer_1/self_attention/gate/weight": torch.ones(2, 2)},
            base,
            "encoder/layer_1/self_attention/gate/weight",
        ),
        ({}, "TransformerBaseRelative", "TransformerBaseRelative"),
        ({"encoder/layer_0/self_attention/head_dim": torch.tensor(8.0)}, base, "head_dim"),
        ({"encoder/activation": tanh, "decoder/activation": tanh}, base, "activation"),
    ):
        write_old(folder, {**tensors, **changed}, kind)
        with raises_error(Error.CANNOT_IMPORT, name):
            import_model(folder, tmp_path / "run", "ar", "en")
    missing = {name: tensor for name, tensor in tensors.items() if name != "encoder/layer_1/ffn/linear_1/bias"}
    write_old(folder, missing)
    with raises_error(Error.CANNOT_IMPORT):
        import_model(folder, tmp_path / "run", "ar", "en")
    quantized = exported(tiny({}), tmp_path / "int8", "int8")
    with raises_error(Error.CANNOT_IMPORT, "--quantization"):
        import_model(quantized, tmp_path / "run", "de", "en")
    assert not (tmp_path / "run").exists()


def test_hostile_files_are_errors(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    old_model(folder)
    whole = (folder / "model.bin").read_bytes()
    rng = random.Random(2)
    for number in range(60):
        data = bytearray(whole)
        if number % 3 == 0:
            del data[rng.randrange(len(data)) :]
        elif number % 3 == 1:
            for _ in range(4):
                data[rng.randrange(600)] = rng.randrange(256)
        else:
            data = bytearray(rng.randrange(256) for _ in range(rng.randrange(400)))
        (folder / "model.bin").write_bytes(data)
        with contextlib.suppress(DragomanError):  # a change of a weight is none that can be seen
            importing.load(folder, "ar", "en")
    (folder / "model.bin").write_bytes(whole)
    (folder / "source_vocabulary.txt").write_text("<blank>\n<s>\n", encoding="utf-8")
    with raises_error(Error.CANNOT_IMPORT):
        importing.load(folder, "ar", "en")
    (folder / "source_vocabulary.txt").write_bytes(b"\xff\n")
    with raises_error(Error.NOT_UTF8, "source_vocabulary.txt"):
        importing.load(folder, "ar", "en")
    (folder / "source_vocabulary.txt").unlink()
    with raises_error(Error.MISSING_FILE):
        importing.load(folder, "ar", "en")
    (folder / "config.json").write_text(json.dumps({"decoder_start_token": "<x>"}), encoding="utf-8")
    with raises_error(Error.CANNOT_IMPORT, "<x>"):
        importing.load(folder, "ar", "en")


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "old"
    old_model(folder)

    def command(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["dragoman", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return int(stopped.value.code or 0)

    languages = ("--src-lang", "ar", "--tgt-lang", "en")
    assert command("import", str(folder), str(tmp_path / "run"), *languages) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'run'}\n"
    assert command("import", str(folder), str(tmp_path / "run"), *languages) == 2
    assert "is there already" in capsys.readouterr().err
    assert command("import", str(tmp_path / "none"), str(tmp_path / "new"), *languages) == 2
    assert "no such folder" in capsys.readouterr().err


def test_pieces_of_sentencepiece(tmp_path: Path) -> None:
    pair = train_tokenizers(SentencePieceConfig(vocab_size=60), lambda: iter(LINES), lambda: iter(LINES))
    translator = tiny({"tie_embeddings": "all"}, pair)
    folder = exported(translator, tmp_path / "theirs")
    shutil.rmtree(folder / "tokenizer")  # as another program would have left it
    (folder / "dragoman.json").unlink()
    (tmp_path / "spm").write_bytes(pair.src.model)  # type: ignore[attr-defined]
    back = SearchTranslator.load(
        import_model(folder, tmp_path / "run", "de", "en", [tmp_path / "spm"]), device="cpu"
    ).with_decoding(**vars(translator.decoding))
    assert back.tokenizers.shared
    assert [back.tokenizers.src.encode(line) for line in LINES] == [pair.src.encode(line) for line in LINES]
    assert [best.text for [best] in back.n_best(LINES)] == [best.text for [best] in translator.n_best(LINES)]
    with raises_error(Error.CONFLICT):
        import_model(folder, tmp_path / "other", "de", "en", [tmp_path / "spm"] * 3)


# -- models of Marian and of Hugging Face, by CTranslate2's converters ---------------------------------------------


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
@pytest.mark.parametrize("name", ["marian", "marian, several targets"])
def test_a_converted_marian_model_translates_as_there(name: str, tmp_path: Path) -> None:
    """Its decoder starts from a vector of zeros, two SentencePiece models cut the texts, and `>>fra<<` is a tag."""
    pytest.importorskip("transformers")
    from ctranslate2.converters import TransformersConverter
    from tests.system.hub_models import FAMILIES, sentences

    (tmp_path / "hf").mkdir()
    make, options, languages = FAMILIES[name]
    make(tmp_path / "hf", **options)
    TransformersConverter(str(tmp_path / "hf")).convert(str(tmp_path / "theirs"))
    models = [tmp_path / "hf" / f"{side}.spm" for side in ("source", "target")]
    with raises_error(Error.MISSING_OPTION):
        import_model(tmp_path / "theirs", tmp_path / "run", *languages)
    import_model(tmp_path / "theirs", tmp_path / "run", *languages, models)
    ours = SearchTranslator.load(tmp_path / "run", device="cpu", ban_unk=False, beam_size=1)
    assert ours.languages == languages
    runtime = ctranslate2.Translator(str(tmp_path / "theirs"))
    src, tgt = ours.tokenizers.src, ours.tokenizers.tgt
    encoded = [(src.encode(text), tgt.encode(text)) for text in sentences(200, seed=11)]
    assert all(src.pieces(ids)[0] == ">>fra<<" for ids, _ in encoded) == ("several" in name)
    sources = [[*src.pieces(ids), "</s>"] for ids, _ in encoded]
    scored = runtime.score_batch(sources, [tgt.pieces(ids) for _, ids in encoded])
    for found, own in zip(scored, token_log_probs(ours, encoded), strict=True):
        assert own == pytest.approx(found.log_probs, abs=1e-4)
    greedy = ours.with_decoding(max_length_ratio=0.0, max_length_extra=20)
    searched = greedy.hypotheses([Segment(ids, []) for ids, _ in encoded])
    answers = runtime.translate_batch(sources, beam_size=1, max_decoding_length=20, min_decoding_length=0)
    assert [tgt.pieces(best.ids) for [best] in searched] == [answer.hypotheses[0] for answer in answers]


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_languages_of_a_converted_m2m100(tmp_path: Path) -> None:
    """Its decoder starts from `</s>`, whose row `<s>` is a copy of, and tags stand before both sides."""
    pytest.importorskip("transformers")
    from tests.system.hub_models import FAMILIES, sentences

    (tmp_path / "hf").mkdir()
    make, options, languages = FAMILIES["m2m100"]
    make(tmp_path / "hf", **options)
    import_model(tmp_path / "hf", tmp_path / "run", *languages)
    before = SearchTranslator.load(tmp_path / "run", device="cpu")
    folder = exported(before, tmp_path / "theirs")
    shutil.rmtree(folder / "tokenizer")
    (folder / "dragoman.json").unlink()
    described = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    described |= {"decoder_start_token": "</s>", "add_source_eos": False}
    (folder / "config.json").write_text(json.dumps(described), encoding="utf-8")
    spm = [tmp_path / "hf" / "sentencepiece.bpe.model"]
    import_model(folder, tmp_path / "again", "fr", "cs", spm)
    after = SearchTranslator.load(tmp_path / "again", device="cpu")
    assert after.languages == ("fr", "cs")
    assert after.tokenizers.languages == before.tokenizers.languages
    for translator in (before, after):
        translator.decoding = before.decoding
    texts = list(sentences(50, seed=4))
    expected = before.between("fr", "cs").n_best(texts)
    assert [[one.text for one in found] for found in after.n_best(texts)] == [
        [one.text for one in found] for found in expected
    ]
    assert [found[0].log_prob for found in after.n_best(texts)] == pytest.approx(
        [found[0].log_prob for found in expected], abs=1e-4
    )
