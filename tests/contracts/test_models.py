"""What every model family in the table promises, in each of its variants."""

from typing import Any, get_args

import pytest
import torch

from dragoman.data.batch import Batch, collate
from dragoman.decoding.search import DecodingConfig, search
from dragoman.models.blocks import PositionConfig
from dragoman.models.families import MODELS, Seq2SeqModel
from dragoman.models.recurrent import AttentionalDecoder
from dragoman.models.transformer import Transformer
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.feedforward import FEED_FORWARDS
from dragoman.nn.residual import NORM_PLACEMENTS, NORMS
from dragoman.runs import checkpoint
from dragoman.training.loss import token_loss

VOCAB = 23
POSITIONS = {scheme.type for scheme in get_args(get_args(PositionConfig)[0])}
SMALL = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_encoder_layers": 2, "num_decoder_layers": 2}
RECURRENT = {"d_embedding": 16, "d_model": 32, "num_encoder_layers": 1, "num_decoder_layers": 1}
LEARNED, HALF_SPLIT = {"type": "learned", "max_len": 64}, {"type": "sinusoidal", "layout": "half_split"}
FAIRSEQ = {"type": "sinusoidal", "layout": "fairseq", "offset": 2}
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "recurrent": [
        {**RECURRENT, "tie_embeddings": "all", "cell": cell, "attention": attention, **more}
        for cell, attention, more in (
            ("lstm", "none", {"bidirectional": False}),
            ("gru", "none", {"bidirectional": True, "num_encoder_layers": 2, "num_decoder_layers": 2}),
            ("lstm", "dot", {"bidirectional": True, "input_feeding": True}),
            ("gru", "scaled_dot", {"bidirectional": False, "input_feeding": True, "tie_embeddings": "none"}),
            ("lstm", "general", {"bidirectional": True, "num_decoder_layers": 2}),
            ("gru", "additive", {"bidirectional": True, "tie_embeddings": "output"}),
            ("lstm", "additive", {"bidirectional": False, "num_encoder_layers": 2, "input_feeding": True}),
        )
    ],
    "transformer": [
        {**SMALL, **more}
        for more in (
            {"activation": "relu", "attention_dropout": 0.1},
            {"norm_placement": "post", "position": LEARNED, "activation": "gelu", "tie_embeddings": "output"},
            {"norm_placement": "output", "norm": "rms", "position": HALF_SPLIT, "activation": "swiglu"},
            {"position": {"type": "rotary"}, "activation": "gelu_tanh", "tie_embeddings": "none"},
            {"norm_placement": "post", "norm": "rms", "position": {"type": "alibi"}, "embedding_norm": True},
            {"position": {"type": "none"}, "activation": "swiglu", "num_kv_heads": 1, "scale_embeddings": False},
            {"norm_placement": "output", "position": {"type": "rotary"}, "num_kv_heads": 1, "embedding_norm": True},
            {"norm": "rms", "position": {"type": "alibi"}, "num_heads": 4, "num_kv_heads": 2, "activation": "gelu"},
            {"position": {"type": "relative", "max_distance": 2}, "norm_placement": "post"},
            {"position": {"type": "relative"}, "num_kv_heads": 1, "tied_layers": [1, 1], "tied_encoder_layers": [2, 2]},
            {"decoder_autoreg": "rnn", "norm_placement": "post"},
            {"d_head": 6, "num_heads": 4, "num_kv_heads": 2, "position": {"type": "rotary"}},
            {
                "position": FAIRSEQ,
                "activation": "silu",
                "output_bias": True,
                "src_end": False,
                "tie_embeddings": "output",
            },
        )
    ],
}
CASES = [(family, variant) for family in MODELS for variant in VARIANTS[family]]
PAIRS = [([4, 5, 6, 7, 8], [9, 10, 11]), ([12, 13], [14, 15, 16, 17, 18, 19]), ([20], [21]), ([22, 4, 9], [5, 5, 5, 6])]


def test_every_family_has_variants_here() -> None:
    assert VARIANTS.keys() == MODELS.keys()


@pytest.mark.parametrize(
    ("setting", "table"),
    [("norm", NORMS), ("norm_placement", NORM_PLACEMENTS), ("activation", FEED_FORWARDS), ("position", POSITIONS)],
)
def test_every_row_of_the_transformers_tables_is_a_variant_here(setting: str, table: Any) -> None:
    found = [getattr(MODELS["transformer"](**variant), setting) for variant in VARIANTS["transformer"]]
    assert {getattr(value, "type", value) for value in found} == set(table)


@pytest.fixture(params=CASES, ids=lambda case: "-".join([case[0], *map(str, list(case[1].values())[5:])]))
def build(request: pytest.FixtureRequest) -> Any:
    family, variant = request.param

    def make(dropout: float = 0.0) -> Seq2SeqModel:
        torch.manual_seed(1)
        settings = MODELS[family](**variant, dropout=dropout)
        return settings.build(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, shared_vocab=True, pad_id=0)

    return make


def logits_of(model: Seq2SeqModel, batch: Batch) -> torch.Tensor:
    return model(batch.src, batch.src_mask, batch.tgt_in)


@torch.inference_mode()
def test_states_of_unlike_lengths_take_a_step_together(build: Any) -> None:
    """As each would by itself: what was read, how much was written, how many rows there are may all differ."""
    model, rng = build().eval(), torch.Generator().manual_seed(3)
    states, prevs = [], []
    for sentences, width, beam, steps in ((2, 8, 4, 0), (8, 16, 1, 3), (4, 5, 2, 11)):
        src = torch.randint(4, VOCAB, (sentences, width), generator=rng)
        src_mask = torch.arange(width) < torch.randint(1, width + 1, (sentences, 1), generator=rng)
        state = model.start_search(model.encode(src, src_mask), beam)
        state = state.reorder(torch.arange(sentences).repeat_interleave(beam))
        for _ in range(steps):
            _, state = model.decode_step(torch.randint(4, VOCAB, (sentences * beam,), generator=rng), state)
        states.append(state)
        prevs.append(torch.randint(4, VOCAB, (sentences * beam,), generator=rng))
    apart = [model.decode_step(prev, state) for prev, state in zip(prevs, states, strict=True)]
    for _ in range(2):
        together = model.decode_steps(prevs, states)
        for (expected, _), (found, _) in zip(apart, together, strict=True):
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        prevs = [found.argmax(dim=-1) for found, _ in together]
        states = [state for _, state in together]
        apart = [model.decode_step(prev, state) for prev, (_, state) in zip(prevs, apart, strict=True)]


def test_step_equals_decode_at_every_position(build: Any) -> None:
    model, batch = build().eval(), collate(PAIRS)
    with torch.no_grad():
        memory = model.encode(batch.src, batch.src_mask)
        at_once = model.decode(batch.tgt_in, memory)
        state = model.start(memory)
        for position in range(batch.tgt_in.size(1)):
            logits, state = model.decode_step(batch.tgt_in[:, position], state)
            torch.testing.assert_close(logits, at_once[:, position], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("beam", [1, 3, 9])
def test_a_search_goes_on_from_what_was_read_at_once(build: Any, beam: int) -> None:
    model, batch = build().eval(), collate(PAIRS)
    with torch.no_grad():
        memory = model.encode(batch.src, batch.src_mask)
        at_once = model.decode(batch.tgt_in, memory)
        state = model.start_search(memory, beam, batch.tgt_in[:, :2])
        state = state.reorder(torch.arange(len(PAIRS)).repeat_interleave(beam))
        for position in range(2, batch.tgt_in.size(1)):
            logits, state = model.decode_step(batch.tgt_in[:, position].repeat_interleave(beam), state)
            expected = at_once[:, position].repeat_interleave(beam, dim=0)
            torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)


def test_step_leaves_the_state_it_was_given_unchanged(build: Any) -> None:
    model, batch = build().eval(), collate(PAIRS)
    with torch.no_grad():
        _, state = model.decode_step(batch.tgt_in[:, 0], model.start(model.encode(batch.src, batch.src_mask)))
        first, _ = model.decode_step(batch.tgt_in[:, 1], state)
        again, _ = model.decode_step(batch.tgt_in[:, 1], state)
    assert torch.equal(first, again)


@pytest.mark.parametrize("rows", [[3, 1], [0, 0, 1, 1, 2, 2, 3, 3], [2, 2, 0], [1, 0, 3, 2]])
def test_reorder_selects_expands_and_drops(build: Any, rows: list[int]) -> None:
    model, batch = build().eval(), collate(PAIRS)
    with torch.no_grad():
        _, state = model.decode_step(batch.tgt_in[:, 0], model.start(model.encode(batch.src, batch.src_mask)))
        straight, _ = model.decode_step(batch.tgt_in[:, 1], state)
        chosen = torch.tensor(rows)
        moved, moved_state = model.decode_step(batch.tgt_in[chosen, 1], state.reorder(chosen))
        torch.testing.assert_close(moved, straight[chosen], atol=1e-5, rtol=1e-5)
        back = torch.arange(len(rows)).flip(0)
        twice, _ = model.decode_step(batch.tgt_in[chosen, 1].flip(0), state.reorder(chosen).reorder(back))
        torch.testing.assert_close(twice, moved.flip(0), atol=1e-5, rtol=1e-5)
        del moved_state


def test_the_future_does_not_reach_back(build: Any) -> None:
    model, batch = build().eval(), collate(PAIRS)
    with torch.no_grad():
        memory = model.encode(batch.src, batch.src_mask)
        before = model.decode(batch.tgt_in, memory)
        for now in range(1, batch.tgt_in.size(1)):
            changed = batch.tgt_in.clone()
            changed[:, now:] = 4 + (changed[:, now:] + 3) % (VOCAB - 4)
            after = model.decode(changed, memory)
            assert torch.equal(before[:, :now], after[:, :now])
            assert (before[:, now] != after[:, now]).any(dim=-1).all()


def test_padding_changes_nothing(build: Any) -> None:
    model, batch = build().eval(), collate(PAIRS)
    with torch.no_grad():
        together = logits_of(model, batch)
        for row, pair in enumerate(PAIRS):
            alone = logits_of(model, collate([pair]))[0]
            torch.testing.assert_close(together[row, : len(alone)], alone, atol=1e-5, rtol=1e-5)
        garbage = batch.src.masked_fill(~batch.src_mask, 11)  # what stands at a pad must not matter
        assert torch.equal(model(garbage, batch.src_mask, batch.tgt_in), together)


def test_padding_may_be_no_number(build: Any) -> None:
    """NaN is what no weight of zero can hide: real positions must not so much as multiply by what stands at a pad."""
    model, batch = build().eval(), collate(PAIRS)
    clean = logits_of(model, batch)
    pads = ~batch.src_mask[:, :, None]
    poison = model.src_embedding.register_forward_hook(lambda _, ids, vectors: vectors.masked_fill(pads, torch.nan))
    memory = model.encode(batch.src, batch.src_mask)
    poison.remove()  # source and target may share the embedding
    logits = model.decode(batch.tgt_in, memory)
    assert torch.equal(logits, clean)
    token_loss(logits, batch.tgt_out, batch.tgt_mask).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)


def test_attention_maps_see_what_may_be_seen(build: Any) -> None:
    model, batch = build().eval(), collate(PAIRS)
    with torch.no_grad():
        maps = model.attention_maps(batch.src, batch.src_mask, batch.tgt_in)
    src_len, tgt_len = batch.src.size(1), batch.tgt_in.size(1)
    assert src_len != tgt_len
    if isinstance(model, Transformer):
        is_attention = isinstance(model.decoder_layers[0].self_attention, MultiHeadAttention)
        kinds = ("self", "cross") if is_attention else ("cross",)
        decoder = [f"decoder.{layer}.{kind}" for layer in (0, 1) for kind in kinds]
        assert list(maps) == ["encoder.0.self", "encoder.1.self", *decoder]
    else:
        assert list(maps) == (["decoder.cross"] if isinstance(model.decoder, AttentionalDecoder) else [])
    for name, weights in maps.items():
        side, *_, kind = name.split(".")
        hidden = ~batch.src_mask[:, None, None, :]
        if (side, kind) == ("decoder", "self"):
            hidden = torch.ones(tgt_len, tgt_len, dtype=torch.bool).triu(1)
        queries = src_len if side == "encoder" else tgt_len
        assert weights.shape == (len(PAIRS), weights.size(1), queries, hidden.size(-1)), name
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert (weights >= 0).all(), name
        assert not weights.masked_select(hidden).any(), name


def test_overfits_eight_pairs_and_translates_them(build: Any) -> None:
    model = build()
    generator = torch.Generator().manual_seed(2)
    pairs = []
    for length in range(2, 10):
        src = torch.randint(4, VOCAB, (length,), generator=generator).tolist()
        pairs.append((src, src[::-1][: length - 1]))
    batch = collate(pairs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(250):
        optimizer.zero_grad()
        loss = token_loss(logits_of(model, batch), batch.tgt_out, batch.tgt_mask) / batch.num_tokens
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if loss.item() < 0.05:
            break
    assert loss.item() < 0.05
    for beam_size in (1, 4):
        found = search(model, batch.src, batch.src_mask, DecodingConfig(beam_size=beam_size))
        assert [hypotheses[0].ids for hypotheses in found] == [tgt for _, tgt in pairs]


def test_gradients_reach_every_parameter_and_are_finite(build: Any) -> None:
    model, batch = build(dropout=0.1).train(), collate(PAIRS)
    token_loss(logits_of(model, batch), batch.tgt_out, batch.tgt_mask, 0.1).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_bfloat16_trains_and_decodes(build: Any) -> None:
    model, batch = build().eval(), collate(PAIRS)
    exact = logits_of(model, batch).detach()
    with torch.autocast("cpu", torch.bfloat16):
        logits = logits_of(model, batch)
        token_loss(logits, batch.tgt_out, batch.tgt_mask).backward()
        with torch.inference_mode():
            state = model.start(model.encode(batch.src, batch.src_mask))
            steps = []
            for position in range(batch.tgt_in.size(1)):
                step, state = model.decode_step(batch.tgt_in[:, position], state)
                steps.append(step)
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    torch.testing.assert_close(logits.float(), exact, atol=0.1, rtol=0.1)
    torch.testing.assert_close(torch.stack(steps, dim=1).float(), exact, atol=0.1, rtol=0.1)


def test_saved_and_loaded_is_equal(build: Any, tmp_path: Any) -> None:
    model, batch = build().eval(), collate(PAIRS)
    path = checkpoint.save(tmp_path, 1, {"model": checkpoint.weights(model)}, {"step": 1})
    checkpoint.verify(path)
    other = build().eval()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
        assert not torch.equal(logits_of(other, batch), logits_of(model, batch))
        checkpoint.load_weights(other, checkpoint.load_inference_weights(path), "test")
        assert torch.equal(logits_of(other, batch), logits_of(model, batch))


def test_beam_one_equals_greedy_by_hand(build: Any) -> None:
    model, batch = build().eval(), collate(PAIRS)
    found = search(
        model, batch.src, batch.src_mask, DecodingConfig(beam_size=1, max_length_ratio=1, max_length_extra=5)
    )
    with torch.no_grad():
        for row, (src, _) in enumerate(PAIRS):
            ids = [2]
            one = collate([(src, [4])])
            while len(ids) <= len(src) + 1 + 5:
                logits = model(one.src, one.src_mask, torch.tensor([ids]))[0, -1]
                logits[[0, 1, 2]] = -torch.inf
                ids.append(int(logits.argmax()))
                if ids[-1] == 3:
                    break
            assert found[row][0].ids == [token for token in ids[1:] if token != 3]
