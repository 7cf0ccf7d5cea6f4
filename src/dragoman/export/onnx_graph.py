"""The two graphs of an ONNX export, traced from the model's own code.

`encoder.onnx` reads a batch and gives the decoder's first state; `step.onnx` takes a token and a state and gives the
logits and the next state. A state is a list of tensors there: the leaves of the model's own state class, each called
by the way to it (`past.0.key`). Which of them a step renews, and which of their axes are free, is not written down for
each family but seen, by running the model twice with batches of unlike sizes.
"""

import contextlib
import copy
import dataclasses
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import jaxtyping
import torch
from torch import Tensor, nn

from dragoman.backends.accelerate import textbook_class
from dragoman.backends.packed_linear import PackedLinear
from dragoman.config import settings
from dragoman.models.base import DecoderState, Seq2SeqModel
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.positions import LearnedPositions, SinusoidalPositions, sinusoidal_rates
from dragoman.nn.recurrent import GRULayer, LSTMLayer, RecurrentLayer, State

OPSET = 17
"""The first with LayerNormalization; what is newer than it, older runtimes cannot read."""

NEXT = "next."
"""Before the name of a state's tensor: what a step has made of it."""


@settings
class StateTensor:
    """One tensor of a decoder's state."""

    name: str
    dtype: Literal["float32", "bool"]
    axes: tuple[int | str, ...]
    """Sizes, or the names of free ones: `sentences`, `rows`, `src_len`, and `past_len`, which is 0 at the beginning."""
    renewed: bool
    """True if a step gives it anew. It then has a row for each hypothesis; what stays has one for each sentence, for
    the rows of a sentence stand together, equally many for each."""


def write_graphs(model: Seq2SeqModel, encoder: Path, step: Path) -> tuple[StateTensor, ...]:
    """Trace both graphs into two files: what the state is made of, in the order of the graphs' inputs and outputs."""
    twin = _traceable(model)
    with torch.no_grad(), _tracing():
        first = _Example(twin, sentences=3, src_len=5, past_len=4)
        tensors = _described(first, _Example(twin, sentences=2, src_len=7, past_len=3))
        names = [tensor.name for tensor in tensors]
        batch = {0: "sentences", 1: "src_len"}
        _export(
            _Encoder(twin, tensors),
            (first.src, first.src_mask),
            encoder,
            inputs={"src": batch, "src_mask": batch},
            outputs={tensor.name: _free_axes(tensor, rows="sentences", past_len=None) for tensor in tensors},
        )
        renewed = [tensor for tensor in tensors if tensor.renewed]
        _export(
            _Step(twin, first.state, names, [tensor.name for tensor in renewed]),
            (first.prev, *(first.leaves[name] for name in names)),
            step,
            inputs={"prev": {0: "rows"}, **{tensor.name: _free_axes(tensor) for tensor in tensors}},
            outputs={
                "logits": {0: "rows"},
                **{NEXT + tensor.name: _free_axes(tensor, past_len="past_len + 1") for tensor in renewed},
            },
        )
    return tensors


# -- a state as a list of tensors --------------------------------------------------------------------------------------


def leaves(state: Any, name: str = "") -> dict[str, Tensor]:
    """The tensors of a state, which is made of dataclasses, tuples, tensors and None, by the way to each."""
    if isinstance(state, Tensor):
        return {name: state}
    if state is None:
        return {}
    if isinstance(state, tuple):
        parts = [(str(index), part) for index, part in enumerate(state)]
    else:
        parts = [(field.name, getattr(state, field.name)) for field in dataclasses.fields(state)]
    tensors: dict[str, Tensor] = {}
    for key, part in parts:
        tensors |= leaves(part, f"{name}.{key}" if name else key)
    return tensors


def _with_tensors(state: Any, new: Mapping[int, Tensor]) -> Any:
    """The same state with each tensor replaced; replacements are looked up by the `id` of the old tensor."""
    if isinstance(state, Tensor):
        return new[id(state)]
    if state is None:
        return None
    if isinstance(state, tuple):
        return tuple(_with_tensors(part, new) for part in state)
    fields = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
    return dataclasses.replace(state, **{name: _with_tensors(part, new) for name, part in fields.items()})


class _Example:
    """A batch and the state that a decoder has after some steps with two rows for each sentence."""

    def __init__(self, model: Seq2SeqModel, *, sentences: int, src_len: int, past_len: int) -> None:
        self.sizes = {sentences: "sentences", 2 * sentences: "rows", src_len: "src_len", past_len: "past_len"}
        assert len(self.sizes) == 4, "sizes that can be told apart"
        self.src = torch.ones(sentences, src_len, dtype=torch.long)
        self.src_mask = torch.ones(sentences, src_len, dtype=torch.bool)
        self.prev = torch.ones(2 * sentences, dtype=torch.long)
        self.state: DecoderState = model.start(model.encode(self.src, self.src_mask))
        # What is one tensor now (the keys of dot attention are the memory itself) is one in the graphs.
        self.names = {id(tensor): name for name, tensor in reversed(leaves(self.state).items())}.values()
        self.state = self.state.reorder(torch.arange(sentences).repeat_interleave(2))
        for _ in range(past_len):
            _, self.state = model.decode_step(self.prev, self.state)
        self.leaves = leaves(self.state)
        after = leaves(model.decode_step(self.prev, self.state)[1])
        self.renewed = {name for name, tensor in self.leaves.items() if after[name] is not tensor}


def _described(first: _Example, second: _Example) -> tuple[StateTensor, ...]:
    """The tensors of both examples' states. An axis that has two sizes in them is free."""
    return tuple(
        StateTensor(
            name=name,
            dtype=cast(Any, str(tensor.dtype).removeprefix("torch.")),
            axes=tuple(
                size if size == other else first.sizes[size]
                for size, other in zip(tensor.shape, second.leaves[name].shape, strict=True)
            ),
            renewed=name in first.renewed,
        )
        for name, tensor in first.leaves.items()
        if name in first.names
    )


def _free_axes(tensor: StateTensor, **names: str | None) -> dict[int, str]:
    """The free axes of a tensor, by number. `names` gives some axes another name; an axis with the name None is
    fixed."""
    axes = {axis: names.get(name, name) for axis, name in enumerate(tensor.axes) if isinstance(name, str)}
    return {axis: name for axis, name in axes.items() if name is not None}


# -- tracing -----------------------------------------------------------------------------------------------------------


class _Encoder(nn.Module):
    """(src, src_mask) to the tensors of the first state."""

    def __init__(self, model: Seq2SeqModel, tensors: tuple[StateTensor, ...]) -> None:
        super().__init__()
        self.model, self.tensors = model, tensors

    def forward(self, src: Tensor, src_mask: Tensor) -> tuple[Tensor, ...]:
        state = leaves(self.model.start(self.model.encode(src, src_mask)))
        for tensor in self.tensors:
            if "past_len" in tensor.axes:
                # Said as it is: runtimes refuse to give a product of no positions another shape.
                sizes = [{"rows": src.size(0), "past_len": 0}.get(str(axis), axis) for axis in tensor.axes]
                state[tensor.name] = torch.zeros(cast(Any, sizes))
        return tuple(state[tensor.name] for tensor in self.tensors)


class _Step(nn.Module):
    """(prev, the tensors of a state) to the logits and what is new of the next state."""

    def __init__(self, model: Seq2SeqModel, state: Any, names: list[str], renewed: list[str]) -> None:
        super().__init__()
        self.model, self.state, self.names, self.renewed = model, state, names, renewed

    def forward(self, prev: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        old = leaves(self.state)
        new = {id(old[name]): tensor for name, tensor in zip(self.names, tensors, strict=True)}
        logits, after = self.model.decode_step(prev, _with_tensors(self.state, new))
        state = leaves(after)
        return logits, *(state[name] for name in self.renewed)


@contextlib.contextmanager
def _tracing() -> Iterator[None]:
    """While a model is traced, what it calls a size is a tensor that stands for one, so no shape can be checked, as
    tests do elsewhere."""
    was_disabled = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        with warnings.catch_warnings():
            # Of sizes that decide something: numbers of heads, and which of two equal kernels is the faster one.
            warnings.simplefilter("ignore", torch.jit.TracerWarning)
            # PyTorch's newer exporter needs one more package, and to be told how rows and sentences depend on each
            # other, for which it has no words. Its older one is said to go: then this file is what has to change.
            for of_the_exporter in ("You are using the legacy TorchScript-based ONNX", "The feature will be removed"):
                warnings.filterwarnings("ignore", of_the_exporter, DeprecationWarning)
            yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", was_disabled)


def _export(
    module: nn.Module,
    example: tuple[Tensor, ...],
    path: Path,
    *,
    inputs: dict[str, dict[int, str]],
    outputs: dict[str, dict[int, str]],
) -> None:
    """Trace `module` into a file. `inputs` and `outputs`: names, and the names of their free axes."""
    torch.onnx.export(
        module.eval(),
        example,
        str(path),
        input_names=list(inputs),
        output_names=list(outputs),
        dynamic_axes={**inputs, **outputs},
        opset_version=OPSET,
        dynamo=False,
    )


# -- what a graph says otherwise ---------------------------------------------------------------------------------------


def _traceable(model: Seq2SeqModel) -> Seq2SeqModel:
    """A copy on the CPU in which the modules that decide something in Python say it in operators."""
    twin = copy.deepcopy(model).cpu().eval()
    for module in twin.modules():
        if (kind := textbook_class(type(module))) in OPERATORS:
            module.__class__ = OPERATORS[kind]
    return twin


class SinusoidalOperators(SinusoidalPositions):
    """The table computed where it is needed, so it need not grow: cos(x) is sin(x + pi / 2)."""

    def forward(self, start: int, length: int) -> Tensor:
        rates = sinusoidal_rates(self.d_model, base=self.base, layout=self.layout).tolist()
        sines, cosines = [(rate, 0.0) for rate in rates], [(rate, math.pi / 2) for rate in rates]
        if self.layout == "interleaved":
            columns = [column for pair in zip(sines, cosines, strict=True) for column in pair]
        else:
            columns = sines + cosines
        rate, phase = torch.tensor(columns[: self.d_model], dtype=torch.float64).unbind(1)
        position = torch.arange(length).double()[:, None] + start + self.offset
        return (position * rate + phase).sin().float()


class LearnedOperators(LearnedPositions):
    """Looked up one by one: a position beyond the last is an error of the runtime, where a slice would be empty."""

    def forward(self, start: int, length: int) -> Tensor:
        return self.embedding(torch.arange(length) + start)


class AttentionOperators(MultiHeadAttention):
    """The exporter takes the sizes that `unflatten` gives for those of the example, and whatever follows from them."""

    def split_heads(self, x: Tensor) -> Tensor:
        heads = int(x.size(2)) // self.d_head
        return x.view(x.size(0), x.size(1), heads, self.d_head).transpose(1, 2)  # (batch, heads, len, d_head)


class RMSNormOperators(nn.RMSNorm):
    """Its equation; the opset has no operator for it."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + cast(float, self.eps)) * self.weight


class RecurrentOperator(torch.autograd.Function):
    """ONNX's LSTM or GRU over padded sentences: a place in the graph, which computes nothing here.

    Like `RecurrentLayer.read` it leaves the state as it is at padding, as long as that stands at the end of a sentence;
    its outputs there are zeros, which nothing looks at.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, w: Tensor, r: Tensor, b: Tensor, lengths: Tensor, kind: str, size: int, direction: str
    ) -> tuple[Tensor, ...]:
        src_len, sentences, _ = x.shape
        last = [x.new_zeros(1, sentences, size) for _ in range(2 if kind == "LSTM" else 1)]
        return x.new_zeros(src_len, 1, sentences, size), *last

    @staticmethod
    def symbolic(
        g: Any, x: Any, w: Any, r: Any, b: Any, lengths: Any, kind: str, size: int, direction: str
    ) -> tuple[Any, ...]:
        # PyTorch's GRU multiplies by its reset gate after the product with the hidden state, not before.
        attributes: dict[str, Any] = {"linear_before_reset_i": 1} if kind == "GRU" else {}
        outputs = 3 if kind == "LSTM" else 2
        values = g.op(
            kind, x, w, r, b, lengths, hidden_size_i=size, direction_s=direction, outputs=outputs, **attributes
        )
        return tuple(values)


def _read(
    layer: RecurrentLayer, x: Tensor, mask: Tensor, *, kind: str, order: tuple[int, ...], reverse: bool
) -> tuple[Tensor, State]:
    """`RecurrentLayer.read` by ONNX's operator, which has the gates in another `order`."""
    size = layer.fast.hidden_size
    w, r, *biases = (
        torch.cat([weight[gate * size : (gate + 1) * size] for gate in order])[None] for weight in layer._weights()
    )
    outputs, *last = RecurrentOperator.apply(
        x.masked_fill(~mask[:, :, None], 0.0).transpose(0, 1),  # (src_len, sentences, d_input)
        w,
        r,
        torch.cat(biases, dim=1),
        mask.sum(dim=1).int(),
        kind,
        size,
        "reverse" if reverse else "forward",
    )  # (src_len, 1 direction, sentences, d_state), and (1 direction, sentences, d_state) for each part of the state
    return outputs[:, 0].transpose(0, 1), tuple(part[0] for part in last)


class LSTMOperators(LSTMLayer):
    """PyTorch has the gates as input, forget, candidate, output; ONNX as input, output, forget, candidate."""

    def read(self, x: Tensor, mask: Tensor, *, reverse: bool = False) -> tuple[Tensor, State]:
        return _read(self, x, mask, kind="LSTM", order=(0, 3, 1, 2), reverse=reverse)


class GRUOperators(GRULayer):
    """PyTorch has the gates as reset, update, candidate; ONNX as update, reset, candidate."""

    def read(self, x: Tensor, mask: Tensor, *, reverse: bool = False) -> tuple[Tensor, State]:
        return _read(self, x, mask, kind="GRU", order=(1, 0, 2), reverse=reverse)


OPERATORS: dict[type[nn.Module], type[nn.Module]] = {
    SinusoidalPositions: SinusoidalOperators,
    PackedLinear: nn.Linear,
    LearnedPositions: LearnedOperators,
    MultiHeadAttention: AttentionOperators,
    nn.RMSNorm: RMSNormOperators,
    LSTMLayer: LSTMOperators,
    GRULayer: GRUOperators,
}
"""Modules and what stands for them in a graph: the same parameters in other words."""
