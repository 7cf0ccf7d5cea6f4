"""One model that reads several segmentations of a source: their mean, whatever stands beside it."""

import random

import pytest
import torch

from dragoman.data.batch import WIDTH_MULTIPLE, collate_src
from dragoman.decoding.search import DecodingConfig, search
from dragoman.models import Seq2SeqModel, TransformerConfig
from dragoman.models.ensemble import Ensemble
from dragoman.resegmented import Resegmented

SENTENCES = [[4, 5, 6, 7, 8], [12, 13], [20]]
MAX_SRC_TOKENS = 30


def model() -> Seq2SeqModel:
    torch.manual_seed(1)
    config = TransformerConfig(d_model=16, num_heads=2, d_ff=32, num_encoder_layers=1, num_decoder_layers=1)
    built = config.build(src_vocab_size=23, tgt_vocab_size=23, shared_vocab=True, pad_id=0).eval()
    for parameter in built.parameters():  # so that what it reads shows in what it says
        parameter.data.mul_(3.0)
    return built


def in_halves(ids: list[int], rng: random.Random) -> list[int]:
    """Instead of some tokens two others, as a tokenizer that leaves merges out."""
    return [part for index in ids for part in ([index] if rng.random() < 0.5 else [index - 1, index + 1])]


def source() -> tuple[torch.Tensor, torch.Tensor]:
    return collate_src(SENTENCES, WIDTH_MULTIPLE, MAX_SRC_TOKENS)


def test_it_says_the_mean_of_what_the_model_says_to_each_segmentation() -> None:
    part, (src, src_mask) = model(), source()
    resegmented = Resegmented(part, in_halves, 3, MAX_SRC_TOKENS)
    tgt_in = torch.tensor([[2, 9, 10], [2, 14, 15], [2, 21, 4]])
    with torch.no_grad():
        read = [(src, src_mask), *(resegmented.drawn(src, src_mask, number) for number in (1, 2))]
        expected = sum(part(*segmented, tgt_in).softmax(dim=-1) for segmented in read) / 3
        said = resegmented(src, src_mask, tgt_in)
    torch.testing.assert_close(said.exp(), expected, atol=1e-6, rtol=1e-5)


def test_the_draws_are_segmentations_and_differ_from_each_other() -> None:
    src, src_mask = source()
    resegmented = Resegmented(model(), in_halves, 3, MAX_SRC_TOKENS)
    spelled = [resegmented.drawn(src, src_mask, number) for number in (1, 2)]
    assert not torch.equal(spelled[0][0], spelled[1][0])
    for other, mask in spelled:
        for ids, real, usual in zip(other, mask, SENTENCES, strict=True):
            found = ids[real].tolist()
            assert found.pop() == 3  # </s>
            assert found in [in_halves(usual, random.Random(seed)) for seed in range(2000)]
            assert not ids[~real].any()


def test_a_draw_depends_on_its_sentence_alone_and_so_does_its_width() -> None:
    src, src_mask = source()
    resegmented = Resegmented(model(), in_halves, 2, MAX_SRC_TOKENS)
    together, mask = resegmented.drawn(src, src_mask, 1)
    assert together.shape == (3, 16)  # 8 and half as many, up to a multiple of 8
    for row in range(3):
        alone = collate_src([SENTENCES[row]], WIDTH_MULTIPLE, MAX_SRC_TOKENS)
        assert torch.equal(resegmented.drawn(*alone, 1)[0][0], together[row])
        assert torch.equal(resegmented.drawn(*alone, 1)[1][0], mask[row])


@pytest.mark.parametrize(("max_src_tokens", "width"), [(30, 16), (11, 12), (7, 8), (5, 8)])
def test_what_there_is_no_room_for_stays_as_it_is(max_src_tokens: int, width: int) -> None:
    """Every draw of five tokens has twenty: more than fit, while those of one token have four."""
    src, src_mask = source()
    resegmented = Resegmented(model(), lambda ids, rng: ids * 4, 2, max_src_tokens)
    other, mask = resegmented.drawn(src, src_mask, 1)
    assert other.shape == (3, width)
    assert other[0, :6].tolist() == [*SENTENCES[0], 3]
    assert mask.sum(dim=1).tolist() == [6, 9 if width > 8 else 3, 5]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_where_nothing_is_drawn_it_is_the_model_itself(beam_size: int) -> None:
    """Of what it finds alone nothing changes but roundings: draws are padded further."""
    part, (src, src_mask) = model(), source()
    config = DecodingConfig(beam_size=beam_size)
    alone = search(part, src, src_mask, config)
    resegmented = search(Resegmented(part, lambda ids, rng: ids, 3, MAX_SRC_TOKENS), src, src_mask, config)
    assert [[h.ids for h in found] for found in alone] == [[h.ids for h in found] for found in resegmented]
    for one, other in zip(alone, resegmented, strict=True):
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-4)


def test_several_models_read_each_of_the_segmentations() -> None:
    parts = [model(), model()]
    for parameter in parts[1].parameters():
        parameter.data.mul_(0.7)
    both, (src, src_mask) = Ensemble(parts), source()
    tgt_in = torch.tensor([[2, 9, 10], [2, 14, 15], [2, 21, 4]])
    resegmented = Resegmented(both, in_halves, 2, MAX_SRC_TOKENS)
    with torch.no_grad():
        drawn = both(*resegmented.drawn(src, src_mask, 1), tgt_in).exp()
        expected = (both(src, src_mask, tgt_in).exp() + drawn) / 2
        said = resegmented(src, src_mask, tgt_in).exp()
    torch.testing.assert_close(said, expected, atol=1e-6, rtol=1e-5)
