"""Several models as one: the mean of their probabilities, in every search, whatever their families."""

import pytest
import torch

from dragoman.data.batch import collate
from dragoman.decoding.coverage import cross_attention
from dragoman.decoding.search import DecodingConfig, search
from dragoman.models.ensemble import Ensemble
from dragoman.models.families import RecurrentConfig, Seq2SeqModel, TransformerConfig

PAIRS = [([4, 5, 6, 7, 8], [9, 10, 11]), ([12, 13], [14, 15, 16, 17, 18, 19]), ([20], [21])]
SIZES = {"src_vocab_size": 23, "tgt_vocab_size": 23, "shared_vocab": True, "pad_id": 0}


def models(count: int = 3) -> list[Seq2SeqModel]:
    torch.manual_seed(1)
    transformer = TransformerConfig(d_model=16, num_heads=2, d_ff=32, num_encoder_layers=1, num_decoder_layers=1)
    recurrent = RecurrentConfig(d_embedding=16, d_model=16, attention="general")
    plain = RecurrentConfig(d_embedding=16, d_model=16, attention="none")
    made: list[Seq2SeqModel] = [settings.build(**SIZES).eval() for settings in (transformer, recurrent, plain)]
    for model in made:  # so that they differ in what they say
        for parameter in model.parameters():
            parameter.data.mul_(3.0)
    return made[:count]


def test_it_says_the_mean_of_the_probabilities() -> None:
    parts, batch = models(), collate(PAIRS)
    with torch.no_grad():
        said = Ensemble(parts)(batch.src, batch.src_mask, batch.tgt_in)
        expected = sum(part(batch.src, batch.src_mask, batch.tgt_in).softmax(dim=-1) for part in parts) / 3
    torch.testing.assert_close(said.exp(), expected, atol=1e-6, rtol=1e-5)


def test_step_equals_decode_and_reorder_moves_every_part() -> None:
    model, batch = Ensemble(models()), collate(PAIRS)
    rows = torch.tensor([2, 0, 0, 1])
    with torch.no_grad():
        memory = model.encode(batch.src, batch.src_mask)
        at_once = model.decode(batch.tgt_in, memory)[rows]
        state = model.start(memory).reorder(rows)
        for position in range(batch.tgt_in.size(1)):
            logits, state = model.decode_step(batch.tgt_in[rows, position], state)
            torch.testing.assert_close(logits, at_once[:, position], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_model_with_itself_is_itself(beam_size: int) -> None:
    (model,), batch = models(1), collate(PAIRS)
    config = DecodingConfig(beam_size=beam_size)
    alone = search(model, batch.src, batch.src_mask, config)
    together = search(Ensemble([model, model]), batch.src, batch.src_mask, config)
    assert [[h.ids for h in found] for found in alone] == [[h.ids for h in found] for found in together]
    for one, other in zip(alone, together, strict=True):
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-5)


def test_it_looks_where_its_models_look_on_the_average() -> None:
    transformer, recurrent, plain = models()
    deep = TransformerConfig(d_model=16, num_heads=2, d_ff=32, num_encoder_layers=1, num_decoder_layers=3)
    parts, batch = [transformer, recurrent, plain, deep.build(**SIZES).eval()], collate(PAIRS)
    given = batch.src, batch.src_mask, batch.tgt_in
    with torch.no_grad():
        found = cross_attention(Ensemble(parts), *given)
        expected = [
            transformer.attention_maps(*given)["decoder.0.cross"].mean(dim=1),
            recurrent.attention_maps(*given)["decoder.cross"][:, 0],
            parts[3].attention_maps(*given)["decoder.1.cross"].mean(dim=1),
        ]
    torch.testing.assert_close(found, sum(expected) / 3)
    torch.testing.assert_close(found.sum(dim=2), torch.ones(found.shape[:2]))
    assert Ensemble([plain, plain]).attention_maps(*given) == {}


def test_coverage_ranks_what_an_ensemble_finds() -> None:
    (model,), batch = models(1), collate(PAIRS)
    config = DecodingConfig(beam_size=4, n_best=4, coverage_penalty=0.5)
    alone = search(model, batch.src, batch.src_mask, config)
    together = search(Ensemble([model, model]), batch.src, batch.src_mask, config)
    assert [[h.ids for h in found] for found in alone] == [[h.ids for h in found] for found in together]


def test_models_of_other_vocabularies_are_no_ensemble() -> None:
    other = TransformerConfig(d_model=16, num_heads=2, d_ff=16).build(
        **{**SIZES, "tgt_vocab_size": 23, "src_vocab_size": 23}
    )
    larger = TransformerConfig(d_model=16, num_heads=2, d_ff=16).build(
        **{**SIZES, "src_vocab_size": 24, "tgt_vocab_size": 24}
    )
    with pytest.raises(AssertionError, match="one vocabulary"):
        Ensemble([other, larger])
