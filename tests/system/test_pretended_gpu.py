"""What there is to say of the way through a GPU on a machine that has none: `pretended_gpu.py`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch.utils import backend_registration

ROOT = Path(__file__).parents[2]
PAIRS = ["corpus.train.size=500", "corpus.valid.size=20", "corpus.test.test.size=20"]
SHORT = ["training.max_steps=4", "training.validate_every=4"]
MODERN = [
    "model={type: transformer, d_model: 64, num_heads: 4, num_kv_heads: 2, d_ff: 64, activation: swiglu, norm: rms, "
    "dropout: 0.1, num_encoder_layers: 2, num_decoder_layers: 2, position: {type: rotary}, tie_embeddings: all}",
    "training.optimizer={type: muon}",
    "training.micro_batches=2",
    "training.r_drop=1.0",
]  # fmt: skip

pytestmark = pytest.mark.skipif(
    not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this PyTorch has no backends that are written in Python",
)


def on_pretended_gpu(recipe: str, changes: list[str], folder: Path) -> list[dict[str, Any]]:
    """What was waited for, as `pretended_gpu.main` says. A mixture of devices would have ended it."""
    program = [sys.executable, "-W", "ignore", ROOT / "tests/system/pretended_gpu.py"]
    done = subprocess.run(
        [*program, ROOT / "recipes" / recipe, "run", *changes],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("recipe", "changes", "budget"),
    [
        ("toy-reverse.yaml", PAIRS, 757),
        ("toy-reverse.yaml", [*PAIRS, *MODERN], 3694),
        pytest.param(
            "toy-reverse.yaml",
            [*PAIRS, "model.norm_placement=post", "model.position={type: learned}"],
            749,
            marks=pytest.mark.slow,
        ),
        pytest.param("toy-reverse.yaml", [*PAIRS, "model.position={type: alibi}"], 777, marks=pytest.mark.slow),
        ("toy-reverse-lstm.yaml", PAIRS, 1687),
        ("lm-demo.yaml", [], 462),
        ("masked-demo.yaml", [], 324),
        ("language-id-demo.yaml", [], 233),
    ],
    ids=["transformer", "modern", "post-norm", "alibi", "lstm", "language-model", "masked", "classifier"],
)
def test_a_step_waits_for_a_gpu_once_and_is_on_no_other_device(
    recipe: str, changes: list[str], budget: int, tmp_path: Path
) -> None:
    found = on_pretended_gpu(recipe, [*changes, *SHORT], tmp_path)
    trained = [event for event in found if event["what"] == "take"]
    assert len(trained) == 8  # four of the trial before
    for step in trained:
        assert [line.split(":")[0] for line in step["waits"]] == ["training/step.py"]
        assert sum(step["waits"].values()) == 1
        assert step["slow copies"] == {}
    # As many operations as there were when this was written, of the first step, which makes the optimizer's state, and
    # of the longest batch, and a few more: each costs a GPU some microseconds to be given.
    assert max(step["launches"] for step in trained) <= 1.05 * budget, [step["launches"] for step in trained]


@pytest.mark.parametrize("recipe", ["toy-reverse.yaml", "toy-reverse-lstm.yaml"])
@pytest.mark.parametrize("beam_size", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_a_step_of_a_search_waits_for_a_gpu_once_or_twice(recipe: str, beam_size: int, tmp_path: Path) -> None:
    found = on_pretended_gpu(
        recipe, [*PAIRS, *SHORT, f"decoding.beam_size={beam_size}", "decoding.min_length=8"], tmp_path
    )
    events = [event["what"] for event in found]
    last = found[-1]
    assert last["what"] == "n_best"
    steps = events[:-1][::-1].index("n_best")  # of the last translation, that of the test set
    assert steps >= 8
    # Of what has ended three or six lists of numbers are asked for; at worst each sentence ends in a step of its own.
    each_step, each_end = (1, 3) if beam_size == 1 else (2, 6)
    assert sum(last["waits"].values()) <= each_step * steps + each_end * 20 + 10, last
    assert sum(last["slow copies"].values()) <= 2 * 20 + 20, last
