"""Hidden tokens, the model that guesses them, and what begins with its encoder."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.config import override, parse
from dragoman.data.inputs import TextInputs
from dragoman.data.masked_tokens import MASK_ID, MaskingConfig, mask_tokens
from dragoman.errors import Error
from dragoman.inference.fill_mask import FillMask
from dragoman.models.masked_language_model import MaskedLanguageModelConfig
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import read_yaml
from dragoman.special_tokens import EOS_ID, SPECIALS
from dragoman.tasks import recipes

ROOT = Path(__file__).parents[2]
TEXTS = [list(range(4, 4 + n)) for n in (1, 3, 8, 20, 14, 2, 9)]
QUICK = ["training.max_steps=8", "training.validate_every=8", "corpus.train.size=300", "corpus.valid.size=20"]


def hidden(epoch: int = 0, **settings: float) -> Any:
    return mask_tokens(TextInputs(TEXTS, multiple=1), np.arange(len(TEXTS)), MaskingConfig(**settings), 40, 1, epoch)


def test_tokens_are_hidden_by_their_key_and_never_at_the_end_or_in_padding() -> None:
    batch, again, other = hidden(), hidden(), hidden(epoch=1)
    assert torch.equal(batch.ids, again.ids)
    assert not torch.equal(batch.guessed, other.guessed)
    assert bool(batch.guessed.any(dim=1).all()), "each text has something to guess"
    assert not bool((batch.guessed & ~batch.mask).any())
    assert not bool((batch.guessed & (batch.targets == EOS_ID)).any())
    assert batch.num_tokens == int(batch.guessed.sum())
    assert torch.equal(batch.ids[~batch.guessed], batch.targets[~batch.guessed])
    assert batch.targets[2, :8].tolist() == TEXTS[2]


def test_a_text_is_hidden_alike_whatever_is_beside_it() -> None:
    """But for its width: the numbers of a row are drawn for its padded length."""
    texts, rows = TextInputs(TEXTS, multiple=1), np.array([3, 1])
    batch = mask_tokens(texts, rows, MaskingConfig(), 40, 1, 0)
    alone = mask_tokens(texts, rows[:1], MaskingConfig(), 40, 1, 0)
    assert torch.equal(batch.ids[0], alone.ids[0])


@pytest.mark.parametrize(
    ("settings", "share_hidden", "share_shown"),
    [({}, 0.8, 0.1), ({"hidden": 1.0, "random": 0.0}, 1.0, 0.0), ({"hidden": 0.0, "random": 0.0}, 0.0, 1.0)],
)
def test_most_are_hidden_some_are_others_some_stay(
    settings: dict[str, float], share_hidden: float, share_shown: float
) -> None:
    texts = TextInputs([list(range(4, 34))] * 400, multiple=1)
    batch = mask_tokens(texts, np.arange(400), MaskingConfig(share=0.5, **settings), 4000, 3, 0)
    asked = batch.guessed
    assert abs(float(asked[:, :-1].float().mean()) - 0.5) < 0.03
    assert abs(float((batch.ids[asked] == MASK_ID).float().mean()) - share_hidden) < 0.03
    assert abs(float((batch.ids[asked] == batch.targets[asked]).float().mean()) - share_shown) < 0.03
    shown = batch.ids[asked & (batch.ids != MASK_ID)]
    assert not len(shown) or int(shown.min()) >= len(SPECIALS)


def test_shares_that_are_too_many_are_refused() -> None:
    with raises_error(Error.WRONG_SETTING):
        parse(MaskingConfig, {"hidden": 0.8, "random": 0.3})


def test_guesses_know_both_sides_and_no_other_text() -> None:
    config = parse(MaskedLanguageModelConfig, {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 2})
    torch.manual_seed(1)
    model = config.build(vocab_size=30, pad_id=0).eval()
    ids, mask = torch.tensor([[5, 2, 7, 3], [6, 3, 0, 0]]), torch.tensor([[True] * 4, [True, True, False, False]])
    with torch.no_grad():
        logits = model(ids, mask)
        for place in (0, 2):
            other = ids.clone()
            other[0, place] = 9
            assert float((model(other, mask)[0, 1] - logits[0, 1]).abs().max()) > 1e-5
            assert torch.allclose(model(other, mask)[1, :2], logits[1, :2], atol=1e-6)
        assert torch.allclose(model(ids[1:, :2], mask[1:, :2])[0], logits[1, :2], atol=1e-5)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masked")
    settings = override(read_yaml(ROOT / "recipes/masked-demo.yaml"), [*QUICK, "corpus.test.test.size=20"])
    recipe = parse(recipes.JOBS[str(settings["task"])].settings, {**settings, "run_dir": str(folder / "run")})
    with contextlib.chdir(folder):
        recipes.run(recipe)
    return folder / "run"


def test_a_run_fills_gaps_and_is_scored(run: Path) -> None:
    found = CliRunner().invoke(app, ["fill", str(run), "I <mask> a <mask>.", "--top", "3"])
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert [line.count("%") for line in lines] == [3, 3]
    guesses = FillMask.load(run).fill("<mask>", count=2)
    assert guesses[0][0].probability >= guesses[0][1].probability
    with raises_error(Error.MISSING_OPTION):
        FillMask.load(run).fill("I want a beer")
    scored = CliRunner().invoke(app, ["evaluate", str(run)])
    assert scored.exit_code == 0, scored.output
    assert "nats/tok" in scored.stdout


def test_a_run_that_was_stopped_ends_in_the_same_bytes(run: Path, tmp_path: Path) -> None:
    settings = override(read_yaml(run / "config.yaml"), [f"run_dir={tmp_path / 'again'}"])
    recipe = parse(recipes.JOBS["masked_language_modelling"].settings, settings)
    recipes.run(recipe)
    one, two = (checkpoint.load_inference_weights(checkpoint.select(path)) for path in (run, tmp_path / "again"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def begun(run: Path, recipe: str, tmp_path: Path, *changes: str) -> Path:
    own = tmp_path / "begun"
    data = override(
        read_yaml(ROOT / recipe),
        [
            "training.max_steps=1",
            "training.validate_every=1",
            f"run_dir={own}",
            f"init_from={run}",
            "corpus.test={}",
            *changes,
        ],
    )
    recipes.run(parse(recipes.JOBS[str(data.get("task", "translation"))].settings, data))
    return own


SIZES = ("model.d_model=64", "model.num_heads=4", "model.d_ff=128", "training.schedule.lr=1e-9")


@pytest.mark.system
def test_a_classifier_begins_with_the_encoder(run: Path, tmp_path: Path) -> None:
    own = begun(
        run,
        "recipes/language-id-demo.yaml",
        tmp_path,
        *SIZES,
        "model.num_layers=2",
        "corpus.train.size=60",
        "corpus.valid.size=20",
    )
    theirs, mine = (checkpoint.load_inference_weights(checkpoint.select(path)) for path in (run, own))
    name = "encoder.layers.1.feed_forward.expand.weight"
    assert torch.allclose(mine[name], theirs[name], atol=1e-6)
    assert "head.weight" in mine


def test_a_translator_begins_with_the_encoder(run: Path, tmp_path: Path) -> None:
    own = begun(
        run,
        "recipes/demo.yaml",
        tmp_path,
        *SIZES,
        "corpus.train.size=300",
        "corpus.valid.size=5",
        "tokenizer.vocab_size=300",
    )
    theirs, mine = (checkpoint.load_inference_weights(checkpoint.select(path)) for path in (run, own))
    for name in ("self_attention.query_proj.weight", "feed_forward_residual.norm.bias"):
        assert torch.allclose(mine[f"encoder_layers.1.{name}"], theirs[f"encoder.layers.1.{name}"], atol=1e-6)
    assert torch.allclose(mine["encoder_norm.weight"], theirs["encoder.norm.weight"], atol=1e-6)


def test_another_encoder_is_refused(run: Path, tmp_path: Path) -> None:
    with raises_error(Error.MISMATCH, "run"):
        begun(run, "recipes/demo.yaml", tmp_path, "corpus.train.size=300", "corpus.valid.size=5")
    with raises_error(Error.MISMATCH, "run", "encoder_layers.2"):
        begun(run, "recipes/demo.yaml", tmp_path, *SIZES, "model.num_encoder_layers=3", "corpus.train.size=300")
