"""Figures in which a bug shows: each takes a seed, and measures a model, a loss or a search of the laboratory."""

import itertools
import math
from typing import Any

import torch

from dragoman.config import parse
from dragoman.data.batch import collate
from dragoman.data.batching import BatchPlan
from dragoman.decoding import search as searching
from dragoman.decoding.base import DecodingConfig
from dragoman.learn import laboratory, one_sentence
from dragoman.learn.selftests import SRC, TGT
from dragoman.nn import positions
from dragoman.nn.dropout import Dropout
from dragoman.training import loss as losses


def exact(seed: int, beam_size: int = 1, **toy: Any) -> float:
    """The share of unseen sequences that a trained toy model gets right."""
    return laboratory.train(seed, **toy).exact(toy.get("task", "reverse"), beam_size)


def last_loss(seed: int, **toy: Any) -> float:
    return laboratory.train(seed, **toy).last_loss


def one_sentence_loss(seed: int) -> float:
    """The mean loss of steps 7 to 60 of a small model on one sentence, where a sound loop has learnt it."""
    sizes: dict[str, Any] = {
        "d_model": 64,
        "num_heads": 4,
        "d_ff": 128,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "dropout": 0.0,
    }
    return sum(one_sentence.train_one_sentence(seed, steps=60, lr=1e-3, **sizes)[6:]) / 54


def knows_nothing(seed: int) -> float:
    """The loss a token of equal logits, less ln V."""
    batch = collate(laboratory.pairs("reverse", "train", 20, seed))
    logits = torch.zeros(*batch.tgt_out.shape, laboratory.VOCAB)
    loss = float(losses.token_loss(logits, batch.tgt_out, batch.tgt_mask)) / batch.num_tokens
    return abs(loss - math.log(laboratory.VOCAB))


@torch.no_grad()
def batch_dependence(seed: int, **model: Any) -> float:
    """Change of a sentence's logits when longer ones are in its batch; infinite where they are no numbers."""
    built = laboratory.build(seed, **model).eval()
    batches = collate([(SRC[:2], TGT[:3])]), collate([(SRC[:2], TGT[:3]), (SRC * 2, TGT)])
    alone, among = (built(b.src, b.src_mask, b.tgt_in)[0, :4] for b in batches)
    off = float((alone - among).abs().max())
    return math.inf if math.isnan(off) else off


@torch.no_grad()
def spread_of_weights(seed: int) -> float:
    """Difference between the attention of one decoder state and that of the next."""
    model = laboratory.build(seed, type="recurrent").eval()
    batch = collate([(SRC, TGT)])
    weights = next(iter(model.attention_maps(batch.src, batch.src_mask, batch.tgt_in).values()))[0, 0]
    return float((weights - weights[0]).abs().max())


@torch.no_grad()
def sharpest_weight(seed: int) -> float:
    """The mean of the largest weight of each query in an untrained model of one head: 1: saturated."""
    model = laboratory.build(seed, d_model=64, num_heads=1).eval()
    batch = collate([(SRC * 2, TGT)])
    maps = model.attention_maps(batch.src, batch.src_mask, batch.tgt_in)
    return float(maps["encoder.0.self"].amax(dim=-1).mean())


def alike_positions(seed: int) -> float:
    """Likeness of the two most similar of 200 positions that are no neighbours."""
    table = positions.sinusoidal_table(200, 32)
    alike = (table @ table.T / 16).masked_fill(torch.ones(200, 200).triu(-3).tril(3).bool(), -1)
    return float(alike.max())


@torch.no_grad()
def size_of_memory(seed: int) -> float:
    """The spread of the encoder's vectors in an untrained model of eight layers."""
    model = laboratory.build(seed, num_encoder_layers=8).eval()
    batch = collate([(SRC, TGT)])
    return float(model.encode(batch.src, batch.src_mask).hidden.std(dim=-1).mean())


def parameters_per_layer(seed: int) -> float:
    """Thousands of parameters that a third layer brings."""
    sizes = [sum(p.numel() for p in laboratory.build(seed, num_encoder_layers=n).parameters()) for n in (2, 3)]
    return (sizes[1] - sizes[0]) / 1000


@torch.no_grad()
def size_of_words(seed: int) -> float:
    """A word's numbers beside a position's."""
    model = laboratory.build(seed, d_model=64).eval()
    words = model.src_embedding.tokens(torch.arange(4, 14))  # type: ignore[union-attr,operator]
    return float(words.pow(2).mean().sqrt()) / math.sqrt(0.5)


def agreement(seed: int) -> float:
    """The share of 50 sequences that one model, trained with dropout, translates twice in the same way."""
    trained = laboratory.train(seed, steps=120, dropout=0.3)
    sources = [src for src, _ in laboratory.pairs("reverse", "test", 50)]
    first, second = (laboratory.translate(trained.model, sources) for _ in range(2))
    return sum(one == two for one, two in zip(first, second, strict=True)) / len(sources)


def mean_length(seed: int) -> float:
    """Length of translations, as a multiple of the right ones'."""
    trained = laboratory.train(seed)
    data = laboratory.pairs("reverse", "test", 60)
    found = laboratory.translate(trained.model, [src for src, _ in data])
    return sum(map(len, found)) / sum(len(tgt) for _, tgt in data)


@torch.no_grad()
def looks_ahead(seed: int) -> float:
    """Change of the encoder's first vector with the source's last token."""
    model = laboratory.build(seed).eval()
    one, two = collate([(SRC, TGT)]), collate([([*SRC[:-1], 11], TGT)])
    vectors = [model.encode(batch.src, batch.src_mask).hidden[0, 0] for batch in (one, two)]
    return float((vectors[0] - vectors[1]).abs().max())


def dropped_mean(seed: int) -> float:
    """The mean of ones after dropout of 0.4 in training."""
    torch.manual_seed(seed)
    return float(Dropout(0.4).train()(torch.ones(200, 200)).mean())


def rise_of_batches(seed: int) -> float:
    """The share of steps of an epoch whose sentences are longer than those of the step before."""
    lengths = [1 + n % 30 for n in range(900)]
    plan = BatchPlan(lengths, lengths, batch_tokens=100, seed=seed)
    order = [int(max(lengths[row] for row in plan.step(0, step)[0])) for step in range(plan.steps_per_epoch)]
    return sum(two > one for one, two in itertools.pairwise(order)) / len(order)


def rescoring(seed: int) -> float:
    """Distance of the log probabilities of a beam's best translations from those that the model gives them at once."""
    trained = laboratory.train(seed, steps=100)
    data = laboratory.pairs("reverse", "test", 40)
    batch = collate(data)
    config = parse(DecodingConfig, {"beam_size": 4, "max_length_ratio": 1.0, "max_length_extra": 3})
    worst = 0.0
    with torch.no_grad():
        found = searching.search(trained.model.eval(), batch.src, batch.src_mask, config)
        for (src, _), [best, *_] in zip(data, found, strict=True):
            again = collate([(src, best.ids)])
            log_probs = trained.model(again.src, again.src_mask, again.tgt_in).log_softmax(dim=-1)
            each = log_probs[0].gather(1, again.tgt_out[0][:, None])[:, 0]
            worst = max(worst, abs(float(each[:-1].sum() if best.cut else each.sum()) - best.log_prob))
    return worst


def forgets(seed: int) -> float:
    """The exact matches of a recurrent model without attention, which has to carry the sentence through its states."""
    return exact(seed, type="recurrent", attention="none", task="copy")
