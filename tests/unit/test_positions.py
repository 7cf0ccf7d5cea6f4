"""Position schemes against their formulas; none but the learned one is a limit on length."""

import cmath

import pytest
import torch
from tests.errors import raises_error
from torch import Tensor

from dragoman.errors import Error
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.masks import causal_mask
from dragoman.nn.positions import (
    AlibiPositions,
    LearnedPositions,
    NoPositions,
    RotaryPositions,
    SinusoidalPositions,
    alibi_slopes,
    sinusoidal_table,
)


def test_sinusoids_by_the_formula_and_growing() -> None:
    table = sinusoidal_table(30, 8)
    for position, column in ((0, 0), (3, 2), (29, 7), (11, 5)):
        angle = torch.tensor(position / 10_000 ** (2 * (column // 2) / 8), dtype=torch.float64)
        expected = angle.cos() if column % 2 else angle.sin()
        assert table[position, column].item() == pytest.approx(expected.item(), abs=1e-6)
    positions = SinusoidalPositions(8, length=4)
    assert torch.equal(positions(0, 30), table)
    assert torch.equal(positions(25, 5), table[25:])


@pytest.mark.parametrize("d_model", [8, 7])
def test_layouts_hold_the_same_numbers_in_another_order(d_model: int) -> None:
    interleaved, split = sinusoidal_table(30, d_model), sinusoidal_table(30, d_model, layout="half_split")
    assert torch.equal(split, torch.cat([interleaved[:, 0::2], interleaved[:, 1::2]], dim=1))
    positions = SinusoidalPositions(d_model, length=4, layout="half_split")
    assert torch.equal(positions(20, 10), split[20:])


@pytest.mark.parametrize("d_model", [4, 8, 10])
def test_the_layout_of_fairseq_and_its_offset(d_model: int) -> None:
    """The formula of fairseq's `SinusoidalPositionalEmbedding`, which M2M100 took over."""
    half = d_model // 2
    angle = torch.arange(2, 32)[:, None] * 10_000 ** (-torch.arange(half, dtype=torch.float64) / (half - 1))
    expected = torch.cat([angle.sin(), angle.cos()], dim=1).float()
    positions = SinusoidalPositions(d_model, length=4, layout="fairseq", offset=2)
    torch.testing.assert_close(positions(0, 30), expected, atol=1e-6, rtol=0)
    assert torch.equal(positions(25, 5), positions(0, 30)[25:])


@pytest.mark.parametrize("d_model", [2, 7])
def test_a_size_that_has_no_such_layout_is_refused(d_model: int) -> None:
    with raises_error(Error.WRONG_SETTING):
        SinusoidalPositions(d_model, layout="fairseq")


def test_learned_positions_refuse_what_they_do_not_have() -> None:
    positions = LearnedPositions(8, max_len=6)
    assert positions(2, 4).shape == (4, 8)
    with raises_error(Error.TOO_LONG):
        positions(6, 1)


def test_no_positions_add_nothing() -> None:
    assert torch.equal(NoPositions(8)(1000, 3), torch.zeros(3, 8))


@pytest.mark.parametrize("start", [0, 700])
def test_rotary_is_a_multiplication_of_complex_numbers(start: int) -> None:
    """Neighbouring dimensions as a complex number, times exp(j m theta); past the table's first 512 rows too."""
    heads = torch.randn(2, 3, 5, 6, generator=torch.Generator().manual_seed(0))
    turned = RotaryPositions(6, base=100.0).rotate(heads, start)
    for offset in range(5):
        for pair in range(3):
            turn = cmath.exp(1j * (start + offset) * 100.0 ** (-2 * pair / 6))
            numbers = torch.view_as_complex(heads[:, :, offset, 2 * pair : 2 * pair + 2].contiguous()) * turn
            expected = torch.view_as_real(numbers.to(torch.complex64))
            got = turned[:, :, offset, 2 * pair : 2 * pair + 2]
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)


def test_rotary_scores_depend_on_distance_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, 1, 1, 16, generator=generator) for _ in range(2))
    positions = RotaryPositions(16)

    def score(query_at: int, key_at: int) -> Tensor:
        return (positions.rotate(query, query_at) * positions.rotate(key, key_at)).sum()

    torch.testing.assert_close(score(9, 4), score(305, 300), atol=1e-4, rtol=0)
    torch.testing.assert_close(score(4, 9), score(2000, 2005), atol=1e-4, rtol=0)
    assert not torch.isclose(score(9, 4), score(9, 5))
    assert not torch.isclose(score(9, 4), score(4, 9))


def test_a_table_that_grew_in_a_search_serves_training_after_it() -> None:
    attention = MultiHeadAttention(8, 2, positions=RotaryPositions(4))
    x = torch.randn(1, 600, 8, requires_grad=True)
    with torch.inference_mode():
        attention(x, x, None)
    attention(x, x, None).sum().backward()
    assert x.grad is not None


def test_alibi_slopes_are_the_papers() -> None:
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert alibi_slopes(16)[:3].tolist() == pytest.approx([2**-0.5, 2**-1, 2**-1.5])
    # Six heads: the four slopes of four heads, then the first and third of eight.
    assert alibi_slopes(6).tolist() == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3]
    assert alibi_slopes(12)[8:].tolist() == pytest.approx([2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5])
    assert alibi_slopes(1).tolist() == [2.0**-8]


def test_alibi_by_a_loop() -> None:
    positions, slopes = AlibiPositions(4), [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8]
    bias = positions.bias(torch.empty(1, 4, 3, 8), 2, 5)
    for head, slope in enumerate(slopes):
        for query in range(3):
            for key in range(5):
                assert bias[0, head, query, key].item() == -slope * abs(2 + query - key)


def test_alibi_in_attention_by_a_loop() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, positions=AlibiPositions(2)).double()
    x = torch.randn(1, 6, 8, dtype=torch.float64)
    got = attention(x, x, causal_mask(6))
    query, key, value = (proj(x)[0].view(6, 2, 4) for proj in attention_projections(attention))
    rows = []
    for i in range(6):
        heads = []
        for head, slope in enumerate((2**-4, 2**-8)):
            scores = [query[i, head] @ key[j, head] / 2 - slope * (i - j) for j in range(i + 1)]
            weights = torch.stack(scores).softmax(0)
            heads.append(sum(weights[j] * value[j, head] for j in range(i + 1)))
        rows.append(torch.cat(heads))
    torch.testing.assert_close(got[0], attention.output_proj(torch.stack(rows)))


def attention_projections(attention: MultiHeadAttention) -> list[torch.nn.Linear]:
    return [attention.query_proj, attention.key_proj, attention.value_proj]


def test_learned_positions_end_in_the_middle_of_a_search_too() -> None:
    positions = LearnedPositions(d_model=4, max_len=3)
    assert positions(2, 1).shape == (1, 4)
    with raises_error(Error.TOO_LONG):
        positions(3, 1)
