"""Numbers on the screen for what the pictures of `inspect` show: batches, masks, positions, norms, smoothed targets."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dragoman.analysis.columns import columns
from dragoman.analysis.norms import GROUPS, Normed
from dragoman.analysis.smoothing import target_distribution
from dragoman.data.batch import collate
from dragoman.inference.attention_maps import labels
from dragoman.nn.positions import sinusoidal_rates, sinusoidal_table
from dragoman.text.tokenizers.pair import TokenizerPair


def batch_text(pairs: Sequence[tuple[str, str]], tokenizers: TokenizerPair) -> str:
    """A batch of pairs as a model reads it: the vocabularies' pieces and ids, source, target in and out, masks."""
    src, tgt = tokenizers.src, tokenizers.tgt
    batch = collate([(src.encode(one), tgt.encode(other)) for one, other in pairs])
    tables = {"src": (batch.src, src), "tgt_in": (batch.tgt_in, tgt), "tgt_out": (batch.tgt_out, tgt)}
    masks = {"src": batch.src_mask, "tgt_in": batch.tgt_mask, "tgt_out": batch.tgt_mask}
    parts = [f"vocabularies of {src.vocab_size:,} and {tgt.vocab_size:,} entries"]
    for name, (ids, tokenizer) in tables.items():
        parts.append(f"\n{name}, {tuple(ids.shape)}")
        for number, row in enumerate(ids):
            head = [f"  pair {number + 1}", *labels(tokenizer, row.tolist())]
            mask = ["1" if real else "0" for real in masks[name][number].tolist()]
            parts.append(columns([head, ["  ids", *map(str, row.tolist())], ["  mask", *mask]]))
    parts.append(f"\nreal tokens: {batch.num_src_tokens} of the source, {batch.num_tokens} of the target")
    return "\n".join(parts)


def masks_text(masks: Sequence[tuple[list[str], Mapping[str, np.ndarray]]], hidden: bool = False) -> str:
    """Masks of sentences, a row for each token that looks. `hidden`: in the other convention, 1 where it may not."""
    parts = [
        "1: hidden, as in `masked_fill(mask, -inf)`; 0: may be attended to"
        if hidden
        else "1: True, may be attended to; 0: False, hidden"
    ]
    for number, (tokens, by_name) in enumerate(masks, start=1):
        for name, mask in by_name.items():
            rows = [
                [token, *("1" if (value != hidden) else "0" for value in row)]
                for token, row in zip(tokens, mask.tolist(), strict=True)
            ]
            parts += [f"\nsentence {number}, {name}: rows look, columns are looked at", columns([["", *tokens], *rows])]
    return "\n".join(parts)


def positions_text(d_model: int, positions: Sequence[int], base: float = 10_000.0) -> str:
    """The sinusoidal vectors of some positions, a row for each pair of dimensions with its rate and wavelength."""
    rates = sinusoidal_rates(d_model, base=base).tolist()
    table = {place: sinusoidal_table(1, d_model, base=base, offset=place)[0] for place in positions}
    rows = [["dimensions", "rate", "wavelength"]]
    rows[0] += [f"{wave} pos {place}" for place in positions for wave in ("sin", "cos")]
    for pair, rate in enumerate(rates):
        values = [f"{float(table[place][2 * pair + part]):.4f}" for place in positions for part in (0, 1)]
        rows.append([f"{2 * pair}, {2 * pair + 1}", f"{rate:.6g}", f"{2 * math.pi / rate:,.1f}", *values])
    return f"PE(pos, 2i) = sin(pos / {base:g}^(2i/{d_model})), PE(pos, 2i+1) = cos of the same\n{columns(rows)}"


def norms_text(sentences: Sequence[Sequence[str]], versions: Mapping[str, Normed]) -> str:
    """Vectors of tokens before and after each norm, with the mean and the standard deviation of each."""
    parts = []
    for name, version in versions.items():
        parts.append(f"{name}: {GROUPS[version.group]}")
        features = version.values.shape[-1]
        rows = [["  token", *(f"x{number}" for number in range(features)), "mean", "std"]]
        for tokens, values in zip(sentences, version.values, strict=True):
            for token, vector in zip(tokens, values.tolist(), strict=True):
                figures = [*vector, float(np.mean(vector)), float(np.std(vector))]
                rows.append([f"  {token}", *(f"{value:.2f}" for value in figures)])
        parts.append(columns(rows))
        if version.group:
            parts.append(f"  sentence 1 without the others changes by up to {version.neighbour_effect:.2f}")
        parts.append("")
    return "\n".join(parts).rstrip()


def smoothing_text(epsilons: Sequence[float], vocab_size: int, target: int, pad: int = 0) -> str:
    """The target distribution of label smoothing in two forms: ours, and that of the annotated notebook; at last the
    target where the right token is padding."""
    head = ["form", "epsilon", *(f"token {number}" for number in range(vocab_size))]
    rows = []
    for epsilon in epsilons:
        for form, values in (
            ("epsilon / V everywhere (here, PyTorch)", target_distribution(vocab_size, target, epsilon)),
            ("epsilon / (V - 2), none on <pad> (annotated notebook)", without_pad(vocab_size, target, epsilon, pad)),
        ):
            rows.append([form, f"{epsilon:g}", *(f"{value:.4f}" for value in values.tolist())])
        nothing = without_pad(vocab_size, pad, epsilon, pad)  # here the mask takes a padded position out of the loss
        rows.append(["both, where the right token is <pad>", f"{epsilon:g}", *(f"{value:.4f}" for value in nothing)])
    legend = f"right token {target}, <pad> is token {pad}, V = {vocab_size}"
    return f"{legend}\n{columns([head, *rows])}"


def without_pad(vocab_size: int, target: int, epsilon: float, pad: int = 0) -> np.ndarray:
    """The target of `LabelSmoothing(size, padding_idx, smoothing)` in the annotated notebook: epsilon is shared by all
    but the right token and the padding. Where the right token is padding all of it is 0: nothing is asked for.

    >>> without_pad(5, 2, 0.4).round(4).tolist()
    [0.0, 0.1333, 0.6, 0.1333, 0.1333]
    """
    if target == pad:
        return np.zeros(vocab_size)
    values = np.full(vocab_size, epsilon / (vocab_size - 2))
    values[target], values[pad] = 1 - epsilon, 0.0
    return values
