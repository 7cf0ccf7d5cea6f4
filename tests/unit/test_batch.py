import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.steps import steps_of

from dragoman.data.batch import collate, collate_src
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID

ids = st.lists(st.integers(4, 2**31), max_size=12)


@given(st.lists(st.tuples(ids, ids), min_size=1, max_size=8))
def test_rows_hold_what_went_in(pairs):
    batch = collate(pairs)
    for row, (src, tgt) in enumerate(pairs):
        assert batch.src[row][batch.src_mask[row]].tolist() == [*src, EOS_ID]
        assert batch.tgt_in[row][batch.tgt_mask[row]].tolist() == [BOS_ID, *tgt]
        assert batch.tgt_out[row][batch.tgt_mask[row]].tolist() == [*tgt, EOS_ID]
    for side, mask in [(batch.src, batch.src_mask), (batch.tgt_in, batch.tgt_mask), (batch.tgt_out, batch.tgt_mask)]:
        assert side.shape == mask.shape
        assert (side[~mask] == PAD_ID).all()
        assert (mask.int().diff(dim=1) <= 0).all()  # real tokens first
        assert mask.any(dim=0).all()  # no column of padding alone
    assert batch.num_src_tokens == batch.src_mask.sum()
    assert batch.num_tokens == batch.tgt_mask.sum()
    assert len(batch) == len(pairs)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int64])
def test_any_integer_type_becomes_int64(dtype):
    top = np.iinfo(np.uint16).max
    batch = collate([(np.array([top], dtype=dtype), np.array([5, top], dtype=dtype))], rows=np.array([41]))
    assert batch.src.dtype == batch.tgt_in.dtype == batch.tgt_out.dtype == torch.int64
    assert batch.src_mask.dtype == batch.tgt_mask.dtype == torch.bool
    assert batch.src.tolist() == [[top, EOS_ID]]
    assert batch.rows.tolist() == [41]


def test_collate_src_equals_the_source_side():
    sentences = [[4, 5, 6], [], [7]]
    src, mask = collate_src(sentences)
    batch = collate([(sentence, [4]) for sentence in sentences])
    assert torch.equal(src, batch.src)
    assert torch.equal(mask, batch.src_mask)


def test_to_moves_every_tensor():
    batch = collate([([4], [5, 6])], rows=[3]).to("meta")
    for name in ("src", "src_mask", "tgt_in", "tgt_out", "tgt_mask"):
        assert getattr(batch, name).device.type == "meta"
    assert (batch.num_tokens, batch.num_src_tokens, batch.rows.tolist()) == (3, 2, [3])


def test_a_batch_takes_no_step_for_a_token_and_few_for_a_row():
    def steps(rows: int, tokens: int) -> int:
        ids = np.arange(4, 4 + tokens, dtype=np.uint16)
        pairs = [(ids, ids)] * rows
        return steps_of(lambda: collate(pairs))

    steps(80, 20)  # shapes are checked at the first call
    assert steps(80, 500) == steps(80, 20)
    assert steps(160, 20) - steps(80, 20) <= 10 * 80


def test_masks_are_the_padding_masks_of_the_ids() -> None:
    batch = collate([([7, 8, 9], [4, 5]), ([6], [4, 5, 6])])
    assert torch.equal(batch.src_mask, batch.src != PAD_ID)
    assert torch.equal(batch.tgt_mask, batch.tgt_out != PAD_ID)
