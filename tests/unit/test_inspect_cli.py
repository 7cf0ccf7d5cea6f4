"""`dragoman inspect` as it is typed: files where they are said to be, paths on stdout, one clear line for mistakes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from dragoman import config
from dragoman.cli.inspect import app as inspect_app
from dragoman.cli.main import app
from dragoman.errors import DragomanError
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.families import TransformerConfig
from dragoman.runs import checkpoint
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.tokenizers.pair import save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig

ROOT = Path(__file__).parents[2]
MODEL = {
    "type": "transformer",
    "d_model": 16,
    "num_heads": 2,
    "d_ff": 16,
    "num_encoder_layers": 2,
    "num_decoder_layers": 1,
}
KINDS = ("encoder.self", "decoder.self", "decoder.cross")
LINES = ["the cat sees the dog .", "a dog runs .", "the bird sings today .", "we see a cat and a bird ."]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with a random model that has learned positions, put together by hand."""
    folder = tmp_path_factory.mktemp("run") / "mine"
    source = {"type": "files", "src": "x", "tgt": "y"}
    corpus = {"src_lang": "en", "tgt_lang": "en", "train": source, "valid": source}
    model = {**MODEL, "position": {"type": "learned", "max_len": 64}}
    data = {"run_dir": str(folder), "corpus": corpus, "model": model, "decoding": {"beam_size": 2}}
    recipe = config.parse(TranslationRecipe, data)
    tokenizers = train_tokenizers(SentencePieceConfig(vocab_size=60), lambda: iter(LINES), lambda: iter(LINES))
    save_tokenizers(tokenizers, folder / "tokenizer")
    (folder / "config.yaml").write_text(config.to_yaml(recipe), encoding="utf-8")
    torch.manual_seed(3)
    built = build_model(config.parse(TransformerConfig, model), tokenizers)
    checkpoint.save(folder, 1, {"model": checkpoint.weights(built)}, {"step": 1, "score": 1.0})
    return folder


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def inspect(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["inspect", *map(str, arguments)])


def written(*arguments: object) -> list[str]:
    """The pictures that a command says it wrote, all of which are there."""
    done = inspect(*arguments)
    assert done.exit_code == 0, done.output
    paths = [line for line in done.stdout.splitlines() if line.endswith((".png", ".svg", ".pdf"))]
    assert all(Path(path).stat().st_size > 500 for path in paths)
    return paths


def refused(*arguments: object) -> str:
    done = inspect(*arguments)
    assert isinstance(done.exception, DragomanError), done.output
    assert done.stdout == ""
    return str(done.exception)


@pytest.mark.parametrize("command", [command.callback.__name__ for command in inspect_app.registered_commands])
def test_help_teaches(command: str) -> None:
    done = inspect(command, "--help")
    assert done.exit_code == 0
    assert len(done.output.split()) > 80


def test_pictures_that_need_nothing() -> None:
    assert written("masks") == ["masks.png"]
    assert written("smoothing", "--epsilon", 0.2, "-o", "s.svg") == ["s.svg"]
    for rate in (0, "nan", "inf"):
        assert f"--lr {rate}: a rate above 0" in refused("schedules", "--lr", rate)
    assert written("schedules", "--d-model", 64, "--warmup", 10, "--max-steps", 50, "-o", "lr.pdf") == ["lr.pdf"]
    assert written("norms", "a b", "c", "-o", "n.svg") == ["n.svg"]


def test_positions() -> None:
    names = [f"p-{scheme}.svg" for scheme in ("sinusoidal", "rotary", "alibi")]
    assert written("positions", "--length", 20, "--d-model", 16, "--d-head", 8, "-o", "p.svg") == names
    assert written("positions", "--scheme", "alibi", "--num-heads", 3, "-o", "one.svg") == ["one.svg"]
    written("positions", "--scheme", "sinusoidal", "--position", 28, "--position", 1_000_000, "-o", "rows.svg")
    svg = Path("rows.svg").read_text(encoding="utf-8")
    assert all(f">{text}</text>" in svg for text in ("rows of the interleaved table", "28", "1000000"))


def test_learned_positions_of_a_run(run: Path) -> None:
    assert written("positions", "--scheme", "learned", "--run", run, "-o", "learned.svg") == ["learned.svg"]
    svg = Path("learned.svg").read_text(encoding="utf-8")
    assert "src_embedding.positions" in svg
    assert "tgt_embedding.positions" in svg


def test_masks_in_the_pieces_of_a_run(run: Path) -> None:
    written("masks", "the cat sees", "--run", run, "-o", "m.svg")
    assert "▁the" in Path("m.svg").read_text(encoding="utf-8")


def test_attention(run: Path) -> None:
    kinds = ["a-encoder.self.svg", "a-decoder.self.svg", "a-decoder.cross.svg"]
    assert written("attention", run, "the cat runs", "-o", "a.svg") == kinds
    assert "▁cat" in Path("a-encoder.self.svg").read_text(encoding="utf-8")
    forced = written("attention", run, "the cat", "--target", "a bird", "--kind", "decoder-cross", "-o", "x.svg")
    assert forced == ["x.svg"]
    assert "▁bird" in Path("x.svg").read_text(encoding="utf-8")
    # The decoder has one layer: of layer 1 there is encoder self-attention only.
    assert written("attention", run, "the cat", "--layer", 1, "--head", 0, "-o", "l.svg") == ["l.svg"]


def test_attention_as_arrays(run: Path) -> None:
    done = inspect("attention", run, "the cat runs", "-o", "maps.npz")
    assert (done.exit_code, done.stdout) == (0, "maps.npz\n")
    with np.load("maps.npz") as maps:  # strings and numbers: nothing in it is a pickle
        arrays = {name: maps[name] for name in maps}
    tokens = {f"{kind}.{side}" for kind in KINDS for side in ("queries", "keys")}
    assert set(arrays) == {"encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.0.cross"} | tokens
    weights, queries = arrays["decoder.0.cross"], arrays["decoder.cross.queries"]
    assert weights.shape == (2, len(queries), len(arrays["decoder.cross.keys"]))
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert arrays["decoder.cross.keys"].tolist()[:2] == ["▁the", "▁cat"]

    assert inspect("attention", run, "the cat runs", "--layer", 1, "--head", 1, "-o", "one.npz").exit_code == 0
    with np.load("one.npz") as one:
        assert {name for name in one if not name.endswith((".queries", ".keys"))} == {"encoder.1.self"}
        np.testing.assert_array_equal(one["encoder.1.self"], arrays["encoder.1.self"][1:])


def test_parameters(run: Path) -> None:
    recipe = ROOT / "recipes/multi30k-en-de.yaml"
    done = inspect("parameters", recipe, "model.num_encoder_layers=1", "--depth", 1)
    assert "encoder_layers" in done.stdout
    assert not list(Path().iterdir())
    assert written("parameters", run, "-o", "sizes.svg") == ["sizes.svg"]
    total = sum(tensor.numel() for tensor in checkpoint.load_group(run / "checkpoints/step-00000001", "model").values())
    assert f"{total:,}" in Path("sizes.svg").read_text(encoding="utf-8")
    assert "with a recipe" in refused("parameters", run, "model.d_model=8")


def test_trace(run: Path) -> None:
    done = inspect("trace", run, "the cat runs", "a dog")
    assert done.exit_code == 0, done.output
    assert "▁the ▁cat" in done.stdout
    rows = json.loads(inspect("trace", run, "the cat runs", "a dog", "--json").stdout)
    assert {"step", "name", "origin", "shape", "dtype", "depth"} == rows[0].keys()
    assert "Linear" in {row["origin"] for row in rows}
    assert "Packed" not in done.stdout  # the layers that are trained, not their fast implementations
    recipe = inspect("trace", ROOT / "recipes/demo.yaml")
    assert recipe.exit_code == 0, recipe.output
    assert "the largest vocabulary" in recipe.stderr
    assert "9 detokenize and score" in recipe.stdout
    assert "give each its translation" in refused("trace", run, "one sentence")


def test_lengths(run: Path) -> None:
    for name, lines in (("src", LINES), ("ref", LINES[::-1])):
        Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = inspect("lengths", run, run, "--src", "src", "--ref", "ref", "--edge", 5, "--beam-size", 1, "-o", "l.svg")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["words", "sentences", "mine"]
    assert [line.split()[:2] for line in lines[1:3]] == [["1–5", "2"], ["6+", "2"]]
    assert lines[-1] == "l.svg"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["-o", "l.jpg"], "use .svg, .png or .pdf"), (["--edge", 0], "must be positive"), (["nowhere"], "not a run")],
    ids=["picture", "edge", "run"],
)
def test_lengths_translates_nothing_before_all_is_known_to_be_there(
    run: Path, arguments: list[object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SearchTranslator, "translate", lambda *_: pytest.fail("translated"))
    for name in ("src", "ref"):
        Path(name).write_text("the cat\n", encoding="utf-8")
    assert message in refused("lengths", run, *arguments, "--src", "src", "--ref", "ref")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["masks", " "], "blank"),
        (["masks", "-o", "m.gif"], "use .svg, .png or .pdf"),
        (["positions", "--scheme", "rotari"], "sinusoidal, rotary, alibi, learned"),
        (["positions", "--scheme", "learned"], "--run"),
        (["positions", "--d-model", "9"], "must be even"),
        (["positions", "--scheme", "rotary", "--position", "3"], "--position shows rows of the sinusoidal table"),
        (["smoothing", "--epsilon", "1"], "below 1"),
        (["attention", "nowhere", "x"], "not a run directory"),
        (["parameters", "nowhere.yaml"], "no such file"),
        (["trace", "nowhere.yaml"], "no such file"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    assert message in refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--layer", "2"], "layers are 0 to 1"),
        (["--head", "2"], "heads are 0 to 1"),
        (["--kind", "cross"], "encoder.self, decoder.self, decoder.cross"),
    ],
)
def test_attention_that_is_not_there(run: Path, arguments: list[str], message: str) -> None:
    assert message in refused("attention", run, "the cat", *arguments)


@pytest.mark.parametrize("command", [["attention", "other", "x"], ["lengths", "other", "--src", "s", "--ref", "t"]])
def test_runs_of_other_tasks_are_refused(command: list[str]) -> None:
    Path("other").mkdir()
    recipe = (ROOT / "recipes/lm-demo.yaml").read_text(encoding="utf-8")
    Path("other/config.yaml").write_text(f"run_dir: other\n{recipe}", encoding="utf-8")
    for name in "st":
        Path(name).write_text("x\n", encoding="utf-8")
    assert "language modelling" in refused(*command)
