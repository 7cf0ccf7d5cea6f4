"""The drawing of a model: its parts in order, with the shapes that its weights have."""

from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman.analysis.architecture import architecture_figure, columns_of
from dragoman.cli.main import app
from dragoman.errors import Error
from dragoman.tasks import recipes

RECIPES = Path(__file__).parents[2] / "recipes"


def parts(recipe: str, *changes: str) -> dict[str, list[str]]:
    model = recipes.job(recipes.load(RECIPES / f"{recipe}.yaml", list(changes))).build_untrained()
    assert architecture_figure(model).axes
    return {
        column.name: [f"{box.name}: {box.shape}".rstrip(": ") for box in column.boxes] for column in columns_of(model)
    }


def test_a_transformer_has_its_sublayers_in_the_order_of_its_norms() -> None:
    before = parts("demo")["encoder"]
    after = parts("demo", "model.norm_placement=post")["encoder"]
    assert before[3:6] == ["LayerNorm", "self-attention: 4 heads of 24", "+ residual"]
    assert after[3:6] == ["self-attention: 4 heads of 24", "+ residual", "LayerNorm"]
    assert before[-1] == "LayerNorm"
    assert len(after) == len(before) - 1  # its last norm is in the last layer
    decoder = parts("demo")["decoder"]
    assert "attention to the source: 4 heads of 24" in decoder
    assert decoder[-2] == "linear to the vocabulary: 96 → 1,500, the embedding's matrix"


@pytest.mark.parametrize(("placement", "below"), [("pre", "LayerNorm"), ("post", "self-attention")])
def test_residual_connections_go_round_their_sublayer_and_attention_has_its_q_k_and_v(
    placement: str, below: str
) -> None:
    changes = [f"model.norm_placement={placement}"]
    model = recipes.job(recipes.load(RECIPES / "demo.yaml", changes)).build_untrained()
    encoder, decoder = columns_of(model)
    sums = [place for place, box in enumerate(decoder.boxes) if box.skips]
    assert len(sums) == 3  # self-attention, attention to the source, feed-forward
    first = next(place for place, box in enumerate(encoder.boxes) if box.skips)
    assert encoder.boxes[first - encoder.boxes[first].skips].name == below
    cross = next(box for box in decoder.boxes if box.reads)
    assert cross.inputs == ("q", "k, v")
    texts = [text.get_text() for text in architecture_figure(model).axes[0].texts]
    assert [texts.count(text) for text in ("q, k, v", "q", "k, v")] == [2, 1, 1]
    lines = architecture_figure(model).axes[0].lines
    assert len(lines) == 2 + 3 + 1  # around the sublayers of both sides, and from the encoder to the decoder


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("model.position={type: rotary}", "self-attention: 4 heads of 24, rotary"),
        ("model.num_kv_heads=1", "self-attention: 4 heads of 24, keys and values of 1"),
        ("model.activation=swiglu", "feed-forward: 96 → 256 → 96, SwiGLU"),
        ("model.norm=rms", "RMSNorm"),
        ("model.position={type: learned, max_len: 300}", "+ learned positions: 300 × 96"),
        ("model.position={type: sinusoidal, base: 500}", "+ sinusoidal positions: base 500"),
    ],
)
def test_variants_show(change: str, told: str) -> None:
    assert told in parts("demo", change)["encoder"]


def test_recurrent_models_and_the_other_uses() -> None:
    found = parts("toy-reverse-lstm")
    assert any("from the right" in box for box in found["encoder"])
    assert any(box.startswith("General attention") or "attention to the source" in box for box in found["decoder"])
    plain = parts("toy-reverse-lstm", "model.attention=none", "model.bidirectional=false")
    assert not any("attention" in box for box in plain["decoder"])
    assert not any("from the right" in box for box in plain["encoder"])
    assert "causal self-attention" in " ".join(parts("lm-demo")["language model"])
    assert parts("language-id-demo")["classifier"][-2].startswith("linear to labels")
    with raises_error(Error.UNSUPPORTED):
        parts("mnist-vit")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "demo.svg"
    assert not app(
        ["inspect", "architecture", str(RECIPES / "demo.yaml"), "model.d_ff=40", "-o", str(picture)],
        standalone_mode=False,
    )
    assert "96 → 40 → 96, ReLU" in picture.read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() == str(picture)
