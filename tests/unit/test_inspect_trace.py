"""The trace: shapes that follow from the sizes of a model, in the order of the nine steps, with nothing left behind."""

from typing import Any

import torch
from tests.errors import raises_error

from dragoman.analysis.examples import words_of
from dragoman.analysis.trace import STEPS, TraceRow, trace, trace_table
from dragoman.data.batch import collate
from dragoman.errors import Error
from dragoman.inference.loading import build_model
from dragoman.models.families import RecurrentConfig, TransformerConfig
from dragoman.training.loss import token_loss

PAIRS = [("ich möchte ein bier", "i want a beer"), ("guten tag", "hello")]
WORDS = words_of([text for pair in PAIRS for text in pair])
VOCAB = WORDS.src.vocab_size


def model(config: Any = None) -> Any:
    torch.manual_seed(5)
    small = TransformerConfig(
        d_model=8, num_heads=2, d_ff=16, num_encoder_layers=3, num_decoder_layers=2, position={"type": "learned"}
    )
    return build_model(config or small, WORDS)


def find(rows: list[TraceRow], name: str, step: int = 6) -> TraceRow:
    return next(row for row in rows if row.name == name and row.step == STEPS[step - 1])


def test_all_nine_steps_in_order() -> None:
    rows = trace(model(), WORDS, PAIRS)
    assert list(dict.fromkeys(row.step for row in rows)) == list(STEPS)


def test_shapes_of_the_batch() -> None:
    rows = trace(model(), WORDS, PAIRS)
    assert [(row.name, row.shape, row.dtype) for row in rows if row.step == STEPS[4]] == [
        ("src", "(2, 5)", "int64"),
        ("src_mask", "(2, 5)", "bool"),
        ("tgt_in", "(2, 5)", "int64"),
        ("tgt_out", "(2, 5)", "int64"),
        ("tgt_mask", "(2, 5)", "bool"),
    ]
    assert find(rows, "positions", 4).origin == "20, of which 5 are padding"
    assert find(rows, "src pieces 1", 2).origin == "guten tag"
    assert find(rows, "tgt ids 1", 3).origin == str(WORDS.tgt.id_of("hello"))


def test_shapes_inside_a_transformer() -> None:
    rows = trace(model(), WORDS, PAIRS)
    names = [row.name for row in rows]
    assert find(rows, "src_embedding").shape == "(2, 5) → (2, 5, 8)"
    assert find(rows, "encoder_layers.0").shape == "(2, 5, 8), (2, 1, 1, 5) → (2, 5, 8)"
    assert find(rows, "encoder_layers.0.feed_forward.expand").shape == "(2, 5, 8) → (2, 5, 16)"
    assert find(rows, "encoder_layers.2").origin == "EncoderLayer, like encoder_layers.0"
    assert find(rows, "memory.hidden").shape == "(2, 5, 8)"
    assert find(rows, "output").shape == f"(2, 5, 8) → (2, 5, {VOCAB})"
    assert find(rows, "logits").shape == f"(2, 5, {VOCAB})"
    assert find(rows, "logits", 8).shape == f"(2, {VOCAB})"
    assert find(rows, "state.past[1].key", 8).shape == "(2, 2, 1, 4)"
    assert find(rows, "state.past[1].key", 8).origin == "grew from (2, 2, 0, 4)"
    assert find(rows, "encoder.0.self weights").shape == find(rows, "decoder.0.cross weights").shape == "(2, 2, 5, 5)"
    assert "encoder.1.self weights" not in names
    assert names.index("encoder_layers.2") < names.index("memory.hidden") < names.index("decoder_layers.0")


def test_every_call_can_be_shown() -> None:
    rows = trace(model(), WORDS, PAIRS, every_call=True)
    assert find(rows, "encoder_layers.2.feed_forward.expand").shape == "(2, 5, 8) → (2, 5, 16)"
    assert find(rows, "encoder.2.self weights")
    assert not any("like" in row.origin for row in rows if row.step == STEPS[5])


def test_what_a_recurrent_model_repeats_is_told_once() -> None:
    recurrent = model(RecurrentConfig(d_model=8, d_embedding=8))
    rows = trace(recurrent, WORDS, PAIRS)
    assert find(rows, "decoder.readout")
    assert sum(row.name == "decoder.readout" for row in rows) == 1
    assert [row.name for row in rows if "5 times" in row.origin] == [
        "encoder.layers.0.0.next_state()",
        "decoder.attention.attend()",
    ]
    every = trace(recurrent, WORDS, PAIRS, every_call=True)
    assert sum(row.name == "decoder.readout" for row in every) == 5


def test_the_cells_and_the_attention_of_a_recurrent_model_are_seen() -> None:
    recurrent = model(RecurrentConfig(d_model=8, d_embedding=6, attention="additive"))
    rows = trace(recurrent, WORDS, PAIRS)
    assert find(rows, "encoder.layers.0.0.read()").shape == "(2, 5, 6), (2, 5) → (2, 5, 4), (2, 4), (2, 4)"
    assert find(rows, "encoder.layers.0.0.project_input()").shape == "(2, 5, 6) → (2, 5, 16)"  # all four gates
    assert find(rows, "encoder.layers.0.0.next_state()").shape == "(2, 16), (2, 4), (2, 4) → (2, 4), (2, 4)"
    assert "5 times" in find(rows, "encoder.layers.0.0.next_state()").origin
    assert find(rows, "encoder.layers.0.1.read()").origin == "LSTMLayer, like encoder.layers.0.0.read()"
    assert find(rows, "decoder.attention.attend()").shape.endswith("→ (2, 1, 8), (2, 1, 5)")
    lines = [line.split()[0] for line in trace_table(rows).splitlines() if line]
    assert "layers.0.0.read()" in lines
    assert "query_proj" in lines  # within `decoder.attention.attend()`
    assert not any(set(vars(module)) & {"read", "step", "attend"} for module in recurrent.modules())


def test_the_loss_is_that_of_training_and_nothing_is_left_behind() -> None:
    traced = model().train()
    rows = trace(traced, WORDS, PAIRS, label_smoothing=0.1)
    batch = collate([(WORDS.src.encode(src), WORDS.tgt.encode(tgt)) for src, tgt in PAIRS])
    logits = traced.eval()(batch.src, batch.src_mask, batch.tgt_in)
    loss = token_loss(logits, batch.tgt_out, batch.tgt_mask, 0.1).item()
    assert f"label_smoothing 0.1: {loss:.3f} nats" in find(rows, "loss").origin
    assert find(rows, "mean loss", 7).origin.endswith(f"/ 7 real target tokens: {loss / 7:.3f} nats")
    exact = token_loss(logits, batch.tgt_out, batch.tgt_mask, 0.0) / 7
    plain = find(trace(traced, WORDS, PAIRS, label_smoothing=0.0), "mean loss", 7)
    assert plain.origin.endswith(f"{exact.item():.3f} nats, perplexity {exact.exp().item():.1f}")
    assert all(parameter.grad is None for parameter in traced.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in traced.modules())


def test_the_table_has_headings_and_names_from_within() -> None:
    rows = trace(model(), WORDS, PAIRS)
    lines = trace_table(rows).splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == list(STEPS)
    inner = next(line for line in lines if line.split()[:1] == ["expand"])
    assert inner.startswith("        expand ")  # encoder_layers.0 > residual > feed_forward > expand
    assert len(lines) == len(rows) + 2 * len(STEPS) - 1


def test_a_model_of_another_vocabulary_shows_ids() -> None:
    large = TransformerConfig(d_model=8, num_heads=2, d_ff=8).build(
        src_vocab_size=90, tgt_vocab_size=90, shared_vocab=True, pad_id=0
    )
    rows = trace(large, WORDS, PAIRS)
    assert "no tokenizer" in find(rows, "hypothesis 0", 9).origin


def test_a_blank_sentence_is_refused() -> None:
    with raises_error(Error.BLANK, "blank"):
        trace(model(), WORDS, [("ja", " ")])
