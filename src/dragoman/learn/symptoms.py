"""Figures in which a bug shows: each takes a seed, and measures a model, a loss or a search of the laboratory."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from dragoman.config import parse
from dragoman.data.batch import collate
from dragoman.data.batching import BatchPlan
from dragoman.decoding import search as searching
from dragoman.decoding.base import DecodingConfig
from dragoman.learn import laboratory, one_sentence
from dragoman.learn.bug import Curve, Figure
from dragoman.learn.laboratory import SRC, TGT
from dragoman.models.base import Seq2SeqModel
from dragoman.nn import positions
from dragoman.nn.dropout import Dropout
from dragoman.training import loss as losses


def figure(words: str, sound: str, limit: float) -> Callable[[Callable[..., float]], Figure]:
    """Make the decorated function the measure of a `Figure`."""
    return lambda measure: Figure(words, measure, sound, limit)


@figure("exact matches of 100 unseen sequences (1 = all)", "above", 0.5)
def exact(seed: int, beam_size: int = 1, **toy: Any) -> float:
    return laboratory.train(seed, **toy).exact(toy.get("task", "reverse"), beam_size)


@figure("the loss of the last ten of 250 steps, in nats", "below", 0.5)
def last_loss(seed: int, **toy: Any) -> float:
    return laboratory.train(seed, **toy).last_loss


def one_sentence_losses(seed: int) -> list[float]:
    """The losses of a hundred steps on one sentence: after twenty it is learnt."""
    sizes = {**laboratory.TRANSFORMER, "d_model": 64, "d_ff": 128}
    return one_sentence.train_one_sentence(seed, steps=100, lr=3e-3, **sizes)


one_sentence_curve = Curve("a hundred steps on one sentence", "step", "loss [nats per token]", one_sentence_losses)


@figure("the highest loss of one sentence in steps 21 to 100", "below", 0.05)
def loss_that_comes_back(seed: int) -> float:
    return max(one_sentence_losses(seed)[20:])


@figure("the loss of equal logits, less ln V", "below", 0.05)
def knows_nothing(seed: int) -> float:
    batch = collate(laboratory.pairs("reverse", "train", 20, seed))
    logits = torch.zeros(*batch.tgt_out.shape, laboratory.VOCAB)
    loss = float(losses.token_loss(logits, batch.tgt_out, batch.tgt_mask)) / batch.num_tokens
    return abs(loss - math.log(laboratory.VOCAB))


@figure("change of a sentence's logits beside longer ones", "below", 0.01)
@torch.no_grad()
def batch_dependence(seed: int, **model: Any) -> float:
    """Change of a sentence's logits when longer ones are in its batch; infinite where they are no numbers."""
    built = laboratory.build(seed, **model).eval()
    batches = collate([(SRC[:2], TGT[:3])]), collate([(SRC[:2], TGT[:3]), (SRC * 2, TGT)])
    alone, among = (built(b.src, b.src_mask, b.tgt_in)[0, :4] for b in batches)
    off = float((alone - among).abs().max())
    return math.inf if math.isnan(off) else off


@figure("difference between the attention of decoder states", "above", 0.001)
@torch.no_grad()
def spread_of_weights(seed: int) -> float:
    model = laboratory.build(seed, type="recurrent").eval()
    batch = collate([(SRC, TGT)])
    weights = next(iter(model.attention_maps(batch.src, batch.src_mask, batch.tgt_in).values()))[0, 0]
    return float((weights - weights[0]).abs().max())


@figure("mean of each query's largest weight in an untrained model", "below", 0.6)
@torch.no_grad()
def sharpest_weight(seed: int, num_heads: int = 1) -> float:
    """The mean of the largest weight of each query in an untrained model: 1: saturated."""
    model = laboratory.build(seed, d_model=64, num_heads=num_heads).eval()
    batch = collate([(SRC * 2, TGT)])
    maps = model.attention_maps(batch.src, batch.src_mask, batch.tgt_in)
    return float(maps["encoder.0.self"].amax(dim=-1).mean())


@figure("how alike two distant positions are (1 = the same)", "below", 0.95)
def alike_positions(seed: int) -> float:
    """Likeness of the two most similar of 200 positions that are no neighbours."""
    table = positions.sinusoidal_table(200, 32)
    alike = (table @ table.T / 16).masked_fill(torch.ones(200, 200).triu(-3).tril(3).bool(), -1)
    return float(alike.max())


def products_of_positions(seed: int) -> list[float]:
    """The products of the vectors of two positions three apart, from the beginning on."""
    table = positions.sinusoidal_table(123, 32)
    products: list[float] = (table[:-3] * table[3:]).sum(dim=1).tolist()
    return products


products_curve = Curve(
    "two positions three apart", "the first of them", "product of their vectors", products_of_positions, range(120)
)


@figure("spread of the products of positions three apart", "below", 0.01)
def spread_of_products(seed: int) -> float:
    return float(torch.tensor(products_of_positions(seed)).std())


@figure("spread of the vectors after eight layers", "below", 1.2)
@torch.no_grad()
def size_of_memory(seed: int, **model: Any) -> float:
    built = laboratory.build(seed, num_encoder_layers=8, **model).eval()
    batch = collate([(SRC, TGT)])
    return float(built.encode(batch.src, batch.src_mask).hidden.std(dim=-1).mean())


@figure("thousands of parameters that a further layer brings", "above", 1.0)
def parameters_per_layer(seed: int) -> float:
    sizes = [sum(p.numel() for p in laboratory.build(seed, num_encoder_layers=n).parameters()) for n in (2, 3)]
    return (sizes[1] - sizes[0]) / 1000


@figure("a word's numbers, as a multiple of a position's", "above", 0.5)
@torch.no_grad()
def size_of_words(seed: int) -> float:
    model = laboratory.build(seed, d_model=64).eval()
    words = model.src_embedding.tokens(torch.arange(4, 14))  # type: ignore[union-attr,operator]
    return float(words.pow(2).mean().sqrt()) / math.sqrt(0.5)


@figure("the share of sentences that come out the same twice", "above", 0.95)
def agreement(seed: int) -> float:
    """The share of 50 sequences that one model, trained with dropout, translates twice in the same way."""
    trained = laboratory.train(seed, steps=120, dropout=0.3)
    sources = [src for src, _ in laboratory.pairs("reverse", "test", 50)]
    first, second = (laboratory.translate(trained.model, sources) for _ in range(2))
    return sum(one == two for one, two in zip(first, second, strict=True)) / len(sources)


@figure("length of translations, as a multiple of the right one", "below", 1.1)
def mean_length(seed: int) -> float:
    trained = laboratory.train(seed)
    data = laboratory.pairs("reverse", "test", 60)
    translations = laboratory.translate(trained.model, [src for src, _ in data])
    return sum(map(len, translations)) / sum(len(tgt) for _, tgt in data)


@figure("change of the encoder's first vector by the last token", "above", 0.001)
@torch.no_grad()
def looks_ahead(seed: int) -> float:
    model = laboratory.build(seed).eval()
    one, two = collate([(SRC, TGT)]), collate([([*SRC[:-1], 11], TGT)])
    vectors = [model.encode(batch.src, batch.src_mask).hidden[0, 0] for batch in (one, two)]
    return float((vectors[0] - vectors[1]).abs().max())


@figure("share of the first word's vector that changes with that word", "above", 0.9)
@torch.no_grad()
def share_of_its_own(seed: int) -> float:
    model = laboratory.build(seed, type="recurrent").eval()
    batch = collate([(SRC, TGT), ([11, *SRC[1:]], TGT)])
    one, other = model.encode(batch.src, batch.src_mask).hidden[:, 0]
    return float(((one - other).abs() > 1e-6).float().mean())


@figure("the mean of ones after dropout of 0.4", "above", 0.9)
def dropped_mean(seed: int, rate: float = 0.4) -> float:
    torch.manual_seed(seed)
    return float(Dropout(rate).train()(torch.ones(200, 200)).mean())


RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
dropped_means = Curve(
    "numbers behind a dropout, in training",
    "dropout",
    "mean (1 without dropout)",
    lambda seed: [dropped_mean(seed, rate=rate) for rate in RATES],
    RATES,
)


def lengths_of_batches(seed: int, epoch: int = 0) -> list[int]:
    """The longest sentence of each batch of an epoch."""
    lengths = [1 + n % 30 for n in range(900)]
    plan = BatchPlan(lengths, lengths, batch_tokens=100, seed=seed)
    return [int(max(lengths[row] for row in plan.step(epoch, step)[0])) for step in range(plan.steps_per_epoch)]


lengths_curve = Curve(
    "the batches of three epochs",
    "step",
    "longest sentence of the batch",
    lambda seed: [float(length) for epoch in range(3) for length in lengths_of_batches(seed, epoch)],
)


@figure("share of steps with longer sentences than the one before", "above", 0.3)
def rise_of_batches(seed: int) -> float:
    order = lengths_of_batches(seed)
    return sum(two > one for one, two in itertools.pairwise(order)) / len(order)


@figure("log probability of a beam's translations: by how much the model disagrees", "below", 0.01)
def rescoring(seed: int, **model: Any) -> float:
    """Distance of the log probabilities of a beam's best translations from those that the model gives them at once."""
    sources = [src for src, _ in laboratory.pairs("reverse", "test", 40)]
    return disagreement(laboratory.train(seed, steps=100, **model).model.eval(), sources, beam_size=4)


@torch.no_grad()
def disagreement(model: Seq2SeqModel, sources: Sequence[list[int]], beam_size: int, n_best: int = 1) -> float:
    """The largest difference of a translation's log probability in a search and in a pass over all of it."""
    batch = collate([(src, src) for src in sources])
    settings = {"beam_size": beam_size, "n_best": n_best, "max_length_ratio": 1.0, "max_length_extra": 3}
    worst = 0.0
    results = searching.search(model, batch.src, batch.src_mask, parse(DecodingConfig, settings))
    for src, hypotheses in zip(sources, results, strict=True):
        for one in hypotheses:
            again = collate([(src, one.ids)])
            log_probs = model(again.src, again.src_mask, again.tgt_in).log_softmax(dim=-1)
            each = log_probs[0].gather(1, again.tgt_out[0][:, None])[:, 0]
            worst = max(worst, abs(float(each[:-1].sum() if one.cut else each.sum()) - one.log_prob))
    return worst
