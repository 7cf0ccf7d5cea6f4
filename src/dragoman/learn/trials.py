"""Drawn inputs for the functions that the laboratory's bugs replace: on them a mended function is compared with the
sound one.

Compared are the answer with its types, the gradients that flow through it, and what is left of the arguments. Inputs
stay in the domain of the broken copy, which has what the lesson needs and no more.
"""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data import batch as batches
from dragoman.data.batching import BatchPlan
from dragoman.decoding import base as decoding
from dragoman.learn import one_sentence
from dragoman.learn.diagnosis import difference
from dragoman.learn.limited import reason
from dragoman.models import blocks, recurrent, stacks
from dragoman.nn import attention, dropout, embeddings, kv_cache, masks, positions, recurrent_attention, residual
from dragoman.nn import recurrent as recurrent_layers
from dragoman.training import loss, optim, schedules

Function = Callable[..., Any]
ROUNDS = 3
"""Seeds that each trial is drawn with."""


class Trial(NamedTuple):
    """A way to call a function, and the part of the result that counts."""

    words: str
    """When it is so called: "with padding"."""
    make: Callable[[], tuple[Any, ...]]
    """Fresh arguments; the same ones for the same seed of PyTorch."""
    seen: Callable[..., Any] | None = None
    """Of the result and the arguments what counts, maybe as a dict by what it is; all if None."""

    mode: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Of PyTorch, that the function is called in."""
    calls: int = 1
    """Calls with the same arguments; of several the results are a list."""


class Settings(dict[str, Any]):
    """Arguments by name, as the last of `Trial.make`."""


TRIALS: dict[Function, Callable[[], Iterator[Trial]]] = {}
"""By sound function."""


def trials_of(*functions: Function) -> Callable[[Callable[[], Iterator[Trial]]], Callable[[], Iterator[Trial]]]:
    """Make the decorated generator the trials of these functions."""

    def register(trials: Callable[[], Iterator[Trial]]) -> Callable[[], Iterator[Trial]]:
        TRIALS.update(dict.fromkeys(functions, trials))
        return trials

    return register


def first_difference(sound: Function, function: Function, seed: int) -> str:
    """Where `function` does something else than the sound one, in words; nothing if it does the same everywhere."""
    for trial in TRIALS[sound]():
        for number in range(ROUNDS):
            expected = outcome(sound, trial, 1000 * seed + number)
            try:
                actual = outcome(function, trial, 1000 * seed + number)
            except Exception as error:
                return f"{trial.words}: {reason(error)}"
            for part in expected:
                if why := difference(expected[part], actual[part], part):
                    return " ".join(f"{trial.words}: {why}".split())
    return ""


def outcome(function: Function, trial: Trial, seed: int) -> dict[str, Any]:
    """The result of a call, as plain values by what they are."""
    torch.manual_seed(seed)
    arguments = trial.make()
    named = arguments[-1] if isinstance(arguments[-1], Settings) else {}
    with trial.mode():
        results = [function(*arguments[: len(arguments) - bool(named)], **named) for _ in range(trial.calls)]
    result = results[0] if trial.calls == 1 else results
    counts = result if trial.seen is None else trial.seen(result, *arguments)
    named_values = counts if isinstance(counts, dict) else {"the answer": counts}
    leaves = [one for one in tensors(arguments) if one.requires_grad and one.is_leaf]
    outputs = [one for one in tensors(counts) if one.requires_grad]
    answer = {name: plain(value) for name, value in named_values.items()}
    answer |= {f"the type of {name}": types(value) for name, value in answer.items()}
    answer["the number of values with a gradient"] = len(outputs)
    if leaves and outputs:
        torch.manual_seed(seed)
        total = sum((one.double() * torch.randn(one.shape).double()).nansum() for one in outputs)
        gradients = torch.autograd.grad(total, leaves, allow_unused=True)  # type: ignore[arg-type]
        answer["the gradient"] = [None if one is None else one.clone() for one in gradients]
    return {**answer, "what is left of the arguments": plain(arguments)}


def tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in a value."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, nn.Module):
        yield from value.parameters()
    else:
        for part in parts(value):
            yield from tensors(part)


def parts(value: Any) -> list[Any]:
    """The values in a container."""
    if isinstance(value, dict):
        return list(value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return list(value) if isinstance(value, list | tuple) else []


def plain(value: Any) -> Any:
    """A value that can be compared, and that does not change any more."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, nn.Module):
        state = {name: one.detach().clone() for name, one in value.named_parameters()}
        return {"module": repr(value), "training": value.training, **state}
    if isinstance(value, dict | list | tuple) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return [plain(part) for part in parts(value)]
    return value if isinstance(value, bool | int | float | str | None) else type(value).__name__


def types(value: Any) -> list[str]:
    """The types of a plain value's parts."""
    if isinstance(value, dict | list):
        return [name for part in parts(value) for name in types(part)]
    return [str(value.dtype) if isinstance(value, Tensor) else type(value).__name__]


def rough(result: Any, *_: Any) -> Any:
    """Of a result in half precision its types, sizes and order of magnitude: how it is rounded does not count."""
    values = plain(result)
    sizes = [[list(one.shape), float(one.double().norm() > 0), bool(one.isfinite().all())] for one in tensors(values)]
    return types(values), sizes


def drawn(*shape: int, **settings: Any) -> Tensor:
    """Random numbers that a gradient is wanted for."""
    return torch.randn(*shape, **settings).requires_grad_()


def lengths(rows: int, longest: int) -> list[int]:
    """Lengths from 1, the longest among them."""
    return [longest, *torch.randint(1, longest + 1, (rows - 1,)).tolist()]


def real_positions(rows: int, longest: int) -> Tensor:
    """A padding mask, (rows, longest)."""
    return torch.arange(longest) < torch.tensor(lengths(rows, longest))[:, None]


# -- data ----------------------------------------------------------------------------------------------------------


def _sentences(sizes: list[int]) -> list[list[int]]:
    return [torch.randint(4, 90, (size,)).tolist() for size in sizes]


@trials_of(batches._begin)
def _begin() -> Iterator[Trial]:
    for words, sizes in (("for one sentence", [4]), ("for three", [2, 5, 3]), ("for one without a token", [3, 0, 1])):
        yield Trial(words, partial(_layout_of, sizes))


def _layout_of(sizes: list[int]) -> tuple[Any, ...]:
    return batches._layout(_sentences(sizes))


@trials_of(batches.collate)
def _collate() -> Iterator[Trial]:
    def pairs(*sizes: tuple[int, int]) -> list[tuple[list[int], ...]]:
        return [tuple(_sentences(list(both))) for both in sizes]

    yield Trial("for a pair", lambda: (pairs((3, 2)),))
    yield Trial("for pairs of different lengths", lambda: (pairs((3, 7), (9, 1), (1, 4), (2, 0)),))
    yield Trial("for rows with numbers", lambda: (pairs((3, 7), (9, 1)), [14, 3]))
    arrays = [(np.array([5, 6], dtype=np.uint16), np.array([7], dtype=np.uint16))] * 2
    yield Trial("for arrays", lambda: (arrays, np.array([1, 0])))


@trials_of(BatchPlan._plan)
def _plan() -> Iterator[Trial]:
    def make(seed: int, epoch: int, shuffle: bool) -> tuple[Any, ...]:
        sizes = [1 + n % 13 for n in range(200)]
        return BatchPlan(sizes, sizes, batch_tokens=60, seed=seed, shuffle=shuffle), epoch

    def seen(plan: Any, *_: Any) -> dict[str, Any]:
        return dict(zip(("the rows", "the order of the batches"), plan, strict=True))

    for seed, epoch in ((1, 0), (1, 5), (7, 1)):
        yield Trial(f"for epoch {epoch} with seed {seed}", partial(make, seed, epoch, True), seen)
        yield Trial(f"for epoch {epoch} of a plan that is not shuffled", partial(make, seed, epoch, False), seen)


def _given(*arguments: Any) -> tuple[Any, ...]:
    return arguments


# -- masks, positions, embeddings ----------------------------------------------------------------------------------


@trials_of(masks.causal_mask)
def _causal_mask() -> Iterator[Trial]:
    for length in (1, 2, 3, 6, 7, 8, 33, 300):
        yield Trial(f"for a length of {length}", partial(_given, length))
    yield Trial("on a device", lambda: (5, torch.device("cpu")))


@trials_of(positions.sinusoidal_rates)
def _sinusoidal_rates() -> Iterator[Trial]:
    for size in (2, 4, 7, 32, 512):
        yield Trial(f"for {size} features", partial(_given, size))
    for layout in ("interleaved", "half_split", "fairseq"):
        yield Trial(f"in the layout {layout}", partial(_given, 16, Settings(base=500.0, layout=layout)))


@trials_of(positions.sinusoidal_table)
def _sinusoidal_table() -> Iterator[Trial]:
    for length, size in ((1, 2), (5, 8), (9, 7), (300, 32)):
        yield Trial(f"for {length} positions of {size} features", partial(_given, length, size))
    for layout in positions.LAYOUTS:
        yield Trial(f"in the layout {layout}", partial(_given, 20, 16, Settings(layout=layout)))
        yield Trial(
            f"in the layout {layout}, later", partial(_given, 6, 8, Settings(base=90.0, layout=layout, offset=2))
        )


@trials_of(positions.SinusoidalPositions.forward)
def _sinusoidal_forward() -> Iterator[Trial]:
    def make(start: int, length: int, dtype: Any = torch.float32) -> tuple[Any, ...]:
        return positions.SinusoidalPositions(8, 12).to(dtype), start, length

    yield Trial("for a sentence", partial(make, 0, 6))
    yield Trial("for one word", partial(make, 0, 1))
    yield Trial("for a word in a search", partial(make, 7, 1))
    yield Trial("for the next two", partial(make, 3, 2))
    yield Trial("for a text that is longer than the table", partial(make, 0, 30), None, nullcontext, 2)
    yield Trial("for a word beyond the table", partial(make, 40, 1), None, nullcontext, 2)
    yield Trial("in bfloat16", partial(make, 2, 5, torch.bfloat16))
    yield Trial("in bfloat16 beyond the table", partial(make, 9, 5, torch.bfloat16))

    def trains(_: Any, module: Any, *__: Any) -> dict[str, Any]:
        return {"whether a training may use the table after a search": not module.table.is_inference()}

    yield Trial("in a search beyond the table", partial(make, 20, 1), trains, torch.inference_mode)


@trials_of(blocks.PositionedEmbedding.forward)
def _positioned() -> Iterator[Trial]:
    def make(kind: str, rate: float, training: bool, rows: int, length: int, start: int) -> tuple[Any, ...]:
        added = {"sinusoidal": positions.SinusoidalPositions(8), "learned": positions.LearnedPositions(8, 40)}
        tokens = embeddings.TokenEmbedding(30, 8, 0, scaled=True)
        norm = nn.LayerNorm(8) if kind == "learned" else nn.Identity()
        whole = blocks.PositionedEmbedding(tokens, added.get(kind, positions.NoPositions(8)), norm, rate)
        return whole.train(training), torch.randint(0, 30, (rows, length)), start

    for kind in ("sinusoidal", "learned", "none"):
        yield Trial(f"{kind} positions, in training", partial(make, kind, 0.3, True, 3, 5, 0))
        yield Trial(f"{kind} positions, for a batch of one", partial(make, kind, 0.3, False, 1, 7, 0))
        yield Trial(f"{kind} positions, as many rows as words", partial(make, kind, 0.0, True, 4, 4, 0))
        yield Trial(f"{kind} positions, in a search", partial(make, kind, 0.3, False, 4, 1, 9))
        yield Trial(f"{kind} positions, after a prefix", partial(make, kind, 0.0, False, 2, 3, 6))


@trials_of(embeddings.TokenEmbedding.forward)
def _token_embedding() -> Iterator[Trial]:
    def make(shape: tuple[int, ...], size: int, scaled: bool, zero_id: int | None) -> tuple[Any, ...]:
        made = embeddings.TokenEmbedding(12, size, 0, scaled=scaled)
        made.zero_id = zero_id
        return made, torch.randint(0, 12, shape)

    for size in (6, 16, 64):
        yield Trial(f"for {size} features", partial(make, (2, 5), size, True, None))
    yield Trial("where it is not scaled", partial(make, (2, 5), 16, False, None))
    yield Trial("for one token", partial(make, (3, 1), 16, True, None))
    yield Trial("for ids without a batch", partial(make, (7,), 16, True, None))
    yield Trial("with an id whose vector is zero", partial(make, (4, 9), 16, True, 3))


# -- attention -----------------------------------------------------------------------------------------------------


@trials_of(attention.scaled_dot_product_attention)
def _scaled_dot_product() -> Iterator[Trial]:
    def make(
        queries: int, keys: int, kind: str = "", groups: int = 1, size: float = 1.0, dtype: Any = torch.float32
    ) -> tuple[Any, ...]:
        width, kv_heads = int(torch.randint(2, 12, ())), int(torch.randint(1, 6, ()))
        query, key, value = (
            (size * torch.randn(2, heads, length, width)).to(dtype).requires_grad_()
            for heads, length in ((kv_heads * groups, queries), (kv_heads, keys), (kv_heads, keys))
        )
        padding = real_positions(2, keys)[:, None, None] if "padding" in kind else None
        causal = masks.causal_mask(keys)[:, :, keys - queries :] if "causal" in kind else None
        mask = causal if padding is None else padding if causal is None else padding & causal
        dropping = dropout.Dropout(0.4).train("dropout" in kind) if "drop" in kind else None
        bias = drawn(1, kv_heads * groups, queries, keys).to(dtype).detach() if "bias" in kind else None
        return query, key, value, mask, dropping, bias

    def seen(result: Any, *_: Any) -> dict[str, Any]:
        return dict(zip(("the context", "the weights"), result, strict=True))

    for words, made in {
        "without a mask": partial(make, 5, 5),
        "with fewer queries than keys": partial(make, 2, 7, "padding"),
        "with more queries than keys": partial(make, 7, 3, "padding"),
        "for one query": partial(make, 1, 6, "padding"),
        "for one key": partial(make, 3, 1),
        "with padding": partial(make, 5, 5, "padding"),
        "with a causal mask": partial(make, 6, 6, "causal"),
        "with a causal mask and padding": partial(make, 6, 6, "causal padding"),
        "with fewer heads of keys": partial(make, 5, 5, "padding", 2),
        "with many fewer heads of keys": partial(make, 5, 5, "causal", 3),
        "with dropout in training": partial(make, 5, 6, "padding dropout"),
        "with dropout that is off": partial(make, 5, 6, "padding drop"),
        "with a bias": partial(make, 5, 6, "padding bias"),
        "where scores are large": partial(make, 5, 6, "padding", 1, 300.0),
        "where scores are large and the future is hidden": partial(make, 6, 6, "causal", 1, 300.0),
        "in float64": partial(make, 5, 6, "padding", 1, 1.0, torch.float64),
        "in bfloat16": partial(make, 5, 6, "padding", 1, 1.0, torch.bfloat16),
    }.items():
        yield Trial(words, made, rough if "bfloat16" in words else seen)


@trials_of(attention.repeat_kv)
def _repeat_kv() -> Iterator[Trial]:
    def make(heads: int, kv_heads: int, length: int) -> tuple[Any, ...]:
        return drawn(2, heads, 3, 5), drawn(2, kv_heads, length, 5)

    for heads, kv_heads in ((4, 4), (4, 2), (4, 1), (6, 2), (1, 1)):
        yield Trial(f"for {heads} heads of queries and {kv_heads} of keys", partial(make, heads, kv_heads, 7))
    yield Trial("for one key", partial(make, 4, 2, 1))


@trials_of(attention.MultiHeadAttention.split_heads)
def _split_heads() -> Iterator[Trial]:
    def make(rows: int, length: int, heads: int, kv_heads: int, width: int | None = None) -> tuple[Any, ...]:
        made = attention.MultiHeadAttention(24, heads, num_kv_heads=kv_heads, d_head=width)
        return made, drawn(rows, length, kv_heads * made.d_head)

    yield Trial("for a batch", partial(make, 2, 5, 4, 4))
    yield Trial("for one word", partial(make, 3, 1, 4, 4))
    yield Trial("for no word, as at the beginning of a search", partial(make, 3, 0, 4, 4))
    yield Trial("for as many words as heads", partial(make, 2, 4, 4, 4))
    yield Trial("for one head", partial(make, 2, 5, 1, 1))
    yield Trial("for keys with fewer heads", partial(make, 2, 5, 4, 2))
    yield Trial("for heads of another width", partial(make, 2, 5, 4, 4, 10))
    yield Trial(
        "for numbers that do not lie in a row",
        lambda: (attention.MultiHeadAttention(24, 4), drawn(5, 2, 24).mT.mT.transpose(0, 1)),
    )


@trials_of(recurrent_attention.AdditiveAttention.scores)
def _additive_scores() -> Iterator[Trial]:
    def make(rows: int, queries: int, keys: int, size: float = 1.0) -> tuple[Any, ...]:
        query, key = (size * torch.randn(rows, length, 6) for length in (queries, keys))
        return recurrent_attention.AdditiveAttention(6), query.requires_grad_(), key.requires_grad_()

    yield Trial("for a sentence", partial(make, 1, 3, 5))
    yield Trial("for a batch", partial(make, 3, 4, 6))
    yield Trial("for one query", partial(make, 2, 1, 4))
    yield Trial("for as many queries as words", partial(make, 2, 4, 4))
    yield Trial("for large numbers", partial(make, 3, 4, 6, 30.0))


# -- layers --------------------------------------------------------------------------------------------------------


class _Linear(nn.Linear):
    """A sublayer that counts its calls and keeps what it read."""

    def __init__(self, size: int) -> None:
        super().__init__(size, size)
        self.read: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.read.append(x.detach().clone())
        return super().forward(x)


@trials_of(residual.PreNorm.forward)
def _pre_norm() -> Iterator[Trial]:
    def make(norm: Any, rate: float, training: bool) -> tuple[Any, ...]:
        return residual.PreNorm(norm(8), rate).train(training), drawn(2, 3, 8), _Linear(8)

    def seen(result: Any, _: Any, __: Any, sublayer: Any) -> dict[str, Any]:
        return {"the answer": result, "what the sublayer reads": sublayer.read}

    for norm in (nn.LayerNorm, nn.RMSNorm):
        for rate in (0.0, 0.4):
            yield Trial(f"in training, with dropout of {rate}", partial(make, norm, rate, True), seen)
            yield Trial(f"when it translates, with dropout of {rate}", partial(make, norm, rate, False), seen)


def _config(**settings: Any) -> blocks.BlockConfig:
    return blocks.BlockConfig(d_model=16, num_heads=4, d_ff=24, **settings)


@trials_of(blocks.BlockConfig.final_norm)
def _final_norm() -> Iterator[Trial]:
    def seen(norm: Any, *_: Any) -> dict[str, Any]:
        return {
            "what it gives": norm(torch.randn(2, 16) * 3 + 1),
            "its number of weights": len(list(norm.parameters())),
        }

    for placement in residual.NORM_PLACEMENTS:
        for norm, eps in (("layer", 1e-5), ("rms", 1e-3)):
            config = _config(norm_placement=placement, norm=norm, norm_eps=eps)
            yield Trial(f"for {placement}-norm with {norm} norms", partial(_given, config), seen)


@trials_of(blocks.EncoderLayer.forward)
def _encoder_layer() -> Iterator[Trial]:
    def make(placement: str, padded: bool, training: bool, maps: bool = True, rows: int = 3) -> tuple[Any, ...]:
        layer = blocks.EncoderLayer(_config(norm_placement=placement, dropout=0.2, attention_dropout=0.1))
        mask = masks.padding_mask(real_positions(rows, 6)) if padded else None
        return layer.train(training), drawn(rows, 6, 16), mask, [] if maps else None

    for placement in residual.NORM_PLACEMENTS:
        yield Trial(f"{placement}-norm, with padding", partial(make, placement, True, False))
        yield Trial(f"{placement}-norm, with padding in training", partial(make, placement, True, True))
        yield Trial(f"{placement}-norm, without padding", partial(make, placement, False, False))
    yield Trial("without maps", partial(make, "pre", True, False, False))
    yield Trial("for a batch of one", partial(make, "pre", True, False, True, 1))


@trials_of(blocks.DecoderLayer.forward)
def _decoder_layer() -> Iterator[Trial]:
    def make(placement: str, cross: bool, training: bool, maps: bool = True, source: int = 5) -> tuple[Any, ...]:
        layer = blocks.DecoderLayer(_config(norm_placement=placement, dropout=0.2, attention_dropout=0.1), cross)
        memory = (drawn(3, source, 16), masks.padding_mask(real_positions(3, source))) if cross else (None, None)
        return layer.train(training), drawn(3, 6, 16), masks.causal_mask(6), *memory, [] if maps else None

    for placement in residual.NORM_PLACEMENTS:
        for training in (True, False):
            mode = "in training" if training else "when it translates"
            yield Trial(f"{placement}-norm, {mode}", partial(make, placement, True, training))
    yield Trial("where the source is as long as the target", partial(make, "pre", True, False, True, 6))
    yield Trial("without maps", partial(make, "pre", True, False, False))
    yield Trial("in a language model", partial(make, "pre", False, False))


@trials_of(stacks.stack)
def _stack() -> Iterator[Trial]:
    def seen(made: Any, *_: Any) -> Any:
        same = [[one is other for other in made] for one in made]
        return {
            "the type": type(made).__name__,
            "the number of layers": len(made),
            "which layers are the same": same,
            "the layers": [one.weight for one in made],
        }

    def make(size: int, tied: tuple[int, ...] = (), once: bool = False) -> tuple[Any, ...]:
        layers = [nn.Linear(3, 3) for _ in range(size)]
        return (iter(layers) if once else layers), tied

    yield Trial("for one layer", partial(make, 1), seen)
    yield Trial("for three layers", partial(make, 3), seen)
    yield Trial("for layers that come one by one", partial(make, 4, (), True), seen)
    yield Trial("for layers that are tied", partial(make, 4, (1, 1, 3, 3)), seen)


@trials_of(stacks.init_linear)
def _init_linear() -> Iterator[Trial]:
    def make(how: str | None, bias: bool = True) -> tuple[Any, ...]:
        inner = nn.Sequential(nn.Linear(9, 5, bias), nn.LayerNorm(5), nn.Linear(5, 7, bias))
        names = {"query_proj": nn.Linear(6, 6), "layers": nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])}
        model = nn.ModuleDict({"inner": inner, "embedding": nn.Embedding(4, 3), **names})
        return (model,) if how is None else (model, how)

    yield Trial("for a model", partial(make, None))
    yield Trial("for projections without a bias", partial(make, None, False))
    for how in stacks.INITIALIZATIONS:
        yield Trial(f"for {how}", partial(make, how))


@trials_of(dropout.Dropout.forward)
def _dropout() -> Iterator[Trial]:
    """The elements that are kept may be chosen in any way: what counts is how many there are, and their size."""

    def seen(results: list[Tensor], module: Any, x: Tensor) -> Any:
        result, again = results
        kept = result.detach() != 0
        ratio = (result.detach().double() / x.detach().double())[kept]
        off = float(kept.double().mean()) - (1 - module.rate)
        rows = [float(kept.flatten(0, -2).double().mean(dim=dim).std()) < 0.1 for dim in (0, 1)]
        slope = torch.autograd.grad(result.double().sum(), x)[0] if result.requires_grad else torch.zeros(1)
        shares = [abs(off) < 0.03, *rows, len({one.tobytes() for one in kept.flatten(0, -2).numpy()}) > 1]
        return {
            "the type": [str(result.dtype), list(result.shape)],
            "the scale of elements that are left": [ratio.min().item(), ratio.max().item()],
            "the share of elements that are left (as it should be; anew in each row; anew in each column)": shares,
            "whether gradients flow through the elements that are left": bool(torch.equal(slope != 0, kept)),
            "the largest gradient": float(slope.double().max()),
            "whether the next choice is another one": not bool(torch.equal(kept, again.detach() != 0)),
        }

    def make(rate: float, training: bool, dtype: Any = torch.float32, *shape: int) -> tuple[Any, ...]:
        x = (torch.rand(*(shape or (300, 200)), dtype=torch.float32) + 0.5).to(dtype).requires_grad_()
        return dropout.Dropout(rate).train(training), x

    for rate in (0.1, 0.5, 0.8):
        yield Trial(f"with a rate of {rate} in training", partial(make, rate, True), seen, nullcontext, 2)
    yield Trial("for a batch in training", partial(make, 0.3, True, torch.float32, 20, 40, 60), seen, nullcontext, 2)
    yield Trial("in float64, in training", partial(make, 0.3, True, torch.float64), seen, nullcontext, 2)
    yield Trial("in bfloat16, in training", partial(make, 0.5, True, torch.bfloat16), seen, nullcontext, 2)
    for rate in (0.0, 0.4):
        yield Trial(f"with a rate of {rate} when it translates", partial(make, rate, False))
    yield Trial("with a rate of 0 in training", partial(make, 0.0, True))


# -- recurrent models ----------------------------------------------------------------------------------------------

CELLS = {"LSTM": recurrent_layers.LSTMLayer, "GRU": recurrent_layers.GRULayer}


@trials_of(recurrent_layers.RecurrentLayer.read)
def _read() -> Iterator[Trial]:
    def seen(result: Any, _: Any, __: Any, mask: Tensor, *___: Any) -> Any:
        outputs, state = result  # nothing reads the outputs at padding
        real = outputs.masked_fill(~mask[:, :, None], 0.0)
        return {"the outputs at words": real, "their shape": list(outputs.shape), "the last state": state}

    def make(
        cell: str, reverse: bool, rows: int, longest: int, filled: float = 0.0, dtype: Any = torch.float32
    ) -> tuple[Any, ...]:
        mask = real_positions(rows, longest)
        x = torch.randn(rows, longest, 5).masked_fill(~mask[:, :, None], filled)
        return CELLS[cell](5, 7).to(dtype), x.to(dtype).requires_grad_(), mask, Settings(reverse=reverse)

    for cell in CELLS:
        for reverse in (False, True):
            read = partial(make, cell, reverse)
            words = f"{cell}{' from right to left' if reverse else ''}"
            yield Trial(f"{words}, one sentence", partial(read, 1, 6), seen)
            yield Trial(f"{words}, one word", partial(read, 2, 1), seen)
            yield Trial(f"{words}, a batch with padding", partial(read, 4, 7), seen)
            yield Trial(f"{words}, other numbers at padding", partial(read, 4, 7, 9.0), seen)
            yield Trial(f"{words}, no numbers at padding", partial(read, 4, 7, torch.nan), seen)
        yield Trial(f"{cell}, in float64", partial(make, cell, False, 3, 5, 0.0, torch.float64), seen)


@trials_of(recurrent_layers.LSTMLayer.next_state)
def _next_state() -> Iterator[Trial]:
    def make(rows: int, size: float, dtype: Any = torch.float32) -> tuple[Any, ...]:
        layer = recurrent_layers.LSTMLayer(5, 7).to(dtype)
        for bias in layer._weights()[2:]:
            nn.init.normal_(bias)
        projected, h, c = ((size * torch.randn(rows, width)).to(dtype).requires_grad_() for width in (28, 7, 7))
        return layer, projected, (h, c)

    for words, rows, size in (("for a batch", 4, 1.0), ("for one sentence", 1, 1.0), ("for large numbers", 3, 5.0)):
        yield Trial(words, partial(make, rows, size))
    yield Trial("for a state of zeros", partial(make, 2, 0.0))
    yield Trial("in float64", partial(make, 2, 1.0, torch.float64))


@trials_of(recurrent.Bridge.forward)
def _bridge() -> Iterator[Trial]:
    def make(cell: str, encoder: int, decoder: int) -> tuple[Any, ...]:
        num_parts = recurrent_layers.CELLS[cell].num_parts
        last = tuple(tuple(drawn(3, 6) for _ in range(num_parts)) for _ in range(encoder))
        return recurrent.Bridge(cell, 6, encoder, decoder), last

    for cell in ("lstm", "gru"):
        for encoder, decoder in ((1, 1), (2, 2), (1, 2), (3, 1)):
            yield Trial(f"{cell}, {encoder} to {decoder} layers", partial(make, cell, encoder, decoder))
        half = partial(torch.autocast, "cpu", torch.bfloat16)
        yield Trial(f"{cell}, 1 to 2 layers with products in bfloat16", partial(make, cell, 1, 2), rough, half)


# -- training ------------------------------------------------------------------------------------------------------


@trials_of(schedules.warm_up)
def _warm_up() -> Iterator[Trial]:
    for steps in (0, 1, 4, 50, 4000):
        for step in (0.5, 1, 2, 3, 4, 25, 50, 51, 700, 4000, 10_000):
            yield Trial(f"at step {step} with a warm-up of {steps}", partial(_given, step, steps))


@trials_of(loss.token_loss)
def _token_loss() -> Iterator[Trial]:
    def make(kind: str, smoothing: float = 0.0, dtype: Any = torch.float32, rows: int = 3) -> tuple[Any, ...]:
        mask = real_positions(rows, 6)
        targets = torch.randint(4, 11, (rows, 6)).masked_fill(~mask, 0)
        if kind == "chosen":
            mask = mask & (torch.rand(rows, 6) < 0.6)
        logits = 3 * torch.randn(rows, 6, 11)
        if kind == "nan":
            return logits.masked_fill(~mask[..., None], torch.nan), targets, mask, smoothing
        return logits.to(dtype).requires_grad_(), targets, mask, smoothing

    yield Trial("with padding", partial(make, "padding"))
    yield Trial("for a batch of one", partial(make, "padding", 0.0, torch.float32, 1))
    yield Trial("with smoothing", partial(make, "padding", 0.1))
    yield Trial("where some words are not asked for", partial(make, "chosen"))
    yield Trial("with smoothing, where some words are not asked for", partial(make, "chosen", 0.2))
    yield Trial("where logits at padding are no numbers", partial(make, "nan"))
    yield Trial("in bfloat16", partial(make, "padding", 0.1, torch.bfloat16), rough)


@trials_of(loss.textbook_loss)
def _textbook_loss() -> Iterator[Trial]:
    def make(rows: int, size: float, smoothing: float, dtype: Any = torch.float32) -> tuple[Any, ...]:
        return (size * torch.randn(rows, 9)).to(dtype).requires_grad_(), torch.randint(0, 9, (rows,)), smoothing

    for words, rows, size in (
        ("for five words", 5, 2.0), ("for one", 1, 2.0), ("for none", 0, 2.0), ("for large logits", 6, 300.0),
    ):  # fmt: skip
        yield Trial(words, partial(make, rows, size, 0.0))
        yield Trial(f"{words}, with smoothing", partial(make, rows, size, 0.1))
    yield Trial("in bfloat16", partial(make, 40, 3.0, 0.0, torch.bfloat16))


@trials_of(one_sentence.take_step)
def _take_step() -> Iterator[Trial]:
    """One step of an optimizer at work; the gradients that are left after it do not count."""

    def make(kind: Any, left: bool) -> tuple[Any, ...]:
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = kind(model.parameters(), lr=0.1)
        x = torch.randn(5, 3)
        for _ in range(2):  # the state of an optimizer at work
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        if left:
            model(2 * x).sum().backward()
        else:
            optimizer.zero_grad()
        return optimizer, model(x).mean()

    def seen(_: Any, optimizer: Any, __: Any) -> Any:
        return {"the weights": [one.detach().clone() for group in optimizer.param_groups for one in group["params"]]}

    for name, kind in (("SGD", partial(torch.optim.SGD, momentum=0.9)), ("Adam", torch.optim.Adam)):
        yield Trial(f"with {name}", partial(make, kind, False), seen)
        yield Trial(f"with {name}, where gradients of before are left", partial(make, kind, True), seen)


@trials_of(optim.set_rate)
def _set_rate() -> Iterator[Trial]:
    def make(rate: float, ratios: tuple[float | None, ...]) -> tuple[Any, ...]:
        groups: list[dict[str, Any]] = [{"params": [nn.Parameter(torch.zeros(1))]} for _ in ratios]
        for group, ratio in zip(groups, ratios, strict=True):
            group.update({} if ratio is None else {"lr_ratio": ratio})
        return torch.optim.SGD(groups, lr=0.5), rate

    def seen(_: Any, optimizer: Any, __: float) -> Any:
        return {f"group {n}": [g["lr"], g.get("lr_ratio")] for n, g in enumerate(optimizer.param_groups, start=1)}

    for rate in (0.0, 1e-4, 0.3):
        yield Trial(f"for a rate of {rate}", partial(make, rate, (None,)), seen)
        yield Trial(f"for a rate of {rate} and two groups", partial(make, rate, (None, None)), seen)
        yield Trial(f"for a rate of {rate} and groups with a ratio", partial(make, rate, (None, 0.1, 3.0)), seen)


# -- search --------------------------------------------------------------------------------------------------------


@trials_of(kv_cache.SharedKVCache.reorder)
def _reorder() -> Iterator[Trial]:
    def make(sentences: int, beam: int, rows: list[int], kept: list[int] | None) -> tuple[Any, ...]:
        slots = 3 * beam
        key, value = torch.randn(sentences, 2, slots, 4), torch.randn(sentences, 2, slots, 4)
        table = kv_cache.Table(key, value, torch.arange(3).repeat_interleave(beam), slots)
        cache = kv_cache.SharedKVCache(table, torch.rand(sentences, beam, slots) < 0.5, slots, 3)
        return cache, torch.tensor(rows), None if kept is None else torch.tensor(kept)

    yield Trial("where all stay", partial(make, 2, 3, [0, 1, 2, 3, 4, 5], None))
    yield Trial("where two change places", partial(make, 2, 3, [1, 0, 2, 3, 5, 4], None))
    yield Trial("where one goes on twice", partial(make, 2, 3, [2, 0, 2, 5, 5, 5], None))
    yield Trial("where a search begins", partial(make, 2, 1, [0, 0, 0, 1, 1, 1], None))
    yield Trial("where a beam becomes narrower", partial(make, 2, 3, [2, 4], None))
    yield Trial("where a sentence ends", partial(make, 3, 2, [1, 0, 5, 5], [0, 2]))
    yield Trial("where sentences change places", partial(make, 3, 2, [5, 4, 0, 1], [2, 0]))


@trials_of(decoding.banned_ids)
def _banned_ids() -> Iterator[Trial]:
    for ban_unk in (True, False):
        for shortest in (0, 1, 4):
            config = decoding.DecodingConfig(ban_unk=ban_unk, min_length=shortest)
            for length in (1, 2, 4, 5, 30):
                words = f"for token {length} of at least {shortest}{'' if ban_unk else ', with <unk>'}"
                yield Trial(words, partial(_given, config, length), lambda ids, *_: sorted(ids))
