"""Tests that a Transformer should pass before anyone trains it for a day. Each catches some of the laboratory's bugs.

They ask for properties, not for numbers: what may depend on what, and what may not. Each takes a second at most. Every
function raises AssertionError with what is wrong.
"""

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from dragoman.config import parse
from dragoman.data.batch import collate
from dragoman.decoding import search as searching
from dragoman.decoding.base import DecodingConfig
from dragoman.learn import laboratory, one_sentence, symptoms
from dragoman.learn.laboratory import SRC, TGT
from dragoman.models import blocks
from dragoman.nn import attention, positions, recurrent, residual
from dragoman.nn.dropout import Dropout
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID
from dragoman.training import loss as losses
from dragoman.training import schedules
from dragoman.training.config import TrainingConfig
from dragoman.training.step import TrainingStep


def the_decoder_reads_one_token_behind() -> None:
    """tgt_in begins with <s> and then says what tgt_out said one position before; tgt_out ends with </s>."""
    batch = collate([(SRC, TGT), (SRC[:2], TGT[:2])])
    assert batch.tgt_in[:, 0].tolist() == [BOS_ID, BOS_ID], "tgt_in does not begin with <s>"
    assert torch.equal(batch.tgt_in[0, 1:], batch.tgt_out[0, :-1]), "tgt_out is not tgt_in shifted by one"
    assert batch.tgt_out[1].tolist() == [*TGT[:2], EOS_ID, *[PAD_ID] * 3], "tgt_out is not the tokens, </s>, padding"


def padding_is_not_counted() -> None:
    """The loss of a model that knows nothing is ln V a token, however much padding there is."""
    off = symptoms.knows_nothing(1)
    assert off < 1e-4, f"equal logits over 14 entries have a loss that is {off:.3f} away from ln 14 = 2.639"


def a_sure_and_right_model_has_no_loss() -> None:
    """Logits of 20 for the right token and 0 for the others: a loss near 0."""
    batch = collate([(SRC, TGT)])
    logits = 20.0 * F.one_hot(batch.tgt_out, 14).float()
    loss = float(losses.token_loss(logits, batch.tgt_out, batch.tgt_mask)) / batch.num_tokens
    assert loss < 0.01, f"a model that is sure and right has a loss of {loss:.3f} a token"


@torch.no_grad()
def no_position_sees_the_future() -> None:
    """Another token at the end of the target changes no logits before it; another at its beginning changes them."""
    model = laboratory.build(1).eval()
    batch = collate([(SRC, TGT)])
    logits = model(batch.src, batch.src_mask, batch.tgt_in)
    for place in range(1, batch.tgt_in.size(1)):
        other = batch.tgt_in.clone()
        other[0, place] = 6 if other[0, place] != 6 else 10
        assert not bool(logits.isnan().any()), "logits are NaN: a position sees nothing, not even itself"
        changes = (model(batch.src, batch.src_mask, other) - logits).abs().amax(dim=-1)[0]
        assert float(changes[:place].max()) < 1e-4, f"token {place} is seen by positions before it: the future leaks"
        assert float(changes[place]) > 1e-4, f"position {place} does not see its own input"
        if place + 1 < len(changes):
            assert float(changes[place + 1 :].max()) > 1e-4, f"no later position sees token {place}"


@torch.no_grad()
def a_sentence_does_not_depend_on_its_batch() -> None:
    """Alone or beside longer sentences, whose padding it gets: the same logits."""
    batches = collate([(SRC[:2], TGT[:3])]), collate([(SRC[:2], TGT[:3]), (SRC, TGT), (SRC * 2, TGT)])
    for kind in ("transformer", "recurrent"):
        model = laboratory.build(1, type=kind).eval()
        alone, among = (model(b.src, b.src_mask, b.tgt_in)[0, :4] for b in batches)
        assert not bool(among.isnan().any()), f"{kind}: logits of a padded sentence are no numbers"
        off = float((alone - among).abs().max())
        assert off < 1e-4, f"{kind}: logits differ by {off:.2g} when other sentences are in the batch: padding is read"


@torch.no_grad()
def the_source_matters() -> None:
    """Another source, other logits, in a model with attention and in one without."""
    for settings in ({}, {"type": "recurrent"}, {"type": "recurrent", "attention": "none"}):
        model = laboratory.build(1, **settings).eval()
        one, two = collate([(SRC, TGT)]), collate([([11, 6, 6, 10, 5, 13], TGT)])
        off = (model(one.src, one.src_mask, one.tgt_in) - model(two.src, two.src_mask, two.tgt_in)).abs().max()
        assert float(off) > 1e-3, f"{settings or 'transformer'}: what the decoder says does not depend on the source"


@torch.no_grad()
def order_matters() -> None:
    """The encoder tells "a b c" from "c b a": a vector depends on the place, not on the row of the batch."""
    embedding: Any = laboratory.build(1).eval().src_embedding
    same = embedding(torch.full((2, 5), 7))
    assert float((same[0, 0] - same[0, 3]).abs().max()) > 1e-3, "a word has the same vector in all places"
    assert torch.equal(same[0], same[1]), "a word's vector depends on the row of the batch that it stands in"


def positions_are_different() -> None:
    """No two of the first 200 positions have nearly the same vector, and a pair is a sine and its cosine."""
    alike, table = symptoms.alike_positions(1), positions.sinusoidal_table(200, 32)
    assert alike < 0.999, f"two positions are alike to {alike:.4f}"
    assert torch.allclose(table[:, 0::2] ** 2 + table[:, 1::2] ** 2, torch.ones(200, 16), atol=1e-5), "pairs are off"
    assert abs(float(table[28, 4]) - math.sin(28 / 10_000 ** (4 / 32))) < 1e-5, "position 28 is not the paper's"


@torch.no_grad()
def attention_is_pytorchs() -> None:
    """The same weights in `torch.nn.MultiheadAttention` give the same output and the same maps."""
    torch.manual_seed(1)
    ours = attention.MultiHeadAttention(24, 4)
    theirs = nn.MultiheadAttention(24, 4, batch_first=True)
    projections = (ours.query_proj, ours.key_proj, ours.value_proj)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([one.weight for one in projections]))
        theirs.in_proj_bias.copy_(torch.cat([one.bias for one in projections]))
        theirs.out_proj.weight.copy_(ours.output_proj.weight)
        theirs.out_proj.bias.copy_(ours.output_proj.bias)
    x, hidden = torch.randn(2, 5, 24), torch.ones(5, 5, dtype=torch.bool).triu(1)
    maps: list[torch.Tensor] = []
    output = ours(x, x, ~hidden[None, None], maps)
    expected, weights = theirs(x, x, x, attn_mask=hidden, average_attn_weights=False)
    assert torch.allclose(maps[0].sum(dim=-1), torch.ones(2, 4, 5), atol=1e-4), "a query's weights do not sum to 1"
    assert torch.allclose(maps[0], weights, atol=1e-4), "the weights are not PyTorch's: heads, scale, mask or softmax"
    assert torch.allclose(output, expected, atol=1e-4), "the output is not PyTorch's"


def queries_differ_in_what_they_look_at() -> None:
    """The weights of a recurrent decoder's attention depend on its state."""
    spread = symptoms.spread_of_weights(1)
    assert spread > 1e-4, "every state of the decoder looks at the same places: the score does not know the query"


@torch.no_grad()
def the_lstm_is_pytorchs() -> None:
    """Step by step as in `torch.nn.LSTM`, from left to right and from right to left."""
    torch.manual_seed(1)
    layer = recurrent.LSTMLayer(5, 7)
    x = torch.randn(2, 6, 5)
    zeros = torch.zeros(2, 7), torch.zeros(2, 7)
    for reverse, name in ((False, "from left to right"), (True, "from right to left")):
        step_by_step, _ = layer.read(x, torch.ones(2, 6, dtype=torch.bool), reverse=reverse)
        at_once, _ = layer(x.flip(1) if reverse else x, zeros)
        at_once = at_once.flip(1) if reverse else at_once
        assert torch.allclose(step_by_step, at_once, atol=1e-5), f"{name} the outputs of the LSTM are not PyTorch's"


def the_encoder_looks_both_ways() -> None:
    """The encoder's first position sees the source's last token."""
    assert symptoms.looks_ahead(1) > 1e-5, "the encoder's first position does not see the last token"


def gradients_arrive_everywhere() -> None:
    """After one backward pass every matrix of a deep model has a gradient, the first layer's is not small."""
    model = laboratory.build(1, num_encoder_layers=6, num_decoder_layers=6, d_model=32)
    batch = collate([(SRC, TGT)])
    losses.token_loss(model(batch.src, batch.src_mask, batch.tgt_in), batch.tgt_out, batch.tgt_mask).backward()
    norms = {name: float(p.grad.norm()) for name, p in model.named_parameters() if p.grad is not None and p.dim() > 1}
    missing = [name for name, p in model.named_parameters() if p.grad is None or not bool(p.grad.isfinite().all())]
    assert not missing, f"no gradient, or none of numbers, at {missing[0]}"
    zero = [name for name, norm in norms.items() if norm == 0]
    assert not zero, f"the gradient at {zero[0]} is zero"
    ratio = norms["decoder_layers.0.feed_forward.expand.weight"] / norms["decoder_layers.5.feed_forward.expand.weight"]
    assert ratio > 0.02, f"the first layer's gradient is {ratio:.1g} of the last one's: it vanishes on the way"


def _training_step() -> TrainingStep:
    settings = parse(TrainingConfig, {"max_steps": 2, "backend": "textbook", "compile": "none"})
    task = laboratory.ToyTask(laboratory.pairs("copy", "train", 200))
    return TrainingStep(settings, laboratory.build(1), task, device=laboratory.CPU, precision="float32", seed=1)  # type: ignore[arg-type]


def a_step_repeats() -> None:
    """The gradients of a step, asked for twice, are the same: nothing is left over from the step before."""
    step, grads = _training_step(), []
    for _ in range(2):
        step.gradients(1)
        grads.append(torch.cat([p.grad.flatten() for p in step.parameters if p.grad is not None]).clone())
    assert torch.allclose(grads[0], grads[1]), "asked for twice, a step's gradients differ: old ones are not cleared"


def a_plain_loop_uses_each_gradient_once() -> None:
    """The loop of `one_sentence` goes as one does that asks for the gradients anew, without `.grad`."""
    sizes = {**laboratory.TRANSFORMER, "d_model": 32, "num_heads": 2, "d_ff": 32}
    model, batch = one_sentence.build(1, **sizes), one_sentence.one_sentence()
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    for number, loss_then in enumerate(one_sentence.train_one_sentence(steps=4, lr=1e-2, **sizes), start=1):
        loss = losses.token_loss(model(batch.src, batch.src_mask, batch.tgt_in), batch.tgt_out, batch.tgt_mask) / 5
        assert abs(loss.item() - loss_then) < 1e-3, (
            f"step {number} has another loss: gradients of earlier steps are left over"
        )
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        optimizer.step()


def the_rate_warms_up() -> None:
    """The rate of each schedule rises to its peak, and reaches the optimizer."""
    for settings in (schedules.NoamConfig(warmup_steps=50), schedules.LinearConfig(lr=1e-3, warmup_steps=50)):
        rates = [settings.build(1000, 64).rate(step) for step in (1, 25, 50, 500)]
        assert rates[0] < rates[1] < rates[2] > rates[3], f"{settings.type}: the rate does not rise, then fall: {rates}"
    step = _training_step()
    step.take(1, 0.25)
    assert step.optimizer.param_groups[0]["lr"] == 0.25, "the schedule's rate does not reach the optimizer"


def the_weights_move() -> None:
    """Ten steps on one batch lower its loss by half."""
    trained = laboratory.train(1, steps=30, training={"schedule": {"type": "constant", "lr": 3e-3}})
    assert trained.losses[-1] < 0.8 * trained.losses[0], "thirty steps do not lower the loss by a fifth"


def layers_have_weights_of_their_own() -> None:
    """A further layer brings parameters."""
    assert symptoms.parameters_per_layer(1) > 0, "a further layer brings no parameters: layers are shared"


def a_stack_ends_in_numbers_of_size_one() -> None:
    """The vectors that leave the encoder are normalised, in pre- and post-norm."""
    for placement in ("pre", "post"):
        size = symptoms.size_of_memory(1, norm_placement=placement)
        assert 0.8 < size < 1.2, f"{placement}-norm: the encoder's vectors have a spread of {size:.2f}, not 1"


@torch.no_grad()
def norms_are_pytorchs() -> None:
    """The residual connections are as in the papers, around PyTorch's norms."""
    x, sublayer = torch.randn(2, 3, 8), nn.Linear(8, 8)
    norm = blocks.BlockConfig(d_model=8, num_heads=2).new_norm()
    expected = {"pre": x + sublayer(norm(x)), "post": norm(x + sublayer(x)), "output": x + norm(sublayer(x))}
    for name, formula in expected.items():
        output = residual.NORM_PLACEMENTS[name](norm, 0.0)(x, sublayer)
        assert torch.allclose(output, formula, atol=1e-5), f"{name}: the residual connection is not the paper's"
    assert torch.allclose(norm(x), F.layer_norm(x, (8,)), atol=1e-5), "the norm is not PyTorch's"


def embeddings_are_as_large_as_positions() -> None:
    """Words and positions are added, so neither should drown the other."""
    size = symptoms.size_of_words(1)
    assert 0.7 < size < 2.8, f"a word's numbers are {size:.2f} times as large as a position's"


def dropout_keeps_the_mean() -> None:
    """In training the mean stays (what is left is scaled up); when it translates nothing is dropped."""
    off, ones = abs(symptoms.dropped_mean(1) - 1.0), torch.ones(200, 200)
    assert off < 0.05, "dropout changes the mean: what is left is not scaled"
    assert torch.equal(Dropout(0.4).eval()(ones), ones), "dropout is on when the model is not in training"


@torch.no_grad()
def a_search_says_what_the_model_says() -> None:
    """The log probability of what a search finds is that of a pass over all of it at once, with a beam and without."""
    sources = [SRC, SRC[:3], [10, 4], SRC[::-1], TGT, [6] * 5, [13, 4, 13], [8]]
    for beam_size, num_kv_heads in ((1, 4), (4, 4), (1, 2)):
        model = laboratory.build(3, num_kv_heads=num_kv_heads).eval()
        for weight in model.parameters():  # a fresh model says the same of everything: its beams do not change places
            weight.add_(torch.randn_like(weight))
        off = symptoms.disagreement(model, sources, beam_size, beam_size)
        assert off < 1e-2, (
            f"beam {beam_size}, {num_kv_heads} heads of keys: a translation's log probability in the search is "
            f"{off:.3f} away from what the model says when it reads it: cache, positions, heads or order of hypotheses"
        )


def a_search_stops_at_the_end() -> None:
    """A model whose first token is </s> gives empty translations."""
    model = laboratory.build(1, tie_embeddings="none", output_bias=True).eval()
    output: Any = model.output
    with torch.no_grad():
        output.bias[EOS_ID] = 1e3
    batch = collate([(SRC, TGT), (SRC[:2], TGT)])
    for beam_size in (1, 3):
        results = searching.search(model, batch.src, batch.src_mask, parse(DecodingConfig, {"beam_size": beam_size}))
        assert [hypotheses[0].ids for hypotheses in results] == [[], []], f"beam {beam_size}: it goes on after </s>"


def a_translation_does_not_change_from_one_time_to_the_next() -> None:
    """Two searches with the same model, just trained, find the same."""
    model = laboratory.build(1, dropout=0.4).train()
    translations = [laboratory.translate(model, [SRC] * 8) for _ in range(2)]
    assert translations[0] == translations[1], "the same model translates the same sentence in two ways: dropout is on"


def batches_are_shuffled() -> None:
    """Two epochs have their batches in different orders, and short ones are not all at the end."""
    first, second = (symptoms.lengths_of_batches(1, epoch) for epoch in (0, 1))
    assert first != second, "two epochs have the same order of batches"
    assert symptoms.rise_of_batches(1) > 0.1, "batches go from long sentences to short ones"


def a_loss_is_divided_by_real_tokens() -> None:
    """`num_tokens` of a batch is the number of real target tokens, </s> among them."""
    batch = collate([(SRC, TGT), (SRC[:1], TGT[:1])])
    assert batch.num_tokens == len(TGT) + 1 + 2, (
        f"num_tokens is {batch.num_tokens}, and there are {len(TGT) + 3} tokens"
    )


SELF_TESTS = {
    name: test
    for name, test in list(globals().items())
    if getattr(test, "__module__", "") == __name__ and not name.startswith("_")
}
