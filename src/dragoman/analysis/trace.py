"""A batch followed through a model, tensor by tensor, under the titles of the nine steps."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.analysis import NINE_STEPS
from dragoman.data.batch import Batch, collate
from dragoman.decoding.search import DecodingConfig, search
from dragoman.errors import Error
from dragoman.inference.attention_maps import labels
from dragoman.models.base import Seq2SeqModel
from dragoman.nn.recurrent import RecurrentLayer, RecurrentStack
from dragoman.nn.recurrent_attention import RecurrentAttention
from dragoman.text.tokenizers.pair import TokenizerPair
from dragoman.training.loss import token_loss

STEPS = [f"{number} {title.lower()}" for number, title in enumerate(NINE_STEPS, start=1)]

METHODS: dict[type[nn.Module], tuple[str, ...]] = {
    RecurrentLayer: ("project_input", "read", "next_state"),
    RecurrentStack: ("next_state",),
    RecurrentAttention: ("project_keys", "attend"),
}
"""Methods of modules that are called beside `forward`."""


@dataclass(frozen=True)
class TraceRow:
    """A tensor or a call."""

    step: str
    name: str
    origin: str
    shape: str = ""
    dtype: str = ""
    depth: int = 0


@dataclass
class _Call:
    """One call of a module, with the calls inside of it."""

    path: str
    kind: str
    inputs: str
    output: str = ""
    dtype: str = ""
    depth: int = 0
    inner: list["_Call"] = field(default_factory=list)

    def signature(self) -> tuple[Any, ...]:
        """Classes and shapes. Calls of equal signature differ in their numbers only."""
        return self.kind, self.inputs, self.output, [call.signature() for call in self.inner]

    def is_like(self, other: "_Call") -> bool:
        return self.path != other.path and self.signature() == other.signature()


def trace(
    model: Seq2SeqModel,
    tokenizers: TokenizerPair,
    pairs: Sequence[tuple[str, str]],
    *,
    label_smoothing: float = 0.0,
    every_call: bool = False,
) -> list[TraceRow]:
    """Follow sentence pairs, given normalised, through the nine steps of a translation model.

    Calls that repeat others (a layer like its neighbour, a step like the last) are left out unless `every_call`.
    Clears the gradients of the model. Raises DragomanError for a blank sentence.
    """
    ids = [(tokenizers.src.encode(src), tokenizers.tgt.encode(tgt)) for src, tgt in pairs]
    if not all(src and tgt for src, tgt in ids):
        raise Error.BLANK("a sentence to trace must not be blank")
    device = next(model.parameters()).device
    batch = collate(ids).to(device)
    model.eval()
    rows = _text_rows(pairs, tokenizers, ids) + _batch_rows(batch)
    return rows + _model_rows(model, batch, label_smoothing, every_call) + _search_rows(model, batch, tokenizers)


def _text_rows(
    pairs: Sequence[tuple[str, str]], tokenizers: TokenizerPair, ids: Sequence[tuple[list[int], list[int]]]
) -> list[TraceRow]:
    rows = [TraceRow(STEPS[0], f"pair {n}", f"{src} → {tgt}") for n, (src, tgt) in enumerate(pairs)]
    for column, (side, tokenizer) in enumerate((("src", tokenizers.src), ("tgt", tokenizers.tgt))):
        for number, sentence in enumerate(pair[column] for pair in ids):
            shape = f"({len(sentence)})"
            pieces = " ".join(labels(tokenizer, sentence))
            rows.append(TraceRow(STEPS[1], f"{side} pieces {number}", pieces, shape))
            rows.append(TraceRow(STEPS[2], f"{side} ids {number}", " ".join(map(str, sentence)), shape, "int"))
    return sorted(rows, key=lambda row: row.step)


def _batch_rows(batch: Batch) -> list[TraceRow]:
    origins = {
        "src": "source ids, </s>, then <pad>",
        "src_mask": "src != <pad>: True = a real token",
        "tgt_in": "<s>, target ids, then <pad>: what the decoder reads",
        "tgt_out": "target ids, </s>, then <pad>: what it must say",
        "tgt_mask": "tgt_out != <pad>",
    }
    pads = int((~batch.src_mask).sum() + (~batch.tgt_mask).sum())
    positions = batch.src.numel() + batch.tgt_out.numel()
    return [
        TraceRow(STEPS[3], "pairs", f"{len(batch)} together, each side as long as its longest"),
        TraceRow(STEPS[3], "positions", f"{positions}, of which {pads} are padding"),
        *(TraceRow(STEPS[4], name, text, *_shape_and_dtype(getattr(batch, name))) for name, text in origins.items()),
    ]


def _model_rows(model: Seq2SeqModel, batch: Batch, label_smoothing: float, every_call: bool) -> list[TraceRow]:
    """Steps 6 and 7: every module in the order in which it is called, then the loss and its gradients."""
    with _recorded(model) as encoder_calls:
        memory = model.encode(batch.src, batch.src_mask)
    rows = _call_rows(STEPS[5], encoder_calls, every_call)
    rows += [TraceRow(STEPS[5], name, "what encode returns", *tensor) for name, tensor in _tensors("memory", memory)]
    with _recorded(model) as decoder_calls:
        logits = model.decode(batch.tgt_in, memory)
    rows += _call_rows(STEPS[5], decoder_calls, every_call)
    rows += _map_rows(model, batch, every_call)
    loss = token_loss(logits, batch.tgt_out, batch.tgt_mask, label_smoothing)
    mean = loss / batch.num_tokens
    rows.append(TraceRow(STEPS[5], "logits", "what decode returns: a score for each token", *_shape_and_dtype(logits)))
    origin = f"token_loss(logits, tgt_out, tgt_mask), label_smoothing {label_smoothing:g}: {loss.item():.3f} nats"
    rows.append(TraceRow(STEPS[5], "loss", origin, *_shape_and_dtype(loss)))

    model.zero_grad()
    mean.backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm().item()
    model.zero_grad()
    tokens = f"loss / {batch.num_tokens} real target tokens: {mean.item():.3f} nats"
    if not label_smoothing:  # a smoothed loss is no probability's
        tokens += f", perplexity {mean.exp().item():,.1f}"
    rows.append(TraceRow(STEPS[6], "mean loss", tokens, *_shape_and_dtype(mean)))
    many = f"{len(gradients)} tensors shaped as their parameters, {sum(g.numel() for g in gradients):,} numbers in all"
    rows.append(TraceRow(STEPS[6], "gradients", f"{many}, of norm {norm:.3g}"))
    return rows


@torch.inference_mode()
def _map_rows(model: Seq2SeqModel, batch: Batch, every_call: bool) -> list[TraceRow]:
    """Attention weights, computed inside of the calls above: of every layer with `every_call`, else of one layer of
    each kind."""
    rows: dict[str, TraceRow] = {}
    for name, weights in model.attention_maps(batch.src, batch.src_mask, batch.tgt_in).items():
        kind = name if every_call else f"{name.split('.')[0]} {name.split('.')[-1]}"
        origin = "inside its attention: for each head, how much each query (row) looks at each key (column)"
        rows.setdefault(kind, TraceRow(STEPS[5], f"{name} weights", origin, *_shape_and_dtype(weights)))
    return list(rows.values())


@torch.inference_mode()
def _search_rows(model: Seq2SeqModel, batch: Batch, tokenizers: TokenizerPair) -> list[TraceRow]:
    """Steps 8 and 9, greedily: the state before the first token and after it, and the text that comes out."""
    state = model.start(model.encode(batch.src, batch.src_mask))
    logits, after = model.decode_step(batch.tgt_in[:, 0], state)
    rows = [TraceRow(STEPS[7], "prev", "<s> for each sentence", *_shape_and_dtype(batch.tgt_in[:, 0]))]
    before = dict(_tensors("state", state))
    for name, (shape, dtype) in _tensors("state", after):
        shape_before = before.get(name, ("", ""))[0]
        origin = "of this shape at every step" if shape_before == shape else f"grew from {shape_before}"
        rows.append(TraceRow(STEPS[7], name, origin, shape, dtype))
    rows.append(TraceRow(STEPS[7], "logits", "decode_step(prev, state): the next", *_shape_and_dtype(logits)))
    searched = search(model, batch.src, batch.src_mask, DecodingConfig(beam_size=1))
    for number, [hypothesis, *_] in enumerate(searched):
        ids = hypothesis.ids
        if tokenizers.tgt.vocab_size == model.tgt_vocab_size:
            text = tokenizers.tgt.decode(ids) or "(nothing)"
        else:
            text = f"{' '.join(map(str, ids[:10]))} ...: ids that no tokenizer has been learnt for yet"
        rows.append(TraceRow(STEPS[8], f"hypothesis {number}", text, f"({len(ids)})"))
    return rows


# --- recording -------------------------------------------------------------------------------------------------------


@contextmanager
def _recorded(model: nn.Module) -> Iterator[list[_Call]]:
    """Record the calls of a model's modules, outermost first."""
    root = _Call("", "", "")
    stack = [root]

    def record(module: nn.Module, name: str, path: str) -> None:
        """Replace a method of this one module."""
        method = getattr(module, name)

        def recorded(*args: Any, **kwargs: Any) -> Any:
            inputs = ", ".join(shape for _, (shape, _) in _tensors("", [*args, *kwargs.values()]))
            call = _Call(path, type(module).__name__, inputs, depth=len(stack) - 1)
            stack[-1].inner.append(call)
            stack.append(call)
            output = method(*args, **kwargs)
            stack.pop()
            tensors = [tensor for _, tensor in _tensors("", output)]
            call.output = ", ".join(shape for shape, _ in tensors)
            call.dtype = ", ".join(dict.fromkeys(dtype for _, dtype in tensors))
            return output

        module.__dict__[name] = recorded
        undo.callback(module.__dict__.pop, name)

    with ExitStack() as undo:
        for path, module in model.named_modules():
            if path:
                record(module, "forward", path)
            for method in (name for kind, names in METHODS.items() if isinstance(module, kind) for name in names):
                record(module, method, f"{path}.{method}()")
        yield root.inner


def _call_rows(step: str, calls: Sequence[_Call], every_call: bool) -> list[TraceRow]:
    """A row for each call and the calls inside it; repetitions only if `every_call`."""
    rows: list[TraceRow] = []
    before: _Call | None = None
    position = 0
    while position < len(calls):
        size, times = (1, 1) if every_call else _cycle(calls, position)
        for call in calls[position : position + size]:
            if not every_call and before is not None and call.inner and call.is_like(before):
                origin, shape, inner = f"{call.kind}, like {before.path}", call.output, []
            else:
                shape = f"{call.inputs} → {call.output}" if call.inputs else call.output
                origin, inner, before = call.kind, call.inner, call
            if times > 1 and call is calls[position]:
                following = ("this call", "this and the next call", f"this and the next {size - 1} calls")
                origin += f" ({following[min(size, 3) - 1]}: {times} times)"
            rows.append(TraceRow(step, call.path, origin, shape, call.dtype, call.depth))
            rows += _call_rows(step, inner, every_call)
        position += size * times
    return rows


def _cycle(calls: Sequence[_Call], start: int) -> tuple[int, int]:
    """(length, times) of the shortest run of calls from `start` that comes again at once; (1, 1) for none."""
    for size in range(1, (len(calls) - start) // 2 + 1):
        run = [(call.path, call.signature()) for call in calls[start : start + size]]
        times, place = 1, start + size
        while [(call.path, call.signature()) for call in calls[place : place + size]] == run:
            times, place = times + 1, place + size
        if times > 1:
            return size, times
    return 1, 1


def _tensors(name: str, value: Any) -> Iterator[tuple[str, tuple[str, str]]]:
    """(name, (shape, dtype)) of every tensor in a nest of dataclasses, sequences and mappings."""
    if isinstance(value, Tensor):
        yield name, _shape_and_dtype(value)
    elif dataclasses.is_dataclass(value):
        for item in dataclasses.fields(value):
            yield from _tensors(f"{name}.{item.name}".lstrip("."), getattr(value, item.name))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _tensors(f"{name}.{key}".lstrip("."), item)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _tensors(f"{name}[{number}]" if name else "", item)


def _shape_and_dtype(tensor: Tensor) -> tuple[str, str]:
    return f"({', '.join(map(str, tensor.shape))})", str(tensor.dtype).removeprefix("torch.")


# --- as text ---------------------------------------------------------------------------------------------------------


def trace_table(rows: Sequence[TraceRow]) -> str:
    """The rows as text, a heading for each of the nine steps; a module is named from within the one around it."""
    lines: list[str] = []
    for step, group in itertools.groupby(rows, key=lambda row: row.step):
        step_rows = list(group)
        names = _short_names(step_rows)
        name_width = max(map(len, names))
        shape_width = min(40, max(len(row.shape) for row in step_rows))
        lines += [*([""] if lines else []), step]
        for row, name in zip(step_rows, names, strict=True):
            shape = [f"{row.shape:<{shape_width}}", f"{row.dtype:<7}"] if shape_width else []
            lines.append("  ".join(["", f"{name:<{name_width}}", *shape, row.origin]).rstrip())
    return "\n".join(lines)


def _short_names(rows: Sequence[TraceRow]) -> list[str]:
    """Names indented by the depth of the call, relative to the nearest enclosing call."""
    names: list[str] = []
    around: list[str] = []
    for row in rows:
        del around[row.depth :]
        outer = next((path for path in reversed(around) if row.name.startswith(f"{path}.")), None)
        names.append("  " * row.depth + (row.name.removeprefix(f"{outer}.") if outer else row.name))
        # A call inside of a method is named from within the module.
        around.append(row.name.rpartition(".")[0] if row.name.endswith("()") else row.name)
    return names
