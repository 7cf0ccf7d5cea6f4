"""Trainings on tokenizers that people bring along: the run needs their files no more, and exports translate alike."""

import contextlib
import io
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.scripts import script
from tests.unit.test_own_tokenizers import TEXT

from dragoman.cli import main
from dragoman.config import override, parse
from dragoman.decoding.base import DecodingConfig
from dragoman.export import export, target
from dragoman.inference.search_translator import SearchTranslator
from dragoman.special_tokens import UNK_ID
from dragoman.tasks import recipes
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.tokenizers.pair import load_tokenizers, pieces_of

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

BENCHMARK = script("benchmarks/own_tokenizers.py")
LINES = [line for line in TEXT if "a\u00a0b" not in line][:48]
KINDS = {
    "sentencepiece, unigram": ("ctranslate2", "huggingface", "onnx"),
    "sentencepiece, bpe, bytes, as it is": ("ctranslate2",),
    "sentencepiece, lower case, specials elsewhere": ("ctranslate2",),
    "sentencepiece with dict.txt": ("ctranslate2", "huggingface"),
    "sentencepiece with vocab.yml": ("ctranslate2",),
    "tokenizer.json, pairs of bytes": ("ctranslate2", "huggingface"),
    "tokenizer.json, WordPiece, lower case": ("ctranslate2",),
    "tokenizer.json, unigram": ("ctranslate2", "huggingface"),
    "subword-nmt with vocab.json": ("ctranslate2", "marian"),
    "subword-nmt, a threshold of 5": ("ctranslate2",),
    "pieces of subword-nmt with vocab.opennmt": ("ctranslate2", "huggingface"),
}
"""Kinds of files, and the programs that a run on them is exported to."""


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = BENCHMARK.kinds(tmp_path_factory.mktemp("kinds"), TEXT, size=400)
    return found


def cli(*arguments: object) -> int:
    """The exit status of a command."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(main.sys, "argv", ["dragoman", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main.main()
    return int(ended.value.code or 0)


def trained(folder: Path, tokenizer: dict[str, Any], *changes: str) -> Path:
    """A run that has seen each line many times, from a line to itself."""
    for name in ("train.de", "train.en", "valid.de", "valid.en"):
        (folder / name).write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    files = {
        split: {"type": "files", "src": str(folder / f"{split}.de"), "tgt": str(folder / f"{split}.en")}
        for split in ("train", "valid")
    }
    data = {
        "run_dir": str(folder / "run"),
        "workers": 1,
        "device": "cpu",
        "corpus": {"src_lang": "de", "tgt_lang": "en", **files, "normalize": "none", "doctor": "skip"},
        "tokenizer": tokenizer,
        "model": {
            "type": "transformer", "d_model": 32, "num_heads": 2, "d_ff": 64, "num_encoder_layers": 1,
            "num_decoder_layers": 1, "dropout": 0.0, "activation": "silu",
        },
        "decoding": {"beam_size": 1},
        "training": {
            "max_steps": 30, "batch_tokens": 400, "validate_every": 30,
            "schedule": {"type": "constant", "lr": 0.01},
        },
    }  # fmt: skip
    recipes.run(parse(TranslationRecipe, override(data, changes)))
    return folder / "run"


def translations(translator: Any) -> list[str]:
    return [found[0].text.strip() for found in translator.n_best(LINES[:16])]


@pytest.mark.parametrize("name", KINDS)
def test_a_run_is_exported_and_translates_alike(
    kinds: dict[str, Any], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {key: value for key, value in kinds[name].settings.items() if key != "type"}
    copies = {}
    for key, value in settings.items():  # so that they can be taken away
        copies[key] = value
        if isinstance(value, str):
            copies[key] = str(shutil.copy(value, tmp_path / f"{key}-{Path(value).name}"))
    run = trained(tmp_path, {"type": kinds[name].settings["type"], **copies})
    said = capsys.readouterr().err
    assert "learning the tokenizer" not in said
    assert ": a tokenizer of " in said
    for value in copies.values():
        if isinstance(value, str):
            Path(value).unlink()
    assert cli("train", run / "config.yaml", "training.max_steps=32") == 0
    translator = SearchTranslator.load(run, device="cpu")
    assert pieces_of(translator.tokenizers.src) == pieces_of(load_tokenizers(run / "tokenizer").src)
    greedy = translator.with_decoding(beam_size=1)
    expected = translations(greedy)
    assert len({*expected}) > 1
    for to in KINDS[name]:
        with contextlib.redirect_stderr(io.StringIO()):
            export(run, to, tmp_path / to, verify=False)  # a model that knows little: beams would differ
        if to != "marian":
            assert translations(target(to).load(tmp_path / to, greedy)) == expected, to


def test_marian_reads_the_model_itself(kinds: dict[str, Any], tmp_path: Path) -> None:
    settings = kinds["sentencepiece, unigram"].settings
    run = trained(tmp_path, settings)
    with contextlib.redirect_stderr(io.StringIO()):
        export(run, "marian", tmp_path / "marian", verify=False)
    assert (tmp_path / "marian" / "vocab.spm").read_bytes() == (
        run / "tokenizer/shared/sentencepiece.model"
    ).read_bytes()


def test_another_training_begins_with_such_a_run(kinds: dict[str, Any], tmp_path: Path) -> None:
    for name in ("sentencepiece, unigram", "tokenizer.json, unigram"):
        folder = tmp_path / name.split(",")[0]
        folder.mkdir()
        run = trained(folder, kinds[name].settings)
        grown = folder / "grown"
        assert cli("vocabulary", run, grown, "--teach", "tags") == 0
        assert load_tokenizers(grown / "tokenizer").src.id_of("⟦1⟧") != UNK_ID
        (folder / "more").mkdir()
        reuse = {"type": "reuse", "run": str(run)}
        more = trained(folder / "more", reuse, f"init_from={run}", "adapter={r: 2}", "training.max_steps=2")
        texts = [load_tokenizers(one / "tokenizer").src.encode(LINES[0]) for one in (run, more, grown)]
        assert texts[0] == texts[1] == texts[2]


def test_learnt_marks_are_put_behind_a_model_of_ones_own(kinds: dict[str, Any], tmp_path: Path) -> None:
    settings = kinds["sentencepiece, bpe, bytes, as it is"].settings
    run = trained(tmp_path, settings, "corpus.augment.tags=0.5", "training.max_steps=2")
    src = load_tokenizers(run / "tokenizer").src
    assert src.pieces(src.encode("the ⟦1⟧ dog"))[1:4] == ["▁", "⟦1⟧", "▁dog"]


def test_the_search_is_the_recipes(kinds: dict[str, Any], tmp_path: Path) -> None:
    run = trained(tmp_path, {**kinds["sentencepiece, unigram"].settings, "sampling": 0.2}, "training.max_steps=2")
    assert load_tokenizers(run / "tokenizer").src.sampling
    assert SearchTranslator.load(run, device="cpu").decoding == DecodingConfig(beam_size=1)


def test_check_looks_at_the_files(kinds: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "corpus:\n"
        "  {src_lang: de, tgt_lang: en, train: {type: demo, split: train}, valid: {type: demo, split: valid}, "
        "normalize: none}\n"
        "tokenizer: {type: sentencepiece, model: absent.model}\nrun_dir: run\n"
    )
    assert cli("check", recipe) == 2
    assert "absent.model: no such file; looked for" in capsys.readouterr().err
    model = kinds["sentencepiece, unigram"].settings["model"]
    assert cli("check", recipe, f"tokenizer.model={model}") == 0
