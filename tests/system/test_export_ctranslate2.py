"""CTranslate2 computes the same probabilities and translates as well with its own search, or the export is refused."""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error

from dragoman import config
from dragoman.cli import main as cli
from dragoman.decoding.base import DecodingConfig, SampledConfig
from dragoman.decoding.penalties import AveragePenalty, GnmtPenalty, NoPenalty
from dragoman.errors import Error
from dragoman.export import TARGETS, engine, export
from dragoman.export import ctranslate2 as target
from dragoman.export.ctranslate2 import CTranslate2Engine
from dragoman.inference.loading import build_model
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.ensemble import Ensemble
from dragoman.models.families import RecurrentConfig, TransformerConfig
from dragoman.nn.positions import sinusoidal_table
from dragoman.runs import checkpoint
from dragoman.runs.lock import held
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.corpus import DemoSource
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.characters import CharactersConfig
from dragoman.text.tokenizers.pair import TokenizerPair, save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.text.tokenizers.words import WordsConfig

SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 24, "num_encoder_layers": 2, "num_decoder_layers": 2}
VARIANTS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm": {"norm_placement": "post"},
    "half-split": {"position": {"type": "sinusoidal", "layout": "half_split"}},
    "fairseq": {"position": {"type": "sinusoidal", "layout": "fairseq", "offset": 2}},
    "learned": {"position": {"type": "learned", "max_len": 50}},
    "rotary": {"position": {"type": "rotary", "base": 500.0}},
    "rotary, post-norm, grouped": {
        "position": {"type": "rotary"}, "norm_placement": "post", "num_heads": 4, "num_kv_heads": 2,
    },
    "relative": {"position": {"type": "relative", "max_distance": 3}},
    "relative, post-norm, grouped": {
        "position": {"type": "relative"}, "norm_placement": "post", "num_heads": 4, "num_kv_heads": 1,
    },
    "tied layers": {"tied_layers": [1, 1], "tied_encoder_layers": [2, 2]},
    "no positions": {"position": {"type": "none"}},
    "gelu": {"activation": "gelu"},
    "gelu_tanh": {"activation": "gelu_tanh"},
    "silu, output bias": {"activation": "silu", "output_bias": True, "tie_embeddings": "output"},
    "swiglu": {"activation": "swiglu"},
    "rms": {"norm": "rms", "norm_eps": 1e-3},
    "rms, post-norm": {"norm": "rms", "norm_placement": "post"},
    "layer norm eps": {"norm_eps": 1e-2},
    "grouped heads": {"num_heads": 4, "num_kv_heads": 2},
    "one head of keys": {"num_heads": 4, "num_kv_heads": 1},
    "embedding norm": {"embedding_norm": True},
    "embedding norm, rms, post-norm": {"embedding_norm": True, "norm": "rms", "norm_placement": "post"},
    "output tied": {"tie_embeddings": "output"},
    "all tied": {"tie_embeddings": "all"},
    "not scaled": {"scale_embeddings": False},
    "odd layers": {"num_encoder_layers": 1, "num_decoder_layers": 3},
}  # fmt: skip
SETTINGS = [
    {"beam_size": 1},
    {"beam_size": 1, "min_length": 4},
    {"beam_size": 1, "max_length_ratio": 0.5, "max_length_extra": 0},
    {"beam_size": 2},
    {"beam_size": 8, "n_best": 3},
    {"n_best": 5},
    {"length_penalty": NoPenalty(), "n_best": 2},
    {"length_penalty": GnmtPenalty(alpha=1.0)},
    {"length_penalty": AveragePenalty(alpha=2.0)},
    {"min_length": 5},
    {"ban_unk": False},
    {"max_length_ratio": 0.5, "max_length_extra": 0, "n_best": 2},
    {"max_length_ratio": 0.0, "max_length_extra": 3},
]


def sentences(count: int, longest: int = 9) -> list[str]:
    rng = random.Random(1)
    return [" ".join(f"w{rng.randrange(40)}" for _ in range(rng.randint(1, longest))) for _ in range(count)]


LINES = sentences(20)
TOKENIZERS = train_tokenizers(WordsConfig(), lambda: iter(LINES), lambda: iter(LINES))


def tiny(
    model: dict[str, Any] | None = None,
    decoding: dict[str, Any] | None = None,
    *,
    tokenizers: TokenizerPair = TOKENIZERS,
    seed: int = 3,
) -> SearchTranslator:
    """A random model in which no weight is a zero or a one that two places could share by chance."""
    settings = {**SIZES, "tie_embeddings": "none", **(model or {})}
    torch.manual_seed(seed)
    built = build_model(config.parse(TransformerConfig, settings, "model"), tokenizers).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return SearchTranslator(
        built,
        tokenizers,
        decoding=DecodingConfig(**{"max_length_ratio": 1.0, "max_length_extra": 5, **(decoding or {})}),
        max_src_tokens=12,
    )


def never_banned(translator: SearchTranslator) -> SearchTranslator:
    """The same, in which `<pad>`, `<unk>` and `<s>` have no chance."""
    with torch.no_grad():
        translator.model.decoder_norm.weight[0], translator.model.decoder_norm.bias[0] = 0.0, 10.0
        translator.model.output.weight[:, 0] = 0.0
        translator.model.output.weight[:3, 0] = -3.0
    return translator


@pytest.fixture
def converted(tmp_path: Path) -> Callable[..., SearchTranslator]:
    def convert(translator: SearchTranslator, quantize: str | None = None) -> SearchTranslator:
        folder = tmp_path / f"{quantize}"
        folder.mkdir()
        assert target.problems(translator) == []
        target.write(translator, folder, quantize)
        return target.load(folder, translator)

    return convert


def pieces_of(tokenizer: Tokenizer, text: str) -> list[str]:
    return tokenizer.pieces(tokenizer.encode(text))


# -- the model -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_probabilities_and_translations_are_ours(variant: str, converted: Callable[..., SearchTranslator]) -> None:
    translator = tiny(VARIANTS[variant])
    ct2 = converted(translator)
    pairs = list(zip(LINES[:8], LINES[8:16], strict=True))
    tokenizer = TOKENIZERS.src
    scored = ct2.engine.runtime.score_batch(
        [pieces_of(tokenizer, s) for s, _ in pairs], [pieces_of(tokenizer, t) for _, t in pairs]
    )
    for ours, theirs in zip(score(translator, pairs), scored, strict=True):
        assert theirs.log_probs == pytest.approx([value for _, value in ours.tokens], abs=2e-5)
    assert_same_greedy(translator, ct2, LINES[:8])


def assert_same_greedy(ours: SearchTranslator, theirs: SearchTranslator, lines: list[str]) -> None:
    first, second = (one.with_decoding(beam_size=1, n_best=1) for one in (ours, theirs))
    assert second.translate(lines) == first.translate(lines)


@pytest.mark.parametrize(
    "side",
    [CharactersConfig(), SentencePieceConfig(vocab_size=60), SentencePieceConfig(vocab_size=320, byte_fallback=True)],
    ids=["characters", "subwords", "bytes"],
)
def test_any_tokenizer_goes_along(side: Any, converted: Callable[..., SearchTranslator]) -> None:
    lines = [*LINES, 'sagt "<s>" ▁ und \\ ü']
    tokenizers = train_tokenizers(side, lambda: iter(lines), lambda: iter(lines))
    translator = tiny(tokenizers=tokenizers)
    lines += ["▁", " ▁ ▁ "]  # spaces to SentencePiece: a blank line
    ct2 = converted(translator)
    assert_same_greedy(translator, ct2, lines)
    if isinstance(side, SentencePieceConfig):
        assert ct2.translate(lines[-2:]) == ["", ""]


def test_two_vocabularies(converted: Callable[..., SearchTranslator]) -> None:
    src, tgt = (
        train_tokenizers(kind, lambda: iter(LINES), lambda: iter(LINES)).src
        for kind in (WordsConfig(), CharactersConfig())
    )
    translator = tiny(tokenizers=TokenizerPair(src, tgt, shared=False))
    assert_same_greedy(translator, converted(translator), LINES)


def test_blank_long_and_unknown_lines_are_treated_as_ours(converted: Callable[..., SearchTranslator]) -> None:
    translator = tiny()
    ct2 = converted(translator)
    lines = ["", "  ", "never seen", " ".join(LINES[:9]), LINES[0], LINES[0]]
    assert_same_greedy(translator, ct2, lines)
    assert ct2.n_best([]) == []
    greedy = ct2.with_decoding(beam_size=1)
    parts, whole = [*greedy.n_best(lines[:2]), *greedy.n_best(lines[2:])], greedy.n_best(lines)
    assert [found[0].text for found in parts] == [found[0].text for found in whole]


@pytest.mark.parametrize("quantize", target.QUANTIZATIONS)
def test_quantized_weights_are_smaller_and_translate_as_well(
    quantize: str, converted: Callable[..., SearchTranslator], trained: Any, same_quality: Any, tmp_path: Path
) -> None:
    translator, lines = trained("transformer", {**SIZES, "d_model": 64, "num_heads": 4, "d_ff": 128})
    before = {name: tensor.clone() for name, tensor in translator.model.state_dict().items()}
    full, small = converted(translator), converted(translator, quantize)
    assert all(torch.equal(tensor, before[name]) for name, tensor in translator.model.state_dict().items())
    sizes = [(tmp_path / f"{name}" / "model.bin").stat().st_size for name in (None, quantize)]
    assert sizes[1] < 0.7 * sizes[0]  # the table of positions is not rounded
    same_quality(translator, small, lines)
    pairs = [[pieces_of(translator.tokenizers.src, line) for line in lines[i : i + 8]] for i in (0, 8)]
    exact, rounded = ([item.log_probs for item in one.engine.runtime.score_batch(*pairs)] for one in (full, small))
    assert exact != rounded


# -- the search ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_setting_is_followed(settings: dict[str, Any], converted: Callable[..., SearchTranslator]) -> None:
    """Its own search finds other translations; scores, lengths and numbers of translations are as the settings say."""
    translator = never_banned(tiny({"tie_embeddings": "output"}, decoding=settings))
    ct2, decoding = converted(translator), translator.decoding
    for line, of_line in zip(LINES, ct2.n_best(LINES), strict=True):
        assert 1 <= len(of_line) <= decoding.n_best
        assert [item.score for item in of_line] == sorted((item.score for item in of_line), reverse=True)
        limit = int(decoding.max_length_ratio * (len(line.split()) + 1) + decoding.max_length_extra)
        for item in of_line:
            values = [value for _, value in score(translator, [(line, item.text)])[0].tokens]
            assert decoding.min_length <= len(values) - 1 <= limit
            length = len(values) if item.log_prob == pytest.approx(sum(values), abs=1e-3) else len(values) - 1
            assert item.log_prob == pytest.approx(sum(values[:length]), abs=1e-3)  # with `</s>`, or cut before it
            assert item.score == pytest.approx(item.log_prob / decoding.length_penalty.divisor(length), abs=1e-5)
    assert_same_greedy(translator, ct2, LINES[:6])


def test_threads_are_as_many_as_asked(tmp_path: Path) -> None:
    translator = tiny()
    target.write(translator, tmp_path, None)
    ct2 = target.load(tmp_path, translator, threads=3)
    assert isinstance(ct2.engine, CTranslate2Engine)
    assert ct2.engine.runtime.num_translators == 3


def test_a_trained_model_translates_as_well_with_a_beam(
    converted: Callable[..., SearchTranslator], trained: Any, same_quality: Any
) -> None:
    translator, lines = trained("transformer", {**SIZES, "d_model": 64, "num_heads": 4, "d_ff": 128})
    ct2 = converted(translator)
    same_quality(translator, ct2, lines)
    assert ct2.translate(lines) == [ct2.translate([line])[0] for line in lines]


@pytest.mark.parametrize("changes", [{"repetition_penalty": 1.2}, {"no_repeat_ngram": 3}], ids=str)
def test_settings_that_would_be_done_otherwise_are_refused(
    changes: dict[str, Any], converted: Callable[..., SearchTranslator]
) -> None:
    with raises_error(Error.UNSUPPORTED):
        converted(tiny(decoding=changes))


def test_settings_changed_later_are_refused_too(converted: Callable[..., SearchTranslator]) -> None:
    ct2 = converted(tiny())
    assert len(ct2.with_decoding(n_best=3).n_best(LINES[:1])[0]) > 1
    with raises_error(Error.UNSUPPORTED):
        ct2.with_decoding(no_repeat_ngram=2).translate(LINES[:1])


# -- what cannot be exported ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ({"norm_placement": "output"}, "norm_placement: output"),
        ({"position": {"type": "alibi"}}, "alibi"),
        ({"decoder_autoreg": "rnn"}, "decoder_autoreg: rnn"),
        ({"d_head": 16}, "model.d_head"),
    ],
    ids=["output norm", "alibi", "ssru", "wide heads"],
)
def test_reasons_why_a_model_cannot_be_exported(model: dict[str, Any], reason: str) -> None:
    assert [reason in line for line in target.problems(tiny(model))] == [True]


def test_other_families_cannot_be_exported() -> None:
    translator = tiny()
    recurrent = RecurrentConfig().build(src_vocab_size=44, tgt_vocab_size=44, shared_vocab=True, pad_id=0)
    for other in (recurrent, Ensemble([translator.model, translator.model])):
        assert (
            "CTranslate2 knows the Transformer alone"
            in target.problems(SearchTranslator(other, TOKENIZERS, decoding=DecodingConfig()))[0]
        )


def test_a_piece_that_is_there_twice_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(TOKENIZERS.src), "pieces", lambda self, ids: ["a", "b", "a"])
    assert "has 'a' twice" in target.problems(tiny())[0]


def test_an_unknown_quantization_is_refused(tmp_path: Path) -> None:
    with raises_error(Error.UNKNOWN_NAME):
        target.write(tiny(), tmp_path, "int4")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with raises_error(Error.NOT_INSTALLED):
        target.write(tiny(), tmp_path, None)


def test_a_damaged_export_is_named(tmp_path: Path) -> None:
    translator = tiny()
    target.write(translator, tmp_path, None)
    (tmp_path / "model.bin").write_bytes(b"no model")
    with raises_error(Error.CANNOT_READ):
        target.load(tmp_path, translator)


# -- the whole way -------------------------------------------------------------------------------------------------

DEMO = {"type": "demo", "pair": "de-en"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory with a random model, put together by hand."""
    folder = tmp_path / "run"
    folder.mkdir()
    held_out = {split: {**DEMO, "split": split, "size": 12} for split in ("train", "valid", "test")}
    corpus = {"src_lang": "de", "tgt_lang": "en", "train": held_out["train"], "valid": held_out["valid"]}
    model = {"type": "transformer", **SIZES, "position": {"type": "sinusoidal"}}
    settings = {"run_dir": str(folder), "corpus": {**corpus, "test": {"demo": held_out["test"]}}, "model": model}
    recipe = config.parse(
        TranslationRecipe, {**settings, "decoding": {"beam_size": 3, "max_length_ratio": 1.0, "max_length_extra": 3}}
    )
    (folder / "config.yaml").write_text(config.to_yaml(recipe), encoding="utf-8")
    pairs = list(DemoSource(pair="de-en", split="test", size=12).pairs())
    tokenizers = train_tokenizers(
        WordsConfig(), lambda: (pair.src for pair in pairs), lambda: (pair.tgt for pair in pairs)
    )
    save_tokenizers(tokenizers, folder / "tokenizer")
    built = tiny({"tie_embeddings": "all"}, tokenizers=tokenizers).model
    checkpoint.save(folder, 1, {"model": checkpoint.weights(built)}, {"step": 1, "score": 1.0})
    return folder


def test_an_export_is_compared_and_appears(run: Path, tmp_path: Path) -> None:
    told: list[str] = []
    export(run, "ctranslate2", tmp_path / "out", tell=told.append)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    files = ["config.json", "dragoman.json", "model.bin", "shared_vocabulary.json", "tokenizer"]
    assert names == ["MODEL_CARD.md", *files]
    figures = dict(line.split("  ", 1) for line in told if "  " in line)
    assert figures["sentences"].strip() == "12 of demo"
    assert "near-ties" in figures["equal"]
    assert float(figures["largest score difference"]) < 1e-5
    assert "BLEU" in figures
    with raises_error(Error.ALREADY_THERE):
        export(run, "ctranslate2", tmp_path / "out")


def test_a_recipe_whose_search_is_not_known_there_is_exported(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = (run / "config.yaml").read_text(encoding="utf-8")
    assert "no_repeat_ngram: 0" in recipe
    (run / "config.yaml").write_text(
        recipe.replace("no_repeat_ngram: 0", "no_repeat_ngram: 3").replace("sampling: null", "sampling: {samples: 9}"),
        encoding="utf-8",
    )
    export(run, "ctranslate2", tmp_path / "out", tell=lambda line: None)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "compared with decoding.no_repeat_ngram 0, decoding.sampling None" in said[0]
    with raises_error(Error.UNSUPPORTED):
        engine(run, "ctranslate2", SearchTranslator.load(run, device="cpu"))
    found = engine(run, "ctranslate2", SearchTranslator.load(run, device="cpu", no_repeat_ngram=0, sampling=None))
    assert isinstance(found.engine, CTranslate2Engine)


def test_the_nearest_settings_leave_out_what_is_not_followed() -> None:
    followed = DecodingConfig(beam_size=3, n_best=3, min_length=2)
    assert target.nearest(followed) == followed
    drawn = DecodingConfig(n_best=9, sampling=SampledConfig(samples=9), mbr="chrf", min_length=2)
    assert target.nearest(drawn) == DecodingConfig(n_best=5, min_length=2)


def wrong_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    table = lambda module, rows: sinusoidal_table(rows, SIZES["d_model"], layout="half_split")  # noqa: E731
    monkeypatch.setattr(target, "position_table", table)


def wrong_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "position_table", lambda module, rows: module.positions(1, rows))


def specified(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None]) -> None:
    right = target.specify

    def wrong(translator: SearchTranslator) -> Any:
        specification = right(translator)
        change(specification)
        return specification

    monkeypatch.setattr(target, "specify", wrong)


def wrong_start(monkeypatch: pytest.MonkeyPatch) -> None:
    specified(monkeypatch, lambda spec: setattr(spec.config, "decoder_start_token", "</s>"))


def no_end_of_source(monkeypatch: pytest.MonkeyPatch) -> None:
    specified(monkeypatch, lambda spec: setattr(spec.config, "add_source_eos", False))


def wrong_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    specified(monkeypatch, lambda spec: setattr(spec.decoder, "scale_embeddings", False))


def wrong_activation(monkeypatch: pytest.MonkeyPatch) -> None:
    specified(monkeypatch, lambda spec: setattr(spec.decoder, "activation", spec.decoder.activation + 3))


def swapped_projections(monkeypatch: pytest.MonkeyPatch) -> None:
    right = target.entries

    def wrong(model: Any) -> Any:
        return {
            name: entry._replace(modules=[*entry.modules[:-2], *entry.modules[-2:][::-1]])
            for name, entry in right(model).items()
        }

    monkeypatch.setattr(target, "entries", wrong)


def swapped_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    specified(monkeypatch, lambda spec: spec.decoder.layer.reverse())


MUTATIONS = [
    wrong_layout, wrong_offset, wrong_start, no_end_of_source, wrong_scale, wrong_activation, swapped_projections,
    swapped_layers,
]  # fmt: skip


GROSS = [wrong_layout, wrong_start, swapped_projections, swapped_layers]
"""Those that a dozen sentences of a random model tell from what int8 does to it."""


@pytest.mark.parametrize(
    ("mutate", "quantize"),
    [*((mutate, None) for mutate in MUTATIONS), *((mutate, "int8") for mutate in GROSS)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_wrong_export_is_found_and_leaves_nothing(
    mutate: Any, quantize: str | None, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    source = tmp_path / "src.de"
    pairs = DemoSource(pair="de-en", split="test", size=12).pairs()
    source.write_text("".join(pair.src + "\n" for pair in pairs), encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    with raises_error(Error.EXPORT_DIFFERS):
        export(run, "ctranslate2", tmp_path / "new" / "out", quantize=quantize, src=source, tell=lambda line: None)
    assert sorted(tmp_path.iterdir()) == before
    export(run, "ctranslate2", tmp_path / "out", quantize=quantize, verify=False)
    assert (tmp_path / "out" / "model.bin").is_file()


def test_an_export_that_breaks_off_leaves_nothing(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(folder: Path, translator: SearchTranslator) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(target, "load", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export(run, "ctranslate2", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_a_folder_that_another_export_writes_is_left_to_it(run: Path, tmp_path: Path) -> None:
    partial = tmp_path / "out.partial"
    partial.mkdir()
    (partial / "left").mkdir()
    (partial / ".unfinished").touch()
    with held(partial / ".unfinished.held"):
        with raises_error(Error.IN_USE):
            export(run, "ctranslate2", tmp_path / "out", verify=False)
        assert (partial / "left").is_dir()
    export(run, "ctranslate2", tmp_path / "out", verify=False)  # its owner is gone
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "run"]
    assert not {"left", ".unfinished"} & {path.name for path in (tmp_path / "out").iterdir()}


def test_an_engine_is_converted_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = SearchTranslator.load(run, device="cpu")
    lines = [pair.src for pair in DemoSource(pair="de-en", split="valid", size=10).pairs()]
    first = engine(run, "ctranslate2", translator)
    assert_same_greedy(translator, first, lines)
    monkeypatch.delattr(target, "write")
    assert engine(run, "ctranslate2", translator).n_best(lines) == first.n_best(lines)
    kept = list((run / "engines").iterdir())
    assert len(kept) == 1
    monkeypatch.undo()
    checkpoint.save(
        run,
        2,
        {"model": checkpoint.weights(tiny({"tie_embeddings": "all"}, seed=9, tokenizers=translator.tokenizers).model)},
        {"step": 2, "score": 2.0},
    )
    engine(run, "ctranslate2", SearchTranslator.load(run, device="cpu"))
    assert len(list((run / "engines").iterdir())) == 2


def test_an_engine_that_cannot_be_kept_or_was_damaged_says_what_to_do(run: Path) -> None:
    translator = SearchTranslator.load(run, device="cpu")
    (run / "engines").write_text("in the way", encoding="utf-8")
    with raises_error(Error.CANNOT_WRITE):
        engine(run, "ctranslate2", translator)
    (run / "engines").unlink()
    engine(run, "ctranslate2", translator)
    (model,) = (run / "engines").glob("*/model.bin")
    model.unlink()
    with raises_error(Error.CANNOT_READ):
        engine(run, "ctranslate2", translator)


def test_an_engine_of_int8_weights_is_kept_beside_the_exact_one(run: Path) -> None:
    translator = SearchTranslator.load(run, device="cpu")
    engine(run, "ctranslate2", translator)
    small = engine(run, "ctranslate2", translator, quantize="int8")
    assert isinstance(small.engine, target.CTranslate2Engine)
    assert str(small.engine.runtime.compute_type).startswith("int8")
    assert len({path.name.rsplit("-", 1)[0] for path in (run / "engines").iterdir()}) == 2


def test_int8_is_of_searches_and_needs_no_engine(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "in.de", tmp_path / "out"
    source.write_text("ich möchte ein bier\n\nich sehe den hund\n", encoding="utf-8")
    translating = ("translate", str(run), "-i", str(source), "-o", str(out), "--precision")
    lines = []
    for precision in ("float32", "int8"):
        out.unlink(missing_ok=True)
        assert command(monkeypatch, *translating, precision) == 0
        lines.append(out.read_text(encoding="utf-8").splitlines())
    assert lines[1] == lines[0]
    assert command(monkeypatch, *translating, "int4") == 2
    assert "int4: float32, bfloat16 or int8" in capsys.readouterr().err
    scoring = ("score", str(run), "--src", str(source), "--tgt", str(out), "--precision", "int8")
    assert command(monkeypatch, *scoring) == 2
    assert "--precision int8: float32 or bfloat16" in capsys.readouterr().err


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["dragoman", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


def test_the_command_line(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    out, source = str(tmp_path / "out"), tmp_path / "in.de"
    source.write_text("ich möchte ein bier\n\nich sehe den hund\n", encoding="utf-8")
    assert command(monkeypatch, "export", str(run), out, "--to", "ctranslate2", "--quantize", "int16") == 0
    assert "tokens that agree" in capfd.readouterr().out
    assert command(monkeypatch, "export", str(run), out, "--to", "ctranslate2") == 2
    assert "is there already" in capfd.readouterr().err
    assert command(monkeypatch, "export", str(run), f"{out}2", "--to", "moses") == 2
    assert capfd.readouterr().err == f"dragoman: --to moses: known are {', '.join(TARGETS)}\n"
    translations = []
    for name in ("pytorch", "ctranslate2"):
        assert command(monkeypatch, "translate", str(run), "-i", str(source), "--device", "cpu", "--engine", name) == 0
        translations.append(capfd.readouterr().out)
    assert translations[0] == translations[1]
    assert command(monkeypatch, "translate", str(run), "-i", str(source), "--engine", "moses") == 2
    assert "known are pytorch, ctranslate2" in capfd.readouterr().err
    both = ("--engine", "ctranslate2", "--ensemble", str(run))
    assert command(monkeypatch, "translate", str(run), "-i", str(source), *both) == 2
    assert "ensemble" in capfd.readouterr().err
