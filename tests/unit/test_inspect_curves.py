"""Schedules, label smoothing and norms: what is drawn equals numbers computed another way."""

import math

import numpy as np
import pytest
import torch

from dragoman.analysis.norms import normed_batch, norms_figure
from dragoman.analysis.schedules import learning_rates, noam_curves, other_curves, plateau_curve, schedules_figure
from dragoman.analysis.smoothing import loss_of_confidence, smoothing_figure, target_distribution
from dragoman.training.schedules import NoamConfig


def test_noam_curves_by_the_formula() -> None:
    curves = noam_curves([512, 256], [400, 800], 2000)
    assert list(curves) == [(512, 400), (512, 800), (256, 400), (256, 800)]
    for (d_model, warmup), (steps, rates) in curves.items():
        assert steps[0] == 1
        assert steps[-1] == 2000
        expected = [d_model**-0.5 * min(step**-0.5, step * warmup**-1.5) for step in steps]
        assert rates == pytest.approx(expected)


def test_few_steps_are_each_drawn_once() -> None:
    steps, _ = learning_rates(NoamConfig(), 10, 64)
    assert steps == list(range(1, 11))


def test_the_other_schedules_share_peak_and_warm_up() -> None:
    for name, (steps, rates) in other_curves(1e-3, 100, 1000).items():
        assert rates[0] == pytest.approx(1e-5), name
        assert max(rates) == pytest.approx(1e-3, rel=0.02), name
        assert steps[np.argmax(rates)] == pytest.approx(100, abs=3), name
    assert other_curves(1e-3, 100, 1000)["linear"][1][-1] == pytest.approx(0, abs=1e-9)


def test_plateau_halves_after_the_scores_stop_rising() -> None:
    steps, rates = plateau_curve(1e-3, 0, 1000)
    by_step = dict(zip(steps, rates, strict=True))
    assert by_step[501] == 1e-3
    assert by_step[999] < 1e-3
    assert set(rates) <= {1e-3 * 0.5**i for i in range(5)}


def test_schedules_figure() -> None:
    left, right = schedules_figure(noam_curves([64], [50], 300), other_curves(1e-3, 30, 300), 30).axes
    assert left.get_xlabel() == right.get_xlabel() == "step"
    label = left.get_legend().get_texts()[0].get_text()
    assert label == f"d_model 64, warm-up 50: {(64 * 50) ** -0.5:.3g}"
    assert [text.get_text() for text in right.get_legend().get_texts()] == [
        "inverse_sqrt", "linear", "polynomial", "cosine", "tri_stage", "constant",
    ]  # fmt: skip


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_the_target_distribution(epsilon: float) -> None:
    found = target_distribution(5, 2, epsilon)
    expected = np.full(5, epsilon / 5)
    expected[2] += 1 - epsilon
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_loss_of_confidence_is_the_cross_entropy_of_the_two_distributions(epsilon: float) -> None:
    size = 20
    for confidence, loss in zip([0.3, 0.905, 0.99], loss_of_confidence([0.3, 0.905, 0.99], size, epsilon), strict=True):
        asked = [1 - epsilon + epsilon / size] + [epsilon / size] * (size - 1)
        said = [confidence] + [(1 - confidence) / (size - 1)] * (size - 1)
        assert loss == pytest.approx(-sum(p * math.log(q) for p, q in zip(asked, said, strict=True)), abs=1e-4)


def test_smoothing_figure_marks_the_lowest_loss() -> None:
    left, right = smoothing_figure([0.0, 0.1], loss_vocab_size=50).axes
    assert len(left.patches) == 2 * 8
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["ε = 0", "ε = 0.1"]
    smoothed, mark = right.get_lines()[1:]
    assert mark.get_ydata()[0] <= min(smoothed.get_ydata()) + 1e-6
    assert mark.get_xdata()[0] == pytest.approx(0.1 * (1 - 1 / 50))


def test_norms_against_loops() -> None:
    tokens, versions = normed_batch(["eins zwei drei", "vier"], features=6)
    assert tokens == [["eins", "zwei", "drei", "</s>"], ["vier", "</s>", "<pad>", "<pad>"]]
    values = versions["before"].values
    assert not values[1, 2:].any()
    row = values[0, 1]
    layer = (row - row.mean()) / math.sqrt(row.var() + 1e-5)
    np.testing.assert_allclose(versions["LayerNorm"].values[0, 1], layer, atol=1e-5)
    rms = row / math.sqrt((row**2).mean() + torch.finfo(torch.float32).eps)
    np.testing.assert_allclose(versions["RMSNorm"].values[0, 1], rms, atol=1e-5)
    column = values[:, :, 2]
    np.testing.assert_allclose(
        versions["BatchNorm1d"].values[:, :, 2], (column - column.mean()) / math.sqrt(column.var() + 1e-5), atol=1e-5
    )


def test_only_batch_norm_looks_at_the_neighbours() -> None:
    _, versions = normed_batch(["eins zwei drei", "vier"])
    effects = {name: version.neighbour_effect for name, version in versions.items()}
    assert effects["LayerNorm"] < 1e-5
    assert effects["RMSNorm"] < 1e-5
    assert effects["BatchNorm1d"] > 0.1


def test_norms_figure() -> None:
    tokens, versions = normed_batch(["eins zwei drei", "vier"])
    figure = norms_figure(tokens, versions)
    panels = figure.axes[: 2 * len(versions)]
    assert [tick.get_text() for tick in panels[0].get_yticklabels()] == tokens[0]
    outlines = [len(axes.patches) for axes in panels]
    assert outlines == [0, 1, 1, 1, 0, 0, 0, 1]  # a token of the first sentence; a feature through both
