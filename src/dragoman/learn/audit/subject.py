"""A learner's model as the audit calls it: ids in, logits out, whatever its own signature is."""

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from dragoman.errors import Error
from dragoman.learn import mini, module_file
from dragoman.learn.audit.trace import Call, Recorder
from dragoman.learn.language import message
from dragoman.learn.limited import reason

SRC_VOCAB, TGT_VOCAB = 19, 23
BATCH, SRC_LEN, TGT_LEN = 3, 11, 7
"""Sizes that are no layer's, so that a dimension says what it counts."""
SPECIALS = {"pad": 0, "bos": 2, "eos": 3}
SPELLINGS = {"pad": ("pad",), "bos": ("bos", "sos", "start"), "eos": ("eos", "end")}

TEMPLATE = '''"""How `dragoman learn audit MODULE.py --adapter {name}` calls my model. Delete what you do not need."""

from {module} import *

PAD, BOS, EOS = 0, 2, 3  # ids of padding, of the start and of the end of a target


def build(src_vocab, tgt_vocab):
    """Make a small fresh model: 2 layers, 32 to 64 features."""
    raise NotImplementedError


def forward(model, src, tgt_in):
    """Compute the logits, (batch, tgt_len, tgt_vocab), as in training.

    src is (batch, src_len) and ends with EOS, then PAD; tgt_in is (batch, tgt_len) and begins with BOS.
    """
    return model(src, tgt_in)


# Instead of `forward`, the two halves:
#
# def encode(model, src):
#     return memory
#
# def decode(model, tgt_in, memory, src):
#     return logits
#
# If you have them:
#
# def loss(logits, tgt_out):
#     return one number, the mean over real tokens
#
# def translate(model, src):
#     return ids of the translation of one sentence, src is (1, src_len)
'''


class NoModel(Exception):
    """A model cannot be built or called; its text says why."""


@dataclass
class Subject:
    """The model and the functions beside it."""

    path: Path
    space: dict[str, Any]
    """Names of the module; the adapter's names come first."""
    model: nn.Module
    specials: dict[str, int]
    call: Callable[[Tensor, Tensor], Any]
    src_vocab: int
    time_first: bool = False
    is_behind: bool = False
    """True if the output at a place is the prediction of that token, not of the next one: its first one is zeros."""
    same_length: bool = False
    """True if it runs only where source and target are equally long."""
    dtype: torch.dtype = torch.float64
    building: list[Call] = field(default_factory=list)

    @property
    def tolerance(self) -> float:
        return 1e-6 if self.dtype == torch.float64 else 1e-3

    def logits(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """The logits, (batch, tgt_len, vocab), of ids (batch, length)."""
        if self.is_behind:
            tgt_in = torch.cat([tgt_in, tgt_in[:, -1:]], dim=1)
        with of_type(self.dtype), plain_operations():
            torch.manual_seed(0)
            output = self.call(src.T, tgt_in.T) if self.time_first else self.call(src, tgt_in)
        logits = first_logits(output)
        if self.time_first:
            logits = logits.transpose(0, 1)
        return logits[:, 1:] if self.is_behind else logits

    @torch.no_grad()
    def output(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        return self.logits(src, tgt_in).detach().clone()

    @torch.no_grad()
    def traced(self, src: Tensor, tgt_in: Tensor) -> tuple[Tensor, list[Call]]:
        """The logits, and the record of the run."""
        with Recorder(self.path.resolve().parent) as recorder:
            logits = self.logits(src, tgt_in)
        return logits.detach().clone(), recorder.calls

    def function(self, *names: str) -> tuple[str, Callable[..., Any]] | None:
        """The first of these functions that the learner has."""
        for name in names:
            value = self.space.get(name)
            if callable(value) and not isinstance(value, type):
                return name, value
        return None

    # -- inputs --------------------------------------------------------------------------------------------------------

    def src(self, length: int = SRC_LEN, rows: int = BATCH, seed: int = 1) -> Tensor:
        """Random sources without padding, which end with </s>."""
        ids = self._words(rows, length, self.src_vocab, seed)
        ids[:, -1] = self.specials["eos"]
        return ids

    def tgt(self, length: int = TGT_LEN, rows: int = BATCH, seed: int = 2) -> Tensor:
        """Random targets as the decoder reads them: <s>, then words."""
        ids = self._words(rows, length, TGT_VOCAB, seed)
        ids[:, 0] = self.specials["bos"]
        return ids

    def _words(self, rows: int, length: int, vocab: int, seed: int) -> Tensor:
        words = torch.tensor([one for one in range(4, vocab) if one not in self.specials.values()])
        generator = torch.Generator().manual_seed(seed)
        return words[torch.randint(len(words), (rows, length), generator=generator)]

    def padded(self, ids: Tensor, length: int) -> Tensor:
        """Rows of the same ids with padding behind them."""
        return torch.cat([ids, torch.full((len(ids), length - ids.size(1)), self.specials["pad"])], dim=1)


@contextmanager
def plain_operations() -> Iterator[None]:
    """Compute attention and LSTMs in their steps: a fused operation hides what is in it."""
    fast, (fused, *_) = torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.set_flags(False)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        torch.backends.mkldnn.set_flags(fused)


@contextmanager
def of_type(dtype: torch.dtype) -> Iterator[None]:
    """Make numbers of this type where the code names none."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def first_logits(output: Any) -> Tensor:
    """The first tensor of three dimensions in what a model returns."""
    for one in output if isinstance(output, tuple | list) else (output,):
        if isinstance(one, Tensor) and one.dim() == 3:
            return one
    text = "it returns {kind}, and logits (batch, tgt_len, tgt_vocab) are needed"
    raise NoModel(message(text, kind=type(output).__name__))


def subject_of(path: Path, adapter: Path | None, hint: str | None = None) -> Subject:
    """The model of a module, ready to be called. Raises DragomanError, with `hint`, where it cannot be called."""
    space = dict(vars(module_file.load(path)))
    if adapter is not None:
        space |= vars(module_file.load(adapter))
    specials = _specials(space)
    problem = ""
    for dtype in (torch.float64, torch.float32):
        for src_vocab in (SRC_VOCAB, TGT_VOCAB):  # some models have one vocabulary
            try:
                with of_type(dtype), Recorder(path.resolve().parent) as recorder:
                    torch.manual_seed(1)
                    model = _builder(space)(src_vocab, TGT_VOCAB)
                model = (model.double() if dtype == torch.float64 else model).eval()
                subject = Subject(path, space, model, specials, _no_call, src_vocab, dtype=dtype)
                subject.building = recorder.calls
                _set_call(subject)
                return subject
            except Exception as error:
                line = module_file.line_in(error, path)
                why = str(error) if isinstance(error, NoModel) else reason(error)
                problem = problem or (f"line {line}: " if line else "") + why
    if path.name == mini.PATH.name:
        mini.check_whole(path)
    raise Error.WRONG_ANSWER(message("the model cannot be called: {problem}", problem=problem), hint, file=path)


def _no_call(src: Tensor, tgt_in: Tensor) -> Any:
    raise NoModel("it is not called yet")


def _specials(space: dict[str, Any]) -> dict[str, int]:
    """Ids that the learner's constants say."""
    specials = dict(SPECIALS)
    for kind, spellings in SPELLINGS.items():
        for name, value in space.items():
            if isinstance(value, int) and not isinstance(value, bool):
                words = re.split(r"_+", name.lower().strip("_"))
                if words[0] in spellings and set(words[1:]) <= {"id", "idx", "index", "token"}:
                    specials[kind] = value
    return specials


def _builder(space: dict[str, Any]) -> Callable[[int, int], nn.Module]:
    """`build`, or another function or a class with a usual name that takes the sizes of two vocabularies."""
    for name in ("build", "build_model", "make_model", "create_model"):
        if callable(space.get(name)):
            return space[name]
    classes = [one for one in space.values() if isinstance(one, type) and issubclass(one, nn.Module)]
    own = [one for one in classes if re.search(r"transformer|seq2seq|translat|model$|nmt", one.__name__, re.IGNORECASE)]
    for one in sorted(own, key=lambda kind: -len(inspect.signature(kind).parameters)):
        required = [
            name
            for name, parameter in inspect.signature(one).parameters.items()
            if parameter.default is parameter.empty and parameter.kind == parameter.POSITIONAL_OR_KEYWORD
        ]
        if len(required) == 2 and all("vocab" in name for name in required):
            return one
    raise NoModel(message("there is no function build(src_vocab, tgt_vocab)"))


ROLES = {
    "ratio": r"ratio|teacher|forcing",
    "src_len": r"len|lengths|valid",
    "mask": r"mask",
    "tgt": r"^(tgt|trg|target|y|dec|decoder|out|answer|captions)",
    "src": r"^(src|source|x|enc|encoder|in|input|question)",
}
"""Roles of a forward's parameters, by their names."""


def _set_call(subject: Subject) -> None:
    """Find how the model is called, by the learner's functions, by its parameters' names, then by trying."""
    problem: Exception | None = None
    ways = list(_ways(subject))
    for same_length in (False, True):
        for call in ways:
            for time_first in (False, True):
                subject.call, subject.time_first, subject.same_length = call, time_first, same_length
                try:
                    if _fits(subject):
                        return
                except Exception as error:
                    problem = problem or error
    raise problem or NoModel(message("no way to call it gives logits (batch, tgt_len, tgt_vocab)"))


def _fits(subject: Subject) -> bool:
    """True if logits of the right shape come out."""
    length = SRC_LEN if subject.same_length else TGT_LEN
    subject.is_behind = False
    src, tgt_in = subject.src(), subject.tgt(length)
    logits = subject.output(src, tgt_in)
    if logits.shape != (BATCH, length, TGT_VOCAB):
        return False
    subject.is_behind = bool((logits[:, 0] == 0).all()) and not bool((logits[:, 1:] == 0).all())
    return True


def _ways(subject: Subject) -> Iterator[Callable[[Tensor, Tensor], Any]]:
    space, model = subject.space, subject.model
    pad = subject.specials["pad"]
    forward = space.get("forward")
    if callable(forward):
        yield lambda src, tgt_in: forward(model, src, tgt_in)
        return
    if callable(space.get("encode")) and callable(space.get("decode")):
        yield lambda src, tgt_in: space["decode"](model, tgt_in, space["encode"](model, src), src)
        return

    def lengths(src: Tensor) -> Tensor:
        return (src != pad).sum(dim=0 if subject.time_first else 1)

    parameters = [one for one in inspect.signature(model.forward).parameters.values() if one.kind != one.VAR_KEYWORD]
    roles = [
        next((role for role, names in ROLES.items() if re.search(names, one.name.lower())), "") for one in parameters
    ]
    if roles.count("src") == 1 and roles.count("tgt") == 1:
        taken = [
            (one.name, role)
            for one, role in zip(parameters, roles, strict=True)
            if role and (role != "mask" or one.default is one.empty)
        ]
        if "mask" in [role for _, role in taken]:
            text = "its forward takes masks: an adapter with forward(model, src, tgt_in) says how you make them"
            raise NoModel(message(text))

        def by_name(src: Tensor, tgt_in: Tensor) -> Any:
            values = {"src": src, "tgt": tgt_in, "src_len": lengths(src), "ratio": 1.0}
            return model(**{name: values[role] for name, role in taken})

        yield by_name
    yield lambda src, tgt_in: model(src, tgt_in)
    yield lambda src, tgt_in: model(src, lengths(src), tgt_in)
    yield lambda src, tgt_in: model(src, tgt_in, lengths(src))
