"""Pictures of positions show the numbers that the position schemes themselves compute."""

import math

import pytest
import torch
from tests.errors import raises_error

from dragoman.analysis import positions
from dragoman.errors import Error
from dragoman.nn.positions import LearnedPositions, alibi_slopes


def test_the_layouts_are_the_waves_of_the_formula() -> None:
    length, d_model = 7, 8
    layouts = positions.sinusoidal_layouts(length, d_model)
    for pos in range(length):
        for column in range(d_model):
            angle = pos / 10_000 ** (column / d_model)  # one kind alone: a frequency for every column
            assert layouts["sine only"][pos, column].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert layouts["cosine only"][pos, column].item() == pytest.approx(math.cos(angle), abs=1e-6)
            wave = math.cos if column % 2 else math.sin
            expected = wave(pos / 10_000 ** (2 * (column // 2) / d_model))
            assert layouts["interleaved (the paper)"][pos, column].item() == pytest.approx(expected, abs=1e-6)
    both = layouts["interleaved (the paper)"]
    assert torch.equal(layouts["half-split"], torch.cat([both[:, ::2], both[:, 1::2]], dim=1))


def test_likeness_depends_on_the_distance_alone_only_with_cosines() -> None:
    layouts = positions.sinusoidal_layouts(60, 16)
    both, sine = layouts["interleaved (the paper)"], layouts["sine only"]
    first, later = (positions.similarity(both, start)[:20] for start in (1, 30))
    torch.testing.assert_close(first, later, rtol=0, atol=1e-5)
    assert (positions.similarity(sine, 1)[:20] - positions.similarity(sine, 30)[:20]).abs().max() > 0.1


def test_sinusoidal_figure() -> None:
    figure = positions.sinusoidal_figure(40, 16)
    upper, lower = figure.subfigs
    titles = [axes.get_title(loc="left") for axes in upper.axes if axes.images]
    assert titles == ["sine only", "cosine only", "interleaved (the paper)", "half-split"]
    shown = upper.axes[2].images[0].get_array()
    torch.testing.assert_close(torch.tensor(shown), positions.sinusoidal_layouts(40, 16)["interleaved (the paper)"])
    assert [axes.get_xlabel() for axes in lower.axes] == ["position", "distance of two positions"]
    labels = [line.get_label() for line in lower.axes[0].get_lines()]
    assert labels[0] == f"2, sin, wavelength {2 * math.pi * 10_000 ** (2 / 16):,.0f}"


def test_the_rows_of_given_positions_are_drawn() -> None:
    figure = positions.sinusoidal_figure(40, 16, rows=(28, 100))
    axes = figure.subfigs[1].axes[0]
    assert axes.get_xlabel() == "dimension"
    for line, position in zip(axes.get_lines(), (28, 100), strict=True):
        assert line.get_label() == str(position)
        expected = [(math.sin, math.cos)[i % 2](position / 10_000 ** (i // 2 * 2 / 16)) for i in range(16)]
        assert list(line.get_ydata()) == pytest.approx(expected, abs=1e-6)


def test_rotary_angles_grow_by_the_speed_of_their_pair() -> None:
    angles = positions.rotary_angles(9, 8)
    for pos in range(9):
        for pair in range(4):
            expected = pos * 10_000 ** (-2 * pair / 8)
            assert math.cos(angles[pos, pair].item()) == pytest.approx(math.cos(expected), abs=1e-5)
            assert math.sin(angles[pos, pair].item()) == pytest.approx(math.sin(expected), abs=1e-5)


def test_rotary_scores_know_only_the_distance() -> None:
    scores = positions.rotary_scores(12, 8, [0, 5, 40])
    for found in scores.values():
        torch.testing.assert_close(found, scores[0], rtol=1e-4, atol=1e-4)
    assert scores[0][0] > scores[0][1:].max()  # a vector is most like itself


def test_rotary_figure() -> None:
    figure = positions.rotary_figure(30, 16)
    upper, lower = figure.subfigs
    assert [tick.get_text() for tick in upper.axes[0].get_yticklabels()] == ["pair 0", "pair 1", "pair 2", "pair 4"]
    curves = [line.get_ydata() for line in lower.axes[1].get_lines()]
    assert len(curves) == 3
    torch.testing.assert_close(torch.tensor(curves[0]), torch.tensor(curves[2]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_heads", [1, 2, 6, 8])
def test_alibi_figure(num_heads: int) -> None:
    length = 20
    upper, lower = positions.alibi_figure(length, num_heads).subfigs
    lines = upper.axes[0].get_lines()
    assert len(lines) == num_heads
    for line, slope in zip(lines, alibi_slopes(num_heads).tolist(), strict=True):
        assert line.get_ydata()[7] == pytest.approx(-7 * slope)
    assert sum(upper.axes[1].get_lines()[0].get_ydata()) == pytest.approx(1)
    first = lower.axes[0].images[0].get_array()
    assert first[5, 2] == pytest.approx(-3 * alibi_slopes(num_heads)[0].item())
    assert first.mask[2, 5] or math.isnan(first[2, 5])


def test_learned_tables_are_found_and_drawn() -> None:
    torch.manual_seed(0)
    model = torch.nn.ModuleDict({"src": LearnedPositions(8, 12), "none": torch.nn.Linear(2, 2)})
    tables = positions.learned_tables(model)
    assert list(tables) == ["src"]
    figure = positions.learned_figure(tables, 10)
    values, alike, norms = (axes for axes in figure.axes if axes.get_xlabel())
    table = model["src"].embedding.weight.detach()[:10]
    torch.testing.assert_close(torch.tensor(values.images[0].get_array()), table)
    cosine = torch.nn.functional.cosine_similarity(table[2], table[5], dim=0).item()
    assert alike.images[0].get_array()[2, 5] == pytest.approx(cosine, abs=1e-6)
    assert norms.get_lines()[0].get_ydata()[3] == pytest.approx(table[3].norm().item())
    with raises_error(Error.UNSUPPORTED):
        positions.learned_tables(torch.nn.Linear(2, 2))
