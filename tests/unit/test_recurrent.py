"""Layers against PyTorch's, attention and decoder against loops written out, and padding that nothing may see."""

import math
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dragoman.errors import Error
from dragoman.models.families import RecurrentConfig
from dragoman.models.recurrent import Bridge
from dragoman.nn.recurrent import CELLS, LSTMLayer, RecurrentEncoder, RecurrentStack
from dragoman.nn.recurrent_attention import SCORES

CLOSE: dict[str, Any] = {"atol": 2e-5, "rtol": 1e-4}
FAST = {"lstm": nn.LSTM, "gru": nn.GRU}
LENGTHS = [4, 7, 1]
SIZES: dict[str, Any] = {"src_vocab_size": 19, "tgt_vocab_size": 17, "shared_vocab": False, "pad_id": 0}
SMALL: dict[str, Any] = {"d_embedding": 6, "d_model": 8, "dropout": 0.0, "tie_embeddings": "none"}


def source_mask() -> Tensor:
    return torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]


def ids() -> tuple[Tensor, Tensor, Tensor]:
    """src, src_mask, tgt_in."""
    src = torch.randint(4, 19, (3, 7)).masked_fill(~source_mask(), 0)
    return src, source_mask(), torch.randint(4, 17, (3, 5))


def randomise_biases(module: nn.Module) -> None:
    for name, parameter in module.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter)


def copied(fast: nn.LSTM | nn.GRU, ours: list[nn.LSTM | nn.GRU]) -> list[tuple[Tensor, Tensor]]:
    """Copy PyTorch's weights, those of all layers and directions in order, into ours; the pairs of parameters."""
    pairs = [
        (own, theirs)
        for layer, group in zip(ours, fast.all_weights, strict=True)
        for own, theirs in zip(layer.all_weights[0], group, strict=True)
    ]
    with torch.no_grad():
        for own, theirs in pairs:
            own.copy_(theirs)
    return pairs


def parts_of(state: Any) -> tuple[Tensor, ...]:
    """PyTorch's (h, c) or h as a tuple."""
    return state if isinstance(state, tuple) else (state,)


def assert_gradients_equal(ours: list[Tensor], theirs: list[Tensor], mine: list[Tensor], other: list[Tensor]) -> None:
    """Of the outputs `ours` and `theirs` for the parameters `mine` and `other`, under the same upstream gradients."""
    upstream = [torch.randn_like(output) for output in ours]
    for own, expected in zip(
        torch.autograd.grad(ours, mine, upstream), torch.autograd.grad(theirs, other, upstream), strict=True
    ):
        torch.testing.assert_close(own, expected, **CLOSE)


# --- layers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_encoder_equals_pytorchs_packed_layers(cell: str, bidirectional: bool) -> None:
    torch.manual_seed(0)
    d_state = 4 if bidirectional else 8
    theirs = FAST[cell](6, d_state, num_layers=2, batch_first=True, bidirectional=bidirectional)
    ours = RecurrentEncoder(cell, 6, 8, num_layers=2, bidirectional=bidirectional, dropout=0.0)
    randomise_biases(theirs)
    pairs = copied(theirs, [direction.fast for layer in ours.layers for direction in layer])
    x, real = torch.randn(3, 7, 6, requires_grad=True), source_mask()

    hidden, last = ours(x, real)
    packed, expected_last = theirs(pack_padded_sequence(x, torch.tensor(LENGTHS), True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)

    torch.testing.assert_close(hidden[real], expected[real], **CLOSE)
    joined = [part.unflatten(0, (2, -1)).transpose(1, 2).flatten(2) for part in parts_of(expected_last)]
    own_last = [part for layer in last for part in layer]
    their_last = [part[layer] for layer in range(2) for part in joined]
    for own, other in zip(own_last, their_last, strict=True):
        torch.testing.assert_close(own, other, **CLOSE)
    assert_gradients_equal(
        [hidden[real], *own_last],
        [expected[real], *their_last],
        [x, *[p for p, _ in pairs]],
        [x, *[p for _, p in pairs]],
    )


@pytest.mark.parametrize("cell", CELLS)
def test_steps_equal_the_fast_layers(cell: str) -> None:
    torch.manual_seed(0)
    stack = RecurrentStack(cell, 6, 8, num_layers=2, dropout=0.0)
    randomise_biases(stack)
    x = torch.randn(3, 5, 6, requires_grad=True)
    start = tuple(tuple(torch.randn(3, 8) for _ in range(CELLS[cell].num_parts)) for _ in range(2))

    at_once, after = stack(x, start)
    outputs, states = [], start
    for position in range(5):
        output, states = stack.next_state(stack.project_input(x[:, position]), states)
        outputs.append(output)
    one_by_one = torch.stack(outputs, dim=1)

    torch.testing.assert_close(one_by_one, at_once, **CLOSE)
    ends, expected_ends = ([part for layer in state for part in layer] for state in (states, after))
    for own, other in zip(ends, expected_ends, strict=True):
        torch.testing.assert_close(own, other, **CLOSE)
    parameters = [x, *stack.parameters()]
    assert_gradients_equal([one_by_one, *ends], [at_once, *expected_ends], parameters, parameters)

    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(stack(x, start)[0], at_once)


def test_lstm_remembers_at_first() -> None:
    _, _, bias, other_bias = LSTMLayer(3, 5).fast.all_weights[0]
    assert bias.tolist() == [0.0] * 5 + [1.0] * 5 + [0.0] * 10  # gates i, f, g, o
    assert other_bias.tolist() == [0.0] * 20


# --- attention --------------------------------------------------------------------------------------------------------


def score_by_hand(name: str, attention: nn.Module, s: list[float], h: list[float]) -> float:
    def times(linear: nn.Linear, vector: list[float]) -> list[float]:
        return [sum(w * v for w, v in zip(row, vector, strict=True)) for row in linear.weight.tolist()]

    match name:
        case "dot":
            return sum(a * b for a, b in zip(s, h, strict=True))
        case "scaled_dot":
            return sum(a * b for a, b in zip(s, h, strict=True)) / math.sqrt(len(h))
        case "general":
            return sum(a * b for a, b in zip(s, times(attention.key_proj, h), strict=True))
        case "additive":
            both = zip(times(attention.query_proj, s), times(attention.key_proj, h), strict=True)
            return times(attention.score_proj, [math.tanh(a + b) for a, b in both])[0]
    raise AssertionError(name)


@pytest.mark.parametrize("name", SCORES)
def test_attention_equals_a_loop(name: str) -> None:
    torch.manual_seed(0)
    attention = SCORES[name](4)
    query, memory = torch.randn(3, 2, 4), torch.randn(3, 7, 4)
    contexts, weights = attention.attend(query, attention.project_keys(memory), memory, source_mask())
    for sentence, length in enumerate(LENGTHS):
        for number in range(2):
            positions = memory[sentence, :length].tolist()
            exps = [math.exp(score_by_hand(name, attention, query[sentence, number].tolist(), h)) for h in positions]
            expected = [e / sum(exps) for e in exps]
            assert weights[sentence, number].tolist() == pytest.approx(expected + [0.0] * (7 - length), abs=1e-5)
            context = [sum(w * h[i] for w, h in zip(expected, positions, strict=True)) for i in range(4)]
            assert contexts[sentence, number].tolist() == pytest.approx(context, abs=1e-5)


# --- the whole model --------------------------------------------------------------------------------------------------


def test_plain_model_equals_pytorchs_layers() -> None:
    """Sutskever et al.: the decoder starts from the encoder's last state, and knows no more."""
    torch.manual_seed(0)
    model = RecurrentConfig(
        **SMALL, attention="none", bidirectional=False, num_encoder_layers=2, num_decoder_layers=2
    ).build(**SIZES)
    encoder, decoder = (nn.LSTM(6, 8, num_layers=2, batch_first=True) for _ in range(2))
    copied(encoder, [direction.fast for layer in model.encoder.layers for direction in layer])
    copied(decoder, [layer.fast for layer in model.decoder.layers.layers])
    src, mask, tgt_in = ids()
    embedded = model.tgt_embedding(tgt_in)
    packed = pack_padded_sequence(model.src_embedding(src), torch.tensor(LENGTHS), True, enforce_sorted=False)
    hidden, _ = decoder(embedded, encoder(packed)[1])
    expected = model.output(model.decoder.readout(torch.cat([hidden, embedded], dim=-1)).tanh())
    torch.testing.assert_close(model(src, mask, tgt_in), expected, **CLOSE)


@pytest.mark.parametrize("input_feeding", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_attentional_decoder_equals_pytorchs_cells_over_a_concatenated_input(cell: str, input_feeding: bool) -> None:
    torch.manual_seed(0)
    model = RecurrentConfig(
        **SMALL, cell=cell, attention="general", input_feeding=input_feeding, num_encoder_layers=2, num_decoder_layers=2
    ).build(**SIZES)
    randomise_biases(model)
    src, mask, tgt_in = ids()
    memory = model.encode(src, mask)
    decoder, attention = model.decoder, model.decoder.attention
    kind = nn.LSTMCell if cell == "lstm" else nn.GRUCell
    cells = kind(6 + 8 + (6 if input_feeding else 0), 8), kind(8, 8)
    for theirs, layer in zip(cells, decoder.layers.layers, strict=True):
        weight_ih, *others = layer.fast.all_weights[0]
        if theirs is cells[0]:
            weight_ih = torch.cat([weight_ih, decoder.context_proj.weight], dim=1)
        with torch.no_grad():
            for own, value in zip(theirs.parameters(), [weight_ih, *others], strict=True):
                own.copy_(value)

    states, readout, logits = list(memory.last), torch.zeros(3, 6), []
    for position in range(5):
        embedded = model.tgt_embedding(tgt_in[:, position])
        scores = torch.einsum("bd,bsd->bs", states[-1][0], attention.key_proj(memory.hidden))
        weights = torch.where(mask, scores, -torch.inf).softmax(dim=-1)
        context = torch.einsum("bs,bsd->bd", weights, memory.hidden)
        x = torch.cat([embedded, context] + ([readout] if input_feeding else []), dim=-1)
        for number, theirs in enumerate(cells):
            states[number] = parts_of(theirs(x, states[number] if cell == "lstm" else states[number][0]))
            x = states[number][0]
        readout = decoder.readout(torch.cat([x, context, embedded], dim=-1)).tanh()
        logits.append(model.output(readout))
    torch.testing.assert_close(model.decode(tgt_in, memory), torch.stack(logits, dim=1), **CLOSE)


@pytest.mark.parametrize("attention", ["none", *SCORES])
@pytest.mark.parametrize("cell", CELLS)
def test_nan_at_pads_reaches_nothing(cell: str, attention: str) -> None:
    torch.manual_seed(0)
    model = RecurrentConfig(**SMALL, cell=cell, attention=attention, num_encoder_layers=2).build(**SIZES)
    src, mask, tgt_in = ids()

    def logits_and_gradients() -> list[Tensor]:
        logits = model(src, mask, tgt_in)
        return [logits, *torch.autograd.grad(logits.square().sum(), list(model.parameters()))]

    clean = logits_and_gradients()
    model.src_embedding.register_forward_hook(
        lambda module, args, output: torch.where(mask[:, :, None], output, math.nan)
    )
    for poisoned, expected in zip(logits_and_gradients(), clean, strict=True):
        assert torch.equal(poisoned, expected)


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("name", SCORES)
def test_attention_maps(name: str, bfloat16: bool) -> None:
    torch.manual_seed(0)
    src, mask, tgt_in = ids()
    model = RecurrentConfig(**SMALL, attention=name).build(**SIZES)
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        maps = model.attention_maps(src, mask, tgt_in)["decoder.cross"]
    assert maps.shape == (3, 1, 5, 7)
    torch.testing.assert_close(maps.sum(dim=-1), torch.ones(3, 1, 5))
    assert (maps[~mask[:, None, None, :].expand_as(maps)] == 0).all()
    assert (maps[mask[:, None, None, :].expand_as(maps)] > 0).all()


def test_a_plain_model_has_no_attention_maps() -> None:
    assert RecurrentConfig(**SMALL, attention="none").build(**SIZES).attention_maps(*ids()) == {}


@pytest.mark.parametrize("attention", ["none", *SCORES])
def test_a_model_in_bfloat16_stays_near_float32(attention: str) -> None:
    torch.manual_seed(0)
    model = RecurrentConfig(**SMALL, attention=attention).build(**SIZES).eval()
    found = ids()
    with torch.inference_mode():
        expected = model(*found)
        torch.testing.assert_close(model.to(torch.bfloat16)(*found).float(), expected, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("cell", CELLS)
def test_states_of_a_bridge_are_laid_out_as_a_gpu_wants_them(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = RecurrentConfig(**SMALL, cell=cell, attention="none", num_encoder_layers=1, num_decoder_layers=2)
    built, seen = model.build(**SIZES), []
    for layer in (module for module in built.modules() if isinstance(module, FAST[cell])):
        layer.register_forward_pre_hook(lambda _, given: seen.extend(parts_of(given[1])))
    built(*ids())
    assert seen
    assert all(part.is_contiguous() for part in seen)


@pytest.mark.parametrize("attention", ["none", *SCORES])
@pytest.mark.parametrize("cell", CELLS)
def test_bfloat16_autocast_stays_near_float32(cell: str, attention: str) -> None:
    torch.manual_seed(0)
    model = RecurrentConfig(
        **SMALL, cell=cell, attention=attention, num_decoder_layers=2, input_feeding=attention != "none"
    ).build(**SIZES)
    src, mask, tgt_in = ids()
    expected = model(src, mask, tgt_in)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(src, mask, tgt_in)
        _, state = model.decode_step(tgt_in[:, 0], model.start(model.encode(src, mask)))
    assert (logits - expected).abs().max() < 0.05
    assert {part.dtype for layer in state.layers for part in layer} == {torch.float32}
    logits.float().square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_memory_stays_in_place_while_beams_are_reordered_within_sentences() -> None:
    torch.manual_seed(0)
    model = RecurrentConfig(**SMALL, input_feeding=True).build(**SIZES)
    src, mask, _ = ids()
    state = model.start(model.encode(src, mask))
    beams = state.reorder(torch.tensor([0, 0, 1, 1, 2, 2]))
    assert beams.attended is state.attended
    assert beams.reorder(torch.tensor([1, 0, 2, 2, 5, 4])).attended is state.attended
    dropped = beams.reorder(torch.tensor([2, 3, 4, 4]))
    assert dropped.attended.hidden.shape == (2, 7, 8)
    assert dropped.layers[0][0].shape == (4, 8)


# --- settings ---------------------------------------------------------------------------------------------------------


def test_bridge_passes_states_on_where_layers_agree() -> None:
    state = tuple((torch.randn(3, 8), torch.randn(3, 8)) for _ in range(2))
    assert Bridge("lstm", 8, 2, 2)(state) is state


def test_bridge_maps_all_layers_to_all_layers_otherwise() -> None:
    bridge = Bridge("lstm", 8, num_encoder_layers=2, num_decoder_layers=3)
    state = tuple((torch.randn(3, 8), torch.randn(3, 8)) for _ in range(2))
    mapped = bridge(state)
    h, c = (linear(torch.cat([state[0][part], state[1][part]], dim=1)) for part, linear in enumerate(bridge.maps))
    for layer in range(3):
        columns = slice(8 * layer, 8 * layer + 8)
        torch.testing.assert_close(mapped[layer][0], h[:, columns].tanh())
        torch.testing.assert_close(mapped[layer][1], c[:, columns])


def test_settings_that_do_not_fit_are_refused() -> None:
    with raises_error(Error.WRONG_SETTING):
        RecurrentConfig(d_model=9, tie_embeddings="none").build(**SIZES)
    RecurrentConfig(d_model=9, bidirectional=False, tie_embeddings="none").build(**SIZES)
    with raises_error(Error.WRONG_SETTING):
        RecurrentConfig(attention="none", input_feeding=True).build(**SIZES)
    with raises_error(Error.WRONG_SETTING):
        RecurrentConfig(tie_embeddings="all").build(**SIZES)


def test_tying_shares_the_very_tensor() -> None:
    joint = {**SIZES, "tgt_vocab_size": 19, "shared_vocab": True}
    tied = RecurrentConfig(tie_embeddings="all").build(**joint)
    assert tied.src_embedding is tied.tgt_embedding
    assert tied.output.weight is tied.tgt_embedding.embedding.weight
    two_way = RecurrentConfig(tie_embeddings="output").build(**joint)
    assert two_way.src_embedding is not two_way.tgt_embedding
    assert two_way.output.weight is two_way.tgt_embedding.embedding.weight
