"""An Argos Translate package holds the same model behind the same pieces, or is refused."""

import functools
import json
import random
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sentencepiece as spm
import torch
from tests.errors import raises_error
from torch.nn import functional

from dragoman import config
from dragoman.data.batch import collate
from dragoman.decoding.base import DecodingConfig, SampledConfig
from dragoman.decoding.penalties import AveragePenalty
from dragoman.errors import Error
from dragoman.export import argos, ctranslate2, export, normalization
from dragoman.export.verify import compare_export
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.families import TransformerConfig
from dragoman.quality.scores import EvaluationConfig
from dragoman.quality.test_set import TestSet
from dragoman.runs import checkpoint
from dragoman.special_tokens import PAD_ID
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.pair import TokenizerPair, save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.text.tokenizers.words import WordsConfig

SIZES = {
    "d_model": 32,
    "num_heads": 2,
    "d_ff": 64,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "tie_embeddings": "none",
}
RNG = random.Random(1)
LINES = [
    " ".join(RNG.choices(["ab", "bad", "café", "d", "eß", "Ångström", "fi"], k=RNG.randint(1, 9))) for _ in range(30)
]
TOKENIZERS = train_tokenizers(SentencePieceConfig(vocab_size=50), lambda: iter(LINES), lambda: iter(LINES))


def tiny(
    model: dict[str, Any] | None = None,
    *,
    tokenizers: TokenizerPair = TOKENIZERS,
    languages: tuple[str, str] | None = ("en", "de"),
    **settings: Any,
) -> SearchTranslator:
    torch.manual_seed(3)
    built = build_model(config.parse(TransformerConfig, {**SIZES, **(model or {})}), tokenizers).eval()
    return SearchTranslator(built, tokenizers, decoding=DecodingConfig(), languages=languages, **settings)


@functools.cache
def copying() -> SearchTranslator:
    """One that has learnt a little: what says nothing goes on to the limits of a search, which are not the same."""
    return taught(tiny())


def taught(translator: SearchTranslator) -> SearchTranslator:
    """The same, after it has learnt to copy LINES."""
    ids = [TOKENIZERS.src.encode(line) for line in LINES]
    batch = collate([(one, one) for one in ids])
    optimizer = torch.optim.Adam(translator.model.parameters(), lr=5e-3)
    for _ in range(250):
        logits = translator.model(batch.src, batch.src_mask, batch.tgt_in)
        loss = functional.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=PAD_ID)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return translator


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory with that model, and sampling in its recipe."""
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "lines").write_text("".join(line + "\n" for line in LINES), encoding="utf-8")
    files = {"type": "files", "src": str(tmp_path / "lines"), "tgt": str(tmp_path / "lines")}
    corpus = {"src_lang": "en", "tgt_lang": "de_AT", "train": files, "valid": files}
    model = {"type": "transformer", **SIZES}
    settings = {"run_dir": str(folder), "corpus": corpus, "model": model, "decoding": {"no_repeat_ngram": 2}}
    (folder / "config.yaml").write_text(config.to_yaml(config.parse(TranslationRecipe, settings)), encoding="utf-8")
    save_tokenizers(TOKENIZERS, folder / "tokenizer")
    checkpoint.save(folder, 1, {"model": checkpoint.weights(copying().model)}, {"step": 1, "score": 1.0})
    return folder


# -- the tokenizer -------------------------------------------------------------------------------------------------

SPELT = [
    "Å", "A\u030a", "\u212b", "e\u0301", "e\u0323\u0302", "e\u0302\u0323", "ệ", "\uac01", "\u1100\u1161\u11a8",
    "\uac00\u11a8", "ﬁ", "１", "\u00b4", "\u0958", "\t", "\u00a0", "\u3000", "  ", "▁", "\u2028", "<s>", "b", "Z",
    "日", "\u200b",
]  # fmt: skip


@pytest.mark.parametrize("normalize", NORMALIZERS)
def test_its_sentencepiece_normalises_as_the_run_does(normalize: str) -> None:
    rng = random.Random(2)
    texts = ["".join(rng.choices([*SPELT, "a", "e", " "], k=rng.randint(0, 12))) for _ in range(400)]
    translator = tiny(normalize=normalize)
    theirs = spm.SentencePieceProcessor(
        model_proto=normalization.sentencepiece_model(translator.tokenizers.src, translator.normalize)
    )
    assert theirs.GetPieceSize() == TOKENIZERS.src.vocab_size
    for text in texts:
        assert theirs.encode(text) == TOKENIZERS.src.encode(translator.normalize(text)), ascii(text)


def test_nothing_is_replaced_that_normalisation_leaves() -> None:
    found = dict(normalization.replacements(NORMALIZERS["none"]))
    assert set(found.values()) == {" "}
    assert {"\t", "\u00a0", "\u3000", "\u2581"} < set(found)
    composed = dict(normalization.replacements(NORMALIZERS["nfc"]))
    assert composed["e\u0302\u0323"] == composed["\u00ea\u0323"] == "\u1ec7"
    assert "\ufb01" not in composed
    assert dict(normalization.replacements(NORMALIZERS["nfkc"]))["\ufb01"] == "fi"


# -- the package ---------------------------------------------------------------------------------------------------


def test_a_package_is_one_file_with_its_folder(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    (tmp_path / "more").write_text("".join(line + "\n" for line in [*LINES[:5], "", "▁"]), encoding="utf-8")
    export(run, "argos", tmp_path / "out", src=tmp_path / "more", tell=told.append)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"translate-en_de-1_0.argosmodel", "MODEL_CARD.md"}
    with zipfile.ZipFile(tmp_path / "out" / "translate-en_de-1_0.argosmodel") as package:
        names = {name.removeprefix("translate-en_de-1_0/") for name in package.namelist()}
        metadata = json.loads(package.read("translate-en_de-1_0/metadata.json"))
        assert b"# English to German" in package.read("translate-en_de-1_0/README.md")
    files = {"metadata.json", "README.md", "sentencepiece.model"}
    assert names - {"", "model/"} == files | {
        f"model/{name}" for name in ("config.json", "model.bin", "shared_vocabulary.json")
    }
    assert metadata == {
        "package_version": "1.0", "argos_version": "1.9",
        "from_code": "en", "from_name": "English", "to_code": "de", "to_name": "German",
    }  # fmt: skip
    assert any("argostranslate" in line for line in told)
    said = capsys.readouterr().err
    assert "compared with decoding.beam_size 4" in said
    assert "decoding.no_repeat_ngram 0" in said


def test_what_it_finds_has_the_scores_of_the_run(run: Path, tmp_path: Path) -> None:
    translator = SearchTranslator.load(run, device="cpu")
    argos.write(translator, tmp_path, None)
    searching = translator.with_decoding(**vars(argos.nearest(translator.decoding)))
    packed = argos.load(tmp_path, searching)
    text = TestSet([*LINES, "", " "], [], name="lines")
    found = compare_export(searching, packed, text, EvaluationConfig(), "de")
    assert found.score_difference < 1e-4
    assert len(found.differences) < 10
    assert [items[0].text for items in packed.n_best(["", " "])] == ["", ""]
    assert len({items[0].text for items in packed.n_best(LINES)}) > 15
    packed.n_best(["ab " * 3000])  # is cut there, and no error


def swapped_projections(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ctranslate2.entries

    def wrong(model: Any) -> Any:
        found = right(model)
        for entry in found.values():
            entry.modules[-2:] = entry.modules[-2:][::-1]
        return found

    monkeypatch.setattr(ctranslate2, "entries", wrong)


def wrong_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctranslate2, "position_table", lambda module, rows: module.positions(1, rows))


def other_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    other = train_tokenizers(SentencePieceConfig(vocab_size=40), lambda: iter(LINES), lambda: iter(LINES)).src
    monkeypatch.setattr(argos, "sentencepiece_model", lambda tokenizer, normalize: other.model)


@pytest.mark.parametrize("mutate", [swapped_projections, wrong_positions, other_pieces])
def test_a_wrong_package_is_found_and_leaves_nothing(
    mutate: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    before = sorted(tmp_path.iterdir())
    with raises_error(Error.EXPORT_DIFFERS):
        export(run, "argos", tmp_path / "out", src=tmp_path / "lines", tell=lambda line: None)
    assert sorted(tmp_path.iterdir()) == before


def test_int8_is_smaller(run: Path, tmp_path: Path) -> None:
    for quantize in (None, "int8"):
        export(run, "argos", tmp_path / f"{quantize}", quantize=quantize, verify=False)
    full, small = (next((tmp_path / name).glob("*.argosmodel")).stat().st_size for name in ("None", "int8"))
    assert small < full
    with raises_error(Error.UNKNOWN_NAME):
        argos.write(tiny(), tmp_path, "int4")


def test_a_package_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with raises_error(Error.CANNOT_READ):
        argos.load(tmp_path, tiny())
    (tmp_path / "translate-en_de-1_0.argosmodel").write_bytes(b"no archive")
    with raises_error(Error.CANNOT_READ):
        argos.load(tmp_path, tiny())


def test_argos_translate_itself_installs_and_translates_it(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is installed; the two libraries that split sentences are not needed."""
    whole = SimpleNamespace(SBDetect=lambda *_, **__: SimpleNamespace(sentences=lambda text: [text]))
    whole.models = SimpleNamespace(list_models=list, cache_dir="")
    for name in ("stanza", "minisbd"):
        monkeypatch.setitem(sys.modules, name, whole)
    for name in ("DATA", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "home"))
    package = pytest.importorskip("argostranslate.package")
    translate = pytest.importorskip("argostranslate.translate")
    monkeypatch.setattr("argostranslate.sbd.SBDetect", whole.SBDetect)  # it may have been imported before, with its own
    told: list[str] = []
    export(run, "argos", tmp_path / "out", src=tmp_path / "lines", tell=told.append)
    assert "translated by argostranslate itself" in told[-1]
    package.install_from_path(next((tmp_path / "out").glob("*.argosmodel")))
    searching = SearchTranslator.load(run, device="cpu").with_decoding(**vars(argos.nearest(DecodingConfig())))
    expected = [items[0].text for items in argos.load(tmp_path / "out", searching).n_best(LINES)]
    monkeypatch.setattr(translate.settings, "compute_type", "default")
    assert [translate.translate(line, "en", "de") for line in LINES] == expected


# -- what cannot be packed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({"tokenizers": TokenizerPair(TOKENIZERS.src, TOKENIZERS.tgt, shared=False)}, "for both languages"),
        ({"tokenizers": train_tokenizers(WordsConfig(), lambda: iter(LINES), lambda: iter(LINES))}, "type: words"),
        ({"model": {"position": {"type": "learned", "max_len": 255}}}, "learned positions end at 255"),
        ({"model": {"position": {"type": "alibi"}}}, "alibi"),
        ({"languages": None}, "two different ISO 639 codes"),
        ({"languages": ("en_GB", "en_US")}, "two different ISO 639 codes"),
        ({"languages": ("source", "de")}, "two different ISO 639 codes"),
    ],
    ids=["two vocabularies", "words", "learned", "alibi", "no languages", "one language", "no code"],
)  # fmt: skip
def test_reasons_why_there_can_be_no_package(made: dict[str, Any], reason: str) -> None:
    assert [reason in line for line in argos.problems(tiny(**made))] == [True]


def test_all_reasons_are_told_at_once() -> None:
    assert len(argos.problems(tiny({"position": {"type": "learned", "max_len": 9}}, languages=None))) == 2
    assert argos.problems(tiny()) == []
    assert argos.problems(tiny(languages=("pt_PT", "pt-BR"))) == []  # which is pb there


def test_its_search_is_the_nearest() -> None:
    found = argos.nearest(DecodingConfig(sampling=SampledConfig(samples=9), n_best=9, min_length=3))
    assert found == DecodingConfig(beam_size=4, length_penalty=AveragePenalty(alpha=0.2), min_length=1)
